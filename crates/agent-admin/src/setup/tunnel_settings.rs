//! Tunnels in the settings file, kept when `setup` writes it anew.

use std::path::{Path, PathBuf};

use crate::model::tunnel::settings::CONNECTIONS;
use crate::model::tunnel::{RestartRule, TokenSupply, Tunnel};
use crate::port::atomic_file;
use crate::settings::{CONFIG_BYTES_MAX, tunnels::mistake};

/// Why the installed tunnels are not taken over.
#[derive(Debug, thiserror::Error)]
#[error("the tunnels in {} are refused at `{at}`: {rule}; nothing was changed, correct them there", path.display())]
pub struct TunnelSettingsError {
    path: PathBuf,
    /// The key.
    at: String,
    rule: String,
}

/// The tunnels of the installed settings. A file that is no TOML names none, and is replaced as before.
///
/// # Errors
/// [`TunnelSettingsError`], where one is not as the agent takes it: it would be lost otherwise.
pub fn installed(config: &Path) -> Result<Vec<Tunnel>, TunnelSettingsError> {
    let refused = |at: String, rule: String| TunnelSettingsError { path: config.to_owned(), at, rule };
    let there = atomic_file::read(config, CONFIG_BYTES_MAX).ok().flatten();
    let table = there.and_then(|bytes| String::from_utf8_lossy(&bytes).parse::<toml::Table>().ok());
    let Some(tunnels) = table.and_then(|mut table| table.remove("tunnel")) else { return Ok(Vec::new()) };
    let tunnels: Vec<Tunnel> = tunnels
        .try_into()
        .map_err(|error: toml::de::Error| refused("tunnel".to_owned(), error.message().to_owned()))?;
    match mistake(&tunnels) {
        None => Ok(tunnels),
        Some((at, rule)) => Err(refused(at, rule.to_owned())),
    }
}

/// Their part of the settings file.
pub fn text(tunnels: &[Tunnel], line: &mut impl FnMut(&str, String)) {
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    for tunnel in tunnels {
        line("\n[[tunnel]]\nname", quoted(tunnel.name.as_str()));
        line("unit", quoted(tunnel.unit.as_str()));
        if let Some(metrics) = tunnel.metrics {
            line("metrics", quoted(&metrics.to_string()));
        }
        if tunnel.connections != CONNECTIONS {
            line("connections", tunnel.connections.to_string());
        }
        if let Some(probe) = &tunnel.probe {
            line("probe", quoted(&probe.to_string()));
        }
        if tunnel.restart != RestartRule::default() {
            line("restart", quoted(tunnel.restart.as_str()));
        }
        if tunnel.token != TokenSupply::default() {
            line("token", quoted(tunnel.token.as_str()));
        }
    }
}

#[cfg(test)]
pub mod tests {
    use super::super::plan::Choices;
    use super::super::plan::tests::choices;
    use super::*;

    const TWO: &str = "[[tunnel]]\nname = \"cf\"\nunit = \"cloudflared.service\"\nmetrics = \"127.0.0.1:20241\"\nprobe = \"https://app.example/\"\ntoken = \"signed_job\"\n\n[[tunnel]]\nname = \"wg\"\nunit = \"wg-quick@wg0.service\"\nconnections = 2\nprobe = \"tcp://10.9.0.1:22\"\nrestart = \"never\"\n";

    pub fn with_two() -> Choices {
        #[derive(serde::Deserialize)]
        struct Tunnels {
            tunnel: Vec<Tunnel>,
        }
        Choices { tunnels: toml::from_str::<Tunnels>(TWO).unwrap().tunnel, ..choices() }
    }

    #[test]
    fn the_tunnels_of_the_installed_settings_stay() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("agent.toml");
        assert!(installed(&config).unwrap().is_empty());
        let text = super::super::local::settings_text(&with_two());
        assert!(text.contains(TWO.trim_end()), "{text}");
        crate::settings::Settings::parse(&text, &config).unwrap();
        std::fs::write(&config, &text).unwrap();
        assert_eq!(installed(&config).unwrap(), with_two().tunnels);
        std::fs::write(&config, "nonsense").unwrap();
        assert!(installed(&config).unwrap().is_empty(), "as before: the file is replaced");
        std::fs::write(&config, "[[tunnel]]\nname = \"cf\"\nunit = \"sshd\"\n").unwrap();
        assert!(installed(&config).is_err());
        std::fs::write(&config, TWO.replace("wg\"", "cf\"")).unwrap();
        assert!(installed(&config).is_err());
    }
}
