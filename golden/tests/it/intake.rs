//! Tests of images from releases, with stock OpenSSH as signer.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use holdfast_golden::{Intake, IntakeError, OnConflict, Published, PublishedHow};
use holdfast_protocol::golden::GoldenManifest;
use holdfast_protocol::release::SignedRelease;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::tiny::tiny;

/// 2026-11-21; the releases end on 2027-03-01.
const NOW_S: u64 = 1_795_305_600;

/// A host without images, and an agent that fetched one.
struct Host {
    folder: tempfile::TempDir,
    manifest: GoldenManifest,
}

impl Host {
    fn new() -> Option<Self> {
        let host = tempfile::tempdir().unwrap();
        for name in ["etc", "fetched", "dump", "built"] {
            std::fs::create_dir(host.path().join(name)).unwrap();
        }
        let built = tiny(&host.path().join("built"), OnConflict::Replace)?.unwrap();
        let host = Self { folder: host, manifest: built.manifest };
        host.key("alice");
        host.key("mallory");
        let key = std::fs::read_to_string(host.at("alice.pub")).unwrap();
        std::fs::write(host.at("etc/release-keys"), format!("alice {key}")).unwrap();
        std::fs::copy(&built.archive, host.at("fetched/archive")).unwrap();
        std::fs::copy(&built.manifest_file, host.at("fetched/manifest.json")).unwrap();
        host.release("alice", |_| {});
        Some(host)
    }

    fn at(&self, inside: &str) -> PathBuf {
        self.folder.path().join(inside)
    }

    fn key(&self, name: &str) {
        keygen(&["-q", "-t", "ed25519", "-N", "", "-C", "", "-f", name], self.folder.path());
    }

    /// Signs a release of the fetched files, after a change.
    fn release(&self, by: &str, change: impl FnOnce(&mut serde_json::Value)) {
        let digest = |name: &str| {
            let bytes = std::fs::read(self.at(name)).unwrap();
            (hex::encode(Sha256::digest(&bytes)), bytes.len())
        };
        let (archive, about) = (digest("fetched/archive"), digest("fetched/manifest.json"));
        let mut manifest = json!({
            "schema": "holdfast.release/v1", "version": "2026.11.900",
            "issued_at": "2026-11-21T00:00:00Z", "expires_at": "2027-03-01T00:00:00Z",
            "files": [
                { "kind": "golden", "name": self.manifest.archive, "sha256": archive.0, "size_bytes": archive.1 },
                { "kind": "golden_manifest", "name": format!("golden-{}.json", self.manifest.version),
                  "sha256": about.0, "size_bytes": about.1 },
            ],
        });
        change(&mut manifest);
        let bytes = manifest.to_string().into_bytes();
        std::fs::write(self.at("signed"), &bytes).unwrap();
        let _none_before = std::fs::remove_file(self.at("signed.sig"));
        keygen(&["-q", "-Y", "sign", "-n", "holdfast-release", "-f", by, "signed"], self.folder.path());
        let signatures = vec![std::fs::read_to_string(self.at("signed.sig")).unwrap()];
        let text = SignedRelease { manifest: bytes, signatures }.to_json().unwrap();
        std::fs::write(self.at("fetched/release.json"), text).unwrap();
    }

    fn publish_with(&self, reserve_bytes: u64, now_s: u64) -> Result<Published, IntakeError> {
        let (settings, fetched, out) = (self.at("etc"), self.at("fetched"), self.at("dump"));
        Intake { settings: &settings, fetched: &fetched, out: &out, reserve_bytes, now_s }.run()
    }

    fn publish(&self) -> Result<Published, IntakeError> {
        self.publish_with(0, NOW_S)
    }

    /// Refused with that code, and the dump folder is as it was.
    fn refuses(&self, code: &str) {
        let before = names(&self.at("dump"));
        let refused = self.publish().unwrap_err();
        assert_eq!(refused.code(), code, "{refused}");
        assert_eq!(names(&self.at("dump")), before, "{code}");
    }
}

#[expect(clippy::disallowed_methods, reason = "stock OpenSSH signs releases")]
fn keygen(words: &[&str], folder: &Path) {
    let output = Command::new("ssh-keygen").args(words).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_released_image_is_put_where_built_ones_are_and_once() {
    let Some(host) = Host::new() else { return };
    // A run that was killed in the middle of its copy.
    std::fs::write(host.at("dump/.golden-received-x"), "half").unwrap();
    let published = host.publish().unwrap();
    assert_eq!(published.how, PublishedHow::Published);
    let manifest = format!("golden-{}.json", host.manifest.version);
    assert_eq!(names(&host.at("dump")), [manifest.clone(), host.manifest.archive.clone()]);
    let read: GoldenManifest =
        serde_json::from_slice(&std::fs::read(host.at("dump").join(&manifest)).unwrap()).unwrap();
    let receipt = read.received.clone().unwrap();
    assert_eq!((receipt.release.to_string().as_str(), receipt.at_s), ("2026.11.900", NOW_S));
    assert_eq!(read.inputs_sha256(), host.manifest.inputs_sha256(), "the same inputs on every host");
    assert_eq!(
        std::fs::read(host.at("dump").join(&host.manifest.archive)).unwrap(),
        std::fs::read(host.at("fetched/archive")).unwrap()
    );
    assert_eq!(host.publish().unwrap().how, PublishedHow::Already);
    // A run that was killed between the two files is finished by the next, without another copy.
    std::fs::remove_file(host.at("dump").join(&manifest)).unwrap();
    std::fs::remove_file(host.at("fetched/archive")).unwrap();
    assert_eq!(host.publish().unwrap().how, PublishedHow::Published);
    assert_eq!(names(&host.at("dump")).len(), 2);
}

#[test]
fn an_agent_alone_can_put_nothing_there() {
    let Some(host) = Host::new() else { return };
    host.release("mallory", |_| {});
    host.refuses("KEY_UNKNOWN");
    host.release("alice", |_| {});
    let whole = std::fs::read(host.at("fetched/archive")).unwrap();
    let put = |bytes: &[u8]| std::fs::write(host.at("fetched/archive"), bytes).unwrap();
    put(&whole[..whole.len() - 1]);
    host.refuses("TRUNCATED");
    put(&[whole.as_slice(), b"x"].concat());
    host.refuses("TRUNCATED");
    let mut other = whole.clone();
    other[100] ^= 1;
    put(&other);
    host.refuses("DIGEST");
    // A link that would have root read another file.
    std::fs::write(host.at("secret"), &whole).unwrap();
    std::fs::remove_file(host.at("fetched/archive")).unwrap();
    symlink(host.at("secret"), host.at("fetched/archive")).unwrap();
    host.refuses("UNREADABLE");
    std::fs::remove_file(host.at("fetched/archive")).unwrap();
    host.refuses("NOTHING");
    put(&whole);
    // A manifest that is not the released one could name any file.
    let about = std::fs::read_to_string(host.at("fetched/manifest.json")).unwrap();
    std::fs::write(host.at("fetched/manifest.json"), about.replace("vzdump-lxc-9", "vzdump-lxc-1")).unwrap();
    host.refuses("MANIFEST");
    std::fs::write(host.at("fetched/manifest.json"), &about).unwrap();
    std::fs::remove_file(host.at("etc/release-keys")).unwrap();
    host.refuses("NO_RELEASE_KEYS");
}

#[test]
fn a_release_that_says_two_things_or_has_ended_is_refused() {
    let Some(host) = Host::new() else { return };
    for (code, change) in [
        (
            "NO_IMAGE",
            (|release| release["files"][0]["kind"] = "package".into()) as fn(&mut serde_json::Value),
        ),
        ("NO_IMAGE", |release| release["files"][1]["kind"] = "golden".into()),
        ("MANIFEST", |release| release["files"][0]["name"] = "vzdump-lxc-1-other.tar.zst".into()),
        ("MANIFEST", |release| release["files"][0]["sha256"] = "ab".repeat(32).into()),
        ("MANIFEST", |release| release["files"][0]["size_bytes"] = 7.into()),
        ("MANIFEST", |release| release["files"][1]["sha256"] = "ab".repeat(32).into()),
        ("EXPIRED", |release| release["expires_at"] = "2026-11-21T00:00:01Z".into()),
    ] {
        host.release("alice", change);
        host.refuses(code);
    }
    // The gate's number of signatures counts here, too.
    host.release("alice", |_| {});
    let key = std::fs::read_to_string(host.at("mallory.pub")).unwrap();
    let keys = std::fs::read_to_string(host.at("etc/release-keys")).unwrap();
    std::fs::write(host.at("etc/release-keys"), format!("{keys}bob {key}")).unwrap();
    std::fs::write(host.at("etc/agent-gate.toml"), "signatures = 2\nlook_every_ms = 500\n").unwrap();
    host.refuses("SIGNATURES_MISSING");
}

#[test]
fn nothing_is_replaced_and_no_disk_is_filled() {
    let Some(host) = Host::new() else { return };
    let full = host.publish_with(u64::MAX / 2, NOW_S).unwrap_err();
    assert_eq!((full.code(), names(&host.at("dump"))), ("FULL", Vec::new()), "{full}");
    // The archive's name is that of somebody's backup.
    let archive = host.at("dump").join(&host.manifest.archive);
    std::fs::write(&archive, "a backup").unwrap();
    host.refuses("VERSION_TAKEN");
    assert_eq!(std::fs::read(&archive).unwrap(), b"a backup");
    std::fs::remove_file(&archive).unwrap();
    // Another image was built here under the same version.
    let manifest = host.at("dump").join(format!("golden-{}.json", host.manifest.version));
    std::fs::write(&manifest, "{}").unwrap();
    host.refuses("VERSION_TAKEN");
    assert_eq!(std::fs::read(&manifest).unwrap(), b"{}");
}

/// As root's unit starts it: no word of a caller's, one line for the answer.
#[test]
fn the_program_answers_in_one_line_and_puts_it_where_root_says() {
    let Some(host) = Host::new() else { return };
    let helper = format!("caller_uid = 990\ntransports = []\ngolden_dump = {:?}\n", host.at("dump"));
    std::fs::write(host.at("etc/helper.toml"), helper).unwrap();
    let publish = || {
        #[expect(clippy::disallowed_methods, reason = "the program under test")]
        let mut program = Command::new(env!("CARGO_BIN_EXE_holdfast-golden"));
        program.args(["publish", "--output", "json", "--reserve-mib", "0", "--settings"]);
        let output = program.arg(host.at("etc")).arg("--fetched").arg(host.at("fetched")).output().unwrap();
        let line: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), line)
    };
    let (code, line) = publish();
    assert_eq!((code, &line["published"]["how"]), (Some(0), &"published".into()), "{line}");
    assert_eq!(line["published"]["sha256"], host.manifest.sha256);
    assert_eq!(names(&host.at("dump")).len(), 2);
    std::fs::write(host.at("fetched/release.json"), "{}").unwrap();
    let (code, line) = publish();
    assert_eq!((code, line["refused"]["code"].as_str()), (Some(2), Some("MISSING")), "{line}");
    std::fs::remove_file(host.at("etc/helper.toml")).unwrap();
    let (code, line) = publish();
    assert_eq!((code, line["refused"]["code"].as_str()), (Some(2), Some("POLICY")), "{line}");
}
