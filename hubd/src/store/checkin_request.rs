//! A check-in as the store takes it.

use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::CorrelationId;
use holdfast_protocol::job::JobReport;
use holdfast_protocol::work_order::{DiagnosticText, WorkOrderReport};
use jiff::Timestamp;

use crate::domain::alerting::ReportedConditions;
use crate::domain::identity::Presented;
use crate::domain::merge::IncomingReport;
use crate::domain::summary::Summary;

#[derive(Clone, Debug)]
pub struct Checkin {
    /// The certificate it came with.
    pub presented: Presented,
    /// Coverage, run and sequence of the report.
    pub arriving: IncomingReport,
    /// What the host holds.
    pub held: Generation,
    pub sections: SectionTexts,
    /// What of it the list shows.
    pub summary: Summary,
    /// What is wrong with the host, and what its guests are called, where that changed.
    pub conditions: ReportedConditions,
    /// What the host says of signed jobs, where that changed.
    pub jobs: Vec<JobReport>,
    /// What the host says of work orders, where that changed.
    pub orders: Vec<WorkOrderReport>,
    /// The text of a reading that was ordered.
    pub diagnostic: Option<DiagnosticText>,
    pub at: Timestamp,
    /// The correlation id of the request.
    pub correlation: CorrelationId,
}

/// The sections of a report, each as JSON text. `None` is unchanged.
#[derive(Clone, Debug, Default)]
pub struct SectionTexts {
    /// The agent itself.
    pub agent: Option<String>,
    pub host: Option<String>,
    /// What the agent holds.
    pub desired: Option<String>,
    pub guests: Option<String>,
    pub operations: Option<String>,
    pub waiting: Option<String>,
    /// The roster that it follows.
    pub trust: Option<String>,
    pub jobs: Option<String>,
    pub storage: Option<String>,
    /// What is wrong, as the agent finds it.
    pub conditions: Option<String>,
    /// Disks, temperatures and memory errors.
    pub hardware: Option<String>,
    /// Pending upgrades of the host.
    pub updates: Option<String>,
}

impl SectionTexts {
    /// Whether nothing changed.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.agent.is_none()
            && self.host.is_none()
            && self.desired.is_none()
            && self.guests.is_none()
            && self.operations.is_none()
            && self.waiting.is_none()
            && self.trust.is_none()
            && self.jobs.is_none()
            && self.storage.is_none()
            && self.conditions.is_none()
            && self.hardware.is_none()
            && self.updates.is_none()
    }

    /// The length of all of them.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let Self {
            agent,
            host,
            desired,
            guests,
            operations,
            waiting,
            trust,
            jobs,
            storage,
            conditions,
            hardware,
            updates,
        } = self;
        let texts = [
            agent, host, desired, guests, operations, waiting, trust, jobs, storage, conditions, hardware,
            updates,
        ];
        texts.into_iter().flatten().map(String::len).sum()
    }
}
