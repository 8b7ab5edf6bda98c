//! A chapter of the demo: the certificate of a restore test.

use std::fs;

use anyhow::{Context, Result, ensure};
use e2e::stage::Stage;
use e2e::wait;
use serde_json::Value;

use super::chapter::typed;
use super::protection::TRIED;

/// Fetches a guest's certificate, verifies the file without the hub, and sees a changed file refused.
pub fn fetched_and_verified(stage: &Stage, name: &str) -> Result<()> {
    let file = stage.folder().join("operator").join(format!("{name}-certificate.json"));
    let path = file.to_str().context("the stage's folder has a plain name")?;
    let fetched = wait::until(&format!("the certificate of {name}"), TRIED, || {
        // The host signs it when the test is recorded, and sends it with a next check-in.
        Ok(stage.holdfast(&["guest", "certificate", name, "--json", path]).ok())
    })?;
    typed(&format!("holdfast guest certificate {name} --json {name}-certificate.json"));
    let key = fetched.get("hub_key").and_then(Value::as_str).context("it names no key of the hub")?;
    typed(&format!("holdfast certificate verify {name}-certificate.json --hub-key {key}"));
    stage.show(&["certificate", "verify", path, "--hub-key", key])?;
    let proof = stage.holdfast(&["certificate", "verify", path, "--hub-key", key])?;
    ensure!(proof.get("hub_key_was").is_some_and(|was| was == "compared"), "{proof:#}");
    ensure!(proof.pointer("/certificate/guest/name").is_some_and(|is| is == name), "{proof:#}");

    let text = fs::read_to_string(&file)?;
    // The document is text within JSON, so its quotes are escaped.
    let forged = text.replacen(&format!("\\\"{name}\\\""), "\\\"another\\\"", 1);
    ensure!(forged != text, "the document does not name its guest: {text}");
    let changed = stage.folder().join("operator").join("changed-certificate.json");
    fs::write(&changed, forged)?;
    let changed = changed.to_str().context("the stage's folder has a plain name")?;
    let (_, refused) = stage.holdfast_refuses(&["certificate", "verify", changed])?;
    println!("   with another guest's name in it: {}", refused.lines().next().unwrap_or_default());
    Ok(())
}
