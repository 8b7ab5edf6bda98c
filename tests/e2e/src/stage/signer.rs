//! An operator's key on a stage, and what it signs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{HOST, Stage};
use crate::place::{Place, User};
use crate::wait;

/// How long a draft may take to reach the hub.
const DRAFTED: Duration = Duration::from_secs(90);
/// Few seconds, so that the end of a delay is seen.
const POLICY: &str = "version = 1\n[verbs.destroy_guest]\ndelay_s = 5\n";

/// Makes the files `key` and `key.pub` in a folder with stock OpenSSH; gives the owner's line of an operators file.
///
/// # Errors
/// When `ssh-keygen` fails.
pub fn make_key(folder: &Path, name: &str) -> Result<String> {
    let key = folder.join("key");
    let mut command = Place::default().command("ssh-keygen", User::Same);
    command.args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"]).arg(&key);
    let output = command.output().context("cannot run ssh-keygen")?;
    ensure!(output.status.success(), "ssh-keygen: {}", String::from_utf8_lossy(&output.stderr));
    let public = std::fs::read_to_string(key.with_extension("pub")).context("the key has no public half")?;
    Ok(format!("{name} {public}"))
}

impl Stage {
    /// Where the key is.
    #[must_use]
    pub fn key(&self) -> PathBuf {
        self.part("operator").join("key")
    }

    /// Makes a key with stock OpenSSH, and names its owner as the one who may sign for the host, as root does it there before
    /// the agent starts.
    ///
    /// # Errors
    /// When `ssh-keygen` fails or the disk refuses.
    pub fn make_signer(&self, name: &str) -> Result<String> {
        let line = make_key(&self.part("operator"), name)?;
        let agent = self.part("agent");
        std::fs::write(agent.join("operators"), line).context("cannot name the signer")?;
        std::fs::write(agent.join("policy.toml"), POLICY).context("cannot write the policy")?;
        Ok(format!("ssh-keygen -t ed25519 -C {name} -f …/operator/key"))
    }

    /// Waits until something of that verb waits on the host for a signature.
    ///
    /// # Errors
    /// When it does not come.
    pub fn waiting(&self, verb: &str) -> Result<Value> {
        wait::until(&format!("the draft of {verb}"), DRAFTED, || {
            let host = self.holdfast(&["host", "show", HOST])?;
            let waiting = host.pointer("/sections/waiting").and_then(Value::as_array).cloned();
            let is_it = |one: &Value| {
                one.get("payload").and_then(Value::as_str).is_some_and(|text| text.contains(verb))
            };
            Ok(waiting.unwrap_or_default().into_iter().find(is_it))
        })
    }

    /// Signs the job that the arguments describe, sends it, and returns the job's id.
    ///
    /// # Errors
    /// When it is refused.
    pub fn sign(&self, words: &[&str], confirm: &str, reason: &str) -> Result<String> {
        let (key, out) = (self.key(), self.part("operator").join("job.json"));
        let path =
            |path: &PathBuf| path.to_str().map(str::to_owned).context("the stage's folder has a plain name");
        let (key, out_text) = (path(&key)?, path(&out)?);
        let sign = [&["sign", HOST], words].concat();
        let rest = ["--key", &key, "--confirm", confirm, "--reason", reason, "--out", &out_text, "--submit"];
        let signed = self.holdfast(&[&sign[..], &rest].concat())?;
        std::fs::remove_file(&out).context("the signed job was not written")?;
        signed.get("job").and_then(Value::as_str).map(str::to_owned).context("a signed job has an id")
    }

    /// Waits for the end of a job.
    ///
    /// # Errors
    /// When it does not end well.
    pub fn job_done(&self, job: &str) -> Result<()> {
        let end = self.holdfast(&["job", "watch", HOST, job, "--timeout", "120"])?;
        let state = end.pointer("/report/state").and_then(Value::as_str);
        ensure!(state == Some("done"), "the job did not end well: {end:#}");
        Ok(())
    }
}
