//! The storage space that a restore needs.
//!
//! A thin pool that runs full stops every guest on it, so nothing is restored that could fill one. What comes in: how full
//! the storage is, how large the disks are, and how much their archive holds. What goes out: why there is no room, with the
//! sizes, or nothing. Deliberately absent: what others will write meanwhile; the level leaves room for that.
//!
//! Disks are promised far beyond a thin storage on ordinary hosts, and a restore fills no more of it than it unpacks.
//! By the disks' sizes alone most tests would be refused there for ever, so the archive's own size counts where it says
//! less.

use std::fmt;

/// Compressors shrink what guests hold to a half or a third; a quarter is the best that is counted on.
const UNPACKS_TO: u64 = 4;

/// Storages that give away the whole disk when it is made.
const THICK: [&str; 1] = ["lvm"];

/// How full a storage is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filled<'a> {
    /// Its kind, as Proxmox names it.
    pub kind: &'a str,
    /// Bytes that are taken.
    pub used: u64,
    /// Bytes that it has.
    pub total: u64,
}

/// The archive that is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed<'a> {
    pub name: &'a str,
    /// Its size, by our own record of it.
    pub bytes: u64,
}

impl Packed<'_> {
    /// What it holds at most, unpacked. Its name says whether it is compressed; a backup server reports the unpacked
    /// size.
    fn holds(self) -> u64 {
        match self.name.rsplit_once(".tar") {
            Some((_, suffix)) if !suffix.is_empty() => self.bytes.saturating_mul(UNPACKS_TO),
            _ => self.bytes,
        }
    }
}

/// What a restore takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Takes {
    disks: u64,
    fills: u64,
}

impl fmt::Display for Takes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let disks = gib(self.disks);
        if self.fills < self.disks {
            write!(f, "up to {} GiB on its disks of {disks} GiB", gib(self.fills))
        } else {
            write!(f, "its disks of {disks} GiB")
        }
    }
}

/// Whole GiB, at least as many.
const fn gib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 30)
}

/// Why disks of so many bytes cannot be restored there from this archive, when it may be filled to `most` percent.
#[must_use]
pub fn lacks(storage: Filled<'_>, disks: u64, archive: Option<Packed<'_>>, most: u64) -> Option<String> {
    let unpacked = archive.filter(|_| !THICK.contains(&storage.kind)).map_or(disks, Packed::holds);
    let takes = Takes { disks, fills: disks.min(unpacked) };
    if storage.total == 0 {
        return Some("does not answer".to_owned());
    }
    let percent = |bytes: u128| bytes * 100 / u128::from(storage.total);
    let filled = percent(u128::from(storage.used) + u128::from(takes.fills));
    (filled >= u128::from(most)).then(|| {
        let (used, total) = (gib(storage.used), gib(storage.total));
        format!(
            "is {} % full ({used} of {total} GiB) and would be {filled} % full with {takes} (from {most} % on is too full)",
            percent(storage.used.into())
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn filled(kind: &str, used: u64) -> Filled<'_> {
        Filled { kind, used: used * GIB, total: 1_000 * GIB }
    }

    #[test]
    fn what_would_fill_it_is_refused_with_its_sizes() {
        let full = |used: u64, disks: u64| lacks(filled("lvmthin", used), disks * GIB, None, 85);
        assert_eq!(full(549, 300), None);
        assert_eq!(full(0, 849), None);
        assert_eq!(
            full(840, 300).unwrap(),
            "is 84 % full (840 of 1000 GiB) and would be 114 % full with its disks of 300 GiB (from 85 % on is too full)"
        );
        assert!(full(550, 300).is_some());
        assert!(lacks(filled("dir", 0), u64::MAX, None, 85).is_some());
        assert!(
            lacks(Filled { kind: "dir", used: 0, total: 0 }, GIB, None, 85).is_some(),
            "zero means nothing"
        );
    }

    /// Half a terabyte is promised to a guest that holds a tenth of it: tried on what is thin, refused on what is thick.
    #[test]
    fn a_thin_storage_is_filled_with_what_the_archive_holds() {
        let tried = |kind: &str, name: &str, bytes: u64| {
            lacks(filled(kind, 600), 500 * GIB, Some(Packed { name, bytes: bytes * GIB }), 85)
        };
        let (zstd, server) =
            ("backup2:backup/vzdump-lxc-300-1.tar.zst", "off1:backup/ct/300/2026-11-21T04:36:17Z");
        assert_eq!(tried("lvmthin", zstd, 20), None);
        assert_eq!(tried("lvmthin", server, 80), None);
        assert_eq!(tried("lvmthin", "backup2:backup/vzdump-lxc-300-1.tar", 80), None);
        assert!(tried("lvm", zstd, 20).is_some());
        let reported = tried("lvmthin", zstd, 80).unwrap();
        assert!(reported.contains("92 % full with up to 320 GiB on its disks of 500 GiB"), "{reported}");
        assert_eq!(tried("lvmthin", zstd, 0), None, "empty disks");
        assert!(tried("lvm", zstd, 0).is_some(), "which are given away whole where it is thick");
        assert!(
            tried("lvmthin", zstd, 200).unwrap().contains("with its disks of 500 GiB"),
            "never more than the disks"
        );
    }
}
