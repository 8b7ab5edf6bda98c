//! A host in a folder: settings, keys, releases, gate.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::release::SignedRelease;
use serde_json::{Value, json};

pub struct Host {
    folder: tempfile::TempDir,
}

/// A release with its program, as they lie on a disk.
pub struct Release {
    pub signed: PathBuf,
    pub program: PathBuf,
}

/// Where the agent of a test finds its folder.
pub const AGENT_FOLDER: &str = "HOLDFAST_GATE_TEST_AGENT";

/// A program that ends with its test.
pub struct Running(std::process::Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// What one release is made of. The rest is as it should be.
pub struct Recipe<'a> {
    pub version: &'a str,
    pub program: &'a [u8],
    pub signers: &'a [&'a str],
    pub namespace: &'a str,
    pub expires_at: &'a str,
    pub issued_at: &'a str,
}

impl Default for Recipe<'_> {
    fn default() -> Self {
        Self {
            version: "7.0.0",
            program: b"program seven",
            signers: &["alice"],
            namespace: "holdfast-release",
            expires_at: "2099-01-01T00:00:00Z",
            issued_at: "2026-01-01T00:00:00Z",
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the programs under test, and ssh-keygen")]
fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    command
}

fn ran(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

impl Host {
    /// With Alice's key as the release key.
    pub fn new() -> Self {
        let host = Self { folder: tempfile::tempdir().unwrap() };
        for folder in ["etc", "agent/update", "run", "keys"] {
            std::fs::create_dir_all(host.path(folder)).unwrap();
        }
        std::fs::write(host.path("packaged-agentd"), "the package's program").unwrap();
        let (log, shown) = (host.path("systemctl.log"), host.path("systemctl.shown"));
        let script = format!(
            "#!/bin/sh\n[ \"$1\" = show ] && exec cat {}\necho \"$*\" >>{}\n",
            shown.display(),
            log.display()
        );
        std::fs::write(host.path("systemctl"), script).unwrap();
        std::fs::set_permissions(host.path("systemctl"), std::fs::Permissions::from_mode(0o755)).unwrap();
        host.set(1);
        for name in ["alice", "mallory"] {
            let words = ["-q", "-t", "ed25519", "-N", "", "-C", "", "-f", name];
            assert!(ran(command("ssh-keygen").args(words).current_dir(host.path("keys"))).status.success());
        }
        let key = std::fs::read_to_string(host.path("keys/alice.pub")).unwrap();
        std::fs::write(host.path("etc/release-keys"), format!("alice {key}")).unwrap();
        host
    }

    pub fn path(&self, inside: &str) -> PathBuf {
        self.folder.path().join(inside)
    }

    /// Writes the settings, with so many signatures.
    pub fn set(&self, signatures: u8) {
        let at = |inside: &str| self.path(inside).display().to_string();
        let text = format!(
            "signatures = {signatures}\nlook_every_ms = 100\n[paths]\nslots = {:?}\nagent_state = {:?}\nrelease_keys = {:?}\npackaged = {:?}\nlink = {:?}\nsystemctl = {:?}\n",
            at("slots"),
            at("agent"),
            at("etc/release-keys"),
            at("packaged-agentd"),
            at("run/agentd"),
            at("systemctl"),
        );
        std::fs::write(self.path("etc/agent-gate.toml"), text).unwrap();
    }

    pub fn gate(&self, words: &[&str]) -> Output {
        let mut gate = command(env!("CARGO_BIN_EXE_holdfast-agent-gate"));
        ran(gate.arg("--settings").arg(self.path("etc/agent-gate.toml")).args(words))
    }

    /// Starts the watch, which goes on until it is ended.
    pub fn watches(&self) -> Running {
        let mut gate = command(env!("CARGO_BIN_EXE_holdfast-agent-gate"));
        gate.arg("--settings").arg(self.path("etc/agent-gate.toml")).arg("watch");
        Running(gate.stdout(Stdio::null()).spawn().unwrap())
    }

    /// Starts what is in a slot, as systemd would start the agent. It is this very test program.
    pub fn runs(&self, slot: &str) -> Running {
        let mut agent = command(self.path("slots").join(slot).join("agentd"));
        agent.args(["--exact", "watch::the_agent_of_these_tests"]).env(AGENT_FOLDER, self.path("agent"));
        let running = Running(agent.stdout(Stdio::null()).spawn().unwrap());
        let shown =
            format!("ActiveState=active\nSubState=running\nMainPID={}\nResult=success\n", running.0.id());
        std::fs::write(self.path("systemctl.shown"), shown).unwrap();
        running
    }

    /// Runs it; it must succeed.
    pub fn does(&self, words: &[&str]) -> String {
        let output = self.gate(words);
        assert!(output.status.success(), "{words:?}: {}", text(&output));
        text(&output)
    }

    /// Runs it; it must fail with this code.
    pub fn refuses(&self, words: &[&str], code: i32) -> String {
        let output = self.gate(words);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {}", text(&output));
        text(&output)
    }

    pub fn status(&self) -> Value {
        serde_json::from_str(&self.does(&["status", "--output", "json"])).unwrap()
    }

    /// Starts as the unit would, and says which program the link leads to: `a`, `b` or `package`.
    pub fn starts(&self) -> String {
        self.does(&["start"]);
        self.linked()
    }

    pub fn linked(&self) -> String {
        let link = std::fs::read_link(self.path("run/agentd")).unwrap();
        match link.strip_prefix(self.path("slots")) {
            Ok(slot) => slot.parent().unwrap().display().to_string(),
            Err(_) => "package".to_owned(),
        }
    }

    /// Ends the gate at a point, the next time that it comes there.
    pub fn end_at(&self, point: &str) {
        std::fs::write(self.path("run/end-at"), point).unwrap();
    }

    pub fn release(&self, name: &str, recipe: &Recipe<'_>) -> Release {
        let manifest = json!({
            "schema": "holdfast.release/v1",
            "version": recipe.version,
            "issued_at": recipe.issued_at,
            "expires_at": recipe.expires_at,
            "files": [{
                "kind": "agent",
                "name": "agentd",
                "sha256": Sha256Text::of(recipe.program).as_str(),
                "size_bytes": recipe.program.len(),
            }],
        });
        let folder = self.path("releases").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let manifest = manifest.to_string();
        std::fs::write(folder.join("manifest"), &manifest).unwrap();
        let mut signatures = Vec::new();
        for signer in recipe.signers {
            let key = self.path("keys").join(signer);
            let mut sign = command("ssh-keygen");
            sign.args(["-q", "-Y", "sign", "-n", recipe.namespace, "-f"]).arg(key).arg("manifest");
            assert!(ran(sign.current_dir(&folder)).status.success());
            signatures.push(std::fs::read_to_string(folder.join("manifest.sig")).unwrap());
            std::fs::remove_file(folder.join("manifest.sig")).unwrap();
        }
        let signed = SignedRelease { manifest: manifest.into_bytes(), signatures };
        let release = Release { signed: folder.join("release.json"), program: folder.join("agentd") };
        std::fs::write(&release.signed, signed.to_json().unwrap()).unwrap();
        std::fs::write(&release.program, recipe.program).unwrap();
        release
    }

    /// Installs by hand.
    pub fn installs(&self, release: &Release) {
        self.does(&["install", shown(&release.signed), shown(&release.program)]);
    }

    /// Puts it where the agent puts what it downloaded.
    pub fn offers(&self, release: &Release) {
        std::fs::copy(&release.program, self.path("agent/update/agentd")).unwrap();
        std::fs::copy(&release.signed, self.path("agent/update/release.json")).unwrap();
    }
}

pub fn shown(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
