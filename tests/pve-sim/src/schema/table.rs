//! The table of served calls, read from the two committed files.
//!
//! In: `calls/calls.toml` and `calls/params.toml`. Out: [`Table`], which finds a call by verb and path and hands over its parameters and
//! its permission expression. A range such as `mp[n]` stays one entry; [`Spec::lookup`] knows how far it reaches.
//! Deliberately absent: what a call does.
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use regex::Regex;
use serde::Deserialize;

/// How far a numbered option reaches: `mp0` to `mp255`.
const RANGES: &[(&str, u32)] = &[("mp", 256), ("net", 32), ("unused", 256), ("dev", 256), ("link", 8)];

/// One parameter or one key of a property string.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Spec {
    /// JSON type; absent means any.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// May be left out.
    #[serde(default)]
    pub optional: bool,
    /// A named format, or `@name` for a property string.
    pub format: Option<String>,
    pub min: Option<f64>,
    pub max: Option<f64>,
    /// Least length in characters.
    pub min_length: Option<usize>,
    /// Greatest length in characters.
    pub max_length: Option<usize>,
    /// The allowed values.
    pub one_of: Option<Words>,
    /// Another parameter that must be there too.
    pub requires: Option<String>,
    /// The whole value must match.
    pub pattern: Option<Pattern>,
    /// The key that a bare value belongs to.
    #[serde(default)]
    pub default_key: bool,
}

/// A list of allowed words; `mp[0-255]` means a whole range.
#[derive(Debug, Clone, Deserialize)]
#[serde(from = "Vec<String>")]
pub struct Words(pub Vec<String>);

impl From<Vec<String>> for Words {
    fn from(written: Vec<String>) -> Self {
        let mut words = Vec::new();
        for word in written {
            let range = word
                .strip_suffix(']')
                .and_then(|rest| rest.split_once("[0-"))
                .and_then(|(stem, last)| last.parse::<u32>().ok().map(|last| (stem.to_owned(), last)));
            match range {
                Some((stem, last)) => words.extend((0..=last).map(|n| format!("{stem}{n}"))),
                None => words.push(word),
            }
        }
        Self(words)
    }
}

/// A compiled pattern that must match the whole value.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub struct Pattern(Regex);

impl TryFrom<String> for Pattern {
    type Error = regex::Error;
    fn try_from(text: String) -> Result<Self, regex::Error> {
        Regex::new(&format!("^(?:{text})$")).map(Self)
    }
}

impl Pattern {
    /// Whether the whole value matches.
    #[must_use]
    pub fn fits(&self, value: &str) -> bool {
        self.0.is_match(value)
    }
}

/// The keys of a property string.
pub type Format = BTreeMap<String, Spec>;
/// The parameters of a call.
pub type Params = BTreeMap<String, Spec>;

/// A permission expression as in the schema: strings and lists.
#[derive(Debug, Clone, Deserialize, PartialEq, Eq)]
#[serde(untagged)]
pub enum Check {
    Word(String),
    List(Vec<Check>),
}

/// One served call.
#[derive(Debug)]
pub struct CallSpec {
    /// `PUT /nodes/{node}/lxc/{vmid}/config`
    pub at: String,
    /// Sent on to the node in the path.
    pub proxied: bool,
    /// Open to API tokens.
    pub token: bool,
    /// `all` or `world`.
    pub user: Option<String>,
    /// The permission expression.
    pub check: Option<Check>,
    pub params: Params,
}

/// All calls and formats.
#[derive(Debug)]
pub struct Table {
    calls: Vec<CallSpec>,
    index: HashMap<String, Vec<(Vec<Segment>, usize)>>,
    formats: BTreeMap<String, Format>,
}

#[derive(Debug, PartialEq, Eq)]
enum Segment {
    Fixed(String),
    Named(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallsFile {
    block: BTreeMap<String, Vec<String>>,
    call: Vec<CallEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallEntry {
    at: String,
    #[serde(default)]
    proxied: bool,
    #[serde(default = "yes")]
    token: bool,
    user: Option<String>,
    check: Option<Check>,
    #[serde(default)]
    blocks: Vec<String>,
    #[serde(default)]
    params: Vec<String>,
}

const fn yes() -> bool {
    true
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedFormats {
    format: BTreeMap<String, Format>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ParamsFile {
    param: BTreeMap<String, Spec>,
    format: BTreeMap<String, Format>,
}

/// Why the committed table is not usable.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// Not TOML of the expected shape.
    #[error("the call table {file} does not parse; derive it again")]
    Parse {
        file: &'static str,
        /// The parser's error.
        #[source]
        source: toml::de::Error,
    },
    /// A call names a parameter or block that is not there.
    #[error("{at} names {name}, which the call table does not define; derive it again")]
    Unknown {
        at: String,
        /// The missing name.
        name: String,
    },
}

impl Table {
    /// Reads the committed table.
    ///
    /// # Errors
    /// When the two files do not fit together.
    pub fn committed() -> Result<Self, TableError> {
        let formats = include_str!("../../calls/formats.toml");
        let mut table =
            Self::parse(include_str!("../../calls/calls.toml"), include_str!("../../calls/params.toml"))?;
        let named: NamedFormats =
            toml::from_str(formats).map_err(|source| TableError::Parse { file: "formats.toml", source })?;
        table.formats.extend(named.format);
        Ok(table)
    }

    /// The committed table, read once for all instances of this process.
    ///
    /// # Errors
    /// When the two files do not fit together.
    pub fn shared() -> Result<Arc<Self>, TableError> {
        static KEPT: OnceLock<Arc<Table>> = OnceLock::new();
        if let Some(kept) = KEPT.get() {
            return Ok(Arc::clone(kept));
        }
        let fresh = Arc::new(Self::committed()?);
        Ok(Arc::clone(KEPT.get_or_init(|| fresh)))
    }

    fn parse(calls: &str, params: &str) -> Result<Self, TableError> {
        let calls: CallsFile =
            toml::from_str(calls).map_err(|source| TableError::Parse { file: "calls.toml", source })?;
        let book: ParamsFile =
            toml::from_str(params).map_err(|source| TableError::Parse { file: "params.toml", source })?;
        let mut table = Self { calls: Vec::new(), index: HashMap::new(), formats: book.format };
        for entry in calls.call {
            let unknown = |name: &str| TableError::Unknown { at: entry.at.clone(), name: name.to_owned() };
            let mut names = entry.params.clone();
            for block in &entry.blocks {
                names.extend(calls.block.get(block).ok_or_else(|| unknown(block))?.iter().cloned());
            }
            let mut held = Params::new();
            for name in names {
                let spec = book.param.get(&name).ok_or_else(|| unknown(&name))?;
                held.insert(name.split('#').next().unwrap_or(&name).to_owned(), spec.clone());
            }
            let (verb, path) = entry.at.split_once(' ').ok_or_else(|| unknown("a verb"))?;
            let segments: Vec<Segment> =
                path.split('/').filter(|part| !part.is_empty()).map(Segment::read).collect();
            let position = table.calls.len();
            table.index.entry(verb.to_owned()).or_default().push((segments, position));
            table.calls.push(CallSpec {
                at: entry.at.clone(),
                proxied: entry.proxied,
                token: entry.token,
                user: entry.user,
                check: entry.check,
                params: held,
            });
        }
        for entries in table.index.values_mut() {
            // A fixed segment wins over a named one, as in the real router.
            entries.sort_by_key(|(segments, _)| {
                segments.iter().map(|s| matches!(s, Segment::Named(_))).collect::<Vec<_>>()
            });
        }
        Ok(table)
    }

    /// Finds a call and the values in its path (already decoded).
    #[must_use]
    pub fn find(&self, verb: &str, path: &[String]) -> Option<(&CallSpec, Vec<(String, String)>)> {
        let entries = self.index.get(verb)?;
        entries.iter().find_map(|(segments, position)| {
            let taken = take(segments, path)?;
            Some((self.calls.get(*position)?, taken))
        })
    }

    /// A property-string format by its name without `@`.
    #[must_use]
    pub fn format(&self, name: &str) -> Option<&Format> {
        self.formats.get(name)
    }

    /// A call by its name.
    #[must_use]
    pub fn call(&self, at: &str) -> Option<&CallSpec> {
        self.calls.iter().find(|call| call.at == at)
    }

    pub fn calls(&self) -> impl Iterator<Item = &CallSpec> {
        self.calls.iter()
    }
}

impl Segment {
    fn read(part: &str) -> Self {
        match part.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            Some(name) => Self::Named(name.to_owned()),
            None => Self::Fixed(part.to_owned()),
        }
    }
}

/// Volume ids and networks hold slashes, so that a trailing `{volume}` or `{cidr}` takes the rest.
fn take(segments: &[Segment], path: &[String]) -> Option<Vec<(String, String)>> {
    let mut taken = Vec::new();
    for (index, segment) in segments.iter().enumerate() {
        match segment {
            Segment::Fixed(word) => (path.get(index)? == word).then_some(())?,
            Segment::Named(name)
                if matches!(name.as_str(), "volume" | "cidr") && index + 1 == segments.len() =>
            {
                let rest = path.get(index..).filter(|rest| !rest.is_empty())?;
                taken.push((name.clone(), rest.join("/")));
                return Some(taken);
            }
            Segment::Named(name) => taken.push((name.clone(), path.get(index)?.clone())),
        }
    }
    (path.len() == segments.len()).then_some(taken)
}

/// Finds the definition of a parameter; `mp3` is found under `mp[n]`.
#[must_use]
pub fn lookup<'a>(params: &'a Params, name: &str) -> Option<&'a Spec> {
    if let Some(spec) = params.get(name) {
        return (!name.ends_with("[n]")).then_some(spec);
    }
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = name.get(stem.len()..)?;
    let number: u32 = digits.parse().ok()?;
    let reach = RANGES.iter().find(|(word, _)| *word == stem).map(|(_, reach)| *reach)?;
    let canonical = number.to_string() == digits;
    (canonical && number < reach).then(|| params.get(&format!("{stem}[n]"))).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_table_parses_and_routes() {
        let table = Table::committed().expect("committed table");
        let path: Vec<String> = ["nodes", "pve1", "lxc", "100", "config"].map(str::to_owned).to_vec();
        let (call, taken) = table.find("PUT", &path).expect("config");
        assert_eq!(call.at, "PUT /nodes/{node}/lxc/{vmid}/config");
        assert_eq!(
            taken,
            vec![("node".to_owned(), "pve1".to_owned()), ("vmid".to_owned(), "100".to_owned())]
        );
        assert!(lookup(&call.params, "mp255").is_some());
        assert!(
            lookup(&call.params, "mp256").is_none()
                && lookup(&call.params, "mp01").is_none()
                && lookup(&call.params, "mp[n]").is_none()
        );
    }

    #[test]
    fn every_format_is_known_to_the_checker() {
        let table = Table::committed().expect("committed table");
        for call in table.calls() {
            for (name, spec) in &call.params {
                if let Some(format) = &spec.format {
                    assert!(super::super::format::known(&table, format), "{} {name}: {format}", call.at);
                }
            }
        }
    }
}
