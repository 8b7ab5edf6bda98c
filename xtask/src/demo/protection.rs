//! Chapters of the demo: backups of stopped programs, and restore tests.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use e2e::stage::{HOST, Runtime, Stage};
use e2e::{document, wait};
use serde_json::Value;

use super::chapter::{chapter, typed, vmid};

/// A restore, a start, a report; nothing is measured by it.
pub const TRIED: Duration = Duration::from_secs(300);

/// A program that is not stopped writes every 0.2 s.
const STOPPED_S: f64 = 0.5;

pub const GUESTS: [&str; 3] = ["mail", "web", "wiki"];

/// A policy for all guests, and a program in each. Gives the document.
pub fn promise(stage: &Stage, document: &Value, runtime: Runtime) -> Result<Value> {
    chapter(7, "A policy: nightly backups of stopped programs, each week one is tried");
    let document = document::protected(document.clone(), half_a_day_away()?);
    stage.apply(&document, "backups that are tried")?;
    typed("holdfast desired apply box1 …/operator/desired.json --yes --reason \"backups that are tried\"");
    for name in GUESTS {
        stage.install_program(&vmid(stage, name)?)?;
    }
    println!(
        "   in each guest a program `orders` writes a line every 0.2 s; /etc/holdfast/stacks.toml names it"
    );
    if runtime == Runtime::Process {
        println!("   a guest that is a folder has no systemd: a small script starts and stops its program");
    }
    Ok(document)
}

/// A point that is not reached during the story.
#[expect(clippy::disallowed_methods, reason = "the agent of the demo goes by the machine's own clock")]
fn half_a_day_away() -> Result<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).context("the clock is before 1970")?;
    Ok((now.as_secs() / 3_600 + 12) % 24)
}

/// A backup of each guest now, and how long its program was stopped for it.
pub fn back_up(stage: &Stage) -> Result<()> {
    chapter(8, "Each guest asks its own agent for a backup, before the schedule does");
    for name in GUESTS {
        back_up_stopped(stage, name)?;
    }
    Ok(())
}

/// One backup, requested in the guest.
fn back_up_stopped(stage: &Stage, name: &str) -> Result<()> {
    let vmid = vmid(stage, name)?;
    let before = stage.orders(&vmid, 0)?.count;
    println!("   {name}# guestd backup");
    stage.back_up_in_guest(&vmid)?;
    let orders = stage.orders(&vmid, before)?;
    let pause = orders.longest_pause.as_secs_f64();
    ensure!(pause >= STOPPED_S, "the program of {name} did not stop for its backup: {orders:?}");
    println!("   {name}: backed up; its program was stopped for {pause:.1} s and runs again");
    Ok(())
}

/// A backup of a guest now; gives the job.
pub fn backup_now(stage: &Stage, name: &str) -> Result<String> {
    typed(&format!("holdfast sign box1 {name} --backup-now --reason \"before the night\" --submit"));
    stage.sign(&[name, "--backup-now"], name, "before the night")
}

/// Each backup is restored into a scratch guest, and its programs are queried.
pub fn restore_tests(stage: &Stage) -> Result<()> {
    chapter(9, "Each backup is tested: restored into a scratch guest, started, checked, destroyed");
    for name in GUESTS {
        let why = protected(stage, name)?;
        println!("   {name} is protected: {why}");
    }
    wait::until("the scratch guests are gone", TRIED, || {
        let left = stage.configurations()?;
        Ok(left.keys().all(|vmid| !(6_000..6_010).contains(vmid)).then_some(()))
    })?;
    stage.show(&["guest", "list", HOST])
}

/// Waits until a guest is protected, and gives the reason.
fn protected(stage: &Stage, name: &str) -> Result<String> {
    let mut last = Value::Null;
    let reached = wait::until(&format!("the protection of {name}"), TRIED, || {
        let guests = stage.guests()?;
        last = guests.into_iter().find(|guest| guest["name"] == name).unwrap_or(Value::Null);
        let why =
            || last.pointer("/protection/tested/0/last/why").and_then(Value::as_str).unwrap_or_default();
        Ok(is_protected(&last).then(|| why().to_owned()))
    });
    reached.with_context(|| format!("{last:#}"))
}

fn is_protected(guest: &Value) -> bool {
    guest.pointer("/protection/posture/is").is_some_and(|is| is == "protected")
}

/// What the last screen says.
pub fn all_protected(stage: &Stage) -> Result<()> {
    let guests = stage.guests()?;
    let open: Vec<&Value> = guests.iter().filter(|guest| !is_protected(guest)).collect();
    ensure!(open.is_empty(), "not all guests are protected at the end: {open:#?}");
    Ok(())
}
