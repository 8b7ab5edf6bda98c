//! A bounded walk over files of the root disk.
//!
//! In: where to begin. Out: bytes and count of the files below, as far as the limits of all walks together allow. It follows
//! no symbolic link, and enters nothing that is mounted.

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::file::{self, Eyes};
use crate::paths::Paths;

/// A guest with a thousand containers has some thousand mounts of a hundred bytes.
const TABLE_BYTES_MAX: usize = 2 * 1024 * 1024;

/// After so many entries it pauses.
const BETWEEN_PAUSES: usize = 512;
const PAUSE: Duration = Duration::from_millis(5);

/// How much one search may look at.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub entries: usize,
    pub time: Duration,
}

impl Limits {
    pub const USUAL: Self = Self { entries: 100_000, time: Duration::from_secs(30) };
}

/// What is below a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    pub files: u64,
    pub bytes: u64,
}

/// The limits that are left, and what is mounted.
#[derive(Debug)]
pub struct Walk {
    root: PathBuf,
    device: Option<u64>,
    mounts: BTreeSet<PathBuf>,
    entries: usize,
    until: Instant,
    whole: bool,
}

impl Walk {
    pub fn begin(paths: &Paths, limits: Limits) -> Self {
        let device = fs::metadata(paths.root()).ok().map(|about| about.dev());
        let table = file::read(&paths.mounts(), TABLE_BYTES_MAX, Eyes::All);
        let whole = device.is_some() && table.is_ok();
        let text = table.ok().flatten().map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let points = text.iter().flat_map(|text| text.lines()).filter_map(|line| line.split(' ').nth(4));
        let mounts = points.map(unescaped).filter(|point| point != Path::new("/")).collect();
        let until = Instant::now() + limits.time;
        Self { root: paths.root().to_owned(), device, mounts, entries: limits.entries, until, whole }
    }

    /// Whether no limit was met, and everything could be read.
    pub const fn is_whole(&self) -> bool {
        self.whole
    }

    /// Something that counts could not be looked at.
    pub const fn missed(&mut self) {
        self.whole = false;
    }

    /// What is at a path of the guest, when it is on the root disk and no symbolic link.
    pub fn on_root_disk(&self, path: &Path) -> Option<Metadata> {
        if path.ancestors().any(|above| self.mounts.contains(above)) {
            return None;
        }
        let about = fs::symlink_metadata(self.inside(path)).ok()?;
        (!about.file_type().is_symlink() && Some(about.dev()) == self.device).then_some(about)
    }

    /// The names in a folder of the guest, sorted; none where it is not on the root disk.
    pub fn children(&mut self, folder: &Path) -> Vec<PathBuf> {
        if !self.on_root_disk(folder).is_some_and(|about| about.is_dir()) {
            return Vec::new();
        }
        let Ok(entries) = fs::read_dir(self.inside(folder)) else {
            self.missed();
            return Vec::new();
        };
        let mut children = Vec::new();
        for entry in entries.flatten() {
            if !self.may_go_on() {
                break;
            }
            children.push(folder.join(entry.file_name()));
        }
        children.sort();
        children
    }

    /// Files at and below a path of the guest, without those that `leaves_out` names.
    pub fn measure(&mut self, path: &Path, leaves_out: &dyn Fn(&Path) -> bool) -> Amount {
        let mut amount = Amount::default();
        let mut open = vec![path.to_owned()];
        while let Some(path) = open.pop() {
            let Some(about) = self.on_root_disk(&path).filter(|_| !leaves_out(&path)) else { continue };
            if about.is_dir() {
                open.extend(self.children(&path));
            } else if about.is_file() {
                amount.files += 1;
                amount.bytes = amount.bytes.saturating_add(about.len());
            }
        }
        amount
    }

    /// Counts one entry.
    fn may_go_on(&mut self) -> bool {
        if self.entries == 0 || Instant::now() >= self.until {
            self.whole = false;
            return false;
        }
        self.entries -= 1;
        if self.entries.is_multiple_of(BETWEEN_PAUSES) {
            std::thread::sleep(PAUSE);
        }
        true
    }

    fn inside(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }
}

/// A mount point as the kernel writes it: blanks and their like are three octal digits after a backslash.
fn unescaped(text: &str) -> PathBuf {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) if byte.is_ascii() => {
                plain.push(char::from(byte));
                plain.push_str(part.get(3..).unwrap_or_default());
            }
            _ => {
                plain.push('\\');
                plain.push_str(part);
            }
        }
    }
    plain.into()
}
