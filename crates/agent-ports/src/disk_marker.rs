//! The marker file that identifies a disk's target.
//!
//! It is stored in a folder of the agent's own on the disk, which root makes once: the top of the disk belongs to root.
//! Everything is opened from the top of the mount downwards, one name at a time and through no link, and only where
//! something is mounted. Nothing is ever written to an unmounted target. The content of the disk is untrusted until it
//! is read strictly. The only measurement of a disk is made with the first marker: durable writes in a second, bounded
//! in time and size. Later one block is written now and then, to see that the disk still works.

use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use holdfast_protocol::id::{JobId, TargetName};
use holdfast_protocol::json;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, StatxAttributes, StatxFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::model::storage::{Marked, MarkerSeen};

const FOLDER: &str = ".holdfast";
const MARKER: &str = "target.json";
const NEW: &str = "target.new";
const PROBE: &str = "probe.new";
const BYTES_MAX: usize = 4096;

/// The measurement takes no longer than this, after its file was allocated.
const MEASURE_MAX: Duration = Duration::from_millis(1500);
/// Its file: a few tracks of a spinning disk, nothing to a fast one.
const PROBE_BYTES: u64 = 4 << 20;
/// The size of one write, and what its place in memory and file must be a multiple of.
const BLOCK: usize = 4096;
/// A fast disk has shown by then that it is one.
const WRITES_MAX: u32 = 20_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Schema {
    #[serde(rename = "holdfast.target/v1")]
    V1,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Marker {
    schema: Schema,
    target: TargetName,
    mark: JobId,
}

/// Whose marker should be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    pub target: TargetName,
    pub mark: JobId,
    /// Whether it was seen on the disk before. Where it was, it is not written again.
    pub before: Before,
}

/// Whether a marker was seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    Marked,
    /// It was not: an empty place gets one.
    Never,
}

/// Reads the marker of the disk mounted at this place; writes one where there never was one. Blocks, and may hang with
/// the disk.
#[must_use]
pub fn look(place: &Path, expected: &Expected) -> (MarkerSeen, Option<Marked>) {
    match find(place, expected) {
        Ok(found) => found,
        Err(seen) => (seen, None),
    }
}

/// The agent's folder on a disk with the expected marker; for the other files stored there.
///
/// # Errors
/// A sentence: nothing is mounted there, another disk is, or it does not answer.
pub(super) fn folder(place: &Path, expected: &Expected) -> Result<OwnedFd, String> {
    let reported = |seen: MarkerSeen| match seen {
        MarkerSeen::Ours => "its marker is ours".to_owned(),
        MarkerSeen::Missing => "its marker is missing".to_owned(),
        MarkerSeen::Unwritable(why)
        | MarkerSeen::Other(why)
        | MarkerSeen::Unread(why)
        | MarkerSeen::Failing(why) => why,
    };
    let top = top(place).map_err(reported)?;
    let folder = down(&top, FOLDER, OFlags::RDONLY | OFlags::DIRECTORY)
        .map_err(|error| reported(unread("the agent's folder on it cannot be opened")(error)))?;
    match read(&folder).map_err(reported)? {
        Some(marker) if marker.target == expected.target && marker.mark == expected.mark => Ok(folder),
        Some(_) => Err("it is marked as another target".to_owned()),
        None => Err(reported(MarkerSeen::Missing)),
    }
}

/// Whether a mounted disk still works: its marker is read, and a block is written so that it lasts. A full disk works.
/// Blocks, and may hang with the disk.
///
/// # Errors
/// A sentence: nothing is mounted there, another disk is, or it does not take a write.
pub fn probe(place: &Path, expected: &Expected) -> Result<(), String> {
    let folder = folder(place, expected)?;
    let written = fresh(&folder, PROBE, OFlags::DSYNC).and_then(|file| {
        rustix::io::pwrite(&file, &[0x5a; BLOCK], 0)?;
        rustix::fs::fsync(&file)
    });
    let _gone = rustix::fs::unlinkat(&folder, PROBE, AtFlags::empty());
    match written {
        Ok(()) | Err(Errno::NOSPC | Errno::DQUOT) => Ok(()),
        Err(error) => Err(format!("it takes no write: {error}")),
    }
}

fn unread(what: &'static str) -> impl Fn(Errno) -> MarkerSeen {
    move |error| MarkerSeen::Unread(format!("{what}: {error}"))
}

fn find(place: &Path, expected: &Expected) -> Result<(MarkerSeen, Option<Marked>), MarkerSeen> {
    let top = top(place)?;
    let folder = match down(&top, FOLDER, OFlags::RDONLY | OFlags::DIRECTORY) {
        Ok(folder) => folder,
        Err(Errno::NOENT) if expected.before == Before::Marked => return Err(MarkerSeen::Missing),
        Err(Errno::NOENT) => return Err(unwritable(place, "it has no folder for the agent")),
        Err(Errno::ACCESS) => return Err(unwritable(place, "the agent's folder on it is somebody else's")),
        Err(Errno::LOOP | Errno::NOTDIR) => {
            return Err(MarkerSeen::Other(format!("{FOLDER} is no folder there")));
        }
        Err(error) => return Err(unread("the agent's folder on it cannot be opened")(error)),
    };
    match read(&folder)? {
        Some(marker) if marker.target == expected.target && marker.mark == expected.mark => {
            // Its note may have been lost between disk and records; it is measured then, once.
            let measured = (expected.before == Before::Never).then(|| Marked { iops: measure(&folder) });
            Ok((MarkerSeen::Ours, measured))
        }
        Some(marker) => {
            Err(MarkerSeen::Other(format!("it is marked as {} by job {}", marker.target, marker.mark)))
        }
        None if expected.before == Before::Marked => Err(MarkerSeen::Missing),
        None => {
            let (target, mark) = (expected.target.clone(), expected.mark);
            lay_down(&folder, &Marker { schema: Schema::V1, target, mark })
                .map_err(|error| unwritable(place, &format!("its marker cannot be written ({error})")))?;
            Ok((MarkerSeen::Ours, Some(Marked { iops: measure(&folder) })))
        }
    }
}

/// The top of a mount, or nothing: an unmounted folder is no place to write to.
fn top(place: &Path) -> Result<OwnedFd, MarkerSeen> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let top = rustix::fs::openat(CWD, place, flags, Mode::empty()).map_err(unread("it cannot be opened"))?;
    let seen = rustix::fs::statx(&top, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS)
        .map_err(unread("it cannot be looked at"))?;
    if seen.stx_attributes.contains(StatxAttributes::MOUNT_ROOT) {
        return Ok(top);
    }
    Err(MarkerSeen::Unread("nothing is mounted there".to_owned()))
}

pub(super) fn down(at: impl AsFd, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    rustix::fs::openat(at, name, flags, Mode::from_raw_mode(0o644))
}

fn unwritable(place: &Path, why: &str) -> MarkerSeen {
    let user = rustix::process::geteuid().as_raw();
    MarkerSeen::Unwritable(format!(
        "{why}: root runs `install -d -o {user} -m 755 {}`",
        place.join(FOLDER).display()
    ))
}

fn read(folder: &OwnedFd) -> Result<Option<Marker>, MarkerSeen> {
    let file = match down(folder, MARKER, OFlags::RDONLY) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(MarkerSeen::Other("its marker is a link".to_owned())),
        Err(error) => return Err(unread("its marker cannot be opened")(error)),
    };
    let kind = rustix::fs::fstat(&file).map_err(unread("its marker cannot be looked at"))?.st_mode;
    if FileType::from_raw_mode(kind) != FileType::RegularFile {
        return Err(MarkerSeen::Other("its marker is no file".to_owned()));
    }
    let mut bytes = Vec::new();
    let mut file = std::fs::File::from(file).take(BYTES_MAX as u64 + 1);
    file.read_to_end(&mut bytes).map_err(|error| MarkerSeen::Unread(format!("its marker: {error}")))?;
    let marker = json::parse("the marker on the disk", &bytes, BYTES_MAX);
    marker.map(Some).map_err(|error| MarkerSeen::Other(json::chain(&error)))
}

fn lay_down(folder: &OwnedFd, marker: &Marker) -> Result<(), std::io::Error> {
    let text = serde_json::to_vec(marker)?;
    let mut file = std::fs::File::from(fresh(folder, NEW, OFlags::empty())?);
    file.write_all(&text)?;
    file.sync_all()?;
    rustix::fs::renameat(folder, NEW, folder, MARKER)?;
    Ok(rustix::fs::fsync(folder)?)
}

/// Makes a file that must be new; a leftover of a dead attempt is removed first.
pub(super) fn fresh(folder: &OwnedFd, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error),
    }
    down(folder, name, flags | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)
}

/// Durable writes of 4 KiB in a second, past every cache; none where the file system does not support that.
fn measure(folder: &OwnedFd) -> Option<u32> {
    let measured = fresh(folder, PROBE, OFlags::DIRECT | OFlags::DSYNC).and_then(|file| timed(&file));
    // If it stays, it is small; the next measurement starts by removing it.
    let _gone = rustix::fs::unlinkat(folder, PROBE, AtFlags::empty());
    measured.ok()
}

fn timed(file: &OwnedFd) -> Result<u32, Errno> {
    const LAYER: usize = 1 << 20;
    let memory = vec![0x5a_u8; LAYER + BLOCK];
    let aligned = memory.get(memory.as_ptr().align_offset(BLOCK)..).ok_or(Errno::INVAL)?;
    let layer = aligned.get(..LAYER).ok_or(Errno::INVAL)?;
    for start in (0..PROBE_BYTES).step_by(LAYER) {
        rustix::io::pwrite(file, layer, start)?;
    }
    let block = aligned.get(..BLOCK).ok_or(Errno::INVAL)?;
    let (start, mut place, mut writes) = (Instant::now(), 1_u64, 0_u32);
    while writes < WRITES_MAX && start.elapsed() < MEASURE_MAX {
        // Any order that no disk expects.
        place = place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let at = (place >> 33) % (PROBE_BYTES / BLOCK as u64) * BLOCK as u64;
        rustix::io::pwrite(file, block, at)?;
        writes += 1;
    }
    let millis = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX).max(1);
    Ok(u32::try_from(u64::from(writes) * 1000 / millis).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(before: Before) -> Expected {
        Expected {
            target: "usb1".parse().unwrap(),
            mark: "01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a01".parse().unwrap(),
            before,
        }
    }

    #[test]
    fn nothing_is_written_where_nothing_is_mounted() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join(FOLDER)).unwrap();
        let (seen, marked) = look(place.path(), &expected(Before::Never));
        assert_eq!((seen, marked), (MarkerSeen::Unread("nothing is mounted there".to_owned()), None));
        assert_eq!(std::fs::read_dir(place.path().join(FOLDER)).unwrap().count(), 0);
    }

    #[test]
    fn a_marker_is_read_strictly_and_through_no_link() {
        let place = tempfile::tempdir().unwrap();
        let folder =
            rustix::fs::openat(CWD, place.path(), OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        assert_eq!(read(&folder), Ok(None));
        let Expected { target, mark, .. } = expected(Before::Never);
        let marker = Marker { schema: Schema::V1, target, mark };
        std::fs::write(place.path().join(NEW), "of an attempt that died").unwrap();
        lay_down(&folder, &marker).unwrap();
        assert_eq!(read(&folder), Ok(Some(marker)));
        let path = place.path().join(MARKER);
        let good = std::fs::read_to_string(&path).unwrap();
        let long = format!("{good}{}", " ".repeat(BYTES_MAX));
        for bad in [
            "",
            "{}",
            "null",
            &good.replace("usb1", "../x"),
            &good.replace("/v1", "/v2"),
            &format!("{good}x"),
            &long,
        ] {
            std::fs::write(&path, bad).unwrap();
            assert!(matches!(read(&folder), Err(MarkerSeen::Other(_))), "{bad:.60}");
        }
        std::fs::rename(&path, place.path().join("aside")).unwrap();
        std::os::unix::fs::symlink("aside", &path).unwrap();
        assert!(matches!(read(&folder), Err(MarkerSeen::Other(_))));
        std::fs::remove_file(&path).unwrap();
        rustix::fs::mknodat(&folder, MARKER, FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
        assert!(matches!(read(&folder), Err(MarkerSeen::Other(_))), "a pipe is not waited for");
    }

    #[test]
    fn a_measurement_is_bounded_and_leaves_nothing() {
        let place = tempfile::tempdir().unwrap();
        let folder =
            rustix::fs::openat(CWD, place.path(), OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        let start = Instant::now();
        // A file system without direct writes is not measured at all.
        assert_ne!(measure(&folder), Some(0));
        assert!(start.elapsed() < MEASURE_MAX * 20);
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }
}
