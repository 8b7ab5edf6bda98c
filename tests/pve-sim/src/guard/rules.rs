//! The rules of the wire guard, as tables.
//!
//! In: one request's method, path and parameters. Out: everything in it that must never be sent, each with the reason. Pure. The
//! presence of a parameter is an offence, whatever its value: an agent that sends `force=0` should not know `force` at all. Only a
//! `revert` of name servers may be sent: Proxmox has no other way to drop a pending change, and a document owns them.
use serde_json::Value;

use crate::http::params::Params;

/// A parameter and what it would do.
type Forbidden = (&'static str, &'static str);

/// On no call at all.
const ANYWHERE: &[Forbidden] = &[
    ("force", "it overwrites, or takes away what stands in the way, without asking"),
    ("skiplock", "it acts on a guest that another task has locked"),
    ("destroy-unreferenced-disks", "it destroys disks that nobody named"),
    ("purge", "it takes the guest out of other people's jobs"),
    ("unique", "with it the network that was passed is silently ignored"),
    ("script", "it runs a program on the node"),
    ("hookscript", "it runs a program on the node"),
    ("dumpdir", "it writes outside every storage"),
    ("tmpdir", "it writes outside every storage"),
    ("forceStop", "whoever wants a guest off says stop"),
    ("overrule-shutdown", "it aborts somebody else's shutdown"),
    ("lock", "a guest's lock is its task's alone"),
];

/// On a restore.
const RESTORE: &[Forbidden] = &[
    ("features", "they are kept from the archive; a token may not pass them"),
    ("tags", "they are checked on a path that the token lacks; they are set afterwards"),
    ("start", "a guest starts in a step of its own, after it was checked"),
    ("ignore-unpack-errors", "half an archive is no guest"),
    ("password", "no secret goes in this way"),
    ("ssh-public-keys", "no access is opened this way"),
    ("ha-managed", "nothing else may start or move the guest"),
    ("protection", "it is switched on in a step of its own"),
];

/// On a backup.
const BACKUP: &[Forbidden] = &[
    ("stop", "it aborts everybody's backups"),
    ("all", "it backs up guests that are not ours"),
    ("pool", "it backs up guests that nobody named"),
    ("exclude", "it backs up guests that nobody named"),
    ("prune-backups", "it deletes older backups by Proxmox's choice"),
    ("job-id", "it speaks in the name of another job"),
    ("stdout", "an archive goes to a storage"),
];

/// On a change of configuration.
const CONFIGURE: &[Forbidden] = &[
    ("features", "only root may"),
    ("unprivileged", "it is fixed at the restore"),
    ("revert", "a pending change may be somebody else's"),
    ("entrypoint", "it runs a program"),
    ("template", "a template does not start again"),
];

/// On moving a volume.
const MOVE_VOLUME: &[Forbidden] = &[("delete", "it destroys the source before anybody looked at the copy")];

/// The calls that have rules of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Restore,
    Destroy,
    Configure,
    Backup,
    MoveVolume,
    Other,
}

impl Kind {
    fn of(method: &str, segments: &[String]) -> Self {
        let words: Vec<&str> = segments.iter().map(String::as_str).collect();
        match (method, words.as_slice()) {
            ("POST", ["nodes", _, "lxc" | "qemu"]) => Self::Restore,
            ("DELETE", ["nodes", _, "lxc" | "qemu", _]) => Self::Destroy,
            ("PUT" | "POST", ["nodes", _, "lxc" | "qemu", _, "config"]) => Self::Configure,
            ("POST", ["nodes", _, "vzdump"]) => Self::Backup,
            ("POST", ["nodes", _, "lxc", _, "move_volume"]) => Self::MoveVolume,
            _ => Self::Other,
        }
    }

    const fn forbidden(self) -> &'static [Forbidden] {
        match self {
            Self::Restore => RESTORE,
            Self::Backup => BACKUP,
            Self::Configure => CONFIGURE,
            Self::MoveVolume => MOVE_VOLUME,
            Self::Destroy | Self::Other => &[],
        }
    }

    /// What must be there, with its value: what Proxmox does without it is worse than a refusal.
    const fn demanded(self) -> &'static [(&'static str, &'static str, &'static str)] {
        match self {
            Self::Restore => &[
                ("restore", "1", "a guest is made from an archive, never created"),
                ("unprivileged", "1", "a privileged guest is root on the node"),
            ],
            Self::Backup => &[("remove", "0", "without it Proxmox prunes older backups")],
            Self::Destroy | Self::Configure | Self::MoveVolume | Self::Other => &[],
        }
    }
}

/// Everything that offends: the parameter and why.
pub(super) fn judge(method: &str, segments: &[String], params: &Params) -> Vec<(String, String)> {
    let kind = Kind::of(method, segments);
    let mut found: Vec<(String, String)> = Vec::new();
    for (name, why) in ANYWHERE.iter().chain(kind.forbidden()) {
        let names = *name == "revert" && params.get(*name).and_then(Value::as_str).is_some_and(of_names);
        if params.contains_key(*name) && !names {
            found.push(((*name).to_owned(), (*why).to_owned()));
        }
    }
    for (name, value, why) in kind.demanded() {
        if params.get(*name).and_then(crate::call::plain).as_deref() != Some(value) {
            found.push(((*name).to_owned(), format!("it must be {value}: {why}")));
        }
    }
    if kind == Kind::Backup
        && params.get("exclude-path").is_some_and(|given| !given.as_str().is_some_and(leaves_out_mounts))
    {
        found.push((
            "exclude-path".to_owned(),
            "it leaves more out than what lies beneath a mount".to_owned(),
        ));
    }
    if method == "DELETE" && segments.last().is_some_and(|last| last == "prunebackups") {
        found.push(("prunebackups".to_owned(), "it deletes backups that nobody named".to_owned()));
    }
    if kind == Kind::Destroy {
        let bare = "a destroy is sent bare: what its parameters can do is nothing we want";
        let unnamed = params.keys().filter(|name| !ANYWHERE.iter().any(|(known, _)| known == name));
        found.extend(unnamed.map(|name| (name.clone(), bare.to_owned())));
    }
    let bound = params.iter().filter(|(name, value)| is_host_path(name, value));
    found.extend(bound.map(|(name, _)| (name.clone(), "it mounts a path of the node".to_owned())));
    found
}

/// Whether only name servers are reverted.
fn of_names(given: &str) -> bool {
    given.split(',').all(|name| matches!(name, "nameserver" | "searchdomain"))
}

/// Whether each pattern matches only what is below one plain absolute path.
fn leaves_out_mounts(given: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let beneath = |pattern: &str| {
        pattern
            .strip_suffix("/?*")
            .is_some_and(|path| path.len() > 1 && path.starts_with('/') && path.chars().all(plain))
    };
    given.split('\0').all(beneath)
}

/// A mount point that is no volume, and a device of the node.
fn is_host_path(name: &str, value: &Value) -> bool {
    let numbered = |stem: &str| {
        name.strip_prefix(stem)
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
    };
    let Some(text) = value.as_str() else { return false };
    let path =
        |part: &str| part.starts_with('/') || part.starts_with("volume=/") || part.starts_with("path=/");
    (numbered("mp") || name == "rootfs" || numbered("dev")) && text.split(',').any(path)
}
