//! A backup server beyond the node, as folders: what lies there, under which key, and whether it answers.
//!
//! ```text
//! STATE/run/outside/SERVER/            a server that answers
//!   fingerprint, secret                its certificate's, and the one that it takes
//!   role                               of the token; `DatastoreBackup` may not remove, which is what it has without this file
//!   accounts/NAME/secret, role         the same of one account, where it has its own
//!   plain                              (a mark) its client forgets to encrypt
//!   DATASTORE[/ns/PART…]/ct/300/2026-11-21T04:36:17Z.tar   a snapshot, and beside it `.sealed`, `.notes`, `.protected`, `.verified`
//! ```
//! Nothing is encrypted for real: a snapshot has the fingerprint of the key beside it, and whoever opens it must hold that key.
//! What is still being written ends in `.dat`. As on the real node little is checked when a storage is readied: no namespace, no key.
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::config::Definition;
use super::content::{Row, beside};
use super::volume::Store;
use crate::clock::{parse_archive_stamp, stamp};
use crate::fail::{Fallible, Refusal};

/// `2026-11-21T04:36:17Z`
#[must_use]
pub fn snapshot_stamp(seconds: i64) -> String {
    format!("{}Z", stamp(seconds).replace(' ', "T"))
}

/// The reverse of it.
#[must_use]
pub fn parse_snapshot_stamp(text: &str) -> Option<i64> {
    let seconds = parse_archive_stamp(&text.strip_suffix('Z')?.replace('T', "-").replace(':', "_"))?;
    (snapshot_stamp(seconds) == text).then_some(seconds)
}

/// The guest and the time of `ct/300/2026-11-21T04:36:17Z`.
#[must_use]
pub fn parse_snapshot(name: &str) -> Option<(u32, i64)> {
    let (vmid, at) = name.strip_prefix("ct/")?.split_once('/')?;
    let number = vmid.parse().ok().filter(|number: &u32| number.to_string() == vmid)?;
    Some((number, parse_snapshot_stamp(at)?))
}

/// Whether a definition is of a backup server.
#[must_use]
pub fn is_one(definition: &Definition) -> bool {
    definition.kind == "pbs"
}

/// The fingerprint of the key that a snapshot is encrypted with.
#[must_use]
pub fn sealed(place: &Path) -> Option<String> {
    std::fs::read_to_string(beside(place, "sealed")).ok()
}

/// What the server says of its last verification: state and task.
#[must_use]
pub fn verification(place: &Path) -> Option<Value> {
    serde_json::from_str(&std::fs::read_to_string(beside(place, "verified")).ok()?).ok()
}

/// As messages show a fingerprint: its first eight bytes.
fn short(fingerprint: &str) -> &str {
    fingerprint.get(..23).unwrap_or(fingerprint)
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

    /// Looks at the server, as the real node does each time a storage is readied.
    ///
    /// # Errors
    /// The real sentence.
    pub fn reach(&self, name: &str, definition: &Definition) -> Fallible<()> {
        let there = self.server(definition);
        let failed = |what: String| Err(Refusal::die(format!("{name}: {what}")));
        let datastores = |what: &str| failed(format!("error fetching datastores - {what}"));
        if !there.is_dir() {
            let server = definition.get("server").unwrap_or_default();
            let port = definition.get("port").unwrap_or("8007");
            return datastores(&format!("500 Can't connect to {server}:{port} (Connection refused)"));
        }
        let said = |file: PathBuf| std::fs::read_to_string(file).unwrap_or_default().trim().to_owned();
        let fingerprint = said(there.join("fingerprint"));
        if definition.get("fingerprint") != Some(fingerprint.as_str()) {
            return datastores(&format!("fingerprint '{}' not verified, abort!", fingerprint.to_uppercase()));
        }
        if said(self.secrets().join(format!("{name}.pw"))) != said(self.account(definition).join("secret")) {
            return datastores("401 Unauthorized");
        }
        let datastore = definition.get("datastore").unwrap_or_default();
        if !there.join(datastore).is_dir() {
            return failed(format!("Cannot find datastore '{datastore}', check permissions and existence!"));
        }
        Ok(())
    }

    /// The key of an entry, by its fingerprint; none where the entry has none.
    ///
    /// # Errors
    /// When its file is gone.
    pub fn key_of(&self, name: &str, definition: &Definition) -> Fallible<Option<String>> {
        let Some(shown) = definition.get("encryption-key") else { return Ok(None) };
        let Ok(text) = std::fs::read_to_string(self.secrets().join(format!("{name}.enc"))) else {
            let text = format!("encryption configured ('{shown}') but no encryption key file found!");
            return Err(Refusal::die(text));
        };
        let key: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
        Ok(key.get("fingerprint").and_then(Value::as_str).map(str::to_owned))
    }

    /// Opens a snapshot with the key of its entry: gives the lines of the client's log.
    ///
    /// # Errors
    /// The lines with the reason last.
    pub fn unlock(
        &self,
        name: &str,
        definition: &Definition,
        place: &Path,
    ) -> Fallible<Result<Vec<String>, String>> {
        let (held, wanted) = (self.key_of(name, definition)?, sealed(place));
        Ok(match (held, wanted) {
            (held, None) => Ok(held.map(|key| key_lines(&key)).unwrap_or_default()),
            (Some(held), Some(wanted)) if held == wanted => Ok(key_lines(&held)),
            (None, Some(wanted)) => {
                Err(format!("missing key - manifest was created with key {}", short(&wanted)))
            }
            (Some(held), Some(wanted)) => Err(format!(
                "wrong key - unable to verify signature since manifest's key {} does not match provided key {}",
                short(&wanted),
                short(&held)
            )),
        })
    }

    /// Where it stands what the account of an entry is on the server.
    fn account(&self, definition: &Definition) -> PathBuf {
        let server = self.server(definition);
        let own = server.join("accounts").join(definition.get("username").unwrap_or_default());
        if definition.get("username").is_some() && own.is_dir() { own } else { server }
    }

    /// Whether the token may remove what lies there, or the server's own sentence.
    ///
    /// # Errors
    /// That sentence.
    pub fn may_remove(&self, definition: &Definition) -> Fallible<()> {
        self.may(definition, &["DatastorePowerUser", "DatastoreAdmin"], "Datastore.Modify|Datastore.Prune")
    }

    /// Whether the token may write what stands beside a snapshot: notes, and that it is protected.
    ///
    /// # Errors
    /// The server's sentence.
    pub fn may_mark(&self, definition: &Definition) -> Fallible<()> {
        let roles = ["DatastoreBackup", "DatastorePowerUser", "DatastoreAdmin"];
        self.may(definition, &roles, "Datastore.Modify|Datastore.Backup")
    }

    fn may(&self, definition: &Definition, roles: &[&str], needs: &str) -> Fallible<()> {
        let role = std::fs::read_to_string(self.account(definition).join("role")).unwrap_or_default();
        let role = if role.trim().is_empty() { "DatastoreBackup" } else { role.trim() };
        if roles.contains(&role) {
            return Ok(());
        }
        let of = |name: &str| definition.get(name).map(|text| format!("/{text}")).unwrap_or_default();
        Err(Refusal::die(format!(
            "proxmox-backup-client failed: Error: permission check failed - missing {needs} on /datastore{}{}",
            of("datastore"),
            of("namespace")
        )))
    }

    /// The snapshots of a namespace.
    ///
    /// # Errors
    /// When it is not there and nobody in particular is asked for.
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

fn key_lines(fingerprint: &str) -> Vec<String> {
    vec![
        "Using encryption key from file descriptor..".to_owned(),
        format!("Fingerprint: {}", short(fingerprint)),
    ]
}

#[cfg(test)]
mod tests {
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
