//! The operator of a stage.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::hub::REPORTED;
use super::{HOST, Stage};
use crate::place::User;
use crate::wait;

impl Stage {
    /// `holdfast` with these arguments, as a command that can be run here.
    #[must_use]
    pub fn holdfast_command(&self, words: &[&str]) -> Command {
        let mut command = self.place.command(self.options.programs.path("holdfast"), User::Same);
        command.env("HOLDFAST_CONFIG", self.part("operator")).args(words);
        command
    }

    /// Logs in with the hub's first admin token.
    ///
    /// # Errors
    /// When the hub refuses.
    pub fn log_in(&self) -> Result<String> {
        let mut command = self.holdfast_command(&["login", &self.hub_url]);
        command.arg("--ca-file").arg(self.part("hub").join("ca.pem"));
        command.arg("--token-file").arg(self.part("hub").join("admin-token"));
        self.to_end(&mut command)?;
        Ok(self.typed(&command))
    }

    /// Tries to log in with another token; returns exit code and output.
    ///
    /// # Errors
    /// When it cannot be run, or succeeds.
    pub fn log_in_refused(&self, token: &Path) -> Result<(i32, String)> {
        let ca = self.part("hub").join("ca.pem");
        let words = ["login", &self.hub_url, "--ca-file", path_text(&ca)?, "--token-file", path_text(token)?];
        self.holdfast_refuses(&words)
    }

    /// What `holdfast … --output json` prints.
    ///
    /// # Errors
    /// When it fails or prints no JSON.
    pub fn holdfast(&self, words: &[&str]) -> Result<Value> {
        let mut command = self.holdfast_command(words);
        let text = self.to_end(command.args(["--output", "json"]))?;
        let printed: Value = serde_json::from_str(&text)
            .with_context(|| format!("holdfast {} printed no JSON: {text}", words.join(" ")))?;
        self.secrets().add_json(&format!("holdfast {}", words.join(" ")), &printed);
        Ok(printed)
    }

    /// How `holdfast …` answers bad input: its exit code and its output.
    ///
    /// # Errors
    /// When it cannot be run, or succeeds.
    pub fn holdfast_refuses(&self, words: &[&str]) -> Result<(i32, String)> {
        let output = self.holdfast_command(words).output().context("cannot run holdfast")?;
        match output.status.code() {
            Some(code) if code != 0 => Ok((code, String::from_utf8_lossy(&output.stderr).into_owned())),
            _ => bail!("holdfast {} succeeded", words.join(" ")),
        }
    }

    /// Writes a desired document to a file of the operator's.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_document(&self, document: &Value) -> Result<PathBuf> {
        let file = self.part("operator").join("desired.json");
        std::fs::write(&file, serde_json::to_string_pretty(document)?)
            .context("cannot write the desired document")?;
        Ok(file)
    }

    /// Applies a desired document and does not wait for its effect.
    ///
    /// # Errors
    /// When the hub refuses.
    pub fn apply(&self, document: &Value, reason: &str) -> Result<()> {
        let file = self.write_document(document)?;
        let mut command = self.holdfast_command(&["desired", "apply", HOST]);
        command.arg(file).args(["--yes", "--reason", reason]);
        self.to_end(&mut command).map(drop)
    }

    /// The guests as the hub knows them.
    ///
    /// # Errors
    /// When the hub does not answer.
    pub fn guests(&self) -> Result<Vec<Value>> {
        let list = self.holdfast(&["guest", "list", HOST])?;
        let items = list.get("items").unwrap_or(&list);
        items.as_array().cloned().context("`holdfast guest list` prints a list")
    }

    /// Waits until the reported guests fit.
    ///
    /// # Errors
    /// When they do not fit in time; the error holds their last state.
    pub fn guests_until(&self, what: &str, fits: impl Fn(&[Value]) -> bool) -> Result<Vec<Value>> {
        let mut last = Vec::new();
        let seen = wait::until(what, REPORTED, || {
            last = self.guests()?;
            Ok(fits(&last).then(|| last.clone()))
        });
        seen.with_context(|| serde_json::to_string_pretty(&last).unwrap_or_default())
    }

    /// Writes a script for people that enters the stage and runs `holdfast` there. `enter` is the command that enters
    /// the stage; it can be empty.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_wrapper(&self, enter: &[String]) -> Result<PathBuf> {
        let command = self.holdfast_command(&[]);
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let words = enter.iter().map(OsStr::new).chain(words);
        let words: Vec<String> =
            words.map(|word| format!("'{}'", word.to_string_lossy().replace('\'', "'\\''"))).collect();
        let folder = self.part("operator");
        let script =
            format!("#!/bin/sh\nHOLDFAST_CONFIG='{}' exec {} \"$@\"\n", folder.display(), words.join(" "));
        let file = self.folder().join("holdfast");
        std::fs::write(&file, script).context("cannot write the wrapper")?;
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755))
            .context("cannot make it runnable")?;
        Ok(file)
    }

    /// Runs `holdfast …` with its output on the terminal of the person who runs the stage.
    ///
    /// # Errors
    /// When it fails.
    pub fn show(&self, words: &[&str]) -> Result<()> {
        let mut command = self.holdfast_command(words);
        let status = command.stdin(Stdio::null()).status().context("cannot run holdfast")?;
        if status.success() { Ok(()) } else { bail!("holdfast {} ended with {status}", words.join(" ")) }
    }
}

fn path_text(path: &Path) -> Result<&str> {
    path.to_str().context("the stage's folder has a plain name")
}
