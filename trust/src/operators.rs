//! The operators file: OpenSSH's `allowed_signers`, in a strict subset.
//!
//! One line each: `name [options] key-type key [comment]`. The name is one operator; several lines may give one operator
//! several keys, who still counts once. Options: `namespaces`, `valid-after`, `valid-before`, with times in UTC
//! (`20261121Z`). Patterns, certificates and anything else OpenSSH would take are refused by line, so that stock
//! `ssh-keygen -Y verify` and this file can never mean two things.

use holdfast_protocol::id::OperatorName;
use jiff::Timestamp;
use jiff::civil::DateTime;
use ssh_key::public::KeyData;

use crate::key::{KeyError, OperatorKey};
use crate::signature::Namespace;

/// Larger than any team's file.
pub const BYTES_MAX: usize = 64 * 1024;

/// One key of one operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub name: OperatorName,
    key: OperatorKey,
    namespaces: Option<Vec<String>>,
    after: Option<Timestamp>,
    before: Option<Timestamp>,
}

/// All of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operators(Vec<Holder>);

/// Whether a key may sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SigningRight<'a> {
    /// Yes, as this operator.
    May(&'a OperatorName),
    /// It is listed, and not for this or not now.
    MayNot(&'a OperatorName),
    /// It is not listed.
    Unknown,
}

/// Why a file is not taken. Nothing of it is used then.
#[derive(Debug, thiserror::Error)]
pub enum OperatorsError {
    #[error("the operators file is {0} bytes long; at most {BYTES_MAX} are accepted")]
    Size(usize),
    /// No operator could sign anything.
    #[error("the operators file names nobody: add a line `name ssh-ed25519 AAAA…`")]
    Empty,
    #[error("line {line} of the operators file is refused")]
    Line {
        /// Counted from 1.
        line: usize,
        #[source]
        source: LineError,
    },
}

/// Why a line is not taken.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// No key on it.
    #[error("a line is `name [options] key-type key [comment]`")]
    Form,
    /// A pattern, a list, or a name that is none.
    #[error("{0:?} is not the name of one operator: patterns and lists are not taken")]
    Name(String),
    /// An option that is not taken.
    #[error("option {0:?} is not taken: use namespaces=\"…\", valid-after=\"…Z\" or valid-before=\"…Z\"")]
    Option(String),
    /// A time that is not plain.
    #[error("{0:?} is not a time: write 20261121Z, 202611211400Z or 20261121140000Z")]
    Time(String),
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The same key once more.
    #[error("this key stands on an earlier line already")]
    Twice,
}

impl Holder {
    fn may(&self, namespace: Namespace, at: Timestamp) -> bool {
        let purpose =
            self.namespaces.as_ref().is_none_or(|all| all.iter().any(|one| one == namespace.as_str()));
        let time = self.after.is_none_or(|after| at >= after) && self.before.is_none_or(|before| at < before);
        purpose && time
    }
}

impl Operators {
    /// Reads a file, whole or not at all.
    ///
    /// # Errors
    /// [`OperatorsError`], with the first line that is not taken.
    pub fn parse(text: &str) -> Result<Self, OperatorsError> {
        if text.len() > BYTES_MAX {
            return Err(OperatorsError::Size(text.len()));
        }
        let mut holders: Vec<Holder> = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let refused = |source| OperatorsError::Line { line: number, source };
            let holder = read(line).map_err(refused)?;
            if holders.iter().any(|earlier| earlier.key == holder.key) {
                return Err(refused(LineError::Twice));
            }
            holders.push(holder);
        }
        if holders.is_empty() { Err(OperatorsError::Empty) } else { Ok(Self(holders)) }
    }

    /// Every key with its holder, in the order of the file.
    pub fn holders(&self) -> impl Iterator<Item = (&OperatorName, String)> {
        self.0.iter().map(|holder| (&holder.name, holder.key.fingerprint()))
    }

    /// How many different people there are.
    #[must_use]
    pub fn operators(&self) -> usize {
        self.0.iter().map(|holder| &holder.name).collect::<std::collections::BTreeSet<_>>().len()
    }

    /// How many different people hold a key that may sign for a purpose at a time.
    #[must_use]
    pub fn able(&self, namespace: Namespace, at: Timestamp) -> usize {
        let able = self.0.iter().filter(|holder| holder.may(namespace, at)).map(|holder| &holder.name);
        able.collect::<std::collections::BTreeSet<_>>().len()
    }

    /// The listed key with these bytes. It was judged when the file was read.
    pub(crate) fn key(&self, data: &KeyData) -> Option<&OperatorKey> {
        self.0.iter().map(|holder| &holder.key).find(|key| key.data() == data)
    }

    /// Whether a key may sign for a purpose at a time.
    #[must_use]
    pub fn right(&self, key: &OperatorKey, namespace: Namespace, at: Timestamp) -> SigningRight<'_> {
        let Some(holder) = self.0.iter().find(|holder| holder.key == *key) else {
            return SigningRight::Unknown;
        };
        if holder.may(namespace, at) {
            SigningRight::May(&holder.name)
        } else {
            SigningRight::MayNot(&holder.name)
        }
    }
}

fn read(line: &str) -> Result<Holder, LineError> {
    let (name, rest) = word(line).ok_or(LineError::Form)?;
    let name = name.parse().map_err(|_| LineError::Name(name.to_owned()))?;
    let holder = |rest: &str| -> Result<OperatorKey, LineError> {
        let mut words = rest.split_whitespace();
        let (kind, key) = (words.next().ok_or(LineError::Form)?, words.next().ok_or(LineError::Form)?);
        Ok(OperatorKey::from_openssh(&format!("{kind} {key}"))?)
    };
    let (first, after_first) = word(rest).ok_or(LineError::Form)?;
    if !first.contains('=') && !first.contains(',') && first != "cert-authority" {
        return Ok(Holder { name, key: holder(rest)?, namespaces: None, after: None, before: None });
    }
    let (mut namespaces, mut after, mut before) = (None, None, None);
    for option in options(first) {
        let (what, value) = option.split_once('=').ok_or_else(|| LineError::Option(option.to_owned()))?;
        // A quote within the quotes ends the value for OpenSSH, which then takes the line for none.
        let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        let value = value.filter(|value| !value.contains('"'));
        let value = value.ok_or_else(|| LineError::Option(option.to_owned()))?;
        match what {
            "namespaces" if namespaces.is_none() => {
                namespaces = Some(value.split(',').map(str::to_owned).collect());
            }
            "valid-after" if after.is_none() => after = Some(time(value)?),
            "valid-before" if before.is_none() => before = Some(time(value)?),
            _ => return Err(LineError::Option(option.to_owned())),
        }
    }
    Ok(Holder { name, key: holder(after_first)?, namespaces, after, before })
}

/// The first word, in which a space inside quotes does not count, and the rest.
fn word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let mut quoted = false;
    let end = text.find(|c: char| {
        quoted ^= c == '"';
        c.is_whitespace() && !quoted
    });
    let (word, rest) = text.split_at(end.unwrap_or(text.len()));
    (!word.is_empty()).then_some((word, rest))
}

/// The parts between commas outside quotes.
fn options(text: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    text.split(move |c: char| {
        quoted ^= c == '"';
        c == ',' && !quoted
    })
}

fn time(text: &str) -> Result<Timestamp, LineError> {
    let wrong = || LineError::Time(text.to_owned());
    let digits = text.strip_suffix('Z').ok_or_else(wrong)?;
    let format = match digits.len() {
        8 => "%Y%m%d",
        12 => "%Y%m%d%H%M",
        14 => "%Y%m%d%H%M%S",
        _ => return Err(wrong()),
    };
    let civil = if digits.len() == 8 {
        jiff::civil::Date::strptime(format, digits).map(DateTime::from)
    } else {
        DateTime::strptime(format, digits)
    };
    let civil = civil.map_err(|_| wrong())?;
    civil.to_zoned(jiff::tz::TimeZone::UTC).map(|zoned| zoned.timestamp()).map_err(|_| wrong())
}
