//! Preconditions about unreachable backup servers.
//!
//! In: one recorded exchange about an entry. Out: the same obstacle here, set up by hand, and removed once the recording is past it. An
//! obstacle that a recorded call caused itself, by changing the entry, is never removed here: that would hide a wrong rule.
use std::path::PathBuf;

use serde_json::Value;

use super::precondition::Premises;
use super::recording::{Call, Task};
use crate::storage::backup_server::Bar;

/// The state of the server that an exchange shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecordedOutage {
    Silent,
    Stranger,
    Secret,
    Key,
    /// An obstacle of unknown kind.
    Unknown,
    Free,
}

fn shown(call: &Call, task: Option<&Task>) -> Option<RecordedOutage> {
    let evidence = call.evidence(task);
    let has = |parts: &[&str]| parts.iter().any(|part| evidence.contains(part));
    let data = call.answer.body.as_ref().and_then(|body| body.get("data"));
    let active = data.and_then(|data| data.get("active")).and_then(Value::as_u64);
    let ended = task.and_then(|task| task.last.get("exitstatus")).and_then(Value::as_str);
    let read = call.path.ends_with("/content") || call.path.contains("/extractconfig");
    match () {
        () if has(&["Can't connect to ", "- tcp connect error"]) => Some(RecordedOutage::Silent),
        () if has(&["not verified, abort!", "certificate fingerprint does not match"]) => {
            Some(RecordedOutage::Stranger)
        }
        () if has(&["401 Unauthorized", "Error: authentication failed"]) => Some(RecordedOutage::Secret),
        () if has(&["but no encryption key file found!"]) => Some(RecordedOutage::Key),
        () if active == Some(0) => Some(RecordedOutage::Unknown),
        () if active == Some(1) || ended == Some("OK") => Some(RecordedOutage::Free),
        () if read && call.method == "GET" && call.answer.status == 200 => Some(RecordedOutage::Free),
        () => None,
    }
}

/// The entry that a call needs its server for; none for calls that define one.
fn entry(call: &Call) -> Option<String> {
    let in_path = call.path.split("/storage/").nth(1).filter(|_| call.path.contains("/nodes/"));
    let in_volume = ["ostemplate", "volume"].iter().find_map(|name| call.param(name));
    let asked = call.param("storage").filter(|_| call.path.ends_with("/vzdump"));
    let volume = in_volume.and_then(|volid| Some(volid.split_once(":backup/ct/")?.0.to_owned()));
    in_path.and_then(|rest| rest.split(['/', '?']).next()).map(str::to_owned).or(volume).or(asked)
}

impl Premises<'_> {
    /// Sets up the obstacle that the recording shows, or removes it.
    pub(super) fn bars(&mut self, number: usize, call: &Call, task: Option<&Task>) {
        let Some(name) = entry(call) else { return };
        let wanted = match shown(call, task) {
            Some(RecordedOutage::Unknown) => self.later(number, &name),
            other => other,
        };
        let Some(wanted) = wanted else { return };
        let held = {
            let world = self.node.world();
            let Some(definition) = world.storage.find(&name).filter(|held| held.kind == "pbs") else {
                return;
            };
            world.store().bar(&name, definition).map(|bar| match bar {
                Bar::Silent { .. } => RecordedOutage::Silent,
                Bar::Stranger(_) => RecordedOutage::Stranger,
                Bar::Secret => RecordedOutage::Secret,
                Bar::Datastore(_) => RecordedOutage::Unknown,
            })
        };
        let reported = match (wanted, held) {
            (RecordedOutage::Free, _) => self.clear(&name),
            (RecordedOutage::Key, _) => self.remove_for_now(&name, "enc"),
            (RecordedOutage::Secret, None) => self.remove_for_now(&name, "pw"),
            (RecordedOutage::Stranger, None) => self.other_certificate(&name),
            (RecordedOutage::Silent, held) if held != Some(RecordedOutage::Silent) => {
                self.take_server_away(&name)
            }
            _ => None,
        };
        if let Some(reported) = reported {
            self.taken.push(format!("before line {}: {name}: {reported}", number + 1));
        }
    }

    /// The obstacle that the next exchange about the same entry shows.
    fn later(&self, number: usize, name: &str) -> Option<RecordedOutage> {
        let after = self.calls().filter(|(at, call, _)| *at > number && entry(call).as_deref() == Some(name));
        after
            .filter_map(|(_, call, task)| shown(call, task))
            .find(|shown| *shown != RecordedOutage::Unknown)
            .filter(|shown| *shown != RecordedOutage::Free)
    }

    fn outage_folder(&self) -> PathBuf {
        self.node.world().store().run.join("aside")
    }

    fn moved(&self, from: PathBuf, to: PathBuf) -> bool {
        let folder = to.parent().map_or(Ok(()), std::fs::create_dir_all);
        folder.and_then(|()| std::fs::rename(from, to)).is_ok()
    }

    fn secret_file(&self, file: &str) -> PathBuf {
        self.node.world().store().secrets().join(file)
    }

    fn server_of(&self, name: &str) -> Option<PathBuf> {
        let world = self.node.world();
        world.storage.find(name).map(|definition| world.store().server(definition))
    }

    fn remove_for_now(&self, name: &str, end: &str) -> Option<String> {
        let file = format!("{name}.{end}");
        self.moved(self.secret_file(&file), self.outage_folder().join(&file))
            .then(|| format!("{file} is gone"))
    }

    fn take_server_away(&self, name: &str) -> Option<String> {
        let server = self.server_of(name)?;
        let to = self.outage_folder().join(server.file_name()?);
        self.moved(server, to).then(|| "its server does not answer".to_owned())
    }

    fn other_certificate(&self, name: &str) -> Option<String> {
        let server = self.server_of(name)?;
        let to = self.outage_folder().join(format!("{name}.fingerprint"));
        let kept = self.moved(server.join("fingerprint"), to);
        let other = std::fs::write(server.join("fingerprint"), vec!["ff"; 32].join(":"));
        (kept && other.is_ok()).then(|| "its server has another certificate".to_owned())
    }

    /// Restores everything that was moved away for this entry.
    pub(super) fn clear(&self, name: &str) -> Option<String> {
        let (server, outage_folder) = (self.server_of(name)?, self.outage_folder());
        let mut back = self.moved(outage_folder.join(server.file_name()?), server.clone());
        for end in ["pw", "enc"] {
            let file = format!("{name}.{end}");
            back |= self.moved(outage_folder.join(&file), self.secret_file(&file));
        }
        back |= self.moved(outage_folder.join(format!("{name}.fingerprint")), server.join("fingerprint"));
        back.then(|| "nothing is in the way any more".to_owned())
    }
}
