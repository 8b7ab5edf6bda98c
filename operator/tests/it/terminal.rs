//! Tests at a pseudo-terminal: prompts, hidden input, progress bars.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::json;

use crate::apply::{HOST, PUT, detail, guest, hub, operation, report};
use crate::fake_hub::{FakeHub, Reply, TOKEN, whoami};

/// Far more than any of these takes.
const DEADLINE: Duration = Duration::from_secs(20);

const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Runs a command at a terminal of its own; when `prompt` shows, `typed` is typed. Gives what the terminal showed.
pub fn at_terminal(mut command: Command, prompt: &str, typed: &str) -> (ExitStatus, String) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let size = Winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&master, size).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let end = || OpenOptions::new().read(true).write(true).open(&name).unwrap();
    command.env("TERM", "xterm").stdin(end()).stdout(end()).stderr(end());
    let mut child = command.spawn().unwrap();
    // The command's own copies of the ends; when it ends, reading ends.
    drop(command);
    let mut master = File::from(master);
    let (mut shown, mut answered, begin) = (String::new(), false, Instant::now());
    let mut bytes = [0; 4096];
    loop {
        let mut ready = [PollFd::new(&master, PollFlags::IN)];
        if poll(&mut ready, Some(&TICK)).unwrap() == 0 {
            if begin.elapsed() > DEADLINE {
                child.kill().unwrap();
            }
            continue;
        }
        // A terminal whose last user is gone gives an error on reading.
        let Ok(count) = master.read(&mut bytes) else { break };
        shown.push_str(&String::from_utf8_lossy(&bytes[..count]));
        if !answered && shown.contains(prompt) {
            answered = true;
            master.write_all(typed.as_bytes()).unwrap();
        }
    }
    assert!(answered && begin.elapsed() < DEADLINE, "not asked, or not ended: {shown}");
    (child.wait().unwrap(), shown)
}

fn apply(hub: &FakeHub, more: &[&str]) -> Command {
    let file = hub.file("box1.json", &json!({ "guests": [guest(1024)] }).to_string());
    hub.command(&[&["desired", "apply", "box1", file.to_str().unwrap()], more].concat())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_typed_token_is_hidden() {
    let hub = FakeHub::start().await;
    hub.on("GET /v1/whoami", Reply::Data(whoami()));
    let command = hub.command(&["login", &hub.url, "--ca-pin", &hub.ca_pin]);
    let (status, shown) = at_terminal(command, "Token (not shown): ", &format!("{TOKEN}\n"));
    assert_eq!(status.code(), Some(0), "{shown}");
    assert!(shown.contains("ada") && !shown.contains(TOKEN), "{shown}");
    assert!(hub.is_logged_in());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn declining_puts_nothing() {
    let hub = hub().await;
    for answer in ["n\n", "\n", "yep\n"] {
        let (status, shown) = at_terminal(apply(&hub, &[]), "Put generation 8 to box1? [y/N] ", answer);
        assert_eq!(status.code(), Some(1), "{shown}");
        assert!(shown.contains("size.memory_mib: 512 -> 1024"), "what is asked about is shown: {shown}");
    }
    assert!(hub.requests(PUT).is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accepting_puts_it_and_progress_bars_leave_whole_lines() {
    let hub = hub().await;
    for sections in [
        report(7, 512, "managed", json!([])),
        report(8, 512, "managed", json!([operation("running", "intended")])),
        report(8, 512, "managed", json!([operation("running", "done")])),
        report(8, 1024, "managed", json!([operation("done", "done")])),
    ] {
        hub.on(&format!("GET /v1/hosts/{HOST}"), Reply::Data(detail(8, sections)));
    }
    let (status, shown) = at_terminal(apply(&hub, &["--watch"]), "[y/N] ", "y\n");
    assert_eq!(status.code(), Some(0), "{shown}");
    assert_eq!(hub.requests(PUT).len(), 1);
    assert!(shown.contains("0/1 set_config") || shown.contains("1/1 set_config"), "a bar was drawn: {shown}");
    for line in
        ["waiting for the agent to take generation 8\r\n", "web  reconfigure  is done\r\n", "converged after"]
    {
        assert!(shown.contains(line), "{line:?} is missing: {shown:?}");
    }
}
