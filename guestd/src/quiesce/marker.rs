//! Quiesce marker `quiesce.json`: stopped parts and how to start them.
//!
//! It is on the disk before anything is stopped, and is removed when all of it runs again.
//!
//! It is self-contained: a process that resumes needs neither `stacks.toml` nor an agent. A backup that was taken
//! meanwhile contains it, too, so a restored guest starts what ran.

use std::path::PathBuf;
use std::time::Duration;

use holdfast_protocol::id::{MountPath, OperationId, StackName};
use holdfast_protocol::json::{self, JsonError};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::driver::{Engine, Group, Home};
use crate::file::{self, Eyes, FileError};
use crate::paths::Paths;

/// 32 stacks of a hundred containers with 64 hex digits each.
const BYTES_MAX: usize = 512 * 1024;

/// The version of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Schema {
    #[default]
    #[serde(rename = "holdfast.guestd-quiesce/v1")]
    V1,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Marker {
    #[serde(default)]
    schema: Schema,
    /// For which window of the agent.
    pub window: OperationId,
    /// In which boot of the guest.
    pub boot_id: String,
    /// Until when they may stay stopped, in milliseconds since that boot, including suspend.
    pub deadline_ms: u64,
    pub begun_at: Timestamp,
    /// The systemd timer that resumes when no other process does.
    pub timer: String,
    /// In the order in which they start.
    pub stacks: Vec<Stopped>,
}

/// A stack that we stop, as it ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stopped {
    pub name: StackName,
    pub engine: Engine,
    /// Exactly what ran, in the order in which it starts.
    pub groups: Vec<Group>,
    /// Parts that failed again and again before: they are started, and not waited for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flapping: Vec<String>,
    /// Where it can be recreated, if it is removed meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<Home>,
    pub stop_limit_s: u64,
    pub start_limit_s: u64,
    pub hook_limit_s: u64,
    /// Runs when it is up again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post_resume: Option<Vec<String>>,
    pub env: Vec<(String, String)>,
    /// Without these it does not start.
    pub mounts: Vec<MountPath>,
}

/// Why the marker cannot be read, written or taken away.
#[derive(Debug, thiserror::Error)]
pub enum MarkerError {
    /// The file itself.
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{} is malformed: the stopped stacks are unknown", path.display())]
    Malformed {
        path: PathBuf,
        #[source]
        source: JsonError,
    },
    /// Cannot happen for plain text and numbers.
    #[error("the marker cannot be written as JSON")]
    Unwritable(#[source] serde_json::Error),
}

impl MarkerError {
    /// Whether the list of stopped parts is lost for good: then everything that should run is started. A process
    /// without read permission does not know the marker.
    pub fn loses_stopped_parts(&self) -> bool {
        match self {
            Self::Malformed { .. } => true,
            Self::File(error) => !error.is_permission(),
            Self::Unwritable(_) => false,
        }
    }
}

/// Whether the time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The time that is left.
    Left(Duration),
    /// The time passed, or is unknown: another boot, or no clock.
    Passed,
}

fn path(paths: &Paths) -> PathBuf {
    paths.state_dir().join("quiesce.json")
}

/// A marker that could not be read is kept for a person.
fn bad_path(paths: &Paths) -> PathBuf {
    paths.state_dir().join("quiesce.json.bad")
}

impl Marker {
    /// What is written down before anything is stopped.
    pub fn new(window: OperationId, boot_id: String, deadline: Duration, stacks: Vec<Stopped>) -> Self {
        Self {
            schema: Schema::V1,
            window,
            boot_id,
            deadline_ms: u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX),
            begun_at: crate::clock::now(),
            timer: super::timer::unit(window),
            stacks,
        }
    }

    /// How long they may still stay stopped. Pure.
    pub fn bound(&self, boot_id: Option<&str>, since_boot: Option<Duration>) -> Bound {
        let deadline = Duration::from_millis(self.deadline_ms);
        match since_boot.filter(|_| boot_id == Some(self.boot_id.as_str())) {
            Some(now) if now < deadline => Bound::Left(deadline.saturating_sub(now)),
            _ => Bound::Passed,
        }
    }

    /// Reads it; none when there is none. There is no secret in it: one that others may read is as good.
    pub fn load(paths: &Paths) -> Result<Option<Self>, MarkerError> {
        let path = path(paths);
        let Some(bytes) = file::read(&path, BYTES_MAX, Eyes::All)? else { return Ok(None) };
        json::parse("the marker", &bytes, BYTES_MAX)
            .map(Some)
            .map_err(|source| MarkerError::Malformed { path, source })
    }

    /// Writes it, durably. There must be none.
    pub fn store(&self, paths: &Paths) -> Result<(), MarkerError> {
        let bytes = serde_json::to_vec_pretty(self).map_err(MarkerError::Unwritable)?;
        Ok(file::create(&path(paths), &bytes, Eyes::Owner)?)
    }

    /// Writes it over the one that is there, durably.
    pub fn rewrite(&self, paths: &Paths) -> Result<(), MarkerError> {
        let bytes = serde_json::to_vec_pretty(self).map_err(MarkerError::Unwritable)?;
        Ok(file::replace(&path(paths), &bytes, Eyes::Owner)?)
    }

    /// Whether it could be written, without leaving anything.
    pub fn rehearse(&self, paths: &Paths) -> Result<(), MarkerError> {
        let bytes = serde_json::to_vec_pretty(self).map_err(MarkerError::Unwritable)?;
        let path = paths.state_dir().join("quiesce.json.try");
        file::replace(&path, &bytes, Eyes::Owner)?;
        Ok(file::remove_durably(&path)?)
    }

    /// Takes it away, durably.
    pub fn remove(paths: &Paths) -> Result<(), MarkerError> {
        Ok(file::remove_durably(&path(paths))?)
    }

    /// Whether there is one, without reading it.
    pub fn is_there(paths: &Paths) -> bool {
        path(paths).symlink_metadata().is_ok()
    }

    /// Whether a marker that could not be read was kept under another name.
    pub fn has_bad_copy(paths: &Paths) -> bool {
        bad_path(paths).symlink_metadata().is_ok()
    }

    /// Puts one that cannot be read aside.
    pub fn move_to_bad(paths: &Paths) -> Result<(), MarkerError> {
        Ok(file::rename(&path(paths), &bad_path(paths))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marker() -> Marker {
        let window = OperationId::new(uuid::Uuid::from_u128(5));
        Marker::new(window, "boot-1".to_owned(), Duration::from_secs(100), Vec::new())
    }

    #[test]
    fn time_left_needs_the_same_boot() {
        let second = |s| Some(Duration::from_secs(s));
        assert_eq!(marker().bound(Some("boot-1"), second(90)), Bound::Left(Duration::from_secs(10)));
        // A clock of another boot may show less time than ours ever did.
        for (boot, now) in
            [("boot-1", second(100)), ("boot-1", second(5000)), ("boot-2", second(1)), ("boot-1", None)]
        {
            assert_eq!(marker().bound(Some(boot), now), Bound::Passed, "{boot} {now:?}");
        }
        assert_eq!(marker().bound(None, second(1)), Bound::Passed);
    }

    #[test]
    fn there_is_one_marker_at_a_time() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths::new(root.path());
        std::fs::create_dir_all(paths.state_dir()).unwrap();
        assert_eq!(Marker::load(&paths).unwrap(), None);
        marker().rehearse(&paths).unwrap();
        assert!(!Marker::is_there(&paths));
        marker().store(&paths).unwrap();
        assert!(marker().store(&paths).is_err());
        assert_eq!(Marker::load(&paths).unwrap().unwrap().stacks, marker().stacks);
        Marker::remove(&paths).unwrap();
        Marker::remove(&paths).unwrap();
        assert!(!Marker::is_there(&paths));
        std::fs::write(path(&paths), "{").unwrap();
        assert!(Marker::load(&paths).is_err());
    }
}
