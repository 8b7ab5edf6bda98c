//! Premises about snapshots that were there before the recording.
//!
//! In: one recorded exchange about a guest. Out: snapshots that the answer proves and that no earlier call of the recording made.
use std::collections::BTreeSet;

use serde_json::Value;

use super::precondition::Premises;
use super::recording::{Call, Task};
use crate::fault::admin::Edit;
use crate::guest::config::GuestConfig;

impl Premises<'_> {
    /// A snapshot that is used, listed, or the parent of what is shown, is there.
    pub(super) fn shots(&mut self, number: usize, call: &Call, task: Option<&Task>, vmid: u32) {
        if call.answer.reason.starts_with("you can't move a volume with snapshots") {
            self.some_shot(number, vmid);
        }
        let fine = task.is_none_or(|task| !task.last.to_string().contains("does not exist"));
        if call.answer.status != 200 || !fine || !call.path.contains(&format!("/lxc/{vmid}/")) {
            return;
        }
        let data = call.answer.body.as_ref().and_then(|body| body.get("data"));
        let listed = call.method == "GET" && call.path.ends_with("/snapshot");
        for row in data.and_then(Value::as_array).into_iter().flatten().filter(|_| listed) {
            let text = |key: &str| row.get(key).and_then(Value::as_str);
            if let Some(name) = text("name").filter(|name| *name != "current")
                && self.shot(number, vmid, name)
            {
                self.dress(vmid, name, text("description"), text("parent"));
            }
        }
        let shown = call.method == "GET"
            && call
                .path
                .split('?')
                .next()
                .is_some_and(|path| path.ends_with("/config") && !path.contains("/snapshot/"));
        let parent = data
            .and_then(|data| data.get("parent"))
            .and_then(Value::as_str)
            .filter(|_| shown && named(call).is_none());
        for name in named(call).as_deref().into_iter().chain(parent) {
            self.shot(number, vmid, name);
        }
    }

    /// A guest that has a snapshot has the one that is named next.
    fn some_shot(&mut self, number: usize, vmid: u32) {
        let none = self.node.world().guests.get(vmid).is_ok_and(|config| config.snapshots.is_empty());
        let own = format!("/lxc/{vmid}/");
        let later = self.calls().filter(|(at, call, _)| *at > number && call.path.contains(&own));
        let name = later.filter_map(|(_, call, _)| {
            let parent = call.answer.body.as_ref().and_then(|body| body.pointer("/data/parent")?.as_str());
            named(call).or_else(|| parent.map(str::to_owned))
        });
        let first = name.into_iter().next();
        if let Some(name) = first.filter(|_| none) {
            self.shot(number, vmid, &name);
        }
    }

    /// A subvolume that no configuration names blocks a backup's snapshot, or was removed by hand.
    pub(super) fn orphaned(&mut self, number: usize, call: &Call, vmid: u32, evidence: &str) {
        if !call.path.ends_with("/vzdump") || call.param("mode").as_deref() != Some("snapshot") {
            return;
        }
        let named =
            self.patterns.orphan.captures(evidence).and_then(|found| {
                Some((found.get(1)?.as_str().to_owned(), found.get(2)?.as_str().to_owned()))
            });
        let (place, wanted) = {
            let world = self.node.world();
            let Ok(config) = world.guests.get(vmid) else { return };
            let root = config.main.get("rootfs").and_then(|root| root.split(',').next()).unwrap_or_default();
            let known = config.snapshots.contains_key("vzdump");
            let place = match &named {
                Some((subvolume, name)) => world.store().real(&format!("{subvolume}@{name}")),
                None => match world.store().snapshot_tree(root, "vzdump") {
                    Ok(tree) if !known => tree.parent().unwrap_or(&tree).to_owned(),
                    _ => return,
                },
            };
            (place, named.is_some())
        };
        let done = match (wanted, place.is_dir()) {
            (true, false) => std::fs::create_dir_all(&place),
            (false, true) => std::fs::remove_dir_all(&place),
            _ => return,
        };
        let reported = if wanted { "lies in the way" } else { "was removed" };
        self.taken.push(format!(
            "before line {}: a subvolume of {vmid} {reported} ({})",
            number + 1,
            done.is_ok()
        ));
    }

    /// The snapshot that a guest is first shown to stem from, when no recorded call makes it.
    pub(super) fn shot_before(&mut self, number: usize, vmid: u32, name: &str) {
        let own = format!("/lxc/{vmid}/snapshot");
        let job = format!(":vzdump:{vmid}:");
        let made = self.calls().any(|(_, call, task)| {
            let taken = call.path.ends_with(&own) && call.param("snapname").as_deref() == Some(name);
            taken || name == "vzdump" && task.is_some_and(|task| task.upid.contains(&job))
        });
        if !made {
            self.shot(number, vmid, name);
        }
    }

    /// Makes a snapshot that is missing; returns whether it did.
    fn shot(&mut self, number: usize, vmid: u32, name: &str) -> bool {
        let own = format!("/lxc/{vmid}/snapshot");
        let made = self.calls().any(|(at, call, _)| {
            at < number
                && call.method == "POST"
                && call.path.ends_with(&own)
                && call.answer.status == 200
                && call.param("snapname").as_deref() == Some(name)
        });
        let missing =
            self.node.world().guests.get(vmid).is_ok_and(|config| !config.snapshots.contains_key(name));
        if made || !missing {
            return false;
        }
        let reported = self.reported(number, vmid, name);
        self.edit(number, &Edit::Snapshot { vmid, name: name.to_owned() });
        if let Some(text) = reported {
            let values = GuestConfig::parse(&text).main;
            let done = self.node.world().guests.change(vmid, |config| {
                if let Some(section) = config.snapshots.get_mut(name) {
                    let time = section.get("snaptime").unwrap_or_default().to_owned();
                    *section = values;
                    section.set("snaptime", time);
                }
                Ok(())
            });
            self.taken.push(format!(
                "before line {}: snapshot {name} of {vmid} is as shown ({})",
                number + 1,
                done.is_ok()
            ));
        }
        true
    }

    fn dress(&mut self, vmid: u32, name: &str, description: Option<&str>, parent: Option<&str>) {
        let done = self.node.world().guests.change(vmid, |config| {
            if let Some(section) = config.snapshots.get_mut(name) {
                description
                    .filter(|text| !text.is_empty())
                    .into_iter()
                    .for_each(|text| section.set("description", text));
                match parent {
                    Some(parent) => section.set("parent", parent),
                    None => drop(section.unset("parent")),
                }
            }
            Ok(())
        });
        self.taken.push(format!("snapshot {name} of {vmid} is as listed ({})", done.is_ok()));
    }

    /// The snapshot's configuration as a later call shows it: requested by name, or after the rollback to it.
    fn reported(&self, from: usize, vmid: u32, name: &str) -> Option<String> {
        let config = format!("/lxc/{vmid}/config");
        let own = format!("/lxc/{vmid}/snapshot/{name}");
        let after = || self.calls().filter(|(at, call, _)| *at >= from && call.answer.status == 200);
        let asked = after().find(|(_, call, _)| {
            let here = call.path.split('?').next().unwrap_or_default();
            call.method == "GET"
                && named(call).as_deref() == Some(name)
                && (here.ends_with(&config) || here.ends_with(&format!("{own}/config")))
        });
        let rolled = || {
            let (at, _, _) = after().find(|(_, call, _)| {
                call.method == "POST" && call.path.ends_with(&format!("{own}/rollback"))
            })?;
            let next = after().find(|(next, call, _)| {
                *next > at && call.path.split('?').next().is_some_and(|path| path.ends_with(&config))
            });
            next.filter(|(_, call, _)| call.method == "GET")
        };
        let (_, shown, _) = asked.or_else(rolled)?;
        Some(self.config_of(shown.answer.body.as_ref()?, &BTreeSet::new()))
    }
}

/// The snapshot that a call names.
fn named(call: &Call) -> Option<String> {
    let path = call.path.split('?').next().unwrap_or_default();
    let in_path = path.split("/snapshot/").nth(1).and_then(|rest| rest.split('/').next()).map(str::to_owned);
    let in_query =
        call.path.split("snapshot=").nth(1).and_then(|rest| rest.split('&').next()).map(str::to_owned);
    let given = call.param("snapshot").filter(|_| call.method == "GET");
    in_path.or(in_query).or(given).filter(|name| !name.is_empty() && name != "current")
}
