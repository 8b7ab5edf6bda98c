//! A person at a terminal.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs a line in a folder; each time a prompt shows, its answer is typed. Returns what the terminal showed.
pub fn at_terminal(folder: &Path, line: &str, answers: &[(&str, &str)]) -> String {
    let mut answers = answers.iter();
    let mut who = |fresh: &str| {
        let (prompt, answer) = answers.as_slice().first()?;
        fresh.contains(prompt).then(|| {
            answers.next();
            (*answer).to_owned()
        })
    };
    let shown = typed_by(folder, line, &mut who);
    assert!(answers.as_slice().is_empty(), "{line}: never asked: {answers:?}\n{shown}");
    shown
}

/// The same, typed by a function that reads the prompts. Returns what the terminal showed.
pub fn typed_by(folder: &Path, line: &str, who: &mut dyn FnMut(&str) -> Option<String>) -> String {
    #[expect(clippy::disallowed_methods, reason = "stock programs are the judges")]
    let mut child = Command::new("script")
        .args(["--quiet", "--return", "--command", line, "/dev/null"])
        .env("SHELL", "/bin/sh")
        .env("TERM", "xterm")
        .env("HOLDFAST_AGENT_CONFIG", folder.join("agent.toml"))
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (mut shown, mut seen) = (String::new(), 0);
    let mut bytes = [0; 1024];
    loop {
        let count = output.read(&mut bytes).unwrap();
        if count == 0 {
            break;
        }
        shown.push_str(&String::from_utf8_lossy(bytes.get(..count).unwrap_or_default()));
        if let Some(answer) = who(&shown[seen..]) {
            seen = shown.len();
            let typed = input.write_all(format!("{answer}\n").as_bytes());
            // A program that has ended reads nothing more; its output and its end are checked below.
            if let Err(error) = typed {
                assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe, "{error}");
            }
        }
    }
    let status = child.wait().unwrap();
    assert!(status.success(), "{line}: {status}\n{shown}");
    shown
}
