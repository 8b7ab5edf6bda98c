//! The fields of a storage target.

use super::{Field, field, text};
use crate::form::{Case, Group, Input, Shape};

const BACKEND: &[Case] = &[
    Case { path: "local-dir", label: "a file system in the host", shape: Shape::Content },
    Case { path: "usb", label: "a disk that may be pulled out", shape: Shape::Content },
    Case { path: "nfs", label: "a folder by NFS", shape: Shape::Content },
    Case { path: "cifs", label: "a share by CIFS", shape: Shape::Content },
    Case { path: "pbs", label: "a Proxmox Backup Server", shape: Shape::Content },
];

const GENERAL: &[Field] = &[
    text("name", "Name"),
    text("label", "Text on its sticker"),
    field(
        "role",
        "What it is for",
        Input::Choice(&[
            ("primary", "disks of guests"),
            ("bulk-data", "bulk volumes"),
            ("local-backup", "backups near the host"),
            ("offsite-backup", "backups in another place"),
        ]),
    ),
    field("class", "Speed", Input::Choice(&[("fast", "fast"), ("slow", "slow")])),
    field(
        "state",
        "Whether it is used",
        Input::Choice(&[
            ("attached", "attached"),
            ("disconnected", "disconnected: it may come back"),
            ("decommissioned", "decommissioned: for good"),
        ]),
    ),
    field("default", "Used where no target of its role is named", Input::Check),
    field("schedulable", "Backups may be scheduled to it", Input::Check),
];

const PLACE: &[Field] = &[
    field("backend", "Kind", Input::Variant(BACKEND)),
    text("backend.local-dir.uuid", "File system in the host: its UUID"),
    text("backend.usb.uuid", "Disk that may be pulled out: its UUID"),
    text("backend.nfs.server", "NFS: server"),
    text("backend.nfs.export", "NFS: folder"),
    text("backend.cifs.server", "CIFS: server"),
    text("backend.cifs.share", "CIFS: share"),
    text("backend.pbs.server", "Backup server"),
    text("backend.pbs.datastore", "Backup server: datastore"),
    text("backend.pbs.namespace", "Backup server: namespace"),
    text("backend.pbs.fingerprint", "Backup server: fingerprint"),
    text("backend.pbs.key", "Backup server: key of the backups"),
    text("creds", "Sealed name and password, as `holdfast storage seal` prints them"),
];

pub(super) const FORM: &[Group] =
    &[Group { legend: "Storage target", fields: GENERAL }, Group { legend: "Where it is", fields: PLACE }];
