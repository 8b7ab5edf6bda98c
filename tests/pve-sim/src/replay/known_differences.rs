//! Known and harmless differences to a recording.
//!
//! In: the committed files in `conformance/`. Every entry carries its reason. An entry that matches nothing in a full run is reported, so
//! that the list cannot outlive its causes.
use std::collections::BTreeMap;

use regex::Regex;
use serde::Deserialize;

/// One understood difference.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownDifferences {
    /// The call, as `GET /nodes/{node}/lxc`; any when absent.
    pub call: Option<String>,
    /// A pattern in the recorded evidence (answer, task); any when absent.
    pub recorded: Option<String>,
    /// A pattern in our difference; any when absent.
    pub difference: Option<String>,
    /// A pattern in the recorder's note; any when absent.
    pub note: Option<String>,
    /// Why it is harmless.
    pub reason: String,
}

/// Calls that are not served.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Out {
    /// A pattern over `METHOD /template` or the plain path.
    pub call: Option<String>,
    /// A pattern over parameters, path and recorded evidence.
    pub about: Option<String>,
    /// A pattern over the name of the file.
    pub file: Option<String>,
    /// Why it is not served.
    pub reason: String,
}

/// Assumptions of a recording about its principals.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Principal {
    /// Its full id.
    pub id: String,
    /// Lines in the form of `user.cfg`.
    #[serde(default)]
    pub user_cfg: Vec<String>,
}

/// A backup server that recordings take for granted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    pub host: String,
    pub fingerprint: String,
    /// Folders of namespaces, as `pvestore/ns/hf`.
    pub namespaces: Vec<String>,
    /// Accounts and their roles.
    pub roles: BTreeMap<String, String>,
}

/// A storage on one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub name: String,
    /// Its key's JSON, as far as the recorder did not scrub it.
    pub key: Option<String>,
    /// Lines in the form of `storage.cfg`.
    pub storage_cfg: Vec<String>,
}

/// A storage of the node that the lab does not have.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Storage {
    pub name: String,
    /// `dir`, `btrfs`
    pub kind: String,
    /// Lines in the form of `storage.cfg`.
    pub storage_cfg: Vec<String>,
}

/// Backup servers and the storages on them.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beyond {
    #[serde(default, rename = "server")]
    pub servers: Vec<Server>,
    #[serde(default, rename = "entry")]
    pub entries: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Files {
    #[serde(default)]
    difference: Vec<KnownDifferences>,
    #[serde(default)]
    out: Vec<Out>,
    #[serde(default)]
    principal: Vec<Principal>,
    #[serde(default)]
    storage: Vec<Storage>,
}

/// The compiled lists.
#[derive(Debug)]
pub struct Book {
    differences: Vec<(KnownDifferences, BTreeMap<&'static str, Regex>)>,
    out: Vec<(Out, BTreeMap<&'static str, Regex>)>,
    /// Principals by id.
    pub principals: Vec<Principal>,
    /// Storages that recordings take for granted.
    pub storages: Vec<Storage>,
    /// Servers outside of the node.
    pub beyond: Beyond,
}

impl Book {
    /// The committed lists.
    ///
    /// # Errors
    /// When a file or a pattern does not parse.
    pub fn committed() -> Result<Self, String> {
        let parse = |name: &str, text: &str| {
            toml::from_str::<Files>(text).map_err(|error| format!("{name}: {error}"))
        };
        let differences = parse("differences.toml", include_str!("../../conformance/differences.toml"))?;
        let scope = parse("scope.toml", include_str!("../../conformance/scope.toml"))?;
        let premises = parse("principals.toml", include_str!("../../conformance/principals.toml"))?;
        let compile =
            |fields: [(&'static str, &Option<String>); 3]| -> Result<BTreeMap<&'static str, Regex>, String> {
                let given = fields
                    .into_iter()
                    .filter_map(|(name, pattern)| pattern.as_ref().map(|pattern| (name, pattern)));
                given
                    .map(|(name, pattern)| {
                        Regex::new(pattern).map(|regex| (name, regex)).map_err(|error| error.to_string())
                    })
                    .collect()
            };
        Ok(Self {
            differences: differences
                .difference
                .into_iter()
                .map(|known| {
                    compile([
                        ("recorded", &known.recorded),
                        ("difference", &known.difference),
                        ("note", &known.note),
                    ])
                    .map(|regexes| (known, regexes))
                })
                .collect::<Result<_, _>>()?,
            out: scope
                .out
                .into_iter()
                .map(|out| {
                    compile([("call", &out.call), ("about", &out.about), ("file", &out.file)])
                        .map(|regexes| (out, regexes))
                })
                .collect::<Result<_, _>>()?,
            principals: premises.principal,
            storages: parse("storages.toml", include_str!("../../conformance/storages.toml"))?.storage,
            beyond: toml::from_str(include_str!("../../conformance/backup_servers.toml"))
                .map_err(|error| format!("backup_servers.toml: {error}"))?,
        })
    }

    /// The reason why a difference is harmless, and the number of its entry.
    #[must_use]
    pub fn harmless(
        &self,
        call: &str,
        evidence: &str,
        note: &str,
        difference: &str,
    ) -> Option<(usize, &str)> {
        self.differences.iter().enumerate().find_map(|(number, (known, regexes))| {
            let fits = |name: &str, text: &str| regexes.get(name).is_none_or(|regex| regex.is_match(text));
            let here = known.call.as_deref().is_none_or(|held| held == call);
            (here && fits("recorded", evidence) && fits("difference", difference) && fits("note", note))
                .then_some((number, known.reason.as_str()))
        })
    }

    /// The reason why a call is not served.
    #[must_use]
    pub fn out_of_scope(&self, file: &str, call: &str, about: &str) -> Option<&str> {
        self.out.iter().find_map(|(out, regexes)| {
            let fits = |name: &str, text: &str| regexes.get(name).is_none_or(|regex| regex.is_match(text));
            (fits("file", file) && fits("call", call) && fits("about", about)).then_some(out.reason.as_str())
        })
    }

    /// Entries that nothing matched.
    #[must_use]
    pub fn unused(&self, used: &std::collections::BTreeSet<usize>) -> Vec<&str> {
        self.differences
            .iter()
            .enumerate()
            .filter(|(number, _)| !used.contains(number))
            .map(|(_, (known, _))| known.reason.as_str())
            .collect()
    }
}
