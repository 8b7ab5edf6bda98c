//! The story of the demo.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::stage::{HOST, Options, Stage};
use e2e::{document, wait};
use serde_json::Value;

/// Some things about a guest are looked at once a minute.
const HEALED: Duration = Duration::from_secs(180);

/// Prints a chapter's heading.
fn chapter(number: u8, title: &str) {
    println!("\n── {number}. {title}");
}

fn typed(line: &str) {
    println!("   $ {line}");
}

/// Tells it, and gives the stage as it stands at the end.
pub fn report(options: Options) -> Result<Stage> {
    println!("\nHoldfast, from nothing. All of it lives in {}", options.folder.display());
    let mut stage = Stage::new(options)?;

    chapter(1, "A Proxmox VE (simulated: same API, same errors, real archives)");
    let proxmox = stage.start_simulator()?;
    println!("   node {} at {}", proxmox.node, proxmox.url);

    chapter(2, "A hub in an empty folder, and an operator who logs in");
    let url = stage.start_hub()?;
    println!("   hub at {url}");
    typed(&stage.log_in()?);

    chapter(3, "The box is set up: pool, user, roles, narrow tokens, grants");
    typed(&stage.set_up_agent()?);

    chapter(4, "The agent enrols with a one-time invite and starts, without root");
    typed(&stage.enrol_agent()?);
    typed(&stage.start_agent(None)?);

    chapter(5, "The operator wishes for three guests");
    let document = document::story(&stage.ground());
    let file = stage.write_document(&document)?;
    let file = file.to_str().context("the stage's folder has a plain name")?;
    stage.show(&[
        "desired",
        "apply",
        HOST,
        file,
        "--yes",
        "--watch",
        "--reason",
        "the first three guests",
    ])?;
    let guests = stage.guests_until("three guests run and said hello", |guests| {
        guests.len() == 3 && guests.iter().all(well)
    })?;
    stage.show(&["guest", "list", HOST])?;

    chapter(6, "An admin changes one guest's memory and stops another, by hand");
    let (first, second) = (vmid(&guests, "mail")?, vmid(&guests, "wiki")?);
    let wanted = memory(&stage, &first)?;
    stage.fault(&["set", &first, "memory=128"])?;
    println!("   guest {first}: memory {wanted} -> 128");
    stage.fault(&["stop", &second])?;
    println!("   guest {second}: stopped");
    // The guests' own words may be older than the stop: what counts is that the agent did the work and read it back.
    wait::until("the agent's work on both", HEALED, || {
        let done = done(&stage)?;
        Ok((done("reconfigure", "mail") && done("start", "wiki")).then_some(()))
    })?;
    stage.guests_until("both are well", |guests| guests.iter().all(well))?;
    ensure!(memory(&stage, &first)? == wanted, "guest {first} has not its memory back");
    println!("   healed: guest {first} has {} again, guest {second} runs", memory(&stage, &first)?);

    chapter(7, "What the operator sees");
    stage.show(&["host", "list"])?;
    stage.show(&["guest", "list", HOST])?;
    let configurations = stage.configurations()?;
    let marked = configurations.values().filter(|text| text.contains("holdfast guest ")).count();
    ensure!(marked == 3, "{marked} guests carry our mark in Proxmox, where three were wished for");
    Ok(stage)
}

/// Which operations ended well, as the hub was told.
fn done(stage: &Stage) -> Result<impl Fn(&str, &str) -> bool> {
    let host = stage.holdfast(&["host", "show", HOST])?;
    let operations =
        host.pointer("/sections/operations").and_then(Value::as_array).cloned().unwrap_or_default();
    Ok(move |kind: &str, name: &str| {
        operations.iter().any(|one| one["kind"] == kind && one["name"] == name && one["status"] == "done")
    })
}

/// Managed, running, and its controller was heard.
fn well(guest: &Value) -> bool {
    guest["status"] == "managed" && guest["run"] == "running" && !guest["controller"].is_null()
}

fn vmid(guests: &[Value], name: &str) -> Result<String> {
    let guest =
        guests.iter().find(|guest| guest["name"] == name).with_context(|| format!("no guest {name}"))?;
    Ok(guest["vmid"].as_u64().with_context(|| format!("guest {name} has no VMID"))?.to_string())
}

/// The memory that stands in Proxmox's own file.
fn memory(stage: &Stage, vmid: &str) -> Result<String> {
    let number: u32 = vmid.parse().context("a VMID is a number")?;
    let configurations = stage.configurations()?;
    let text = configurations.get(&number).with_context(|| format!("guest {vmid} is gone"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("memory: ")).context("a guest has memory")?;
    Ok(line.to_owned())
}
