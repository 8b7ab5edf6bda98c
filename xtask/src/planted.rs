//! A copy of the tree with planted bugs, and their hunt.
//!
//! `cargo xtask planted`. In: the edits of `tests/harness/bugs.toml`. Out: a copy under `target/` in which every edit
//! is made, so that one build has all bugs and a run chooses one by its name. Then the harness of that copy searches
//! for each. The checkout is not changed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::workspace::{must, program, root, target};

const EDITS: &str = "tests/harness/bugs.toml";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Edits {
    edit: Vec<Edit>,
}

/// One place that misbehaves where its bug is planted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    file: String,
    find: String,
    with: String,
}

/// Makes the copy, builds its harness and runs it. `words` are passed on, such as `--bug no_lock`.
pub fn run(words: &[String]) -> Result<()> {
    let copy = lay_out(&root())?;
    // The third-party crates that the checkout has built fit the copy as well.
    let mut build = program(env!("CARGO"));
    build.current_dir(&copy).env("CARGO_TARGET_DIR", target());
    must(build.args(["build", "--quiet", "--offline", "-p", "harness", "--bin", HARNESS]))?;
    must(program(target().join("debug").join(HARNESS)).current_dir(&copy).arg("planted").args(words))
}

/// The copy's own name for the program, since both are built into one folder.
const HARNESS: &str = "harness-planted";

/// What does not fit the sources any more, for `cargo xtask tidy`.
pub fn stale(root: &Path) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    let edits = read(root)?;
    for Edit { file, find, with } in &edits {
        let text = std::fs::read_to_string(root.join(file)).unwrap_or_default();
        let times = text.matches(find.as_str()).count();
        if times != 1 {
            let line = find.lines().next().unwrap_or_default().trim();
            wrong.push(format!("{EDITS}: `{line}` occurs {times} times in {file}, and should occur once"));
        }
        if find == with {
            wrong.push(format!("{EDITS}: an edit of {file} changes nothing"));
        }
    }
    let source = std::fs::read_to_string(root.join("tests/harness/src/planted/bug.rs"))?;
    let named = |text: &str, after: &str| -> BTreeSet<String> {
        let words = text.split(after).skip(1).filter_map(|rest| rest.split('"').next());
        words.map(str::to_owned).collect()
    };
    let all = named(&source, " = \"");
    let asked: BTreeSet<String> = edits.iter().flat_map(|edit| named(&edit.with, "planted::is(\"")).collect();
    wrong.extend(all.difference(&asked).map(|bug| format!("{EDITS}: no edit asks for the bug {bug}")));
    wrong.extend(asked.difference(&all).map(|bug| format!("{EDITS}: there is no bug {bug}")));
    Ok(wrong)
}

fn read(root: &Path) -> Result<Vec<Edit>> {
    let text = std::fs::read_to_string(root.join(EDITS)).context(EDITS)?;
    let edits: Edits = toml::from_str(&text).context(EDITS)?;
    Ok(edits.edit)
}

/// Brings the copy up to date. What is the same already is not written, so that it is not built again.
fn lay_out(root: &Path) -> Result<PathBuf> {
    let wrong = stale(root)?;
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n"));
    }
    let place = target().join("planted");
    let mut files = BTreeMap::new();
    for file in tracked(root)? {
        // A file that was deleted and not yet committed is left out.
        if let Ok(bytes) = std::fs::read(root.join(&file)) {
            files.insert(file, bytes);
        }
    }
    let mut change = |file: &str, how: &dyn Fn(&str) -> String| -> Result<()> {
        let bytes = files.get_mut(file).with_context(|| format!("{file} is not tracked"))?;
        let text = std::str::from_utf8(bytes).with_context(|| file.to_owned())?;
        let changed = how(text);
        if changed == text {
            bail!("{file} could not be changed");
        }
        *bytes = changed.into_bytes();
        Ok(())
    };
    let mut crates = BTreeSet::new();
    for Edit { file, find, with } in read(root)? {
        change(&file, &|text| text.replacen(&find, &with, 1))?;
        crates.extend(file.split_once("/src/").map(|(folder, _)| folder.to_owned()));
    }
    for folder in crates {
        let with = "[dependencies]\nplanted.workspace = true\n";
        change(&format!("{folder}/Cargo.toml"), &|text| text.replacen("[dependencies]\n", with, 1))?;
    }
    change("tests/planted/src/lib.rs", &|text| {
        text.replace("IN_COPY: bool = false", "IN_COPY: bool = true")
    })?;
    let bin = format!("name = \"{HARNESS}\"\npath = \"src/bin/harness/main.rs\"");
    change("tests/harness/Cargo.toml", &|text| {
        text.replace("[[bin]]\nname = \"harness\"", &format!("[[bin]]\n{bin}"))
    })?;
    remove_others(&place, &place, &files)?;
    write(&place, &files)?;
    Ok(place)
}

/// A file that the checkout no longer has could conflict with the one that replaced it.
fn remove_others(folder: &Path, place: &Path, files: &BTreeMap<String, Vec<u8>>) -> Result<()> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let path = entry?.path();
        let name = path.strip_prefix(place)?.to_string_lossy().into_owned();
        if path.is_dir() {
            remove_others(&path, place, files)?;
        } else if !files.contains_key(&name) && name != "Cargo.lock" {
            std::fs::remove_file(&path).with_context(|| path.display().to_string())?;
        }
    }
    Ok(())
}

fn write(place: &Path, files: &BTreeMap<String, Vec<u8>>) -> Result<()> {
    for (file, bytes) in files {
        let path = place.join(file);
        if std::fs::read(&path).is_ok_and(|there| there == *bytes) {
            continue;
        }
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&path, bytes).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

fn tracked(root: &Path) -> Result<Vec<String>> {
    let mut git = program("git");
    let listed = git.current_dir(root).args(["ls-files", "-z"]).output().context("git ls-files")?;
    let text = String::from_utf8(listed.stdout).context("a file name is not text")?;
    Ok(text.split('\0').filter(|file| !file.is_empty()).map(str::to_owned).collect())
}
