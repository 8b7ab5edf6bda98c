//! What of a check-in is written with those of other hosts.
//!
//! In: a check-in and what is stored of its host. Out: what to write and the answer; none where the writer must look at it.
//! Deliberately absent: rules of its own. What changes is decided by [`checkin_changes`], as in every engine.

use holdfast_protocol::report::AuditHead;

use super::super::checkin::HostRow;
use super::read::{Labels, StoredHeads, StoredHost, Waits};
use crate::domain::audit_heads::{HEADS_MAX, HeadVerdict, judge};
use crate::domain::desired::{Delivery, judge_delivery};
use crate::domain::identity;
use crate::domain::merge::Merge;
use crate::store::{Checkin, CheckinChanges, CheckinReply, checkin_changes};

/// What is written for one host.
pub(super) struct Decided<'a> {
    pub place: usize,
    /// The row that is written, in the state that was judged.
    pub number: i64,
    pub version: String,
    pub checkin: &'a Checkin,
    pub changes: CheckinChanges,
    /// The numbers of the row, as the table holds them.
    pub numbers: RowNumbers,
    /// An end of the audit that is not stored yet.
    pub new_head: Option<&'a AuditHead>,
    pub answer: CheckinReply,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowNumbers {
    pub sequence: i64,
    pub held: i64,
    pub audit_seen: i64,
}

pub(super) fn decide(checkin: &Checkin, stored: StoredHost) -> Option<Decided<'_>> {
    let StoredHost { place, row: HostRow { record, host }, version, waits, labels, heads } = stored;
    let generation = checkin.presented.generation;
    let is_served = identity::judge(generation, record).is_ok() && generation <= record.issued;
    // The first report makes a row. A host that speaks again is an event and a signal to the alert engine, and so are other
    // labels.
    let is_known = host.liveness == "online" && host.kept.is_some();
    if !is_served || !is_known || waits == Waits::Something || labels == Labels::Others {
        return None;
    }
    let changes = checkin_changes(host.facts(), checkin);
    let delivery = judge_delivery(host.wanted, checkin.held, changes.refused);
    if !changes.events.is_empty() || changes.farewell_at.is_some() || delivery != Delivery::Nothing {
        return None;
    }
    let new_head = match &checkin.summary.audit {
        Some(found) if changes.merge != Merge::Ignore => new_head(found, &heads)?,
        Some(_) | None => None,
    };
    let sequence = changes.sequence?;
    let numbers = RowNumbers {
        sequence: i64::try_from(sequence).ok()?,
        held: i64::try_from(checkin.held.number()).ok()?,
        audit_seen: i64::try_from(changes.audit_seen).unwrap_or(i64::MAX),
    };
    let answer = CheckinReply {
        acknowledged: sequence,
        need: changes.need,
        poll: host.poll,
        delivery,
        desired: None,
        jobs: Vec::new(),
        orders: Vec::new(),
        audit_seen: changes.audit_seen,
        maintenance_until: None,
    };
    Some(Decided { place, number: host.number, version, checkin, changes, numbers, new_head, answer })
}

/// The end, where it is to be stored. The outer none is for the writer: evidence, or so many that some go.
fn new_head<'a>(found: &'a AuditHead, heads: &StoredHeads) -> Option<Option<&'a AuditHead>> {
    match judge(heads.newest.as_ref(), heads.same.as_ref(), found) {
        HeadVerdict::Known => Some(None),
        HeadVerdict::New => {
            let has_room = usize::try_from(heads.count).is_ok_and(|count| count < HEADS_MAX);
            has_room.then_some(Some(found))
        }
        HeadVerdict::Break => None,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::super::authenticated_host::AuthenticatedHost;
    use super::*;
    use crate::domain::alerting::ReportedConditions;
    use crate::domain::identity::{HostStatus, IdentityRecord, Presented};
    use crate::domain::merge::{IncomingReport, StoredReport};
    use crate::domain::summary::Summary;
    use crate::store::SectionTexts;
    use holdfast_protocol::checkin::{Coverage, Need};
    use holdfast_protocol::generation::Generation;
    use holdfast_protocol::id::{CorrelationId, HostId};
    use holdfast_protocol::operator::KeptHead;
    use holdfast_protocol::size::PollSeconds;
    use jiff::Timestamp;
    use uuid::Uuid;

    pub(crate) fn checkin(host: u128, sequence: u64) -> Checkin {
        Checkin {
            presented: Presented { host: HostId::new(Uuid::from_u128(host)), generation: 1 },
            arriving: IncomingReport { coverage: Coverage::Changed, run: None, sequence },
            held: Generation::NONE,
            sections: SectionTexts::default(),
            summary: Summary::default(),
            conditions: ReportedConditions::default(),
            jobs: Vec::new(),
            orders: Vec::new(),
            diagnostic: None,
            at: Timestamp::UNIX_EPOCH,
            correlation: CorrelationId::new(Uuid::nil()),
        }
    }

    fn stored() -> StoredHost {
        StoredHost {
            place: 0,
            row: HostRow {
                record: IdentityRecord {
                    status: HostStatus::Active,
                    issued: 1,
                    used: 1,
                    restored_from: 0,
                    readmitted_from: 0,
                },
                host: AuthenticatedHost {
                    number: 4,
                    name: "box7".parse().unwrap(),
                    issued: 1,
                    liveness: "online".to_owned(),
                    kept: Some(StoredReport { run: None, sequence: 5 }),
                    poll: PollSeconds::MAX,
                    wanted: Generation::NONE,
                    refused: None,
                    audit_seen: 0,
                    seen_at: None,
                },
            },
            version: "700".to_owned(),
            waits: Waits::Nothing,
            labels: Labels::Same,
            heads: StoredHeads::default(),
        }
    }

    fn head(number: u64, chain: &str) -> KeptHead {
        KeptHead { number, chain: chain.to_owned(), at: Timestamp::UNIX_EPOCH }
    }

    #[test]
    fn news_of_own_rows_are_written() {
        let news = checkin(7, 6);
        let decided = decide(&news, stored()).unwrap();
        assert_eq!((decided.number, decided.numbers.sequence, decided.answer.acknowledged), (4, 6, 6));
        let late = checkin(7, 5);
        let decided = decide(&late, stored()).unwrap();
        assert_eq!((decided.changes.merge, decided.answer.need), (Merge::Ignore, Need::Full));
        assert_eq!(decided.answer.acknowledged, 5);
    }

    /// Each of these has an effect that is not of the host's own rows.
    #[test]
    fn all_else_is_for_the_writer() {
        let news = checkin(7, 6);
        let changes: [fn(&mut StoredHost); 11] = [
            |stored| stored.waits = Waits::Something,
            |stored| stored.labels = Labels::Others,
            |stored| stored.row.host.liveness = "offline".to_owned(),
            |stored| stored.row.host.liveness = "late".to_owned(),
            |stored| stored.row.host.kept = None,
            |stored| stored.row.host.wanted = Generation::new(1),
            |stored| stored.row.record.status = HostStatus::Revoked,
            |stored| stored.row.record.status = HostStatus::Frozen,
            |stored| (stored.row.record.issued, stored.row.record.used) = (2, 2),
            |stored| (stored.row.record.issued, stored.row.record.used) = (0, 0),
            |stored| stored.row.record.restored_from = 2,
        ];
        for (case, change) in changes.iter().enumerate() {
            let mut stored = stored();
            change(&mut stored);
            assert!(decide(&news, stored).is_none(), "{case}");
        }
        let mut refuses = checkin(7, 6);
        refuses.summary.refused = Some(Some(Generation::new(1)));
        assert!(decide(&refuses, stored()).is_none(), "a refusal is an event");
    }

    #[test]
    fn an_end_of_the_audit_is_stored_once_and_evidence_is_for_the_writer() {
        let mut news = checkin(7, 6);
        news.summary.audit = Some(AuditHead { number: 9, chain: "aa".to_owned() });
        let decided = |heads: StoredHeads| {
            let stored = StoredHost { heads, ..stored() };
            decide(&news, stored).map(|decided| decided.new_head.map(|head| head.number))
        };
        let older = StoredHeads { newest: Some(head(8, "bb")), same: None, count: 1 };
        assert_eq!(decided(older.clone()), Some(Some(9)));
        assert_eq!(decided(StoredHeads { count: 1_000, ..older.clone() }), None, "some of them go");
        let known = StoredHeads { newest: Some(head(9, "aa")), same: Some(head(9, "aa")), count: 1 };
        assert_eq!(decided(known), Some(None));
        assert_eq!(decided(StoredHeads { newest: Some(head(10, "cc")), ..older }), None, "it went back");
    }
}
