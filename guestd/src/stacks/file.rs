//! File format of `stacks.toml`, and checks across its fields.
//!
//! Each error names file, key and what to do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdfast_protocol::id::{StackName, VolumeName};
use holdfast_protocol::local::window::STACKS_MAX;
use serde::Deserialize;

use super::order::{OrderError, start_order};
use super::{
    Apt, AptAfter, AptSnapshot, Class, DefaultState, DriverOf, Hooks, Limits, OnFailure, Project,
    RestoreTest, Security, Stack, Stacks, Upgrades, VolumeRef,
};
use crate::file::{self, Eyes, FileError};
use crate::paths::Paths;

const BYTES_MAX: usize = 64 * 1024;

/// Of one stack.
const UNITS_MAX: usize = 32;
const VOLUMES_MAX: usize = 16;
const ARGUMENTS_MAX: usize = 64;

/// An hour: no single step takes longer.
const SECONDS_MAX: u32 = 3_600;

/// A backup must not stop stacks for longer than two hours.
const BOUND_SECONDS: std::ops::RangeInclusive<u32> = 30..=7_200;

/// A snapshot is no backup: a month at most.
const HOURS_MAX: u32 = 720;

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StacksError {
    /// It cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{} is not UTF-8 text: write it again", path.display())]
    Text { path: PathBuf },
    /// Not of our form.
    #[error("{} is refused at `{at}`: correct it there", path.display())]
    Form {
        path: PathBuf,
        at: String,
        #[source]
        source: Box<toml::de::Error>,
    },
    /// Of our form, but it cannot be right.
    #[error("{} is refused at `{at}`: {rule}", path.display())]
    Value { path: PathBuf, at: String, rule: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileForm {
    bound_max_s: Option<u32>,
    #[serde(default)]
    stack: BTreeMap<StackName, StackForm>,
    #[serde(default)]
    apt: AptForm,
    #[serde(default)]
    upgrades: UpgradesForm,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum DriverForm {
    Compose,
    Systemd,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StackForm {
    driver: DriverForm,
    directory: Option<PathBuf>,
    file: Option<PathBuf>,
    project: Option<String>,
    #[serde(default)]
    units: Vec<String>,
    #[serde(default)]
    after: Vec<StackName>,
    #[serde(default)]
    wanted: WantedForm,
    #[serde(default)]
    on_failure: OnFailure,
    #[serde(default)]
    restore_test: TestForm,
    stop_timeout_s: Option<u32>,
    start_timeout_s: Option<u32>,
    health_timeout_s: Option<u32>,
    #[serde(default)]
    hooks: HooksForm,
    #[serde(default)]
    volumes: BTreeMap<String, VolumeForm>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WantedForm {
    #[default]
    Running,
    Stopped,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TestForm {
    #[default]
    Check,
    Leave,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct HooksForm {
    pre_quiesce: Option<Vec<String>>,
    post_resume: Option<Vec<String>>,
    health: Option<Vec<String>>,
    timeout_s: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VolumeForm {
    class: Class,
    volume: Option<VolumeName>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct AptForm {
    snapshot: Option<AptSnapshot>,
    after: Option<AptAfter>,
    keep_hours: Option<u32>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct UpgradesForm {
    #[serde(default)]
    security: Security,
}

/// Where a mistake is, and what is expected there.
type Mistake = (String, String);

/// Reads the file; no stacks when there is none.
pub fn load(paths: &Paths) -> Result<Stacks, StacksError> {
    let path = paths.stacks_file();
    let Some(bytes) = file::read(&path, BYTES_MAX, Eyes::All)? else { return Ok(Stacks::default()) };
    let text = std::str::from_utf8(&bytes).map_err(|_| StacksError::Text { path: path.clone() })?;
    parse(text, &path)
}

/// Checks the file's text. `path` is only named in errors.
pub fn parse(text: &str, path: &Path) -> Result<Stacks, StacksError> {
    let form = |at, source| StacksError::Form { path: path.to_owned(), at, source: Box::new(source) };
    let reader = toml::Deserializer::parse(text).map_err(|source| form(".".to_owned(), source))?;
    let read: FileForm = serde_path_to_error::deserialize(reader)
        .map_err(|error| form(error.path().to_string(), error.into_inner()))?;
    whole(read).map_err(|(at, rule)| StacksError::Value { path: path.to_owned(), at, rule })
}

fn whole(form: FileForm) -> Result<Stacks, Mistake> {
    let bound_max = form.bound_max_s.map(|seconds| match seconds {
        s if BOUND_SECONDS.contains(&s) => Ok(Duration::from_secs(u64::from(s))),
        _ => Err(("bound_max_s".to_owned(), "30 to 7200 seconds".to_owned())),
    });
    if form.stack.len() > STACKS_MAX {
        return Err(("stack".to_owned(), format!("at most {STACKS_MAX} stacks: put some together")));
    }
    let apt = apt(&form.apt)?;
    let stacks = form.stack.into_iter().map(|(name, form)| stack(name, form));
    let stacks = start_order(stacks.collect::<Result<Vec<_>, _>>()?).map_err(|error| match error {
        OrderError::Unknown { stack, after } => {
            (format!("stack.{stack}.after"), format!("there is no stack `{after}`: name one of this file"))
        }
        OrderError::Circle { stack } => {
            (format!("stack.{stack}.after"), "the dependency is circular: remove one step".to_owned())
        }
    })?;
    let upgrades = upgrades(&form.upgrades, &form.apt);
    Ok(Stacks { stacks, bound_max: bound_max.transpose()?, apt, upgrades })
}

fn apt(form: &AptForm) -> Result<Apt, Mistake> {
    let snapshot = form.snapshot.unwrap_or_default();
    let keep_hours = form.keep_hours.unwrap_or(Apt::default().keep_hours);
    if keep_hours == 0 || keep_hours > HOURS_MAX {
        return Err(("apt.keep_hours".to_owned(), format!("1 to {HOURS_MAX}")));
    }
    // An operator who has snapshots taken wants to know when they are needed. Nothing is rolled back unless the file
    // says so.
    let after = match (form.after, snapshot) {
        (None, AptSnapshot::Off) => AptAfter::Off,
        (None, AptSnapshot::Try | AptSnapshot::Must) => AptAfter::Report,
        (Some(AptAfter::RollBack), AptSnapshot::Off) => {
            let rule = "there is no snapshot to go back to: set `snapshot` to `try` or `must`";
            return Err(("apt.after".to_owned(), rule.to_owned()));
        }
        (Some(after), _) => after,
    };
    Ok(Apt { snapshot, after, keep_hours })
}

/// The settings of `[apt]` also count for upgrades. Where it sets nothing, no operator is present to repair what an
/// upgrade broke: the guest is rolled back.
fn upgrades(form: &UpgradesForm, apt: &AptForm) -> Upgrades {
    let usual = Upgrades::default().apt;
    let snapshot = apt.snapshot.unwrap_or(usual.snapshot);
    let after = apt.after.unwrap_or(match snapshot {
        AptSnapshot::Off => AptAfter::Report,
        AptSnapshot::Try | AptSnapshot::Must => usual.after,
    });
    let keep_hours = apt.keep_hours.unwrap_or(usual.keep_hours);
    Upgrades { security: form.security, apt: Apt { snapshot, after, keep_hours } }
}

fn stack(name: StackName, form: StackForm) -> Result<Stack, Mistake> {
    let at = |key: &str| format!("stack.{name}.{key}");
    let seconds = |key: &str, given: Option<u32>, default: u32| match given.unwrap_or(default) {
        s if (1..=SECONDS_MAX).contains(&s) => Ok(Duration::from_secs(u64::from(s))),
        _ => Err((at(key), format!("1 to {SECONDS_MAX} seconds"))),
    };
    let limits = Limits {
        stop: seconds("stop_timeout_s", form.stop_timeout_s, 60)?,
        start: seconds("start_timeout_s", form.start_timeout_s, 120)?,
        health: seconds("health_timeout_s", form.health_timeout_s, 180)?,
        hook: seconds("hooks.timeout_s", form.hooks.timeout_s, 30)?,
    };
    let hook = |key: &str, argv: Option<Vec<String>>| match argv {
        Some(argv) if !is_call(&argv) => Err((
            at(key),
            "a program by its absolute path, then its arguments: no shell reads this".to_owned(),
        )),
        other => Ok(other),
    };
    let hooks = Hooks {
        pre_quiesce: hook("hooks.pre_quiesce", form.hooks.pre_quiesce)?,
        post_resume: hook("hooks.post_resume", form.hooks.post_resume)?,
        health: hook("hooks.health", form.hooks.health)?,
    };
    if form.volumes.len() > VOLUMES_MAX {
        return Err((at("volumes"), format!("at most {VOLUMES_MAX}")));
    }
    if let Some(odd) = form.volumes.keys().find(|key| !is_variable(key)) {
        return Err((at(&format!("volumes.{odd}")), "lower-case letters, digits and '_'".to_owned()));
    }
    let volumes = form
        .volumes
        .into_iter()
        .map(|(key, form)| (key, VolumeRef { class: form.class, volume: form.volume }));
    let driver = driver(&at, form.driver, (form.directory, form.file, form.project), form.units)?;
    Ok(Stack {
        driver,
        after: form.after,
        limits,
        hooks,
        wanted: match form.wanted {
            WantedForm::Running => DefaultState::Running,
            WantedForm::Stopped => DefaultState::Stopped,
        },
        on_failure: form.on_failure,
        restore_test: match form.restore_test {
            TestForm::Check => RestoreTest::Check,
            TestForm::Leave => RestoreTest::Leave,
        },
        volumes: volumes.collect(),
        name,
    })
}

fn driver(
    at: &impl Fn(&str) -> String,
    kind: DriverForm,
    (directory, file, name): (Option<PathBuf>, Option<PathBuf>, Option<String>),
    units: Vec<String>,
) -> Result<DriverOf, Mistake> {
    let refuse = |key: &str, rule: &str| Err((at(key), rule.to_owned()));
    match kind {
        DriverForm::Systemd => {
            if directory.is_some() || file.is_some() || name.is_some() {
                return refuse("driver", "a systemd stack has units, not directory, file or project");
            }
            if units.is_empty() || units.len() > UNITS_MAX {
                return refuse("units", "1 to 32 units");
            }
            match units.iter().find(|unit| !is_unit(unit)) {
                Some(_) => refuse("units", "whole names such as \"app.service\", without globs"),
                None => Ok(DriverOf::Systemd(units)),
            }
        }
        DriverForm::Compose => {
            if !units.is_empty() {
                return refuse("units", "a compose stack has a directory, not units");
            }
            let Some(directory) = directory.filter(|path| path.is_absolute()) else {
                return refuse("directory", "the project's folder, as an absolute path");
            };
            if file.as_ref().is_some_and(|file| file.as_os_str().is_empty()) {
                return refuse("file", "the compose file, within the folder or absolute");
            }
            if name.as_ref().is_some_and(|name| !is_project(name)) {
                return refuse("project", "lower-case letters, digits, '-' and '_', first a letter or digit");
            }
            Ok(DriverOf::Compose(Project { directory, file, name }))
        }
    }
}

fn is_call(argv: &[String]) -> bool {
    argv.len() <= ARGUMENTS_MAX
        && argv.first().is_some_and(|program| program.starts_with('/'))
        && argv.iter().all(|argument| !argument.contains('\0'))
}

fn is_variable(key: &str) -> bool {
    key.starts_with(|c: char| c.is_ascii_lowercase())
        && key.len() <= 40
        && key.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

fn is_unit(unit: &str) -> bool {
    const KINDS: [&str; 6] = [".service", ".socket", ".target", ".timer", ".path", ".mount"];
    KINDS.iter().any(|kind| unit.len() > kind.len() && unit.ends_with(kind))
        && unit.len() <= 255
        && unit.starts_with(|c: char| c.is_ascii_alphanumeric())
        && unit.chars().all(|c| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c))
}

fn is_project(name: &str) -> bool {
    name.len() <= 63
        && name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c))
}
