//! Premises about a guest's power that only a later line shows.
//!
//! In: a position in the recording. Out: whether the guest must have been up there. The next line that shows it decides, unless a recorded
//! call changes the state before that line. Answers count first; the recorder's own note ("running: …") counts only where no answer shows it.
use serde_json::Value;

use super::precondition::Premises;
use super::recording::{Call, Task};
use crate::guest::options::{Mount, numbered};

/// Options that wait for a stop while the guest is up.
const WAITING: &[&str] = &[
    "arch",
    "cmode",
    "console",
    "debug",
    "entrypoint",
    "env",
    "features",
    "nameserver",
    "ostype",
    "searchdomain",
    "template",
    "timezone",
    "tty",
];

impl Premises<'_> {
    /// Whether a guest is up before a line, as later lines prove.
    pub(super) fn up_ahead(&self, number: usize, vmid: u32) -> Option<bool> {
        self.shown_ahead(number, vmid).or_else(|| self.said(number, vmid))
    }

    fn shown_ahead(&self, number: usize, vmid: u32) -> Option<bool> {
        let mut untouched = self.waits(vmid);
        let mut in_force = false;
        for (at, call, task) in self.calls().filter(|(at, ..)| *at >= number) {
            let found = self.shown(call, task, vmid).or_else(|| self.waiting_shown(at, call, vmid));
            let found = found.or_else(|| self.detached(at, call, vmid).filter(|_| at == number));
            if found.is_some() {
                // A guest that is up did not stop to apply the pending change, so the change was taken back by hand.
                return found.filter(|up| !(*up && in_force));
            }
            // Nothing is pending any more although no call changed it: it took effect, so the guest went down.
            in_force |=
                untouched && pending_rows(call, vmid).is_some_and(|rows| !rows.iter().any(is_waiting));
            if changes_power(call, vmid) {
                break;
            }
            untouched &= !changes(call, vmid);
        }
        in_force.then_some(false)
    }

    /// Whether something waits for the guest's stop here.
    fn waits(&self, vmid: u32) -> bool {
        let world = self.node.world();
        let config = world.guests.get(vmid);
        config.is_ok_and(|config| !config.pending.is_empty() || !config.pending_delete.is_empty())
    }

    /// What one answer shows by itself.
    fn shown(&self, call: &Call, task: Option<&Task>, vmid: u32) -> Option<bool> {
        let path = call.path.split('?').next().unwrap_or_default();
        let fine = call.answer.status == 200;
        let data = call.answer.body.as_ref().and_then(|body| body.get("data"));
        if call.method == "GET" && fine && path.ends_with("/nodes/pve1/lxc") {
            let mut rows = data.and_then(Value::as_array).into_iter().flatten();
            let own = rows.find(|row| row.get("vmid").and_then(Value::as_u64) == Some(u64::from(vmid)))?;
            return own.get("status").and_then(Value::as_str).map(|word| word == "running");
        }
        if path.ends_with("/vzdump") && call.param("vmid") == Some(vmid.to_string()) {
            let word = task?.log.iter().find_map(|line| line.strip_prefix("INFO: status = "))?;
            return Some(word == "running");
        }
        if fine && remakes(call, vmid) {
            return Some(false);
        }
        let own = path.split(&format!("/lxc/{vmid}/")).nth(1)?;
        let errors = call.answer.body.as_ref().and_then(|body| body.get("errors")).map(ToString::to_string);
        match (call.method.as_str(), own) {
            ("GET", "status/current") if fine => data?.get("status")?.as_str().map(|word| word == "running"),
            ("GET", "interfaces") if fine => Some(data.is_some_and(Value::is_array)),
            ("GET", "snapshot") if fine => {
                let mut rows = data.and_then(Value::as_array).into_iter().flatten();
                let now = rows.find(|row| row.get("name").and_then(Value::as_str) == Some("current"))?;
                now.get("running").map(|word| word == 1)
            }
            ("PUT", "config") if errors.is_some_and(|text| text.contains("unable to hotplug")) => Some(true),
            ("PUT", "config") if call.answer.reason.starts_with("bridge '") => Some(false),
            ("POST", "move_volume") if call.answer.reason == "cannot move volumes of a running container" => {
                Some(true)
            }
            ("POST", "move_volume") if fine && call.param("storage").is_some() => Some(false),
            ("POST", "status/start") if fine => Some(false),
            ("POST", "status/stop" | "status/shutdown" | "status/reboot") if fine => Some(true),
            _ => None,
        }
    }

    /// A list of what waits: something does only while the guest is up.
    fn waiting_shown(&self, at: usize, call: &Call, vmid: u32) -> Option<bool> {
        if let Some(rows) = pending_rows(call, vmid) {
            return rows.iter().any(is_waiting).then_some(true);
        }
        // An option that would wait: whether it did shows in the next list.
        let asked: Vec<&String> = call.params.keys().filter(|_| sets(call, vmid)).collect();
        let (key, _) = asked.into_iter().find_map(|key| {
            let mount = numbered(key, "mp").is_some() && self.has(vmid, key);
            (WAITING.contains(&key.as_str()) || mount).then_some((key, ()))
        })?;
        for (_, later, _) in self.calls().filter(|(other, ..)| *other > at) {
            if let Some(rows) = pending_rows(later, vmid) {
                let own =
                    rows.iter().find(|row| row.get("key").and_then(Value::as_str) == Some(key.as_str()))?;
                return Some(own.get("pending").is_some());
            }
            let again = sets(later, vmid) && later.params.contains_key(key) || reverts(later, vmid);
            if again || changes_power(later, vmid) {
                return None;
            }
        }
        None
    }

    fn has(&self, vmid: u32, key: &str) -> bool {
        self.node.world().guests.get(vmid).is_ok_and(|config| config.main.get(key).is_some())
    }

    /// A detached volume is on the list of unused ones at once, or, of a guest that is up, not yet.
    fn detached(&self, at: usize, call: &Call, vmid: u32) -> Option<bool> {
        let deleted = call.param("delete").filter(|_| sets(call, vmid))?;
        let volid = {
            let world = self.node.world();
            let main = &world.guests.get(vmid).ok()?.main;
            let key = deleted.split(',').find(|key| numbered(key, "mp").is_some())?;
            let volid = Mount::parse(&self.node.table, key, main.get(key)?).ok()?.volume().to_owned();
            let named = main.values.values().filter(|value| value.split(',').next() == Some(volid.as_str()));
            (named.count() == 1).then_some(volid)?
        };
        let next = self
            .calls()
            .find(|(other, later, _)| *other > at && later.path.contains(&format!("/lxc/{vmid}/")));
        let (_, later, _) =
            next.filter(|(_, later, _)| later.method == "GET" && later.path.ends_with("/config"))?;
        let shown = later.answer.body.as_ref()?.get("data")?.as_object()?;
        Some(!shown.iter().any(|(key, value)| key.starts_with("unused") && value.as_str() == Some(&volid)))
    }

    /// The recorder's note, when no recorded answer contradicts it.
    fn said(&self, number: usize, vmid: u32) -> Option<bool> {
        let (_, call, _) = self.calls().find(|(at, ..)| *at == number)?;
        let own = call.path.contains(&format!("/lxc/{vmid}/"));
        let template = self.node.world().guests.get(vmid).is_ok_and(|config| config.main.flag("template"));
        match call.note.as_str() {
            note if own && !template && note.starts_with("running") => Some(true),
            note if own && note.starts_with("stopped") => Some(false),
            _ => None,
        }
    }
}

fn pending_rows(call: &Call, vmid: u32) -> Option<Vec<Value>> {
    let own = call.method == "GET" && call.path.ends_with(&format!("/lxc/{vmid}/pending"));
    let body = call.answer.body.as_ref().filter(|_| own && call.answer.status == 200)?;
    body.get("data")?.as_array().cloned()
}

fn is_waiting(row: &Value) -> bool {
    row.get("pending").is_some() || row.get("delete").is_some()
}

fn changes(call: &Call, vmid: u32) -> bool {
    call.method == "PUT" && call.path.ends_with(&format!("/lxc/{vmid}/config"))
}

/// A change of options that was made.
fn sets(call: &Call, vmid: u32) -> bool {
    changes(call, vmid) && call.answer.status == 200
}

fn reverts(call: &Call, vmid: u32) -> bool {
    changes(call, vmid) && (call.param("revert").is_some() || call.param("delete").is_some())
}

/// Makes the guest, or makes it anew over a stopped one.
fn remakes(call: &Call, vmid: u32) -> bool {
    call.method == "POST" && call.path.ends_with("/lxc") && call.param("vmid") == Some(vmid.to_string())
}

fn changes_power(call: &Call, vmid: u32) -> bool {
    if remakes(call, vmid) {
        return true;
    }
    let own = call.path.split(&format!("/lxc/{vmid}")).nth(1);
    own.is_some_and(|rest| {
        call.method == "POST" && (rest.starts_with("/status/") || rest.ends_with("/rollback"))
            || call.method == "DELETE" && rest.is_empty()
    })
}
