//! The state of a world, from the simulator's files.
//!
//! In: a state folder. Out: configurations, volumes, snapshots and backups by name, each with a hash of its bytes.
//! Deliberately absent: random values in a configuration (addresses, bootstrap tokens), which are replaced by fixed
//! ones.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

/// All there is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scene {
    /// Configurations by number.
    pub guests: BTreeMap<u32, String>,
    /// The contents of the files of `FOREIGN` guests, byte by byte.
    pub raw: BTreeMap<u32, String>,
    /// Volumes and snapshots: `tank:300/vm-300-disk-0`, `tank:300/vm-300-disk-0@before`.
    pub volumes: BTreeMap<String, Volume>,
    /// Archives: `backup2:vzdump-lxc-300-….tar.zst`.
    pub archives: BTreeMap<String, u64>,
    pub running: BTreeSet<u32>,
    /// When the copies of backups were fixed, in seconds since 1970, by the logs next to their archives.
    pub fixed: BTreeMap<String, i64>,
}

/// A volume or a snapshot of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Volume {
    /// A hash of the names and bytes in it.
    pub content: u64,
    /// How large it is.
    pub bytes: u64,
}

impl Volume {
    fn of(place: &Path) -> Self {
        let size = std::fs::read_to_string(place.join("size")).ok();
        let bytes = size.and_then(|text| text.trim().parse().ok()).unwrap_or_default();
        Self { content: hash_of(&place.join("tree")), bytes }
    }
}

impl Scene {
    /// Reads a state folder.
    #[must_use]
    pub fn of(state: &Path) -> Self {
        let mut scene = Self::default();
        for path in entries(&state.join("lxc")) {
            let number = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
            let Some(number) = number.filter(|_| path.extension().is_some_and(|end| end == "conf")) else {
                continue;
            };
            let text = std::fs::read_to_string(&path).unwrap();
            scene.guests.insert(number, text.lines().map(plain).collect::<Vec<_>>().join("\n"));
            scene.raw.insert(number, text);
        }
        for storage in entries(&state.join("root/mnt")) {
            let name = file_name(&storage);
            for owner in entries(&storage.join("images")) {
                for volume in entries(&owner) {
                    let id = format!("{name}:{}/{}", file_name(&owner), file_name(&volume));
                    scene.volumes.insert(id, Volume::of(&volume));
                }
            }
            for archive in entries(&storage.join("dump")) {
                if let Some(name) = file_name(&archive).strip_suffix(".log") {
                    scene.fixed.extend(fixed_at(&archive).map(|second| (name.to_owned(), second)));
                }
                if file_name(&archive).ends_with(".tar.zst") {
                    scene.archives.insert(format!("{name}:{}", file_name(&archive)), hash_of(&archive));
                }
            }
        }
        scene.running = entries(&state.join("run/guests"))
            .iter()
            .filter_map(|path| file_name(path).parse().ok())
            .collect();
        scene
    }

    /// The holdings of one guest: its volumes, snapshots and archives.
    pub fn holdings(&self) -> impl Iterator<Item = &String> {
        self.volumes.keys().chain(self.archives.keys())
    }

    /// The guest that owns a volume or an archive.
    #[must_use]
    pub fn owner(holding: &str) -> Option<u32> {
        let (_, rest) = holding.split_once(':')?;
        match rest.split_once('/') {
            Some((owner, _)) => owner.parse().ok(),
            None => rest.strip_prefix("vzdump-lxc-")?.split('-').next()?.parse().ok(),
        }
    }

    /// The same without what differs between two runs of one story: the names and bytes of archives.
    #[must_use]
    pub fn comparable(&self) -> Comparable {
        let mut archives = BTreeMap::new();
        for archive in self.archives.keys() {
            *archives.entry(Self::owner(archive).unwrap_or_default()).or_default() += 1;
        }
        Comparable {
            guests: self.guests.clone(),
            volumes: self.volumes.clone(),
            archives,
            running: self.running.clone(),
        }
    }
}

/// What two runs of one story have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparable {
    guests: BTreeMap<u32, String>,
    volumes: BTreeMap<String, Volume>,
    archives: BTreeMap<u32, usize>,
    running: BTreeSet<u32>,
}

impl Comparable {
    /// The differences, for people.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut all = Vec::new();
        differ("guest", &self.guests, &other.guests, &mut all);
        differ("volume", &self.volumes, &other.volumes, &mut all);
        differ("archives of", &self.archives, &other.archives, &mut all);
        if self.running != other.running {
            all.push(format!("runs {:?}, not {:?}", self.running, other.running));
        }
        all
    }
}

fn differ<K: Ord + std::fmt::Display, V: PartialEq + std::fmt::Debug>(
    what: &str,
    found: &BTreeMap<K, V>,
    wanted: &BTreeMap<K, V>,
    all: &mut Vec<String>,
) {
    for (key, value) in wanted {
        match found.get(key) {
            None => all.push(format!("{what} {key} is missing")),
            Some(found) if found != value => {
                all.push(format!("{what} {key} is {found:?}, not {value:?}"));
            }
            Some(_) => {}
        }
    }
    all.extend(
        found.keys().filter(|key| !wanted.contains_key(key)).map(|key| format!("{what} {key} is extra")),
    );
}

/// When the copy was fixed, by the log next to it: in these worlds every storage takes snapshots.
fn fixed_at(log: &Path) -> Option<i64> {
    let text = std::fs::read_to_string(log).unwrap();
    let line = text.lines().find(|line| line.contains("INFO: creating vzdump archive"))?;
    let stamp: jiff::civil::DateTime = line.get(..19)?.parse().unwrap();
    Some(stamp.to_zoned(jiff::tz::TimeZone::UTC).unwrap().timestamp().as_second())
}

fn entries(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut all: Vec<_> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    all.sort();
    all
}

fn file_name(path: &Path) -> String {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned()
}

/// Names and bytes of everything below.
fn hash_of(path: &Path) -> u64 {
    let mut hash = DefaultHasher::new();
    feed(path, &mut hash);
    hash.finish()
}

fn feed(path: &Path, hash: &mut DefaultHasher) {
    let meta = path.symlink_metadata().unwrap();
    if meta.is_dir() {
        for entry in entries(path) {
            file_name(&entry).hash(hash);
            feed(&entry, hash);
        }
    } else if meta.is_symlink() {
        std::fs::read_link(path).unwrap().hash(hash);
    } else {
        std::fs::read(path).unwrap().hash(hash);
    }
}

/// MAC addresses, claims and ids are random, and the times of snapshots are the story's own.
fn plain(line: &str) -> String {
    if let Some((before, _)) = line.split_once("HOLDFAST_BOOTSTRAP=ey") {
        return format!("{before}HOLDFAST_BOOTSTRAP=(a bootstrap token)");
    }
    if line.starts_with("snaptime: ") {
        return "snaptime: (a time)".to_owned();
    }
    if line.starts_with("#holdfast snapshot of operation ") {
        return "#holdfast snapshot of operation (an id)".to_owned();
    }
    match line.split_once("hwaddr=") {
        Some((before, after)) => {
            format!("{before}hwaddr=…{}", after.split_once(',').map_or("", |(_, rest)| rest))
        }
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_says_which_host_it_is() {
        assert_eq!(Scene::owner("tank:300/vm-300-disk-0@before"), Some(300));
        assert_eq!(Scene::owner("backup2:vzdump-lxc-301-2026_11_21-05_00_00.tar.zst"), Some(301));
        assert_eq!(Scene::owner("backup2:stranger"), None);
    }
}
