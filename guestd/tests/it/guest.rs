//! Test guest: a directory with the real program.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use holdfast_protocol::bootstrap::{Bootstrap, BootstrapToken, VARIABLE};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use tokio::task::JoinSet;

/// Cases of one test that run side by side.
const AT_ONCE: usize = 5;

/// Runs the case for each point, some side by side: most of its time is the pauses of the program under test.
pub async fn each_point<F>(points: &[&'static str], case: impl Fn(&'static str) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut running = JoinSet::new();
    for point in points {
        if running.len() == AT_ONCE {
            running.join_next().await.unwrap().unwrap();
        }
        running.spawn(case(point));
    }
    while let Some(ended) = running.join_next().await {
        ended.unwrap();
    }
}

/// Far more than any step takes; reached only when something is broken.
const DEADLINE: Duration = Duration::from_secs(60);

pub struct Guest {
    root: TempDir,
}

impl Guest {
    pub fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("proc/1")).unwrap();
        fs::create_dir_all(root.path().join("var/lib/holdfast")).unwrap();
        Self { root }
    }

    pub fn path(&self, below: &str) -> PathBuf {
        self.root.path().join(below)
    }

    pub fn set_bootstrap_token(&self, bootstrap_token: &BootstrapToken) {
        self.set_variable(bootstrap_token.seal().unwrap().expose());
    }

    pub fn set_variable(&self, value: &str) {
        let environ = format!("container=lxc\0TERM=linux\0{VARIABLE}={value}\0");
        fs::write(self.path("proc/1/environ"), environ).unwrap();
    }

    pub fn keep(&self, bootstrap: &Bootstrap) {
        self.keep_text(&serde_json::to_string(bootstrap).unwrap(), 0o600);
    }

    pub fn keep_text(&self, text: &str, mode: u32) {
        let path = self.path("var/lib/holdfast/bootstrap.json");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// The kept bootstrap and its mode, where there is one.
    pub fn bootstrap_file(&self, name: &str) -> Option<(Bootstrap, u32)> {
        let path = self.path("var/lib/holdfast").join(name);
        let text = fs::read(&path).ok()?;
        let mode = fs::metadata(&path).unwrap().mode() & 0o7777;
        Some((serde_json::from_slice(&text).unwrap(), mode))
    }

    pub fn has_bootstrap(&self) -> bool {
        self.path("var/lib/holdfast/bootstrap.json").exists()
    }

    pub fn state(&self) -> Value {
        match fs::read(self.path("run/holdfast/guestd.json")) {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap(),
            Err(_) => Value::Null,
        }
    }

    /// The state once it is in this mode with a problem that contains this text.
    pub async fn fault(&self, mode: &str, words: &str) {
        let fits = || {
            let state = self.state();
            state["mode"] == mode && state["problem"].as_str().is_some_and(|problem| problem.contains(words))
        };
        until(&format!("{mode}: {words}"), fits, || self.state().to_string()).await;
    }

    pub fn run(&self) -> Running {
        self.run_until("")
    }

    /// Runs it; it dies at this moment, as by kill -9.
    pub fn run_until(&self, point: &str) -> Running {
        let mut command = self.command("run");
        command.env("GUESTD_DIES_AT", point);
        command.stderr(Stdio::piped());
        Running { child: Some(command.spawn().unwrap()) }
    }

    /// Runs it; it checks its stacks many times a second.
    pub fn run_watching(&self) -> Running {
        let mut command = self.command("run");
        command.env("GUESTD_WATCH_MS", "50").stderr(Stdio::piped());
        Running { child: Some(command.spawn().unwrap()) }
    }

    /// Runs it as under systemd's watchdog, with this socket and this bound.
    pub fn run_notifying(&self, socket: &Path, bound: Duration) -> Running {
        let mut command = self.command("run");
        command.env("NOTIFY_SOCKET", socket).env("WATCHDOG_USEC", bound.as_micros().to_string());
        command.stderr(Stdio::piped());
        Running { child: Some(command.spawn().unwrap()) }
    }

    /// Runs it; it pauses at this failpoint each time, until it is resumed.
    pub fn run_to(&self, point: &str) -> Running {
        let mut command = self.command("run");
        command.env("GUESTD_STANDS_AT", point);
        command.stderr(Stdio::piped());
        Running { child: Some(command.spawn().unwrap()) }
    }

    /// Puts the program into the guest, as an image has it. Another process writes it, so that it is not open for
    /// writing when it is started.
    pub fn install(&self) -> PathBuf {
        let program = self.path("usr/bin/guestd");
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        #[expect(clippy::disallowed_methods, reason = "copies the program under test")]
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_guestd")).arg(&program).status().unwrap();
        assert!(copied.success());
        program
    }

    /// Runs the program from this place.
    pub fn run_program(&self, program: &Path) -> Running {
        #[expect(clippy::disallowed_methods, reason = "the program under test")]
        self.run_so(Command::new(program), "")
    }

    /// Runs the installed program, as systemd does; it dies at this moment, as by kill -9.
    pub fn run_installed(&self, point: &str) -> Running {
        #[expect(clippy::disallowed_methods, reason = "the program under test")]
        self.run_so(Command::new(self.path("usr/bin/guestd")), point)
    }

    /// The same, where no file grows beyond 64 KiB: a process that writes more gets an error, and is not killed for it.
    pub fn run_installed_on_a_full_disk(&self) -> Running {
        #[expect(clippy::disallowed_methods, reason = "the program under test, under a limit of the shell's")]
        let mut command = Command::new("sh");
        command
            .args(["-c", "trap '' XFSZ; ulimit -f 128; exec \"$@\"", "sh"])
            .arg(self.path("usr/bin/guestd"));
        self.run_so(command, "")
    }

    fn run_so(&self, mut command: Command, point: &str) -> Running {
        command.arg("run").arg("--root").arg(self.root.path()).args(["--source-address", "127.0.7.9"]);
        command
            .env_remove(VARIABLE)
            .env_remove("GUESTD_LOG")
            .env("GUESTD_SETTLE_MS", "200")
            .env("GUESTD_DIES_AT", point);
        self.set_path(&mut command);
        command.stderr(Stdio::piped());
        Running { child: Some(command.spawn().unwrap()) }
    }

    pub fn status(&self, output: &str) -> Output {
        self.command("status").args(["--output", output]).output().unwrap()
    }

    /// Runs a command with arguments to its end.
    pub fn ask(&self, verb: &str, rest: &[&str]) -> Output {
        self.command(verb).args(rest).output().unwrap()
    }

    fn command(&self, verb: &str) -> Command {
        #[expect(clippy::disallowed_methods, reason = "the program under test")]
        let mut command = Command::new(env!("CARGO_BIN_EXE_guestd"));
        command.arg(verb).arg("--root").arg(self.root.path()).args(["--source-address", "127.0.7.9"]);
        command.env_remove(VARIABLE).env_remove("GUESTD_LOG").env("GUESTD_SETTLE_MS", "200");
        self.set_path(&mut command);
        command
    }

    /// The fake programs come first, where there are some.
    fn set_path(&self, command: &mut Command) {
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", self.path("bin").display()));
    }

    /// Starts a command without waiting for its end.
    pub fn start(&self, verb: &str, rest: &[&str]) -> Running {
        let mut command = self.command(verb);
        command.args(rest).stderr(Stdio::piped()).stdout(Stdio::null());
        Running { child: Some(command.spawn().unwrap()) }
    }

    /// The same; it dies at this moment, as by kill -9.
    pub fn start_until(&self, point: &str, verb: &str) -> Running {
        let mut command = self.command(verb);
        command.env("GUESTD_DIES_AT", point).stderr(Stdio::piped()).stdout(Stdio::null());
        Running { child: Some(command.spawn().unwrap()) }
    }

    pub fn resume(&self, rest: &[&str]) -> Output {
        self.ask("resume", rest)
    }

    /// What systemd would start.
    pub fn start_as_systemd(&self, argv: &[String]) -> Output {
        #[expect(clippy::disallowed_methods, reason = "the program under test, as its timer starts it")]
        let mut command = Command::new(&argv[0]);
        command.args(&argv[1..]);
        command.env("GUESTD_SETTLE_MS", "200");
        self.set_path(&mut command);
        command.output().unwrap()
    }
}

/// A running controller. It is killed when dropped.
pub struct Running {
    child: Option<Child>,
}

impl Running {
    /// Sends SIGTERM, waits, and gives what was logged.
    pub fn stop(mut self) -> (ExitStatus, String) {
        let child = self.child.take().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        let output = child.wait_with_output().unwrap();
        (output.status, String::from_utf8(output.stderr).unwrap())
    }

    /// Pauses it where it is, as in a suspended guest, until it is woken. The whole process is stopped when this
    /// returns.
    pub async fn sleep(&mut self) {
        self.signal(Signal::STOP);
        let stat = format!("/proc/{}/stat", self.child.as_ref().unwrap().id());
        let asleep = || fs::read_to_string(&stat).unwrap().contains(") T ");
        until("it sleeps", asleep, || fs::read_to_string(&stat).unwrap()).await;
    }

    /// It continues.
    pub fn wake(&mut self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.as_ref().unwrap().id()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// Its terminal is lost: the output has no reader any more, and the kernel reports that.
    pub fn hang_up(&mut self) {
        let child = self.child.as_mut().unwrap();
        drop(child.stderr.take());
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::HUP).unwrap();
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.as_ref().unwrap().id()).unwrap()).unwrap()
    }

    /// Whether it is stopped, by the kernel's state.
    pub fn is_suspended(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid().as_raw_nonzero())).unwrap();
        stat.rsplit_once(") ").unwrap().1.starts_with('T')
    }

    /// Resumes it, where it is stopped.
    pub fn go_on(&self) {
        kill_process(self.pid(), Signal::CONT).unwrap();
    }

    /// Waits until it was killed, by itself. False when it ended in another way.
    pub async fn died(&mut self) -> bool {
        use std::os::unix::process::ExitStatusExt as _;
        let child = self.child.as_mut().unwrap();
        let begin = Instant::now();
        loop {
            match child.try_wait().unwrap() {
                Some(status) => return status.signal() == Some(9),
                None if begin.elapsed() > DEADLINE => return false,
                None => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    }

    /// Waits for it to end by itself.
    pub fn end(mut self) -> (ExitStatus, String) {
        let output = self.child.take().unwrap().wait_with_output().unwrap();
        (output.status, String::from_utf8(output.stderr).unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended already; then there is nothing to kill.
            let _ = child.kill();
            child.wait().unwrap();
        }
    }
}

/// Waits until something is so.
pub async fn until(what: &str, fits: impl Fn() -> bool, seen: impl Fn() -> String) {
    let begin = Instant::now();
    while !fits() {
        assert!(begin.elapsed() < DEADLINE, "not reached: {what}; seen: {}", seen());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
