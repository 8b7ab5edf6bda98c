//! Files of two builds, byte by byte.
//!
//! In: the paths of both. Out: one difference per file that is not the same, with what a person needs to find its cause.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// How much readable text is shown around the first byte that differs.
const TEXT_CHARS_MAX: usize = 96;

/// How a file of two builds differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// Only one of the builds has it.
    Alone { name: String, in_build: usize },
    /// Both have it.
    Bytes {
        name: String,
        sizes: [usize; 2],
        /// Of the first byte that differs.
        offset: usize,
        /// Bytes that differ, as far as the shorter one goes.
        count: usize,
        /// Readable text there, of each build.
        texts: [String; 2],
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alone { name, in_build } => write!(f, "{name}: only in build {in_build}"),
            Self::Bytes { name, sizes: [one, other], offset, count, texts: [first, second] } => write!(
                f,
                "{name}: {one} and {other} bytes; {count} differ, the first at {offset}: {first:?} and {second:?}"
            ),
        }
    }
}

/// Compares the files of two builds by their names.
pub fn all(builds: &[Vec<PathBuf>]) -> Result<Vec<Difference>> {
    let [first, second] = builds else { bail!("two builds are compared, and not {}", builds.len()) };
    let (first, second) = (by_name(first)?, by_name(second)?);
    let names: BTreeSet<&String> = first.keys().chain(second.keys()).collect();
    let mut differences = Vec::new();
    for name in names {
        match (first.get(name), second.get(name)) {
            (Some(one), Some(other)) => differences.extend(bytes(name, &read(one)?, &read(other)?)),
            (one, _) => {
                let in_build = if one.is_some() { 1 } else { 2 };
                differences.push(Difference::Alone { name: name.clone(), in_build });
            }
        }
    }
    Ok(differences)
}

fn by_name(paths: &[PathBuf]) -> Result<BTreeMap<String, &Path>> {
    let named = paths.iter().map(|path| {
        let name = path.file_name().with_context(|| format!("{} has no name", path.display()))?;
        Ok((name.to_string_lossy().into_owned(), path.as_path()))
    });
    named.collect()
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Compares two contents; none where they are the same.
fn bytes(name: &str, one: &[u8], other: &[u8]) -> Option<Difference> {
    if one == other {
        return None;
    }
    let mut differing = one.iter().zip(other).enumerate().filter(|(_, (a, b))| a != b);
    let first = differing.next().map(|(offset, _)| offset);
    let offset = first.unwrap_or(one.len().min(other.len()));
    let count = differing.count() + usize::from(first.is_some());
    let texts = [text_at(one, offset), text_at(other, offset)];
    Some(Difference::Bytes { name: name.to_owned(), sizes: [one.len(), other.len()], offset, count, texts })
}

/// The readable text that an offset is in: a path or a time in it is the usual cause.
fn text_at(bytes: &[u8], offset: usize) -> String {
    let is_text = |byte: &u8| byte.is_ascii_graphic() || *byte == b' ';
    let before = bytes.get(..offset).unwrap_or_default();
    let begin = before.iter().rev().take(TEXT_CHARS_MAX / 2).take_while(|byte| is_text(byte)).count();
    let rest = bytes.get(offset - begin..).unwrap_or_default();
    rest.iter().take(TEXT_CHARS_MAX).take_while(|byte| is_text(byte)).map(|byte| char::from(*byte)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(files: &[(&str, &[u8])]) -> (tempfile::TempDir, Vec<PathBuf>) {
        let folder = tempfile::tempdir().unwrap();
        let paths = files.iter().map(|(name, bytes)| {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            path
        });
        let paths = paths.collect();
        (folder, paths)
    }

    #[test]
    fn the_same_files_have_no_difference() {
        let files: [(&str, &[u8]); 2] = [("agentd", b"program"), ("a.deb", b"")];
        let ((_one, first), (_other, second)) = (build(&files), build(&files));
        assert_eq!(all(&[first.clone(), second]).unwrap(), []);
        assert!(all(&[first]).is_err(), "one build proves nothing");
    }

    #[test]
    fn a_difference_is_shown_with_its_text() {
        let (_one, first) =
            build(&[("agentd", b"\x7fELF\0/tmp/first/src/main.rs\0rest"), ("a.deb", b"abc"), ("only", b"x")]);
        let (_other, second) =
            build(&[("agentd", b"\x7fELF\0/tmp/other/src/main.rs\0rest"), ("a.deb", b"abcd")]);
        let found = all(&[first, second]).unwrap();
        assert_eq!(found.len(), 3);
        assert_eq!(
            found[0],
            Difference::Bytes {
                name: "a.deb".to_owned(),
                sizes: [3, 4],
                offset: 3,
                count: 0,
                texts: ["abc".to_owned(), "abcd".to_owned()]
            }
        );
        let Difference::Bytes { offset, count, texts, .. } = &found[1] else { panic!("{found:?}") };
        assert_eq!((*offset, *count), (10, 5));
        assert_eq!(texts.clone(), ["/tmp/first/src/main.rs", "/tmp/other/src/main.rs"]);
        assert!(
            found[1].to_string().contains("agentd: 32 and 32 bytes; 5 differ, the first at 10"),
            "{}",
            found[1]
        );
        assert_eq!(found[2], Difference::Alone { name: "only".to_owned(), in_build: 1 });
    }
}
