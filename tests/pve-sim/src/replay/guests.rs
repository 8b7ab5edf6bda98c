//! Premises about guests: whether they are there, and in which state.
//!
//! In: one recorded exchange. Out: hand edits, taken only where the recorded answer could not have been given otherwise.
use serde_json::Value;

use super::precondition::Premises;
use super::recording::{Call, Content, Task};
use crate::fault::admin::Edit;

/// Whether an answer to a creation could only be given when the number was free.
fn past_the_number(call: &Call) -> bool {
    let before = [
        "Parameter verification failed.",
        "Permission check failed (/, Sys.Modify)",
        "Permission check failed (/, Sys.Console)",
    ];
    call.answer.status != 401 && !before.contains(&call.answer.reason.as_str())
}

impl Premises<'_> {
    /// Guests that a call is about.
    pub(super) fn guests_of(&self, call: &Call) -> Vec<u32> {
        let mut found: Vec<u32> = self
            .patterns
            .in_path
            .captures(&call.path)
            .and_then(|found| found.get(1)?.as_str().parse().ok())
            .into_iter()
            .collect();
        if call.path.ends_with("/vzdump") || call.path.ends_with("/lxc") && call.method == "POST" {
            found.extend(
                call.param("vmid").unwrap_or_default().split(',').filter_map(|id| id.parse::<u32>().ok()),
            );
        }
        found.extend(call.param("target-vmid").and_then(|id| id.parse::<u32>().ok()));
        found.extend(
            call.param("vms")
                .into_iter()
                .flat_map(|ids| ids.split(',').filter_map(|id| id.parse::<u32>().ok()).collect::<Vec<_>>()),
        );
        found
    }

    pub(super) fn guest(
        &mut self,
        number: usize,
        call: &Call,
        task: Option<&Task>,
        vmid: u32,
        evidence: &str,
    ) {
        let creating = call.method == "POST" && call.path.ends_with("/lxc");
        let absent = evidence.contains(&format!("{vmid}.conf' does not exist"))
            || evidence.contains(&format!("unable to find VM '{vmid}'"))
            || evidence.contains(&format!("pve-vm-9.0/{vmid}': No such file"));
        let exists = self.node.world().guests.has(vmid);
        let taken = evidence.contains(&format!("CT {vmid} already exists"));
        let overwrites = creating
            && call.param("force").as_deref() == Some("1")
            && call.param("restore").as_deref() == Some("1");
        match (creating, exists) {
            (true, true) if !taken && !overwrites && past_the_number(call) => {
                self.edit(number, &Edit::Destroy { vmid })
            }
            (true, false)
                if taken
                    || evidence.contains("can't overwrite running")
                    || evidence.contains("protection mode")
                    || evidence.contains("CT is locked") =>
            {
                self.make(number, vmid)
            }
            (true, false)
                if overwrites && call.answer.status == 200 && self.is_named_elsewhere(vmid, number) =>
            {
                self.make(number, vmid)
            }
            (false, false)
                if !absent && call.answer.status != 400 && !evidence.contains("could not find CT") =>
            {
                self.make(number, vmid)
            }
            (false, true) if absent => self.edit(number, &Edit::Destroy { vmid }),
            // Made again by hand, on another storage.
            (false, true) if call.method == "DELETE" && self.is_elsewhere(vmid, evidence) => {
                self.edit(number, &Edit::Destroy { vmid });
                self.make(number, vmid);
            }
            _ => {}
        }
        if self.node.world().guests.has(vmid) {
            self.left(number, vmid);
            self.lock(number, call, vmid, evidence);
            self.protection(number, call, vmid, evidence);
            self.power(number, call, task, vmid, evidence);
            self.volumes(number, vmid, evidence);
            self.shots(number, call, task, vmid);
            self.moves(number, call, task, vmid);
            self.waits_no_more(number, call, vmid);
            self.boots_systemd(number, call, task, vmid);
            self.orphaned(number, call, vmid, evidence);
        }
    }

    /// Sets the state in which the last change outside the recorded calls left the guest.
    pub(super) fn left(&mut self, number: usize, vmid: u32) {
        let before =
            self.lines.iter().filter(|line| line.number < number && !self.seen.contains(&line.number));
        let of_it = before.filter_map(|line| match &line.content {
            Content::Other { left: Some(left), .. } if left.vmid == vmid => Some((line.number, left.clone())),
            _ => None,
        });
        let all: Vec<_> = of_it.collect();
        self.seen.extend(all.iter().map(|(at, _)| *at));
        let Some((_, left)) = all.last() else { return };
        let running = self.node.power.is_running(vmid);
        let config = self.node.world().guests.get(vmid).cloned().unwrap_or_default();
        if left.running != running {
            self.edit(number, &if left.running { Edit::Start { vmid } } else { Edit::Stop { vmid } });
        }
        for name in left.snapshots.iter().filter(|name| !config.snapshots.contains_key(*name)) {
            self.edit(number, &Edit::Snapshot { vmid, name: name.clone() });
        }
        match &left.lock {
            Some(value) => self.edit(number, &Edit::Set { vmid, key: "lock".into(), value: value.clone() }),
            None if config.lock().is_some() => self.edit(number, &Edit::Unset { vmid, key: "lock".into() }),
            None => {}
        }
    }

    pub(super) fn is_named_elsewhere(&self, vmid: u32, number: usize) -> bool {
        self.calls().any(|(other, call, _)| other < number && call.path.contains(&format!("/lxc/{vmid}/")))
    }

    pub(super) fn lock(&mut self, number: usize, call: &Call, vmid: u32, evidence: &str) {
        if evidence.contains(&format!("pve-config-{vmid}.lock' - got timeout")) {
            self.node.faults.arm(crate::fault::Fault::HeldConfig { vmid });
            self.taken
                .push(format!("before line {}: another process holds the lock file of {vmid}", number + 1));
            if self.node.world().guests.get(vmid).is_ok_and(|config| config.lock().is_some()) {
                self.edit(number, &Edit::Unset { vmid, key: "lock".into() });
            }
            return;
        }
        let held =
            self.node.world().guests.get(vmid).ok().and_then(|config| config.lock().map(str::to_owned));
        let reported = self
            .patterns
            .locked
            .captures(evidence)
            .and_then(|found| found.get(1).map(|lock| lock.as_str().to_owned()));
        let shown = call.answer.body.as_ref().and_then(|body| body.pointer("/data")).filter(|_| {
            call.method == "GET" && (call.path.ends_with("/status/current") || call.path.contains("/config"))
        });
        let shown_lock = shown
            .filter(|data| data.is_object())
            .map(|data| data.get("lock").and_then(Value::as_str).map(str::to_owned));
        let busy = !self.node.tasks.all().0.is_empty();
        let wanted = match (reported, shown_lock) {
            (Some(lock), _) => Some(lock),
            (None, Some(shown)) if !busy => shown,
            (None, Some(_)) => return,
            // An effect proves that no lock was in the way.
            (None, None) if call.answer.status == 200 && call.method != "GET" && !self.is_worked_on(vmid) => {
                None
            }
            (None, None) => return,
        };
        if wanted == held {
            return;
        }
        // The recorded call met another call, and that call holds the lock.
        if busy && wanted.is_some() && self.comes(vmid, wanted.as_deref()) {
            return;
        }
        match wanted {
            Some(value) => self.edit(number, &Edit::Set { vmid, key: "lock".into(), value }),
            None => self.edit(number, &Edit::Unset { vmid, key: "lock".into() }),
        }
    }

    fn is_worked_on(&self, vmid: u32) -> bool {
        self.node.tasks.all().0.iter().any(|upid| upid.id.is_empty() || upid.id == vmid.to_string())
    }

    /// Whether a running worker takes this lock.
    fn comes(&self, vmid: u32, lock: Option<&str>) -> bool {
        while !self.node.tasks.all().0.is_empty() {
            if self.node.world().guests.get(vmid).is_ok_and(|config| config.lock() == lock) {
                return true;
            }
            std::thread::park_timeout(std::time::Duration::from_millis(1));
        }
        false
    }

    /// Whether the storage that is in the way is not one of the guest's.
    fn is_elsewhere(&self, vmid: u32, evidence: &str) -> bool {
        let Some(storage) = self.patterns.disabled.captures(evidence).and_then(|found| found.get(1)) else {
            return false;
        };
        let used = format!("{}:{vmid}/", storage.as_str());
        self.node.world().guests.get(vmid).is_ok_and(|config| !config.print().contains(&used))
    }

    pub(super) fn protection(&mut self, number: usize, call: &Call, vmid: u32, evidence: &str) {
        let held = self.node.world().guests.get(vmid).is_ok_and(|config| config.main.flag("protection"));
        let reported = self.patterns.protected.is_match(evidence);
        let destroys = call.method == "DELETE" && call.path.ends_with(&format!("/lxc/{vmid}"));
        let gone = !reported
            && (destroys || call.method == "POST" && call.path.ends_with("/lxc"))
            && call.answer.status != 403
            && call.answer.status != 400;
        if reported && !held {
            self.edit(number, &Edit::Set { vmid, key: "protection".into(), value: "1".into() });
        } else if gone && held {
            self.edit(number, &Edit::Unset { vmid, key: "protection".into() });
        }
    }

    pub(super) fn power(
        &mut self,
        number: usize,
        call: &Call,
        task: Option<&Task>,
        vmid: u32,
        evidence: &str,
    ) {
        let running = self.node.power.is_running(vmid);
        let busy = !self.node.tasks.all().0.is_empty();
        let data = call.answer.body.as_ref().and_then(|body| body.get("data"));
        let shown = data
            .and_then(|data| data.get("status"))
            .and_then(Value::as_str)
            .filter(|_| call.path.ends_with("/status/current") && !busy);
        let of_job = task.and_then(|task| {
            task.log.iter().find_map(|line| line.strip_prefix("INFO: status = ").map(str::to_owned))
        });
        let up = match () {
            () if evidence.contains(&format!("{vmid} not running")) => Some(false),
            () if evidence.contains(&format!("{vmid} already running"))
                || evidence.contains("container is running") =>
            {
                Some(true)
            }
            () if evidence.contains("can't overwrite running")
                || evidence.contains("in-use volume while the source CT is running") =>
            {
                call.path
                    .ends_with("/lxc")
                    .then_some(true)
                    .or(call.path.contains(&format!("/lxc/{vmid}/")).then_some(true))
            }
            () if let Some(word) = shown => Some(word == "running"),
            () if let Some(word) = of_job.filter(|_| call.param("vmid") == Some(vmid.to_string())) => {
                Some(word == "running")
            }
            () if call.answer.status == 200
                && call.method == "POST"
                && call.path.ends_with("/status/start") =>
            {
                Some(false)
            }
            () if call.answer.status == 200
                && call.method == "POST"
                && ["/status/stop", "/status/shutdown", "/status/reboot"]
                    .iter()
                    .any(|end| call.path.ends_with(end)) =>
            {
                Some(true)
            }
            () if call.answer.status == 200
                && call.method == "DELETE"
                && call.path.ends_with(&format!("/lxc/{vmid}"))
                && call.param("force").is_none() =>
            {
                Some(false)
            }
            () if !busy && call.path.contains(&format!("/lxc/{vmid}/")) => self.up_ahead(number, vmid),
            () => None,
        };
        match up {
            Some(true) if !running => self.edit(number, &Edit::Start { vmid }),
            Some(false) if running => self.edit(number, &Edit::Stop { vmid }),
            _ => {}
        }
    }

    pub(super) fn volumes(&mut self, number: usize, vmid: u32, evidence: &str) {
        let named = self
            .patterns
            .missing_volume
            .captures(evidence)
            .filter(|found| found.get(2).is_some_and(|id| id.as_str() == vmid.to_string()));
        let Some(volid) = named.and_then(|found| found.get(1).map(|volid| volid.as_str().to_owned())) else {
            return;
        };
        let in_config = self
            .node
            .world()
            .guests
            .get(vmid)
            .is_ok_and(|config| config.main.values.values().any(|value| value.starts_with(&volid)));
        if !in_config && !evidence.contains("vzrestore") {
            self.edit(
                number,
                &Edit::Set { vmid, key: "mp9".into(), value: format!("{volid},mp=/by-hand,size=1G") },
            );
        }
        if self.node.world().store().exists(&volid) {
            self.edit(number, &Edit::RemoveVolume { volid });
        }
    }
}
