//! The file with what was announced of the hub.

use std::path::{Path, PathBuf};

use held_files::atomic_file::{self, FileError, Readers};

use crate::model::hub_alarm::Announced;

/// It is far smaller.
const BYTES_MAX: u64 = 4 * 1024;

/// Keeps what was announced over restarts of the agent.
#[derive(Clone, Debug)]
pub struct HubAlarmFile(PathBuf);

/// Why it cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum HubAlarmFileError {
    #[error("it has no form as JSON: this is a fault of this program")]
    Form(#[source] serde_json::Error),
    #[error(transparent)]
    File(#[from] FileError),
}

impl HubAlarmFile {
    /// In the state folder.
    #[must_use]
    pub fn of(folder: &Path) -> Self {
        Self(folder.join("hub-alarm.json"))
    }

    /// Reads it. A file that cannot be read is as none: the worst is one message more.
    #[must_use]
    pub fn read(&self) -> Announced {
        let text = atomic_file::read(&self.0, BYTES_MAX).ok().flatten();
        text.and_then(|text| serde_json::from_slice(text.as_slice()).ok()).unwrap_or_default()
    }

    /// Writes it.
    ///
    /// # Errors
    /// [`HubAlarmFileError`].
    pub fn write(&self, announced: Announced) -> Result<(), HubAlarmFileError> {
        let text = serde_json::to_vec(&announced).map_err(HubAlarmFileError::Form)?;
        Ok(atomic_file::write(&self.0, &text, Readers::Owner)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    #[test]
    fn what_was_announced_is_known_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let file = HubAlarmFile::of(folder.path());
        assert_eq!(file.read(), Announced::Answers);
        let away = Announced::Away { since: Timestamp::UNIX_EPOCH };
        file.write(away).unwrap();
        assert_eq!(HubAlarmFile::of(folder.path()).read(), away);
        std::fs::write(folder.path().join("hub-alarm.json"), "cut").unwrap();
        assert_eq!(file.read(), Announced::Answers);
    }
}
