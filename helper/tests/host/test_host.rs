//! Test host: a mount and PID namespace for one test.
//!
//! The test is PID 1, and `/etc`, `/mnt` and `/run` are empty. The shipped program reads its one policy file and works
//! on `/mnt/holdfast`; nothing of the machine is changed but free loop devices.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

const INSIDE: &str = "HOLDFAST_HELPER_STAGE";
/// Far more than any test here takes.
const SECONDS_MAX: &str = "240";
/// Cargo hands its tests descriptors of its own, which the helper would refuse.
const WITHOUT_DESCRIPTORS: &str =
    "for fd in /proc/$$/fd/*; do fd=${fd##*/}; [ $fd -gt 2 ] && eval \"exec $fd>&-\"; done; exec \"$@\"";
pub const PROGRAM: &str = "/run/program/holdfast-helper";
pub const POLICY: &str = "/etc/holdfast/helper.toml";
pub const CALLER_UID: u32 = 990;

/// The host, from inside.
pub struct Host {
    journal: UnixDatagram,
}

/// Runs `body` on a host of its own. `test` is the test's own name, since it is run a second time, in there.
pub fn on_a_host(test: &str, body: impl FnOnce(&Host)) {
    if std::env::var_os(INSIDE).is_some() {
        return body(&Host::prepare());
    }
    if !rustix::process::geteuid().is_root() {
        eprintln!("left out: {test} needs root, for mounts of its own");
        return;
    }
    let mut command = command("bash");
    command.args(["-c", WITHOUT_DESCRIPTORS, "bash", "timeout", "--kill-after=5", SECONDS_MAX]);
    command.args(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"]);
    command.arg(std::env::current_exe().unwrap()).args([test, "--exact", "--nocapture", "--test-threads=1"]);
    let output = command.env(INSIDE, "1").stdin(Stdio::null()).output().expect("bash, timeout, unshare");
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    print!("{said}");
    assert!(
        output.status.success(),
        "on its own host, {test} failed; it needs root with CAP_SYS_ADMIN, loop devices, mkfs.ext4, mkfs.xfs, mkfs.btrfs, sfdisk"
    );
    assert!(said.contains("1 passed"), "{test} is not the name of the test that calls it");
}

/// How a call ended.
#[derive(Debug)]
pub struct Answer {
    pub exit: Option<i32>,
    pub reply: Value,
    pub journal: Vec<String>,
    pub stderr: String,
}

impl Host {
    fn prepare() -> Self {
        run("mount", &["-t", "proc", "proc", "/proc"]);
        leave_others_mounts();
        for folder in ["/etc", "/mnt", "/run"] {
            run("mount", &["-t", "tmpfs", "-o", "mode=755", "tmpfs", folder]);
        }
        for folder in ["/etc/holdfast", "/mnt/holdfast", "/run/systemd/journal", "/run/program"] {
            run("install", &["-d", "-m", "755", folder]);
        }
        // Copied by a process of its own: a program that is open for writing anywhere cannot be started.
        run("install", &["-m", "755", env!("CARGO_BIN_EXE_holdfast-helper"), PROGRAM]);
        let host = Self { journal: bind() };
        host.policy("");
        host
    }

    /// Writes the policy: loop devices are allowed, and these targets.
    pub fn policy(&self, targets: &str) {
        self.whole_policy(&format!(
            "caller_uid = {CALLER_UID}\ntransports = [\"loop-for-tests-only\"]\n{targets}"
        ));
    }

    pub fn whole_policy(&self, text: &str) {
        std::fs::write(POLICY, text).unwrap();
        std::fs::set_permissions(POLICY, Permissions::from_mode(0o644)).unwrap();
    }

    /// Calls the helper as sudo would.
    pub fn ask(&self, request: &str) -> Answer {
        self.answer(command(PROGRAM).env_clear(), request.as_bytes())
    }

    pub fn mount(&self, target: &str, uuid: &str) -> Answer {
        self.ask(&mount_request(target, uuid))
    }

    pub fn unmount(&self, target: &str) -> Answer {
        self.ask(&format!(r#"{{"verb":"unmount","target":"{target}"}}"#))
    }

    pub fn status(&self) -> Value {
        let answer = self.ask(r#"{"verb":"status"}"#);
        assert_eq!(answer.exit, Some(0), "{answer:?}");
        answer.reply
    }

    /// Calls the helper by a command that was prepared with care.
    pub fn answer(&self, command: &mut Command, request: &[u8]) -> Answer {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // Who refuses early does not read; that is no failure of the test.
        let _unread = child.stdin.take().unwrap().write_all(request);
        self.heard(child.wait_with_output().unwrap())
    }

    /// Calls it with a standard input of another kind.
    pub fn answer_from(&self, command: &mut Command, input: impl Into<Stdio>) -> Answer {
        self.heard(command.stdin(input).output().unwrap())
    }

    fn heard(&self, output: Output) -> Answer {
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let reply = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
        Answer { exit: output.status.code(), reply, journal: self.lines(), stderr }
    }

    /// The lines that the journal received since the last call.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut datagram = [0_u8; 8192];
        while let Ok(length) = self.journal.recv(&mut datagram) {
            lines.push(String::from_utf8(datagram[..length].to_vec()).unwrap());
        }
        lines
    }

    /// A call that must be refused with this code, that changes nothing and is logged once.
    pub fn refused(&self, code: &str, what: &str, call: impl FnOnce() -> Answer) {
        self.lines();
        let before = world();
        let answer = call();
        assert_eq!(answer.reply["code"], code, "{what}: {answer:?}");
        assert_eq!((answer.exit, &answer.reply["ok"]), (Some(2), &Value::Bool(false)), "{what}");
        assert!(answer.reply["message"].as_str().unwrap().len() > 20, "{what}: {answer:?}");
        assert_eq!(world(), before, "{what} changed something");
        assert_eq!(answer.journal.len(), 1, "{what}: {answer:?}");
        assert!(answer.journal[0].contains(&format!("HOLDFAST_CODE={code}\n")), "{what}: {answer:?}");
    }

    /// A call that must be done.
    pub fn done(&self, what: &str, answer: Answer) -> Value {
        assert_eq!((answer.exit, &answer.reply["ok"]), (Some(0), &Value::Bool(true)), "{what}: {answer:?}");
        assert_eq!(answer.journal.len(), 1, "{what}: {answer:?}");
        assert!(answer.journal[0].contains("HOLDFAST_CODE=OK\n"), "{what}: {answer:?}");
        answer.reply
    }
}

/// Mounts of other programs go from here too when those remove the folder beneath them, in the midst of a test.
fn leave_others_mounts() {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mut places: Vec<&str> = table.lines().filter_map(|line| line.split(' ').nth(4)).collect();
    places
        .retain(|place| ["/etc/", "/mnt/", "/run/", "/tmp/"].iter().any(|folder| place.starts_with(folder)));
    // What is mounted within another comes first.
    for place in places.into_iter().rev() {
        let left = command("umount").args(["-l", place]).output().unwrap();
        // It went by itself meanwhile, or its name has letters that the table writes otherwise.
        if !left.status.success() {
            eprintln!("{place} stays: {}", String::from_utf8_lossy(&left.stderr));
        }
    }
}

fn bind() -> UnixDatagram {
    let journal = UnixDatagram::bind("/run/systemd/journal/socket").unwrap();
    journal.set_nonblocking(true).unwrap();
    // Anybody may write to a journal.
    std::fs::set_permissions("/run/systemd/journal/socket", Permissions::from_mode(0o666)).unwrap();
    journal
}

pub fn mount_request(target: &str, uuid: &str) -> String {
    format!(r#"{{"verb":"mount","target":"{target}","uuid":"{uuid}"}}"#)
}

/// Everything that the helper could have changed.
pub fn world() -> (String, BTreeMap<PathBuf, String>) {
    let mut files = BTreeMap::new();
    for folder in ["/etc", "/mnt", "/run"] {
        walk(Path::new(folder), &mut files);
    }
    (std::fs::read_to_string("/proc/self/mountinfo").unwrap(), files)
}

fn walk(folder: &Path, files: &mut BTreeMap<PathBuf, String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        // The place of the lock is made by the first call of all.
        if path.starts_with("/run/holdfast-helper") && !path.to_str().unwrap().contains("/.") {
            if path.is_dir() {
                walk(&path, files);
            }
            continue;
        }
        let meta = path.symlink_metadata().unwrap();
        let link = std::fs::read_link(&path).ok();
        files
            .insert(path.clone(), format!("{:?} {:o} {link:?}", meta.file_type(), meta.permissions().mode()));
        // What is mounted there has a table of its own.
        let here = folder.symlink_metadata().map(|folder| folder.dev()).ok();
        if meta.is_dir() && Some(meta.dev()) == here {
            walk(&path, files);
        }
    }
}

/// What the kernel lists at a mount point: its options, of the mount and of the superblock.
pub fn mounted_at(point: &str) -> Vec<String> {
    let table = std::fs::read_to_string("/proc/1/mountinfo").unwrap();
    table
        .lines()
        .filter(|line| line.split(' ').nth(4) == Some(point))
        .map(|line| format!("{} {}", line.split(' ').nth(5).unwrap(), line.split(" - ").nth(1).unwrap()))
        .collect()
}

/// Polls for a state, bounded.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(std::time::Instant::now() < deadline, "never came: {what}");
        std::thread::yield_now();
    }
}

#[expect(clippy::disallowed_methods, reason = "the helper itself and the tools that make its host")]
pub fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    Command::new(program)
}

/// Runs a tool to its end; gives what it printed.
pub fn run(program: &str, arguments: &[&str]) -> String {
    let output = command(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{program} cannot be run: {error}"));
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
