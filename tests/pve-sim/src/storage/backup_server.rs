//! A backup server outside of the node, as folders.
//!
//! ```text
//! STATE/run/outside/SERVER/            a server that answers
//!   fingerprint, secret                of its certificate, and the secret that it accepts
//!   port                               where it listens; 8007 without this file
//!   role                               of the token; without this file `DatastoreBackup`, which may not remove
//!   accounts/NAME/secret, role         the same of one account, where it has its own
//!   plain                              (a mark) its client forgets to encrypt
//!   DATASTORE[/ns/PART…]/ct/300/2026-11-21T04:36:17Z.tar   a snapshot, next to it `.sealed`, `.split`, `.notes`, `.protected`, `.verified`
//! ```
//! Nothing is encrypted for real: the fingerprint of the key is stored next to a snapshot, and a client that opens it must hold that
//! key. A snapshot that is still being written ends in `.dat`. As on the real node little is checked when a storage is activated: no
//! namespace, no key. The output of the client that the node runs for a snapshot is in [`super::backup_client`].
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::backup_key;
use super::config::Definition;
use super::content::{Row, copy_of};
use super::server_names::{USUAL_PORT, parse_snapshot};
use super::volume::Store;
use crate::fail::{Fallible, Refusal};

/// The fingerprint of the key that a snapshot is encrypted with.
#[must_use]
pub fn sealed(place: &Path) -> Option<String> {
    std::fs::read_to_string(copy_of(place, "sealed")).ok()
}

/// The result of the last verification on the server: state and task.
#[must_use]
pub fn verification(place: &Path) -> Option<Value> {
    serde_json::from_str(&std::fs::read_to_string(copy_of(place, "verified")).ok()?).ok()
}

/// An obstacle between a node and its backup server, in the order in which the node meets them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bar {
    /// Nothing listens there.
    Silent {
        host: String,
        /// The port that was called.
        port: String,
    },
    /// Its certificate is not the one that the entry names; this is its fingerprint.
    Stranger(String),
    /// It does not take the secret.
    Secret,
    /// It shows no datastore of this name.
    Datastore(String),
}

impl Bar {
    /// The error that the node's own calls to the server report.
    fn reported(&self) -> String {
        let fetching = |what: &str| format!("error fetching datastores - {what}");
        match self {
            Self::Silent { host, port } => {
                fetching(&format!("500 Can't connect to {host}:{port} (Connection refused)"))
            }
            Self::Stranger(held) => {
                fetching(&format!("fingerprint '{}' not verified, abort!", held.to_uppercase()))
            }
            Self::Secret => fetching("401 Unauthorized"),
            Self::Datastore(name) => {
                format!("Cannot find datastore '{name}', check permissions and existence!")
            }
        }
    }
}

/// The text of a one-line file, without the line end.
fn said(file: PathBuf) -> String {
    std::fs::read_to_string(file).unwrap_or_default().trim().to_owned()
}

impl Store<'_> {
    /// The folder of a server.
    #[must_use]
    pub fn server(&self, definition: &Definition) -> PathBuf {
        self.run.join("outside").join(definition.get("server").unwrap_or_default())
    }

    /// The folder of a namespace.
    #[must_use]
    pub fn namespace(&self, definition: &Definition) -> PathBuf {
        let datastore = self.server(definition).join(definition.get("datastore").unwrap_or_default());
        let parts =
            definition.get("namespace").unwrap_or_default().split('/').filter(|part| !part.is_empty());
        parts.fold(datastore, |folder, part| folder.join("ns").join(part))
    }

    /// Where secrets of storages are.
    #[must_use]
    pub fn secrets(&self) -> PathBuf {
        self.real("/etc/pve/priv/storage")
    }

    /// Checks the server, as the real node does each time a storage is activated.
    ///
    /// # Errors
    /// The real error text.
    pub fn reach(&self, name: &str, definition: &Definition) -> Fallible<()> {
        match self.bar(name, definition) {
            Some(bar) => Err(Refusal::die(format!("{name}: {}", bar.reported()))),
            None => Ok(()),
        }
    }

    /// The obstacle between an entry and its server, if any.
    #[must_use]
    pub fn bar(&self, name: &str, definition: &Definition) -> Option<Bar> {
        let there = self.server(definition);
        let of = |property: &str| definition.get(property).unwrap_or_default().to_owned();
        let listens = Some(said(there.join("port"))).filter(|port| !port.is_empty());
        let called = definition.get("port").unwrap_or(USUAL_PORT);
        if !there.is_dir() || listens.as_deref().unwrap_or(USUAL_PORT) != called {
            return Some(Bar::Silent { host: of("server"), port: called.to_owned() });
        }
        let held = said(there.join("fingerprint"));
        if !of("fingerprint").eq_ignore_ascii_case(&held) {
            return Some(Bar::Stranger(held));
        }
        if said(self.secrets().join(format!("{name}.pw"))) != said(self.account(definition).join("secret")) {
            return Some(Bar::Secret);
        }
        (!there.join(of("datastore")).is_dir()).then(|| Bar::Datastore(of("datastore")))
    }

    /// The key of an entry, by its fingerprint, or why its client cannot use it; none where it has none. The key file counts, not the
    /// entry's text.
    ///
    /// # Errors
    /// When the entry names a key and its file is missing.
    pub fn key_of(&self, name: &str, definition: &Definition) -> Fallible<Option<Result<String, String>>> {
        let file = std::fs::read_to_string(self.secrets().join(format!("{name}.enc")));
        match (file, definition.get("encryption-key")) {
            (Ok(text), _) => {
                let key: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
                Ok(Some(backup_key::fingerprint(&key)))
            }
            (Err(_), None) => Ok(None),
            (Err(_), Some(shown)) => {
                let text = format!("encryption configured ('{shown}') but no encryption key file found!");
                Err(Refusal::die(text))
            }
        }
    }

    /// The folder on the server that describes the account of an entry.
    fn account(&self, definition: &Definition) -> PathBuf {
        let server = self.server(definition);
        let own = server.join("accounts").join(definition.get("username").unwrap_or_default());
        if definition.get("username").is_some() && own.is_dir() { own } else { server }
    }

    /// The role of an entry's account.
    #[must_use]
    pub fn role(&self, definition: &Definition) -> String {
        let role = said(self.account(definition).join("role"));
        if role.is_empty() { "DatastoreBackup".to_owned() } else { role }
    }

    /// The snapshots of a namespace.
    ///
    /// # Errors
    /// When the namespace does not exist and the call names no guest.
    pub fn snapshots_of(
        &self,
        storage: &str,
        definition: &Definition,
        vmid: Option<u32>,
    ) -> Fallible<Vec<Row>> {
        let folder = self.namespace(definition);
        if !folder.is_dir() {
            return match vmid {
                Some(_) => Ok(Vec::new()),
                None => Err(Refusal::die("error listing snapshots - 400 Bad Request")),
            };
        }
        let names = |folder: &Path| -> Vec<String> {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
        };
        let mut rows = Vec::new();
        for owner in names(&folder.join("ct")) {
            for file in names(&folder.join("ct").join(&owner)) {
                // One that is still being written is listed, too, with a size of 1.
                let Some((at, end)) = file.rsplit_once('.') else { continue };
                let size = match end {
                    "tar" => super::content::file_bytes(&folder.join("ct").join(&owner).join(&file)),
                    "dat" => 1,
                    _ => continue,
                };
                let name = format!("ct/{owner}/{at}");
                let Some((number, ctime)) = parse_snapshot(&name) else { continue };
                if vmid.is_none_or(|wanted| wanted == number) {
                    rows.push(Row {
                        volid: format!("{storage}:backup/{name}"),
                        content: "backup".to_owned(),
                        format: "pbs-ct".to_owned(),
                        size,
                        used: None,
                        vmid: Some(number),
                        ctime,
                    });
                }
            }
        }
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::super::server_names::snapshot_stamp;
    use super::*;

    #[test]
    fn a_snapshot_is_named_by_its_guest_and_its_second() {
        let name = format!("ct/300/{}", snapshot_stamp(1_795_235_777));
        assert_eq!(name, "ct/300/2026-11-21T04:36:17Z");
        assert_eq!(parse_snapshot(&name), Some((300, 1_795_235_777)));
        for no in [
            "ct/300/2026-11-21T04:36:17",
            "vm/300/2026-11-21T04:36:17Z",
            "ct/0300/2026-11-21T04:36:17Z",
            "ct/300/../x",
        ] {
            assert_eq!(parse_snapshot(no), None, "{no}");
        }
    }
}
