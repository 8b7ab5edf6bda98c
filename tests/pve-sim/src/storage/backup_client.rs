//! Output of the backup server's client.
//!
//! In: an entry and a snapshot. Out: the lines of its log, or its error output; an answer shows the last line of that. The texts are
//! recorded from the genuine client. Deliberately absent: who owns a group (every account sees all of them).
use std::path::Path;

use super::backup_key::short;
use super::backup_server::{Bar, sealed};
use super::config::Definition;
use super::content::{copy_of, is_protected};
use super::server_names::parse_snapshot;
use super::volume::{Located, Store};
use crate::fail::{Fallible, Refusal, host};

/// The line that the client prints once it has the key.
pub const READS_KEY: &str = "Using encryption key from file descriptor..";

/// The client's log, or the lines of its error output.
pub type ClientOutput = Result<Vec<String>, Vec<String>>;

/// A complaint as the node passes it on that only waits for the client's end: its last line.
#[must_use]
pub fn failed(complaint: &[String]) -> Refusal {
    let last = complaint.last().map_or("", String::as_str);
    Refusal::die(format!("proxmox-backup-client failed: {last}"))
}

fn error(why: impl AsRef<str>) -> Vec<String> {
    vec![format!("Error: {}", why.as_ref())]
}

/// What an account may do, by its role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Removing snapshots, and asking what a retention would remove.
    Remove,
    /// Writing the files that belong to a snapshot: its notes and its protection mark.
    Mark,
}

impl Act {
    const fn roles(self) -> &'static [&'static str] {
        match self {
            Self::Remove => &["DatastorePowerUser", "DatastoreAdmin"],
            Self::Mark => &["DatastoreBackup", "DatastorePowerUser", "DatastoreAdmin"],
        }
    }

    const fn needs(self) -> &'static str {
        match self {
            Self::Remove => "Datastore.Modify|Datastore.Prune",
            Self::Mark => "Datastore.Modify|Datastore.Backup",
        }
    }
}

impl Store<'_> {
    /// Whether the client gets in.
    ///
    /// # Errors
    /// Its complaint.
    pub fn enter(&self, name: &str, definition: &Definition) -> Result<(), Vec<String>> {
        let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        let unconnected = lines(&["Error: client error (Connect)", "", "Caused by:"]);
        Err(match self.bar(name, definition) {
            None => return Ok(()),
            Some(Bar::Silent { host, port }) => {
                let why = format!("    error connecting to https://{host}:{port}/ - tcp connect error");
                [unconnected, vec![why]].concat()
            }
            Some(Bar::Stranger(_)) => {
                let expected = definition.get("fingerprint").map(|print| {
                    vec![
                        "WARNING: certificate fingerprint does not match expected fingerprint!".to_owned(),
                        format!("expected:    {print}"),
                    ]
                });
                let refused = "certificate validation failed - Certificate fingerprint was not confirmed.";
                let why = "error:0A000086:SSL routines:tls_post_process_server_certificate:certificate verify failed:../ssl/statem/statem_clnt.c:2124:";
                let causes = [format!("    0: {why}"), format!("    1: {why}")];
                [expected.unwrap_or_default(), lines(&[refused]), unconnected, causes.to_vec()].concat()
            }
            Some(Bar::Secret) => error("authentication failed"),
            Some(Bar::Datastore(_)) => error("permission check failed"),
        })
    }

    /// Opens a snapshot with the key of its entry: the log, or why it does not open.
    ///
    /// # Errors
    /// When the entry speaks of a key and there is none: then the client is not even run.
    pub fn open(&self, at: &Located<'_>) -> Fallible<ClientOutput> {
        let place = self.place(at);
        let held = match self.key_of(at.storage, at.definition)?.transpose() {
            Ok(held) => held,
            Err(why) => return Ok(Err([vec![READS_KEY.to_owned()], error(why)].concat())),
        };
        if let Err(complaint) = self.enter(at.storage, at.definition) {
            return Ok(Err(complaint));
        }
        if !place.is_file() {
            return Ok(Err(error(unreadable(at))));
        }
        Ok(match (held, sealed(&place)) {
            // An unencrypted snapshot is not signed either, and the log does not mention a key.
            (_, None) => Ok(Vec::new()),
            (Some(held), Some(wanted)) if held == wanted => {
                Ok(vec![READS_KEY.to_owned(), format!("Fingerprint: {}", short(&held))])
            }
            (None, Some(wanted)) => {
                Err(error(format!("missing key - manifest was created with key {}", short(&wanted))))
            }
            (Some(held), Some(wanted)) => Err(error(format!(
                "wrong key - unable to verify signature since manifest's key {} does not match provided key {}",
                short(&wanted),
                short(&held)
            ))),
        })
    }

    /// Whether the entry's account may do this.
    ///
    /// # Errors
    /// The server's sentence, as the client passes it on.
    pub fn may(&self, definition: &Definition, act: Act) -> Result<(), Vec<String>> {
        if act.roles().contains(&self.role(definition).as_str()) {
            return Ok(());
        }
        let of = |name: &str| definition.get(name).map(|text| format!("/{text}")).unwrap_or_default();
        let (datastore, namespace) = (of("datastore"), of("namespace"));
        let text =
            format!("permission check failed - missing {} on /datastore{datastore}{namespace}", act.needs());
        Err(error(text))
    }

    /// Removes a snapshot, if the server permits it.
    ///
    /// # Errors
    /// The client's complaint.
    pub fn forget(&self, at: &Located<'_>) -> Fallible<()> {
        self.enter(at.storage, at.definition).map_err(|complaint| failed(&complaint))?;
        self.may(at.definition, Act::Remove).map_err(|complaint| failed(&complaint))?;
        let place = self.place(at);
        let refused = |why: &str| failed(&error(format!("failed to delete snapshot - {why:?}")));
        if is_protected(&place) {
            return Err(refused("cannot remove protected snapshot"));
        }
        if !place.is_file() {
            let why = "No such file or directory (os error 2)";
            return Err(refused(&format!("removing backup snapshot {:?} failed - {why}", on_server(at))));
        }
        std::fs::remove_file(&place).map_err(|error| host("removal of snapshot", &error))?;
        ["notes", "sealed", "split", "verified"].iter().try_for_each(|what| gone(&copy_of(&place, what)))
    }
}

fn gone(file: &Path) -> Fallible<()> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(host("removal of snapshot", &error))
        }
        _ => Ok(()),
    }
}

fn parts(definition: &Definition) -> Vec<&str> {
    definition.get("namespace").unwrap_or_default().split('/').filter(|part| !part.is_empty()).collect()
}

/// The path of a snapshot on the server itself, whose datastores are below `/srv`.
fn on_server(at: &Located<'_>) -> String {
    let namespace: String = parts(at.definition).iter().map(|part| format!("/ns/{part}")).collect();
    format!("/srv/{}{namespace}/{}", at.definition.get("datastore").unwrap_or_default(), at.name.text())
}

/// The error for a snapshot that is still being written, or does not exist. The server prints it in Rust's debug format.
fn unreadable(at: &Located<'_>) -> String {
    let (vmid, time_s) = parse_snapshot(at.name.text()).unwrap_or_default();
    let stamp = at.name.text().rsplit('/').next().unwrap_or_default();
    let (store, inner) = (at.definition.get("datastore").unwrap_or_default(), parts(at.definition));
    let len = inner.join("/").len();
    format!(
        "while reading snapshot 'BackupDir {{ store: {store:?}, ns: BackupNamespace {{ inner: {inner:?}, len: {len} }}, dir: BackupDir {{ group: BackupGroup {{ ty: Ct, id: \"{vmid}\" }}, time: {time_s} }}, backup_time_string: {stamp:?} }}'"
    )
}
