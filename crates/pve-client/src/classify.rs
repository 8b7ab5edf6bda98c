//! From status, reason phrase and body to one class of [`PveError`].
//!
//! Proxmox has no 404 and no 409: nearly every refusal is a 500 whose reason phrase is the message, so the phrases are
//! the contract. Each rule below is held to recorded answers in `tests/data/pve-errors.jsonl`. A phrase without a rule
//! becomes [`PveError::Other`] with its text, never a guess.

use std::collections::BTreeMap;
use std::str::FromStr;

use holdfast_protocol::id::Vmid;
use serde::Deserialize;

use super::Role;
use super::error::PveError;
use super::restore_errors::is_unreadable;

/// The facts about a refused call.
pub(super) struct Refusal<'a> {
    pub call: &'static str,
    pub role: Role,
    pub vmid: Option<Vmid>,
    pub storage: Option<&'a str>,
    pub status: u16,
    pub reason: &'a str,
    pub body: &'a [u8],
}

#[derive(Default, Deserialize)]
struct Body {
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    errors: Option<BTreeMap<String, String>>,
}

/// The one place where answers become classes.
pub(super) fn classify(refusal: &Refusal<'_>) -> PveError {
    // A body that is no JSON (401, 595, 596, pmxcfs down) has nothing to add to the reason phrase.
    let body: Body = serde_json::from_slice(refusal.body).unwrap_or_default();
    let errors = body.errors.unwrap_or_default();
    let text = match body.message {
        // Without a reason phrase of its own an answer still has its message.
        Some(message) if refusal.reason.is_empty() => message.trim_end().to_owned(),
        _ => refusal.reason.trim_end().to_owned(),
    };
    match refusal.status {
        401 => PveError::Unauthorised { role: refusal.role },
        403 => permission(refusal.role, text),
        400 => parameters(refusal, text, errors),
        501 if text.starts_with("Method '") || text.starts_with("method '") => {
            PveError::Unsupported { reason: text }
        }
        502..=504 | 595 | 596 | 599 => PveError::GatewayTimeout { status: refusal.status, reason: text },
        500 => by_phrase(refusal, text, errors),
        status => PveError::Other { call: refusal.call, status, reason: text, errors },
    }
}

/// `Permission check failed (/vms/190, VM.Config.Disk|VM.Config.CPU)`, with or without the part in parentheses.
pub(super) fn permission(role: Role, text: String) -> PveError {
    let inner = text.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    let parsed = inner.and_then(|inner| inner.split_once(", ")).filter(|(path, _)| path.starts_with('/'));
    let (path, privileges) = match parsed {
        Some((path, list)) => (Some(path.to_owned()), list.split('|').map(str::to_owned).collect()),
        None => (None, Vec::new()),
    };
    PveError::Permission { role, path, privileges, text }
}

fn parameters(refusal: &Refusal<'_>, reason: String, errors: BTreeMap<String, String>) -> PveError {
    let only = match (errors.len(), errors.first_key_value()) {
        (1, Some((key, text))) => Some((key.as_str(), text.trim_end())),
        _ => None,
    };
    match only {
        Some(("upid", "no such task")) => PveError::NoSuchTask,
        Some(("vmid", text)) if text.ends_with("already exists") => {
            match refusal.vmid.or_else(|| vmid_in(text)) {
                Some(vmid) => PveError::AlreadyExists { vmid },
                None => PveError::Parameters { call: refusal.call, errors },
            }
        }
        Some(("storage", "No such storage.")) => {
            PveError::StorageUnknown { storage: refusal.storage.unwrap_or_default().to_owned() }
        }
        Some((_, text)) if storage_is_away(text) => {
            PveError::StorageOffline { storage: quoted(text), text: text.to_owned() }
        }
        _ if errors.is_empty() => PveError::Other { call: refusal.call, status: 400, reason, errors },
        _ => PveError::Parameters { call: refusal.call, errors },
    }
}

fn by_phrase(refusal: &Refusal<'_>, reason: String, errors: BTreeMap<String, String>) -> PveError {
    // Restore and create put their own text before the message of the part that failed.
    let text = strip_doing(&reason);
    let vmid = refusal.vmid.or_else(|| vmid_in(text)).or_else(|| vmid_in(&reason));
    if text.starts_with("RPCEnvironment init request failed") {
        return PveError::NotReady { reason };
    }
    if let Some(kind) = between(text, "CT is locked (", ")").or_else(|| between(text, "VM is locked (", ")"))
    {
        return PveError::Locked { kind: kind.to_owned() };
    }
    if text.starts_with("can't lock file ") || (text.contains("cfs-lock") && text.contains("timeout")) {
        return PveError::LockTimeout { text: reason };
    }
    if text.starts_with("detected modified configuration")
        || text.contains(": detected modified configuration")
    {
        return PveError::DigestChanged;
    }
    if storage_is_away(text) {
        return PveError::StorageOffline { storage: quoted(text), text: reason };
    }
    if client_is_shut_out(text) {
        return PveError::StorageOffline { storage: refusal.storage.map(str::to_owned), text: reason };
    }
    if let Some(node) = between(text, "hostname lookup '", "' failed") {
        return PveError::NodeUnknown { node: node.to_owned() };
    }
    if let Some(storage) = between(text, "storage '", "' does not exist") {
        return PveError::StorageUnknown { storage: storage.to_owned() };
    }
    if let Some(volume) = between(text, "volume '", "' does not exist") {
        return PveError::VolumeGone { volume: volume.to_owned() };
    }
    if is_unreadable(text) {
        return PveError::ArchiveUnreadable { text: reason };
    }
    if let Some(vmid) = vmid {
        if text.starts_with("Configuration file '") && text.ends_with("' does not exist") {
            return PveError::Gone { vmid };
        }
        if text.contains(" already exists on node ") {
            return PveError::AlreadyExists { vmid };
        }
        if text.ends_with(" not running") {
            return PveError::NotRunning { vmid };
        }
        if text.ends_with(" already running") || text.ends_with("container is running") {
            return PveError::AlreadyRunning { vmid };
        }
        if text.ends_with("protection mode enabled") {
            return PveError::Protected { vmid };
        }
    }
    PveError::Other { call: refusal.call, status: 500, reason, errors }
}

/// `unable to restore CT 150 - CT is locked (backup)` says `CT is locked (backup)`. The text of a destroy is kept:
/// there we need the number before the dash.
fn strip_doing(text: &str) -> &str {
    match text.split_once(" - ") {
        Some((doing, rest))
            if doing.starts_with("unable to restore CT ") || doing.starts_with("unable to create CT ") =>
        {
            rest
        }
        _ => text,
    }
}

fn storage_is_away(text: &str) -> bool {
    let text = text.split_once(" : ").map_or(text, |(_, rest)| rest);
    text.starts_with("unable to activate storage '")
        || text.starts_with("could not activate storage '")
        || (text.starts_with("storage '") && text.ends_with("' is disabled"))
        || away_server(text).is_some()
}

fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(after).map(|(inner, _)| inner).filter(|inner| !inner.contains('\''))
}

/// `pbsown: error fetching datastores - 401 Unauthorized`: the server behind a storage does not let us in.
fn away_server(text: &str) -> Option<&str> {
    text.split_once(": error fetching datastores - ")
        .map(|(storage, _)| storage)
        .filter(|s| !s.contains([' ', ':']))
}

/// The backup server's own client did not reach its server, or was not admitted: Proxmox passes on its last output
/// line. Reads of an archive and the start of a restore end this way, since Proxmox does not check the storage before
/// them.
fn client_is_shut_out(text: &str) -> bool {
    text.strip_prefix("proxmox-backup-client failed:").map(str::trim_start).is_some_and(|said| {
        said.starts_with("error connecting to ")
            || said.starts_with("Error: authentication failed")
            || said.contains("certificate verify failed")
    })
}

fn quoted(text: &str) -> Option<String> {
    between(text, "storage '", "'").or_else(|| away_server(text)).map(str::to_owned)
}

/// The first number that can be a VMID, in the ways Proxmox writes one.
fn vmid_in(text: &str) -> Option<Vmid> {
    ["CT ", "VM ", "/lxc/"].iter().find_map(|before| {
        let (_, rest) = text.split_once(before)?;
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        Vmid::from_str(digits).ok()
    })
}

#[cfg(test)]
mod tests;
