//! Filters of hosts.

use std::fmt;

use super::{FilterError, NamePattern, Part, Presence, Word, choice, filter, refused, written};
use crate::host_label::{LabelKey, LabelSelector, label};
use crate::operator::{HostState, HostView};

/// What a host is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostPart {
    /// Any.
    All,
    /// Its name, or its id.
    Name(NamePattern),
    /// `@label-KEY`: that it has a label of this key.
    Labelled(LabelKey),
    /// `@label-KEY=VALUE`.
    Label(LabelSelector),
    /// `@state-offline`.
    State(HostState),
    /// `@version-0.1.0`: of its agent.
    Version(String),
    /// `@attention-some`: whether something needs a person.
    Attention(Presence),
}

const PROPERTIES: &str =
    "@all, @label-KEY, @label-KEY=VALUE, @state-STATE, @version-VERSION, @attention-some and @attention-none";

impl Part for HostPart {
    fn read(text: &str, word: Word<'_>) -> Result<Self, FilterError> {
        match word {
            Word::All => Ok(Self::All),
            Word::Name(name) => Ok(Self::Name(name)),
            Word::Vmids(..) => {
                Err(refused(text, "a host has no VMID; for a name in digits write it between '%'"))
            }
            Word::Property("label", value) => labelled(text, value),
            Word::Property("state", value) => choice(text, value).map(Self::State),
            Word::Property("version", value) if !value.is_empty() => Ok(Self::Version(value.to_owned())),
            Word::Property("attention", value) => choice(text, value).map(Self::Attention),
            Word::Property(..) => Err(refused(text, format!("hosts have {PROPERTIES}"))),
        }
    }
}

fn labelled(text: &str, value: &str) -> Result<HostPart, FilterError> {
    if !value.contains('=') {
        let key = LabelKey::try_from(value.to_owned()).map_err(|why| refused(text, why))?;
        return Ok(HostPart::Labelled(key));
    }
    let pair = label(value).map_err(|error| refused(text, error.to_string()))?;
    let selector = LabelSelector::try_from(std::collections::BTreeMap::from([pair]));
    selector.map(HostPart::Label).map_err(|error| refused(text, error.to_string()))
}

impl HostPart {
    /// Whether it holds for a host.
    #[must_use]
    pub fn holds(&self, host: &HostView) -> bool {
        match self {
            Self::All => true,
            Self::Name(name) => name.matches(host.name.as_str()) || name.matches(&host.id.to_string()),
            Self::Labelled(key) => host.labels.has(key),
            Self::Label(selector) => selector.matches(&host.labels),
            Self::State(state) => host.state == *state,
            Self::Version(version) => host.agent_version.as_ref() == Some(version),
            Self::Attention(presence) => {
                Presence::of(usize::try_from(host.attention).unwrap_or(usize::MAX)) == *presence
            }
        }
    }
}

impl fmt::Display for HostPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("@all"),
            Self::Name(name) => name.fmt(f),
            Self::Labelled(key) => write!(f, "@label-{}", key.as_str()),
            Self::Label(selector) => write!(f, "@label-{selector}"),
            Self::State(state) => write!(f, "@state-{}", written(state)),
            Self::Version(version) => write!(f, "@version-{version}"),
            Self::Attention(presence) => write!(f, "@attention-{}", written(presence)),
        }
    }
}

filter! {
    /// Which hosts a list has: such as `@label-tier=canary,-box7`, or `@state-offline`.
    HostFilter, HostPart
}

impl HostFilter {
    /// Whether the list has this host.
    #[must_use]
    pub fn selects(&self, host: &HostView) -> bool {
        self.0.select(|part| part.holds(host))
    }
}
