//! The desired storage entry of a target, and its differences.
//!
//! Proxmox itself checks little: a wrong namespace, a missing key or a folder that is no mount point all show as a
//! storage that works. What comes in: what was approved, and the entry as `GET /storage` gives it. What goes out: a
//! text, and the exact line for root, who makes the entry where the agent has no sealed token for that
//! (`docs/adr/0023`). Pure. Deliberately absent: credentials, which Proxmox never shows.

use std::collections::BTreeSet;

use holdfast_protocol::storage::{Approval, Backend, StorageRole};

use crate::model::storage::{EntrySeen, place};

/// Its type, and the fields that matter besides; of a key the fingerprint. No credentials.
#[must_use]
pub fn fields(approval: &Approval) -> (&'static str, Vec<(&'static str, String)>) {
    let (kind, mut fields) = match &approval.backend {
        Backend::LocalDir { .. } | Backend::Usb { .. } => {
            let path = place(&approval.name).display().to_string();
            ("dir", vec![("path", path), ("is_mountpoint", "1".to_owned())])
        }
        Backend::Nfs { server, export } => {
            ("nfs", vec![("server", server.as_str().to_owned()), ("export", export.as_str().to_owned())])
        }
        Backend::Cifs { server, share } => {
            ("cifs", vec![("server", server.as_str().to_owned()), ("share", share.as_str().to_owned())])
        }
        Backend::Pbs { server, datastore, namespace, fingerprint, key } => {
            let mut fields =
                vec![("server", server.as_str().to_owned()), ("datastore", datastore.as_str().to_owned())];
            fields.extend(namespace.iter().map(|namespace| ("namespace", namespace.as_str().to_owned())));
            fields.push(("fingerprint", fingerprint.as_str().to_owned()));
            fields.push(("encryption-key", key.as_str().to_owned()));
            ("pbs", fields)
        }
    };
    let content: BTreeSet<&str> = content(approval.role).iter().copied().collect();
    fields.push(("content", content.into_iter().collect::<Vec<_>>().join(",")));
    (kind, fields)
}

/// The difference of an entry that is right and not in use.
pub const DISABLED: &str = "it is disabled";

/// What may lie on it.
const fn content(role: StorageRole) -> &'static [&'static str] {
    match role {
        StorageRole::Primary => &["rootdir", "images"],
        StorageRole::LocalBackup | StorageRole::OffsiteBackup => &["backup"],
        StorageRole::BulkData => &["rootdir"],
    }
}

/// The line by which root makes the entry. Capitals are root's to fill in; the password is asked for.
#[must_use]
pub fn add_line(approval: &Approval) -> String {
    let (kind, fields) = fields(approval);
    let mut line = format!("pvesm add {kind} {}", approval.name);
    for (name, value) in fields {
        // The document knows the key by its fingerprint; root has the file.
        let value = if name == "encryption-key" { "KEYFILE".to_owned() } else { value };
        line.push_str(&format!(" --{name} {value}"));
    }
    if approval.backend.needs_creds() {
        line.push_str(" --username NAME --password");
    }
    line
}

/// The line that makes an entry, in the words of a difference.
#[must_use]
pub fn line_in(words: &str) -> Option<&str> {
    words.split('`').nth(1).filter(|line| line.starts_with("pvesm add "))
}

/// How the entry that is there differs from the one that should be, in words; nothing, where it does not.
#[must_use]
pub fn differences(approval: &Approval, seen: Option<&EntrySeen>) -> Vec<String> {
    let Some(seen) = seen else {
        return vec![format!(
            "Proxmox has no storage {0}, or hides it: root runs `{1}`, and gives the agent's user and its observe token \
             Datastore.Audit on /storage/{0}",
            approval.name,
            add_line(approval)
        )];
    };
    let of = |name: &str| seen.get(name).map_or("", String::as_str);
    let (kind, fields) = fields(approval);
    if of("type") != kind {
        return vec![format!("its entry is of type {:?}, not {kind}", of("type"))];
    }
    let mut found: Vec<String> =
        fields.iter().filter_map(|(name, value)| difference(name, value, of(name))).collect();
    // A field that should not be there at all: data would go to another place.
    if kind == "pbs" && !fields.iter().any(|(name, _)| *name == "namespace") && !of("namespace").is_empty() {
        found.push(format!("its namespace is {:?}, and should be the root one", of("namespace")));
    }
    if matches!(of("disable"), "1" | "true") {
        found.push(DISABLED.to_owned());
    }
    found
}

fn difference(name: &str, wanted: &str, seen: &str) -> Option<String> {
    let reported = |words: String| Some(words);
    match (name, seen) {
        // Proxmox takes a path for it as well, which must then be the target's own; `path` says which that is.
        ("is_mountpoint", "1" | "yes" | "true") => None,
        ("is_mountpoint", path) if path.starts_with('/') => None,
        ("is_mountpoint", _) => {
            reported("it is not set as a mount point: backups would fill the root disk".to_owned())
        }
        ("encryption-key", "") => {
            reported("it has no encryption key: backups would leave the box readable".to_owned())
        }
        ("content", seen) => {
            let has: BTreeSet<&str> = seen.split(',').map(str::trim).collect();
            let lacks: Vec<&str> = wanted.split(',').filter(|kind| !has.contains(kind)).collect();
            let more: Vec<&str> = has
                .iter()
                .copied()
                .filter(|kind| !kind.is_empty() && !wanted.split(',').any(|one| one == *kind))
                .collect();
            match (lacks.is_empty(), more.is_empty()) {
                (true, true) => None,
                (false, _) => reported(format!("it does not take {}", lacks.join(", "))),
                (true, false) => reported(format!("it takes {} as well", more.join(", "))),
            }
        }
        (_, seen) if seen.eq_ignore_ascii_case(wanted) && name == "fingerprint" => None,
        (_, seen) if seen == wanted => None,
        (_, "") => reported(format!("its {name} is missing, and should be {wanted}")),
        (_, seen) => reported(format!("its {name} is {seen:?}, and should be {wanted:?}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hash(byte: &str) -> String {
        vec![byte; 32].join(":")
    }

    fn approval(backend: serde_json::Value, role: &str) -> Approval {
        serde_json::from_value(json!({ "name": "usb1", "backend": backend, "class": "slow", "role": role }))
            .unwrap()
    }

    fn disk() -> Approval {
        approval(json!({ "usb": { "uuid": "0b5f1f3c-9d0e-4a6b-8f51-1c2d3e4f5a6b" } }), "local-backup")
    }

    fn pbs() -> Approval {
        let backend = json!({ "pbs": { "server": "10.66.0.1", "datastore": "pvestore", "namespace": "hf",
            "fingerprint": hash("86"), "key": hash("b2") } });
        approval(backend, "offsite-backup")
    }

    fn seen(fields: serde_json::Value) -> EntrySeen {
        serde_json::from_value(fields).unwrap()
    }

    fn good_disk() -> EntrySeen {
        seen(
            json!({ "type": "dir", "path": "/mnt/holdfast/usb1", "is_mountpoint": "1", "content": "backup", "digest": "x" }),
        )
    }

    fn good_pbs() -> EntrySeen {
        seen(
            json!({ "type": "pbs", "server": "10.66.0.1", "datastore": "pvestore", "namespace": "hf", "content": "backup",
            "fingerprint": hash("86"), "encryption-key": hash("b2"), "username": "pve@pbs!bk" }),
        )
    }

    #[test]
    fn the_line_makes_what_is_then_found_right() {
        let line = "pvesm add dir usb1 --path /mnt/holdfast/usb1 --is_mountpoint 1 --content backup";
        assert_eq!(add_line(&disk()), line);
        assert!(
            add_line(&pbs())
                .ends_with("--encryption-key KEYFILE --content backup --username NAME --password")
        );
        assert_eq!(differences(&disk(), Some(&good_disk())), Vec::<String>::new());
        assert_eq!(differences(&pbs(), Some(&good_pbs())), Vec::<String>::new());
        let nfs = approval(json!({ "nfs": { "server": "nas", "export": "/srv/bulk" } }), "bulk-data");
        let entry = json!({ "type": "nfs", "server": "nas", "export": "/srv/bulk", "content": "rootdir", "path": "/mnt/pve/usb1" });
        assert_eq!(differences(&nfs, Some(&seen(entry))), Vec::<String>::new());
        assert!(differences(&disk(), None)[0].contains(line));
    }

    #[test]
    fn each_difference_is_reported() {
        for (of, good, field, value, words) in [
            (disk as fn() -> Approval, good_disk as fn() -> EntrySeen, "type", Some("btrfs"), "of type"),
            (disk, good_disk, "path", Some("/mnt/holdfast/usb2"), "its path is"),
            (disk, good_disk, "is_mountpoint", None, "fill the root disk"),
            (disk, good_disk, "is_mountpoint", Some("0"), "fill the root disk"),
            (disk, good_disk, "content", Some("rootdir"), "does not take backup"),
            (disk, good_disk, "content", Some("iso,backup"), "takes iso as well"),
            (disk, good_disk, "disable", Some("1"), "disabled"),
            (pbs, good_pbs, "server", Some("10.66.0.2"), "its server is"),
            (pbs, good_pbs, "datastore", Some("other"), "its datastore is"),
            (pbs, good_pbs, "namespace", Some("hf2"), "its namespace is"),
            (pbs, good_pbs, "namespace", None, "its namespace is missing"),
            (pbs, good_pbs, "fingerprint", None, "its fingerprint is missing"),
            (pbs, good_pbs, "encryption-key", None, "leave the box readable"),
            // What Proxmox shows of a key whose file names no fingerprint.
            (pbs, good_pbs, "encryption-key", Some("1"), "its encryption-key is"),
        ] {
            let mut entry = good();
            match value {
                Some(value) => entry.insert(field.to_owned(), value.to_owned()),
                None => entry.remove(field),
            };
            let found = differences(&of(), Some(&entry));
            assert_eq!(found.len(), 1, "{field} {value:?}: {found:?}");
            assert!(found[0].contains(words), "{found:?}");
        }
        let mut root = pbs();
        if let Backend::Pbs { namespace, .. } = &mut root.backend {
            *namespace = None;
        }
        assert!(differences(&root, Some(&good_pbs()))[0].contains("should be the root one"));
    }
}
