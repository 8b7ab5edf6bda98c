//! Tests of the program in a folder, with real keys.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]
#![expect(clippy::disallowed_methods, reason = "it starts the program and OpenSSH")]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use holdfast_protocol::break_glass::{BreakGlassStatus, CloseCause};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::job::SignedJob;
use serde_json::json;

const BEGIN: &str = "2026-11-21T14:00:00Z";
const LINE: &str = "etc/ssh/holdfast-break-glass/root";

/// A host in a folder: root's files, keys, and a clock.
struct World {
    folder: tempfile::TempDir,
    person: String,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut world = Self { folder, person: String::new() };
        for path in [
            "etc/holdfast",
            "etc/ssh/holdfast-break-glass",
            "var/lib/holdfast/break-glass",
            "var/lib/holdfast-break-glass",
            "keys",
        ] {
            fs::create_dir_all(world.at(path)).unwrap();
        }
        for name in ["ada", "eve", "acme", "byte", "person"] {
            let key = world.key(name);
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-C", "", "-f"])
                .arg(key)
                .status();
            assert!(made.unwrap().success());
        }
        world.person = world.public("person");
        world.write("etc/holdfast/operators", &format!("ada {}\n", world.public("ada")));
        world.write(
            "etc/holdfast/consent-keys",
            &format!("acme {}\nbyte {}\n", world.public("acme"), world.public("byte")),
        );
        world.settings("enabled = true");
        world.clock(0, 1, 1_000);
        world
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn key(&self, name: &str) -> PathBuf {
        self.at("keys").join(name)
    }

    fn public(&self, name: &str) -> String {
        fs::read_to_string(self.key(name).with_extension("pub")).unwrap().trim().to_owned()
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.at(path), text).unwrap();
    }

    fn settings(&self, enabled: &str) {
        self.write(
            "etc/holdfast/break-glass.toml",
            &format!(
                "{enabled}\n[host]\nid = \"01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a02\"\nname = \"box7\"\n\
                 fingerprint = \"4f2a-9c01-77de-b3a8-0c11\"\nepoch = 3\n[customers.acme]\nconsent = \"signature\"\n\
                 [ways.tunnel]\nkind = \"authorized_keys\"\nfrom = [\"10.77.0.0/24\"]\n"
            ),
        );
    }

    /// Seconds after [`BEGIN`], the boot, seconds since it.
    fn clock(&self, wall_s: i64, boot: u8, up_s: i64) {
        let wall = BEGIN.parse::<jiff::Timestamp>().unwrap() + jiff::SignedDuration::from_secs(wall_s);
        let clock = json!({ "wall": wall, "boot": format!("{boot:08x}-0000"), "up_s": up_s });
        self.write("var/lib/holdfast-break-glass/test-clock.json", &clock.to_string());
    }

    fn payload(&self, number: u32) -> serde_json::Value {
        json!({ "schema": "holdfast.job/v1", "job_id": format!("01906f3c-6b1f-7c1d-9d0a-{number:012x}"),
            "host_id": "01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a02", "host_epoch": 3,
            "host": { "name": "box7", "fingerprint": "4f2a-9c01-77de-b3a8-0c11" }, "target": { "kind": "host" },
            "verb": "break_glass",
            "args": { "way": "tunnel", "minutes": 10, "key": self.person, "customers": ["acme"] },
            "not_before": "2026-11-21T13:59:00Z", "expires_at": "2026-11-21T22:00:00Z",
            "nonce": format!("{number:032x}"), "reason": "the agent hangs" })
    }

    fn sign(&self, name: &str, namespace: &str, bytes: &[u8]) -> String {
        let mut child = Command::new("ssh-keygen")
            .args(["-q", "-Y", "sign", "-n", namespace, "-f"])
            .arg(self.key(name))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(bytes).unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    }

    fn put(&self, payload: &serde_json::Value, signer: (&str, &str), consents: &[&str]) -> SignedJob {
        let payload = payload.to_string().into_bytes();
        let signatures = vec![self.sign(signer.0, signer.1, &payload)];
        let consents = consents.iter().map(|name| self.sign(name, "holdfast-consent", &payload)).collect();
        let job = SignedJob { payload, signatures, consents };
        self.drop_order(&job.to_json().unwrap());
        job
    }

    fn put_good(&self, number: u32) -> SignedJob {
        self.put(&self.payload(number), ("ada", "holdfast-job"), &["acme"])
    }

    fn drop_order(&self, text: &str) {
        self.write("var/lib/holdfast/break-glass/order.json", text);
    }

    fn command(&self, task: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast-break-glass"));
        command.arg("--root").arg(self.folder.path()).arg(task);
        command
    }

    fn run(&self, task: &str) -> Output {
        self.command(task).output().unwrap()
    }

    #[track_caller]
    fn done(&self, task: &str) -> String {
        let output = self.run(task);
        assert!(output.status.success(), "{task}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn status(&self) -> BreakGlassStatus {
        BreakGlassStatus::parse(&fs::read(self.at("var/lib/holdfast-break-glass/status.json")).unwrap())
            .unwrap()
    }

    fn line(&self) -> Option<String> {
        fs::read_to_string(self.at(LINE)).ok()
    }

    fn is_marked(&self) -> bool {
        self.at("var/lib/holdfast-break-glass/open").exists()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_way_opens_and_closes_at_its_end_with_nothing_else_running() {
    let world = World::new();
    assert!(world.done("check").contains("customer acme must consent"));
    world.put_good(1);
    let opened = world.done("order");
    assert!(opened.contains("way tunnel is open until 2026-11-21T14:10:00Z"), "{opened}");
    let line = world.line().unwrap();
    assert!(
        line.starts_with("restrict,pty,expiry-time=\"20261121141000Z\",from=\"10.77.0.0/24\",command="),
        "{line}"
    );
    assert!(line.contains(&world.person));
    assert_eq!(world.status().open().unwrap().closes_at.to_string(), "2026-11-21T14:10:00Z");
    // The same once more changes nothing.
    assert!(world.done("order").contains("opened the way that is open"));
    assert_eq!(world.line().unwrap(), line);

    world.clock(599, 1, 1_599);
    assert!(world.done("tick").contains("stays open for 1 s"));
    assert!(world.line().is_some() && world.is_marked());
    world.clock(600, 1, 1_600);
    assert!(world.done("guard").contains("nothing is open"));
    assert!(world.line().is_none() && !world.is_marked());
    let status = world.status();
    assert_eq!(status.opened[0].closed.unwrap().cause, CloseCause::Expired);

    let replayed = world.run("order");
    assert_eq!(replayed.status.code(), Some(2));
    assert!(text(&replayed.stderr).contains("JOB_REPLAYED"), "{replayed:?}");
    assert!(world.line().is_none());
    let log = world.done("log");
    let actions: Vec<&str> = log.lines().map(|line| line.split(' ').nth(2).unwrap_or_default()).collect();
    assert_eq!(log.lines().count(), 3, "{log}");
    assert!(log.contains("opened") && log.contains("closed") && log.contains("refused"), "{actions:?}");
}

#[test]
fn neither_a_clock_set_back_nor_a_reboot_makes_it_last_longer() {
    let world = World::new();
    world.put_good(1);
    world.done("order");
    world.clock(-86_400, 1, 1_599);
    assert!(world.done("tick").contains("for 1 s"), "a day back, and the boot's clock goes on");
    world.clock(-86_400, 2, 5);
    world.done("tick");
    assert!(world.line().is_none(), "a reboot takes a minute away");

    world.clock(0, 2, 100);
    world.put_good(2);
    world.done("order");
    world.clock(30, 3, 10);
    assert!(world.done("tick").contains("for 530 s"), "the minute and the time since the boot");
    world.clock(3_600, 3, 20);
    world.done("tick");
    assert!(world.line().is_none(), "off for an hour");
    world.clock(0, 3, 30);
    let behind = world.run("order");
    assert!(text(&behind.stderr).contains("CLOCK_BEHIND"), "{behind:?}");
}

#[test]
fn forged_and_replayed_orders_open_nothing() {
    let world = World::new();
    let (job, consent) = (("ada", "holdfast-job"), &["acme"][..]);
    let changed = |path: &str, value: serde_json::Value| {
        let mut payload = world.payload(9);
        *payload.pointer_mut(path).unwrap() = value;
        payload
    };
    let plain = world.payload(9);
    for (what, payload, signer, consents, code) in [
        ("another's key", plain.clone(), ("eve", "holdfast-job"), consent, ErrorCode::KeyUnknown),
        ("another namespace", plain.clone(), ("ada", "file"), consent, ErrorCode::Signature),
        (
            "another host",
            changed("/host_id", json!("01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a0f")),
            job,
            consent,
            ErrorCode::NotYours,
        ),
        ("another name", changed("/host/name", json!("box8")), job, consent, ErrorCode::NotYours),
        (
            "another key of the host",
            changed("/host/fingerprint", json!("0000-9c01-77de-b3a8-0c11")),
            job,
            consent,
            ErrorCode::HostKeyChanged,
        ),
        ("another epoch", changed("/host_epoch", json!(2)), job, consent, ErrorCode::JobEpoch),
        (
            "expired",
            changed("/expires_at", json!("2026-11-21T13:59:59Z")),
            job,
            consent,
            ErrorCode::JobExpired,
        ),
        (
            "not yet",
            changed("/not_before", json!("2026-11-21T14:00:01Z")),
            job,
            consent,
            ErrorCode::JobNotYet,
        ),
        ("an unknown way", changed("/args/way", json!("cellar")), job, consent, ErrorCode::NotFound),
        ("too long", changed("/args/minutes", json!(121)), job, consent, ErrorCode::Range),
        ("no consent", plain.clone(), job, &[][..], ErrorCode::ConsentMissing),
        ("another customer's consent", plain.clone(), job, &["byte"][..], ErrorCode::ConsentMissing),
        ("the person's own consent", plain, job, &["person"][..], ErrorCode::KeyUnknown),
    ] {
        world.put(&payload, signer, consents);
        let output = world.run("order");
        assert_eq!(output.status.code(), Some(2), "{what}: {output:?}");
        assert!(text(&output.stderr).contains(code.as_str()), "{what}: {}", text(&output.stderr));
        assert!(world.line().is_none() && !world.is_marked(), "{what}");
        assert_eq!(world.status().refused.last().unwrap().code, code, "{what}");
    }
    // A byte of the order that was changed on the way.
    let mut forged = world.put_good(9);
    let place = forged.payload.windows(12).position(|part| part == b"\"minutes\":10").unwrap();
    forged.payload[place + 10] = b'9';
    world.drop_order(&forged.to_json().unwrap());
    assert!(text(&world.run("order").stderr).contains("SIGNATURE"));
    // What is no order, what is too long, and what is a link.
    for (what, order) in
        [("empty", String::new()), ("half", "{\"schema\":".to_owned()), ("long", "x".repeat(1 << 20))]
    {
        world.drop_order(&order);
        assert!(!world.run("order").status.success(), "{what}");
    }
    let path = world.at("var/lib/holdfast/break-glass/order.json");
    world.put_good(9);
    let elsewhere = world.at("elsewhere.json");
    fs::rename(&path, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
    assert!(!world.run("order").status.success(), "a link is not followed");
    assert!(world.line().is_none());
    // The same order opens, once nothing of it is wrong.
    fs::remove_file(&path).unwrap();
    fs::rename(&elsewhere, &path).unwrap();
    world.done("order");
    assert!(world.line().is_some());
}

#[test]
fn a_host_without_the_file_and_with_it_off_opens_nothing() {
    let world = World::new();
    world.put_good(1);
    world.settings("enabled = false");
    assert!(text(&world.run("order").stderr).contains("BREAK_GLASS_OFF"));
    fs::remove_file(world.at("etc/holdfast/break-glass.toml")).unwrap();
    assert!(text(&world.run("order").stderr).contains("BREAK_GLASS_OFF"));
    world.settings("enabled = true");
    world.done("order");
    // Root turns it off: what is open closes.
    world.settings("enabled = false");
    world.done("tick");
    assert!(world.line().is_none());
    assert_eq!(world.status().opened[0].closed.unwrap().cause, CloseCause::ByRoot);
}

#[test]
fn files_of_others_are_not_believed() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new();
    world.put_good(1);
    for path in ["etc/holdfast/operators", "etc/holdfast/break-glass.toml", "etc/holdfast/consent-keys"] {
        let mode = |mode| fs::set_permissions(world.at(path), fs::Permissions::from_mode(mode)).unwrap();
        mode(0o666);
        let output = world.run("order");
        assert!(text(&output.stderr).contains("can be changed by others than root"), "{path}: {output:?}");
        mode(0o644);
    }
    assert!(world.line().is_none());
    // A state that was damaged opens nothing, and closes what is open.
    world.done("order");
    world.write("var/lib/holdfast-break-glass/state.json", "{}");
    world.done("tick");
    assert!(world.line().is_none() && !world.is_marked());
    assert!(!world.run("order").status.success() && world.line().is_none());
}

/// A process that is dead, or never was.
fn is_gone(pid: &str) {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(") Z") || stat.contains(") X"), "{stat}");
}

fn finds(folder: &Path, kind: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|found| found == kind)).collect()
}

#[test]
fn a_session_is_recorded_and_ends_with_its_way() {
    if !Path::new("/usr/bin/script").exists() {
        assert!(std::env::var_os("HOLDFAST_CI").is_none(), "CI has util-linux's script");
        return;
    }
    let world = World::new();
    let early = world.command("session").env("SSH_ORIGINAL_COMMAND", "true").output().unwrap();
    assert!(text(&early.stderr).contains("no way into this host is open"), "{early:?}");
    world.put_good(1);
    world.done("order");
    let left = world.at("left");
    let mut session = world.command("session");
    session.env("SSH_CONNECTION", "10.77.0.9 40022 10.77.0.1 22").env(
        "SSH_ORIGINAL_COMMAND",
        format!("setsid sleep 1001 & echo $! > {}; echo it is recorded; exit 7", left.display()),
    );
    let output = session.stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    assert!(text(&output.stdout).contains("it is recorded"), "{output:?}");
    is_gone(&fs::read_to_string(&left).unwrap());
    let recordings = world.at("var/lib/holdfast-break-glass/recordings");
    let recorded = fs::read_to_string(finds(&recordings, "io").pop().unwrap()).unwrap();
    assert!(recorded.contains("it is recorded"), "{recorded}");
    assert_eq!(finds(&recordings, "timing").len(), 1);

    // One that would go on, and makes children that ignore a hang-up.
    let started = world.at("started");
    let typed = format!(
        "trap '' HUP; (trap '' HUP; sleep 1000) & echo $! > {0}.tmp; mv {0}.tmp {0}; sleep 1000",
        started.display()
    );
    let mut session = world.command("session");
    let mut child = session
        .env("SSH_ORIGINAL_COMMAND", typed)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let pid = loop {
        if let Ok(pid) = fs::read_to_string(&started) {
            break pid.trim().to_owned();
        }
        assert!(child.try_wait().unwrap().is_none(), "the session ended early");
        std::thread::yield_now();
    };
    world.clock(600, 1, 1_600);
    world.done("guard");
    assert!(!child.wait().unwrap().success());
    is_gone(&pid);
    assert!(finds(&world.at("var/lib/holdfast-break-glass/sessions"), "json").is_empty());
    assert_eq!(world.status().opened[0].sessions, 2);
    let log = world.done("log");
    assert!(log.contains("session 1 from 10.77.0.9: setsid sleep 1001"), "{log}");
    let late = world.command("session").output().unwrap();
    assert_eq!(late.status.code(), Some(2), "{late:?}");
}
