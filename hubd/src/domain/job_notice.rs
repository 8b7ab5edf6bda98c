//! Notices to customers about destructive jobs.
//!
//! In: a host's report on a signed job, and what was known before. Out: the notice to the guest's customer, where the job
//! is destructive and waits for the end of its delay. Deliberately absent: delivery.

use holdfast_protocol::id::{CustomerId, HostName};
use holdfast_protocol::job::{JobReport, JobState, Verb};
use holdfast_protocol::objection::{JobNotice, JobNoticeSchema};
use jiff::Timestamp;

/// Whether a job may take data, or the protection of it, from a guest.
#[must_use]
pub const fn is_destructive(verb: Verb) -> bool {
    match verb {
        Verb::DeleteBackup
        | Verb::DestroyGuest
        | Verb::DiscardCopy
        | Verb::LoosenPolicy
        | Verb::ReassignVolume
        | Verb::RebaseGuest
        | Verb::Restore
        | Verb::Rollback
        | Verb::SwapGuest => true,
        Verb::AdoptGuest
        | Verb::AllowGrowth
        | Verb::ApproveRelease
        | Verb::AttachStorage
        | Verb::BackupNow
        | Verb::BreakGlass
        | Verb::Cancel
        | Verb::DetachStorage
        | Verb::PolicyUpdate
        | Verb::ReleaseBrake
        | Verb::RestoreHost
        | Verb::RestoreTest
        | Verb::SetTunnelToken
        | Verb::WithdrawRestore => false,
    }
}

/// The notice that a report calls for: once, when the job begins to wait.
#[must_use]
pub fn notice(
    before: Option<JobState>,
    report: &JobReport,
    host: &HostName,
    customer: &CustomerId,
    at: Timestamp,
) -> Option<JobNotice> {
    let (verb, guest) = (report.verb?, report.guest?);
    if report.state != JobState::Waiting || before == Some(JobState::Waiting) || !is_destructive(verb) {
        return None;
    }
    let when = match report.due_at {
        Some(due) => format!("after {due:.0}"),
        None => "soon".to_owned(),
    };
    let (what, job) = (verb.as_str(), report.id);
    let text = format!(
        "A signed job ({what}) waits for guest {guest} on {host} and is done {when}. Object with `holdfast job object \
         {job}`: operators see it, and one of them can sign a cancel. An objection alone does not stop the job."
    );
    let (schema, host, customer) = (JobNoticeSchema::V1, host.clone(), customer.clone());
    Some(JobNotice { schema, customer, at, job, verb, host, guest, due_at: report.due_at, text })
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_protocol::id::{GuestUid, JobId};
    use uuid::Uuid;

    #[test]
    fn a_destructive_job_that_begins_to_wait_is_notified_once() {
        let at = Timestamp::from_second(1_700_000_000).unwrap();
        let report = |verb, state| JobReport {
            id: JobId::new(Uuid::from_u128(1)),
            blob: String::new(),
            state,
            verb: Some(verb),
            guest: Some(GuestUid::new(Uuid::from_u128(2))),
            signers: Vec::new(),
            taken_at: at,
            due_at: Some(at),
            ended_at: None,
            operation: None,
            problem: None,
            correlation_id: None,
        };
        let (host, customer) = ("box7".parse().unwrap(), "acme".parse().unwrap());
        use JobState::{Refused, UnderWay, Waiting};
        let table = [
            (None, Verb::DestroyGuest, Waiting, true),
            (Some(Refused), Verb::DestroyGuest, Waiting, true),
            (Some(Waiting), Verb::DestroyGuest, Waiting, false),
            (None, Verb::DestroyGuest, UnderWay, false),
            (None, Verb::BackupNow, Waiting, false),
        ];
        for (before, verb, state, wanted) in table {
            let made = notice(before, &report(verb, state), &host, &customer, at);
            assert_eq!(made.is_some(), wanted, "{before:?} {verb:?} {state:?}");
        }
    }
}
