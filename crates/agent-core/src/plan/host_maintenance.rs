//! Beginning, end and outcome of a maintenance of this host.
//!
//! In: what the hub announces, what is kept, and the report. Out: what is kept next, and what did not come back. The hub cannot
//! keep the host from its backups for long: within a week nothing is held for more than a day. What became due meanwhile is
//! caught up by the schedules themselves. Deliberately absent: alerts, which the hub mutes.

use holdfast_protocol::desired::RunState;
use holdfast_protocol::host_maintenance::{
    HostMaintenancePhase, HostMaintenanceReport, NOT_BACK_MAX, NotBackText,
};
use holdfast_protocol::report::{GuestReport, GuestStatus, Running};
use holdfast_protocol::storage::report::TargetReport;
use jiff::{SignedDuration, Timestamp};

use crate::model::host_maintenance::{HostMaintenance, RunningGuest, Span};

/// For so long within [`BUDGET_WITHIN`] nothing is opened.
const BUDGET: SignedDuration = SignedDuration::from_hours(24);

/// The time over which that is counted.
const BUDGET_WITHIN: SignedDuration = SignedDuration::from_hours(7 * 24);

/// For so long after its end it is looked for what did not come back.
const CHECKED_FOR: SignedDuration = SignedDuration::from_hours(7 * 24);

/// As many earlier ones are kept. More within a week add to the last of them.
const EARLIER_MAX: usize = 32;

/// What is known of the host.
#[derive(Clone, Copy, Debug)]
pub struct HostInventory<'a> {
    pub guests: &'a [GuestReport],
    pub targets: &'a [TargetReport],
}

/// What is kept instead of `kept`; none where nothing changes.
#[must_use]
pub fn next(
    kept: Option<&HostMaintenance>,
    announced: Option<Timestamp>,
    now: Timestamp,
    known: HostInventory<'_>,
) -> Option<HostMaintenance> {
    let announced = announced.filter(|until| *until > now);
    let open = kept.filter(|kept| kept.ended_at.is_none());
    match (open, announced) {
        (Some(open), _) if now >= open.until => Some(ended(open, open.until)),
        (Some(open), None) => Some(ended(open, now)),
        (Some(open), Some(until)) if until != open.announced_until => Some(HostMaintenance {
            until: bound(until, open.since, &open.earlier),
            announced_until: until,
            ..open.clone()
        }),
        (None, Some(until)) if kept.is_none_or(|kept| kept.announced_until != until) => {
            begun(kept, (until, now), known)
        }
        (Some(_) | None, _) => None,
    }
}

fn ended(open: &HostMaintenance, at: Timestamp) -> HostMaintenance {
    HostMaintenance { ended_at: Some(at), ..open.clone() }
}

fn begun(
    kept: Option<&HostMaintenance>,
    (announced, now): (Timestamp, Timestamp),
    known: HostInventory<'_>,
) -> Option<HostMaintenance> {
    let last = kept.map(|kept| Span { since: kept.since, until: kept.end() });
    let mut earlier: Vec<Span> = kept.iter().flat_map(|kept| &kept.earlier).copied().chain(last).collect();
    let recent = now.checked_sub(BUDGET_WITHIN).unwrap_or(Timestamp::MIN);
    earlier.retain(|span| span.until > recent);
    while earlier.len() > EARLIER_MAX {
        // Two become one that is at least as long.
        let first = earlier.remove(0);
        if let Some(second) = earlier.first_mut() {
            second.since = first.since;
        }
    }
    let until = bound(announced, now, &earlier);
    (until > now).then(|| HostMaintenance {
        since: now,
        until,
        announced_until: announced,
        ended_at: None,
        guests: running(known.guests),
        targets: known
            .targets
            .iter()
            .filter(|one| !one.status.is_gone())
            .map(|one| one.name.clone())
            .collect(),
        earlier,
    })
}

/// The announced end, or an earlier one where the budget is used up before.
fn bound(announced: Timestamp, since: Timestamp, earlier: &[Span]) -> Timestamp {
    let used = earlier.iter().fold(SignedDuration::ZERO, |sum, span| {
        sum.saturating_add(span.until.duration_since(span.since).max(SignedDuration::ZERO))
    });
    let left = BUDGET.saturating_sub(used).max(SignedDuration::ZERO);
    announced.min(since.checked_add(left).unwrap_or(since))
}

fn running(guests: &[GuestReport]) -> Vec<RunningGuest> {
    let ran = guests.iter().filter(|guest| guest.run == Running::Running);
    ran.filter_map(|guest| Some(RunningGuest { uid: guest.uid?, name: guest.name.clone() })).collect()
}

/// What did not come back, by kind and name. A guest that should not run now, or is not ours any more, is not named, and neither
/// is one of which it is unknown.
#[must_use]
pub fn not_back(kept: &HostMaintenance, known: HostInventory<'_>) -> Vec<NotBackText> {
    let guests = kept.guests.iter().filter_map(|before| {
        let guest = known.guests.iter().find(|guest| guest.uid == Some(before.uid))?;
        let is_wanted = guest.wanted != Some(RunState::Stopped);
        let is_away = guest.run == Running::Stopped || guest.status == GuestStatus::Missing;
        (is_wanted && is_away).then(|| format!("guest {}", before.name))
    });
    let targets = kept.targets.iter().filter_map(|name| {
        let target = known.targets.iter().find(|target| target.name == *name)?;
        target.status.is_gone().then(|| format!("storage target {}", name.as_str()))
    });
    let names = guests.chain(targets).filter_map(|text| {
        let plain = text.chars().map(|one| if one.is_control() { ' ' } else { one });
        NotBackText::try_from(plain.take(96).collect::<String>()).ok()
    });
    names.take(NOT_BACK_MAX).collect()
}

/// Whether it is still looked for what did not come back.
#[must_use]
pub fn is_checked(kept: &HostMaintenance, now: Timestamp) -> bool {
    !kept.is_in_force(now) && now.duration_since(kept.end()) <= CHECKED_FOR
}

/// The report of it; none where there is nothing to say.
#[must_use]
pub fn report(
    kept: Option<&HostMaintenance>,
    open_operations: usize,
    now: Timestamp,
    known: HostInventory<'_>,
) -> Option<HostMaintenanceReport> {
    let kept = kept?;
    let not_back = not_back(kept, known);
    let phase = match (kept.is_in_force(now), open_operations) {
        (true, 0) => HostMaintenancePhase::Drained,
        (true, _) => HostMaintenancePhase::Draining,
        (false, _) if is_checked(kept, now) && !not_back.is_empty() => HostMaintenancePhase::Incomplete,
        (false, _) => return None,
    };
    let open_operations = u32::try_from(open_operations).unwrap_or(u32::MAX);
    Some(HostMaintenanceReport { phase, since: kept.since, until: kept.end(), open_operations, not_back })
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::id::GuestUid;
    use serde_json::json;

    use super::*;
    use crate::plan::tests::uid;

    fn at(hour: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + hour * 3_600).unwrap()
    }

    fn guest(n: u32, fields: serde_json::Value) -> GuestReport {
        let mut guest = json!({ "uid": uid(n), "name": format!("web-{n}"), "status": "managed", "run": "running", "wanted": "running" });
        guest.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(guest).unwrap()
    }

    fn target(status: &str) -> TargetReport {
        serde_json::from_value(
            json!({ "name": "disk1", "backend": "a disk", "role": "local-backup", "class": "slow",
            "status": status, "since": at(0), "reason": "" }),
        )
        .unwrap()
    }

    const NOTHING: HostInventory<'static> = HostInventory { guests: &[], targets: &[] };

    fn begin(kept: Option<&HostMaintenance>, until: i64, now: i64) -> Option<HostMaintenance> {
        next(kept, Some(at(until)), at(now), NOTHING)
    }

    #[test]
    fn it_begins_with_what_runs_and_ends_when_it_is_ended_or_over() {
        let guests =
            [guest(1, json!({})), guest(2, json!({ "run": "stopped" })), guest(3, json!({ "uid": null }))];
        let targets = [target("mounted")];
        let begun =
            next(None, Some(at(2)), at(0), HostInventory { guests: &guests, targets: &targets }).unwrap();
        let ran: Vec<GuestUid> = begun.guests.iter().map(|guest| guest.uid).collect();
        assert_eq!((ran, begun.targets.len(), begun.until), (vec![uid(1)], 1, at(2)));
        assert!(begun.is_in_force(at(1)) && !begun.is_in_force(at(2)));
        assert_eq!(
            next(Some(&begun), Some(at(2)), at(1), NOTHING),
            None,
            "the same announcement changes nothing"
        );
        let longer = begin(Some(&begun), 5, 1).unwrap();
        assert_eq!((longer.since, longer.until, longer.guests.len()), (at(0), at(5), 1));
        let ended = next(Some(&begun), None, at(1), NOTHING).unwrap();
        assert_eq!((ended.ended_at, ended.is_in_force(at(1))), (Some(at(1)), false));
        let over = next(Some(&begun), Some(at(2)), at(3), NOTHING).unwrap();
        assert_eq!(over.ended_at, Some(at(2)), "the agent was away at its end");
        assert_eq!(next(Some(&over), Some(at(2)), at(3), NOTHING), None);
        assert_eq!(next(None, Some(at(0)), at(1), NOTHING), None, "one that is over begins nothing");
    }

    /// A hub that announces maintenance all the time keeps a host from its backups for a day a week.
    #[test]
    fn a_hub_cannot_hold_a_host_for_long() {
        let (mut kept, mut held) = (None::<HostMaintenance>, 0);
        for hour in 0..14 * 24 {
            // Always another end, so that it is always another announcement; ended every third hour.
            let announced = (hour % 3 != 2).then(|| at(hour + 1_000));
            kept = next(kept.as_ref(), announced, at(hour), NOTHING).or(kept);
            held += i64::from(kept.as_ref().is_some_and(|kept| kept.is_in_force(at(hour))));
        }
        assert!((24..=2 * 24 + 3).contains(&held), "{held} of two weeks");
        let long = begin(None, 24 * 90, 0).unwrap();
        assert_eq!(long.until, at(24));
        assert_eq!(begin(Some(&ended(&long, at(24))), 24 * 90, 30), None, "the same announcement");
        assert_eq!(begin(Some(&ended(&long, at(24))), 24 * 91, 30), None, "the budget is used up");
        let week = begin(Some(&ended(&long, at(24))), 24 * 92, 24 * 9).unwrap();
        assert_eq!((week.until, week.earlier.len()), (at(24 * 10), 0));
    }

    #[test]
    fn what_did_not_come_back_is_named_and_what_should_not_is_not() {
        let before = [1, 2, 3, 4, 5, 6].map(|n| guest(n, json!({})));
        let (mounted, gone) = ([target("mounted")], [target("absent")]);
        let begun =
            next(None, Some(at(2)), at(0), HostInventory { guests: &before, targets: &mounted }).unwrap();
        let after = [
            guest(1, json!({})),
            guest(2, json!({ "run": "stopped" })),
            guest(3, json!({ "run": "stopped", "wanted": "stopped" })),
            guest(4, json!({ "run": "unknown" })),
            guest(5, json!({ "run": "unknown", "status": "missing" })),
        ];
        let known = HostInventory { guests: &after, targets: &gone };
        let names: Vec<String> = not_back(&begun, known).into_iter().map(String::from).collect();
        assert_eq!(names, ["guest web-2", "guest web-5", "storage target disk1"]);
        let report = |kept: &HostMaintenance, open, now| {
            super::report(Some(kept), open, at(now), known).map(|one| one.phase)
        };
        assert_eq!(report(&begun, 1, 1), Some(HostMaintenancePhase::Draining));
        assert_eq!(report(&begun, 0, 1), Some(HostMaintenancePhase::Drained));
        assert_eq!(report(&begun, 0, 3), Some(HostMaintenancePhase::Incomplete));
        assert_eq!(report(&begun, 0, 3 + 8 * 24), None, "a week later it is history");
        assert_eq!(
            super::report(Some(&begun), 0, at(3), HostInventory { guests: &before, targets: &mounted }),
            None
        );
    }
}
