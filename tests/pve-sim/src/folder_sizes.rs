//! Sizes of folders, counted again after ten seconds at the earliest.
//!
//! In: a guest's folder. Out: its bytes, as pvestatd would have seen them: on a genuine node the figures of a list are up to
//! ten seconds old. A small folder is counted each time, since that costs nothing. Deliberately absent: exactness for a huge
//! one.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long pvestatd's figures stand.
const KEPT_FOR: Duration = Duration::from_secs(10);

/// Folders with more entries are kept in mind.
const SMALL: usize = 200;

/// Entries that are looked at, so that a huge guest does not hold up a list.
const ENTRIES_MAX: usize = 2_000;

/// What was counted in large folders, and when.
#[derive(Debug, Default)]
pub struct FolderSizes(HashMap<PathBuf, (Instant, u64)>);

impl FolderSizes {
    /// Bytes in a folder.
    pub fn of(&mut self, folder: &Path) -> u64 {
        if let Some((at, bytes)) = self.0.get(folder)
            && at.elapsed() < KEPT_FOR
        {
            return *bytes;
        }
        let (bytes, entries) = counted(folder);
        self.0.retain(|_, (at, _)| at.elapsed() < KEPT_FOR);
        if entries > SMALL {
            self.0.insert(folder.to_owned(), (Instant::now(), bytes));
        }
        bytes
    }
}

/// Bytes and entries.
fn counted(folder: &Path) -> (u64, usize) {
    let mut waiting = vec![folder.to_owned()];
    let (mut total, mut seen) = (0, 0);
    while let Some(next) = waiting.pop() {
        for entry in std::fs::read_dir(next).into_iter().flatten().flatten() {
            seen += 1;
            if seen > ENTRIES_MAX {
                return (total, seen);
            }
            match entry.metadata() {
                Ok(meta) if meta.is_dir() => waiting.push(entry.path()),
                Ok(meta) => total += meta.len(),
                Err(_) => {}
            }
        }
    }
    (total, seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_folder_is_counted_each_time_and_a_large_one_is_not() {
        let temp = tempfile::tempdir().expect("a folder");
        let mut sizes = FolderSizes::default();
        let write = |name: &str| std::fs::write(temp.path().join(name), [0; 10]).expect("written");
        write("a");
        assert_eq!(sizes.of(temp.path()), 10);
        write("b");
        assert_eq!(sizes.of(temp.path()), 20);
        for number in 0..SMALL {
            write(&number.to_string());
        }
        let large = sizes.of(temp.path());
        assert_eq!(large, 20 + 10 * SMALL as u64);
        write("c");
        assert_eq!(sizes.of(temp.path()), large);
    }
}
