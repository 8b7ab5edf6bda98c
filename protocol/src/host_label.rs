//! Labels of hosts, and selectors over them.
//!
//! In: what operators write. Out: labels, changes of labels and selectors, each within its bounds. Deliberately absent: any
//! meaning of a key. `customer` and `tier` are words of the operators.
//!
//! | call | request | answer |
//! | --- | --- | --- |
//! | `POST /v1/hosts/{host}/labels` | [`LabelChange`] | [`crate::operator::HostView`] |

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::texts;

/// Labels of one host, and terms of one selector.
pub const LABELS_MAX: usize = 16;

fn is_plain(text: &str, more: &[u8]) -> bool {
    let ends = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || more.contains(&byte))
        && ends(text.bytes().next())
        && ends(text.bytes().next_back())
}

texts! {
    /// The key of a label.
    LabelKey, 1..=63,
        "the key of a label is 1 to 63 lower-case letters, digits, '-', '_' and '.', with a letter or digit at both ends",
        |text| is_plain(text, b"-_.") && !text.bytes().any(|byte| byte.is_ascii_uppercase());
    /// The value of a label.
    LabelValue, 1..=63,
        "the value of a label is 1 to 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends",
        |text| is_plain(text, b"-_.");
}

/// Not labels, not a change of them, or not a selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    /// More than a host may have.
    #[error("a host has at most {LABELS_MAX} labels, and this would be {0}")]
    Many(usize),
    /// No change.
    #[error("a change of labels sets or removes at least one")]
    Empty,
    /// A key in both parts of a change.
    #[error("the label {0} would be set and removed at once")]
    Both(String),
    /// No term, or not one.
    #[error(
        "{0:?} selects no hosts by label: write tier=canary, or tier=canary+site=vienna for hosts with both"
    )]
    Selector(String),
    /// A key or a value that is none.
    #[error("{0}")]
    Text(&'static str),
}

/// The labels of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "BTreeMap<LabelKey, LabelValue>", into = "BTreeMap<LabelKey, LabelValue>")]
pub struct HostLabels(#[schemars(extend("maxProperties" = LABELS_MAX))] BTreeMap<LabelKey, LabelValue>);

impl HostLabels {
    /// Each key with its value, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&LabelKey, &LabelValue)> {
        self.0.iter()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether there is a label of this key.
    #[must_use]
    pub fn has(&self, key: &LabelKey) -> bool {
        self.0.contains_key(key)
    }

    /// The labels after a change.
    ///
    /// # Errors
    /// [`LabelError`].
    pub fn changed(&self, change: &LabelChange) -> Result<Self, LabelError> {
        let LabelChange { set, remove } = change;
        if set.is_empty() && remove.is_empty() {
            return Err(LabelError::Empty);
        }
        if let Some(key) = remove.iter().find(|key| set.contains_key(*key)) {
            return Err(LabelError::Both(key.as_str().to_owned()));
        }
        let mut labels = self.0.clone();
        labels.retain(|key, _| !remove.contains(key));
        labels.extend(set.iter().map(|(key, value)| (key.clone(), value.clone())));
        Self::try_from(labels)
    }
}

impl TryFrom<BTreeMap<LabelKey, LabelValue>> for HostLabels {
    type Error = LabelError;
    fn try_from(labels: BTreeMap<LabelKey, LabelValue>) -> Result<Self, LabelError> {
        if labels.len() > LABELS_MAX { Err(LabelError::Many(labels.len())) } else { Ok(Self(labels)) }
    }
}

impl From<HostLabels> for BTreeMap<LabelKey, LabelValue> {
    fn from(labels: HostLabels) -> Self {
        labels.0
    }
}

fn terms(f: &mut fmt::Formatter<'_>, terms: &BTreeMap<LabelKey, LabelValue>, between: &str) -> fmt::Result {
    let terms: Vec<String> =
        terms.iter().map(|(key, value)| format!("{}={}", key.as_str(), value.as_str())).collect();
    f.write_str(&terms.join(between))
}

impl fmt::Display for HostLabels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        terms(f, &self.0, ", ")
    }
}

/// A change of a host's labels. What it does not name stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LabelChange {
    /// Labels that are set, in the place of those with the same keys.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<LabelKey, LabelValue>,
    /// Keys of labels that are removed.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub remove: BTreeSet<LabelKey>,
}

/// What selects hosts: all of these labels. It has at least one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "BTreeMap<LabelKey, LabelValue>", into = "BTreeMap<LabelKey, LabelValue>")]
pub struct LabelSelector(
    #[schemars(extend("minProperties" = 1, "maxProperties" = LABELS_MAX))] BTreeMap<LabelKey, LabelValue>,
);

impl LabelSelector {
    /// Whether a host with these labels is selected.
    #[must_use]
    pub fn matches(&self, labels: &HostLabels) -> bool {
        self.0.iter().all(|(key, value)| labels.0.get(key) == Some(value))
    }

    /// Whether every host that this one selects is selected by the wider one.
    #[must_use]
    pub fn narrows(&self, wider: &Self) -> bool {
        wider.0.iter().all(|(key, value)| self.0.get(key) == Some(value))
    }
}

impl TryFrom<BTreeMap<LabelKey, LabelValue>> for LabelSelector {
    type Error = LabelError;
    fn try_from(terms: BTreeMap<LabelKey, LabelValue>) -> Result<Self, LabelError> {
        match terms.len() {
            0 => Err(LabelError::Selector(String::new())),
            1..=LABELS_MAX => Ok(Self(terms)),
            more => Err(LabelError::Many(more)),
        }
    }
}

impl From<LabelSelector> for BTreeMap<LabelKey, LabelValue> {
    fn from(selector: LabelSelector) -> Self {
        selector.0
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        terms(f, &self.0, "+")
    }
}

/// Reads `KEY=VALUE`.
///
/// # Errors
/// [`LabelError`].
pub fn label(text: &str) -> Result<(LabelKey, LabelValue), LabelError> {
    let wrong = || LabelError::Selector(text.chars().take(64).collect());
    let (key, value) = text.split_once('=').ok_or_else(wrong)?;
    let key = LabelKey::try_from(key.to_owned()).map_err(LabelError::Text)?;
    Ok((key, LabelValue::try_from(value.to_owned()).map_err(LabelError::Text)?))
}

impl FromStr for LabelSelector {
    type Err = LabelError;
    fn from_str(text: &str) -> Result<Self, LabelError> {
        let mut found = BTreeMap::new();
        for term in text.split('+') {
            let (key, value) = label(term)?;
            if found.insert(key, value).is_some() {
                return Err(LabelError::Selector(text.chars().take(64).collect()));
            }
        }
        Self::try_from(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> HostLabels {
        let pairs = text.split_whitespace().map(|term| label(term).unwrap());
        HostLabels::try_from(pairs.collect::<BTreeMap<_, _>>()).unwrap()
    }

    fn key(text: &str) -> LabelKey {
        text.to_owned().try_into().unwrap()
    }

    #[test]
    fn keys_and_values_are_plain_and_bounded() {
        for good in ["tier=canary", "site=Vienna-2", "a.b_c-d=1.2_3", "x=y"] {
            assert!(label(good).is_ok(), "{good}");
        }
        let long = format!("tier={}", "x".repeat(64));
        for wrong in
            ["tier", "=x", "tier=", "Tier=x", "tier=a b", "-t=x", "t-=x", "t=-x", "t=ä", "t=a=b", &long]
        {
            assert!(label(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_change_sets_and_removes_and_leaves_the_rest() {
        let change = |set: &str, remove: &[&str]| LabelChange {
            set: labels(set).into(),
            remove: remove.iter().map(|text| key(text)).collect(),
        };
        let before = labels("tier=canary site=vienna");
        let after = before.changed(&change("tier=prod", &["site", "never"])).unwrap();
        assert_eq!(after.to_string(), "tier=prod");
        assert_eq!(before.changed(&change("", &[])), Err(LabelError::Empty));
        assert_eq!(before.changed(&change("tier=x", &["tier"])), Err(LabelError::Both("tier".to_owned())));
        let many: Vec<String> = (0..LABELS_MAX).map(|number| format!("k{number}=v")).collect();
        let full = labels(&many.join(" "));
        assert_eq!(full.changed(&change("more=1", &[])), Err(LabelError::Many(LABELS_MAX + 1)));
        assert!(full.changed(&change("more=1", &["k0"])).is_ok());
    }

    #[test]
    fn a_selector_wants_all_of_its_terms() {
        let selector: LabelSelector = "tier=canary+site=vienna".parse().unwrap();
        assert!(selector.matches(&labels("site=vienna tier=canary more=1")));
        assert!(!selector.matches(&labels("tier=canary site=graz")));
        assert!(!selector.matches(&HostLabels::default()));
        assert_eq!(selector.to_string(), "site=vienna+tier=canary");
        for wrong in ["", "tier", "tier=a+tier=b", "tier=a+", "tier!=a"] {
            assert!(wrong.parse::<LabelSelector>().is_err(), "{wrong}");
        }
        assert!(serde_json::from_str::<LabelSelector>("{}").is_err());
    }
}
