//! The calls, in turn, and what they cost.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::json;

use crate::{Failure, command};

const HELPER: &str = "/usr/lib/holdfast/holdfast-helper";
const REQUEST: &[u8] = br#"{"verb":"status"}"#;

/// The agent's user.
const CALLER: u32 = 990;

const PAIRS: usize = 60;
/// The first calls bring all programs into memory, and are not counted.
const WARM: usize = 5;

/// The times of one turn, in milliseconds.
struct Turn {
    sudo_alone: f64,
    socket: f64,
    sudo: f64,
    started: f64,
    same_unit: f64,
    bare_unit: f64,
}

pub fn measure() -> Result<(), Failure> {
    let mut turns = Vec::new();
    for turn in 0..WARM + PAIRS {
        let measured = Turn {
            sudo_alone: timed(|| sudo(&["/usr/bin/true"], b"").map(drop))?,
            socket: timed(|| done(&answered("/run/holdfast-helper.sock")?))?,
            sudo: timed(|| done(&sudo(&[HELPER, "status"], REQUEST)?))?,
            started: timed(|| done(&output(command(HELPER).env_clear(), REQUEST)?))?,
            same_unit: timed(|| closed("/run/same.sock"))?,
            bare_unit: timed(|| closed("/run/bare.sock"))?,
        };
        if turn >= WARM {
            turns.push(measured);
        }
    }
    print(&turns);
    Ok(())
}

fn timed(call: impl FnOnce() -> Result<(), Failure>) -> Result<f64, Failure> {
    let began = Instant::now();
    call()?;
    Ok(began.elapsed().as_secs_f64() * 1e3)
}

/// As the agent's user.
fn sudo(words: &[&str], input: &[u8]) -> Result<String, Failure> {
    output(command("sudo").arg("-n").args(words).uid(CALLER).gid(CALLER), input)
}

fn output(command: &mut Command, input: &[u8]) -> Result<String, Failure> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    if let Some(mut pipe) = child.stdin.take() {
        pipe.write_all(input)?;
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// One request on a connection of its own, as root: the helper admits root and the agent.
fn answered(socket: &str) -> Result<String, Failure> {
    let mut connection = UnixStream::connect(socket)?;
    connection.write_all(REQUEST)?;
    connection.shutdown(Shutdown::Write)?;
    let mut reply = String::new();
    connection.read_to_string(&mut reply)?;
    Ok(reply)
}

/// A connection to a program that ends at once.
fn closed(socket: &str) -> Result<(), Failure> {
    let mut nothing = String::new();
    UnixStream::connect(socket)?.read_to_string(&mut nothing)?;
    Ok(())
}

fn done(reply: &str) -> Result<(), Failure> {
    let reply: serde_json::Value =
        serde_json::from_str(reply).map_err(|error| format!("{error}: {reply}"))?;
    match reply.get("ok") {
        Some(serde_json::Value::Bool(true)) => Ok(()),
        Some(_) | None => Err(format!("the helper refused: {reply}").into()),
    }
}

fn print(turns: &[Turn]) {
    let median = |of: &dyn Fn(&Turn) -> f64| {
        let mut values: Vec<f64> = turns.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    };
    let figure = |name: &str, of: fn(&Turn) -> f64, note: &str| {
        let line = json!({
            "name": name, "ours": median(&of), "baseline": median(&|turn| turn.sudo_alone),
            "ratio": median(&|turn| of(turn) / turn.sudo_alone), "unit": "ms", "pairs": turns.len(), "note": note
        });
        println!("BENCH {line}");
    };
    figure(
        "helper call by its socket",
        |turn| turn.socket,
        "`status`, verified, answered and written to the journal, by the shipped units in a booted container, from connect \
         to the end of the answer; baseline: `sudo -n true` of the agent's user in the same container, whole process",
    );
    figure(
        "helper call by sudo",
        |turn| turn.sudo,
        "the same request by the shipped sudoers file, whole process; baseline: `sudo -n true`",
    );
    figure(
        "helper started by hand",
        |turn| turn.started,
        "its process alone, with the same request, by root; baseline: `sudo -n true`",
    );
    figure(
        "`true` started by the helper's socket unit",
        |turn| turn.same_unit,
        "what systemd and the unit's sandbox cost without the helper; baseline: `sudo -n true`",
    );
    figure(
        "`true` started by a socket unit of two lines",
        |turn| turn.bare_unit,
        "what systemd costs without the sandbox; baseline: `sudo -n true`",
    );
}
