//! Arguments of commands that change parts of a host's document.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args as ClapArgs, Subcommand};
use holdfast_protocol::desired::Reason;
use holdfast_protocol::generation::Generation;
use serde_json::{Map, Value};

use super::{AssumeYes, reason};

/// How a change is made.
#[derive(Clone, Debug, ClapArgs)]
pub struct ChangeArgs {
    /// The reason, kept in the history; by default it says what was changed.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub reason: Option<Reason>,
    /// Show what the change would do, and change nothing.
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
    #[command(flatten)]
    pub assume_yes: AssumeYes,
}

/// Fields to set on a part.
#[derive(Clone, Debug, ClapArgs)]
pub struct SetArgs {
    /// The host's name or id.
    pub host: String,
    /// The name; of a guest also its uid.
    pub name: String,
    /// Fields by their path in the document, such as size.memory_mib=1024. A value is JSON where it is JSON, else text;
    /// an empty one takes the field back to its default.
    #[arg(required = true, value_name = "FIELD=VALUE")]
    pub fields: Vec<FieldTerm>,
    #[command(flatten)]
    pub change: ChangeArgs,
}

/// A part in a file.
#[derive(Clone, Debug, ClapArgs)]
pub struct PutArgs {
    /// The host's name or id.
    pub host: String,
    /// The part: JSON, or TOML when its name ends in .toml; `-` for JSON from standard input.
    pub file: PathBuf,
    #[command(flatten)]
    pub change: ChangeArgs,
}

/// A part to remove.
#[derive(Clone, Debug, ClapArgs)]
pub struct RemoveArgs {
    /// The host's name or id.
    pub host: String,
    /// The name; of a guest also its uid.
    pub name: String,
    /// Leave on the host what it still has of it: a guest runs on, unmanaged, and a storage target stays attached.
    #[arg(long)]
    pub leave: bool,
    #[command(flatten)]
    pub change: ChangeArgs,
}

/// Of `holdfast policy`.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Show the backup policies of a host's document: what each promises, who is under it, what is not in force yet.
    List {
        /// The host's name or id.
        host: String,
    },
    /// Add a backup policy, or set the one of that name whole.
    Put(PutArgs),
    /// Change fields of a backup policy.
    #[command(after_help = "\
Example:
  holdfast policy set box7 usual tiers.local.retention='{\"keep\":{\"daily\":14}}' --dry-run")]
    Set(SetArgs),
    /// Remove a backup policy that no guest is under.
    Remove(RemoveArgs),
}

/// Of `holdfast desired rollback`.
#[derive(Debug, ClapArgs)]
pub struct RollbackArgs {
    /// The host's name or id.
    pub host: String,
    /// The generation whose content is put again, as a new generation: see `holdfast desired history`.
    #[arg(value_parser = generation)]
    pub to: Generation,
    #[command(flatten)]
    pub change: ChangeArgs,
}

pub fn generation(text: &str) -> Result<Generation, std::num::ParseIntError> {
    text.parse().map(Generation::new)
}

/// One field with its new value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldTerm {
    path: Vec<String>,
    value: Value,
}

impl fmt::Display for FieldTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=", self.path.join("."))?;
        match &self.value {
            Value::Null => Ok(()),
            Value::String(text) => f.write_str(text),
            other => write!(f, "{other}"),
        }
    }
}

/// Why a text is no such term.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldTermError {
    #[error("write it as FIELD=VALUE, such as size.memory_mib=1024")]
    Form,
    /// Two terms that cannot both hold.
    #[error("{path} is set twice")]
    Twice { path: String },
}

impl FromStr for FieldTerm {
    type Err = FieldTermError;
    fn from_str(text: &str) -> Result<Self, FieldTermError> {
        let (path, value) = text.split_once('=').ok_or(FieldTermError::Form)?;
        let path: Vec<String> = path.split('.').map(str::to_owned).collect();
        if path.iter().any(String::is_empty) {
            return Err(FieldTermError::Form);
        }
        let value = if value.is_empty() {
            Value::Null
        } else {
            serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()))
        };
        Ok(Self { path, value })
    }
}

/// The JSON merge of all terms.
pub fn merge_of(terms: &[FieldTerm]) -> Result<Value, FieldTermError> {
    let mut merge = Map::new();
    for term in terms {
        let twice = || FieldTermError::Twice { path: term.path.join(".") };
        let Some((last, parents)) = term.path.split_last() else { return Err(FieldTermError::Form) };
        let mut at = &mut merge;
        for parent in parents {
            let inner = at.entry(parent.clone()).or_insert_with(|| Value::Object(Map::new()));
            at = inner.as_object_mut().ok_or_else(twice)?;
        }
        if at.insert(last.clone(), term.value.clone()).is_some() {
            return Err(twice());
        }
    }
    Ok(Value::Object(merge))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn merge(terms: &[&str]) -> Result<Value, FieldTermError> {
        let terms: Result<Vec<FieldTerm>, _> = terms.iter().map(|term| term.parse()).collect();
        merge_of(&terms?)
    }

    #[test]
    fn fields_make_one_merge() {
        let terms =
            ["size.memory_mib=1024", "size.cores=2", "run=stopped", "policy=", "network.gateway=10.0.0.1"];
        let expected = json!({ "size": { "memory_mib": 1024, "cores": 2 }, "run": "stopped", "policy": null,
            "network": { "gateway": "10.0.0.1" } });
        assert_eq!(merge(&terms).unwrap(), expected);
        let whole = json!({ "network": { "resolver": { "own": { "servers": ["10.0.0.53"] } } } });
        assert_eq!(merge(&[r#"network.resolver={"own":{"servers":["10.0.0.53"]}}"#]).unwrap(), whole);
        assert_eq!(merge(&[r#"name="123""#]).unwrap(), json!({ "name": "123" }));
    }

    #[test]
    fn what_is_no_field_or_there_twice_is_refused() {
        for bad in ["run", "=x", "size.=1", ".size=1", "size..cores=1"] {
            assert_eq!(merge(&[bad]), Err(FieldTermError::Form), "{bad}");
        }
        for twice in [["run=stopped", "run=running"], ["size=1", "size.cores=2"], ["size.cores=2", "size=1"]]
        {
            assert!(matches!(merge(&twice), Err(FieldTermError::Twice { .. })), "{twice:?}");
        }
    }
}
