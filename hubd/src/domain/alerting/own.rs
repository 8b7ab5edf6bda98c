//! Conditions that only the hub can find.
//!
//! In: facts that the store and the system give. Out: conditions. Deliberately absent: the database itself. A hub that
//! cannot write to it cannot raise an alert either; that is what the ping of an external address is for. The same for
//! certificates of hosts: their agents report them, and an incident from two sources would be sent twice.

use holdfast_protocol::condition::{ConditionCode, ReportedCondition, Subject, TokenName};
use holdfast_protocol::golden_builds::ComparedBuilds;
use holdfast_protocol::id::{HostId, JobId, ReceiverName};
use holdfast_protocol::release::VersionNumber;
use jiff::{SignedDuration, Timestamp};

/// An operator has a week to make another token.
const TOKEN_LEFT: SignedDuration = SignedDuration::from_hours(7 * 24);

/// A host reads its jobs with the next check-in; one that it has not answered for so long is stuck.
const JOB_WAITS: SignedDuration = SignedDuration::from_hours(1);

/// Less free room than this part of the disk is too little, and on a large disk less than [`DISK_FREE_ENOUGH`].
const DISK_FREE_PART: u64 = 10;

/// The database of ten thousand hosts and its copy fit into this, in bytes.
const DISK_FREE_ENOUGH: u64 = 4 << 30;

/// What the hub knows of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostFacts {
    pub host: HostId,
    /// Whether its identity was used twice.
    pub identity: IdentityUse,
    /// Since when its audit does not continue from what was seen of it.
    pub audit_broken_since: Option<Timestamp>,
    /// Signed jobs without an answer, and since when they wait.
    pub unanswered: Vec<(JobId, Timestamp)>,
}

/// By how many a host's identity is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentityUse {
    Single,
    /// The hub answers none of them.
    Twice,
}

/// What the hub knows of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HubFacts {
    /// The disk under its database, where it could be read.
    pub disk: Option<DiskRoom>,
    /// Tokens of operators, with their ends.
    pub tokens: Vec<(TokenName, Timestamp)>,
    /// Receivers that took no notice, since when, and why.
    pub failing: Vec<(ReceiverName, Timestamp, String)>,
    pub backup: BackupState,
    pub database: DatabaseState,
    pub settings: SettingsState,
    pub rollout: Option<HeldRollout>,
    /// Golden images of the same inputs, where hosts have different ones.
    pub differing_builds: Vec<ComparedBuilds>,
}

/// A rollout that waits for an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldRollout {
    pub number: u32,
    pub version: VersionNumber,
    pub since: Timestamp,
    pub reason: String,
}

/// What became of the last settings that were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SettingsState {
    /// They are in force.
    #[default]
    InForce,
    /// They were refused, and earlier ones are in force.
    Refused { since: Timestamp, why: String },
}

impl SettingsState {
    /// After settings were refused. Those in force are older since the first refusal.
    #[must_use]
    pub fn refused(before: &Self, why: String, now: Timestamp) -> Self {
        match before {
            Self::Refused { since, .. } => Self::Refused { since: *since, why },
            Self::InForce => Self::Refused { since: now, why },
        }
    }
}

/// What is known of the backups of the hub's own data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BackupState {
    /// The settings name no place for them.
    #[default]
    Unwatched,
    /// There is none.
    Missing { place: String },
    /// The place cannot be looked at.
    Unreadable { place: String, why: String },
    /// The newest one, and how old it may be.
    Newest { at: Timestamp, age_max: SignedDuration, place: String },
}

/// What the last check of the database found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DatabaseState {
    /// None ended yet.
    #[default]
    Unchecked,
    /// It is whole.
    Whole,
    /// It is not.
    Faulty { since: Timestamp, faults: Vec<String> },
}

impl DatabaseState {
    /// After a check. Faults that were found before hold since then.
    #[must_use]
    pub fn after(before: &Self, faults: Vec<String>, now: Timestamp) -> Self {
        match before {
            _ if faults.is_empty() => Self::Whole,
            Self::Faulty { since, .. } => Self::Faulty { since: *since, faults },
            Self::Unchecked | Self::Whole => Self::Faulty { since: now, faults },
        }
    }
}

/// Room on a disk, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskRoom {
    pub free: u64,
    pub total: u64,
}

/// What is wrong with a host.
#[must_use]
pub fn of_host(facts: &HostFacts, now: Timestamp) -> Vec<ReportedCondition> {
    let mut found = Vec::new();
    if let Some(since) = facts.audit_broken_since {
        let message = "its audit does not continue from what the hub has seen of it";
        found.push(ReportedCondition::new(ConditionCode::AuditChainBroken, Subject::Host {}, since, message));
    }
    if facts.identity == IdentityUse::Twice {
        let message = "two used the identity of this host; the hub answers neither";
        found.push(ReportedCondition::new(ConditionCode::HostFrozen, Subject::Host {}, now, message));
    }
    for (job, since) in &facts.unanswered {
        if now.duration_since(*since) > JOB_WAITS {
            let message = format!("the host has not answered signed job {job} since {since:.0}");
            let subject = Subject::Job { job: *job };
            found.push(ReportedCondition::new(ConditionCode::JobStalled, subject, *since, &message));
        }
    }
    found
}

/// What is wrong with the hub itself.
#[must_use]
pub fn of_hub(facts: &HubFacts, now: Timestamp) -> Vec<ReportedCondition> {
    let mut found = Vec::new();
    if let Some(DiskRoom { free, total }) = facts.disk
        && free < (total / DISK_FREE_PART).min(DISK_FREE_ENOUGH)
    {
        let message = format!("{} MiB of {} MiB are free under the hub's database", free >> 20, total >> 20);
        found.push(ReportedCondition::new(ConditionCode::HubDiskFull, Subject::Hub {}, now, &message));
    }
    if let Some(message) = backup_fault(&facts.backup, now) {
        found.push(ReportedCondition::new(ConditionCode::HubBackupOld, Subject::Hub {}, now, &message));
    }
    if let DatabaseState::Faulty { since, faults } = &facts.database {
        let message = format!("the hub's database is damaged: {}", faults.join("; "));
        let code = ConditionCode::HubDatabaseFailing;
        found.push(ReportedCondition::new(code, Subject::Hub {}, *since, &message));
    }
    if let SettingsState::Refused { since, why } = &facts.settings {
        let message = format!("the settings were read again and refused: {why}");
        let code = ConditionCode::HubSettingsRefused;
        found.push(ReportedCondition::new(code, Subject::Hub {}, *since, &message));
    }
    if let Some(HeldRollout { number, version, since, reason }) = &facts.rollout {
        let message = format!("rollout {number} of release {version} is held: {reason}");
        found.push(ReportedCondition::new(ConditionCode::RolloutHeld, Subject::Hub {}, *since, &message));
    }
    if !facts.differing_builds.is_empty() {
        let sets: Vec<String> = facts.differing_builds.iter().map(ComparedBuilds::sentence).collect();
        let message = format!("golden images of the same inputs differ: {}", sets.join("; and "));
        found.push(ReportedCondition::new(ConditionCode::GoldenDiffers, Subject::Hub {}, now, &message));
    }
    for (token, ends_at) in &facts.tokens {
        if ends_at.duration_since(now) < TOKEN_LEFT {
            let message = format!("the token of {} ends at {ends_at:.0}", token.as_str());
            let subject = Subject::Token { token: token.clone() };
            found.push(ReportedCondition::new(ConditionCode::TokenExpiring, subject, now, &message));
        }
    }
    for (receiver, since, why) in &facts.failing {
        let message = format!("{receiver} has taken no notice since {since:.0}: {why}");
        let subject = Subject::Receiver { receiver: receiver.clone() };
        found.push(ReportedCondition::new(ConditionCode::ReceiverFailing, subject, *since, &message));
    }
    found
}

fn backup_fault(backup: &BackupState, now: Timestamp) -> Option<String> {
    match backup {
        BackupState::Unwatched => None,
        BackupState::Missing { place } => Some(format!("there is no backup of the hub in {place}")),
        BackupState::Unreadable { place, why } => {
            Some(format!("it is not known how old the newest backup of the hub is: {place}: {why}"))
        }
        BackupState::Newest { at, age_max, place } => {
            let age = now.duration_since(*at);
            let hours = age.as_hours();
            (age > *age_max)
                .then(|| format!("the newest backup of the hub, in {place}, is {hours} hours old"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn at(hours: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + hours * 3_600).unwrap()
    }

    fn codes(found: &[ReportedCondition]) -> Vec<ConditionCode> {
        found.iter().map(|one| one.code).collect()
    }

    #[test]
    fn a_host_has_what_its_facts_say_and_nothing_else() {
        let well = HostFacts {
            host: HostId::new(Uuid::nil()),
            identity: IdentityUse::Single,
            audit_broken_since: None,
            unanswered: vec![(JobId::new(Uuid::nil()), at(-1))],
        };
        assert_eq!(of_host(&well, at(0)), []);
        let cases = [
            (HostFacts { audit_broken_since: Some(at(-3)), ..well.clone() }, ConditionCode::AuditChainBroken),
            (HostFacts { identity: IdentityUse::Twice, ..well.clone() }, ConditionCode::HostFrozen),
            (
                HostFacts { unanswered: vec![(JobId::new(Uuid::nil()), at(-2))], ..well },
                ConditionCode::JobStalled,
            ),
        ];
        for (facts, code) in cases {
            let found = of_host(&facts, at(0));
            assert_eq!(codes(&found), [code]);
            found[0].check().unwrap();
        }
    }

    fn newest(hours: i64) -> BackupState {
        let place = "/var/backups/hub".to_owned();
        BackupState::Newest { at: at(hours), age_max: SignedDuration::from_hours(30), place }
    }

    #[test]
    fn a_backup_that_is_not_there_or_not_seen_is_too_old() {
        let place = "/var/backups/hub".to_owned();
        let unreadable = BackupState::Unreadable { place: place.clone(), why: "no permission".to_owned() };
        for backup in [BackupState::Missing { place }, unreadable, newest(-99)] {
            let found = of_hub(&HubFacts { backup, ..HubFacts::default() }, at(0));
            assert_eq!(codes(&found), [ConditionCode::HubBackupOld]);
            found[0].check().unwrap();
        }
        // A clock that was set back makes no backup old.
        for backup in [BackupState::Unwatched, newest(9)] {
            assert_eq!(of_hub(&HubFacts { backup, ..HubFacts::default() }, at(0)), []);
        }
    }

    #[test]
    fn faults_of_the_database_hold_since_they_were_found_until_a_check_finds_none() {
        let faulty = |text: &str, before: &DatabaseState, hours| {
            DatabaseState::after(before, vec![text.to_owned()], at(hours))
        };
        let first = faulty("page 7", &DatabaseState::Unchecked, 0);
        let DatabaseState::Faulty { since, faults } = faulty("page 9", &first, 24) else { panic!() };
        assert_eq!((since, faults), (at(0), vec!["page 9".to_owned()]));
        assert_eq!(DatabaseState::after(&first, Vec::new(), at(24)), DatabaseState::Whole);
    }

    #[test]
    fn refused_settings_are_so_since_the_first_refusal_with_the_newest_reason() {
        let first = SettingsState::refused(&SettingsState::InForce, "a".to_owned(), at(0));
        let second = SettingsState::refused(&first, "b".to_owned(), at(9));
        assert_eq!(second, SettingsState::Refused { since: at(0), why: "b".to_owned() });
    }

    #[test]
    fn the_hub_has_what_its_facts_say_and_nothing_else() {
        let token = TokenName::try_from("eve".to_owned()).unwrap();
        let well = HubFacts {
            disk: Some(DiskRoom { free: DISK_FREE_ENOUGH, total: u64::MAX }),
            tokens: vec![(token.clone(), at(7 * 24))],
            failing: Vec::new(),
            backup: newest(-30),
            database: DatabaseState::Whole,
            settings: SettingsState::InForce,
            rollout: None,
            differing_builds: Vec::new(),
        };
        assert_eq!(of_hub(&well, at(0)), []);
        let ill = HubFacts {
            disk: Some(DiskRoom { free: 99, total: 1000 }),
            tokens: vec![(token, at(167))],
            failing: vec![("ops".parse().unwrap(), at(-1), "it refuses the password".to_owned())],
            backup: newest(-31),
            database: DatabaseState::after(&DatabaseState::Whole, vec!["page 7".to_owned()], at(-2)),
            settings: SettingsState::refused(&SettingsState::InForce, "a file is gone".to_owned(), at(-1)),
            rollout: Some(HeldRollout {
                number: 3,
                version: VersionNumber::new(2026, 12, 1),
                since: at(-1),
                reason: "of the 45 hosts of wave 2 3 failed, where 2 may".to_owned(),
            }),
            differing_builds: vec![ComparedBuilds {
                inputs_sha256: "0a".repeat(32).try_into().unwrap(),
                archives: Vec::new(),
            }],
        };
        let found = of_hub(&ill, at(0));
        let all = [
            ConditionCode::HubDiskFull,
            ConditionCode::HubBackupOld,
            ConditionCode::HubDatabaseFailing,
            ConditionCode::HubSettingsRefused,
            ConditionCode::RolloutHeld,
            ConditionCode::GoldenDiffers,
            ConditionCode::TokenExpiring,
            ConditionCode::ReceiverFailing,
        ];
        assert_eq!(codes(&found), all);
        found.iter().for_each(|one| one.check().unwrap());
    }
}
