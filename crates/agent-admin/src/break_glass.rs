//! `agentd break-glass`: settings of break-glass for this host.
//!
//! In: the status of the running agent. Out: the text of a settings file with the names of this host and of the
//! customers with guests on it, which root checks and completes. Deliberately absent: writing the file. The agent's word
//! opens no way into the host.
//!
//! Exit code 0: printed. 69: no agent runs, or it does not know everything yet.

use std::collections::BTreeSet;
use std::io::Write as _;

use holdfast_protocol::id::{CustomerId, HostId};
use holdfast_protocol::job::HostEpoch;

use crate::port::admin_socket::{self, AgentStatus, StatusError};
use crate::settings::{ConfigPath, Settings, SettingsError};

/// The arguments.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Compare name and fingerprint with `holdfast host show HOST` at the operators' side before you use the text: \
`agentd break-glass > /etc/holdfast/break-glass.toml`, as root. Then add ways, set `enabled = true`, and run \
`/usr/lib/holdfast/holdfast-break-glass check`.")]
pub struct BreakGlassArguments {
    #[command(flatten)]
    config: ConfigPath,
}

/// Why there are no settings.
#[derive(Debug, thiserror::Error)]
pub enum BreakGlassError {
    /// The configuration.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The agent.
    #[error(transparent)]
    Status(#[from] StatusError),
    #[error("the running agent does not know its {0} yet: run this again in a minute")]
    Unknown(&'static str),
    #[error("the settings cannot be written to the standard output")]
    Print(#[source] std::io::Error),
}

impl BreakGlassError {
    /// The exit code, by sysexits.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Settings(_) => 78,
            Self::Status(error) => error.exit_code(),
            Self::Unknown(_) => 69,
            Self::Print(_) => 74,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// [`BreakGlassError`].
pub fn run(arguments: &BreakGlassArguments) -> Result<(), BreakGlassError> {
    let settings = Settings::load(&arguments.config)?;
    let status = admin_socket::ask(&settings.state.dir)?;
    let text = text(&status)?;
    std::io::stdout().write_all(text.as_bytes()).map_err(BreakGlassError::Print)
}

/// The text of the file.
fn text(status: &AgentStatus) -> Result<String, BreakGlassError> {
    let id: HostId = status.host_id.ok_or(BreakGlassError::Unknown("id"))?;
    let trust = status.sections.trust.as_ref().ok_or(BreakGlassError::Unknown("epoch"))?;
    let guests = status.sections.guests.as_ref().ok_or(BreakGlassError::Unknown("guests"))?;
    let customers: BTreeSet<_> = guests.iter().filter_map(|guest| guest.customer.as_ref()).collect();
    let customers: String = customers.into_iter().map(customer).collect();
    let (name, fingerprint, epoch): (_, _, HostEpoch) = (&status.host_name, &status.fingerprint, trust.epoch);
    Ok(format!(
        r#"# Break-glass of this host, printed by `agentd break-glass` at {at:.0}.
# Compare name and fingerprint with `holdfast host show {name}`. The page break-glass.md says what each line means.

enabled = false

[host]
id = "{id}"
name = "{name}"
fingerprint = "{fingerprint}"
epoch = {epoch}
{customers}
[ways]

# A login shell of root, recorded, for the key that an order names, from these addresses:
#[ways.tunnel]
#kind = "authorized_keys"
#from = ["10.77.0.0/24"]
#minutes_max = 60
"#,
        at = status.at,
        fingerprint = fingerprint.as_str(),
    ))
}

/// A customer with guests here, who is asked.
fn customer(id: &CustomerId) -> String {
    format!("\n[customers.{id}]\nconsent = \"signature\"\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status() -> serde_json::Value {
        json!({
            "schema": "holdfast.status/v1", "at": "2026-11-21T12:00:00Z",
            "host_id": "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55",
            "host_name": "box7", "fingerprint": "4f2a-9c01-77de-b3a8-0c11", "hub": "https://hub.example:8440",
            "contact": {"reached_at": null, "problem": null, "certificate_ends_at": "2026-12-20T00:00:00Z"},
            "sections": {
                "trust": {"epoch": 3, "policy_version": 0, "audit": {"number": 0, "chain": ""}},
                "guests": [
                    {"uid": null, "name": "web", "vmid": 10000, "status": "managed", "run": "running", "customer": "globex"},
                    {"uid": null, "name": "db", "vmid": 10001, "status": "managed", "run": "running", "customer": "acme"},
                    {"uid": null, "name": "cron", "vmid": 10002, "status": "managed", "run": "running", "customer": "acme"},
                    {"uid": null, "name": "old", "vmid": 104, "status": "foreign", "run": "unknown"}]
            }
        })
    }

    #[test]
    fn the_settings_name_the_host_and_each_customer_once_and_open_nothing() {
        let text = text(&serde_json::from_value(status()).unwrap()).unwrap();
        let file: toml::Value = toml::from_str(&text).unwrap();
        assert_eq!(
            serde_json::to_value(file).unwrap(),
            json!({
                "enabled": false,
                "host": {
                    "id": "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55", "name": "box7",
                    "fingerprint": "4f2a-9c01-77de-b3a8-0c11", "epoch": 3
                },
                "customers": {"acme": {"consent": "signature"}, "globex": {"consent": "signature"}},
                "ways": {}
            })
        );
    }

    #[test]
    fn what_the_agent_does_not_know_yet_is_no_settings_file() {
        for (at, what) in [("/host_id", "id"), ("/sections/trust", "epoch"), ("/sections/guests", "guests")] {
            let mut status = status();
            *status.pointer_mut(at).unwrap() = serde_json::Value::Null;
            let refused = text(&serde_json::from_value(status).unwrap()).unwrap_err();
            assert!(refused.to_string().contains(&format!("its {what} yet")), "{refused}");
        }
    }
}
