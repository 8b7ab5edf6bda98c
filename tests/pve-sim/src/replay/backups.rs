//! Preconditions about backups.
//!
//! In: one recorded exchange. Out: backups that were made on another day, protections that were removed by hand.
use std::collections::BTreeSet;

use serde_json::Value;

use super::names::Names;
use super::precondition::Premises;
use super::recording::{Call, Task};
use crate::storage::content::{copy_of, is_protected};

impl Premises<'_> {
    /// A backup that a retention removes was there, also when this recording did not make it.
    pub(super) fn pruned(&mut self, number: usize, call: &Call, task: Option<&Task>, names: &Names) {
        let named = |line: &String| {
            let rest = line.split("removing backup '").nth(1)?;
            rest.split('\'').next().filter(|volid| volid.contains(":backup/")).map(str::to_owned)
        };
        let removed: Vec<String> =
            task.into_iter().flat_map(|task| task.log.iter().filter_map(named)).collect();
        for volid in &removed {
            self.lift(number, &names.ours(volid));
            if self.is_made_by_backup(volid, number) || self.node.world().store().exists(volid) {
                continue;
            }
            let made = {
                let world = self.node.world();
                crate::state::volumes::provide(&world.store(), None, volid, 0).is_ok()
            };
            self.taken.push(format!("before line {}: archive {volid} made by hand ({made})", number + 1));
        }
        let last = call
            .param("prune-backups")
            .and_then(|text| text.strip_prefix("keep-last=")?.parse::<usize>().ok());
        if let (Some(last), Some(first)) = (last, removed.first()) {
            let gone: BTreeSet<String> = removed.iter().map(|volid| names.ours(volid)).collect();
            self.enough_kept(
                number,
                last - usize::from(call.path.ends_with("/vzdump")).min(last),
                first,
                &gone,
            );
        }
    }

    /// A retention that removes something keeps as many as it says. When fewer unprotected ones are left, some lost their protection.
    fn enough_kept(&mut self, number: usize, wanted: usize, like: &str, gone: &BTreeSet<String>) {
        let (Some((storage, _)), vmid) = (
            like.split_once(':'),
            crate::storage::volume::backup_owner(like.rsplit('/').next().unwrap_or_default()),
        ) else {
            return;
        };
        let (free, held): (Vec<String>, Vec<String>) = {
            let world = self.node.world();
            let store = world.store();
            let rows = crate::call::content::rows(&world, storage, Some("backup"), vmid).unwrap_or_default();
            let left = rows.into_iter().map(|row| row.volid).filter(|volid| !gone.contains(volid));
            left.partition(|volid| store.locate(volid).is_ok_and(|at| !is_protected(&store.place(&at))))
        };
        let short = wanted.saturating_sub(free.len());
        held.iter().rev().take(short).for_each(|volid| self.lift(number, volid));
    }

    /// A backup that can be deleted was not protected any more.
    pub(super) fn unprotected(&mut self, number: usize, call: &Call, task: Option<&Task>, names: &Names) {
        let deleted = call.method == "DELETE" && call.answer.status == 200;
        let fine = task.is_some_and(|task| task.last.get("exitstatus").and_then(Value::as_str) == Some("OK"));
        let Some(asked) = call.path.split("/content/").nth(1).filter(|_| deleted && fine) else { return };
        let volid = names.ours(&percent_encoding::percent_decode_str(asked).decode_utf8_lossy());
        self.lift(number, &volid);
    }

    fn lift(&mut self, number: usize, volid: &str) {
        let mark = {
            let world = self.node.world();
            let store = world.store();
            store
                .locate(volid)
                .ok()
                .map(|at| copy_of(&store.place(&at), "protected"))
                .filter(|mark| mark.exists())
        };
        if let Some(mark) = mark {
            let lifted = std::fs::remove_file(mark).is_ok();
            self.taken
                .push(format!("before line {}: {volid} is not protected any more ({lifted})", number + 1));
        }
    }

    /// A recorded archive that we do not have was made by hand, or on another day.
    pub(super) fn archives(&mut self, number: usize, call: &Call, evidence: &str) {
        let asked = ["ostemplate", "volume", "archive"]
            .iter()
            .filter_map(|name| call.param(name))
            .find(|volid| volid.contains(":backup/vzdump-lxc-"));
        let from_path = call
            .path
            .split("/content/")
            .nth(1)
            .map(|rest| percent_encoding::percent_decode_str(rest).decode_utf8_lossy().into_owned());
        let from_query = call
            .path
            .split("volume=")
            .nth(1)
            .map(|rest| percent_encoding::percent_decode_str(rest).decode_utf8_lossy().into_owned());
        let volid =
            asked.or_else(|| from_path.filter(|volid| volid.contains(":backup/vzdump-lxc-"))).or(from_query);
        let Some(volid) = volid else { return };
        let missing = evidence.contains(&format!("volume '{volid}' does not exist"))
            || evidence.contains("disk image '");
        let gone = missing || call.answer.status == 403 || self.is_made_by_backup(&volid, number);
        let world = self.node.world();
        let store = world.store();
        if gone || store.exists(&volid) || store.locate(&volid).is_err() || volid.starts_with("offline:") {
            return;
        }
        let config = self.embedded(&volid).or_else(|| self.restored(&volid)).or_else(|| self.named(&volid));
        let made = crate::state::volumes::provide(&store, None, &volid, 0);
        let place = store.locate(&volid).map(|at| store.place(&at));
        if let (Ok(place), Some(config)) = (&place, config) {
            let _ = crate::state::volumes::write_backup(place, &config);
        }
        let cut = self.calls().any(|(_, call, task)| {
            ["ostemplate", "archive"].iter().any(|name| call.param(name).as_deref() == Some(volid.as_str()))
                && call.evidence(task).contains("premature end")
        });
        if cut && let (Ok(place), Some(bytes)) = (&place, crate::state::volumes::genuine()) {
            let _ = std::fs::write(place, bytes.get(..100_000).unwrap_or_default());
        }
        drop(world);
        self.taken.push(format!(
            "before line {}: archive {volid} made by hand ({})",
            number + 1,
            if made.is_ok() { "done" } else { "failed" }
        ));
    }

    /// The configuration inside an archive, when the recording shows it.
    pub(super) fn embedded(&self, volid: &str) -> Option<String> {
        self.calls().find_map(|(_, call, _)| {
            let asked = call.path.contains("extractconfig")
                && (call.param("volume").as_deref() == Some(volid) || call.path.contains(volid));
            asked.then(|| call.answer.body.as_ref()?.get("data")?.as_str().map(str::to_owned)).flatten()
        })
    }

    /// The configuration of a guest restored from an archive, as shown next.
    pub(super) fn restored(&self, volid: &str) -> Option<String> {
        let restores = self.calls().filter(|(_, call, _)| {
            call.path.ends_with("/lxc")
                && call.param("ostemplate").as_deref() == Some(volid)
                && call.answer.status == 200
        });
        let mut restores: Vec<_> = restores.collect();
        // The parameters of the restore call itself prove nothing about the archive.
        let reported = |call: &Call| {
            let plain = ["vmid", "ostemplate", "restore", "storage", "pool", "force"];
            call.params.keys().filter(|key| !plain.contains(&key.as_str())).count()
        };
        restores.sort_by_key(|(_, call, _)| reported(call));
        let shown = |(at, call, _): &(usize, &Call, _)| {
            let path = format!("/lxc/{}/config", call.param("vmid")?);
            let (_, shown, _) =
                self.calls().find(|(next, call, _)| *next > *at && call.path.ends_with(&path))?;
            let fine = shown.method == "GET" && shown.answer.status == 200;
            let body = shown.answer.body.as_ref().filter(|_| fine)?;
            Some(self.config_of(body, &BTreeSet::new()))
        };
        let looked_at = |(at, call, _): &(usize, &Call, _)| {
            let vmid: u32 = call.param("vmid")?.parse().ok()?;
            let path = format!("/lxc/{vmid}/status/current");
            let (next, ..) = self.calls().find(|(next, call, _)| next > at && call.path.ends_with(&path))?;
            Some(self.seen_running(vmid, *at, next + 1))
        };
        restores.iter().find_map(shown).or_else(|| restores.iter().find_map(looked_at))
    }

    /// A small configuration for the guest that an archive is named after, with a network when a restore needed the right to one.
    pub(super) fn named(&self, volid: &str) -> Option<String> {
        let vmid = crate::storage::volume::backup_owner(volid.split(":backup/").nth(1)?)?;
        if vmid == 140 || vmid == 155 || vmid == 159 || vmid == 200 {
            return None;
        }
        let sized = self.calls().filter(|(_, call, _)| call.param("ostemplate").as_deref() == Some(volid));
        let bytes = sized.filter_map(|(_, _, task)| task).flat_map(|task| &task.log).find_map(|line| {
            line.starts_with("Formatting ")
                .then(|| line.split(" size=").nth(1)?.split(' ').next()?.parse::<u64>().ok())?
        });
        let size = bytes.map_or("size=1G".to_owned(), |bytes| format!("size={}M", bytes >> 20));
        Some(self.small(vmid).replacen("size=1G", &size, 1))
    }
}
