//! Mounts and disks, as the kernel shows them.
//!
//! The kernel's own event wakes a task that waits on the table of mounts. A disk that is pulled out leaves its mount
//! behind, and no event in the table. Its entry in sysfs disappears at once, and is checked each second. udev's socket
//! is not used: it would need one more address family in the agent's sandbox, to gain less than a second. Nothing here
//! touches a disk, so nothing here hangs with one. Deliberately absent: mounting.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::model::storage::{DeviceSeen, MountSeen, PARENT};

/// A host with hundreds of guests has some thousand mounts of 200 bytes.
const TABLE_BYTES_MAX: u64 = 8 << 20;

/// The names of all block devices, each with the number that the kernel gives to no other disk.
pub type Disks = BTreeSet<(String, String)>;

/// Why the kernel's tables cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the kernel's {} cannot be read: is /proc or /sys hidden from the agent's unit?", path.display())]
pub struct MountsError {
    path: PathBuf,
    #[source]
    source: std::io::Error,
}

/// The kernel's tables of mounts and disks.
pub struct Mounts {
    table: PathBuf,
    blocks: PathBuf,
    watch: Option<AsyncFd<File>>,
}

impl Mounts {
    /// As the kernel has it. To be called where a runtime runs.
    #[must_use]
    pub fn of_the_kernel() -> Self {
        Self::at("/proc/self/mountinfo".into(), "/sys/class/block".into())
    }

    /// At other paths. A table that is a plain file sends no event, and is only read.
    #[must_use]
    pub fn at(table: PathBuf, blocks: PathBuf) -> Self {
        let watch = File::open(&table).ok().and_then(watched);
        Self { table, blocks, watch }
    }

    /// The mounts beneath `/mnt/holdfast`, by the name of the folder: the uppermost mount of each.
    ///
    /// # Errors
    /// [`MountsError`].
    pub fn look(&self) -> Result<BTreeMap<String, MountSeen>, MountsError> {
        let failed = |source| MountsError { path: self.table.clone(), source };
        let mut text = String::new();
        let mut file = File::open(&self.table).map_err(failed)?.take(TABLE_BYTES_MAX);
        file.read_to_string(&mut text).map_err(failed)?;
        let seen = text.lines().filter_map(entry).map(|(name, id, source)| {
            let device = self.device(&source);
            (name, MountSeen { id, source, device })
        });
        // A later line is on top of an earlier one of the same place.
        Ok(seen.collect())
    }

    fn device(&self, source: &str) -> DeviceSeen {
        let name = Path::new(source).file_name();
        match name.map(|name| self.blocks.join(name).symlink_metadata()) {
            Some(Ok(_)) => DeviceSeen::There,
            _ => DeviceSeen::Gone,
        }
    }

    /// The disks that are present now. An unreadable folder counts as no disks: the next check compares again.
    #[must_use]
    pub fn disks(&self) -> Disks {
        let entries = std::fs::read_dir(&self.blocks).into_iter().flatten().flatten();
        entries
            .map(|entry| {
                let number = std::fs::read_to_string(entry.path().join("diskseq")).unwrap_or_default();
                (entry.file_name().to_string_lossy().into_owned(), number.trim().to_owned())
            })
            .collect()
    }

    /// Returns when the table has changed; never, where it sends no event.
    pub async fn changed(&self) {
        if let Some(watch) = &self.watch
            && let Ok(mut ready) = watch.ready(Interest::PRIORITY).await
        {
            return ready.clear_ready();
        }
        std::future::pending().await
    }
}

#[expect(
    deprecated,
    reason = "deprecated for types that lie about their descriptor; a File does not, and what replaces it is unsafe"
)]
fn watched(file: File) -> Option<AsyncFd<File>> {
    AsyncFd::with_interest(file, Interest::PRIORITY).ok()
}

/// A line of the table that is beneath the parent, one folder deep.
fn entry(line: &str) -> Option<(String, u64, String)> {
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ');
    let id = left.next()?.parse().ok()?;
    let point = unescaped(left.nth(3)?)?;
    let name = point.strip_prefix(PARENT)?.strip_prefix('/')?;
    let source = unescaped(right.split(' ').nth(1)?)?;
    (!name.is_empty() && !name.contains('/')).then(|| (name.to_owned(), id, source))
}

/// In the table, blanks, tabs, line ends and backslashes are written as three octal digits.
fn unescaped(text: &str) -> Option<String> {
    let mut parts = text.split('\\');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..3)?, 8).ok()?);
        bytes.extend(part.get(3..)?.bytes());
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = "22 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw\n\
        40 22 8:17 / /mnt/holdfast/usb1 rw,nosuid,nodev,noexec shared:9 - ext4 /dev/sdb1 rw\n\
        41 22 8:33 / /mnt/holdfast/usb2 rw - xfs /dev/sdc1 rw\n\
        42 41 8:49 / /mnt/holdfast/usb2 rw - xfs /dev/sdd1 rw\n\
        43 40 0:50 / /mnt/holdfast/usb1/deep rw - tmpfs tmpfs rw\n\
        44 22 0:51 / /mnt/holdfast2/usb3 rw - tmpfs tmpfs rw\n\
        45 22 0:52 / /mnt/holdfast/a\\040b//deleted rw - ext4 /dev/s\\012d rw\n\
        a line that is none\n";

    #[tokio::test]
    async fn mounts_are_reported_by_their_folder_and_devices_by_their_entry() {
        let place = tempfile::tempdir().unwrap();
        let (table, blocks) = (place.path().join("mountinfo"), place.path().join("block"));
        std::fs::write(&table, LINES).unwrap();
        for name in ["sda2", "sdb1", "sdc1", "sdd1"] {
            std::fs::create_dir_all(blocks.join(name)).unwrap();
        }
        std::fs::write(blocks.join("sdb1/diskseq"), "17\n").unwrap();
        let mounts = Mounts::at(table.clone(), blocks.clone());
        let seen = mounts.look().unwrap();
        assert_eq!(seen.keys().collect::<Vec<_>>(), ["usb1", "usb2"]);
        assert_eq!((seen["usb1"].id, seen["usb2"].id), (40, 42), "the uppermost");
        assert_eq!(seen["usb1"].device, DeviceSeen::There);
        let before = mounts.disks();
        assert!(before.contains(&("sdb1".to_owned(), "17".to_owned())));
        // Another disk under the same name is another disk.
        std::fs::write(blocks.join("sdb1/diskseq"), "18\n").unwrap();
        assert_ne!(mounts.disks(), before);
        std::fs::remove_dir_all(blocks.join("sdb1")).unwrap();
        assert_eq!(mounts.look().unwrap()["usb1"].device, DeviceSeen::Gone);
        std::fs::remove_file(&table).unwrap();
        assert!(mounts.look().is_err(), "nothing to read is not nothing mounted");
    }
}
