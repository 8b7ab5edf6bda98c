//! The queue of escrow notices to customers.

use async_trait::async_trait;
use holdfast_protocol::id::{CorrelationId, CustomerId, HostId, JobId};
use jiff::{SignedDuration, Timestamp};

use super::{StoreError, Term, duty};
use crate::domain::event::EventKind;

/// Notices of jobs to one customer within [`JOB_NOTICES_WITHIN`].
pub const JOB_NOTICES_MAX: u32 = 60;

/// How long these are counted.
pub const JOB_NOTICES_WITHIN: SignedDuration = SignedDuration::from_hours(1);

/// What operators read when there are more.
#[must_use]
pub fn too_many_notices(customer: &CustomerId, job: JobId) -> String {
    format!(
        "{customer} is not notified of job {job}: they had {JOB_NOTICES_MAX} notices of jobs within an hour. Notify them by other means"
    )
}

/// What a notice is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoticeSubject {
    /// A read of a wrapped key.
    EscrowRead,
    /// A destructive job that waits.
    Job,
}

/// A notice that is to be sent.
#[derive(Clone, Debug)]
pub struct OutgoingNotice {
    pub number: u64,
    /// What it is about.
    pub subject: NoticeSubject,
    /// When that was.
    pub at: Timestamp,
    /// Whom it is for.
    pub customer: CustomerId,
    /// On which host.
    pub host: HostId,
    /// The correlation id of the request.
    pub correlation: CorrelationId,
    /// The bytes to send.
    pub body: String,
}

/// What became of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeEnd {
    /// The receiver took it.
    Sent,
    /// Its receiver did not accept it before its time was over.
    GivenUp,
}

/// Notices about reads of wrapped keys.
#[async_trait]
pub trait EscrowNotices: Send + Sync {
    /// For each customer the oldest notice to send: a customer who cannot be reached delays no other.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn open_notices(&self) -> Result<Vec<OutgoingNotice>, StoreError>;

    /// Writes down what became of a notice.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn notice_ended(
        &self,
        term: &Term<duty::EscrowNotices>,
        notice: &OutgoingNotice,
        end: NoticeEnd,
        at: Timestamp,
    ) -> Result<(), StoreError>;
}

/// The event to record when a notice ended. The contact is for operators, who notify the customer themselves.
#[must_use]
pub fn ended_event(
    subject: NoticeSubject,
    end: NoticeEnd,
    number: u64,
    customer: &CustomerId,
    contact: Option<&str>,
) -> (EventKind, String) {
    let what = match subject {
        NoticeSubject::EscrowRead => "the read",
        NoticeSubject::Job => "the job",
    };
    match end {
        NoticeEnd::Sent => {
            (EventKind::NoticeSent, format!("{customer} was notified of {what} (notice {number})"))
        }
        NoticeEnd::GivenUp => {
            let contact = contact.map_or_else(String::new, |contact| format!(" ({contact})"));
            let said = format!("{customer} could not be notified of {what} (notice {number})");
            (EventKind::NoticeGivenUp, format!("{said}: notify them by other means{contact}"))
        }
    }
}
