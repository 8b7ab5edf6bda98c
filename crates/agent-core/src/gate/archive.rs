//! The check of an archive, and of the guest restored from it.
//!
//! What comes in: the configuration inside an archive ([`Lines`]), and later that of the guest which was made from it.
//! What goes out: nothing, or the line for which it is refused. Allowed is a closed list: what is not in it is refused,
//! so a key that a later Proxmox invents is refused as well. The new guest's configuration comes from the document; the
//! archive's is only judged.
//!
//! What Proxmox unpacks is beyond judging. It shows the first `./etc/vzdump/pct.conf` of a tar archive and, once all is
//! unpacked, merges the one that is then in the guest's root: the first of any spelling, since nothing is written
//! twice. In a backup that `vzdump` made these are one; in an archive made by anyone who can write to the storage they
//! may differ. No reading beforehand sees the second one. Nor does the agent see the other members: path escapes, links
//! out and device nodes are for `tar` as Proxmox runs it, within the new guest's user namespace. Two things protect
//! against it. A golden is known by the digest of all its bytes. And what was made is judged again by [`judge_made`],
//! before it is marked, kept or started; what fails that is taken back.

mod disk;
mod lines;

use std::collections::BTreeMap;

use holdfast_protocol::id::{BridgeName, GuestUid};
use holdfast_protocol::size::DiskGib;

use crate::model::mark::{self, Mark};

pub(super) use disk::disk_bytes;
pub use lines::{BYTES_MAX, Line, Lines};

/// Why an archive is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveRefused {
    #[error("the archive is refused: its configuration is {0} bytes long, at most {BYTES_MAX} are read")]
    Size(usize),
    /// A line that is not allowed.
    #[error(
        "the archive is refused for line {number} of its configuration, {line:?} ({why}): make it again without it, or use another"
    )]
    Line {
        /// Counted from 1.
        number: usize,
        line: String,
        why: &'static str,
    },
    /// Its root would be root outside.
    #[error(
        "the archive is refused because it does not say `unprivileged: 1`: make it again with it, or use another"
    )]
    Privileged,
    /// Its root disk is larger than the one asked for.
    #[error(
        "the archive's root disk of {archive_bytes} bytes does not fit the {wanted} asked for: ask for more"
    )]
    TooLarge {
        /// Of the archive.
        archive_bytes: u64,
        wanted: DiskGib,
    },
    /// It is a backup of another guest.
    #[error("the backup is refused because it does not carry the mark of guest {0}: it is somebody else's")]
    Anothers(GuestUid),
    /// What it would make is not known.
    #[error(
        "the archive is refused because its configuration has no root disk: make it again, or use another"
    )]
    NoRootfs,
}

/// Why a guest that was made from an archive is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "what the archive made is refused for {line:?} ({why}), which it did not show beforehand: look who could write the archive, and use another"
)]
pub struct MadeRefused {
    /// What of its configuration.
    pub line: String,
    pub why: &'static str,
}

/// Which networks an archive may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nets {
    /// The first alone: it is the one that the restore call replaces.
    First,
    /// All: each is written out anew ([`super::layout`]).
    Rewritten,
}

/// Whose archive it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Volumes {
    RootOnly,
    Own,
}

/// Keys that say nothing that could hurt, or that the restore call sets anew.
const HARMLESS: &[&str] = &[
    "arch",
    "cmode",
    "console",
    "cores",
    "cpulimit",
    "cpuunits",
    "hostname",
    "memory",
    "nameserver",
    "onboot",
    "ostype",
    "protection",
    "searchdomain",
    "startup",
    "swap",
    "tags",
    "timezone",
    "tty",
];

/// Feature flags a golden may carry: what Docker in a container needs.
const FEATURES: &[&str] = &["nesting=1", "nesting=0", "keyctl=1", "keyctl=0"];

/// Judges a golden's configuration.
///
/// # Errors
/// The first line for which it is refused.
pub fn judge_golden(lines: &Lines, rootfs_wanted: DiskGib) -> Result<(), ArchiveRefused> {
    let rootfs = judge(lines, Volumes::RootOnly, Nets::First)?;
    let wanted_bytes = u64::from(rootfs_wanted.get()) << 30;
    match disk_bytes(&rootfs.value) {
        Some(bytes) if bytes > wanted_bytes => {
            Err(ArchiveRefused::TooLarge { archive_bytes: bytes, wanted: rootfs_wanted })
        }
        Some(_) => Ok(()),
        None => Err(rootfs.refuse("it does not say how large it is")),
    }
}

/// The size of an archive's root disk in bytes, where its configuration says it.
#[must_use]
pub fn rootfs_bytes(lines: &Lines) -> Option<u64> {
    disk_bytes(&lines.get("rootfs")?.value)
}

/// Judges the configuration inside a backup of a guest of ours: as a golden's, but with its volumes, and it must carry the
/// guest's own mark.
///
/// # Errors
/// The first line for which it is refused.
pub fn judge_backup(lines: &Lines, uid: GuestUid, nets: Nets) -> Result<(), ArchiveRefused> {
    judge(lines, Volumes::Own, nets)?;
    let separator = |c: char| matches!(c, ';' | ',' | ' ');
    let tags = lines.get("tags").map(|line| line.value.as_str()).unwrap_or_default().split(separator);
    let tags = tags.filter(|tag| !tag.is_empty()).map(str::to_owned).collect();
    match mark::read(&tags, lines.description()) {
        Mark::Of(found) if found == uid => Ok(()),
        _ => Err(ArchiveRefused::Anothers(uid)),
    }
}

/// The rules of both; gives the root disk's line.
fn judge(lines: &Lines, volumes: Volumes, nets: Nets) -> Result<&Line, ArchiveRefused> {
    for line in lines.iter() {
        if let Some(why) = refusal(&line.key, &line.value, volumes, nets) {
            return Err(line.refuse(why));
        }
    }
    if lines.get("unprivileged").is_none() {
        return Err(ArchiveRefused::Privileged);
    }
    lines.get("rootfs").ok_or(ArchiveRefused::NoRootfs)
}

/// Judges the configuration of a guest as it was made from an archive that had passed: the same rules, and each network is on
/// the bridge that was given. Without raw lines; the environment and the description are the caller's own.
///
/// # Errors
/// The first line for which it must not be used.
pub fn judge_made(
    keys: &BTreeMap<String, String>,
    raw_lxc: &[String],
    bridge: &BridgeName,
) -> Result<(), MadeRefused> {
    if let Some(line) = raw_lxc.first() {
        return Err(MadeRefused { line: line.clone(), why: RAW_LXC });
    }
    for (key, value) in keys {
        let elsewhere = slot(key, "net", NETS_MAX).is_some() && !is_on(value, bridge);
        let why = refusal(key, value, Volumes::Own, Nets::Rewritten)
            .or(elsewhere.then_some("the agent was not given this bridge"));
        if let Some(why) = why {
            return Err(MadeRefused { line: format!("{key}: {value}"), why });
        }
    }
    if keys.contains_key("unprivileged") {
        Ok(())
    } else {
        Err(MadeRefused { line: "unprivileged: 0".to_owned(), why: PRIVILEGED })
    }
}

/// Judges a guest that was made again from its own backup, as [`judge_made`] and [`judge_backup`] together do. No token
/// has `VM.Backup` over a number that is in no pool, so Proxmox did not show the archive's own lines beforehand.
///
/// # Errors
/// The first line for which it must not be used.
pub fn judge_made_again(
    keys: &BTreeMap<String, String>,
    raw_lxc: &[String],
    bridge: &BridgeName,
    (uid, mark): (GuestUid, Mark),
) -> Result<(), MadeRefused> {
    judge_made(keys, raw_lxc, bridge)?;
    let second = keys.iter().find(|(key, _)| slot(key, "net", NETS_MAX).is_some_and(|number| number > 0));
    if let Some((key, value)) = second {
        return Err(MadeRefused { line: format!("{key}: {value}"), why: ONE_NET });
    }
    if mark == Mark::Of(uid) {
        Ok(())
    } else {
        Err(MadeRefused { line: format!("{mark:?}"), why: "it does not carry the mark of its guest" })
    }
}

/// What a line means of a guest without an archive, such as one that somebody else made.
pub(super) fn hostile(key: &str, value: &str) -> Option<&'static str> {
    refusal(key, value, Volumes::Own, Nets::Rewritten)
}

const RAW_LXC: &str = "raw lxc lines can undo every other rule";
const ONE_NET: &str = "a guest has the one network that the document gives it";
const PRIVILEGED: &str = "root in a guest is never root outside";

/// Proxmox has `net0` to `net31`, and 256 of each other kind.
const NETS_MAX: u16 = 31;
const SLOTS_MAX: u16 = 255;

fn refusal(key: &str, value: &str, volumes: Volumes, nets: Nets) -> Option<&'static str> {
    if let Some(number) = slot(key, "net", NETS_MAX) {
        let fine = number == 0 || nets == Nets::Rewritten;
        return (!fine).then_some(ONE_NET);
    }
    if slot(key, "mp", SLOTS_MAX).or(slot(key, "unused", SLOTS_MAX)).is_some() {
        return match volumes {
            Volumes::RootOnly => Some("a golden has no volume but its root disk"),
            Volumes::Own => disk::refusal(key, value),
        };
    }
    match key {
        "rootfs" => disk::refusal(key, value),
        "unprivileged" => (value != "1").then_some(PRIVILEGED),
        "features" => value
            .split(',')
            .any(|flag| !FEATURES.contains(&flag))
            .then_some("only nesting and keyctl are known to be safe"),
        "hookscript" => Some("no script of the host runs for a guest"),
        "entrypoint" => Some("the golden starts by its own init"),
        "lock" | "template" | "parent" | "snapstate" => Some("it is no archive of a guest at rest"),
        key if slot(key, "dev", SLOTS_MAX).is_some() => Some("a guest never sees a device of the host"),
        key if HARMLESS.contains(&key) => None,
        _ => Some("this agent does not know it"),
    }
}

/// The number of a numbered key, written in its one way.
fn slot(key: &str, stem: &str, max: u16) -> Option<u16> {
    let digits = key.strip_prefix(stem)?;
    digits.parse().ok().filter(|number: &u16| *number <= max && number.to_string() == digits)
}

fn is_on(net: &str, bridge: &BridgeName) -> bool {
    let mut bridges = net.split(',').filter_map(|part| part.strip_prefix("bridge="));
    bridges.next() == Some(bridge.as_str()) && bridges.next().is_none()
}

#[cfg(test)]
mod tests;
