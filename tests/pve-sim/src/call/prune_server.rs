//! Pruning on a backup server, group by group.
//!
//! In: a retention, and a guest or all of them. Out: a mark for each snapshot; the client removes those marked for removal. An error of
//! one group's client is reported, the next group is still tried, and the whole call fails in the end.
use std::collections::BTreeSet;

use super::prune::{self, Marked};
use crate::die;
use crate::fail::{Fallible, Refusal};
use crate::node::World;
use crate::schema::property::Properties;
use crate::storage::backup_client::{Act, failed};

/// The prune request.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    pub storage: &'a str,
    pub keep: &'a Properties,
    pub vmid: Option<u32>,
    /// `lxc` or `qemu`; together with a guest's number it avoids reading the whole list.
    pub kind: Option<&'a str>,
}

/// Whether it is done or only reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    Reported,
    Done,
}

/// Runs the client for each group.
///
/// # Errors
/// When the list cannot be had, or a group's client failed.
pub fn marks(
    world: &World,
    ask: &Ask<'_>,
    effect: Effect,
    mut report: impl FnMut(&str),
) -> Fallible<Vec<Marked>> {
    world.store().activate(ask.storage)?;
    let mut found = Vec::new();
    let mut complained = false;
    for vmid in groups(world, ask)? {
        if effect == Effect::Done {
            report(&format!("running 'proxmox-backup-client prune' for 'ct/{vmid}'"));
        }
        match group(world, ask, vmid, effect) {
            Ok(marked) => found.extend(marked),
            Err(refusal) => {
                report(&format!("prune 'ct/{vmid}': {}", refusal.message));
                report("");
                report("");
                complained = true;
            }
        }
    }
    if complained {
        die!("error pruning backups - check log");
    }
    Ok(found)
}

fn groups(world: &World, ask: &Ask<'_>) -> Fallible<BTreeSet<u32>> {
    if ask.kind == Some("qemu") {
        return Ok(BTreeSet::new());
    }
    if let (Some(vmid), Some(_)) = (ask.vmid, ask.kind) {
        return Ok(BTreeSet::from([vmid]));
    }
    let definition = world.storage.get(ask.storage)?;
    let rows = world.store().snapshots_of(ask.storage, definition, ask.vmid).map_err(|refusal| {
        Refusal::die(format!("failed to get list of all backups to prune - {}", refusal.message))
    })?;
    Ok(rows.into_iter().filter_map(|row| row.vmid).collect())
}

fn group(world: &World, ask: &Ask<'_>, vmid: u32, effect: Effect) -> Fallible<Vec<Marked>> {
    let (store, definition) = (world.store(), world.storage.get(ask.storage)?);
    let allowed = store.enter(ask.storage, definition).and_then(|()| store.may(definition, Act::Remove));
    allowed.map_err(|complaint| failed(&complaint))?;
    let marked = prune::marks(world, ask.storage, ask.keep, Some(vmid))?;
    if marked.is_empty() {
        return Err(failed(&["Error: ENOENT: No such file or directory".to_owned()]));
    }
    for gone in marked.iter().filter(|marked| effect == Effect::Done && marked.mark == "remove") {
        store.forget(&store.locate(&gone.row.volid)?)?;
    }
    Ok(marked)
}
