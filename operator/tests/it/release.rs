//! Tests of `holdfast release` with stock ssh-keygen.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdfast_protocol::release::{ReleaseManifest, SignedRelease};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fake_hub::{FakeHub, Reply, stderr, stdout};
use crate::sign::{key, ssh_keygen};

/// A folder of a person who makes a release: two keys, the release keys and three files.
struct Desk {
    folder: TempDir,
    ada: PathBuf,
    bob: PathBuf,
}

fn holdfast(folder: &Path, arguments: &[&str]) -> Output {
    #[expect(clippy::disallowed_methods, reason = "the program under test")]
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
    command.args(arguments).current_dir(folder).env("HOLDFAST_CONFIG", folder.join("config"));
    command.env_remove("HOLDFAST_KEY").stdin(Stdio::null()).output().unwrap()
}

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (ada, bob) = (key(folder.path(), "ada"), key(folder.path(), "bob"));
        let line = |path: &Path, name: &str| {
            let public = std::fs::read_to_string(path.with_extension("pub")).unwrap();
            format!("{name} namespaces=\"holdfast-release\" {public}")
        };
        let desk = Self { ada, bob, folder };
        desk.write("keys", (line(&desk.ada, "ada") + &line(&desk.bob, "bob")).as_bytes());
        std::fs::create_dir(desk.path("files")).unwrap();
        desk.write("files/agentd", b"a program");
        desk.write("files/holdfast-agent_0.1.0-1_amd64.deb", b"a package");
        desk.write("files/agentd.cdx.json", b"{}");
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> Output {
        holdfast(self.folder.path(), arguments)
    }

    #[track_caller]
    fn done(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
        stdout(&output)
    }

    fn manifest(&self) {
        let files = ["files/agentd", "files/holdfast-agent_0.1.0-1_amd64.deb", "files/agentd.cdx.json"];
        let first =
            ["release", "manifest", "--version", "2026.12.1", "--expires-in-days", "90", "--out", "manifest"];
        self.done(&[&first[..], &files[..]].concat());
    }

    fn sign(&self, file: &str, key: &Path) -> Output {
        self.run(&["release", "sign", file, "--key", key.to_str().unwrap(), "--confirm", "2026.12.1"])
    }

    /// A release that ada signed.
    fn signed(&self) {
        self.manifest();
        let output = self.sign("manifest", &self.ada);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }

    fn verify(&self, more: &[&str]) -> Output {
        let first = ["release", "verify", "manifest.signed.json", "--keys", "keys", "--output", "json"];
        self.run(&[&first[..], more].concat())
    }

    #[track_caller]
    fn refused(&self, more: &[&str], exit: i32, code: &str) {
        let output = self.verify(more);
        assert_eq!(output.status.code(), Some(exit), "{more:?}: {}", stderr(&output));
        let error: Value = serde_json::from_str(&stderr(&output)).unwrap();
        assert_eq!(error["error"]["code"], code, "{error}");
    }

    fn release(&self) -> SignedRelease {
        SignedRelease::parse(&std::fs::read(self.path("manifest.signed.json")).unwrap()).unwrap()
    }

    fn put(&self, release: &SignedRelease) {
        self.write("manifest.signed.json", release.to_json().unwrap().as_bytes());
    }
}

#[test]
fn two_signatures_are_added_and_verified_offline() {
    let desk = Desk::new();
    desk.signed();
    desk.refused(&["--signatures", "2"], 6, "SIGNATURES_MISSING");
    // The second person has the signed file alone.
    std::fs::rename(desk.path("manifest"), desk.path("elsewhere")).unwrap();
    let output = desk.sign("manifest.signed.json", &desk.bob);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for line in ["2026.12.1", "agentd", "package", "Signed by"] {
        assert!(stderr(&output).contains(line), "{line} is shown before the question: {}", stderr(&output));
    }
    let twice = desk.sign("manifest.signed.json", &desk.bob);
    assert_eq!(twice.status.code(), Some(5), "{}", stderr(&twice));

    let proof = desk.verify(&["--signatures", "2", "--files", "files"]);
    assert_eq!(proof.status.code(), Some(0), "{}", stderr(&proof));
    let proof: Value = serde_json::from_str(&stdout(&proof)).unwrap();
    assert_eq!((&proof["version"], &proof["signers"]), (&json!("2026.12.1"), &json!(["ada", "bob"])));
    let states: Vec<&str> =
        proof["files"].as_array().unwrap().iter().map(|file| file["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["same"; 3]);
    let table = desk.done(&["release", "verify", "manifest.signed.json", "--keys", "keys"]);
    for line in ["2026.12.1", "ada, bob (1 needed)", "holdfast-agent_0.1.0-1_amd64.deb", "not checked"] {
        assert!(table.contains(line), "{line}: {table}");
    }

    // Stock OpenSSH takes the same signature.
    let release = desk.release();
    desk.write("bytes", &release.manifest);
    desk.write("signature", release.signatures[0].as_bytes());
    let stock = ssh_keygen()
        .current_dir(desk.folder.path())
        .args(["-Y", "verify", "-I", "ada", "-n", "holdfast-release", "-f", "keys", "-s", "signature"])
        .stdin(std::fs::File::open(desk.path("bytes")).unwrap())
        .output()
        .unwrap();
    assert!(stock.status.success(), "{}", stderr(&stock));
}

#[test]
fn a_manifest_is_written_once_and_names_each_kind() {
    let desk = Desk::new();
    desk.manifest();
    let manifest = ReleaseManifest::parse(&std::fs::read(desk.path("manifest")).unwrap()).unwrap();
    let kinds: Vec<&str> = manifest.files.iter().map(|file| file.kind.as_str()).collect();
    assert_eq!(kinds, ["agent", "sbom", "package"], "in the order of names");
    let days = manifest.expires_at.second() - manifest.issued_at.second();
    assert_eq!(days, 90 * 24 * 3_600);
    let make = |more: &[&str]| {
        let first = ["release", "manifest", "--version", "2026.12.1", "--expires-in-days", "90"];
        desk.run(&[&first[..], more].concat()).status.code()
    };
    assert_eq!(make(&["--out", "manifest", "files/agentd"]), Some(1), "it is not written over");
    assert_eq!(make(&["--out", "new", "files/agentd", "--file", "agent=files/agentd"]), Some(1), "one name");
    assert_eq!(make(&["--out", "new", "keys"]), Some(1), "no kind by its name");
    assert_eq!(make(&["--out", "new", "--file", "program=keys"]), Some(2), "no such kind");
    assert_eq!(make(&["--out", "new"]), Some(2), "no files");
    assert_eq!(make(&["--out", "new", "files/none.deb"]), Some(1), "no such file");
    assert!(!desk.path("new").exists());
    assert_eq!(make(&["--out", "new", "--file", "guest_agent=keys"]), Some(0));
}

#[test]
fn a_release_that_was_not_signed_so_is_refused() {
    let desk = Desk::new();
    desk.signed();
    let good = desk.release();
    assert_eq!(desk.verify(&[]).status.code(), Some(0));

    // Changed bytes.
    let text = String::from_utf8(good.manifest.clone()).unwrap();
    let changed = text.replacen("agentd", "agentx", 1).into_bytes();
    desk.put(&SignedRelease { manifest: changed, ..good.clone() });
    desk.refused(&[], 6, "SIGNATURE");

    // Signed as a job.
    desk.write("bytes", &good.manifest);
    let signed = ssh_keygen()
        .current_dir(desk.folder.path())
        .args(["-Y", "sign", "-q", "-n", "holdfast-job", "-f", "ada", "bytes"])
        .status()
        .unwrap();
    assert!(signed.success());
    let job = std::fs::read_to_string(desk.path("bytes.sig")).unwrap();
    desk.put(&SignedRelease { signatures: vec![job], ..good.clone() });
    desk.refused(&[], 6, "SIGNATURE");
    let more = desk.sign("manifest.signed.json", &desk.bob);
    assert_eq!(more.status.code(), Some(1), "nobody adds to a signature that is none: {}", stderr(&more));

    // Signed by a stranger.
    desk.put(&SignedRelease { signatures: Vec::new(), ..good.clone() });
    std::fs::remove_file(desk.path("manifest.signed.json")).unwrap();
    let eve = key(desk.folder.path(), "eve");
    assert_eq!(desk.sign("manifest", &eve).status.code(), Some(0));
    desk.refused(&[], 6, "KEY_UNKNOWN");

    // Truncated, and no signature at all.
    let whole = good.to_json().unwrap();
    desk.write("manifest.signed.json", &whole.as_bytes()[..whole.len() / 2]);
    assert_eq!(desk.verify(&[]).status.code(), Some(1));
    let manifest = STANDARD.encode(&good.manifest);
    let none = json!({ "schema": "holdfast.signed-release/v1", "manifest": manifest, "signatures": [] });
    desk.write("manifest.signed.json", none.to_string().as_bytes());
    assert_eq!(desk.verify(&[]).status.code(), Some(1));

    // Over, and one second before.
    desk.put(&good);
    let manifest = ReleaseManifest::parse(&good.manifest).unwrap();
    desk.refused(&["--at", &manifest.expires_at.to_string()], 6, "JOB_EXPIRED");
    let before = manifest.expires_at.at() - jiff::SignedDuration::from_secs(1);
    assert_eq!(desk.verify(&["--at", &before.to_string()]).status.code(), Some(0));

    // More people than there are keys.
    assert_eq!(desk.verify(&["--signatures", "3"]).status.code(), Some(2));
    // Another manifest next to these signatures.
    desk.write("manifest", text.replacen("agentd", "agentx", 1).as_bytes());
    assert_eq!(desk.sign("manifest", &desk.bob).status.code(), Some(5));
    // Only the exact version confirms.
    std::fs::write(desk.path("manifest"), &good.manifest).unwrap();
    let bob = desk.bob.to_str().unwrap();
    let wrong = desk.run(&["release", "sign", "manifest", "--key", bob, "--confirm", "2026.12.2"]);
    assert_eq!(wrong.status.code(), Some(1), "{}", stderr(&wrong));
    assert_eq!(desk.release(), good, "nothing was added");
}

#[test]
fn each_file_is_held_to_the_release() {
    let desk = Desk::new();
    desk.signed();
    let changes: [(&str, &dyn Fn()); 3] = [
        ("other_bytes", &|| desk.write("files/agentd", b"a PROGRAM")),
        ("other_size", &|| desk.write("files/agentd", b"a program!")),
        ("missing", &|| std::fs::remove_file(desk.path("files/agentd")).unwrap()),
    ];
    for (state, change) in changes {
        change();
        let output = desk.verify(&["--files", "files"]);
        assert_eq!(output.status.code(), Some(1), "{state}: {}", stderr(&output));
        let proof: Value = serde_json::from_str(&stdout(&output)).unwrap();
        assert_eq!(proof["files"][0]["state"], state);
        assert_eq!(proof["files"][1]["state"], "same");
        assert!(stderr(&output).contains("agentd"), "{}", stderr(&output));
    }
}

fn artifact(file: &holdfast_protocol::release::ReleaseFile, received: u64, state: &str) -> Value {
    json!({ "sha256": file.sha256, "size_bytes": file.size_bytes, "received_bytes": received, "state": state })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_goes_on_where_the_hub_is() {
    let (hub, desk) = (FakeHub::logged_in().await, Desk::new());
    desk.signed();
    let manifest = ReleaseManifest::parse(&desk.release().manifest).unwrap();
    // Of the first the hub has a part, of the second all, of the third nothing.
    let at = [(4, "partial"), (2, "complete"), (0, "missing")];
    let files: Vec<Value> = manifest
        .files
        .iter()
        .zip(at)
        .map(|(file, (received, state))| {
            json!({ "kind": file.kind, "name": file.name, "artifact": artifact(file, received, state) })
        })
        .collect();
    let view = json!({ "version": "2026.12.1", "manifest_sha256": "a".repeat(64), "issued_at": manifest.issued_at,
        "expires_at": manifest.expires_at, "signatures": 1, "by": "ada", "put_at": "2026-12-01T00:00:00Z", "files": files });
    hub.on("PUT /v1/releases/2026.12.1", Reply::Data(view.clone()));
    let path = |index: usize, offset: u64| {
        format!("PUT /v1/artifacts/{}?offset={offset}", manifest.files[index].sha256.as_str())
    };
    for (index, offset) in [(0, 4), (2, 0)] {
        let file = &manifest.files[index];
        hub.on(&path(index, offset), Reply::Data(artifact(file, file.size_bytes, "complete")));
    }
    let (signed, folder) = (desk.path("manifest.signed.json"), desk.path("files"));
    let upload = [
        "release",
        "upload",
        signed.to_str().unwrap(),
        "--files",
        folder.to_str().unwrap(),
        "--output",
        "json",
    ];
    let output = hub.holdfast(&upload);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let shown: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let states: Vec<&Value> =
        shown["files"].as_array().unwrap().iter().map(|file| &file["artifact"]["state"]).collect();
    assert_eq!(states, ["complete"; 3]);
    let sent = hub.requests("PUT /v1/releases/2026.12.1");
    assert_eq!(sent[0].body["schema"], "holdfast.signed-release/v1");
    assert_eq!(hub.requests(&path(0, 4)).len(), 1);
    assert_eq!(hub.requests(&path(0, 4))[0].headers["content-length"], "5", "the rest alone");

    // What differs here is not sent at all.
    desk.write("files/agentd", b"a PROGRAM");
    assert_eq!(hub.holdfast(&upload).status.code(), Some(1));
    assert_eq!(hub.requests("PUT /v1/releases/2026.12.1").len(), 1);

    hub.on("GET /v1/releases", Reply::Data(json!({ "items": [view.clone()] })));
    let listed = stdout(&hub.holdfast(&["release", "list"]));
    assert!(listed.contains("2026.12.1") && listed.contains("1 of 3: upload again"), "{listed}");
    let mut rollout = json!({ "number": 3, "version": "2026.12.1", "state": "planned", "by": "ada",
        "at": "2026-12-01T00:00:00Z", "waves": [{ "hosts": [{ "host": "box7", "state": "waiting" }],
        "max_failures": 0, "soak_s": 1800, "timeout_s": 7200 }] });
    hub.on("POST /v1/rollouts", Reply::Data(rollout.clone()));
    let wave = "hosts=box7,failures=0,soak=30m,timeout=2h";
    let planned = hub.holdfast(&["rollout", "plan", "2026.12.1", "--wave", wave]);
    assert_eq!(planned.status.code(), Some(0), "{}", stderr(&planned));
    let page = stdout(&planned);
    assert!(page.contains("box7") && page.contains("holdfast rollout start 3"), "{page}");
    let sent = &hub.requests("POST /v1/rollouts")[0].body["waves"][0];
    let wanted =
        json!({ "hosts": { "named": ["box7"] }, "max_failures": 0, "soak_s": 1800, "timeout_s": 7200 });
    assert_eq!(*sent, wanted);
    rollout["state"] = json!("held");
    rollout["reason"] = json!("of the 1 hosts of wave 1 1 failed");
    rollout["open"] = json!({ "number": 1, "opened_at": "2026-12-01T00:00:00Z" });
    hub.on("GET /v1/rollouts/3", Reply::Data(rollout.clone()));
    let held = hub.holdfast(&["rollout", "watch", "3"]);
    assert_eq!(held.status.code(), Some(1), "{}", stderr(&held));
    assert!(stderr(&held).contains("1 failed") && stdout(&held).contains("box7"), "{}", stderr(&held));
    assert_eq!(
        hub.holdfast(&["rollout", "resume", "3"]).status.code(),
        Some(2),
        "failures are accepted by a person"
    );
    hub.on("GET /v1/rollouts", Reply::Data(json!({ "items": [rollout] })));
    let listed = stdout(&hub.holdfast(&["rollout", "list"]));
    assert!(listed.contains("held") && listed.contains("1 of 1"), "{listed}");

    let offer = json!({ "version": "2026.12.1", "by": "ada", "at": "2026-12-01T00:00:00Z" });
    for host in ["box7", "box8"] {
        hub.on(&format!("PUT /v1/hosts/{host}/release-offer"), Reply::Data(offer.clone()));
    }
    let offered = hub.holdfast(&["release", "offer", "2026.12.1", "box7", "box8", "--output", "json"]);
    assert_eq!(offered.status.code(), Some(0), "{}", stderr(&offered));
    let shown: Value = serde_json::from_str(&stdout(&offered)).unwrap();
    assert_eq!((&shown[1]["host"], &shown[1]["offer"]["version"]), (&json!("box8"), &json!("2026.12.1")));
    let sent = hub.requests("PUT /v1/hosts/box7/release-offer");
    assert_eq!(sent[0].body, json!({ "version": "2026.12.1" }));
    let says = "the hub has 4 of 9 bytes of the agent";
    hub.on("PUT /v1/hosts/box9/release-offer", Reply::Error(412, "PRECONDITION_FAILED", says));
    let refused = hub.holdfast(&["release", "offer", "2026.12.1", "box9"]);
    assert!(!refused.status.success() && stderr(&refused).contains(says), "{}", stderr(&refused));
    hub.on("DELETE /v1/hosts/box7/release-offer", Reply::Data(json!({ "offer": offer })));
    hub.on("DELETE /v1/hosts/box8/release-offer", Reply::Data(json!({})));
    let withdrawn = stdout(&hub.holdfast(&["release", "withdraw", "box7", "box8"]));
    assert!(withdrawn.contains("2026.12.1") && withdrawn.contains("nothing was offered"), "{withdrawn}");
    hub.on("DELETE /v1/releases/2026.12.1", Reply::Data(view));
    assert_eq!(hub.holdfast(&["release", "delete", "2026.12.1"]).status.code(), Some(2), "no terminal");
    assert_eq!(hub.holdfast(&["release", "delete", "2026.12.1", "--yes"]).status.code(), Some(0));
    hub.on("DELETE /v1/releases/2026.12.2", Reply::Error(404, "NOT_FOUND", "none"));
    let unknown = hub.holdfast(&["release", "delete", "2026.12.2", "--yes"]);
    assert_eq!(unknown.status.code(), Some(4));
    assert!(stderr(&unknown).contains("holdfast release list"), "{}", stderr(&unknown));
}
