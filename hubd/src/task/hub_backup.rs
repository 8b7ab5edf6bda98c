//! Age of the backups of the hub's own data.
//!
//! In: the place that `[backup]` in `hub.toml` names, a file or a folder of files. Out: the time of the newest one, by the
//! file system. Deliberately absent: taking a backup, and reading one: whether it can be restored is not known by its time.

use std::io;
use std::path::PathBuf;

use jiff::{SignedDuration, Timestamp};

use crate::domain::alerting::own::BackupState;

/// As many files of a folder are looked at.
const FILES_MAX: usize = 10_000;

/// Where backups are, and how old the newest one may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupWatch {
    /// A file, or a folder of files.
    pub path: PathBuf,
    pub age_max: SignedDuration,
}

impl BackupWatch {
    /// Looks for the newest one. An empty file is none.
    #[must_use]
    pub fn look(&self) -> BackupState {
        let place = self.path.display().to_string();
        match self.newest() {
            Ok(Some(at)) => BackupState::Newest { at, age_max: self.age_max, place },
            Ok(None) => BackupState::Missing { place },
            Err(error) if error.kind() == io::ErrorKind::NotFound => BackupState::Missing { place },
            Err(error) => BackupState::Unreadable { place, why: error.to_string() },
        }
    }

    fn newest(&self) -> io::Result<Option<Timestamp>> {
        let about = std::fs::metadata(&self.path)?;
        if !about.is_dir() {
            return Ok(time(&about));
        }
        let mut newest = None;
        for entry in std::fs::read_dir(&self.path)?.take(FILES_MAX) {
            // A file that was removed meanwhile is none.
            let entry = entry?;
            // What a backup that was killed left behind is none either.
            if entry.file_name().as_encoded_bytes().ends_with(b".part") {
                continue;
            }
            let Ok(about) = entry.metadata() else { continue };
            newest = newest.max(Some(about).filter(std::fs::Metadata::is_file).as_ref().and_then(time));
        }
        Ok(newest)
    }
}

fn time(about: &std::fs::Metadata) -> Option<Timestamp> {
    let modified = about.modified().ok().filter(|_| about.len() > 0)?;
    Timestamp::try_from(modified).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, FileTimes};
    use std::path::Path;
    use std::time::{Duration, SystemTime};

    const AGE: SignedDuration = SignedDuration::from_hours(30);

    fn write(path: &Path, text: &str, second: u64) {
        std::fs::write(path, text).unwrap();
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
        let file = File::options().write(true).open(path).unwrap();
        file.set_times(FileTimes::new().set_modified(time)).unwrap();
    }

    fn look(path: &Path) -> Option<i64> {
        match (BackupWatch { path: path.to_owned(), age_max: AGE }).look() {
            BackupState::Newest { at, .. } => Some(at.as_second()),
            BackupState::Missing { .. } => None,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_newest_file_with_content_counts() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(look(folder.path()), None);
        assert_eq!(look(&folder.path().join("none")), None);
        write(&folder.path().join("monday.db"), "a", 1_000);
        write(&folder.path().join("tuesday.db"), "a", 2_000);
        write(&folder.path().join("wednesday.db"), "", 3_000);
        write(&folder.path().join("thursday.db.17.part"), "a", 4_000);
        std::fs::create_dir(folder.path().join("folder")).unwrap();
        assert_eq!(look(folder.path()), Some(2_000));
        assert_eq!(look(&folder.path().join("monday.db")), Some(1_000));
        assert_eq!(look(&folder.path().join("wednesday.db")), None);
        let below_a_file = BackupWatch { path: folder.path().join("monday.db/x"), age_max: AGE }.look();
        assert!(matches!(below_a_file, BackupState::Unreadable { .. }), "{below_a_file:?}");
    }
}
