//! Headless Chromium, spoken to in its own protocol through a pipe.
//!
//! In: commands as JSON, each ended by a zero byte. Out: their results, and the events in between, in order. The calls
//! block; a browser that hangs is ended by the bound of each test. Deliberately absent: a driver program and a web socket,
//! which the pipe does without.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Moves the pipes to where Chromium looks for them, and keeps what it prints out of them.
const START: &str = r#"exec "$@" 3<&0 4>&1 </dev/null >&2"#;

/// One picture of a page on every machine, and no request to anywhere but the hub.
const FLAGS: [&str; 17] = [
    "--headless",
    "--remote-debugging-pipe",
    // CI runs as root, where there is no sandbox. The only pages are ours.
    "--no-sandbox",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-extensions",
    "--disable-renderer-backgrounding",
    "--disable-sync",
    "--disable-gpu",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
];

/// Events that tests ask for. There are many others.
const KEPT: [&str; 4] =
    ["Page.loadEventFired", "Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled"];

/// Events of these that nobody asked for yet.
const UNREAD_MAX: usize = 20_000;

pub struct Chromium {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last: u64,
    unread: VecDeque<Value>,
    _profile: TempDir,
}

impl Chromium {
    /// A browser that trusts chains with a key of this digest, and no other that the system does not know. None where
    /// there is no Chromium; in CI that is a failure.
    pub fn start(authority: &str) -> Option<Self> {
        let program = Path::new("/usr/bin/chromium");
        if !program.is_file() {
            assert!(std::env::var_os("HOLDFAST_CI").is_none(), "CI needs Debian's package chromium");
            println!("left out: Debian's package chromium is not installed");
            return None;
        }
        let profile = tempfile::tempdir().unwrap();
        #[expect(clippy::disallowed_methods, reason = "the browser of the test")]
        let mut command = Command::new("sh");
        command.args(["-c", START, "sh"]).arg(program).args(FLAGS);
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        command.arg(format!("--ignore-certificate-errors-spki-list={authority}"));
        command.env("HOME", profile.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let log = std::fs::File::create(profile.path().join("log")).unwrap();
        let mut child = command.stderr(log).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Some(Self { child, input, output, last: 0, unread: VecDeque::new(), _profile: profile })
    }

    /// Sends a command and waits for its result.
    pub fn call(&mut self, session: Option<&str>, method: &str, params: &Value) -> Value {
        self.try_call(session, method, params).unwrap_or_else(|error| panic!("{method} {params}: {error}"))
    }

    /// The same, where the browser may refuse.
    pub fn try_call(&mut self, session: Option<&str>, method: &str, params: &Value) -> Result<Value, Value> {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": params });
        if let Some(session) = session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = serde_json::to_vec(&message).unwrap();
        bytes.push(0);
        self.input.write_all(&bytes).unwrap();
        self.input.flush().unwrap();
        loop {
            let mut said = self.read();
            if said["id"] == json!(self.last) {
                return match said.get_mut("error") {
                    Some(error) => Err(error.take()),
                    None => Ok(said["result"].take()),
                };
            }
            self.keep(said);
        }
    }

    /// Waits for the next event of a kind in a session, and gives what it says.
    pub fn wait_for(&mut self, session: &str, method: &str) -> Value {
        let is_it = |one: &Value| one["method"] == method && one["sessionId"] == session;
        if let Some(place) = self.unread.iter().position(is_it) {
            return self.unread.remove(place).unwrap()["params"].take();
        }
        loop {
            let mut said = self.read();
            if is_it(&said) {
                return said["params"].take();
            }
            self.keep(said);
        }
    }

    /// Takes the unread events of some kinds in a session.
    pub fn take(&mut self, session: &str, methods: &[&str]) -> Vec<Value> {
        let is_it = |one: &Value| {
            one["sessionId"] == session && methods.iter().any(|method| one["method"] == *method)
        };
        let (taken, rest) = std::mem::take(&mut self.unread).into_iter().partition(is_it);
        self.unread = rest;
        taken.into()
    }

    fn keep(&mut self, said: Value) {
        if KEPT.iter().any(|method| said["method"] == *method) {
            self.unread.push_back(said);
        }
        assert!(self.unread.len() < UNREAD_MAX, "the browser says much that nobody reads");
    }

    fn read(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.output.read_until(0, &mut bytes).unwrap();
        assert_eq!(bytes.pop(), Some(0), "the browser has ended");
        serde_json::from_slice(&bytes).unwrap()
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // Without a pipe it would end by itself, a moment later than its folder.
        let _closed = self.try_close();
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

impl Chromium {
    fn try_close(&mut self) -> std::io::Result<()> {
        self.input.write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0")?;
        self.input.flush()?;
        let mut rest = Vec::new();
        // It closes the pipe when it ends.
        while self.output.read_until(0, &mut rest)? > 0 {
            rest.clear();
        }
        Ok(())
    }
}
