//! Labels of incidents, and matchers over them.
//!
//! A label that an incident does not have is empty, as in Alertmanager: `customer=` matches incidents without a
//! customer, and `customer!=acme` matches them too.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use holdfast_protocol::condition::{Cause, ConditionCode, Severity, Subject, SubjectKind};
use holdfast_protocol::id::{CustomerId, GuestName, HostName, PolicyName};
use serde::{Deserialize, Serialize};

/// Longer than any value.
const VALUE_MAX: usize = 200;

macro_rules! label_names {
    ($($(#[$doc:meta])* $name:ident = $text:literal)*) => {
        /// The labels of an incident.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Label {
            $($(#[$doc])* $name,)*
        }

        impl Label {
            /// All of them, as written in matchers.
            pub const NAMES: &'static [(&'static str, Self)] = &[$(($text, Self::$name),)*];

            /// As written in matchers.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

label_names! {
    /// The code of the condition, such as `GUEST_CRASHED`.
    Code = "code"
    /// `info`, `warning` or `critical`.
    Severity = "severity"
    /// The class of causes, such as `protection`.
    Cause = "cause"
    /// The kind of the subject, such as `guest`.
    Kind = "kind"
    /// The whole subject, such as `storage_target:usb-1`.
    Subject = "subject"
    /// The host's name; empty for the hub.
    Host = "host"
    /// The guest's name, or its uid where no name is known.
    Guest = "guest"
    /// The guest's customer; of what is about no guest, the customer of all guests of the host, where they are of one.
    Customer = "customer"
    /// The guest's backup policy.
    Policy = "policy"
}

/// What the hub knows of the subject besides the report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Labels {
    /// Who it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub customer: Option<CustomerId>,
    /// What the guest is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<GuestName>,
    /// The backup policy of the guest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyName>,
}

/// Everything that matchers see.
#[derive(Clone, Copy, Debug)]
pub struct Labelled<'a> {
    /// What is wrong.
    pub code: ConditionCode,
    /// How urgent it is.
    pub severity: Severity,
    /// With what.
    pub subject: &'a Subject,
    /// What the hub knows of it.
    pub labels: &'a Labels,
    /// On which host.
    pub host: Option<&'a HostName>,
}

impl<'a> Labelled<'a> {
    /// The value of a label; empty where there is none.
    #[must_use]
    pub fn value(&self, label: Label) -> Cow<'a, str> {
        fn named<T>(name: Option<&T>, text: fn(&T) -> &str) -> Cow<'_, str> {
            name.map_or(Cow::Borrowed(""), |name| Cow::Borrowed(text(name)))
        }
        match label {
            Label::Code => Cow::Borrowed(self.code.as_str()),
            Label::Severity => Cow::Borrowed(self.severity.as_str()),
            Label::Cause => Cow::Borrowed(self.code.spec().cause.as_str()),
            Label::Kind => Cow::Borrowed(self.subject.kind().as_str()),
            Label::Subject => Cow::Owned(self.subject.to_string()),
            Label::Host => named(self.host, HostName::as_str),
            Label::Guest => match (&self.labels.guest, self.subject.guest()) {
                (Some(name), _) => Cow::Borrowed(name.as_str()),
                (None, Some(uid)) => Cow::Owned(uid.to_string()),
                (None, None) => Cow::Borrowed(""),
            },
            Label::Customer => named(self.labels.customer.as_ref(), CustomerId::as_str),
            Label::Policy => named(self.labels.policy.as_ref(), PolicyName::as_str),
        }
    }
}

/// Whether a label must have the value, or another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
}

/// One comparison of a label, written `label=value` or `label!=value`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Matcher {
    label: Label,
    comparison: Comparison,
    value: String,
}

/// Why a text is no matcher.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatcherError {
    /// No comparison.
    #[error("{0:?} compares nothing: write label=value or label!=value")]
    Form(String),
    /// A regular expression.
    #[error("{0:?} is a regular expression, which is not supported: write one matcher for each value")]
    Regex(String),
    /// No label.
    #[error("{0:?} is no label: code, severity, cause, kind, subject, host, guest, customer and policy are")]
    Label(String),
    /// A value that the label never has, so that the matcher would never match, or always.
    #[error("{value:?} is never the {label} of an incident: {possible}")]
    Value {
        label: &'static str,
        value: String,
        /// The values that it can have.
        possible: Possible,
    },
}

/// The values that a label can have, where they are few enough to be listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Possible {
    /// One of these.
    OneOf(Vec<&'static str>),
    /// A kind, and after a colon the id: the kinds.
    Subject(Vec<&'static str>),
}

impl fmt::Display for Possible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OneOf(values) => write!(f, "it is one of {}", values.join(", ")),
            Self::Subject(kinds) => {
                write!(f, "it is host, hub, or KIND:ID with one of the kinds {}", kinds.join(", "))
            }
        }
    }
}

impl Possible {
    /// Of a label; none where every text is possible.
    fn of(label: Label) -> Option<Self> {
        match label {
            Label::Code => Some(Self::OneOf(ConditionCode::ALL.iter().map(|code| code.as_str()).collect())),
            Label::Severity => Some(Self::OneOf(Severity::ALL.iter().map(|one| one.as_str()).collect())),
            Label::Cause => Some(Self::OneOf(Cause::ALL.iter().map(|cause| cause.as_str()).collect())),
            Label::Kind => Some(Self::OneOf(kinds())),
            Label::Subject => Some(Self::Subject(kinds())),
            Label::Host | Label::Guest | Label::Customer | Label::Policy => None,
        }
    }

    fn has(&self, value: &str) -> bool {
        match self {
            Self::OneOf(values) => values.contains(&value),
            Self::Subject(kinds) => {
                let kind = value.split_once(':').map_or(value, |(kind, _)| kind);
                kinds.contains(&kind)
            }
        }
    }
}

/// The kinds of subjects that a condition of the table has.
fn kinds() -> Vec<&'static str> {
    let all = ConditionCode::ALL.iter().flat_map(|code| code.spec().subjects);
    let sorted: std::collections::BTreeSet<&'static str> = all.copied().map(SubjectKind::as_str).collect();
    sorted.into_iter().collect()
}

impl Matcher {
    /// The label and the value that an incident must have, where it must have one.
    #[must_use]
    pub fn required(&self) -> Option<(Label, &str)> {
        let required = self.comparison == Comparison::Equal && !self.value.is_empty();
        required.then_some((self.label, self.value.as_str()))
    }

    /// Whether it matches.
    #[must_use]
    pub fn matches(&self, labelled: &Labelled<'_>) -> bool {
        let equal = labelled.value(self.label) == self.value;
        match self.comparison {
            Comparison::Equal => equal,
            Comparison::NotEqual => !equal,
        }
    }

    /// Whether it matches an incident that has none of the labels.
    #[must_use]
    pub fn matches_empty(&self) -> bool {
        (self.comparison == Comparison::Equal) == self.value.is_empty()
    }
}

/// Whether all of them match.
#[must_use]
pub fn all_match(matchers: &[Matcher], labelled: &Labelled<'_>) -> bool {
    matchers.iter().all(|matcher| matcher.matches(labelled))
}

impl FromStr for Matcher {
    type Err = MatcherError;
    fn from_str(text: &str) -> Result<Self, MatcherError> {
        let clipped = || text.chars().take(VALUE_MAX).collect::<String>();
        if text.contains("!~") && !text.contains('=') {
            return Err(MatcherError::Regex(clipped()));
        }
        let (label, value) = text.split_once('=').ok_or_else(|| MatcherError::Form(clipped()))?;
        if value.len() > VALUE_MAX {
            return Err(MatcherError::Form(clipped()));
        }
        // Alertmanager's `=~` and `!~`.
        if value.starts_with('~') {
            return Err(MatcherError::Regex(clipped()));
        }
        let (label, comparison) = match label.strip_suffix('!') {
            Some(label) => (label, Comparison::NotEqual),
            None => (label, Comparison::Equal),
        };
        let named = Label::NAMES.iter().find(|(name, _)| *name == label.trim());
        let (name, label) = *named.ok_or_else(|| MatcherError::Label(label.trim().to_owned()))?;
        let value = value.trim();
        let value = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
        if let Some(possible) = Possible::of(label).filter(|possible| !possible.has(value)) {
            return Err(MatcherError::Value { label: name, value: value.to_owned(), possible });
        }
        Ok(Self { label, comparison, value: value.to_owned() })
    }
}

impl TryFrom<String> for Matcher {
    type Error = MatcherError;
    fn try_from(text: String) -> Result<Self, MatcherError> {
        text.parse()
    }
}

impl From<Matcher> for String {
    fn from(matcher: Matcher) -> Self {
        matcher.to_string()
    }
}

impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.comparison {
            Comparison::Equal => "=",
            Comparison::NotEqual => "!=",
        };
        write!(f, "{}{sign}{}", self.label.as_str(), self.value)
    }
}
