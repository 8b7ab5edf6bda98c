//! Preconditions about the content of guests.
//!
//! In: one recorded exchange about the guest. Out: hand edits, taken only where the recorded answer could not have been given otherwise.
use serde_json::Value;

use super::precondition::Premises;
use super::recording::{Call, Task};
use crate::fault::admin::Edit;
use crate::guest::config::GuestConfig;

impl Premises<'_> {
    /// A volume is moved to another guest: the state of both guests is as the answer shows.
    pub(super) fn moves(&mut self, number: usize, call: &Call, task: Option<&Task>, vmid: u32) {
        let (Some(key), Some(_)) = (call.param("volume"), call.param("target-vmid")) else { return };
        if !call.path.ends_with("/move_volume") {
            return;
        }
        let own = call.path.contains(&format!("/lxc/{vmid}/"));
        let to = call.param("target-volume").unwrap_or_else(|| key.clone());
        let reason = call.answer.reason.as_str();
        let done = call.answer.status == 200;
        // Refusals that come after the check of both mount points.
        let snapshotted = reason.contains("used by a snapshot");
        let later = reason.contains("/storage/") || reason.contains("in-use volume") || snapshotted;
        let absent = reason.starts_with(&format!("volume '{key}' for container"));
        let taken = reason.starts_with(&format!("Target volume key '{to}' is already in use"));
        if done || later || absent || taken {
            self.unlocked(number, vmid);
        }
        if done {
            let warned = task.is_some_and(|task| task.last.to_string().contains("WARNINGS"));
            self.runs(number, vmid, warned && !own);
        }
        if own {
            let wanted = if absent { Some(false) } else { (done || later || taken).then_some(true) };
            self.mount_point(number, vmid, &key, wanted);
            self.in_snapshot(number, vmid, &key, snapshotted, done);
        } else {
            let wanted = if taken { Some(true) } else { (done || later).then_some(false) };
            self.mount_point(number, vmid, &to, wanted);
        }
    }

    fn unlocked(&mut self, number: usize, vmid: u32) {
        if self.config(vmid).is_some_and(|config| config.lock().is_some()) {
            self.edit(number, &Edit::Unset { vmid, key: "lock".into() });
        }
    }

    fn runs(&mut self, number: usize, vmid: u32, wanted: bool) {
        if self.node.power.is_running(vmid) != wanted {
            self.edit(number, &if wanted { Edit::Start { vmid } } else { Edit::Stop { vmid } });
        }
    }

    fn config(&self, vmid: u32) -> Option<GuestConfig> {
        self.node.world().guests.get(vmid).ok().cloned()
    }

    /// A mount point that must, or must not, be there.
    fn mount_point(&mut self, number: usize, vmid: u32, key: &str, wanted: Option<bool>) {
        let (Some(wanted), Some(config)) = (wanted, self.config(vmid)) else { return };
        match config.main.get(key) {
            Some(_) if !wanted => self.edit(number, &Edit::Unset { vmid, key: key.to_owned() }),
            None if wanted => {
                let storage = config
                    .main
                    .get("rootfs")
                    .and_then(|root| root.split_once(':'))
                    .map_or("labbtrfs", |(storage, _)| storage)
                    .to_owned();
                let store = |n: u32| format!("{storage}:{vmid}/vm-{vmid}-disk-{n}.raw");
                let free = (1..100).map(store).find(|volid| !self.node.world().store().exists(volid));
                let Some(volid) = free else { return };
                // Placing the whole file makes the volume too.
                let mut placed = config;
                placed.main.set(key, format!("{volid},mp=/data,backup=0,size=1G"));
                self.edit(number, &Edit::Place { vmid, config: placed.print() });
            }
            _ => {}
        }
    }

    /// A refusal proves that a snapshot holds the volume; a success that none does.
    fn in_snapshot(&mut self, number: usize, vmid: u32, key: &str, held: bool, done: bool) {
        let Some(mut config) = self.config(vmid) else { return };
        let Some(value) = config.main.get(key).map(str::to_owned) else { return };
        let volid = value.split(',').next().unwrap_or_default().to_owned();
        let holds = |section: &crate::guest::config::Section| {
            section.values.values().any(|value| value.starts_with(&volid))
        };
        let any = config.snapshots.values().any(holds);
        if held && !any {
            let newest = config.main.get("parent").map(str::to_owned);
            if newest.is_none() {
                self.edit(number, &Edit::Snapshot { vmid, name: "byhand".into() });
                return;
            }
            if let Some(section) = newest.and_then(|name| config.snapshots.get_mut(&name)) {
                section.set(key, value);
            }
            self.edit(number, &Edit::Place { vmid, config: config.print() });
        } else if done && any {
            config.snapshots.retain(|_, section| !holds(section));
            let gone = config.main.get("parent").is_some_and(|parent| !config.snapshots.contains_key(parent));
            if gone {
                config.main.unset("parent");
            }
            self.edit(number, &Edit::Place { vmid, config: config.print() });
        }
    }

    /// An option that is shown as set, and not as pending deletion, was set again by hand.
    pub(super) fn waits_no_more(&mut self, number: usize, call: &Call, vmid: u32) {
        let Some(mut config) = self.config(vmid).filter(|config| !config.pending_delete.is_empty()) else {
            return;
        };
        let rows = call.answer.body.as_ref().and_then(|body| body.get("data")).and_then(Value::as_array);
        let shows = call.method == "GET" && call.path.ends_with(&format!("/lxc/{vmid}/pending"));
        let named = |row: &&Value, key: &str| row.get("key").and_then(Value::as_str) == Some(key);
        let kept = |key: &String| {
            let row = rows.into_iter().flatten().find(|row| named(row, key));
            let plain = row.is_some_and(|row| {
                row.get("value").is_some() && row.get("delete").is_none() && row.get("pending").is_none()
            });
            !(shows && plain)
        };
        let before = config.pending_delete.len();
        config.pending_delete.retain(kept);
        if config.pending_delete.len() != before {
            self.edit(number, &Edit::Place { vmid, config: config.print() });
        }
    }

    /// A start that warns of a systemd had one to start.
    pub(super) fn boots_systemd(&mut self, number: usize, call: &Call, task: Option<&Task>, vmid: u32) {
        let said = task.and_then(|task| {
            task.log
                .iter()
                .find_map(|line| line.strip_prefix("WARN: Systemd ")?.split(' ').next().map(str::to_owned))
        });
        let starts = call.path.ends_with("/status/start") || call.path.ends_with("/status/reboot");
        let (Some(version), true) = (said, starts) else { return };
        let Some(root) = self.config(vmid).and_then(|config| config.main.get("rootfs").map(str::to_owned))
        else {
            return;
        };
        let volid = root.split(',').next().unwrap_or_default().to_owned();
        let Ok(tree) = self.node.world().store().tree(&volid) else { return };
        if tree.join("sbin").exists() {
            return;
        }
        let made = std::fs::create_dir_all(tree.join("sbin"))
            .and_then(|()| std::fs::create_dir_all(tree.join("lib/systemd")))
            .and_then(|()| {
                std::fs::write(tree.join("lib/systemd/systemd"), format!("libsystemd-shared-{version}.so\0"))
            })
            .and_then(|()| std::os::unix::fs::symlink("/lib/systemd/systemd", tree.join("sbin/init")));
        self.taken.push(format!(
            "before line {}: {vmid} has systemd {version} ({})",
            number + 1,
            if made.is_ok() { "done" } else { "failed" }
        ));
    }
}
