//! Limits on the helper's code and dependencies.
//!
//! In: its sources, `helper/dependencies.txt`, `cargo tree`. A dependency that is added, removed or changes its version
//! is a breach until it is written into the file.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Breach, Source};

const SOURCES: &str = "helper/src/";
const TREE: &str = "helper/dependencies.txt";
/// Lines of code, without tests; what is read aloud in one evening.
const LINES_MAX: usize = 1500;
const DIRECT_MAX: usize = 5;

/// What the helper is linked from, as cargo resolves it.
pub struct Tree {
    direct: usize,
    all: Vec<String>,
}

pub fn tree(root: &Path) -> Result<Tree> {
    #[expect(clippy::disallowed_methods, reason = "cargo knows the tree")]
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--locked",
            "--package",
            "holdfast-helper",
            "--edges",
            "normal,build",
            "--prefix",
            "depth",
        ])
        .args(["--target", "x86_64-unknown-linux-gnu", "--format", " {p}"])
        .current_dir(root)
        .output()
        .context("cargo tree")?;
    if !output.status.success() {
        bail!("cargo tree failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(Tree::parse(&String::from_utf8_lossy(&output.stdout)))
}

impl Tree {
    /// Lines such as `1 serde v1.0.229 (*)`: depth, name, version, remarks.
    fn parse(text: &str) -> Self {
        let mut direct = 0;
        let mut all = Vec::new();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let (Some(depth), Some(name), Some(version)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            direct += usize::from(depth == "1");
            if depth != "0" {
                all.push(format!("{name} {}", version.trim_start_matches('v')));
            }
        }
        all.sort();
        all.dedup();
        Self { direct, all }
    }
}

/// Checks all three.
pub fn check(sources: &[Source], tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let lines: usize = sources.iter().filter(|source| source.path.starts_with(SOURCES)).map(lines_of).sum();
    if lines > LINES_MAX {
        breaches.push(Breach::new(
            SOURCES,
            format!("{lines} lines without tests, {LINES_MAX} are allowed: root does less"),
        ));
    }
    if tree.direct > DIRECT_MAX {
        let says = format!("{} direct dependencies, {DIRECT_MAX} are allowed", tree.direct);
        breaches.push(Breach::new("helper/Cargo.toml", says));
    }
    let committed =
        sources.iter().find(|source| source.path == TREE).map_or("", |source| source.text.as_str());
    let committed: Vec<&str> = committed.lines().filter(|line| !line.starts_with('#')).collect();
    for new in tree.all.iter().filter(|line| !committed.contains(&line.as_str())) {
        breaches.push(Breach::new(TREE, format!("`{new}` is linked into the helper and not written down")));
    }
    for old in committed.iter().filter(|line| !tree.all.iter().any(|linked| linked == *line)) {
        breaches.push(Breach::new(TREE, format!("`{old}` is written down and not linked into the helper")));
    }
    breaches
}

/// Lines that are neither empty nor comments, up to the tests.
fn lines_of(source: &Source) -> usize {
    let code = source.text.split("\n#[cfg(test)]\nmod tests").next().unwrap_or_default();
    code.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "0 holdfast-helper v0.1.0 (/x/helper)\n1 caps v0.5.6\n2 libc v0.2.1\n1 serde v1.0.2\n2 libc v0.2.1 (*)\n";

    fn breaches(path: &str, text: &str) -> usize {
        let source = |path: &str, text: &str| Source { path: path.to_owned(), text: text.to_owned() };
        let tree = source(TREE, "# Why.\ncaps 0.5.6\nlibc 0.2.1\nserde 1.0.2\n");
        check(&[source(path, text), tree], &Tree::parse(OUTPUT)).len()
    }

    #[test]
    fn each_rule_refuses_something() {
        assert_eq!(breaches("helper/src/a.rs", "//! Docs.\n"), 0);
        let long = "x\n".repeat(LINES_MAX + 1);
        assert_eq!(breaches("helper/src/a.rs", &long), 1);
        assert_eq!(breaches("agentd/src/a.rs", &long), 0);
        assert_eq!(breaches("helper/src/a.rs", &format!("x\n#[cfg(test)]\nmod tests {{\n{long}")), 0);
        let more = format!("{OUTPUT}1 a v1\n1 b v1\n1 c v1\n1 d v1\n");
        assert_eq!(check(&[], &Tree::parse(&more)).len(), 1 + 7, "too many, and none written down");
        let old = Source { path: TREE.to_owned(), text: "gone 1.0.0\n".to_owned() };
        assert_eq!(check(&[old], &Tree::parse("")).len(), 1);
    }
}
