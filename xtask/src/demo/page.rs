//! The hub's page in the demo, and a way in.

use anyhow::{Context, Result};
use e2e::stage::Stage;

/// Somebody who has a password alone to set up; an admin needs an authenticator too.
const PERSON: &str = "demo";

/// A person for the page, and the link with which they set their password: it works once.
pub fn link(stage: &Stage) -> Result<String> {
    stage.holdfast(&["operator", "add", PERSON, "--role", "operator", "--days", "90"])?;
    let made = stage.holdfast(&["operator", "sign-in-link", PERSON])?;
    let url = made.get("url").and_then(serde_json::Value::as_str);
    Ok(url.context("the hub made a link without an address")?.to_owned())
}

/// What a person needs to know. `enter` is put before a command that must reach the demo's own network.
pub fn show(stage: &Stage, link: &str, enter: &[String]) {
    let address = link.split("/sign-in").next().unwrap_or(link);
    println!(
        "   page: {address}/ — the first sign-in is by this link, once and within 15 minutes, as {PERSON}:"
    );
    println!("   {link}");
    let ca = stage.folder().join("hub/ca.pem");
    println!("   Its certificate is of the hub's own authority ({}), so a browser warns.", ca.display());
    if !enter.is_empty() {
        println!("   Only the demo's own network reaches it: {} chromium '{link}'", enter.join(" "));
    }
}
