//! The state of services, by `systemctl show`.
//!
//! In: units. Out: what systemd says of them. Every user may ask. The program speaks D-Bus for us, so that the agent
//! links no client of it. Deliberately absent: every verb but `show`.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use holdfast_protocol::id::UnitName;
use tokio::io::AsyncReadExt as _;

use crate::model::tunnel::ServiceState;
use crate::model::tunnel::systemd::{PROPERTIES, parse};

/// Systemd answers within milliseconds.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Eight services have a thousand bytes.
const OUTPUT_BYTES_MAX: u64 = 16 * 1024;

/// Where the program is.
#[derive(Clone, Debug)]
pub struct Systemctl(PathBuf);

/// Why systemd could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum SystemctlError {
    #[error("{} cannot be run", program.display())]
    Run {
        program: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("systemd did not answer `systemctl show` within {} s", ANSWER_WITHIN.as_secs())]
    Slow,
    #[error("`systemctl show` failed ({status}): {said}")]
    Refused { status: String, said: String },
}

impl Systemctl {
    /// The system's own.
    #[must_use]
    pub fn of_the_system() -> Self {
        Self::at("/usr/bin/systemctl".into())
    }

    /// Another program in its place.
    #[must_use]
    pub const fn at(program: PathBuf) -> Self {
        Self(program)
    }

    /// The state of each unit, in the same order. One that systemd says nothing usable of is unknown.
    ///
    /// # Errors
    /// [`SystemctlError`].
    pub async fn show(&self, units: &[UnitName]) -> Result<Vec<Option<ServiceState>>, SystemctlError> {
        if units.is_empty() {
            return Ok(Vec::new());
        }
        let text = tokio::time::timeout(ANSWER_WITHIN, self.run(units)).await;
        Ok(parse(&text.map_err(|_| SystemctlError::Slow)??, units.len()))
    }

    async fn run(&self, units: &[UnitName]) -> Result<String, SystemctlError> {
        let failed = |source| SystemctlError::Run { program: self.0.clone(), source };
        let mut child = self.command(units).spawn().map_err(failed)?;
        let (mut output, mut errors) = (Vec::new(), Vec::new());
        if let (Some(out), Some(err)) = (child.stdout.take(), child.stderr.take()) {
            let (mut out, mut err) = (out.take(OUTPUT_BYTES_MAX), err.take(OUTPUT_BYTES_MAX));
            let (read, said) = tokio::join!(out.read_to_end(&mut output), err.read_to_end(&mut errors));
            read.and(said).map_err(failed)?;
        }
        let status = child.wait().await.map_err(failed)?;
        if status.success() {
            return Ok(String::from_utf8_lossy(&output).into_owned());
        }
        let said = String::from_utf8_lossy(&errors);
        let said = said.lines().next().unwrap_or_default().chars().take(200).collect();
        Err(SystemctlError::Refused { status: status.to_string(), said })
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "systemctl show, for tunnels that root names: a D-Bus client of our own would be a large dependency"
    )]
    fn command(&self, units: &[UnitName]) -> tokio::process::Command {
        let mut command = tokio::process::Command::new(&self.0);
        command.args(["show", "--timestamp=unix", "--no-pager", "--property", PROPERTIES, "--"]);
        command.args(units.iter().map(UnitName::as_str)).env_clear().env("LC_ALL", "C").kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use holdfast_protocol::report::UnitActivity;

    use super::*;

    fn program(folder: &tempfile::TempDir, text: &str) -> Systemctl {
        let path = folder.path().join("systemctl");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        Systemctl::at(path)
    }

    fn units(names: &[&str]) -> Vec<UnitName> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    #[tokio::test]
    async fn each_unit_has_its_own_answer_and_nothing_else_is_asked() {
        let folder = tempfile::tempdir().unwrap();
        let text = "#!/bin/sh\n[ \"$1 $2 $3 $6\" = 'show --timestamp=unix --no-pager --' ] || exit 3\nshift 6\nfirst=1\n\
                    for unit do [ $first = 1 ] || echo; first=0\nstate=active; [ \"$unit\" != b.service ] || state=failed\n\
                    printf 'LoadState=loaded\\nActiveState=%s\\nNRestarts=1\\n' $state; done\n";
        let systemctl = program(&folder, text);
        let states = systemctl.show(&units(&["a.service", "b.service"])).await.unwrap();
        let activities: Vec<_> = states.iter().map(|state| state.unwrap().activity).collect();
        assert_eq!(activities, [UnitActivity::Active, UnitActivity::Failed]);
        assert!(systemctl.show(&[]).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_refusal_is_no_state() {
        let folder = tempfile::tempdir().unwrap();
        let systemctl = program(&folder, "#!/bin/sh\necho 'Failed to connect to bus' >&2\nexit 1\n");
        let error = systemctl.show(&units(&["a.service"])).await.unwrap_err();
        assert!(error.to_string().contains("Failed to connect to bus"), "{error}");
        let none = Systemctl::at(folder.path().join("none"));
        assert!(matches!(none.show(&units(&["a.service"])).await, Err(SystemctlError::Run { .. })));
    }
}
