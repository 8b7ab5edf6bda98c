//! Settings of one tunnel.

use std::fmt;
use std::net::SocketAddr;

use holdfast_protocol::id::{TunnelName, UnitName};
use serde::Deserialize;

/// A tunnel that root names.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tunnel {
    /// Its name in reports and jobs.
    pub name: TunnelName,
    /// Its service.
    pub unit: UnitName,
    /// Where cloudflared serves `/ready` and `/metrics`: an address of the loopback.
    #[serde(default)]
    pub metrics: Option<SocketAddr>,
    /// How many connections it should have.
    #[serde(default = "usual_connections")]
    pub connections: u32,
    /// What is asked through it.
    #[serde(default)]
    pub probe: Option<ProbeTarget>,
    /// Whether the agent may ask for a restart of it.
    #[serde(default)]
    pub restart: RestartRule,
    /// Where its token comes from.
    #[serde(default)]
    pub token: TokenSupply,
}

/// The usual `--ha-connections` of cloudflared.
pub const CONNECTIONS: u32 = 4;

const fn usual_connections() -> u32 {
    CONNECTIONS
}

/// Whether the agent may ask for a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RestartRule {
    /// While the tunnel is down.
    #[default]
    WhenDown,
    /// For a new token alone.
    Never,
}

impl RestartRule {
    /// As the settings say it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WhenDown => "when_down",
            Self::Never => "never",
        }
    }
}

/// Where the token of a tunnel comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenSupply {
    /// Root's own affair.
    #[default]
    Own,
    /// A signed job brings it, sealed.
    SignedJob,
}

impl TokenSupply {
    /// As the settings say it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::SignedJob => "signed_job",
        }
    }
}

/// What is asked through a tunnel.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum ProbeTarget {
    /// A page.
    Https(String),
    /// A connection, which is closed again.
    Tcp(String),
}

const PROBE_CHARS_MAX: usize = 512;

impl TryFrom<String> for ProbeTarget {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, &'static str> {
        const RULE: &str =
            "a probe is https://NAME/PATH or tcp://HOST:PORT, without a user, of at most 512 characters";
        if text.len() > PROBE_CHARS_MAX || !text.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(RULE);
        }
        if let Some(rest) = text.strip_prefix("https://") {
            let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
            let possible = !host.is_empty() && !host.contains('@');
            return if possible { Ok(Self::Https(text)) } else { Err(RULE) };
        }
        let place = text.strip_prefix("tcp://").ok_or(RULE)?;
        let (host, port) = place.rsplit_once(':').ok_or(RULE)?;
        let possible =
            !host.is_empty() && !host.contains(['/', '@']) && port.parse::<u16>().is_ok_and(|port| port > 0);
        if possible { Ok(Self::Tcp(place.to_owned())) } else { Err(RULE) }
    }
}

impl fmt::Display for ProbeTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Https(url) => f.write_str(url),
            Self::Tcp(place) => write!(f, "tcp://{place}"),
        }
    }
}
