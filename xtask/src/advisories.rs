//! `cargo xtask advisories`: known faults of our dependencies.
//!
//! In: the lock files, `xtask/advisories.json`, and what `deny.toml` ignores with a reason. Out: one line per crate
//! with a known fault, and failure if there is one. CI has no network, so the file is a copy of RustSec's database,
//! reduced to our crates. The file names its commit and day, and `--from` makes it anew from a clone. Its age is
//! reported and fails nothing.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, bail};
use semver::{Version, VersionReq};
use serde::{Deserialize, Serialize};

use crate::workspace::{program, shown};

const FILE: &str = "xtask/advisories.json";
const LOCKS: [&str; 2] = ["Cargo.lock", "fuzz/Cargo.lock"];
/// RustSec publishes several a week: a copy older than this is reported as old.
const OLD_DAYS: u64 = 45;
const DAY_S: u64 = 86_400;

/// What is known, and since when.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CopiedAdvisories {
    source: String,
    commit: String,
    /// When that commit was made.
    committed_at_s: u64,
    date: String,
    /// Every crate that was covered; a crate that is not here was added later.
    crates: BTreeSet<String>,
    advisories: Vec<Advisory>,
}

/// One fault of one crate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Advisory {
    id: String,
    package: String,
    /// `vulnerability`, `unsound`, `unmaintained` or `notice`.
    kind: String,
    /// Versions without it; every other has it.
    free: Vec<VersionReq>,
}

/// The head of an advisory's text.
#[derive(Deserialize)]
struct Published {
    advisory: PublishedAdvisory,
    versions: PublishedVersions,
}

#[derive(Deserialize)]
struct PublishedAdvisory {
    id: String,
    package: String,
    informational: Option<String>,
    withdrawn: Option<toml::Value>,
}

#[derive(Deserialize)]
struct PublishedVersions {
    #[serde(default)]
    patched: Vec<VersionReq>,
    #[serde(default)]
    unaffected: Vec<VersionReq>,
}

#[derive(Deserialize)]
struct Lock {
    package: Vec<Package>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
struct Package {
    name: String,
    version: Version,
    /// None for what is ours.
    source: Option<String>,
}

#[derive(Deserialize)]
struct Deny {
    advisories: Ignores,
}

#[derive(Deserialize)]
struct Ignores {
    ignore: Vec<Ignore>,
}

#[derive(Deserialize)]
struct Ignore {
    id: String,
    reason: String,
}

/// What comes of it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Judged {
    faults: Vec<String>,
    remarks: Vec<String>,
}

/// Checks the lock files.
///
/// # Errors
/// When a locked crate has a known fault, or a file cannot be read.
pub fn check(root: &Path) -> Result<()> {
    let text = std::fs::read_to_string(root.join(FILE)).context(FILE)?;
    let known: CopiedAdvisories = serde_json::from_str(&text).context(FILE)?;
    let deny: Deny =
        toml::from_str(&std::fs::read_to_string(root.join("deny.toml"))?).context("deny.toml")?;
    #[expect(clippy::disallowed_methods, reason = "how old a file is, told to a person")]
    let now = std::time::SystemTime::now();
    let now_s = now.duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let judged = judge(&locked(root)?, &known, &deny.advisories.ignore);
    println!("advisories of {} ({})", known.date, known.commit.get(..12).unwrap_or(&known.commit));
    for remark in judged.remarks.iter().chain(&age(known.committed_at_s, now_s)) {
        println!("warning: {remark}");
    }
    for fault in &judged.faults {
        println!("{fault}");
    }
    match judged.faults.len() {
        0 => Ok(()),
        many => bail!("{many} known faults in locked crates, or reasons that hold no more"),
    }
}

fn age(committed_at_s: u64, now_s: u64) -> Option<String> {
    let days = now_s.saturating_sub(committed_at_s) / DAY_S;
    let says = format!("{FILE} is {days} days old: run `cargo xtask advisories --from CLONE`");
    (days > OLD_DAYS).then_some(says)
}

fn judge(locked: &BTreeSet<Package>, known: &CopiedAdvisories, ignored: &[Ignore]) -> Judged {
    let mut judged = Judged::default();
    let mut used = BTreeSet::new();
    for package in locked {
        if !known.crates.contains(&package.name) {
            judged
                .remarks
                .push(format!("{} came after {FILE} was made, and is not known there", package.name));
        }
        for advisory in known.advisories.iter().filter(|one| one.package == package.name) {
            if advisory.free.iter().any(|free| free.matches(&package.version)) {
                continue;
            }
            if ignored.iter().any(|ignore| ignore.id == advisory.id && !ignore.reason.is_empty()) {
                used.insert(advisory.id.as_str());
                continue;
            }
            judged.faults.push(format!(
                "{} {}: {} ({}), see https://rustsec.org/advisories/{}",
                package.name, package.version, advisory.id, advisory.kind, advisory.id
            ));
        }
    }
    for ignore in ignored.iter().filter(|ignore| !used.contains(ignore.id.as_str())) {
        judged
            .faults
            .push(format!("deny.toml ignores {}, which no locked crate has, or gives no reason", ignore.id));
    }
    judged
}

/// Every crate that is not ours.
fn locked(root: &Path) -> Result<BTreeSet<Package>> {
    let mut all = BTreeSet::new();
    for file in LOCKS {
        let lock: Lock =
            toml::from_str(&std::fs::read_to_string(root.join(file)).context(file)?).context(file)?;
        all.extend(lock.package.into_iter().filter(|package| package.source.is_some()));
    }
    Ok(all)
}

/// Makes the file anew from a clone of `https://github.com/rustsec/advisory-db`.
///
/// # Errors
/// When the clone cannot be read, or an advisory of ours in it.
pub fn refresh(root: &Path, clone: &Path) -> Result<()> {
    let crates: BTreeSet<String> = locked(root)?.into_iter().map(|package| package.name).collect();
    let ask = |words: &[&str]| {
        let mut git = program("git");
        git.arg("-C").arg(clone).args(words);
        let said = git.output().with_context(|| format!("cannot run `{}`", shown(&git)))?;
        match said.status.success() {
            true => Ok(String::from_utf8_lossy(&said.stdout).into_owned()),
            false => bail!("`{}`: {}", shown(&git), String::from_utf8_lossy(&said.stderr)),
        }
    };
    let head = ask(&["log", "-1", "--format=%H %ct %cs"])?;
    let [commit, committed_at_s, date] = head.split_whitespace().collect::<Vec<_>>()[..] else {
        bail!("git gave no commit, but {head:?}");
    };
    let mut advisories = Vec::new();
    for name in ask(&["ls-tree", "-r", "--name-only", commit, "crates/"])?.lines() {
        let of = name.split('/').nth(1).unwrap_or_default();
        if !crates.contains(of) || !name.ends_with(".md") {
            continue;
        }
        advisories.extend(read(&ask(&["show", &format!("{commit}:{name}")])?).context(name.to_owned())?);
    }
    let known = CopiedAdvisories {
        source: "https://github.com/rustsec/advisory-db".to_owned(),
        commit: commit.to_owned(),
        committed_at_s: committed_at_s.parse().context("the time of the commit")?,
        date: date.to_owned(),
        crates,
        advisories,
    };
    let (many, of) = (known.advisories.len(), known.crates.len());
    std::fs::write(root.join(FILE), format!("{}\n", serde_json::to_string_pretty(&known)?)).context(FILE)?;
    println!("advisories: {many} of {of} crates, of {date}");
    Ok(())
}

/// One published text: its header is in a code fence. A withdrawn advisory gives none.
fn read(text: &str) -> Result<Option<Advisory>> {
    let head = text.split_once("```toml").and_then(|(_, rest)| rest.split_once("```"));
    let (head, _) = head.context("it has no head in TOML")?;
    let Published { advisory, versions } = toml::from_str(head)?;
    if advisory.withdrawn.is_some() {
        return Ok(None);
    }
    Ok(Some(Advisory {
        id: advisory.id,
        package: advisory.package,
        kind: advisory.informational.unwrap_or_else(|| "vulnerability".to_owned()),
        free: versions.patched.into_iter().chain(versions.unaffected).collect(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "```toml\n[advisory]\nid = \"RUSTSEC-2026-0190\"\npackage = \"anyhow\"\ndate = \"2026-06-25\"\n\
                        informational = \"unsound\"\n\n[versions]\npatched = [\">= 1.0.103\"]\nunaffected = [\"< 1.0.3\"]\n\
                        ```\n\n# Unsound\n";

    fn known() -> CopiedAdvisories {
        CopiedAdvisories {
            source: String::new(),
            commit: String::new(),
            committed_at_s: 0,
            date: String::new(),
            crates: ["anyhow".to_owned()].into(),
            advisories: vec![read(TEXT).unwrap().unwrap()],
        }
    }

    fn one(name: &str, version: &str) -> BTreeSet<Package> {
        [Package { name: name.to_owned(), version: version.parse().unwrap(), source: None }].into()
    }

    #[test]
    fn a_version_that_is_in_no_range_without_the_fault_has_it() {
        for (version, faults) in [("1.0.102", 1), ("1.0.103", 0), ("1.0.2", 0), ("2.0.0", 0)] {
            let judged = judge(&one("anyhow", version), &known(), &[]);
            assert_eq!(judged.faults.len(), faults, "{version}: {judged:?}");
        }
    }

    #[test]
    fn what_is_ignored_has_a_reason_and_is_there() {
        let ignore =
            |reason: &str| [Ignore { id: "RUSTSEC-2026-0190".to_owned(), reason: reason.to_owned() }];
        assert_eq!(judge(&one("anyhow", "1.0.9"), &known(), &ignore("never called")), Judged::default());
        assert_eq!(judge(&one("anyhow", "1.0.9"), &known(), &ignore("")).faults.len(), 2);
        assert_eq!(judge(&one("anyhow", "1.0.103"), &known(), &ignore("never called")).faults.len(), 1);
    }

    #[test]
    fn a_crate_that_came_later_and_an_old_file_are_reported() {
        let judged = judge(&one("other", "1.0.0"), &known(), &[]);
        assert_eq!((judged.faults.len(), judged.remarks.len()), (0, 1));
        assert_eq!(age(0, OLD_DAYS * DAY_S), None);
        assert!(age(0, (OLD_DAYS + 1) * DAY_S).unwrap().contains("46 days old"));
        assert_eq!(age(5, 0), None, "a clock that is behind");
    }

    #[test]
    fn one_that_was_withdrawn_is_none() {
        let text = TEXT.replace("date =", "withdrawn = \"2026-07-01\"\ndate =");
        assert_eq!(read(&text).unwrap(), None);
    }
}
