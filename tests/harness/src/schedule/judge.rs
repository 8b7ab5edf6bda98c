//! The judge of a finished schedule.
//!
//! In: an [`Ending`]. Out: violations. I7 and I11 are checked between the lives.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use agentd::model::view::HostSnapshot;
use holdfast_protocol::desired::{DesiredGuest, RunState};
use holdfast_protocol::report::{GuestReport, GuestStatus, Running};
use pve_sim::guard::Offence;

use super::witness::Witness;
use crate::db_reader::Book;
use crate::invariant::{Violation, one_task_at_a_time};
use crate::log::TaskSpan;
use crate::scene::Scene;

/// A request that was on its way when a person changed the guest may still arrive.
const ON_ITS_WAY: Duration = Duration::from_millis(200);

/// The end of a schedule.
pub(super) struct Ending<'a> {
    pub scene: &'a Scene,
    pub view: &'a HostSnapshot,
    pub witness: &'a Witness,
    pub tasks: &'a [(TaskSpan, String)],
    pub book: &'a Book,
    pub intended: &'a [DesiredGuest],
    pub gentle: bool,
    pub forgetful: bool,
    pub offences: &'a [Offence],
}

type Violations = Vec<String>;

/// One check of an ending.
type Look = fn(&Ending<'_>) -> Violations;

const ALL: &[(&str, Look)] = &[
    ("I1", nothing_of_a_customer_is_gone),
    ("I2", one_guest_for_each_identity),
    ("I3", nothing_half_built),
    ("I6", |ending| one_task_at_a_time(ending.tasks)),
    ("I12", every_goal_is_met_or_answered),
    ("I15", strangers_are_untouched),
    ("wire", nothing_forbidden_was_sent),
];

/// Holds the ending to all of it.
pub(super) fn judge(ending: &Ending<'_>) -> Vec<Violation> {
    let mut all = Vec::new();
    for (name, look) in ALL {
        all.extend(look(ending).into_iter().map(|what| Violation { name, what }));
    }
    all
}

fn nothing_of_a_customer_is_gone(ending: &Ending<'_>) -> Violations {
    let now: BTreeSet<_> = ending.scene.holdings().collect();
    ending
        .witness
        .kept
        .iter()
        .filter(|kept| !now.contains(kept))
        .map(|kept| format!("{kept} is gone"))
        .collect()
}

fn strangers_are_untouched(ending: &Ending<'_>) -> Violations {
    let mut found = Violations::new();
    for (vmid, stranger) in &ending.witness.strangers {
        if ending.scene.raw.get(vmid) != Some(&stranger.config) {
            found.push(format!(
                "the configuration of {vmid} was changed from {:?} to {:?}",
                stranger.config,
                ending.scene.raw.get(vmid)
            ));
        }
        for (volume, hash) in &stranger.volumes {
            if ending.scene.volumes.get(volume).is_some_and(|now| now != hash) {
                found.push(format!("volume {volume} was changed"));
            }
        }
        let worked = |task: &TaskSpan, status: &str| {
            task.is_ours()
                && task.id == vmid.to_string()
                && task.from > stranger.since + ON_ITS_WAY
                && (status == "OK" || status.starts_with("WARNINGS"))
        };
        for (task, status) in ending.tasks.iter().filter(|(task, status)| worked(task, status)) {
            found.push(format!("{} of ours worked on stranger {vmid}: {status}", task.kind));
        }
    }
    found
}

/// I2: two guests with one identity would be two restores of one request. And a number serves one guest for ever.
fn one_guest_for_each_identity(ending: &Ending<'_>) -> Violations {
    let mut found = Violations::new();
    let mut marks: BTreeMap<&str, u32> = BTreeMap::new();
    for (vmid, config) in &ending.scene.guests {
        if ending.witness.strangers.contains_key(vmid) {
            continue;
        }
        let Some((_, rest)) = config.split_once("holdfast guest ") else { continue };
        let uid = rest.get(..36).unwrap_or_default();
        if let Some(other) = marks.insert(uid, *vmid) {
            found.push(format!("guests {other} and {vmid} are both {uid}"));
        }
    }
    let mut numbers: BTreeMap<u32, &str> = BTreeMap::new();
    for (uid, vmid) in &ending.book.numbers {
        if let Some(other) = numbers.insert(*vmid, uid).filter(|other| other != uid) {
            found.push(format!("number {vmid} was given to {other} and to {uid}"));
        }
    }
    found
}

/// I3: everything in our range is a stranger's, or made and whole, or named by an operation that was parked or is a
/// person's now.
fn nothing_half_built(ending: &Ending<'_>) -> Violations {
    let mut found = Violations::new();
    if ending.forgetful {
        return found;
    }
    for vmid in 300..=309 {
        if ending.witness.strangers.contains_key(&vmid) || ending.book.parked.contains(&vmid) {
            continue;
        }
        let made = ending.book.made.contains(&vmid);
        let left = ending.scene.volumes.keys().any(|name| Scene::owner(name) == Some(vmid));
        match ending.scene.guests.get(&vmid) {
            Some(_) if !made => found.push(format!("guest {vmid} was left half-built, and nobody says so")),
            Some(config) => found.extend(flaws(ending, vmid, config)),
            None if left && !ending.witness.disturbed.contains(&vmid) => {
                found.push(format!("guest {vmid} is gone and its volumes are not"));
            }
            None => {}
        }
    }
    found
}

/// What a made guest must show, unless a person changed it.
fn flaws(ending: &Ending<'_>, vmid: u32, config: &str) -> Violations {
    let mut found = Violations::new();
    // A running guest keeps its environment until it stops; a pending removal is all that can be required.
    let goes = config.lines().any(|line| line.starts_with("delete: ") && line.contains("env"));
    if config.contains("HOLDFAST_BOOTSTRAP") && !goes {
        found.push(format!("guest {vmid} still carries its bootstrap token"));
    }
    let locked = config.contains("\nlock: ");
    if !config.contains("protection: 1") && !ending.witness.unprotected.contains(&vmid) && !locked {
        found.push(format!("guest {vmid} is not protected"));
    }
    found
}

/// I12: every guest is as the document says, or the report says why not. When only the connection failed, it is as the
/// document says.
fn every_goal_is_met_or_answered(ending: &Ending<'_>) -> Violations {
    let mut found: Violations =
        ending.book.open.iter().map(|id| format!("operation {id} has not ended")).collect();
    for goal in ending.intended {
        let Some(report) = ending.view.guests.iter().find(|report| report.uid == Some(goal.uid)) else {
            found.push(format!("nobody says anything about guest {}", goal.name));
            continue;
        };
        let met = is_met(goal, report);
        let waits = ending.view.waiting.iter().any(|waiting| waiting.payload.contains(&goal.uid.to_string()));
        let reported = !report.conditions.is_empty() || waits || report.status != GuestStatus::Managed;
        if !met && !reported {
            found.push(format!("guest {} is not as asked for, and nobody says why: {report:?}", goal.name));
        }
        if !met && ending.gentle && !waits && !ending.forgetful {
            found.push(format!(
                "guest {} is not as asked for although only the wire went wrong: {report:?}",
                goal.name
            ));
        }
    }
    found
}

fn is_met(goal: &DesiredGuest, report: &GuestReport) -> bool {
    let run = match goal.run {
        RunState::Running => Running::Running,
        RunState::Stopped => Running::Stopped,
    };
    report.status == GuestStatus::Managed
        && report.run == run
        && report.size.is_some_and(|size| size.memory_mib == goal.size.memory_mib)
}

fn nothing_forbidden_was_sent(ending: &Ending<'_>) -> Violations {
    ending.offences.iter().map(ToString::to_string).collect()
}
