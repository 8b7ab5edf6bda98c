//! Fields of guests side by side: document, Proxmox, last carried out.
//!
//! What comes in: the same as the plan. What goes out: a row for each field, and conditions for those that a running
//! guest has from its next start alone. The start time is computed from the uptime that Proxmox reports.

use std::collections::BTreeMap;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::DesiredGuest;
use holdfast_protocol::desired::field::GuestField;
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::report::{AppliedValue, FieldState, InForce, Running};
use jiff::{SignedDuration, Timestamp};

use super::Inputs;
use crate::model::field::{self, AppliedField, GuestFields};
use crate::model::observed::{Detail, GuestFacts, ObservedGuest};

/// All fields of each guest of ours whose configuration could be read.
#[must_use]
pub fn all(inputs: &Inputs<'_>) -> BTreeMap<GuestUid, GuestFields> {
    let wanted: BTreeMap<GuestUid, &DesiredGuest> =
        inputs.desired.iter().map(|guest| (guest.uid, guest)).collect();
    let of = |uid: GuestUid, vmid| {
        let seen = inputs.observed.guests.get(&vmid)?;
        let Detail::Known(facts) = &seen.detail else { return None };
        let fields = rows(inputs, (uid, wanted.get(&uid).copied()), seen, facts);
        let read_at = inputs.observed.times.configurations.get(&vmid).copied();
        let filter = facts.filter.state().map(|state| state.words().to_owned());
        Some((uid, GuestFields { read_at, began_at: began(inputs, seen), fields, filter }))
    };
    inputs.records.guests.iter().filter_map(|record| of(record.uid, record.place.vmid()?)).collect()
}

fn rows(
    inputs: &Inputs<'_>,
    (uid, wanted): (GuestUid, Option<&DesiredGuest>),
    seen: &ObservedGuest,
    facts: &GuestFacts,
) -> Vec<FieldState> {
    let mut desired = wanted.map(field::wanted).unwrap_or_default();
    let mut observed = field::seen(seen.run, facts);
    let applied = inputs.records.applied.get(&uid);
    let began = began(inputs, seen);
    let row = |field: GuestField| {
        let observed = observed.remove(&field);
        let last = applied.and_then(|applied| applied.get(&field));
        let waits = last.is_some_and(|last| waits(last, observed.as_deref(), began));
        FieldState {
            field,
            desired: desired.remove(&field),
            observed,
            applied: last.map(|last| AppliedValue { value: last.value.clone(), at: last.at }),
            in_force: if waits { InForce::NextStart } else { InForce::Now },
        }
    };
    GuestField::ALL.into_iter().map(row).collect()
}

/// When a running guest was started.
fn began(inputs: &Inputs<'_>, seen: &ObservedGuest) -> Option<Timestamp> {
    let up = SignedDuration::from_secs(i64::try_from(seen.up_s).ok()?);
    (seen.run == Running::Running).then(|| inputs.observed.at.checked_sub(up).ok())?
}

/// Whether the guest was started before this was carried out, and has it from its next start alone.
fn waits(last: &AppliedField, observed: Option<&str>, began: Option<Timestamp>) -> bool {
    last.takes == InForce::NextStart
        && observed == Some(last.value.as_str())
        && began.is_some_and(|began| began < last.at)
}

/// What is reported of a guest whose configuration is ahead of it.
pub(super) fn ahead(
    inputs: &Inputs<'_>,
    uid: GuestUid,
    seen: &ObservedGuest,
    facts: &GuestFacts,
) -> Option<(ErrorCode, String)> {
    let applied = inputs.records.applied.get(&uid)?;
    let (observed, began) = (field::seen(seen.run, facts), began(inputs, seen));
    let ahead =
        applied.iter().filter(|(field, last)| waits(last, observed.get(field).map(String::as_str), began));
    let ahead: Vec<String> = ahead.map(|(field, last)| format!("{} {}", field.path(), last.value)).collect();
    (!ahead.is_empty()).then(|| {
        let text = format!(
            "its configuration has what the document says, and the guest gets it by its next start: {}",
            ahead.join(", ")
        );
        (ErrorCode::RestartNeeded, text)
    })
}
