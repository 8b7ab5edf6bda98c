//! Pruning backups: which ones a retention keeps.
//!
//! In: the backups of one guest, newest first, and a retention. Out: a mark for each. The periods are counted as the real code does: the newest
//! backup of a period is kept, a period that an earlier rule already keeps a backup of is not counted again.
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::prune_server::{self, Effect};
use super::{Call, Reply, data};
use crate::fail::{Fallible, Refusal};
use crate::node::World;
use crate::schema::property::{self, Properties};
use crate::storage::content::{Row, is_protected};
use crate::storage::server_names;

/// Names the period that contains a time.
type Period = fn(i64) -> String;

/// A backup and what becomes of it.
#[derive(Debug, Clone)]
pub struct Marked {
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

/// Whether a retention removes nothing: it sets `keep-all`, or it keeps nothing, which the real code treats as a mistake.
#[must_use]
pub fn keeps_all(keep: &Properties) -> bool {
    let some = |text: &String| text.parse::<u64>().is_ok_and(|count| count > 0);
    keep.get("keep-all").is_some_and(|on| on == "1") || !keep.values().any(some)
}

fn retain(rows: &[Row], marks: &mut [Option<&'static str>], keep: &Properties) {
    let count = |name: &str| keep.get(name).and_then(|text| text.parse::<usize>().ok()).unwrap_or_default();
    if keeps_all(keep) {
        marks.iter_mut().filter(|mark| mark.is_none()).for_each(|mark| *mark = Some("keep"));
        return;
    }
    // The period of a time, per rule; `keep-last` counts by the second, so two of one second are one.
    let rules: [(&str, Period); 6] = [
        ("keep-last", |time| time.to_string()),
        ("keep-hourly", |time| crate::clock::stamp(time).chars().take(13).collect()),
        ("keep-daily", |time| crate::clock::stamp(time).chars().take(10).collect()),
        ("keep-weekly", |time| ((time / 86_400 + 3) / 7).to_string()),
        ("keep-monthly", |time| crate::clock::stamp(time).chars().take(7).collect()),
        ("keep-yearly", |time| crate::clock::stamp(time).chars().take(4).collect()),
    ];
    for (rule, period) in rules {
        let most = count(rule);
        if most == 0 {
            continue;
        }
        let kept: Vec<String> = rows
            .iter()
            .zip(marks.iter())
            .filter(|(_, mark)| **mark == Some("keep"))
            .map(|(row, _)| period(row.ctime))
            .collect();
        let mut chosen: Vec<String> = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            let Some(mark) = marks.get_mut(at).filter(|mark| mark.is_none()) else { continue };
            let name = period(row.ctime);
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
    let (storage, kind) = (call.need("storage")?, call.text("type"));
    let world = call.node.world();
    let keep = retention(call, &world, &storage)?;
    let found = if server_names::is_one(world.storage.get(&storage)?) {
        let ask =
            prune_server::Ask { storage: &storage, keep: &keep, vmid: vmid(call), kind: kind.as_deref() };
        prune_server::marks(&world, &ask, Effect::Reported, |_| {})?
    } else {
        marks(&world, &storage, &keep, vmid(call))?
    };
    data(found.iter().map(|marked| json!({"volid": marked.row.volid, "ctime": marked.row.ctime, "type": "lxc", "vmid": marked.row.vmid, "mark": marked.mark})).collect::<Vec<Value>>())
}

/// `DELETE …/prunebackups`
///
/// # Errors
/// When it is not allowed or there is no retention.
pub fn prune(call: &Call<'_>) -> Reply {
    let (storage, kind) = (call.need("storage")?, call.text("type"));
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
        let on_server = server_names::is_one(task.node.world().storage.get(&storage)?);
        if on_server {
            let ask = prune_server::Ask { storage: &storage, keep: &keep, vmid, kind: kind.as_deref() };
            prune_server::marks(&task.node.world(), &ask, Effect::Done, |line| task.log(line))?;
            return Ok(());
        }
        let found = marks(&task.node.world(), &storage, &keep, vmid)?;
        for marked in found.iter().filter(|marked| marked.mark == "remove") {
            task.log(format!("removing backup '{}'", marked.row.volid));
            super::content::free_volume(&task.node.world(), &marked.row.volid)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of those that go, of backups made at the given times.
    fn gone(keep: &[(&str, &str)], times: &[i64]) -> Vec<i64> {
        let mut rows: Vec<Row> = times
            .iter()
            .map(|time| Row {
                volid: time.to_string(),
                content: "backup".to_owned(),
                format: "tar".to_owned(),
                size: 1,
                used: None,
                vmid: Some(100),
                ctime: *time,
            })
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.ctime));
        let keep = keep.iter().map(|(key, count)| ((*key).to_owned(), (*count).to_owned())).collect();
        let mut marks = vec![None; rows.len()];
        retain(&rows, &mut marks, &keep);
        let goes = |(row, mark): (&Row, &Option<&'static str>)| {
            (mark.unwrap_or("remove") == "remove").then_some(row.ctime)
        };
        let mut gone: Vec<i64> = rows.iter().zip(&marks).filter_map(goes).collect();
        gone.sort_unstable();
        gone
    }

    #[test]
    fn the_last_ones_stay_and_a_retention_that_keeps_nothing_keeps_all() {
        let times = [10, 20, 30, 40];
        assert_eq!(gone(&[("keep-last", "2")], &times), [10, 20]);
        assert!(gone(&[("keep-all", "1")], &times).is_empty());
        assert!(gone(&[("keep-last", "0")], &times).is_empty());
        assert!(gone(&[], &times).is_empty());
    }

    #[test]
    fn each_rule_covers_periods_that_no_earlier_rule_covered() {
        const HALF: i64 = 43_200;
        // Two a day for four days.
        let times: Vec<i64> = (40_000..40_008).map(|n| n * HALF).collect();
        let nth = |all: &[usize]| -> Vec<i64> { all.iter().filter_map(|n| times.get(*n).copied()).collect() };
        assert_eq!(gone(&[("keep-daily", "2")], &times), nth(&[0, 1, 2, 3, 4, 6]));
        // The last one covers its own day, so the two daily ones are of the days before.
        assert_eq!(gone(&[("keep-last", "1"), ("keep-daily", "2")], &times), nth(&[0, 1, 2, 4, 6]));
    }
}
