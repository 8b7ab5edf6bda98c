//! Pruning backups: which ones a retention keeps.
//!
//! In: the backups of one guest, newest first, and a retention. Out: a mark for each. The periods are counted as the real code does: the newest
//! backup of a period is kept, a period that an earlier rule already keeps a backup of is not counted again.
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Call, Reply, data};
use crate::fail::{Fallible, Refusal};
use crate::node::World;
use crate::schema::property::{self, Properties};
use crate::storage::content::{Row, is_protected};

/// A backup and what becomes of it.
#[derive(Debug, Clone)]
pub struct Marked {
    /// The backup.
    pub row: Row,
    /// `keep`, `remove`, `protected`, `renamed`.
    pub mark: &'static str,
}

/// What a retention does to the backups of a storage.
///
/// # Errors
/// When the storage is not there or active.
pub fn marks(world: &World, storage: &str, keep: &Properties, vmid: Option<u32>) -> Fallible<Vec<Marked>> {
    let mut groups: BTreeMap<Option<u32>, Vec<Row>> = BTreeMap::new();
    for row in super::content::rows(world, storage, Some("backup"), vmid)? {
        groups.entry(row.vmid).or_default().push(row);
    }
    let store = world.store();
    let mut found = Vec::new();
    for (owner, mut rows) in groups {
        rows.sort_by_key(|row| std::cmp::Reverse(row.ctime));
        let mut marks: Vec<Option<&'static str>> = rows
            .iter()
            .map(|row| {
                let protected = store.locate(&row.volid).is_ok_and(|at| is_protected(&store.place(&at)));
                if owner.is_none() {
                    Some("renamed")
                } else if protected {
                    Some("protected")
                } else {
                    None
                }
            })
            .collect();
        retain(&rows, &mut marks, keep);
        found.extend(
            rows.into_iter().zip(marks).map(|(row, mark)| Marked { row, mark: mark.unwrap_or("remove") }),
        );
    }
    found.sort_by_key(|marked| marked.row.ctime);
    Ok(found)
}

fn retain(rows: &[Row], marks: &mut [Option<&'static str>], keep: &Properties) {
    let count = |name: &str| keep.get(name).and_then(|text| text.parse::<usize>().ok()).unwrap_or_default();
    let all = keep.get("keep-all").is_some_and(|on| on == "1") || keep.is_empty();
    if all {
        marks.iter_mut().filter(|mark| mark.is_none()).for_each(|mark| *mark = Some("keep"));
        return;
    }
    // The period of a time, per rule; `keep-last` counts each backup on its own.
    let rules: [(&str, fn(i64, usize) -> String); 6] = [
        ("keep-last", |_, at| at.to_string()),
        ("keep-hourly", |time, _| crate::clock::stamp(time).chars().take(13).collect()),
        ("keep-daily", |time, _| crate::clock::stamp(time).chars().take(10).collect()),
        ("keep-weekly", |time, _| ((time / 86_400 + 3) / 7).to_string()),
        ("keep-monthly", |time, _| crate::clock::stamp(time).chars().take(7).collect()),
        ("keep-yearly", |time, _| crate::clock::stamp(time).chars().take(4).collect()),
    ];
    for (rule, period) in rules {
        let most = count(rule);
        if most == 0 {
            continue;
        }
        let kept: Vec<String> = rows
            .iter()
            .enumerate()
            .zip(marks.iter())
            .filter(|(_, mark)| **mark == Some("keep"))
            .map(|((at, row), _)| period(row.ctime, at))
            .collect();
        let mut chosen: Vec<String> = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            let Some(mark) = marks.get_mut(at).filter(|mark| mark.is_none()) else { continue };
            let name = period(row.ctime, at);
            if kept.contains(&name) {
                continue;
            }
            if chosen.contains(&name) {
                *mark = Some("remove");
            } else if chosen.len() < most {
                chosen.push(name);
                *mark = Some("keep");
            }
        }
    }
}

/// The retention of a call, or of the storage.
///
/// # Errors
/// When there is none.
pub fn retention(call: &Call<'_>, world: &World, storage: &str) -> Fallible<Properties> {
    let own = world.storage.get(storage)?.get("prune-backups").map(str::to_owned);
    let text = call.text("prune-backups").or(own).ok_or_else(|| {
        Refusal::die(format!("no prune-backups options configured for storage '{storage}'"))
    })?;
    parse(call.node, &text)
}

/// Reads a retention.
///
/// # Errors
/// When it does not parse.
pub fn parse(node: &crate::node::Node, text: &str) -> Fallible<Properties> {
    let format =
        node.table.format("prune-backups").ok_or_else(|| Refusal::die("unknown format 'prune-backups'"))?;
    property::parse(&node.table, format, text)
        .map_err(|fault| Refusal::die(fault.text("").trim_end().to_owned()))
}

fn vmid(call: &Call<'_>) -> Option<u32> {
    call.number("vmid").and_then(|id| u32::try_from(id).ok())
}

/// `GET …/prunebackups`
///
/// # Errors
/// When there is no retention.
pub fn preview(call: &Call<'_>) -> Reply {
    let storage = call.need("storage")?;
    let world = call.node.world();
    let keep = retention(call, &world, &storage)?;
    let found = marks(&world, &storage, &keep, vmid(call))?;
    data(found.iter().map(|marked| json!({"volid": marked.row.volid, "ctime": marked.row.ctime, "type": "lxc", "vmid": marked.row.vmid, "mark": marked.mark})).collect::<Vec<Value>>())
}

/// `DELETE …/prunebackups`
///
/// # Errors
/// When it is not allowed or there is no retention.
pub fn prune(call: &Call<'_>) -> Reply {
    let storage = call.need("storage")?;
    let vmid = vmid(call);
    let keep = {
        let world = call.node.world();
        let judge = world.judge(&call.who);
        let path = format!("/storage/{storage}");
        match vmid {
            Some(vmid) => {
                judge.need(&path, &["Datastore.AllocateSpace"])?;
                judge.need(&format!("/vms/{vmid}"), &["VM.Backup"])?;
            }
            None => judge.need(&path, &["Datastore.Allocate"])?,
        }
        retention(call, &world, &storage)?
    };
    let id = vmid.map_or_else(|| storage.clone(), |vmid| format!("{vmid}@{storage}"));
    call.spawn("prunebackups", &id, move |task| {
        let found = marks(&task.node.world(), &storage, &keep, vmid)?;
        for marked in found.iter().filter(|marked| marked.mark == "remove") {
            task.log(format!("removing backup '{}'", marked.row.volid));
            super::content::free_volume(&task.node.world(), &marked.row.volid)?;
        }
        Ok(())
    })
}
