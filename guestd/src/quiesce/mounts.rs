//! Mounted volumes of this guest, and the variables for stacks.
//!
//! A stack that needs a volume which is not mounted would write onto the root disk instead: it is not started.

use std::path::PathBuf;

use holdfast_protocol::desired::VolumeKind;
use holdfast_protocol::id::MountPath;
use holdfast_protocol::local::MountView;

use crate::file::{self, Eyes, FileError};
use crate::paths::Paths;
use crate::stacks::{Class, Stack, VolumeRef};

/// A guest with a thousand containers has some thousand mounts of a hundred bytes.
const TABLE_BYTES_MAX: usize = 2 * 1024 * 1024;

/// What is mounted now.
pub struct Mounts {
    points: Vec<String>,
}

impl Mounts {
    /// Reads the kernel's table. Nothing is mounted where there is none.
    pub fn read(paths: &Paths) -> Result<Self, FileError> {
        let table = file::read(&paths.mounts(), TABLE_BYTES_MAX, Eyes::All)?;
        let text = table.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        // The fifth field. Our mounts have no character that the kernel would escape.
        let points = text.lines().filter_map(|line| line.split(' ').nth(4)).map(str::to_owned);
        Ok(Self { points: points.collect() })
    }

    /// Whether something is mounted there.
    pub fn has(&self, mount: &MountPath) -> bool {
        self.points.iter().any(|point| point == mount.as_str())
    }
}

/// Seventeen volumes with their names.
const VOLUMES_BYTES_MAX: usize = 64 * 1024;

fn volumes_path(paths: &Paths) -> PathBuf {
    paths.state_dir().join("volumes.json")
}

/// Stores which volumes this guest has, for a process that starts stacks without an agent and without a marker.
pub fn remember(paths: &Paths, volumes: &[MountView]) -> Result<(), FileError> {
    if remembered(paths) == volumes {
        return Ok(());
    }
    // Names and numbers: it cannot fail, and an empty file is read as no volumes.
    let bytes = serde_json::to_vec_pretty(volumes).unwrap_or_default();
    file::replace(&volumes_path(paths), &bytes, Eyes::All)
}

/// Which volumes this guest had last; none where none are stored.
pub fn remembered(paths: &Paths) -> Vec<MountView> {
    let bytes = file::read(&volumes_path(paths), VOLUMES_BYTES_MAX, Eyes::All).ok().flatten();
    bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

/// The class of a volume.
pub const fn class(mount: &MountView) -> Class {
    match mount.kind {
        VolumeKind::Hot => Class::Hot,
        VolumeKind::Bulk(_) => Class::Bulk,
    }
}

/// The mounts that a stack's variables refer to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Volumes {
    /// Variables and mounts, for drivers and hooks.
    pub env: Vec<(String, String)>,
    /// What must be mounted before it starts.
    pub mounts: Vec<MountPath>,
}

/// Why a variable refers to no mount.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoVolume {
    /// There is none of that name or class.
    #[error("stack {stack} needs a {class} volume for `{key}`, and this guest has none: have one attached")]
    None { stack: String, class: &'static str, key: String },
    #[error(
        "stack {stack} needs a {class} volume for `{key}`, and this guest has {names}: choose one with `volume`"
    )]
    Several { stack: String, class: &'static str, key: String, names: String },
}

/// Finds the volumes of a stack: by name where one is given, else the only one of the class.
pub fn volumes(stack: &Stack, guests: &[MountView]) -> Result<Volumes, NoVolume> {
    let mut found = Volumes::default();
    for (key, placed) in &stack.volumes {
        let mount = pick(&stack.name.to_string(), key, placed, guests)?.mount.clone();
        found.env.push((format!("HOLDFAST_VOLUME_{}", key.to_ascii_uppercase()), mount.to_string()));
        found.mounts.push(mount);
    }
    Ok(found)
}

fn pick<'a>(
    stack: &str,
    key: &str,
    placed: &VolumeRef,
    guests: &'a [MountView],
) -> Result<&'a MountView, NoVolume> {
    let fits = |mount: &&MountView| {
        class(mount) == placed.class && placed.volume.as_ref().is_none_or(|name| *name == mount.name)
    };
    let of_class: Vec<&MountView> = guests.iter().filter(fits).collect();
    let (stack, class, key) = (stack.to_owned(), placed.class.as_str(), key.to_owned());
    match of_class.as_slice() {
        [] => Err(NoVolume::None { stack, class, key }),
        [one] => Ok(one),
        several => {
            let names: Vec<&str> = several.iter().map(|mount| mount.name.as_str()).collect();
            Err(NoVolume::Several { stack, class, key, names: names.join(" and ") })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::stacks::{DefaultState, DriverOf, Hooks, Limits, OnFailure, RestoreTest};

    fn guests() -> Vec<MountView> {
        serde_json::from_value(serde_json::json!([
            { "name": "db", "mount": "/srv/db", "size_gib": 4, "kind": "hot", "state": "attached" },
            { "name": "logs", "mount": "/srv/logs", "size_gib": 4, "kind": "hot", "state": "attached" },
            { "name": "media", "mount": "/srv/media", "size_gib": 40, "state": "attached", "kind": { "bulk": { "none": "made again from the originals" } } }
        ]))
        .unwrap()
    }

    fn stack(key: &str, class: Class, volume: Option<&str>) -> Stack {
        let second = std::time::Duration::from_secs(1);
        let placed = VolumeRef { class, volume: volume.map(|name| name.parse().unwrap()) };
        Stack {
            name: "web".parse().unwrap(),
            driver: DriverOf::Systemd(vec!["a.service".to_owned()]),
            after: Vec::new(),
            limits: Limits { stop: second, start: second, health: second, hook: second },
            hooks: Hooks::default(),
            wanted: DefaultState::Running,
            on_failure: OnFailure::Report,
            restore_test: RestoreTest::Check,
            volumes: BTreeMap::from([(key.to_owned(), placed)]),
        }
    }

    #[test]
    fn a_variable_stands_for_the_volume_named_or_the_only_one_of_its_class() {
        let found = volumes(&stack("data", Class::Hot, Some("logs")), &guests()).unwrap();
        assert_eq!(found.env, [("HOLDFAST_VOLUME_DATA".to_owned(), "/srv/logs".to_owned())]);
        let found = volumes(&stack("files", Class::Bulk, None), &guests()).unwrap();
        assert_eq!(found.mounts, ["/srv/media".parse().unwrap()]);
        let which = volumes(&stack("data", Class::Hot, None), &guests()).unwrap_err();
        assert!(which.to_string().contains("this guest has db and logs"), "{which}");
        let none = volumes(&stack("data", Class::Bulk, Some("db")), &guests()).unwrap_err();
        assert!(matches!(none, NoVolume::None { .. }), "a hot volume is not a bulk one: {none}");
    }

    #[test]
    fn only_the_point_itself_is_a_mount() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths::new(root.path());
        let mount: MountPath = "/srv/db".parse().unwrap();
        assert!(!Mounts::read(&paths).unwrap().has(&mount));
        std::fs::create_dir_all(root.path().join("proc/self")).unwrap();
        let table = "22 1 0:20 / / rw - ext4 /dev/sda rw\n23 22 0:21 / /srv/db2 rw - ext4 /dev/sdb rw\n";
        std::fs::write(paths.mounts(), table).unwrap();
        assert!(!Mounts::read(&paths).unwrap().has(&mount));
        std::fs::write(paths.mounts(), table.replace("db2", "db")).unwrap();
        assert!(Mounts::read(&paths).unwrap().has(&mount));
    }
}
