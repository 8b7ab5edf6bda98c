//! The backups that a retention removes, as one pure function.
//!
//! The rules choose one after another, `last` first and `yearly` last. Each runs from the newest backup to the oldest,
//! passes over periods in which an earlier rule has kept one, and keeps the newest of each other period until it has as
//! many as it may. A backup that a rule passed over within a period of which it kept one is not considered by later
//! rules. Periods are those of the local calendar; weeks are ISO weeks. One rule of ours precedes them all: the newest
//! backup that was proved by restoring it is never removed. Deliberately absent: removing anything, and whether the
//! clock can be trusted.

use std::collections::BTreeSet;

use jiff::Timestamp;
use jiff::civil::DateTime;

use super::retention::{Keep, Retention};
use super::zone::Zone;

/// Whether a backup was proved by restoring it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// It was.
    Proved,
    /// It was not, or not with success.
    None,
}

/// A backup, as far as retention needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatedBackup {
    /// When it was taken.
    pub at: Timestamp,
    /// Whether it was proved.
    pub proof: Proof,
}

/// What becomes of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It stays, by this rule.
    Kept(&'static str),
    /// It may go.
    Goes,
}

/// By hour, day, week, month or year; the newest ones have a period each.
type Period = [i32; 4];

/// What becomes of each, in the order given.
#[must_use]
pub fn prune(backups: &[DatedBackup], retention: &Retention, zone: &Zone) -> Vec<Fate> {
    let mut fates = match retention {
        Retention::KeepAll => vec![Fate::Kept("all"); backups.len()],
        Retention::Keep(keep) => by_rules(backups, keep, zone),
    };
    let proved = backups.iter().enumerate().filter(|(_, taken)| taken.proof == Proof::Proved);
    if let Some((newest, _)) = proved.max_by_key(|(_, taken)| taken.at)
        && let Some(fate @ Fate::Goes) = fates.get_mut(newest)
    {
        *fate = Fate::Kept("newest proved");
    }
    fates
}

/// One backup while the rules go over it.
struct Candidate {
    place: usize,
    local: DateTime,
    fate: Option<Fate>,
}

fn by_rules(backups: &[DatedBackup], keep: &Keep, zone: &Zone) -> Vec<Fate> {
    let local = |taken: &DatedBackup| zone.time_zone().to_datetime(taken.at);
    let mut order: Vec<(Timestamp, Candidate)> = backups
        .iter()
        .enumerate()
        .map(|(place, taken)| (taken.at, Candidate { place, local: local(taken), fate: None }))
        .collect();
    order.sort_by_key(|(at, candidate)| std::cmp::Reverse((*at, candidate.place)));
    let mut order: Vec<Candidate> = order.into_iter().map(|(_, candidate)| candidate).collect();
    for (rule, count) in keep.rules() {
        if let Some(count) = count {
            choose(&mut order, rule, usize::try_from(count.get()).unwrap_or(usize::MAX));
        }
    }
    let mut fates = vec![Fate::Goes; backups.len()];
    for candidate in order {
        if let (Some(fate), Some(decided)) = (fates.get_mut(candidate.place), candidate.fate) {
            *fate = decided;
        }
    }
    fates
}

fn choose(order: &mut [Candidate], rule: &'static str, count: usize) {
    let is_kept = |candidate: &&Candidate| matches!(candidate.fate, Some(Fate::Kept(_)));
    let covered: BTreeSet<Period> = order.iter().filter(is_kept).map(|kept| period(rule, kept)).collect();
    let mut chosen = BTreeSet::new();
    for candidate in order.iter_mut().filter(|candidate| candidate.fate.is_none()) {
        let period = period(rule, candidate);
        if covered.contains(&period) {
            continue;
        }
        if chosen.contains(&period) {
            candidate.fate = Some(Fate::Goes);
        } else if chosen.len() < count {
            chosen.insert(period);
            candidate.fate = Some(Fate::Kept(rule));
        } else {
            return;
        }
    }
}

fn period(rule: &str, candidate: &Candidate) -> Period {
    let local = candidate.local;
    let [year, month, day, hour] =
        [i32::from(local.year()), local.month().into(), local.day().into(), local.hour().into()];
    match rule {
        "hourly" => [year, month, day, hour],
        "daily" => [year, month, day, 0],
        "weekly" => {
            let week = local.date().iso_week_date();
            [week.year().into(), week.week().into(), 0, 0]
        }
        "monthly" => [year, month, 0, 0],
        "yearly" => [year, 0, 0, 0],
        // The newest ones: each is its own.
        _ => [i32::try_from(candidate.place).unwrap_or(i32::MAX), 0, 0, 0],
    }
}

#[cfg(test)]
mod tests;
