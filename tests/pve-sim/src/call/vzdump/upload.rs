//! A backup to a backup server.
//!
//! In: the volumes at rest. Out: a snapshot on the server, next to it the fingerprint of the key that encrypts it, and the client's
//! output. Every upload is complete: chunks that the server already has are not modelled, and the output does not mention them.
use std::path::Path;

use super::backup::Backup;
use super::mode::{HeldGuest, included};
use super::options::{Mode, Repository};
use super::texts::{quoted, reported_bytes};
use crate::archive::Packed;
use crate::clock::wordy;
use crate::fail::{Fallible, Refusal};
use crate::storage::backup_client::READS_KEY;
use crate::storage::backup_key::short;
use crate::storage::backup_server::sealed;
use crate::storage::content::copy_of;
use crate::storage::server_names::{parse_snapshot_stamp, snapshot_stamp};

/// How many entries of a folder the client keeps in memory: the node's default.
const ENTRIES_MAX: u32 = 1_048_576;
const USERNS: &str = "lxc-usernsexec -m u:0:100000:65536 -m g:0:100000:65536 -- ";

/// The client's output and actions before it sends the first byte.
pub(super) fn begin(backup: &Backup<'_>, held: &HeldGuest, server: &Repository) -> Fallible<()> {
    let snapshot = format!("ct/{}/{}", backup.vmid, snapshot_stamp(backup.named_s));
    backup.log(&format!("creating Proxmox Backup Server archive '{snapshot}'"));
    backup.log(&format!("set max number of entries in memory for file-based backups to {ENTRIES_MAX}"));
    let key = server.key.as_ref().map_err(|why| Refusal::die(why.clone()))?;
    backup.log(&format!("run: {}", command(backup, held, server).join(" ")));
    let namespace = server.namespace.as_ref().map(|ns| format!("[{ns}]:")).unwrap_or_default();
    backup.log(&format!("Starting backup: {namespace}{snapshot}"));
    backup.log(&format!("Client name: {}", backup.task.node.name));
    backup.log(&format!("Starting backup protocol: {}", wordy(backup.task.node.clock.now_s())));
    let key = match key {
        None => None,
        Some(key) => {
            backup.log(READS_KEY);
            match key {
                Ok(key) => backup.log(&format!("Encryption key fingerprint: {}", short(key))),
                Err(why) => {
                    backup.log(&format!("Error: {why}"));
                    return Err(Refusal::die(failed(backup, held, "exit code 255")));
                }
            }
            key.as_deref().ok()
        }
    };
    if !server.folder.is_dir() {
        backup.log("Error: namespace not found");
        return Err(Refusal::die(failed(backup, held, "exit code 255")));
    }
    let place = backup.place();
    let group = place.parent().unwrap_or(&place);
    std::fs::create_dir_all(group).map_err(|error| crate::fail::host("creation of group", &error))?;
    let former = former(backup, group, key);
    if splits(backup) {
        std::fs::write(copy_of(&place, "split"), "")
            .map_err(|error| crate::fail::host("write of the manifest", &error))?;
    }
    if let Some(key) = key {
        std::fs::write(copy_of(&place, "sealed"), key)
            .map_err(|error| crate::fail::host("write of the manifest", &error))?;
    }
    let (folder, to) = (backup.temporary_shown(), &server.shown);
    let config = format!("{folder}/etc/vzdump/pct.conf");
    backup.log(&format!("Upload config file '{config}' to '{to}' as pct.conf.blob"));
    let archives = archives(splits(backup));
    let first = archives.first().copied().unwrap_or_default();
    backup.log(&format!("Upload directory '{}' to '{to}' as {first}.didx", source(backup, held)));
    for archive in archives.iter().filter(|_| former.is_some_and(|split| split != splits(backup))) {
        let why = format!("Previous manifest does not contain an archive called '{archive}.didx'");
        backup.log(&format!("{why}, skipping download.."));
    }
    Ok(())
}

const fn archives(split: bool) -> &'static [&'static str] {
    if split { &["root.mpxar", "root.ppxar"] } else { &["root.pxar"] }
}

/// Whether files' data and their metadata are written to separate archives.
fn splits(backup: &Backup<'_>) -> bool {
    matches!(backup.options.change_detection.as_deref(), Some("data" | "metadata"))
}

/// Whether the archives of the group's newest snapshot are split; nothing when its manifest cannot be read.
fn former(backup: &Backup<'_>, group: &Path, key: Option<&str>) -> Option<bool> {
    let entries = std::fs::read_dir(group).into_iter().flatten().flatten().map(|entry| entry.path());
    let time = |place: &Path| {
        let at = place.file_name()?.to_str()?.strip_suffix(".tar")?;
        parse_snapshot_stamp(at)
    };
    let newest = entries.filter_map(|place| Some((time(&place)?, place))).max();
    let Some((time_s, place)) = newest else {
        backup.log("No previous manifest available.");
        return None;
    };
    backup.log(&format!("Downloading previous manifest ({})", wordy(time_s)));
    let why = match (sealed(&place), key) {
        (Some(held), Some(key)) if held != key => format!(
            "Couldn't download previous manifest - wrong key - unable to verify signature since manifest's key {} does not match provided key {}",
            short(&held),
            short(key)
        ),
        (Some(held), None) => format!(
            "Couldn't re-use previous manifest - missing key - manifest was created with key {}",
            short(&held)
        ),
        _ => return Some(copy_of(&place, "split").exists()),
    };
    backup.log(&why);
    None
}

/// The client's output when everything is sent.
pub(super) fn end(backup: &Backup<'_>, packed: &Packed, took_ms: i64) {
    let total = packed.total_bytes_written;
    let seconds = format!("{}.{:02}", took_ms / 1000, took_ms % 1000 / 10);
    let a_second = reported_bytes(total.saturating_mul(1000) / u64::try_from(took_ms.max(1)).unwrap_or(1));
    let (all, sent) = (reported_bytes(total), reported_bytes(packed.archive_bytes));
    for archive in archives(splits(backup)) {
        backup.log(&format!(
            "{archive}: had to backup {all} of {all} (compressed {sent}) in {seconds} s (average {a_second}/s)"
        ));
    }
    if !splits(backup) {
        backup.log(&format!("Uploaded backup catalog ({} B)", packed.entries * 24));
    }
    backup.log(&format!("Duration: {seconds}s"));
    backup.log(&format!("End Time: {}", wordy(backup.task.node.clock.now_s())));
}

/// The client's output when the connection to its server breaks during the upload.
pub(super) fn cut(backup: &Backup<'_>) {
    backup.log("Error: stream closed because of a broken pipe");
}

/// The client's output when the server disappears during the upload.
pub(super) fn broken(backup: &Backup<'_>) {
    const WHY: &str = "connection closed because of a broken pipe";
    backup.log(&format!("catalog upload error - {WHY}"));
    backup.log(&format!("Error: pipelined request failed: {WHY}"));
}

/// Where the files come from.
fn source(backup: &Backup<'_>, held: &HeldGuest) -> String {
    if held.mode == Mode::Suspend { backup.temporary_shown() } else { "/mnt/vzsnap0".to_owned() }
}

/// The client's command, argument by argument.
fn command(backup: &Backup<'_>, held: &HeldGuest, server: &Repository) -> Vec<String> {
    let unprivileged = backup.config.main.flag("unprivileged");
    let from = source(backup, held);
    let mut words: Vec<String> = Vec::new();
    if unprivileged {
        words.extend(USERNS.split_whitespace().map(str::to_owned));
    }
    let mut add = |more: &[&str]| words.extend(more.iter().map(|word| (*word).to_owned()));
    add(&["/usr/bin/proxmox-backup-client", "backup"]);
    match &server.key {
        Ok(Some(_)) => add(&["--crypt-mode=encrypt", "--keyfd=15"]),
        _ => add(&["--crypt-mode=none"]),
    }
    add(&[
        &format!("pct.conf:{}/etc/vzdump/pct.conf", backup.temporary_shown()),
        &format!("root.pxar:{from}"),
    ]);
    if held.mode == Mode::Suspend {
        add(&["--include-dev", &format!("{from}/.")]);
    } else {
        included(backup)
            .iter()
            .for_each(|mount| add(&["--include-dev", &format!("{from}/.{}", mount.path())]));
    }
    if unprivileged {
        add(&["--skip-lost-and-found"]);
    }
    let standard = ["/tmp/?*", "/var/tmp/?*", "/var/run/?*.pid"].map(str::to_owned);
    let given = backup.options.exclude_words.iter();
    standard
        .iter()
        .filter(|_| backup.options.standard_excludes)
        .chain(given)
        .for_each(|pattern| add(&[&format!("--exclude={pattern}")]));
    add(&["--backup-type", "ct", "--backup-id", &backup.vmid.to_string()]);
    add(&["--backup-time", &backup.named_s.to_string()]);
    if let Some(mode) = &backup.options.change_detection {
        add(&["--change-detection-mode", mode]);
    }
    add(&["--entries-max", &ENTRIES_MAX.to_string(), "--repository", &server.named]);
    server.namespace.iter().for_each(|namespace| add(&["--ns", namespace]));
    words
}

/// The error text of a client that failed.
pub(super) fn failed(backup: &Backup<'_>, held: &HeldGuest, how: &str) -> String {
    let Some(server) = &backup.dump.server else { return how.to_owned() };
    let words: Vec<String> = command(backup, held, server).iter().map(|word| quoted(word)).collect();
    format!("command '{}' failed: {how}", words.join(" "))
}
