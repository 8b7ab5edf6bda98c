//! Tests of `holdfast sign --all-hosts` and `holdfast golden approvals`.

use std::path::{Path, PathBuf};

use agent_store::Store;
use agent_store::job_intake::{Outcome, take};
use agent_store::roster::RosterTexts;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::JobId;
use holdfast_protocol::job::{
    HostEpoch, ImageApproval, JobState, Ordered, QueuedJob, SeenHost, SignedJob, Verb,
};
use holdfast_trust::scope::{Here, timely};
use holdfast_trust::{Operators, Policy, Reach, Roster};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::fake_hub::{FakeHub, Reply, stderr, stdout};
use crate::sign::key;

const JOB: &str = "018f3c1e-6b1f-7c1d-9d0d-000000000001";

fn host(number: u8) -> Value {
    json!({ "id": format!("018f3c1e-6b1f-7c1d-9d0a-0000000000{number:02}"), "name": format!("box{number}"),
        "state": "online", "wanted": 1, "held": 1, "guests_running": 0, "guests": 0, "attention": 0,
        "certificate_ends_at": "2026-12-20T00:00:00Z" })
}

/// A host that built an image of these inputs.
fn built(hub: &FakeHub, number: u8, (version, archive, inputs): (&str, &str, &str)) {
    let image = json!({ "version": version, "sha256": archive.repeat(32), "status": "waiting", "build": {
        "built_at": "2026-11-02T02:00:00Z", "inputs_sha256": inputs.repeat(32), "size_bytes": 1, "origin": "built" } });
    let section = json!({ "node": "pve", "proxmox_version": "9.2.11", "cpus": 16, "memory_bytes": 1,
        "memory_used_bytes": 1, "storages": [], "goldens": [image] });
    let path = format!("GET /v1/hosts/018f3c1e-6b1f-7c1d-9d0a-0000000000{number:02}");
    hub.on(&path, Reply::Data(json!({ "host": host(number), "sections": { "host": section } })));
}

fn view(more: Value) -> Value {
    let mut view = json!({ "id": JOB, "version": "2026.11.1", "sha256": "ab".repeat(32), "by": "ada",
        "submitted_at": "2026-11-21T03:00:00Z", "expires_at": "2100-01-01T00:00:00Z", "admitted": 1, "on_its_way": 1, "refused": 0 });
    view.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    view
}

async fn hub() -> FakeHub {
    let hub = FakeHub::logged_in().await;
    hub.on("GET /v1/hosts", Reply::Data(json!({ "items": [host(1), host(2)] })));
    hub.on("POST /v1/image-approvals", Reply::Data(view(json!({}))));
    hub.on("GET /v1/image-approvals", Reply::Data(json!({ "items": [view(json!({}))] })));
    hub
}

struct Signed {
    output: std::process::Output,
    file: PathBuf,
}

fn sign(hub: &FakeHub, folder: &Path, key: &Path, more: &[&str]) -> Signed {
    let file = folder.join(format!("{}.json", uuid::Uuid::new_v4()));
    let words = ["sign", "--all-hosts", "--key", key.to_str().unwrap(), "--confirm", "2026.11.1"];
    let rest = ["--golden", "2026.11.1", "--reason", "November", "--out", file.to_str().unwrap()];
    Signed { output: hub.holdfast(&[&words[..], &rest, more].concat()), file }
}

/// The operators file with these keys.
fn operators(keys: &[&Path]) -> String {
    let line = |key: &&Path| {
        let public = std::fs::read_to_string(key.with_extension("pub")).unwrap();
        let name = key.file_name().unwrap().to_str().unwrap();
        format!("{name} {}\n", public.rsplit_once(' ').unwrap().0)
    };
    keys.iter().map(line).collect()
}

/// Has the agent of a host take it in, twice, and carry it out.
async fn admits(here: Here, texts: RosterTexts, id: JobId, blob: &str) {
    let (folder, now) = (tempfile::tempdir().unwrap(), here.now);
    let store = Store::open(folder.path(), now).unwrap();
    store.lay_down(texts, now).await.unwrap();
    let own =
        SeenHost { name: "box7".parse().unwrap(), fingerprint: "4f2a-9c01-77de-b3a8-0c11".parse().unwrap() };
    let mail = QueuedJob { id, blob: blob.to_owned(), correlation_id: None };
    let taken = take(&store, (here.host, &own), &mail, now).await.unwrap();
    assert!(matches!(taken, Outcome::Taken), "{taken:?}");
    let again = take(&store, (here.host, &own), &mail, now).await.unwrap();
    assert!(matches!(again, Outcome::Known), "{again:?}");
    let due = store.due_jobs(now).await.unwrap().remove(0);
    let roster = store.trust_state().await.unwrap().roster.unwrap();
    store.approve_release(roster.accept_here(&due.signed, &here).unwrap(), now).await.unwrap();
    let report = store.job_reports().await.unwrap().remove(0);
    assert_eq!((report.id, report.state, report.signers.len()), (id, JobState::Done, 2));
    assert_eq!(report.verb, Some(Verb::ApproveRelease));
}

fn roster(keys: &[&Path], policy: &str) -> Roster {
    let operators = Operators::parse(&operators(keys)).unwrap();
    let policy = Policy::parse(policy, &operators).unwrap();
    Roster { operators, policy }
}

#[expect(clippy::disallowed_methods, reason = "the command signs by the real clock")]
fn here(number: u8) -> Here {
    let host = format!("018f3c1e-6b1f-7c1d-9d0a-0000000000{number:02}").parse().unwrap();
    let now = Timestamp::now();
    Here { host, epoch: HostEpoch::new(u32::from(number)), now, latest: now }
}

/// What the command writes is what the gate of each host accepts, with the signatures of both operators.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_operators_approve_an_image_for_all_hosts() {
    let (hub, folder) = (hub().await, tempfile::tempdir().unwrap());
    let (ada, bob) = (key(folder.path(), "ada"), key(folder.path(), "bob"));
    built(&hub, 1, ("2026.11.1", "ab", "0a"));
    built(&hub, 2, ("2026.11.1", "ab", "0a"));
    let signed = sign(&hub, folder.path(), &ada, &["--days", "20"]);
    let says = stderr(&signed.output);
    assert_eq!(signed.output.status.code(), Some(0), "{says}");
    for line in ["Builds agree", &"ab".repeat(32), "ALL that trust your key: 2 now", "golden 2026.11.1"] {
        assert!(says.contains(line), "{line}: {says}");
    }
    let file = signed.file.to_str().unwrap();
    let read = || SignedJob::parse(&std::fs::read(&signed.file).unwrap()).unwrap();
    let both = roster(&[&ada, &bob], "version = 1\n[verbs.approve_release]\nsignatures = 2");
    assert_eq!(both.accept_here(&read(), &here(1)).unwrap_err().code(), ErrorCode::SignaturesMissing);
    let words = [
        "sign",
        "--all-hosts",
        "--also",
        file,
        "--key",
        bob.to_str().unwrap(),
        "--confirm",
        "2026.11.1",
        "--submit",
    ];
    let output = hub.holdfast(&words);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("holdfast golden approvals"), "{}", stdout(&output));
    for number in [1, 2, 9] {
        let accepted = both.accept_here(&read(), &here(number)).unwrap();
        let payload = accepted.payload();
        assert_eq!((accepted.reach(), accepted.signers().len()), (Reach::AllHosts, 2));
        assert_eq!((payload.act.verb(), payload.host_id), (Verb::ApproveRelease, here(number).host));
        timely(payload, &here(number)).unwrap();
    }
    let Ordered::AllHosts(approval) = Ordered::parse(&read().payload).unwrap() else { panic!("{file}") };
    let days = (approval.expires_at.second() - approval.not_before.second()) / 86_400;
    assert_eq!((days, approval.sha256.as_str().to_owned()), (20, "ab".repeat(32)));
    // From the command to the ledger of an agent.
    let (text, id) = (std::fs::read_to_string(&signed.file).unwrap(), approval.job_id);
    for number in [1, 9] {
        let policy = "version = 1\n[verbs.approve_release]\nsignatures = 2".to_owned();
        admits(here(number), RosterTexts { operators: operators(&[&ada, &bob]), policy }, id, &text).await;
    }
    // What the hub holds is the file, and a file for one host is no approval for all.
    let submitted = hub.holdfast(&["golden", "submit", file]);
    assert_eq!(submitted.status.code(), Some(0), "{}", stderr(&submitted));
    assert_eq!(hub.holdfast(&["job", "submit", "box1", file]).status.code(), Some(1));
    assert!(ImageApproval::parse(&read().payload).is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_signed_where_it_is_not_clear_which_image() {
    let (hub, folder) = (hub().await, tempfile::tempdir().unwrap());
    let ada = key(folder.path(), "ada");
    let refused = |more: &[&str]| {
        let signed = sign(&hub, folder.path(), &ada, more);
        assert!(!signed.file.exists(), "{}", stderr(&signed.output));
        (signed.output.status.code(), stderr(&signed.output))
    };
    built(&hub, 1, ("2026.11.1", "ab", "0a"));
    built(&hub, 2, ("2026.11.1", "cd", "0b"));
    let (code, says) = refused(&[]);
    assert_eq!(code, Some(2), "two images of one version: {says}");
    assert!(says.contains(&format!("{}  box2", "cd".repeat(32))), "{says}");
    let chosen = sign(&hub, folder.path(), &ada, &["--sha256", &"cd".repeat(32)]);
    assert_eq!(chosen.output.status.code(), Some(0), "{}", stderr(&chosen.output));
    // Of the same inputs: a builder is wrong. The command in between takes the answer that was left.
    built(&hub, 2, ("2026.11.1", "cd", "0a"));
    hub.holdfast(&["golden", "list"]);
    let (code, says) = refused(&["--sha256", &"cd".repeat(32)]);
    assert_eq!(code, Some(1), "{says}");
    assert!(says.contains("golden images of the same inputs differ"), "{says}");
    built(&hub, 1, ("2026.10.1", "ab", "0a"));
    built(&hub, 2, ("2026.10.1", "ab", "0a"));
    hub.holdfast(&["golden", "list"]);
    assert_eq!(refused(&[]).0, Some(4), "no host has it");
    // Only an image can be signed for all hosts, and only for a month.
    for more in [
        &["--days", "32"][..],
        &["--draft", "x.json"],
        &["--backup-now"],
        &["--hours", "3"],
        &["--also", "x"],
    ] {
        assert_eq!(refused(more).0, Some(2), "{more:?}");
    }
    let ada = ada.to_str().unwrap();
    let nothing = hub.holdfast(&["sign", "--all-hosts", "--key", ada, "--reason", "November"]);
    assert_eq!(nothing.status.code(), Some(2));
    let with_host =
        hub.holdfast(&["sign", "box1", "--golden", "2026.11.1", "--key", ada, "--reason", "November"]);
    assert_eq!(with_host.status.code(), Some(2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_admitted_an_approval_and_who_did_not_is_shown() {
    let hub = hub().await;
    let report = |state: &str, more: Value| {
        let mut report =
            json!({ "id": JOB, "blob": "00", "state": state, "taken_at": "2026-11-21T03:00:01Z" });
        report.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        report
    };
    let refused = json!({ "problem": { "code": "SIGNATURES_MISSING", "message": "approve_release needs 2 operators" } });
    let detail = json!({ "approval": view(json!({})), "blob": "{}", "hosts": [
        { "host": "box1", "report": report("done", json!({})) }, { "host": "box2" },
        { "host": "box3", "report": report("refused", refused) } ] });
    hub.on(&format!("GET /v1/image-approvals/{JOB}"), Reply::Data(detail));
    let list = stdout(&hub.holdfast(&["golden", "approvals"]));
    assert!(list.contains(JOB) && list.contains("2026.11.1") && list.contains("open"), "{list}");
    let shown = stdout(&hub.holdfast(&["golden", "approvals", "018f3c1e"]));
    for line in ["box1  done", "box2  on its way", "box3  refused", "approve_release needs 2 operators"] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    let withdrawn = view(json!({ "withdrawn_at": "2026-11-21T04:00:00Z" }));
    hub.on(&format!("POST /v1/image-approvals/{JOB}/withdraw"), Reply::Data(withdrawn));
    let output = stdout(&hub.holdfast(&["golden", "withdraw", "018f3c1e"]));
    assert!(output.contains("withdrawn"), "{output}");
    assert_eq!(hub.holdfast(&["golden", "withdraw", "ffff"]).status.code(), Some(4));
}
