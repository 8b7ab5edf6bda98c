//! A shown configuration, taken back to before the calls that came between.
//!
//! In: the text as a later answer shows it, and the calls until then. Out: the text without volumes that those calls made, with volumes
//! where they were before they were moved, and with the values in force instead of the pending ones.
use serde_json::Value;

use super::precondition::Premises;
use super::recording::Call;
use crate::guest::options::numbered;

/// A request for a new volume, `storage:SIZE`.
fn is_goal(value: &str) -> bool {
    let volume = value.split(',').next().unwrap_or_default();
    volume.split_once(':').is_some_and(|(_, size)| size.parse::<f64>().is_ok())
}

fn without(text: &str, key: &str) -> String {
    text.lines()
        .filter(|line| !line.starts_with(&format!("{key}: ")))
        .map(|line| format!("{line}\n"))
        .collect()
}

fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(&format!("{key}: ")))
}

impl Premises<'_> {
    /// The whole way back from one line to another.
    pub(super) fn before_changes(&self, text: String, vmid: u32, from: usize, to: usize) -> String {
        let text = self.before_goals(text, vmid, from, to);
        let text = self.before_flags(text, vmid, from, to);
        let text = self.before_moves(text, vmid, from, to);
        self.in_force(text, vmid, from)
    }

    fn changes_of(&self, vmid: u32, from: usize, to: usize) -> Vec<&Call> {
        let path = format!("/lxc/{vmid}/config");
        let between = self.calls().filter(|(at, ..)| (from..to).contains(at));
        let made = between.filter(|(_, call, _)| {
            call.method == "PUT" && call.path.ends_with(&path) && call.answer.status == 200
        });
        made.map(|(_, call, _)| call).collect()
    }

    /// Volumes that were requested, and those that were attached by their name after such a request.
    fn before_goals(&self, mut text: String, vmid: u32, from: usize, to: usize) -> String {
        let mut intended = false;
        for call in self.changes_of(vmid, from, to) {
            for (key, given) in call.params.iter().filter(|(key, _)| numbered(key, "mp").is_some()) {
                intended |= given.as_str().is_some_and(is_goal);
                if intended {
                    text = without(&text, key);
                }
            }
        }
        text
    }

    /// A mount point that a change between put into backups, and that a backup still left out, was out of them.
    fn before_flags(&self, text: String, vmid: u32, from: usize, to: usize) -> String {
        let flagged: Vec<String> = self
            .changes_of(vmid, from, to)
            .iter()
            .flat_map(|call| &call.params)
            .filter(|(key, given)| {
                numbered(key, "mp").is_some() && given.as_str().is_some_and(|text| text.contains("backup=1"))
            })
            .map(|(key, _)| key.clone())
            .collect();
        let own = format!(":vzdump:{vmid}:");
        let jobs = self.calls().filter(|(at, ..)| (from..to).contains(at)).filter_map(|(_, _, task)| task);
        let log: Vec<&String> =
            jobs.filter(|task| task.upid.contains(&own)).flat_map(|task| &task.log).collect();
        let left_out = |key: &str| {
            let line = format!("INFO: excluding volume mount point {key} (");
            log.iter().any(|logged| logged.starts_with(&line))
        };
        let out = flagged.into_iter().filter(|key| left_out(key));
        out.fold(text, |text, key| {
            let held = value(&text, &key).unwrap_or_default().replace(",backup=1", "");
            format!("{}{key}: {held}\n", without(&text, &key))
        })
    }

    /// A volume that was moved and kept is on the list of unused volumes.
    fn before_moves(&self, mut text: String, vmid: u32, from: usize, to: usize) -> String {
        let path = format!("/lxc/{vmid}/move_volume");
        let between = self.calls().filter(|(at, ..)| (from..to).contains(at));
        let moved = between.filter(|(_, call, task)| {
            let fine =
                task.is_some_and(|task| task.last.get("exitstatus").and_then(Value::as_str) == Some("OK"));
            call.path.ends_with(&path) && fine && call.param("storage").is_some()
        });
        for (_, call, _) in moved.collect::<Vec<_>>().into_iter().rev() {
            let unused = (0..256).rev().map(|n| format!("unused{n}")).find(|key| value(&text, key).is_some());
            let kept = call.param("delete").as_deref() != Some("1");
            if let (Some(key), Some(unused)) = (call.param("volume"), unused.filter(|_| kept)) {
                let old = value(&text, &unused).unwrap_or_default().to_owned();
                let now = value(&text, &key).unwrap_or_default().to_owned();
                let rest = now.split_once(',').map(|(_, rest)| format!(",{rest}")).unwrap_or_default();
                text = without(&without(&text, &unused), &key);
                text.push_str(&format!("{key}: {old}{rest}\n"));
            }
        }
        text
    }

    /// What a later list of waiting changes shows to be in force meanwhile.
    fn in_force(&self, mut text: String, vmid: u32, from: usize) -> String {
        let own = format!("/lxc/{vmid}/");
        for (_, call, _) in self.calls().filter(|(at, call, _)| *at >= from && call.path.contains(&own)) {
            if call.path.contains("/status/") && call.method == "POST" {
                break;
            }
            let rows = call.answer.body.as_ref().and_then(|body| body.get("data")?.as_array());
            let shown = call.path.ends_with("/pending") && call.answer.status == 200;
            for row in rows.into_iter().flatten().filter(|row| shown && row.get("pending").is_some()) {
                let Some(key) = row.get("key").and_then(Value::as_str) else { continue };
                text = without(&text, key);
                if let Some(held) = row.get("value").and_then(crate::call::plain) {
                    text.push_str(&format!("{key}: {held}\n"));
                }
            }
            if shown {
                break;
            }
        }
        self.called(text, vmid)
    }

    /// When a guest's name is not shown any more, it is taken from a backup's log.
    fn called(&self, text: String, vmid: u32) -> String {
        let own = format!(":vzdump:{vmid}:");
        let jobs = self.calls().filter_map(|(_, _, task)| task).filter(|task| task.upid.contains(&own));
        let reported = jobs.flat_map(|task| &task.log).find_map(|line| line.strip_prefix("INFO: CT Name: "));
        match reported.filter(|_| value(&text, "hostname").is_none()) {
            Some(name) => format!("{text}hostname: {name}\n"),
            None => text,
        }
    }
}
