//! What changed of one host.

use std::collections::BTreeMap;

use holdfast_protocol::operator::HostState;
use holdfast_protocol::report::StorageState;
use holdfast_protocol::state::{DesiredState, StateHost};

use crate::change::{Area, Change, Direction};
use crate::comparison::{HostChanges, Presence};
use crate::condition::conditions;
use crate::flat::{changes, fields, written};
use crate::guest::guests;

/// Compares one host; nothing, where it is as it was.
#[must_use]
pub fn compare_hosts(before: Option<&StateHost>, after: Option<&StateHost>) -> Option<HostChanges> {
    let of = |host: &StateHost, presence| HostChanges {
        id: host.id,
        host: host.name.clone(),
        presence,
        changes: Vec::new(),
        guests: Vec::new(),
    };
    match (before, after) {
        (None, None) => None,
        (None, Some(after)) => {
            let guests = guests(&[], &after.guests);
            Some(HostChanges { guests, ..of(after, Presence::New) })
        }
        (Some(before), None) => {
            let guests = guests(&before.guests, &[]);
            Some(HostChanges { guests, ..of(before, Presence::Gone) })
        }
        (Some(before), Some(after)) => {
            let changes = both(before, after);
            let guests = guests(&before.guests, &after.guests);
            HostChanges { changes, guests, ..of(after, Presence::Both) }.sorted()
        }
    }
}

fn both(before: &StateHost, after: &StateHost) -> Vec<Change> {
    let mut found = contact(before, after);
    found.extend(desired(before.desired.as_ref(), after.desired.as_ref()));
    let different = |area| (Direction::Different, area);
    let some = |value: &dyn ToString| Some(value.to_string());
    found.extend(Change::of(
        different(Area::LastApplied),
        "generation held",
        some(&before.held),
        some(&after.held),
    ));
    let refused = |host: &StateHost| host.refused.as_ref().map(written);
    let direction = if after.refused.is_some() { Direction::Worse } else { Direction::Better };
    let what = "document refused";
    found.extend(Change::of((direction, Area::LastApplied), what, refused(before), refused(after)));
    let versions = |host: &StateHost| fields(&host.versions, &[]);
    found.extend(changes(Area::Version, &versions(before), &versions(after)));
    found.extend(storages(before, after));
    found.extend(targets(before, after));
    found.extend(conditions(&before.conditions, &after.conditions));
    let list = |lines: &[String]| (!lines.is_empty()).then(|| lines.join("; "));
    let (old, new) = (list(&before.waiting), list(&after.waiting));
    found.extend(Change::of(different(Area::LastApplied), "waits for a signature", old, new));
    let (old, new) = (list(&before.labels), list(&after.labels));
    found.extend(Change::of(different(Area::Desired), "labels", old, new));
    found
}

fn contact(before: &StateHost, after: &StateHost) -> Vec<Change> {
    let direction = Direction::of_rank(state_rank(before.state), state_rank(after.state));
    let words = |host: &StateHost| Some(written(&host.state));
    let state = Change::of((direction, Area::Contact), "state", words(before), words(after));
    let until = |host: &StateHost| host.maintenance_until.map(|until| until.to_string());
    let different = (Direction::Different, Area::Contact);
    let maintenance = Change::of(different, "maintenance until", until(before), until(after));
    state.into_iter().chain(maintenance).collect()
}

const fn state_rank(state: HostState) -> u8 {
    match state {
        HostState::Online => 0,
        HostState::New => 1,
        HostState::Degraded => 2,
        HostState::Late => 3,
        HostState::NeverSeen | HostState::Offline => 4,
        HostState::Frozen | HostState::Revoked => 5,
    }
}

fn desired(before: Option<&DesiredState>, after: Option<&DesiredState>) -> Vec<Change> {
    let words = |state: &DesiredState| {
        let by = state.by.as_ref().map(|by| format!(" by {by}"));
        let reason = state.reason.as_ref().map(|reason| format!(": {}", reason.as_str()));
        format!("{}{}{}", state.generation, by.unwrap_or_default(), reason.unwrap_or_default())
    };
    let different = (Direction::Different, Area::Desired);
    let generation = Change::of(different, "document", before.map(words), after.map(words));
    let settings = |state: Option<&DesiredState>| {
        state.and_then(|state| state.settings.as_ref()).map(|settings| fields(settings, &[]))
    };
    let (old, new) = (settings(before).unwrap_or_default(), settings(after).unwrap_or_default());
    generation.into_iter().chain(changes(Area::Desired, &old, &new)).collect()
}

fn storages(before: &StateHost, after: &StateHost) -> Vec<Change> {
    let states = |host: &StateHost| -> BTreeMap<String, StorageState> {
        host.storages.iter().map(|storage| (storage.name.clone(), storage.state)).collect()
    };
    let rank = |state: Option<&StorageState>| match state {
        Some(StorageState::Active) => 0,
        Some(StorageState::Inactive | StorageState::Unknown) => 2,
        None => 1,
    };
    by_name(&states(before), &states(after), "storage", rank)
}

fn targets(before: &StateHost, after: &StateHost) -> Vec<Change> {
    use holdfast_protocol::storage::report::TargetStatus;
    let states = |host: &StateHost| -> BTreeMap<String, TargetStatus> {
        host.targets.iter().map(|target| (target.name.to_string(), target.status)).collect()
    };
    let rank = |status: Option<&TargetStatus>| match status {
        Some(status) if status.is_gone() => 2,
        Some(_) => 0,
        None => 1,
    };
    by_name(&states(before), &states(after), "target", rank)
}

fn by_name<T: serde::Serialize>(
    before: &BTreeMap<String, T>,
    after: &BTreeMap<String, T>,
    kind: &str,
    rank: impl Fn(Option<&T>) -> u8,
) -> Vec<Change> {
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let change = |name: &String| {
        let (old, new) = (before.get(name), after.get(name));
        let direction = Direction::of_rank(rank(old), rank(new));
        let what = format!("{kind} {name}");
        Change::of((direction, Area::Current), what, old.map(written), new.map(written))
    };
    names.into_iter().filter_map(change).collect()
}
