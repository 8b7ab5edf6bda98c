//! File system of an image as a value: sorted entries by path.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Everything in an image, by path without a leading or trailing slash; the root is the empty path.
#[derive(Debug, Default)]
pub struct Image {
    pub entries: BTreeMap<Vec<u8>, Entry>,
}

#[derive(Clone, Debug)]
pub struct Entry {
    pub uid: u64,
    pub gid: u64,
    pub mode: u32,
    pub mtime_s: u64,
    /// Extended attributes as pax records.
    pub pax: Vec<(String, Vec<u8>)>,
    pub kind: Kind,
}

/// What an entry is.
#[derive(Clone, Debug)]
pub enum Kind {
    Directory,
    File(Content),
    Symlink(Vec<u8>),
    /// Another name of the entry at this path.
    HardLink(Vec<u8>),
    Pipe,
}

/// Where a file's content is.
#[derive(Clone, Debug)]
pub enum Content {
    Bytes(Vec<u8>),
    /// In a file of the building machine.
    Host(PathBuf),
    /// In the base archive.
    Base {
        offset: u64,
        size_bytes: u64,
    },
}

impl Entry {
    /// An entry of root's, as old as the image.
    pub fn own(mode: u32, kind: Kind) -> Self {
        Self { uid: 0, gid: 0, mode, mtime_s: u64::MAX, pax: Vec::new(), kind }
    }
}

impl Image {
    /// Puts a file there, in place of whatever has that path, and the directories above it.
    pub fn put(&mut self, path: &str, entry: Entry) {
        let mut above = String::new();
        for part in path.split('/') {
            self.entries
                .entry(above.clone().into_bytes())
                .or_insert_with(|| Entry::own(0o755, Kind::Directory));
            if !above.is_empty() {
                above.push('/');
            }
            above.push_str(part);
        }
        self.entries.insert(path.as_bytes().to_vec(), entry);
    }

    /// Puts a text file there.
    pub fn put_text(&mut self, path: &str, mode: u32, text: &str) {
        self.put(path, Entry::own(mode, Kind::File(Content::Bytes(text.as_bytes().to_vec()))));
    }

    /// Puts a symbolic link there.
    pub fn put_link(&mut self, path: &str, target: &str) {
        self.put(path, Entry::own(0o777, Kind::Symlink(target.as_bytes().to_vec())));
    }

    /// Removes what has a path for which the question is answered with yes.
    pub fn remove_where(&mut self, is_unwanted: impl Fn(&str) -> bool) {
        self.entries.retain(|path, _| !is_unwanted(&String::from_utf8_lossy(path)));
    }
}
