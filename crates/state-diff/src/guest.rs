//! What changed of one guest.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_protocol::desired::RunState;
use holdfast_protocol::desired::field::GuestField;
use holdfast_protocol::report::{GuestStatus, Health, Running};
use holdfast_protocol::state::{GuestCurrent, StateField, StateGuest};

use crate::change::{Area, Change, Direction};
use crate::comparison::{GuestChanges, Presence};
use crate::condition::conditions;
use crate::flat::{changes, fields, word, written};
use crate::protection::protection;

/// Fields that have a direction, and are compared by themselves.
const WITH_DIRECTION: &[&str] = &["status", "run", "health", "controller", "image"];

/// Compares the guests of a host: ours by uid, the others by name and VMID.
pub(crate) fn guests(before: &[StateGuest], after: &[StateGuest]) -> Vec<GuestChanges> {
    let mut old: BTreeMap<String, &StateGuest> = before.iter().map(|guest| (key(guest), guest)).collect();
    let mut found: Vec<GuestChanges> = after
        .iter()
        .map(|guest| match old.remove(&key(guest)) {
            Some(earlier) => named(guest, Presence::Both, both(earlier, guest)),
            None => named(guest, Presence::New, Vec::new()),
        })
        .collect();
    found.extend(old.into_values().map(|guest| named(guest, Presence::Gone, Vec::new())));
    found
}

fn key(guest: &StateGuest) -> String {
    let vmid = guest.current.as_ref().and_then(|current| current.vmid);
    guest.uid.map_or_else(|| format!("{} {vmid:?}", guest.name), |uid| uid.to_string())
}

fn named(guest: &StateGuest, presence: Presence, changes: Vec<Change>) -> GuestChanges {
    let (uid, name, customer) = (guest.uid, guest.name.clone(), guest.customer.clone());
    GuestChanges { uid, name, customer, presence, changes }
}

fn both(before: &StateGuest, after: &StateGuest) -> Vec<Change> {
    let desired = |guest: &StateGuest| {
        guest.desired.as_ref().map(|desired| fields(desired, &["uid"])).unwrap_or_default()
    };
    let mut found = changes(Area::Desired, &desired(before), &desired(after));
    found.extend(current(before, after));
    found.extend(last_applied(&before.last_applied, &after.last_applied));
    found.extend(protection(before, after));
    found.extend(conditions(&before.conditions, &after.conditions));
    found.extend(problems(before, after));
    let customer = |guest: &StateGuest| guest.customer.as_ref().map(ToString::to_string);
    let area = (Direction::Different, Area::Current);
    found.extend(Change::of(area, "customer", customer(before), customer(after)));
    found
}

fn current(before: &StateGuest, after: &StateGuest) -> Vec<Change> {
    let (Some(old), Some(new)) = (&before.current, &after.current) else {
        let said = |guest: &StateGuest| guest.current.as_ref().map(|_| "in its host's report".to_owned());
        let direction = if after.current.is_some() { Direction::Better } else { Direction::Worse };
        let change = Change::of((direction, Area::Current), "reported", said(before), said(after));
        return change.into_iter().collect();
    };
    let mut found = changes(Area::Current, &fields(old, WITH_DIRECTION), &fields(new, WITH_DIRECTION));
    let status = Direction::of_rank(status_rank(old.status), status_rank(new.status));
    found.extend(one((status, Area::Current), "status", &Some(old.status), &Some(new.status)));
    let run = Direction::of_rank(run_rank(old, before), run_rank(new, after));
    found.extend(one((run, Area::Current), "run", &Some(old.run), &Some(new.run)));
    let health = Direction::of_rank(health_rank(old.health), health_rank(new.health));
    found.extend(one((health, Area::Current), "controller health", &old.health, &new.health));
    let version = (Direction::Different, Area::Version);
    found.extend(one(version, "controller", &old.controller, &new.controller));
    found.extend(one(version, "image", &old.image, &new.image));
    found
}

fn one<T: serde::Serialize>(
    of: (Direction, Area),
    what: &str,
    before: &Option<T>,
    after: &Option<T>,
) -> Option<Change> {
    Change::of(of, what, before.as_ref().map(written), after.as_ref().map(written))
}

const fn status_rank(status: GuestStatus) -> u8 {
    match status {
        GuestStatus::Managed => 0,
        GuestStatus::Absent => 1,
        GuestStatus::Unmanaged | GuestStatus::RestoredCopy | GuestStatus::Foreign => 2,
        GuestStatus::Missing | GuestStatus::Broken | GuestStatus::Parked => 3,
    }
}

/// Whether it runs as it should; without a document no state is better than another.
fn run_rank(current: &GuestCurrent, guest: &StateGuest) -> u8 {
    match (guest.desired.as_ref().map(|desired| desired.run), current.run) {
        (_, Running::Unknown) => 2,
        (Some(RunState::Running), Running::Stopped) | (Some(RunState::Stopped), Running::Running) => 3,
        (Some(RunState::Running) | None, Running::Running)
        | (Some(RunState::Stopped) | None, Running::Stopped) => 0,
    }
}

const fn health_rank(health: Option<Health>) -> u8 {
    match health {
        Some(Health::Well) => 0,
        None | Some(Health::Starting) => 1,
        Some(Health::Unwell) => 2,
    }
}

/// A field of which document, Proxmox and what was carried out are not one.
fn last_applied(before: &[StateField], after: &[StateField]) -> Vec<Change> {
    let by_field = |fields: &[StateField]| -> BTreeMap<GuestField, String> {
        fields.iter().map(|field| (field.field, field_words(field))).collect()
    };
    let (mut old, new) = (by_field(before), by_field(after));
    let mut found = Vec::new();
    for (field, words) in new {
        let name = written(&field);
        let earlier = old.remove(&field);
        let direction = if earlier.is_some() { Direction::Different } else { Direction::Worse };
        let earlier = earlier.or_else(|| Some("settled".to_owned()));
        found.extend(Change::of((direction, Area::LastApplied), name, earlier, Some(words)));
    }
    found.extend(old.into_iter().filter_map(|(field, words)| {
        let settled = Some("settled".to_owned());
        Change::of((Direction::Better, Area::LastApplied), written(&field), Some(words), settled)
    }));
    found
}

fn field_words(field: &StateField) -> String {
    let part = |name: &str, value: Option<&String>| value.map(|value| format!("{name} {value}"));
    let parts = [
        part("document", field.desired.as_ref()),
        part("Proxmox", field.current.as_ref()),
        part("carried out", field.applied.as_ref().map(|applied| &applied.value)),
    ];
    let mut text = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    if !field.in_force.is_now() {
        text.push_str(", from its next start");
    }
    word(&text)
}

fn problems(before: &StateGuest, after: &StateGuest) -> Vec<Change> {
    let codes = |guest: &StateGuest| -> BTreeSet<String> {
        guest.problems.iter().map(|problem| written(&problem.code)).collect()
    };
    let says = |guest: &StateGuest, code: &str| {
        let problem = guest.problems.iter().find(|problem| written(&problem.code) == code);
        problem.map(|problem| word(&problem.observed)).unwrap_or_default()
    };
    let (old, new) = (codes(before), codes(after));
    let began = new.difference(&old).map(|code| Change::began(Area::Condition, code, says(after, code)));
    let ended = old.difference(&new).map(|code| Change::ended(Area::Condition, code, says(before, code)));
    began.chain(ended).collect()
}
