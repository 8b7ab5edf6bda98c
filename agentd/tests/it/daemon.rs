//! Tests of the real program as a daemon.
#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rcgen::{CertificateParams, KeyPair};

/// A user id without an account: the agent needs none.
const SOMEONE: u32 = 64_998;
/// Generous: the machine may be busy. Every wait ends by what it waits for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A host with a configured agent on it.
pub(crate) struct Place {
    pub(crate) dir: tempfile::TempDir,
    program: PathBuf,
    pub(crate) as_root: bool,
}

/// The build folder of the tests may be closed to others. Another process makes the copy: a concurrent test that starts
/// a program meanwhile would inherit our open copy, and a file that is open for writing cannot be run.
#[expect(clippy::disallowed_methods, reason = "a program under test is laid down")]
fn copy_of_agentd(place: &Path) {
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_agentd")).arg(place).status().unwrap();
    assert!(copied.success(), "cp: {copied}");
}

impl Place {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let program = dir.path().join("agentd");
        copy_of_agentd(&program);
        let place = Self { program, as_root: rustix::process::geteuid().is_root(), dir };
        let state = place.state();
        std::fs::create_dir(&state).unwrap();
        for name in ["observe", "operate", "allocate"] {
            place.write(&format!("state/{name}"), "11111111-2222-3333-4444-555555555555\n");
        }
        place.write("agent.toml", &place.settings());
        place.own(&state);
        place
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        self.own(&path);
    }

    pub(crate) fn own(&self, path: &Path) {
        if self.as_root {
            std::os::unix::fs::chown(path, Some(SOMEONE), Some(SOMEONE)).unwrap();
        }
    }

    pub(crate) fn settings(&self) -> String {
        let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let (listen, proxmox, state) = (free(), free(), self.state());
        let (state, pin) = (state.display(), "0".repeat(64));
        let token = |name| {
            format!("[proxmox.tokens.{name}]\nid = \"hf@pve!{name}\"\nsecret_file = \"{state}/{name}\"\n")
        };
        format!(
            "[proxmox]\nurl = \"https://{proxmox}\"\nnode = \"pve1\"\npins = [\"spki/sha256:{pin}\"]\n\
             pool = \"holdfast\"\nstorage = \"local\"\nbridge = \"vmbr1\"\nvmid_range = [300, 399]\n{}{}{}\
             [local_api]\nlisten = [\"{listen}\"]\n[state]\ndir = \"{state}\"\n",
            token("observe"),
            token("operate"),
            token("allocate")
        )
    }

    /// As a hub would have given it; that hub is gone.
    pub(crate) fn enrol(&self) {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(Vec::new()).unwrap().self_signed(&key).unwrap().pem();
        let identity = serde_json::json!({
            "schema": "holdfast.identity/v1", "hub": "https://127.0.0.1:1", "key_pem": key.serialize_pem(),
            "enrolled": {"host_id": "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55", "host_name": "box7",
                "certificate_pem": certificate, "ca_pem": certificate, "certificate_generation": 1,
                "not_before": "2026-01-01T00:00:00Z", "not_after": "2126-01-01T00:00:00Z"}
        });
        let folder = self.state().join("identity");
        std::fs::create_dir(&folder).unwrap();
        self.own(&folder);
        self.write("state/identity/identity.json", &identity.to_string());
    }

    #[expect(clippy::disallowed_methods, reason = "the program under test")]
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).env("HOLDFAST_AGENT_CONFIG", self.dir.path().join("agent.toml"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// As a user who is not root.
    pub(crate) fn someone(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(arguments);
        if self.as_root {
            command.uid(SOMEONE).gid(SOMEONE);
        }
        command
    }
}

fn ended(output: &Output) -> (i32, String) {
    (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Ends what is left over when a test fails half-way.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _gone = self.0.wait();
    }
}

#[test]
fn root_is_refused_before_anything_is_opened() {
    let place = Place::new();
    if !place.as_root {
        // An ordinary user cannot become root to be refused; the rule itself has its own unit test.
        return;
    }
    let (code, text) = ended(&place.command(&["run"]).output().unwrap());
    assert_eq!(code, 77, "{text}");
    assert!(text.contains("must not be root"), "{text}");
    assert!(!place.state().join("agent.db").exists(), "nothing was opened");
}

#[test]
fn a_box_that_is_not_enrolled_says_how_it_gets_there() {
    let place = Place::new();
    let (code, text) = ended(&place.someone(&["run"]).output().unwrap());
    assert_eq!(code, 78, "{text}");
    assert!(text.contains("agentd enroll"), "{text}");
}

#[test]
fn it_gets_ready_answers_refuses_a_second_and_stops_when_asked() {
    let place = Place::new();
    place.enrol();
    let notices = place.dir.path().join("notify");
    let systemd = UnixDatagram::bind(&notices).unwrap();
    std::fs::set_permissions(&notices, std::fs::Permissions::from_mode(0o777)).unwrap();
    systemd.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut daemon = place.someone(&["run"]);
    daemon.env("NOTIFY_SOCKET", &notices).env("WATCHDOG_USEC", "1500000");
    daemon.stderr(Stdio::null());
    let mut daemon = Running(daemon.spawn().unwrap());
    wait_for(&systemd, "READY=1");
    wait_for(&systemd, "STATUS=generation 0; 0 of 0 guests run");
    // The loop continues although no Proxmox answers it.
    wait_for(&systemd, "WATCHDOG=1");
    wait_for(&systemd, "WATCHDOG=1");

    let output = place.someone(&["status", "--output", "json"]).output().unwrap();
    let status: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((status["host_name"].as_str(), status["seen_at"].as_str()), (Some("box7"), None));
    let (code, text) = ended(&place.someone(&["run"]).output().unwrap());
    assert_eq!(code, 75, "{text}");
    assert!(text.contains("another agentd runs"), "{text}");

    let pid = rustix::process::Pid::from_child(&daemon.0);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    wait_for(&systemd, "STOPPING=1");
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        match daemon.0.try_wait().unwrap() {
            Some(status) => break status,
            None if Instant::now() > deadline => panic!("it does not stop"),
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    assert!(status.success(), "{status}");
    let (code, text) = ended(&place.someone(&["status"]).output().unwrap());
    assert_eq!(code, 69, "{text}");
}

/// Garbage where the records should be: the agent answers at its socket, writes nothing, and says what to do.
#[test]
fn damaged_records_leave_an_agent_that_answers_and_says_what_to_do() {
    let place = Place::new();
    let (code, text) = ended(&place.someone(&["parked", "list"]).output().unwrap());
    assert_eq!(code, 69, "no agent runs: {text}");
    assert!(text.contains("systemctl status agentd"), "{text}");
    place.enrol();
    place.write("state/agent.db", &"garbage ".repeat(2_000));
    let mut daemon = place.someone(&["run"]);
    daemon.stderr(Stdio::null());
    let _daemon = Running(daemon.spawn().unwrap());

    let deadline = Instant::now() + PATIENCE;
    let problem = loop {
        let output = place.someone(&["status", "--output", "json"]).output().unwrap();
        let status: Option<serde_json::Value> = serde_json::from_slice(&output.stdout).ok();
        let problems = status.and_then(|status| status["sections"]["agent"]["problems"].as_array().cloned());
        let damaged = |problem: &serde_json::Value| problem["code"] == "RECORDS_DAMAGED";
        if let Some(problem) = problems.into_iter().flatten().find(damaged) {
            break problem["message"].as_str().unwrap().to_owned();
        }
        assert!(Instant::now() < deadline, "it never said so: {}", ended(&output).1);
        std::thread::sleep(Duration::from_millis(50));
    };
    assert!(problem.contains("agent.db.damaged-") && problem.contains("put a sound copy"), "{problem}");
    let page = place.someone(&["status"]).output().unwrap();
    assert!(String::from_utf8_lossy(&page.stdout).contains("Needs a person"), "{page:?}");
    let listed = place.someone(&["parked", "list"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&listed.stdout), "nothing waits for a person\n");
    let (code, text) = ended(&place.someone(&["parked", "retry", "web-1"]).output().unwrap());
    assert_eq!(code, 64, "{text}");
    let shown = place.someone(&["recovery", "show"]).output().unwrap();
    assert!(shown.status.success(), "{shown:?}");
    let doctor = place.someone(&["doctor", "--output", "json"]).output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let records = checks.iter().find(|check| check["name"] == "the agent's records").unwrap();
    assert_eq!(records["state"], "failed", "{records}");
}

const ALICE: &str =
    "alice ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIqI4910CfGV/VLbLTy6XXLKZwm/HZQSG/N0iAG0D29c\n";

/// The status as JSON, once it says what is waited for.
pub(crate) fn status_that(place: &Place, says: impl Fn(&serde_json::Value) -> bool) -> serde_json::Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let output = place.someone(&["status", "--output", "json"]).output().unwrap();
        let status: Option<serde_json::Value> = serde_json::from_slice(&output.stdout).ok();
        if let Some(status) = status.as_ref().filter(|status| says(status)) {
            return status.clone();
        }
        assert!(Instant::now() < deadline, "it never said so: {status:?} {}", ended(&output).1);
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn doctor_of_operators(place: &Place) -> serde_json::Value {
    let doctor = place.someone(&["doctor", "--output", "json"]).output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let mut checks = report.get("checks").and_then(serde_json::Value::as_array).unwrap().iter();
    let named = |check: &&serde_json::Value| {
        check.get("name").is_some_and(|name| name.as_str() == Some("operators and policy"))
    };
    checks.find(named).unwrap().clone()
}

/// An enrolled host whose settings name a file of operators and a policy.
fn with_operators() -> Place {
    let place = Place::new();
    place.enrol();
    let path = |name: &str| place.dir.path().join(name);
    let trust = format!(
        "[trust]\noperators = \"{}\"\npolicy = \"{}\"\n",
        path("operators").display(),
        path("policy.toml").display()
    );
    place.write("agent.toml", &format!("{}{trust}", place.settings()));
    place
}

pub(crate) fn started(place: &Place) -> Running {
    let mut daemon = place.someone(&["run"]);
    Running(daemon.stderr(Stdio::null()).spawn().unwrap())
}

/// A file of operators that is not accepted, and the text that says why.
struct NotTaken {
    operators: &'static str,
    policy: &'static str,
    mode: u32,
    owner: u32,
    words: &'static str,
}

impl NotTaken {
    fn is_reported_while_the_agent_runs(&self) {
        let (place, words) = (with_operators(), self.words);
        let operators = place.dir.path().join("operators");
        place.write("operators", self.operators);
        place.write("policy.toml", self.policy);
        std::fs::set_permissions(&operators, std::fs::Permissions::from_mode(self.mode)).unwrap();
        if place.as_root {
            std::os::unix::fs::chown(&operators, Some(self.owner), None).unwrap();
        }
        let _daemon = started(&place);
        let reported = |problem: &serde_json::Value| problem["code"] == "TRUST_FILE";
        let problems = |status: &serde_json::Value| {
            status["sections"]["agent"]["problems"].as_array().cloned().unwrap_or_default()
        };
        let status = status_that(&place, |status| problems(status).iter().any(reported));
        let said =
            problems(&status).into_iter().find(reported).unwrap()["message"].as_str().unwrap().to_owned();
        assert!(said.contains(words), "{words}: {said}");
        assert!(status["sections"]["trust"]["operators"].is_null(), "{words}: nobody may sign");
        let check = doctor_of_operators(&place);
        assert_eq!(check["state"], "failed", "{words}: {check}");
    }
}

#[test]
fn operators_that_are_not_taken_are_reported_and_not_only_logged() {
    let usual = NotTaken { operators: ALICE, policy: "", mode: 0o644, owner: SOMEONE, words: "" };
    let stricter = "version = 1\n[verbs.cancel]\nsignatures = 9\n";
    let mut cases = vec![
        NotTaken { mode: 0o666, words: "may be written by others", ..usual },
        NotTaken { operators: "nonsense\n", words: "operators", ..usual },
        NotTaken { policy: stricter, words: "9 signatures", ..usual },
    ];
    if rustix::process::geteuid().is_root() {
        cases.push(NotTaken { owner: SOMEONE - 1, words: "chown root:root", ..usual });
    }
    std::thread::scope(|scope| {
        for case in &cases {
            scope.spawn(|| case.is_reported_while_the_agent_runs());
        }
    });
}

/// A correct file of operators is in use from the agent's start; another file in its place is in use from the next
/// start.
#[test]
fn operators_that_are_taken_are_in_use_until_the_next_start() {
    let place = with_operators();
    place.write("operators", ALICE);
    place.write("policy.toml", "version = 1\n");
    let _daemon = started(&place);
    status_that(&place, |status| status["sections"]["trust"]["operators"].is_string());
    let check = doctor_of_operators(&place);
    assert_eq!(check["state"], "good", "{check}");
    // Others in their place are not in use until a start.
    place.write("operators", &ALICE.replacen("alice", "bob", 1));
    place.write("policy.toml", "version = 2\n");
    let check = doctor_of_operators(&place);
    assert_eq!(
        (&check["state"], &check["mend"][0]),
        (&"failed".into(), &"systemctl restart agentd".into()),
        "{check}"
    );
}

/// Reads notices until one begins so.
fn wait_for(systemd: &UnixDatagram, beginning: &str) {
    let deadline = Instant::now() + PATIENCE;
    let mut heard = Vec::new();
    while Instant::now() < deadline {
        let mut bytes = [0; 4096];
        let length =
            systemd.recv(&mut bytes).unwrap_or_else(|error| panic!("{beginning}: {error}: {heard:?}"));
        let text = String::from_utf8_lossy(bytes.get(..length).unwrap()).into_owned();
        if text.lines().any(|line| line.starts_with(beginning)) {
            return;
        }
        heard.push(text);
    }
    panic!("{beginning} was not among {heard:?}");
}
