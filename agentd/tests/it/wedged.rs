//! Tests of an agent that is stuck.
//!
//! It is stopped, stalled, or without its records, Proxmox, systemd or disk: the real program, and a stand-in for systemd that
//! listens where notices go and ends nobody. Deliberately absent: that systemd ends an agent without notices.
#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use super::daemon::{Place, Running, status_that};

/// Generous: most waits end within seconds, those for a condition after half a minute.
const PATIENCE: Duration = Duration::from_secs(150);

/// An agent whose Proxmox is away looks after one, two, four and eight seconds. In any ten of the first fifteen it does once
/// at least.
const SILENCE: Duration = Duration::from_secs(10);

/// An agent, and what listens for its notices.
struct Unit {
    place: Place,
    systemd: UnixDatagram,
    daemon: Running,
    log: PathBuf,
}

impl Unit {
    fn start(place: Place, more: &[(&str, &Path)]) -> Self {
        let notices = place.dir.path().join("notify");
        drop(std::fs::remove_file(&notices));
        let systemd = UnixDatagram::bind(&notices).unwrap();
        std::fs::set_permissions(&notices, std::fs::Permissions::from_mode(0o777)).unwrap();
        let log = place.dir.path().join("log");
        let mut daemon = place.someone(&["run"]);
        daemon.env("NOTIFY_SOCKET", &notices).env("WATCHDOG_USEC", "1500000").envs(more.iter().copied());
        daemon.stdout(Stdio::null()).stderr(std::fs::File::create(&log).unwrap());
        let daemon = Running(daemon.spawn().unwrap());
        Self { place, systemd, daemon, log }
    }

    fn ready(place: Place, more: &[(&str, &Path)]) -> Self {
        let unit = Self::start(place, more);
        unit.hears("READY=1");
        unit.hears("WATCHDOG=1");
        unit
    }

    /// The next notice within a time; none, where none came.
    fn notice(&self, within: Duration) -> Option<String> {
        let mut bytes = [0; 4096];
        self.systemd.set_read_timeout(Some(within.max(Duration::from_millis(1)))).unwrap();
        let length = self.systemd.recv(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes[..length]).into_owned())
    }

    fn hears(&self, line: &str) {
        let deadline = Instant::now() + PATIENCE;
        while let Some(left) = deadline.checked_duration_since(Instant::now()) {
            if self.notice(left).is_some_and(|notice| notice.lines().any(|one| one == line)) {
                return;
            }
        }
        panic!("{line} never came: {}", self.said());
    }

    /// What was sent before counts for nothing.
    fn forget(&self) {
        while self.notice(Duration::ZERO).is_some() {}
    }

    /// From now on, for a while, no sign of life comes.
    fn is_silent(&self) {
        self.forget();
        let end = Instant::now() + SILENCE;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            let notice = self.notice(left).unwrap_or_default();
            assert!(!notice.contains("WATCHDOG=1"), "{notice}");
        }
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    fn says(&self, words: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.said().contains(words) {
            assert!(Instant::now() < deadline, "it never said {words:?}: {}", self.said());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn signal(&self, signal: Signal) {
        let pid = rustix::process::Pid::from_child(&self.daemon.0);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    fn still_runs(&mut self) {
        assert!(self.daemon.0.try_wait().unwrap().is_none(), "it ended: {}", self.said());
    }
}

fn enrolled() -> Place {
    let place = Place::new();
    place.enrol();
    place
}

/// `agentd rescue`, as the person at the console: it must read all that is there.
fn rescue(place: &Place, folder: &Path) -> Value {
    let folder = folder.to_str().unwrap();
    let output = place.someone(&["rescue", "--state", folder, "--output", "json"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let state: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(state["schema"], "holdfast.rescue/v1");
    state
}

/// Wherever it stands still, nothing else of the program can say that it lives.
#[test]
fn a_stopped_process_is_silent_and_lives_on() {
    let mut unit = Unit::ready(enrolled(), &[]);
    unit.signal(Signal::STOP);
    unit.is_silent();
    assert_eq!(rescue(&unit.place, &unit.place.state())["agent"], "running");
    unit.signal(Signal::CONT);
    unit.hears("WATCHDOG=1");
    unit.still_runs();
}

/// A loop that never yields holds all others, the one for systemd among them.
#[test]
fn a_stalled_runtime_is_silent_and_lives_on() {
    let place = enrolled();
    let stall = place.state().join("stall");
    let mut unit = Unit::ready(place, &[("HOLDFAST_STALL", &stall)]);
    std::fs::write(&stall, "").unwrap();
    let deadline = Instant::now() + PATIENCE;
    while !stall.with_extension("held").exists() {
        assert!(Instant::now() < deadline, "it is not stalled");
        std::thread::sleep(Duration::from_millis(10));
    }
    unit.is_silent();
    assert_eq!(rescue(&unit.place, &unit.place.state())["agent"], "running");
    std::fs::remove_file(&stall).unwrap();
    unit.hears("WATCHDOG=1");
    unit.still_runs();
}

/// A systemd that is busy, or hangs itself, takes no notice: its queue is full after ten. Nothing waits for it.
#[test]
fn a_systemd_that_takes_no_notices_holds_nothing() {
    let mut unit = Unit::ready(enrolled(), &[]);
    let filler = UnixDatagram::unbound().unwrap();
    filler.set_nonblocking(true).unwrap();
    let (notices, cycle) = (unit.place.dir.path().join("notify"), "no picture of the host in this cycle");
    let cycles = |unit: &Unit| unit.said().matches(cycle).count();
    let (before, deadline) = (cycles(&unit), Instant::now() + PATIENCE);
    while cycles(&unit) < before + 3 {
        while filler.send_to(b"STATUS=full", &notices).is_ok() {}
        assert!(Instant::now() < deadline, "it stands still: {}", unit.said());
        std::thread::sleep(Duration::from_millis(5));
    }
    status_that(&unit.place, |status| status["host_name"] == "box7");
    unit.forget();
    unit.hears("WATCHDOG=1");
    unit.still_runs();
}

/// A Proxmox that takes connections and never answers: each cycle ends by its own bound, so systemd does not end an agent
/// for it; it says so, and guests and people are answered.
#[test]
fn a_proxmox_that_hangs_is_reported_and_all_else_goes_on() {
    let place = enrolled();
    // It accepts by the kernel alone: nothing is read, and no handshake is answered.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let settings = place.settings();
    let line =
        |beginning: &str| settings.lines().find(|line| line.starts_with(beginning)).unwrap().to_owned();
    let hanging = format!("url = \"https://{}\"", silent.local_addr().unwrap());
    let local_api = line("listen = ").split('"').nth(1).unwrap().to_owned();
    place.write("agent.toml", &settings.replace(&line("url = "), &hanging));
    let mut unit = Unit::ready(place, &[]);
    let says = |status: &Value, code: &str| status["sections"].to_string().contains(code);
    status_that(&unit.place, |status| says(status, "UNAVAILABLE"));
    assert_eq!(handshake(&local_api), "invalid peer certificate: UnknownIssuer");
    let deadline = Instant::now() + PATIENCE;
    loop {
        unit.hears("WATCHDOG=1");
        let status = status_that(&unit.place, |_| true);
        if says(&status, "PROXMOX_AWAY") {
            break;
        }
        assert!(Instant::now() < deadline, "{status}");
    }
    unit.still_runs();
}

/// What becomes of a handshake with a client that trusts nobody: the server showed its certificate.
fn handshake(address: &str) -> String {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
    let name = rustls::pki_types::ServerName::try_from("guest.invalid").unwrap();
    let mut client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    client.complete_io(&mut stream).unwrap_err().to_string()
}

/// Another program holds the lock of the records for longer than a call waits.
#[test]
fn locked_records_are_reported_and_waited_for() {
    let mut unit = Unit::ready(enrolled(), &[]);
    let file = unit.place.state().join("agent.db");
    let kept = || -> i64 {
        let connection = rusqlite::Connection::open(&file).unwrap();
        connection.query_row("SELECT count(*) FROM reported_conditions", [], |row| row.get(0)).unwrap()
    };
    let other = rusqlite::Connection::open(&file).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    unit.says("database is locked");
    unit.forget();
    unit.hears("WATCHDOG=1");
    status_that(&unit.place, |status| status["host_name"] == "box7");
    let rescued = rescue(&unit.place, &unit.place.state());
    assert_eq!((&rescued["agent"], &rescued["opened"]), (&"running".into(), &"shared".into()));
    assert_eq!(kept(), 0, "nothing was written");
    other.execute_batch("ROLLBACK").unwrap();
    let deadline = Instant::now() + PATIENCE;
    while kept() == 0 {
        assert!(Instant::now() < deadline, "it does not go on: {}", unit.said());
        std::thread::sleep(Duration::from_millis(50));
    }
    unit.still_runs();

    // A start waits for the lock. An end would begin the next start, and the next.
    unit.signal(Signal::TERM);
    assert!(unit.daemon.0.wait().unwrap().success());
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let Unit { place, daemon, .. } = unit;
    drop(daemon);
    let mut unit = Unit::start(place, &[]);
    unit.is_silent();
    unit.still_runs();
    other.execute_batch("ROLLBACK").unwrap();
    unit.hears("READY=1");
}

#[expect(clippy::disallowed_methods, reason = "mount, umount and cp")]
fn run(program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).status().unwrap();
    assert!(status.success(), "{program} {arguments:?}: {status}");
}

/// A file system of two mebibytes with the state of an agent.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn with_state(place: &Place) -> Self {
        let at = place.dir.path().join("small");
        std::fs::create_dir(&at).unwrap();
        let path = at.to_str().unwrap();
        run("mount", &["-t", "tmpfs", "-o", "size=3m", "holdfast-test", path]);
        let state = place.state();
        let small = Self(at.clone());
        run("cp", &["-a", &format!("{}/.", state.display()), path]);
        place.own(&at);
        let settings = place.settings();
        let dir = format!("dir = \"{}\"", state.display());
        place.write("agent.toml", &settings.replace(&dir, &format!("dir = \"{path}\"")));
        small
    }

    fn fill(&self) {
        let mut ballast = std::fs::File::create(self.0.join("ballast")).unwrap();
        while std::io::Write::write_all(&mut ballast, &[0; 4_096]).is_ok() {}
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        run("umount", &["--lazy", self.0.to_str().unwrap()]);
    }
}

/// Nothing can be written under a running agent, and then it can; and not at all at a start.
#[test]
fn a_disk_without_room_or_writes_is_reported_and_read() {
    let place = enrolled();
    if !place.as_root {
        // Only root can mount.
        return;
    }
    let small = SmallDisk::with_state(&place);
    let mut unit = Unit::ready(place, &[]);
    small.fill();
    let is_full = |status: &Value| status["sections"].to_string().contains("DISK_FULL");
    let deadline = Instant::now() + PATIENCE;
    loop {
        unit.hears("WATCHDOG=1");
        if is_full(&status_that(&unit.place, |_| true)) {
            break;
        }
        assert!(Instant::now() < deadline, "{}", unit.said());
    }
    assert_eq!(rescue(&unit.place, &small.0)["agent"], "running");
    std::fs::remove_file(small.0.join("ballast")).unwrap();
    let deadline = Instant::now() + PATIENCE;
    while is_full(&status_that(&unit.place, |_| true)) {
        assert!(Instant::now() < deadline, "it does not go on: {}", unit.said());
        unit.hears("WATCHDOG=1");
    }
    unit.still_runs();

    unit.signal(Signal::TERM);
    assert!(unit.daemon.0.wait().unwrap().success());
    run("mount", &["-o", "remount,ro", small.0.to_str().unwrap()]);
    let refused = unit.place.someone(&["run"]).output().unwrap();
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(74), "{text}");
    assert!(text.contains("Read-only file system"), "{text}");
    assert_eq!(rescue(&unit.place, &small.0)["agent"], "stopped");
}
