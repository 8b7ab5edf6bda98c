//! The files that rules and receivers were read from.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

/// The files of one reading, each with when it was written last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingsFiles(Vec<(PathBuf, Option<Timestamp>)>);

impl SettingsFiles {
    /// Adds a file, before it is read: what is written meanwhile counts as a later change.
    pub fn add(&mut self, path: &Path) {
        self.0.push((path.to_owned(), written_at(path)));
    }

    /// When a file was last written that is another now than it was read. A credential of systemd is none of the files:
    /// it changes with a restart of the hub alone. Reads the file system.
    #[must_use]
    pub fn changed_at(&self) -> Option<Timestamp> {
        let changed = self.0.iter().filter_map(|(path, read)| {
            let now = written_at(path);
            now.filter(|_| now != *read)
        });
        changed.max()
    }
}

/// None, where there is no such file.
fn written_at(path: &Path) -> Option<Timestamp> {
    let written = std::fs::metadata(path).and_then(|file| file.modified()).ok()?;
    Timestamp::try_from(written).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, remove_file};
    use std::time::{Duration, SystemTime};

    #[test]
    fn a_file_that_is_written_again_or_made_later_is_newer() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (folder.path().join("hub.toml"), folder.path().join("ops.toml"));
        let write = |path: &Path, second: u64| {
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
            File::create(path).unwrap().set_modified(at).unwrap();
        };
        write(&first, 100);
        let mut files = SettingsFiles::default();
        files.add(&first);
        files.add(&second);
        assert_eq!(files.changed_at(), None);
        let at = |second| Some(Timestamp::from_second(second).unwrap());
        write(&second, 90);
        assert_eq!(files.changed_at(), at(90), "it was not there");
        write(&first, 200);
        assert_eq!(files.changed_at(), at(200));
        // An older copy that was put back is another file too.
        write(&first, 50);
        assert_eq!(files.changed_at(), at(90));
        for path in [first, second] {
            remove_file(path).unwrap();
        }
        assert_eq!(files.changed_at(), None, "what is gone has no time");
    }
}
