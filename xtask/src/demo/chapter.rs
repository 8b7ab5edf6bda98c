//! What the chapters of the demo print and ask in common.

use anyhow::{Context, Result};
use e2e::stage::{HOST, Stage};
use serde_json::Value;

/// Prints a chapter's heading.
pub fn chapter(number: u8, title: &str) {
    println!("\n── {number}. {title}");
}

/// Prints a command as a person would type it.
pub fn typed(line: &str) {
    println!("   $ {line}");
}

/// How many operations of that kind ended well for that guest, as reported to the hub.
pub fn done(stage: &Stage, kind: &str, name: &str) -> Result<usize> {
    let host = stage.holdfast(&["host", "show", HOST])?;
    let operations = host.pointer("/sections/operations").and_then(Value::as_array).map(Vec::as_slice);
    let is_it = |one: &&Value| one["kind"] == kind && one["name"] == name && one["status"] == "done";
    Ok(operations.unwrap_or_default().iter().filter(is_it).count())
}

/// Managed, running, and its controller has reported.
pub fn well(guest: &Value) -> bool {
    guest["status"] == "managed" && guest["run"] == "running" && !guest["controller"].is_null()
}

/// The VMID that a guest has at the moment.
pub fn vmid(stage: &Stage, name: &str) -> Result<String> {
    let guests = stage.guests()?;
    let guest =
        guests.iter().find(|guest| guest["name"] == name).with_context(|| format!("no guest {name}"))?;
    Ok(guest["vmid"].as_u64().with_context(|| format!("guest {name} has no VMID"))?.to_string())
}
