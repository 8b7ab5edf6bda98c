//! Premises about what stands between a node and a backup server: a server that is down, a secret or a key that is gone, another certificate.
//!
//! In: one recorded exchange about an entry. Out: the same bar here, put up by hand, and taken away once the recording is past it. A bar
//! that a recorded call put up itself, by changing the entry, is never taken away here: that would hide a wrong rule.
use std::path::PathBuf;

use serde_json::Value;

use super::premise::Premises;
use super::recording::{Call, Task};
use crate::storage::backup_server::Bar;

/// What an exchange shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Silent,
    Stranger,
    Secret,
    Key,
    /// Something, and not what.
    Unknown,
    Free,
}

fn shown(call: &Call, task: Option<&Task>) -> Option<Shown> {
    let evidence = call.evidence(task);
    let has = |parts: &[&str]| parts.iter().any(|part| evidence.contains(part));
    let data = call.answer.body.as_ref().and_then(|body| body.get("data"));
    let active = data.and_then(|data| data.get("active")).and_then(Value::as_u64);
    let ended = task.and_then(|task| task.last.get("exitstatus")).and_then(Value::as_str);
    let read = call.path.ends_with("/content") || call.path.contains("/extractconfig");
    match () {
        () if has(&["Can't connect to ", "- tcp connect error"]) => Some(Shown::Silent),
        () if has(&["not verified, abort!", "certificate fingerprint does not match"]) => {
            Some(Shown::Stranger)
        }
        () if has(&["401 Unauthorized", "Error: authentication failed"]) => Some(Shown::Secret),
        () if has(&["but no encryption key file found!"]) => Some(Shown::Key),
        () if active == Some(0) => Some(Shown::Unknown),
        () if active == Some(1) || ended == Some("OK") => Some(Shown::Free),
        () if read && call.method == "GET" && call.answer.status == 200 => Some(Shown::Free),
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
    /// Puts up what stands in the way, or takes it away.
    pub(super) fn bars(&mut self, number: usize, call: &Call, task: Option<&Task>) {
        let Some(name) = entry(call) else { return };
        let wanted = match shown(call, task) {
            Some(Shown::Unknown) => self.later(number, &name),
            other => other,
        };
        let Some(wanted) = wanted else { return };
        let held = {
            let world = self.node.world();
            let Some(definition) = world.storage.find(&name).filter(|held| held.kind == "pbs") else {
                return;
            };
            world.store().bar(&name, definition).map(|bar| match bar {
                Bar::Silent { .. } => Shown::Silent,
                Bar::Stranger(_) => Shown::Stranger,
                Bar::Secret => Shown::Secret,
                Bar::Datastore(_) => Shown::Unknown,
            })
        };
        let told = match (wanted, held) {
            (Shown::Free, _) => self.clear(&name),
            (Shown::Key, _) => self.put_aside(&name, "enc"),
            (Shown::Secret, None) => self.put_aside(&name, "pw"),
            (Shown::Stranger, None) => self.other_certificate(&name),
            (Shown::Silent, held) if held != Some(Shown::Silent) => self.put_server_aside(&name),
            _ => None,
        };
        if let Some(told) = told {
            self.taken.push(format!("before line {}: {name}: {told}", number + 1));
        }
    }

    /// What the next exchange about the same entry says was in the way.
    fn later(&self, number: usize, name: &str) -> Option<Shown> {
        let after = self.calls().filter(|(at, call, _)| *at > number && entry(call).as_deref() == Some(name));
        after
            .filter_map(|(_, call, task)| shown(call, task))
            .find(|shown| *shown != Shown::Unknown)
            .filter(|shown| *shown != Shown::Free)
    }

    fn aside(&self) -> PathBuf {
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

    fn put_aside(&self, name: &str, end: &str) -> Option<String> {
        let file = format!("{name}.{end}");
        self.moved(self.secret_file(&file), self.aside().join(&file)).then(|| format!("{file} is gone"))
    }

    fn put_server_aside(&self, name: &str) -> Option<String> {
        let server = self.server_of(name)?;
        let to = self.aside().join(server.file_name()?);
        self.moved(server, to).then(|| "its server does not answer".to_owned())
    }

    fn other_certificate(&self, name: &str) -> Option<String> {
        let server = self.server_of(name)?;
        let to = self.aside().join(format!("{name}.fingerprint"));
        let kept = self.moved(server.join("fingerprint"), to);
        let other = std::fs::write(server.join("fingerprint"), vec!["ff"; 32].join(":"));
        (kept && other.is_ok()).then(|| "its server has another certificate".to_owned())
    }

    /// All that was put aside for this entry comes back.
    pub(super) fn clear(&self, name: &str) -> Option<String> {
        let (server, aside) = (self.server_of(name)?, self.aside());
        let mut back = self.moved(aside.join(server.file_name()?), server.clone());
        for end in ["pw", "enc"] {
            let file = format!("{name}.{end}");
            back |= self.moved(aside.join(&file), self.secret_file(&file));
        }
        back |= self.moved(aside.join(format!("{name}.fingerprint")), server.join("fingerprint"));
        back.then(|| "nothing is in the way any more".to_owned())
    }
}
