//! The agent of a stage.

use std::ffi::OsString;
use std::fmt;
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::{HOST, Stage};
use crate::child::Running;
use crate::place::{AGENT_UID, User};

/// An agent answers on its own socket within milliseconds. An agent that is killed meanwhile never answers.
const LISTENER: Duration = Duration::from_secs(5);

/// Where a build with failpoints kills the agent.
#[derive(Clone, Debug)]
pub struct Failpoint(pub String);

impl fmt::Display for Failpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Stage {
    fn config(&self) -> PathBuf {
        self.part("agent").join("agent.toml")
    }

    fn agentd(&self, verb: &str) -> Command {
        let mut command = self.place.command(self.options.programs.path("agentd"), self.options.agent_user);
        command.arg(verb).arg("--config").arg(self.config());
        command
    }

    /// A verb may have subverbs. Options must not come before them.
    fn agentd_with(&self, words: &[&str]) -> Command {
        let mut command = self.place.command(self.options.programs.path("agentd"), self.options.agent_user);
        command.args(words).env("HOLDFAST_AGENT_CONFIG", self.config());
        command
    }

    /// Runs `agentd setup` through the API, as the agent's own user, because the files belong to that user. Returns the
    /// command line.
    ///
    /// # Errors
    /// When it fails.
    pub fn set_up_agent(&self) -> Result<String> {
        self.set_up_agent_with(&[])
    }

    /// The same, with more choices.
    ///
    /// # Errors
    /// When it fails.
    pub fn set_up_agent_with(&self, choices: &[&str]) -> Result<String> {
        let folder = self.part("agent");
        self.give_to_agent(&folder)?;
        let proxmox = self.proxmox()?;
        let (id, secret) = proxmox
            .tokens
            .iter()
            .find(|(id, _)| id.starts_with("root@pam"))
            .context("the seed has no token of root@pam")?;
        let credential = folder.join("credential");
        write_private(&credential, &format!("{id}={secret}\n"))?;
        self.give_to_agent(&credential)?;
        let mut command = self.agentd("setup");
        command.args(["--yes", "--api", &proxmox.url, "--node", &proxmox.node]);
        command
            .arg("--credential")
            .arg(&credential)
            .arg("--pin")
            .arg(format!("spki/sha256:{}", proxmox.spki_sha256));
        command.args(["--storage", "tank", "--bulk-storage", "tank", "--backup-storage", "backup2"]);
        command.args(["--vmid-range", "5000-5999", "--listen", self.options.runtime.local_api()]);
        command.args(self.options.runtime.trials()).args(choices);
        let golden = self.named_image(&self.options.golden)?;
        command.arg("--golden").arg(golden).arg("--state-dir").arg(self.state());
        let outcome = self.to_end(&mut command);
        std::fs::remove_file(&credential).context("cannot remove root's credential")?;
        outcome.map(|_| self.typed(&command))
    }

    /// Invites the host, and enrols the agent with the invite from a file.
    ///
    /// # Errors
    /// When hub or agent refuse.
    pub fn enrol_agent(&self) -> Result<String> {
        let invite = self.holdfast(&["host", "invite", HOST])?;
        let code = invite.get("code").and_then(serde_json::Value::as_str).context("an invite has a code")?;
        self.enrol_with(code, &[])
    }

    /// Enrols the agent with an invite from a file.
    ///
    /// # Errors
    /// When hub or agent refuse.
    pub fn enrol_with(&self, code: &str, words: &[&str]) -> Result<String> {
        self.keep_secret("an invite", code);
        let file = self.part("agent").join("invite");
        write_private(&file, code)?;
        self.give_to_agent(&file)?;
        let mut command = self.agentd("enroll");
        command.args(words).arg("--invite-file").arg(&file);
        let outcome = self.to_end(&mut command);
        std::fs::remove_file(&file).context("cannot remove the used invite")?;
        outcome.map(|_| self.typed(&command))
    }

    /// Renames the agent's state folder. Its place takes the folder of another name, or a new one with only the tokens,
    /// as root sets up another host.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn change_state(&self, demoted: &str, from: Option<&str>) -> Result<()> {
        let (state, place) = (self.state(), |name: &str| self.part("agent").join(format!("state-{name}")));
        std::fs::rename(&state, place(demoted)).context("cannot put the state aside")?;
        match from {
            Some(name) => std::fs::rename(place(name), &state).context("cannot put the state back"),
            None => {
                let secrets = state.join("secrets");
                for folder in [&state, &secrets] {
                    std::fs::create_dir(folder).context("cannot make a state folder")?;
                    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))?;
                    self.give_to_agent(folder)?;
                }
                for secret in std::fs::read_dir(place(demoted).join("secrets"))? {
                    let (from, file) = secret.map(|one| (one.path(), secrets.join(one.file_name())))?;
                    write_private(&file, &std::fs::read_to_string(from)?)?;
                    self.give_to_agent(&file)?;
                }
                Ok(())
            }
        }
    }

    /// Sets a variable that builds for tests read, for all later starts of the agent.
    pub fn set_for_agent(&mut self, name: &'static str, value: impl Into<OsString>) {
        self.for_agent.push((name, value.into()));
    }

    /// Starts the agent's daemon. It can be made to die at a point of its journal.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start_agent(&mut self, die_at: Option<&Failpoint>) -> Result<String> {
        let mut command = self.agentd("run");
        command.envs(self.for_agent.iter().map(|(name, value)| (*name, value)));
        if let Some(point) = die_at {
            command.env("HOLDFAST_FAILPOINT", point.to_string());
        }
        let typed = self.typed(&command);
        self.agent = Some(Running::start("agentd", command, &self.log("agentd"))?);
        Ok(typed)
    }

    /// Starts the agent's daemon with a wall clock that is this many hours ahead. Monotonic clocks are unchanged.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start_agent_ahead(&mut self, hours: u32) -> Result<()> {
        // The program `faketime` is not used: it stays as the parent process, and a kill would end it and not the
        // agent.
        let mut command = self.place.command("env", self.options.agent_user);
        command.args(["LD_PRELOAD=/usr/$LIB/faketime/libfaketime.so.1", "FAKETIME_DONT_FAKE_MONOTONIC=1"]);
        command.arg(format!("FAKETIME=+{hours}h")).arg(self.options.programs.path("agentd"));
        command.args(["run", "--config"]).arg(self.config());
        self.agent = Some(Running::start("agentd", command, &self.log("agentd"))?);
        Ok(())
    }

    /// `kill -9`.
    ///
    /// # Errors
    /// When no agent runs.
    pub fn kill_agent(&mut self) -> Result<ExitStatus> {
        self.agent.take().context("no agent runs")?.kill()
    }

    /// Ends the agent politely.
    ///
    /// # Errors
    /// When no agent runs, or it had to be killed.
    pub fn stop_agent(&mut self) -> Result<ExitStatus> {
        self.agent.take().context("no agent runs")?.stop()
    }

    /// Waits for an end of the agent that was arranged by the test.
    ///
    /// # Errors
    /// When it still runs after `bound`.
    pub fn agent_ended(&mut self, bound: Duration) -> Result<ExitStatus> {
        let status = self.agent.as_mut().context("no agent runs")?.wait(bound)?;
        self.agent = None;
        Ok(status)
    }

    /// How the agent ended, if it did.
    ///
    /// # Errors
    /// When no agent was started, or the kernel does not report it.
    pub fn agent_gone(&mut self) -> Result<Option<ExitStatus>> {
        let ended = self.agent.as_mut().context("no agent runs")?.ended()?;
        if ended.is_some() {
            self.agent = None;
        }
        Ok(ended)
    }

    /// What the agent reports at its admin socket, requested as an operator's program would; none while nothing answers
    /// there.
    #[must_use]
    pub fn agent_at_its_listener(&self) -> Option<serde_json::Value> {
        let mut listener = UnixStream::connect(self.state().join("agent.sock")).ok()?;
        listener.set_read_timeout(Some(LISTENER)).ok()?;
        listener.write_all(br#"{"schema":"holdfast.admin/v1","question":"status"}"#).ok()?;
        listener.shutdown(Shutdown::Write).ok()?;
        let mut reported = Vec::new();
        listener.read_to_end(&mut reported).ok()?;
        let mut answer: serde_json::Value = serde_json::from_slice(&reported).ok()?;
        answer.get_mut("status").map(serde_json::Value::take)
    }

    /// The agent's state folder.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.part("agent").join("state")
    }

    /// The log file with the lines of all its lives.
    #[must_use]
    pub fn agent_log(&self) -> PathBuf {
        self.log("agentd")
    }

    /// The agent's pid.
    #[must_use]
    pub fn agent_pid(&self) -> Option<u32> {
        self.agent.as_ref().map(Running::pid)
    }

    /// Any `agentd` command with JSON output.
    ///
    /// # Errors
    /// When it fails or does not print JSON.
    pub fn agent_says(&self, words: &[&str]) -> Result<serde_json::Value> {
        let text = self.to_end(self.agentd_with(words).args(["--output", "json"]))?;
        let printed = serde_json::from_str(&text)
            .with_context(|| format!("agentd {} printed no JSON: {text}", words.join(" ")))?;
        self.secrets().add_json(&format!("agentd {}", words.join(" ")), &printed);
        Ok(printed)
    }

    /// Runs any `agentd` command without output for programs; returns its output for people.
    ///
    /// # Errors
    /// When it fails.
    pub fn agent_does(&self, words: &[&str]) -> Result<String> {
        self.to_end(&mut self.agentd_with(words))
    }

    /// Where the agent serves guests, `address:port`.
    #[must_use]
    pub const fn local_api(&self) -> &'static str {
        self.options.runtime.local_api()
    }

    /// Runs a command to its end and gives its standard output.
    pub(super) fn to_end(&self, command: &mut Command) -> Result<String> {
        let output = command.output().with_context(|| format!("cannot run {}", self.typed(command)))?;
        if !output.status.success() {
            let (out, err) =
                (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            bail!("{} ended with {}\n{err}{out}", self.typed(command), output.status);
        }
        String::from_utf8(output.stdout).context("a command printed bytes that are no text")
    }

    fn give_to_agent(&self, path: &Path) -> Result<()> {
        match self.options.agent_user {
            User::Same => Ok(()),
            User::Unprivileged => chown(path, Some(AGENT_UID), Some(AGENT_UID))
                .with_context(|| format!("cannot hand over {}", path.display())),
        }
    }
}

fn write_private(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, "")
        .and_then(|()| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)))?;
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
