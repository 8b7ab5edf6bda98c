//! `cargo xtask tidy`: the house rules that a program can check.
//!
//! In: the tracked files, `ARCHITECTURE.md`, `cargo metadata`. Out: one line per breach, and failure if there is one.
//! Each other file of this module is one rule family; each has a unit test with something it must refuse.

mod circles;
mod crates;
mod files;
mod helper;
mod layers;
mod links;
mod runbook;
mod rust_names;
mod words;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// One breach of one rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Breach {
    /// The file, relative to the workspace, and the line where there is one.
    pub place: String,
    /// Which rule, and what to do.
    pub says: String,
}

impl Breach {
    fn new(place: impl Into<String>, says: impl Into<String>) -> Self {
        Self { place: place.into(), says: says.into() }
    }
}

/// One tracked text file.
pub struct Source {
    /// Relative to the workspace.
    pub path: String,
    pub text: String,
}

/// The graph of imports of a checkout, as a table.
///
/// # Errors
/// When its files cannot be read.
pub fn imports(root: &Path) -> Result<()> {
    print!("{}", circles::table(&tracked(root)?));
    Ok(())
}

/// Checks everything.
///
/// # Errors
/// When a rule is broken, or when the workspace cannot be read.
pub fn run(root: &Path) -> Result<()> {
    let sources = tracked(root)?;
    let architecture =
        std::fs::read_to_string(root.join("ARCHITECTURE.md")).context("ARCHITECTURE.md must be there")?;
    let table = layers::Table::parse(&architecture)?;
    let mut breaches = files::check(&sources);
    breaches.extend(layers::check(&table, &sources));
    breaches.extend(circles::check(&sources));
    breaches.extend(words::check(&sources));
    breaches.extend(runbook::check(&sources));
    breaches.extend(links::check(&sources, |path| root.join(path).exists()));
    breaches.extend(crates::check(&crates::workspace(root)?));
    breaches.extend(helper::check(&sources, &helper::tree(root)?));
    let stale = crate::planted::stale(root)?;
    breaches.extend(stale.into_iter().map(|says| Breach::new("planted bugs", says)));
    breaches.sort();
    for breach in &breaches {
        println!("{}: {}", breach.place, breach.says);
    }
    if breaches.is_empty() {
        println!("tidy: {} files, {} layers, no breach", sources.len(), table.len());
        Ok(())
    } else {
        bail!("{} breaches of the house rules", breaches.len())
    }
}

/// What git tracks, or would: files of the work tree that are not ignored.
fn tracked(root: &Path) -> Result<Vec<Source>> {
    #[expect(clippy::disallowed_methods, reason = "git knows which files are ours")]
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("git ls-files")?;
    if !output.status.success() {
        bail!("git ls-files failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let names = String::from_utf8(output.stdout).context("file names are UTF-8")?;
    let mut sources = Vec::new();
    for name in names.lines() {
        let path: PathBuf = root.join(name);
        if let Ok(text) = std::fs::read_to_string(&path) {
            sources.push(Source { path: name.to_owned(), text });
        }
    }
    Ok(sources)
}
