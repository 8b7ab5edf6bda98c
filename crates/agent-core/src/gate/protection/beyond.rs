//! Requested backups beyond what documents may ask for.
//!
//! More is not always harmless. Backups each minute, kept for ever, fill the storage of all guests. Programs that stand
//! still are of no use to anybody. When a backup may begin a day late, no operator notices that it is missing. So a
//! raise of a tier that is in force, and a tier that is new, is compared with the limits of the operators' policy, part
//! by part. What is in force already may stay. A server away from the host prunes by itself, so a new tier of it may
//! keep all. Pure. Deliberately absent: what is weaker.

use holdfast_protocol::protection::compare::{Change, Part};
use holdfast_protocol::protection::{BackupTier, Facet, Protection, Retention, Schedule, Tier};
use holdfast_trust::limits::BackupLimits;

/// The request as far as it is within the limits, and what of it is not.
#[must_use]
pub fn within(in_force: &Protection, goal: &Protection, limits: &BackupLimits) -> (Protection, Vec<Change>) {
    let mut judge = Judge { limits, beyond: Vec::new() };
    let mut next = goal.clone();
    let old = &in_force.tiers;
    if let Some(new) = &mut next.tiers.snapshot {
        match &old.snapshot {
            Some(old) => judge.schedule(Tier::Snapshot, &old.schedule, &mut new.schedule),
            None if judge.is_new(Tier::Snapshot, &new.schedule, None) => {}
            None => next.tiers.snapshot = None,
        }
    }
    if let Some(new) = &mut next.tiers.local {
        match &old.local {
            Some(old) => judge.backup(Tier::Local, old, new),
            None if judge.is_new(Tier::Local, &new.schedule, Some(new.retention)) => {}
            None => next.tiers.local = None,
        }
    }
    if let Some(new) = &mut next.tiers.off_site {
        match &old.off_site {
            Some(old) => judge.backup(Tier::OffSite, &old.backup, &mut new.backup),
            None if judge.is_new(Tier::OffSite, &new.backup.schedule, None) => {}
            None => next.tiers.off_site = None,
        }
    }
    (next, judge.beyond)
}

struct Judge<'a> {
    limits: &'a BackupLimits,
    beyond: Vec<Change>,
}

impl Judge<'_> {
    const fn per_day(&self, tier: Tier) -> u32 {
        match tier {
            Tier::Snapshot => self.limits.snapshots_per_day,
            Tier::Local | Tier::OffSite => self.limits.per_day,
        }
    }

    fn is_dense(&self, tier: Tier, schedule: &Schedule) -> bool {
        schedule.points_per_day() > self.per_day(tier)
    }

    fn is_much(&self, retention: Retention) -> bool {
        retention.count().is_none_or(|count| count > self.limits.kept)
    }

    /// Whether a tier that is new is within the limits, whole.
    fn is_new(&mut self, tier: Tier, schedule: &Schedule, retention: Option<Retention>) -> bool {
        let dense = self.is_dense(tier, schedule).then(|| format!("{schedule}"));
        let late = (schedule.window_min.get() > self.limits.window_min)
            .then(|| format!("a window of {}", schedule.window_min));
        let much = retention.filter(|one| self.is_much(*one)).map(|one| format!("{one} kept"));
        let why: Vec<String> = dense.into_iter().chain(late).chain(much).collect();
        if why.is_empty() {
            return true;
        }
        let (from, to) = ("off".to_owned(), format!("on with {}", why.join(", ")));
        self.beyond.push(Change { part: Part::Tier(tier), facet: Facet::Whole, from, to });
        false
    }

    fn hold(&mut self, tier: Tier, facet: Facet, (from, to): (String, String)) {
        self.beyond.push(Change { part: Part::Tier(tier), facet, from, to });
    }

    fn schedule(&mut self, tier: Tier, old: &Schedule, new: &mut Schedule) {
        if self.is_dense(tier, new) && new.points_per_day() > old.points_per_day() {
            self.hold(tier, Facet::Schedule, (old.to_string(), new.to_string()));
            (new.at, new.zone) = (old.at.clone(), old.zone.clone());
        }
        if new.window_min > old.window_min && new.window_min.get() > self.limits.window_min {
            self.hold(tier, Facet::Window, (old.window_min.to_string(), new.window_min.to_string()));
            new.window_min = old.window_min;
        }
    }

    fn backup(&mut self, tier: Tier, old: &BackupTier, new: &mut BackupTier) {
        self.schedule(tier, &old.schedule, &mut new.schedule);
        if self.is_much(new.retention) && !old.retention.covers(&new.retention) {
            self.hold(tier, Facet::Retention, (old.retention.to_string(), new.retention.to_string()));
            new.retention = old.retention;
        }
        if new.consistency > old.consistency && new.consistency > self.limits.consistency {
            let words = |tier: &BackupTier| tier.consistency.as_str().to_owned();
            self.hold(tier, Facet::Consistency, (words(old), words(new)));
            new.consistency = old.consistency;
        }
    }
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::protection::OffSiteTier;
    use serde_json::{Value, json};

    use super::*;

    fn promise(change: impl Fn(&mut Value)) -> Protection {
        let mut local = json!({
            "target": "backup2",
            "schedule": { "at": ["02:30"], "zone": "UTC", "jitter_min": 5, "window_min": 60 },
            "retention": { "keep": { "last": 7 } }, "consistency": "crash"
        });
        change(&mut local);
        let snapshot = json!({ "schedule": local["schedule"], "retention": { "keep": { "last": 24 } } });
        serde_json::from_value(json!({ "tiers": { "snapshot": snapshot, "local": local }, "volumes": [] }))
            .unwrap()
    }

    fn put(pointer: &'static str, value: Value) -> impl Fn(&mut Value) {
        move |tier| *tier.pointer_mut(pointer).unwrap() = value.clone()
    }

    fn beyond(limits: &BackupLimits, old: &Protection, new: &Protection) -> Vec<String> {
        let (next, beyond) = within(old, new, limits);
        assert!(within(old, &next, limits).1.is_empty(), "what is within is within: {next:?}");
        beyond.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_dangerous_raise_is_named_and_each_usual_one_is_not() {
        let (limits, old) = (BackupLimits::default(), promise(|_| {}));
        for (pointer, value, held) in [
            ("/schedule/at", json!(["*:30"]), &[][..]),
            ("/schedule/at", json!(["*:0/15,30"]), &["local schedule: from 02:30 (UTC) to *:0/15,30 (UTC)"]),
            ("/schedule/window_min", json!(720), &[]),
            (
                "/schedule/window_min",
                json!(721),
                &["snapshot window: from 60 min to 721 min", "local window: from 60 min to 721 min"],
            ),
            ("/retention", json!({ "keep": { "last": 24, "daily": 60, "monthly": 12 } }), &[]),
            ("/retention", json!({ "keep": { "last": 400 } }), &[]),
            ("/retention", json!({ "keep": { "last": 401 } }), &["local retention: from 7 last to 401 last"]),
            ("/retention", json!("keep_all"), &["local retention: from 7 last to all"]),
            ("/consistency", json!("application"), &["local consistency: from crash to application"]),
        ] {
            let new = promise(put(pointer, value.clone()));
            assert_eq!(beyond(&limits, &old, &new), held, "{pointer} = {value}");
            // What a signature put into force may stay, and be lowered.
            assert!(beyond(&limits, &new, &new).is_empty() && beyond(&limits, &new, &old).is_empty());
        }
    }

    #[test]
    fn the_operators_policy_says_what_documents_may_ask_for() {
        let wide = BackupLimits {
            per_day: 1_440,
            snapshots_per_day: 1_440,
            kept: 20_000,
            window_min: 1_440,
            consistency: holdfast_protocol::protection::Consistency::Application,
            ..BackupLimits::default()
        };
        let old = promise(|_| {});
        let most = promise(|tier| {
            tier["schedule"]["at"] = json!(["minutely"]);
            tier["schedule"]["window_min"] = json!(1_440);
            tier["retention"] = json!({ "keep": { "last": 9_999 } });
            tier["consistency"] = json!("application");
        });
        assert!(beyond(&wide, &old, &most).is_empty());
        assert_eq!(beyond(&BackupLimits::default(), &old, &most).len(), 6);
    }

    #[test]
    fn a_first_promise_is_held_against_the_limits_too() {
        let (limits, none) = (BackupLimits::default(), Protection::default());
        assert!(beyond(&limits, &none, &promise(put("/consistency", json!("application")))).is_empty());
        let all = promise(put("/retention", json!("keep_all")));
        assert_eq!(beyond(&limits, &none, &all), ["local tier: from off to on with all kept"]);
        let (next, _) = within(&none, &all, &limits);
        assert!(next.tiers.local.is_none() && next.tiers.snapshot.is_some(), "the rest is in force");
        let dense = promise(put("/schedule/at", json!(["minutely"])));
        assert_eq!(
            beyond(&limits, &none, &dense),
            [
                "snapshot tier: from off to on with minutely (UTC)",
                "local tier: from off to on with minutely (UTC)"
            ]
        );
    }
    #[test]
    fn a_first_promise_may_ask_for_what_is_just_within_the_limits() {
        let (limits, none) = (BackupLimits::default(), Protection::default());
        let first = |minutes: u32, last: u32| {
            let new = promise(|tier| {
                tier["schedule"]["window_min"] = json!(minutes);
                tier["retention"] = json!({ "keep": { "last": last } });
            });
            beyond(&limits, &none, &new)
        };
        assert!(first(720, 400).is_empty());
        let window = "snapshot tier: from off to on with a window of 721 min";
        let both = "local tier: from off to on with a window of 721 min, 401 last kept";
        assert_eq!(first(721, 401), [window, both]);
        assert!(first(5, 400).is_empty(), "a window may be short");
    }

    #[test]
    fn a_first_promise_off_site_may_keep_all_and_is_as_dense_as_others() {
        let (limits, none) = (BackupLimits::default(), Protection::default());
        let off_site = |point: &'static str| {
            let local = promise(|tier| {
                tier["schedule"]["at"] = json!([point]);
                tier["retention"] = json!("keep_all");
            });
            let key = serde_json::from_value(json!(vec!["ab"; 32].join(":"))).unwrap();
            let mut new = Protection::default();
            new.tiers.off_site =
                local.tiers.local.map(|backup| OffSiteTier { key, verify_days: None, backup });
            new
        };
        let usual = off_site("02:30");
        assert_eq!(within(&none, &usual, &limits), (usual, Vec::new()));
        let dense = off_site("minutely");
        assert_eq!(beyond(&limits, &none, &dense), ["off-site tier: from off to on with minutely (UTC)"]);
        assert_eq!(within(&none, &dense, &limits).0, none, "it is not begun");
    }
}
