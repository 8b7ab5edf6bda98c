//! Variant builds of the guest agent.

use std::path::{Path, PathBuf};

use e2e::place::{Place, User};

use super::disk::run;

/// Where it reads the boot id, and a path where nothing is: it reports that, and ends.
pub const FINDS_NO_BOOT: (&str, &str) = ("kernel/random/boot_id", "kernel/random/no_boot");

/// A program, its version, and its hash.
pub struct Build {
    pub file: PathBuf,
    pub version: String,
    pub sha256: String,
}

impl Build {
    /// The one that the golden carries.
    pub fn shipped(file: &Path) -> Self {
        let said = run(file.to_str().unwrap(), &["--version"]);
        let version = said.trim().strip_prefix("guestd ").expect("name and version").to_owned();
        Self { version, sha256: digest(file), file: file.to_owned() }
    }

    /// A build with a newer version, and further differences.
    pub fn newer(&self, folder: &Path, differs: &[(&str, &str)]) -> Self {
        let version = next(&self.version);
        let file = folder.join(format!("guestd-{version}"));
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        // Copied by another program. Otherwise this process could have the file open for writing when another process
        // starts it.
        run("cp", &[&text(&self.file), &text(&file)]);
        for (from, to) in [&[(self.version.as_str(), version.as_str())], differs].concat() {
            assert_eq!(from.len(), to.len(), "nothing in a program may move");
            let (before, script) = (digest(&file), format!("s|{}|{to}|g", from.replace('.', r"\.")));
            let mut sed = Place::default().command("sed", User::Same);
            let done = sed.env("LC_ALL", "C").args(["--in-place", &script]).arg(&file).status().unwrap();
            assert!(done.success() && digest(&file) != before, "{from:?} stands in {}", file.display());
        }
        assert_eq!(file.metadata().unwrap().len(), self.file.metadata().unwrap().len());
        Self { version, sha256: digest(&file), file }
    }
}

/// The hash of a file.
pub fn digest(file: &Path) -> String {
    let said = run("sha256sum", &[file.to_str().unwrap()]);
    said.split(' ').next().expect("a digest").to_owned()
}

/// A version of the same length that is newer: the last digit that can be is one more.
fn next(version: &str) -> String {
    let mut all: Vec<char> = version.chars().collect();
    let last = all.iter_mut().rev().find(|one| ('0'..='8').contains(*one)).expect("a digit below nine");
    *last = char::from_digit(last.to_digit(10).unwrap() + 1, 10).unwrap();
    all.into_iter().collect()
}
