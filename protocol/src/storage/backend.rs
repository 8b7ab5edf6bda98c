//! The backend of a storage target, and how it is recognised.
//!
//! Every part has one spelling and no character that means something to a mount option, a property string or a shell.

use std::fmt;
use std::net::Ipv4Addr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::KeyFingerprint;
use crate::text::texts;

/// What a target is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Backend {
    /// A file system on a disk in the host.
    LocalDir {
        /// The UUID inside the file system.
        uuid: FsUuid,
    },
    /// A file system on a disk that may be pulled out.
    Usb {
        /// The UUID inside the file system.
        uuid: FsUuid,
    },
    /// A folder of another machine.
    Nfs {
        /// That machine.
        server: Server,
        /// The folder.
        export: ExportPath,
    },
    /// A share of another machine.
    Cifs {
        /// That machine.
        server: Server,
        /// The share.
        share: ShareName,
    },
    /// A datastore of a Proxmox Backup Server.
    Pbs {
        /// The server.
        server: Server,
        /// The datastore.
        datastore: DatastoreName,
        /// The namespace in it; the root one, where there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        namespace: Option<Namespace>,
        /// SHA-256 of the server's certificate.
        fingerprint: KeyFingerprint,
        /// The key that every backup must be encrypted with.
        key: KeyFingerprint,
    },
}

impl Backend {
    /// The file system's UUID, where the host itself has to mount it.
    #[must_use]
    pub const fn uuid(&self) -> Option<&FsUuid> {
        match self {
            Self::LocalDir { uuid } | Self::Usb { uuid } => Some(uuid),
            Self::Nfs { .. } | Self::Cifs { .. } | Self::Pbs { .. } => None,
        }
    }

    /// Whether it has a name and password.
    #[must_use]
    pub const fn needs_creds(&self) -> bool {
        matches!(self, Self::Cifs { .. } | Self::Pbs { .. })
    }

    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::LocalDir { .. } => "local-dir",
            Self::Usb { .. } => "usb",
            Self::Nfs { .. } => "nfs",
            Self::Cifs { .. } => "cifs",
            Self::Pbs { .. } => "pbs",
        }
    }
}

/// The text shown to people, which no two targets may share: one disk is one place, however it is plugged in.
impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LocalDir { uuid } | Self::Usb { uuid } => write!(f, "disk {}", uuid.as_str()),
            Self::Nfs { server, export } => write!(f, "nfs {}:{}", server.as_str(), export.as_str()),
            Self::Cifs { server, share } => write!(f, "cifs //{}/{}", server.as_str(), share.as_str()),
            Self::Pbs { server, datastore, namespace, .. } => {
                write!(f, "pbs {}:{}", server.as_str(), datastore.as_str())?;
                namespace.as_ref().map_or(Ok(()), |namespace| write!(f, "/{}", namespace.as_str()))
            }
        }
    }
}

texts! {
    /// The UUID inside an ext4, xfs or btrfs: 36 characters, lower case, not nil.
    FsUuid, 1..=36, "a file system's UUID is written as `lsblk -o UUID` does for ext4, xfs or btrfs: 36 characters, lower case", is_set_uuid;
    /// Another machine: a host name in lower case, or an IPv4 address that is neither this host's own nor everybody's.
    Server, 1..=253, "a server is a host name in lower case or an IPv4 address, not of this box itself", is_server;
    /// A folder that another machine exports.
    ExportPath, 1..=255, "an export is an absolute path of letters, digits, '.', '_' and '-', without '.' or '..' parts, not '/'", is_path;
    /// A share that another machine offers.
    ShareName, 1..=80, "a share is letters, digits, '.', '_' and '-', not '.' or '..'", is_part;
    /// A datastore of a backup server.
    DatastoreName, 1..=32, "a datastore is letters, digits, '.', '_' and '-' that start with a letter or digit", is_word;
    /// A namespace in a datastore: at most eight parts with '/' between them.
    Namespace, 1..=256, "a namespace has 1 to 8 parts of letters, digits, '.', '_' and '-' with '/' between them",
        |text| text.split('/').count() <= 8 && text.split('/').all(is_word);
}

fn is_set_uuid(text: &str) -> bool {
    let hex = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
    let fits = |(at, c): (usize, u8)| if matches!(at, 8 | 13 | 18 | 23) { c == b'-' } else { hex(c) };
    text.len() == 36 && text.bytes().enumerate().all(fits) && text.bytes().any(|c| !matches!(c, b'0' | b'-'))
}

fn is_part(text: &str) -> bool {
    let inner = |c: u8| c.is_ascii_alphanumeric() || b"._-".contains(&c);
    !text.is_empty() && text.bytes().all(inner) && !matches!(text, "." | "..") && !text.starts_with('-')
}

fn is_word(text: &str) -> bool {
    is_part(text) && text.starts_with(|c: char| c.is_ascii_alphanumeric())
}

fn is_path(text: &str) -> bool {
    text.strip_prefix('/').is_some_and(|rest| rest.split('/').all(is_part))
}

/// What ends in a number is an address and nothing else: `0177.0.0.1` and `2130706433` are addresses to some programs.
fn is_server(text: &str) -> bool {
    let label = |label: &str| {
        let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
        (1..=63).contains(&label.len())
            && label.bytes().all(inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = text.rsplit('.').next().unwrap_or_default();
    if last.starts_with(|c: char| c.is_ascii_digit()) {
        return text
            .parse::<Ipv4Addr>()
            .is_ok_and(|address| is_another(address) && address.to_string() == text);
    }
    text.split('.').all(label) && !matches!(last, "localhost" | "localdomain")
}

const fn is_another(address: Ipv4Addr) -> bool {
    !(address.is_loopback()
        || address.is_link_local()
        || address.is_unspecified()
        || address.is_multicast()
        || address.is_broadcast()
        || address.octets()[0] == 0)
}
