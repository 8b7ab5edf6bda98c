//! Tests of `holdfast sign` and `holdfast job`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use holdfast_protocol::job::{Act, Payload, SignedJob, Verb};
use holdfast_protocol::protection::Tier;
use holdfast_protocol::root_disk::LeftBehind;
use holdfast_seal::{HostKey, TunnelToken};
use holdfast_trust::signature::{Namespace, check};
use serde_json::{Value, json};

use crate::apply::{HOST, UID, detail};
use crate::fake_hub::{FakeHub, Reply, stderr, stdout};
use crate::terminal::at_terminal;

const JOB: &str = "018f3c1e-6b1f-7c1d-9d0d-000000000001";

#[expect(clippy::disallowed_methods, reason = "stock OpenSSH, as an operator has it")]
pub fn ssh_keygen() -> Command {
    Command::new("ssh-keygen")
}

/// A fresh key without a passphrase: its private file.
pub fn key(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    let made =
        ssh_keygen().args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"]).arg(&path).status().unwrap();
    assert!(made.success());
    path
}

/// A host's own key, of one letter.
fn key_of(letter: char) -> String {
    format!("age1{}", letter.to_string().repeat(58))
}

fn sections(waiting: Value) -> Value {
    json!({
        "agent": { "version": "0.1.0", "started_at": "2026-11-21T00:00:00Z", "problems": [], "recipient": key_of('q') },
        "host": { "node": "pve", "proxmox_version": "9.2.11", "cpus": 1, "memory_bytes": 1, "memory_used_bytes": 1, "storages": [],
            "goldens": [{ "version": "2026.12.1", "sha256": "ab".repeat(32), "status": "approved" },
                { "version": "2026.12.2", "sha256": "cd".repeat(32), "status": "waiting" }] },
        "guests": [{ "uid": UID, "name": "web", "customer": "acme", "vmid": 120, "status": "unmanaged", "run": "running",
            "volumes": ["tank:120/vm-120-disk-0.raw"] },
            { "name": "web-copy", "vmid": 121, "status": "restored_copy", "run": "stopped",
            "volumes": ["tank:121/vm-121-disk-0.raw"] }],
        "trust": { "epoch": 1_794_000_000_u32, "policy_version": 0, "audit": { "number": 3, "chain": "00" } },
        "waiting": waiting,
    })
}

fn destroy() -> Value {
    let draft = json!({ "schema": "holdfast.job-draft/v1", "verb": "destroy_guest", "args": {}, "target": { "kind": "guest",
        "uid": UID, "vmid": 120, "fingerprint": { "name": "web", "customer": "acme", "volumes": ["tank:120/vm-120-disk-0.raw"] } } });
    json!({ "guest": UID, "effect": "attach a harmless volume", "reason": "the hub may say what it likes",
        "payload": draft.to_string(), "last_backup": "2026-11-21T01:00:00Z" })
}

fn view(queue_state: &str, report: Option<Value>) -> Value {
    let mut view = json!({ "id": JOB, "by": "ada", "submitted_at": "2026-11-21T03:00:00Z", "bytes": 900, "queue_state": queue_state });
    if let Some(report) = report {
        view["report"] = report;
    }
    view
}

fn report(state: &str, more: Value) -> Value {
    let mut report = json!({ "id": JOB, "blob": "00", "state": state, "verb": "destroy_guest",
        "taken_at": "2026-11-21T03:00:01Z", "signers": ["ada"] });
    report.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    report
}

async fn hub() -> FakeHub {
    let hub = FakeHub::logged_in().await;
    hub.on("GET /v1/hosts/box1", Reply::Data(detail(7, sections(json!([destroy()])))));
    hub.on(&format!("POST /v1/hosts/{HOST}/jobs"), Reply::Data(view("queued", None)));
    hub
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_operators_sign_the_same_bytes() {
    let (hub, folder) = (hub().await, tempfile::tempdir().unwrap());
    let (ada, bob) = (key(folder.path(), "ada"), key(folder.path(), "bob"));
    let file = folder.path().join("job.json");
    let (ada_text, bob_text, file_text) =
        (ada.to_str().unwrap(), bob.to_str().unwrap(), file.to_str().unwrap());
    let first =
        ["sign", "box1", "web", "--key", ada_text, "--reason", "the customer left", "--confirm", "web"];
    let output = hub.holdfast(&[&first[..], &["--out", file_text, "--output", "json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let told: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!((told["verb"].as_str(), told["guest"].as_str()), (Some("destroy_guest"), Some(UID)));
    // What binds is shown from the bytes, whatever the hub calls it.
    for line in
        ["Sign for       destroy_guest", "tank:120/vm-120-disk-0.raw", "never: no backup of it was proved"]
    {
        assert!(stderr(&output).contains(line), "{line}: {}", stderr(&output));
    }
    let again = hub.holdfast(&[&first[..], &["--out", file_text]].concat());
    assert_eq!(again.status.code(), Some(1), "a file is not written over: {}", stderr(&again));

    let second = ["sign", "box1", "--also", file_text, "--confirm", "web", "--submit", "--key"];
    let twice = hub.holdfast(&[&second[..], &[ada_text]].concat());
    assert!(stderr(&twice).contains("has signed this job already"), "{}", stderr(&twice));
    let output = hub.holdfast(&[&second[..], &[bob_text]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));

    let text = std::fs::read_to_string(&file).unwrap();
    let job = SignedJob::parse(text.as_bytes()).unwrap();
    let payload = Payload::parse(&job.payload).unwrap();
    assert_eq!((payload.act.verb(), payload.host_epoch.number()), (Verb::DestroyGuest, 1_794_000_000));
    let keys: Vec<String> = job
        .signatures
        .iter()
        .map(|armoured| check(&job.payload, armoured, Namespace::Job).unwrap().fingerprint())
        .collect();
    assert!(keys.len() == 2 && keys[0] != keys[1], "{keys:?}");
    let sent = hub.requests(&format!("POST /v1/hosts/{HOST}/jobs"));
    assert_eq!(sent.len(), 1, "only the second was submitted");
    assert_eq!(
        (sent[0].body["job"].clone(), sent[0].body["blob"].clone()),
        (payload.job_id.to_string().into(), text.into())
    );

    let public = std::fs::read_to_string(ada.with_extension("pub")).unwrap();
    let signers = hub.file("signers", &format!("ada {public}"));
    let signature = hub.file("signature", &job.signatures[0]);
    let bytes = folder.path().join("payload");
    std::fs::write(&bytes, &job.payload).unwrap();
    let verified = ssh_keygen()
        .args(["-Y", "verify", "-I", "ada", "-n", "holdfast-job", "-f"])
        .arg(&signers)
        .arg("-s")
        .arg(&signature)
        .stdin(std::fs::File::open(&bytes).unwrap())
        .output()
        .unwrap();
    assert!(verified.status.success(), "{}", stderr(&verified));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_exact_name_confirms() {
    let (hub, folder) = (hub().await, tempfile::tempdir().unwrap());
    let ada = key(folder.path(), "ada");
    let sign = |more: &[&str]| {
        let first =
            ["sign", "box1", "--key", ada.to_str().unwrap(), "--reason", "the customer left", "--out"];
        let file = folder.path().join("job.json");
        hub.command(&[&first[..], &[file.to_str().unwrap()], more].concat())
    };
    let run = |more: &[&str]| sign(more).stdin(std::process::Stdio::null()).output().unwrap();
    assert_eq!(run(&[]).status.code(), Some(2), "nobody to ask");
    let wrong = run(&["--confirm", "Web"]);
    assert_eq!(wrong.status.code(), Some(1), "{}", stderr(&wrong));
    for typed in ["y\n", "\n", "webb\n"] {
        let (status, shown) = at_terminal(sign(&[]), "Type the guest's name to sign for this: ", typed);
        assert_eq!(status.code(), Some(1), "{shown}");
    }
    assert_eq!(run(&["nobody", "--confirm", "web"]).status.code(), Some(4));
    assert!(!folder.path().join("job.json").exists());
    let (status, shown) = at_terminal(sign(&[]), "Type the guest's name to sign for this: ", "web\n");
    assert_eq!(status.code(), Some(0), "{shown}");
    assert!(shown.contains("Signed (1 signature)") && shown.contains("holdfast job submit box1"), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_for_another_host_is_not_submitted() {
    let (hub, folder) = (hub().await, tempfile::tempdir().unwrap());
    let ada = key(folder.path(), "ada");
    let file = folder.path().join("job.json");
    let arguments =
        ["sign", "box1", "--key", ada.to_str().unwrap(), "--reason", "gone", "--confirm", "web", "--out"];
    assert_eq!(hub.holdfast(&[&arguments[..], &[file.to_str().unwrap()]].concat()).status.code(), Some(0));
    let mut other = detail(7, sections(json!([])));
    other["host"]["id"] = json!("018f3c1e-6b1f-7c1d-9d0a-000000000009");
    hub.on("GET /v1/hosts/box9", Reply::Data(other));
    let output = hub.holdfast(&["job", "submit", "box9", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    let output = hub.holdfast(&["job", "submit", "box1", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replacen("eyJ", "eyK", 1)).unwrap();
    let output = hub.holdfast(&["job", "submit", "box1", file.to_str().unwrap()]);
    assert!(stderr(&output).contains("is invalid"), "{}", stderr(&output));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_end_of_a_job_has_its_exit_code() {
    let problem = |code: &str| json!({ "problem": { "code": code, "message": "as it is" } });
    for (states, exit) in [
        (vec![view("queued", None), view("answered", Some(report("done", json!({}))))], 0),
        (vec![view("answered", Some(report("refused", problem("SIGNATURES_MISSING"))))], 6),
        (vec![view("answered", Some(report("failed", problem("TARGET_CHANGED"))))], 1),
        (vec![view("answered", Some(report("cancelled", json!({}))))], 5),
        (vec![view("withdrawn", None)], 5),
        (vec![view("answered", Some(report("waiting", json!({ "due_at": "2026-11-21T03:10:00Z" }))))], 7),
    ] {
        let hub = hub().await;
        for state in &states {
            let found = json!({ "job": state, "blob": "no job" });
            hub.on(&format!("GET /v1/hosts/box1/jobs/{JOB}"), Reply::Data(found));
        }
        let output = hub.holdfast(&["job", "watch", "box1", JOB, "--timeout", "1"]);
        assert_eq!(output.status.code(), Some(exit), "{states:?}: {}", stderr(&output));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_withdraws_or_signs() {
    let (hub, folder) = (hub().await, tempfile::tempdir().unwrap());
    let ada = key(folder.path(), "ada");
    let withdraw = format!("POST /v1/hosts/box1/jobs/{JOB}/withdraw");
    hub.on(&withdraw, Reply::Data(view("withdrawn", None)));
    hub.on(&withdraw, Reply::Error(409, "UNDER_WAY", "the host has it"));
    let cancel = ["job", "cancel", "box1", JOB, "--reason", "a mistake"];
    let early = hub.holdfast(&cancel);
    assert_eq!(early.status.code(), Some(0), "{}", stderr(&early));
    assert!(stdout(&early).contains("withdrawn"), "{}", stdout(&early));
    let keyless = hub.holdfast(&cancel);
    assert_eq!(keyless.status.code(), Some(2), "{}", stderr(&keyless));
    let late = hub.holdfast(&[&cancel[..], &["--key", ada.to_str().unwrap()]].concat());
    assert_eq!(late.status.code(), Some(0), "{}", stderr(&late));
    let sent = hub.requests(&format!("POST /v1/hosts/{HOST}/jobs"));
    let job = SignedJob::parse(sent[0].body["blob"].as_str().unwrap().as_bytes()).unwrap();
    let payload = Payload::parse(&job.payload).unwrap();
    assert_eq!(payload.act.verb(), Verb::Cancel);
    assert!(String::from_utf8(job.payload.clone()).unwrap().contains(JOB));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operator_jobs_name_the_guest_as_reported() {
    let (hub, folder) = (hub().await, tempfile::tempdir().unwrap());
    let ada = key(folder.path(), "ada");
    let sign = |n: usize, guest: &str, act: &[&str]| {
        let file = folder.path().join(format!("{n}.json"));
        let first = ["sign", "box1", guest, "--key", ada.to_str().unwrap(), "--reason", "before the update"];
        let last = ["--confirm", "web", "--out", file.to_str().unwrap()];
        let output = hub.holdfast(&[&first[..], act, &last[..]].concat());
        let job = std::fs::read(&file).ok().map(|text| SignedJob::parse(&text).unwrap());
        (output, job.map(|job| Payload::parse(&job.payload).unwrap()))
    };
    for (n, (act, verb)) in [
        (&["--backup-now"][..], Verb::BackupNow),
        (&["--backup-now", "--tier", "off-site"], Verb::BackupNow),
        (&["--restore-test", "--tier", "off-site"], Verb::RestoreTest),
        (&["--roll-back", "before-update"], Verb::Rollback),
        (&["--restore", "backup2:backup/vzdump-lxc-120.tar.zst"], Verb::Restore),
        (&["--delete-backup", "backup2:backup/vzdump-lxc-120.tar.zst"], Verb::DeleteBackup),
        (
            &["--delete-backup", "backup2:backup/vzdump-lxc-120.tar.zst", "--loses", "newest-proved"],
            Verb::DeleteBackup,
        ),
        (&["--rebase", "2026.12.1", "--leave-behind"], Verb::RebaseGuest),
        (&["--discard", "web-copy"], Verb::DiscardCopy),
        (&["--swap", "web-copy"], Verb::SwapGuest),
        (&["--swap", "121", "--leave", "tank:120/vm-120-disk-2.raw"], Verb::SwapGuest),
    ]
    .into_iter()
    .enumerate()
    {
        let (output, payload) = sign(n, "120", act);
        assert_eq!(output.status.code(), Some(0), "{act:?}: {}", stderr(&output));
        let payload = payload.unwrap();
        assert_eq!(payload.act.verb(), verb);
        if let Act::RebaseGuest(args) = &payload.act {
            assert_eq!(args.sha256.as_str(), "ab".repeat(32), "as the host reports it");
            assert_eq!(args.leaves, LeftBehind::Unlisted, "nothing is reported of its root disk");
            let shown = stderr(&output);
            assert!(shown.contains("Stays behind") && shown.contains("web-former"), "{shown}");
        }
        let tier = match &payload.act {
            Act::BackupNow(args) => args.tier,
            Act::RestoreTest(args) => args.tier,
            _ => None,
        };
        assert_eq!(tier, act.contains(&"--tier").then_some(Tier::OffSite), "{act:?}");
        assert!(serde_json::to_string(&payload.target).unwrap().contains("vm-120-disk-0.raw"));
    }
    assert_eq!(sign(99, "web", &["--backup-now", "--loses", "newest"]).0.status.code(), Some(2));
    assert_eq!(sign(99, "nobody", &["--backup-now"]).0.status.code(), Some(4));
    assert_eq!(sign(99, "web", &["--backup-now", "--roll-back", "x"]).0.status.code(), Some(2));
    assert_eq!(sign(99, "web", &["--restore", "/etc/passwd"]).0.status.code(), Some(2));
    for unsigned in ["2026.12.2", "2026.12.3"] {
        let code = sign(99, "web", &["--rebase", unsigned, "--leave-behind"]).0.status.code();
        assert_eq!(code, Some(4), "not approved, or not on the host: {unsigned}");
    }
    assert_eq!(sign(99, "web", &["--discard", "web"]).0.status.code(), Some(4), "a guest is no copy");
    let (oversight, nothing) = sign(99, "web", &["--rebase", "2026.12.1"]);
    assert!(nothing.is_none() && oversight.status.code() == Some(5), "{}", stderr(&oversight));
    assert!(stderr(&oversight).contains("--leave-behind"), "{}", stderr(&oversight));
    assert_eq!(sign(99, "web", &["--backup-now", "--leave-behind"]).0.status.code(), Some(2));
    let leave = ["--backup-now", "--leave", "tank:120/vm-120-disk-2.raw"];
    assert_eq!(sign(99, "web", &leave).0.status.code(), Some(2));
    assert_eq!(sign(99, "web", &["--swap", "web"]).0.status.code(), Some(4), "no copy");
    assert_eq!(sign(99, "web", &["--roll-back", "x", "--tier", "local"]).0.status.code(), Some(2));
    assert_eq!(sign(99, "web", &["--leave", "tank:120/vm-120-disk-2.raw"]).0.status.code(), Some(2));
}

/// What `agentd golden approve-request` writes, and what a person may mistake for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_draft_file_of_a_host_is_signed() {
    let (hub, folder) = (hub().await, tempfile::tempdir().unwrap());
    hub.on("GET /v1/hosts", Reply::Data(json!({ "items": [] })));
    let ada = key(folder.path(), "ada");
    let file = folder.path().join("job.json");
    let draft = json!({ "schema": "holdfast.job-draft/v1", "verb": "approve_release", "target": { "kind": "host" },
        "args": { "kind": "golden", "version": "2026.11.1", "sha256": "ab".repeat(32) } });
    let draft = hub.file("golden-2026.11.1.approve.json", &draft.to_string());
    let other = hub.file("golden-2026.11.1.json", r#"{"schema":"holdfast.golden-manifest/v1"}"#);
    let sign = |draft: &Path| {
        let words =
            ["sign", "box1", "--key", ada.to_str().unwrap(), "--reason", "November", "--confirm", "box1"];
        let files = ["--draft", draft.to_str().unwrap(), "--out", file.to_str().unwrap()];
        hub.holdfast(&[&words[..], &files].concat())
    };
    let refused = sign(&other);
    assert_ne!(refused.status.code(), Some(0));
    assert!(stderr(&refused).contains("is not a job draft"), "{}", stderr(&refused));
    let output = sign(&draft);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains(&"ab".repeat(32)), "the digest is shown whole: {}", stderr(&output));
    assert!(stderr(&output).contains("no host reports how this image was built"), "{}", stderr(&output));
    let job = SignedJob::parse(std::fs::read_to_string(&file).unwrap().as_bytes()).unwrap();
    assert_eq!(Payload::parse(&job.payload).unwrap().act.verb(), Verb::ApproveRelease);
}

/// Two builders that made different bytes of the same inputs: no signature by accident.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_on_which_builders_differ_is_signed_only_when_that_is_said() {
    let (hub, folder) = (hub().await, tempfile::tempdir().unwrap());
    let ada = key(folder.path(), "ada");
    let host = |number: u8| {
        json!({ "id": format!("018f3c1e-6b1f-7c1d-9d0a-0000000000{number:02}"), "name": format!("box{number}"),
            "state": "online", "wanted": 1, "held": 1, "guests_running": 0, "guests": 0, "attention": 0,
            "certificate_ends_at": "2026-12-20T00:00:00Z" })
    };
    hub.on("GET /v1/hosts", Reply::Data(json!({ "items": [host(1), host(2)] })));
    let built = |number: u8, archive: &str| {
        let image = json!({ "version": "2026.11.1", "sha256": archive.repeat(32), "status": "waiting", "build": {
            "built_at": "2026-11-02T02:00:00Z", "inputs_sha256": "0a".repeat(32), "size_bytes": 1, "origin": "built" } });
        let section = json!({ "node": "pve", "proxmox_version": "9.2.11", "cpus": 16, "memory_bytes": 1,
            "memory_used_bytes": 1, "storages": [], "goldens": [image] });
        let path = format!("GET /v1/hosts/018f3c1e-6b1f-7c1d-9d0a-0000000000{number:02}");
        hub.on(&path, Reply::Data(json!({ "host": host(number), "sections": { "host": section } })));
    };
    let draft = json!({ "schema": "holdfast.job-draft/v1", "verb": "approve_release", "target": { "kind": "host" },
        "args": { "kind": "golden", "version": "2026.11.1", "sha256": "ab".repeat(32) } });
    let draft = hub.file("approve.json", &draft.to_string());
    let sign = |more: &[&str], file: &str| {
        let file = folder.path().join(file);
        let words =
            ["sign", "box1", "--key", ada.to_str().unwrap(), "--reason", "November", "--confirm", "box1"];
        let files = ["--draft", draft.to_str().unwrap(), "--out", file.to_str().unwrap()];
        (hub.holdfast(&[&words[..], &files, more].concat()), file)
    };
    built(1, "ab");
    // Three commands see a difference, and all later ones the same bytes on both.
    for archive in ["cd", "cd", "cd", "ab"] {
        built(2, archive);
    }
    let differ = "abababababab built by box1; cdcdcdcdcdcd built by box2";
    let (refused, file) = sign(&[], "a.json");
    assert_eq!((refused.status.code(), file.exists()), (Some(1), false), "{}", stderr(&refused));
    assert!(stderr(&refused).contains(differ), "{}", stderr(&refused));
    let (signed, file) = sign(&["--although-builds-differ"], "b.json");
    assert_eq!((signed.status.code(), file.exists()), (Some(0), true), "{}", stderr(&signed));
    assert!(stderr(&signed).contains(&format!("BUILDS DIFFER, of the same inputs: {differ}")));
    let compared = hub.holdfast(&["golden", "compare"]);
    assert_eq!(compared.status.code(), Some(1));
    assert!(stdout(&compared).contains("DIFFER") && stderr(&compared).contains(differ));
    let (signed, file) = sign(&[], "c.json");
    assert_eq!((signed.status.code(), file.exists()), (Some(0), true), "{}", stderr(&signed));
    assert!(
        stderr(&signed).contains("Builds agree: abababababab built by box1, box2"),
        "{}",
        stderr(&signed)
    );
    assert_eq!(hub.holdfast(&["golden", "compare"]).status.code(), Some(0));
    let list = stdout(&hub.holdfast(&["golden", "list", "box2"]));
    assert!(list.contains("box2") && !list.contains("box1") && list.contains("builders agree"), "{list}");
}

/// The order names all customers of the host, and carries their consents next to the operators' signatures.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_way_into_a_host_is_ordered_and_consented_to() {
    let (hub, folder) = (hub().await, tempfile::tempdir().unwrap());
    let [ada, acme, anna] = ["ada", "acme", "anna"].map(|name| key(folder.path(), name));
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let (file, bytes) = (folder.path().join("order.json"), folder.path().join("order.payload"));
    let let_in = text(&anna.with_extension("pub"));
    let (ada, out) = (text(&ada), text(&file));
    let words =
        ["sign", "box1", "--key", &ada, "--reason", "the agent hangs", "--confirm", "box1", "--out", &out];
    let way = ["--break-glass", "tunnel", "--minutes", "30", "--let-in", &let_in];
    let output = hub.holdfast(&[&words[..], &way].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for part in ["tunnel", "30 minutes", "acme", "ssh-ed25519 AAAA"] {
        assert!(stderr(&output).contains(part), "{part}: {}", stderr(&output));
    }
    let read = |path: &Path| SignedJob::parse(std::fs::read_to_string(path).unwrap().as_bytes()).unwrap();
    let signed = read(&file);
    let Act::BreakGlass(args) = Payload::parse(&signed.payload).unwrap().act else { panic!("{signed:?}") };
    assert_eq!((args.way.as_str(), args.minutes.minutes(), args.customers.len()), ("tunnel", 30, 1));
    assert_eq!(
        std::fs::read_to_string(&let_in).unwrap().trim(),
        format!("{} anna", args.key.unwrap().as_str())
    );

    let output = hub.holdfast(&["job", "payload", &out, "--out", &text(&bytes)]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(std::fs::read(&bytes).unwrap(), signed.payload, "exactly what operators signed");
    let consent = |namespace: &str| {
        let sig = folder.path().join("order.payload.sig");
        let _none = std::fs::remove_file(&sig);
        let mut sign = ssh_keygen();
        let made = sign.args(["-q", "-Y", "sign", "-n", namespace, "-f"]).arg(&acme).arg(&bytes).status();
        assert!(made.unwrap().success());
        hub.holdfast(&["job", "consent", &out, &text(&sig)])
    };
    assert_ne!(consent("file").status.code(), Some(0), "for another purpose");
    let output = consent("holdfast-consent");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let whole = read(&file);
    assert_eq!(
        (whole.payload, whole.signatures, whole.consents.len()),
        (signed.payload, signed.signatures, 1)
    );
    let bob = text(&key(folder.path(), "bob"));
    let also = ["sign", "box1", "--also", &out, "--key", &bob, "--confirm", "box1"];
    assert_eq!(hub.holdfast(&also).status.code(), Some(0));
    assert_eq!(
        (read(&file).signatures.len(), read(&file).consents.len()),
        (2, 1),
        "a second operator keeps it"
    );
    assert_eq!(
        hub.holdfast(&["sign", "box1", "--key", &ada, "--reason", "why", "--minutes", "30"]).status.code(),
        Some(2)
    );
}

/// The token of a tunnel leaves the operator's machine sealed, and nothing else is signed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_of_a_tunnel_is_sealed_for_the_host_and_signed() {
    let (hub, folder) = (FakeHub::logged_in().await, tempfile::tempdir().unwrap());
    let host = HostKey::generate();
    let recipient = String::from(host.recipient().unwrap());
    let mut shown = sections(json!([]));
    shown["agent"]["recipient"] = json!(recipient);
    hub.on("GET /v1/hosts/box1", Reply::Data(detail(7, shown)));
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let (ada, file) = (text(&key(folder.path(), "ada")), folder.path().join("token.json"));
    let send = |recipient: &str, token: &str, out: &Path| {
        let words = ["sign", "box1", "--key", &ada, "--reason", "a new host", "--confirm", "box1", "--out"];
        let order = [&text(out), "--tunnel-token", "cloudflared", "--recipient", recipient];
        let mut command = hub.command(&[&words[..], &order].concat());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // One that refuses before it reads closes its end first.
        let _unread = child.stdin.take().unwrap().write_all(token.as_bytes());
        child.wait_with_output().unwrap()
    };
    let output = send(&recipient, "eyJhIjoiaHVudGVyMiJ9\n", &file);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("cloudflared"), "{}", stderr(&output));
    let written = std::fs::read_to_string(&file).unwrap();
    let signed = SignedJob::parse(written.as_bytes()).unwrap();
    let said =
        [stderr(&output), stdout(&output), String::from_utf8_lossy(&signed.payload).into_owned()].concat();
    assert!(!said.contains("eyJhIjoiaHVudGVyMiJ9"), "{said}");
    let Act::SetTunnelToken(args) = Payload::parse(&signed.payload).unwrap().act else {
        panic!("{signed:?}")
    };
    let token = TunnelToken::open(&args.sealed, &host, &args.tunnel).unwrap();
    assert_eq!(token.token().expose(), "eyJhIjoiaHVudGVyMiJ9");
    // Not to a key that is another one than the hub shows, and no words.
    let other = folder.path().join("other.json");
    for (recipient, token) in [(key_of('q'), "token\n"), (recipient, "two words\n")] {
        assert_ne!(send(&recipient, token, &other).status.code(), Some(0));
    }
    assert!(!other.exists());
}

/// A hub that was stolen shows one host's id, key or life under another's name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_shown_differently_is_not_signed_for() {
    let (hub, folder) = (FakeHub::logged_in().await, tempfile::tempdir().unwrap());
    let ada = key(folder.path(), "ada");
    let (right, host) = (detail(7, sections(json!([destroy()]))), "GET /v1/hosts/box1");
    let sign = |n: usize| {
        let file = folder.path().join(format!("{n}.json"));
        let words = ["sign", "box1", "web", "--key", ada.to_str().unwrap(), "--reason", "the customer left"];
        let last = ["--confirm", "web", "--out", file.to_str().unwrap()];
        (hub.holdfast(&[&words[..], &last[..]].concat()), file)
    };
    hub.on(host, Reply::Data(right.clone()));
    let (first, file) = sign(0);
    assert_eq!(first.status.code(), Some(0), "{}", stderr(&first));
    assert!(stderr(&first).contains("box1 is not known yet"), "{}", stderr(&first));
    let payload = SignedJob::parse(&std::fs::read(&file).unwrap()).unwrap().payload;
    let seen = Payload::parse(&payload).unwrap().host.unwrap();
    assert_eq!(seen.name.as_str(), "box1", "what the agent compares with itself");
    assert!(stderr(&first).contains(seen.fingerprint.as_str()), "{}", stderr(&first));

    let changed = |change: &dyn Fn(&mut Value)| {
        let mut detail = right.clone();
        change(&mut detail);
        detail
    };
    let other_id = "018f3c1e-6b1f-7c1d-9d0a-000000000009";
    let lies = [
        changed(&|detail| detail["host"]["id"] = json!(other_id)),
        changed(&|detail| detail["sections"]["agent"]["recipient"] = json!(key_of('p'))),
        changed(&|detail| detail["sections"]["trust"]["epoch"] = json!(7)),
        changed(&|detail| detail["host"]["name"] = json!("box2")),
    ];
    for (n, lie) in lies.into_iter().enumerate() {
        let path = format!("GET /v1/hosts/box{}", n + 2);
        hub.on(&path, Reply::Data(lie));
        let file = folder.path().join(format!("lie-{n}.json"));
        let (requests, file_text) = (format!("box{}", n + 2), file.to_str().unwrap());
        let words =
            ["sign", &requests, "web", "--key", ada.to_str().unwrap(), "--reason", "the customer left"];
        let output = hub.holdfast(&[&words[..], &["--confirm", "web", "--out", file_text]].concat());
        assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
        for part in ["HOST_KEY_CHANGED", "Nothing was signed", "at its first use", "holdfast host pin"] {
            assert!(stderr(&output).contains(part), "{part}: {}", stderr(&output));
        }
        assert!(!file.exists(), "nothing was signed");
    }
    // The operator compared the key on the host itself: it was set back, and the hub reports correctly.
    let wrong = hub.holdfast(&["host", "pin", "box4", "--fingerprint", "0000-0000-0000-0000-0000"]);
    assert_eq!(wrong.status.code(), Some(5), "{}", stderr(&wrong));
    let compared = hub.holdfast(&["host", "pin", "box4", "--fingerprint", seen.fingerprint.as_str()]);
    assert_eq!(compared.status.code(), Some(0), "{}", stderr(&compared));
    assert_eq!(sign(1).0.status.code(), Some(5), "the old life is another now");
    assert_eq!(hub.holdfast(&["host", "pin", "box1"]).status.code(), Some(2), "nobody to compare it");
}

/// A release of the brake names the document that the person can examine.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_brake_release_must_match_the_hubs_document() {
    let document =
        json!({ "schema": "holdfast.desired/v1", "generation": 9, "poll_interval_s": 30, "guests": [] });
    let content = holdfast_protocol::desired::Desired::parse(document.to_string().as_bytes()).unwrap();
    let content = content.numbered().content.to_string();
    for (document_of, generation, exit) in [
        (Some(content.clone()), 9, 0),
        (Some("ab".repeat(32)), 9, 5),
        (Some(content.clone()), 8, 5),
        (None, 9, 1),
    ] {
        let (hub, folder) = (FakeHub::logged_in().await, tempfile::tempdir().unwrap());
        let ada = key(folder.path(), "ada");
        let mut args = json!({ "generation": generation,
            "changes": [{ "guest": UID, "name": "web", "operation": "stop" }] });
        if let Some(content) = &document_of {
            args["document"] = json!(content);
        }
        let draft = json!({ "schema": "holdfast.job-draft/v1", "verb": "release_brake", "target": { "kind": "host" },
            "args": args });
        let waits = json!([{ "effect": "stop", "reason": "more than the brake allows", "payload": draft.to_string() }]);
        hub.on("GET /v1/hosts/box1", Reply::Data(detail(9, sections(waits))));
        hub.on(&format!("GET /v1/hosts/{HOST}/desired"), Reply::Data(json!({ "generation": 9, "content": content,
            "author": "ada", "reason": "less memory", "put_at": "2026-11-21T03:00:00Z", "document": document.to_string() })));
        let file = folder.path().join("job.json");
        let words =
            ["sign", "box1", "--key", ada.to_str().unwrap(), "--reason", "planned work", "--confirm", "box1"];
        let output = hub.holdfast(&[&words[..], &["--out", file.to_str().unwrap()]].concat());
        assert_eq!(output.status.code(), Some(exit), "{document_of:?}: {}", stderr(&output));
        assert_eq!(file.exists(), exit == 0);
    }
}
