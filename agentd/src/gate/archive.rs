//! Archives are input too: may this one be restored?
//!
//! What comes in: the lines of the configuration inside an archive. What goes out: nothing, or the line for which it is
//! refused. Allowed is a closed list: what is not in it is refused, so a key that a later Proxmox invents is refused as
//! well. The new guest's configuration comes from the document; the archive's is only judged.

use std::collections::BTreeMap;

use holdfast_protocol::id::GuestUid;
use holdfast_protocol::size::DiskGib;

use crate::model::mark::{self, Mark};

/// Why an archive is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveRefused {
    /// A line that is not allowed.
    #[error("the archive is refused for its line {line:?} ({why}): make it again without it, or use another")]
    Line {
        /// The line.
        line: String,
        /// Why.
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
        /// Asked for.
        wanted: DiskGib,
    },
    /// It is a backup of somebody else.
    #[error("the backup is refused because it does not carry the mark of guest {0}: it is somebody else's")]
    Anothers(GuestUid),
    /// It cannot be told what it would make.
    #[error(
        "the archive is refused because its configuration has no root disk: make it again, or use another"
    )]
    NoRootfs,
}

/// Keys that say nothing that could hurt, or that the restore call sets anew.
const HARMLESS: &[&str] = &[
    "arch",
    "cmode",
    "console",
    "cores",
    "cpulimit",
    "cpuunits",
    "description",
    "hostname",
    "memory",
    "nameserver",
    "onboot",
    "ostype",
    "protection",
    "rootfs",
    "searchdomain",
    "startup",
    "swap",
    "tags",
    "timezone",
    "tty",
    "unprivileged",
];

/// Feature flags a golden may carry: what Docker in a container needs.
const FEATURES: &[&str] = &["nesting=1", "nesting=0", "keyctl=1", "keyctl=0"];

/// Judges a golden's configuration: its keys with values, and the lines that could not be read as such.
///
/// # Errors
/// The first line for which it is refused.
pub fn judge_golden(
    keys: &BTreeMap<String, String>,
    odd: &[String],
    rootfs_wanted: DiskGib,
) -> Result<(), ArchiveRefused> {
    let refuse = |line: String, why| Err(ArchiveRefused::Line { line, why });
    if let Some(line) = odd.first() {
        // The environment is written as a raw line; it is replaced by the restore call.
        let others = odd.iter().find(|line| !is_environment(line));
        if let Some(line) = others {
            return refuse(line.clone(), "it is no `key: value`, or it stands twice, or it is a raw line");
        }
        tracing::debug!(%line, "the archive carries an environment; the restore replaces it");
    }
    for (key, value) in keys {
        let line = format!("{key}: {value}");
        if let Some(why) = refusal(key, value) {
            return refuse(line, why);
        }
    }
    if keys.get("unprivileged").map(String::as_str) != Some("1") {
        return Err(ArchiveRefused::Privileged);
    }
    let rootfs = keys.get("rootfs").ok_or(ArchiveRefused::NoRootfs)?;
    let wanted_bytes = u64::from(rootfs_wanted.get()) << 30;
    match disk_bytes(rootfs) {
        Some(bytes) if bytes > wanted_bytes => {
            Err(ArchiveRefused::TooLarge { archive_bytes: bytes, wanted: rootfs_wanted })
        }
        _ => Ok(()),
    }
}

/// Judges the configuration inside a backup of a guest of ours, for making that guest again: as a golden's, but with its
/// volumes, and it must carry the guest's own mark.
///
/// # Errors
/// The first line for which it is refused.
pub fn judge_backup(
    keys: &BTreeMap<String, String>,
    odd: &[String],
    description: &str,
    uid: GuestUid,
) -> Result<(), ArchiveRefused> {
    let refuse = |line: String, why| Err(ArchiveRefused::Line { line, why });
    if let Some(line) = odd.iter().find(|line| !is_environment(line)) {
        return refuse(line.clone(), "it is no `key: value`, or it stands twice, or it is a raw line");
    }
    for (key, value) in keys {
        let volume = (numbered(key, "mp") || numbered(key, "unused")) && !value.starts_with('/');
        if let Some(why) = refusal(key, value).filter(|_| !volume) {
            return refuse(format!("{key}: {value}"), why);
        }
    }
    if keys.get("unprivileged").map(String::as_str) != Some("1") {
        return Err(ArchiveRefused::Privileged);
    }
    if !keys.contains_key("rootfs") {
        return Err(ArchiveRefused::NoRootfs);
    }
    let separator = |c: char| matches!(c, ';' | ',' | ' ');
    let tags = keys.get("tags").map(String::as_str).unwrap_or_default().split(separator);
    let tags = tags.filter(|tag| !tag.is_empty()).map(str::to_owned).collect();
    match mark::read(&tags, description) {
        Mark::Of(found) if found == uid => Ok(()),
        _ => Err(ArchiveRefused::Anothers(uid)),
    }
}

fn is_environment(line: &str) -> bool {
    line.starts_with("lxc.environment.runtime")
}

pub(super) fn refusal(key: &str, value: &str) -> Option<&'static str> {
    match key {
        "lxc.environment.runtime" | "env" => None,
        key if key.starts_with("lxc.") => Some("raw lxc lines can undo every other rule"),
        key if numbered(key, "dev") => Some("a guest never sees a device of the host"),
        key if numbered(key, "mp") => Some("a golden has no mount points; volumes come from the document"),
        key if numbered(key, "unused") => Some("a golden has no volumes but its root disk"),
        key if numbered(key, "net") => None,
        "hookscript" => Some("no script of the host runs for a guest"),
        "entrypoint" => Some("the golden starts by its own init"),
        "lock" | "template" | "parent" | "snapstate" => Some("it is no archive of a guest at rest"),
        "features" => value
            .split(',')
            .any(|flag| !FEATURES.contains(&flag.trim()))
            .then_some("only nesting and keyctl are known to be safe"),
        "rootfs" if value.starts_with('/') => Some("a guest never sees a path of the host"),
        "unprivileged" if value != "1" => Some("root in a guest is never root outside"),
        key if HARMLESS.contains(&key) => None,
        _ => Some("this agent does not know it"),
    }
}

pub(super) fn numbered(key: &str, stem: &str) -> bool {
    key.strip_prefix(stem)
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

/// What a disk's line says of its size.
pub(super) fn disk_bytes(text: &str) -> Option<u64> {
    let size = text.split(',').find_map(|part| part.strip_prefix("size="))?;
    let unit = |c: char| match c {
        'K' => Some(10),
        'M' => Some(20),
        'G' => Some(30),
        'T' => Some(40),
        _ => None,
    };
    match size.chars().last().and_then(unit) {
        Some(shift) => size.get(..size.len() - 1)?.parse::<u64>().ok()?.checked_mul(1 << shift),
        None => size.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn golden() -> BTreeMap<String, String> {
        [
            ("arch", "amd64"),
            ("cores", "1"),
            ("features", "nesting=1,keyctl=1"),
            ("hostname", "golden"),
            ("memory", "512"),
            ("net0", "name=eth0,bridge=vmbr0,ip=dhcp"),
            ("ostype", "debian"),
            ("rootfs", "local:900001/vm-900001-disk-0.raw,size=2G"),
            ("swap", "0"),
            ("unprivileged", "1"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
    }

    fn gib(n: u32) -> DiskGib {
        DiskGib::try_from(n).unwrap()
    }

    #[test]
    fn the_golden_that_was_proved_passes() {
        let environment = ["lxc.environment.runtime: HOLDFAST_BOOTSTRAP=old".to_owned()];
        assert_eq!(judge_golden(&golden(), &environment, gib(2)), Ok(()));
    }

    /// A backup of a guest of ours: with its volumes and its mark.
    fn own() -> (BTreeMap<String, String>, String, GuestUid) {
        let uid: GuestUid = "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55".parse().unwrap();
        let mut keys = golden();
        keys.insert("mp0".to_owned(), "tank:subvol-300-disk-1,mp=/srv/db,size=1G".to_owned());
        keys.insert("protection".to_owned(), "1".to_owned());
        keys.insert("tags".to_owned(), mark::tags(uid).join(";"));
        (keys, mark::description(uid), uid)
    }

    #[test]
    fn a_backup_is_its_own_guests_and_nothing_hostile() {
        let (keys, description, uid) = own();
        assert_eq!(judge_backup(&keys, &[], &description, uid), Ok(()));
        let other: GuestUid = "018f3c1f-6b1f-7c1d-9d0a-2f6d1c0b7a55".parse().unwrap();
        assert_eq!(judge_backup(&keys, &[], &description, other), Err(ArchiveRefused::Anothers(other)));
        assert_eq!(judge_backup(&keys, &[], "", uid), Err(ArchiveRefused::Anothers(uid)));
        for (key, value) in [
            ("mp0", "/etc,mp=/host"),
            ("rootfs", "/srv/root"),
            ("dev0", "/dev/kvm"),
            ("hookscript", "local:snippets/x.pl"),
            ("lxc.cap.drop", ""),
            ("lock", "backup"),
            ("features", "mount=nfs"),
        ] {
            let (mut keys, description, uid) = own();
            keys.insert(key.to_owned(), value.to_owned());
            let refused = judge_backup(&keys, &[], &description, uid);
            assert!(matches!(refused, Err(ArchiveRefused::Line { .. })), "{key}: {refused:?}");
        }
        let raw = ["lxc.mount.entry = /etc etc none bind 0 0".to_owned()];
        assert!(judge_backup(&own().0, &raw, &own().1, uid).is_err());
    }

    #[test]
    fn each_hostile_line_is_named() {
        for (key, value) in [
            ("lxc.mount.entry", "/etc etc none bind 0 0"),
            ("lxc.cap.drop", ""),
            ("dev0", "/dev/kvm"),
            ("hookscript", "local:snippets/x.pl"),
            ("mp0", "/etc,mp=/host"),
            ("mp1", "local:900001/vm-900001-disk-1.raw,mp=/data,size=1G"),
            ("features", "nesting=1,mount=nfs"),
            ("features", "fuse=1"),
            ("features", "mknod=1"),
            ("rootfs", "/srv/root"),
            ("unprivileged", "0"),
            ("entrypoint", "/bin/sh"),
            ("lock", "backup"),
            ("quantum", "1"),
        ] {
            let mut keys = golden();
            keys.insert(key.to_owned(), value.to_owned());
            match judge_golden(&keys, &[], gib(2)) {
                Err(ArchiveRefused::Line { line, .. }) => assert_eq!(line, format!("{key}: {value}")),
                other => panic!("{key}: {other:?}"),
            }
        }
    }

    #[test]
    fn what_is_missing_or_odd_is_refused_too() {
        let mut keys = golden();
        keys.remove("unprivileged");
        assert_eq!(judge_golden(&keys, &[], gib(2)), Err(ArchiveRefused::Privileged));
        let odd = ["lxc.idmap = u 0 1 2".to_owned()];
        assert!(matches!(judge_golden(&golden(), &odd, gib(2)), Err(ArchiveRefused::Line { .. })));
        assert!(matches!(judge_golden(&golden(), &[], gib(1)), Err(ArchiveRefused::TooLarge { .. })));
    }
}
