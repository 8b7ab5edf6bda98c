//! Clippy over the workspace, with warnings denied.
//!
//! In: the workspace. Out: success if there is no warning, in the code as tests build it and as it is shipped. A check of
//! its own reads all libraries a second time. Where clippy's driver compiles the workspace (`.ci/run`), the warnings come
//! with the build: cargo keeps them, and says them again for what is already built.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::workspace::{SHIPPED_PACKAGES, cargo, must, shown};

/// The variable that names what compiles the workspace in rustc's place.
pub const WRAPPER: &str = "RUSTC_WORKSPACE_WRAPPER";

/// All of it as tests build it; then what is shipped as it is shipped, without the features for tests.
pub fn run() -> Result<()> {
    if std::env::var_os(WRAPPER).as_deref() == Some(OsStr::new("clippy-driver")) {
        build_without_warning(&["--workspace", "--all-targets"])?;
        // Libraries alone: a program built here would take the place of the one that tests run.
        return build_without_warning(&[SHIPPED_PACKAGES.as_slice(), &["--lib"]].concat());
    }
    must(cargo().args(["clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    must(cargo().args(["clippy", "--locked", "--package", "agentd", "--bins"]).args(["--", "-D", "warnings"]))
}

fn build_without_warning(words: &[&str]) -> Result<()> {
    let mut build = cargo();
    build.args(["build", "--locked", "--message-format", "json"]).args(words).stdout(Stdio::piped());
    let name = shown(&build);
    let mut child = build.spawn().with_context(|| format!("cannot run `{name}`"))?;
    let output = child.stdout.take().context("the build has no output")?;
    let (mut compiled, mut warnings) = (0, 0);
    for line in BufReader::new(output).lines() {
        match message(&line.context("cannot read the build's messages")?)? {
            Message::Compiled => compiled += 1,
            Message::Warning(text) => {
                warnings += 1;
                print!("{text}");
            }
            Message::Other => {}
        }
    }
    let status = child.wait().with_context(|| format!("cannot await `{name}`"))?;
    if !status.success() {
        bail!("`{name}` ended with {status}");
    }
    // A build that says nothing at all has not been listened to.
    ensure!(compiled > 0, "`{name}` named nothing that it built");
    ensure!(warnings == 0, "`{name}` has {warnings} warnings");
    println!("`{name}`: {compiled} units without a warning");
    Ok(())
}

/// What a line of cargo's messages says.
#[derive(Debug, PartialEq, Eq)]
enum Message {
    /// A unit is built.
    Compiled,
    /// The compiler's or clippy's word on our code, as a person reads it.
    Warning(String),
    Other,
}

fn message(line: &str) -> Result<Message> {
    let value: Value = serde_json::from_str(line).context("a message of cargo is not JSON")?;
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    Ok(match (text("/reason"), text("/message/level")) {
        ("compiler-artifact", _) => Message::Compiled,
        ("compiler-message", "warning" | "error" | "error: internal compiler error") => {
            Message::Warning(text("/message/rendered").to_owned())
        }
        _ => Message::Other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_a_note_and_a_built_unit_are_distinguished() {
        let warning =
            r#"{"reason":"compiler-message","message":{"level":"warning","rendered":"warning: unused\n"}}"#;
        assert_eq!(message(warning).unwrap(), Message::Warning("warning: unused\n".to_owned()));
        let note = r#"{"reason":"compiler-message","message":{"level":"note","rendered":"note\n"}}"#;
        assert_eq!(message(note).unwrap(), Message::Other);
        assert_eq!(message(r#"{"reason":"compiler-artifact"}"#).unwrap(), Message::Compiled);
        assert_eq!(message(r#"{"reason":"build-finished","success":true}"#).unwrap(), Message::Other);
        message("warning: not JSON").unwrap_err();
    }
}
