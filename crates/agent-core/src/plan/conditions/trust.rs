//! Conditions of signatures, signed jobs and certificates.

use std::collections::BTreeMap;

use holdfast_protocol::condition::{CertificateUse, ConditionCode, Subject};
use holdfast_protocol::enrol::CERTIFICATE_LATE;
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::job::{JobReport, JobState};
use holdfast_protocol::report::WaitingForSignature;
use jiff::{SignedDuration, Timestamp};

use super::{Finding, HostKnowledge, Names};
use crate::model::limits;
use crate::model::token_age::TokenAge;

pub(super) fn all(known: &HostKnowledge<'_>) -> Vec<Finding> {
    let mut found = signatures(known);
    found.extend(known.view.facts.braked.iter().map(|held| {
        let message = format!("{}: {}", held.effect, held.reason);
        Finding::new(ConditionCode::BulkChangeHeld, Subject::Host {}, message)
    }));
    found.extend(known.jobs.iter().filter_map(|job| stalled(job, known.now)));
    found.extend(certificate(known.certificate_ends_at, known.now));
    found.extend(old_token(known.token_ages, known.wall));
    found
}

/// One for each guest, and one for the host. What no signature helps with is left out, and so is the held bulk change,
/// which has a code of its own.
fn signatures(known: &HostKnowledge<'_>) -> Vec<Finding> {
    let (names, braked) = (Names::of(known.view), known.view.facts.braked.as_ref());
    let mut by_guest: BTreeMap<Option<GuestUid>, Vec<&WaitingForSignature>> = BTreeMap::new();
    let waiting = known.view.waiting.iter().chain(&known.storage.waiting);
    for one in waiting.filter(|one| !one.payload.is_empty() && Some(*one) != braked) {
        by_guest.entry(one.guest).or_default().push(one);
    }
    let finding = |(guest, waiting): (Option<GuestUid>, Vec<&WaitingForSignature>)| {
        let first = waiting.first()?;
        let more = match waiting.len() {
            1 => String::new(),
            count => format!("; {} more wait", count - 1),
        };
        let what = format!("{}: {}{more}", first.effect, first.reason);
        let (subject, message) = match guest {
            Some(uid) => (Subject::Guest { uid }, format!("{}: {what}", names.name(uid))),
            None => (Subject::Host {}, what),
        };
        Some(Finding::new(ConditionCode::NeedsSignature, subject, message))
    };
    by_guest.into_iter().filter_map(finding).collect()
}

/// A job stalls once it is under way, or waits after its delay, for longer than an operation usually takes.
fn stalled(job: &JobReport, now: Timestamp) -> Option<Finding> {
    let usual = SignedDuration::from_secs(limits::LONG_S.cast_signed());
    let from = match job.state {
        JobState::Waiting | JobState::UnderWay => job.due_at.unwrap_or(job.taken_at).max(job.taken_at),
        JobState::Refused | JobState::Done | JobState::Failed | JobState::Cancelled => return None,
    };
    let since = from.checked_add(usual).ok().filter(|since| now > *since)?;
    let what = job.verb.map_or("a signed job", |verb| verb.as_str());
    let message = format!("{what} (job {}) is {} since {from:.0}", job.id, job.state.as_str());
    Some(Finding::new(ConditionCode::JobStalled, Subject::Job { job: job.id }, message).since(since))
}

/// The certificate for guests has no end that counts: they pin it.
fn certificate(ends_at: Timestamp, now: Timestamp) -> Option<Finding> {
    let since = ends_at.checked_sub(CERTIFICATE_LATE).ok().filter(|since| now >= *since)?;
    let message = format!("the certificate that this host shows to the hub ends at {ends_at:.0}");
    let subject = Subject::Certificate { of: CertificateUse::Host };
    Some(Finding::new(ConditionCode::CertificateExpiring, subject, message).since(since))
}

/// By the wall clock, as the times of files are. One for all: the same service renews them.
fn old_token(ages: &[TokenAge], now: Timestamp) -> Option<Finding> {
    let late = ages.iter().filter_map(|age| Some((age.late_since(now)?, age)));
    let (since, age) = late.min_by_key(|(since, _)| *since)?;
    let message = format!(
        "the `{}` token for Proxmox is of {:.0} and should be renewed every {} days",
        age.role, age.made_at, age.renewed_after_days
    );
    Some(Finding::new(ConditionCode::ProxmoxTokenOld, Subject::Host {}, message).since(since))
}
