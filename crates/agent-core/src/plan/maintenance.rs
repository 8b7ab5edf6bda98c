//! Maintenance windows of guests, and restarts in them.
//!
//! In: the document's maintenance of one guest, and the time. Out: the window that is open, else the next, for the guest agent,
//! which upgrades and restarts in it; and why a guest is stopped there, after which it is started again like any other: its
//! configuration waits for a start, or its guest agent is silent. Deliberately absent: upgrades themselves.

use holdfast_protocol::desired::{DesiredGuest, RunState};
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::local::desired::{MaintenanceView, MaintenanceWindow};
use holdfast_protocol::maintenance::{Maintenance, RestartRule};
use holdfast_protocol::report::Running;
use jiff::{SignedDuration, Timestamp};

use super::schedule::points::{Around, Purpose};
use super::{Inputs, fields, silence};
use crate::model::observed::{GuestFacts, ObservedGuest};
use crate::model::records::GuestRecord;

/// So long a guest agent is silent before its guest is restarted: systemd has restarted it in the guest many times by then.
const SILENT: SignedDuration = SignedDuration::from_hours(1);

/// After so long no restart has helped, and none more is tried.
const GIVEN_UP: SignedDuration = SignedDuration::from_hours(3 * 24);

/// What is shown to a guest agent.
#[must_use]
pub fn view(uid: GuestUid, maintenance: Option<&Maintenance>, now: Timestamp) -> MaintenanceView {
    let usual = Maintenance::default();
    let maintenance = maintenance.unwrap_or(&usual);
    MaintenanceView {
        security_upgrades: maintenance.security_upgrades,
        window: window(uid, maintenance, now),
    }
}

/// The window that is open, else the next one.
fn window(uid: GuestUid, maintenance: &Maintenance, now: Timestamp) -> Option<MaintenanceWindow> {
    let schedule = maintenance.schedule()?;
    let around = Around::of(&schedule, now);
    let long = SignedDuration::from_mins(i64::from(schedule.window_min.get()));
    let window = |(point, begins): (Timestamp, Timestamp)| {
        let ends = point.checked_add(long).unwrap_or(Timestamp::MAX);
        MaintenanceWindow { begins, ends, restart: maintenance.restarts() }
    };
    let last = around.last_begins(&schedule, uid, Purpose::Maintenance).map(window);
    let next = || Some((around.next?, around.next_begins(&schedule, uid, Purpose::Maintenance)?));
    last.filter(|last| now < last.ends).or_else(|| next().map(window))
}

/// When the next window of a guest begins, where it has windows and none is open.
pub(super) fn closed_until(guest: &DesiredGuest, now: Timestamp) -> Option<Timestamp> {
    let window = window(guest.uid, guest.maintenance.as_ref()?, now)?;
    (!window.is_open(now)).then_some(window.begins)
}

/// Why a guest is stopped and started again in its window. At most once in a window, since the guest must run for longer than
/// that is open.
pub(super) fn restart(
    inputs: &Inputs<'_>,
    guest: &DesiredGuest,
    record: &GuestRecord,
    (seen, facts): (&ObservedGuest, &GuestFacts),
) -> Option<String> {
    let now = inputs.time.at;
    let window = window(guest.uid, guest.maintenance.as_ref()?, now).filter(|window| window.is_open(now))?;
    let open_s = now.duration_since(window.begins).as_secs();
    let up_before = i64::try_from(seen.up_s).is_ok_and(|up_s| up_s > open_s);
    let runs = guest.run == RunState::Running && seen.run == Running::Running;
    if !(window.restart == RestartRule::InWindow && runs && up_before) {
        return None;
    }
    let ahead = fields::ahead(inputs, guest.uid, seen, facts);
    ahead.map(|(_, why)| format!("{why}: it is restarted in its maintenance window")).or_else(|| {
        // Nothing inside has brought the guest agent back.
        let since = silence::since(inputs, record, seen)?;
        let is_last_step = (SILENT..GIVEN_UP).contains(&now.duration_since(since));
        is_last_step.then(|| {
            format!(
                "its guest agent has been silent since {}, so it is restarted in its maintenance window, as a last step",
                silence::stamp(since)
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn uid(number: u128) -> GuestUid {
        GuestUid::new(uuid::Uuid::from_u128(number))
    }

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn maintenance(value: serde_json::Value) -> Maintenance {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn the_open_window_is_said_and_else_the_next() {
        let weekly = maintenance(json!({ "windows":
            { "at": ["Sun 03:00"], "zone": "UTC", "jitter_min": 0, "window_min": 120 } }));
        let said = |now: &str| view(uid(1), Some(&weekly), time(now)).window.unwrap();
        let sunday = said("2026-06-07T04:59:59Z");
        assert_eq!(
            (sunday.begins, sunday.ends),
            (time("2026-06-07T03:00:00Z"), time("2026-06-07T05:00:00Z"))
        );
        assert!(
            sunday.is_open(time("2026-06-07T03:00:00Z")) && !sunday.is_open(time("2026-06-07T05:00:00Z"))
        );
        assert_eq!(said("2026-06-07T05:00:00Z").begins, time("2026-06-14T03:00:00Z"));
        assert_eq!(sunday.restart, RestartRule::InWindow);
    }

    #[test]
    fn guests_of_one_host_begin_one_after_another_and_each_has_an_hour() {
        let now = time("2026-06-07T12:00:00Z");
        let windows: Vec<_> = (1..=20).map(|n| view(uid(n), None, now).window.unwrap()).collect();
        let begins: std::collections::BTreeSet<_> = windows.iter().map(|window| window.begins).collect();
        assert!(begins.len() > 15, "{begins:?}");
        for window in windows {
            assert_eq!(window.ends, time("2026-06-08T05:00:00Z"));
            assert!(window.ends.duration_since(window.begins) >= SignedDuration::from_hours(1), "{window:?}");
            assert_eq!(window.restart, RestartRule::ByHand, "nobody chose this window");
        }
    }
}
