//! What a check-in changes in its host's row.
//!
//! In: the stored facts of a host, and a check-in whose certificate is served. Out: how the report is merged, the new facts,
//! and the events. Each engine decides by this, for one check-in or for a batch of them. Deliberately absent: rows, and what
//! other tables know of the host: jobs, work orders, ends of the audit, alerts.

use holdfast_protocol::checkin::{Coverage, Need};
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::HostName;
use jiff::Timestamp;

use super::Checkin;
use crate::domain::audit_claim;
use crate::domain::event::EventKind;
use crate::domain::merge::{self, Merge, StoredReport};

/// The stored facts of a host that its check-in is judged by.
#[derive(Clone, Copy, Debug)]
pub struct HostFacts<'a> {
    pub name: &'a HostName,
    /// As the table has it: `new`, `online`, `late` or `offline`.
    pub liveness: &'a str,
    /// The last report; none of a host that was never heard.
    pub report: Option<StoredReport>,
    /// The document that it would not take.
    pub refused: Option<Generation>,
    /// How far its audit is, as far as that is believed.
    pub audit_seen: u64,
    pub seen_at: Option<Timestamp>,
}

/// What a check-in changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckinChanges {
    /// What becomes of the sections.
    pub merge: Merge,
    /// What the next report should carry.
    pub need: Need,
    /// The newest report that is stored from now on.
    pub sequence: Option<u64>,
    /// When the agent's run began.
    pub run: Option<Timestamp>,
    /// When the agent stopped on purpose; none, since it speaks.
    pub farewell_at: Option<Timestamp>,
    pub audit_seen: u64,
    pub refused: Option<Generation>,
    /// In their order.
    pub events: Vec<(EventKind, String)>,
}

/// Decides what a check-in changes.
pub fn checkin_changes(facts: HostFacts<'_>, checkin: &Checkin) -> CheckinChanges {
    let (merge, need) = merge::judge(facts.report, checkin.arriving);
    let sequence = match merge {
        Merge::Replace | Merge::Merge => Some(checkin.arriving.sequence),
        Merge::Ignore => facts.report.map(|report| report.sequence),
    };
    let run = match merge {
        Merge::Replace => checkin.arriving.run,
        Merge::Merge | Merge::Ignore => facts.report.and_then(|report| report.run),
    };
    let refused = match (merge, checkin.summary.refused) {
        (Merge::Replace | Merge::Merge, Some(refused)) => refused,
        (Merge::Replace | Merge::Merge | Merge::Ignore, _) => facts.refused,
    };
    let farewell = checkin.arriving.coverage == Coverage::Farewell;
    CheckinChanges {
        merge,
        need,
        sequence,
        run,
        farewell_at: farewell.then_some(checkin.at),
        audit_seen: audit_seen(facts, checkin),
        refused,
        events: events(facts, checkin, merge, refused),
    }
}

/// How far the host's audit is, as far as it is believed.
fn audit_seen(facts: HostFacts<'_>, checkin: &Checkin) -> u64 {
    let claimed = checkin.summary.audit.as_ref().map_or(0, |audit| audit.number);
    let since = facts.seen_at.map(|seen| checkin.at.duration_since(seen));
    let seen = audit_claim::believed(facts.audit_seen, claimed, since);
    if seen < claimed {
        let name = facts.name;
        tracing::warn!(%name, claimed, believed = seen, "a host's audit grew faster than one is written");
    }
    seen
}

/// What this check-in makes happen.
fn events(
    facts: HostFacts<'_>,
    checkin: &Checkin,
    merge: Merge,
    refused: Option<Generation>,
) -> Vec<(EventKind, String)> {
    let (name, mut events) = (facts.name, Vec::new());
    match facts.liveness {
        "new" | "offline" if facts.report.is_none() => {
            events.push((EventKind::HostOnline, format!("{name} spoke for the first time")));
        }
        "offline" => events.push((EventKind::HostOnline, format!("{name} speaks again"))),
        _ => {}
    }
    if checkin.arriving.coverage == Coverage::Farewell && merge != Merge::Ignore {
        events.push((EventKind::AgentFarewell, format!("the agent of {name} stopped on purpose")));
    }
    if let Some(generation) = refused
        && facts.refused != refused
    {
        let message = format!("{name} would not take desired generation {generation}");
        events.push((EventKind::DesiredRefused, message));
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::alerting::ReportedConditions;
    use crate::domain::identity::Presented;
    use crate::domain::merge::IncomingReport;
    use crate::domain::summary::Summary;
    use crate::store::SectionTexts;
    use holdfast_protocol::id::{CorrelationId, HostId};
    use holdfast_protocol::report::AuditHead;
    use uuid::Uuid;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn checkin(coverage: Coverage, sequence: u64) -> Checkin {
        Checkin {
            presented: Presented { host: HostId::new(Uuid::nil()), generation: 1 },
            arriving: IncomingReport { coverage, run: None, sequence },
            held: Generation::NONE,
            sections: SectionTexts::default(),
            summary: Summary::default(),
            conditions: ReportedConditions::default(),
            jobs: Vec::new(),
            orders: Vec::new(),
            diagnostic: None,
            at: at(100),
            correlation: CorrelationId::new(Uuid::nil()),
        }
    }

    fn kinds(changes: &CheckinChanges) -> Vec<EventKind> {
        changes.events.iter().map(|(kind, _)| *kind).collect()
    }

    #[test]
    fn a_report_moves_the_row_and_an_old_one_only_its_contact() {
        let name = "box7".parse().unwrap();
        let report = Some(StoredReport { run: Some(at(10)), sequence: 5 });
        let refused = Some(Generation::new(3));
        let facts = HostFacts {
            name: &name,
            liveness: "online",
            report,
            refused,
            audit_seen: 7,
            seen_at: Some(at(99)),
        };
        let newer = checkin_changes(facts, &checkin(Coverage::Changed, 6));
        assert_eq!((newer.merge, newer.sequence, newer.run), (Merge::Merge, Some(6), Some(at(10))));
        assert_eq!((newer.refused, newer.audit_seen, newer.farewell_at), (refused, 7, None));
        assert_eq!(kinds(&newer), []);
        let mut takes = checkin(Coverage::Changed, 6);
        takes.summary.refused = Some(None);
        assert_eq!(checkin_changes(facts, &takes).refused, None);
        takes.arriving.sequence = 5;
        let old = checkin_changes(facts, &takes);
        assert_eq!((old.merge, old.need, old.sequence), (Merge::Ignore, Need::Full, Some(5)));
        assert_eq!(old.refused, refused, "an old report takes nothing back");
        let full = checkin_changes(facts, &checkin(Coverage::Full, 1));
        assert_eq!((full.merge, full.sequence, full.run), (Merge::Replace, Some(1), None));
    }

    #[test]
    fn what_is_an_event() {
        let name = "box7".parse().unwrap();
        let facts = HostFacts {
            name: &name,
            liveness: "new",
            report: None,
            refused: None,
            audit_seen: 0,
            seen_at: None,
        };
        let first = checkin_changes(facts, &checkin(Coverage::Full, 1));
        assert_eq!(first.events, [(EventKind::HostOnline, "box7 spoke for the first time".to_owned())]);
        let report = Some(StoredReport { run: None, sequence: 1 });
        let back = HostFacts { liveness: "offline", report, ..facts };
        let mut last = checkin(Coverage::Farewell, 2);
        last.summary.refused = Some(Some(Generation::new(4)));
        last.summary.audit = Some(AuditHead { number: 20_000, chain: "aa".to_owned() });
        let changes = checkin_changes(back, &last);
        let expected = [EventKind::HostOnline, EventKind::AgentFarewell, EventKind::DesiredRefused];
        assert_eq!(kinds(&changes), expected);
        assert_eq!((changes.farewell_at, changes.audit_seen), (Some(at(100)), 10_000));
        let late = HostFacts { liveness: "late", ..back };
        assert_eq!(kinds(&checkin_changes(late, &checkin(Coverage::Changed, 2))), []);
    }
}
