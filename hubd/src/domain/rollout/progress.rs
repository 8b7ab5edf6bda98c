//! Where one host of a rollout is.
//!
//! In: the last report of the host, and what the rollout wants. Out: its progress. Deliberately absent: time-outs, which
//! belong to the wave.

use holdfast_protocol::condition::{ReportedCondition, Severity};
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::release::VersionNumber;
use holdfast_protocol::report::AgentBuilds;
use jiff::Timestamp;

/// Where a host is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It has not taken the release.
    Waiting,
    /// It is not heard of, whatever it said before.
    Silent,
    /// It runs the release, or a newer one.
    Done,
    /// Why, in one sentence.
    Failed(String),
    /// It was revoked.
    Gone,
}

/// What a rollout wants of its hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub version: VersionNumber,
    /// SHA-256 of the manifest of the edition that is here. `None` where the release is here no more.
    pub manifest: Option<Sha256Text>,
}

/// Whether the hub hears of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contact {
    Heard,
    Silent,
    Revoked,
}

/// What a host reported last.
#[derive(Clone, Debug)]
pub struct HostReport {
    pub contact: Contact,
    /// When its agent started, by its own clock.
    pub started_at: Option<Timestamp>,
    /// The version of the agent that runs, however it came there.
    pub running: Option<VersionNumber>,
    pub builds: AgentBuilds,
    pub conditions: Vec<ReportedCondition>,
}

impl HostReport {
    /// A package that brought the version, or a newer one, is as good as a build in a slot. A build on trial is neither.
    fn has_taken(&self, target: &Target) -> bool {
        let by_package = self.running.filter(|_| self.running != self.builds.trial);
        [self.builds.confirmed, by_package].into_iter().flatten().any(|version| version >= target.version)
    }
}

/// The start of the agent that the release brought, by the host's clock: conditions are compared with it. It is kept
/// once, so that later starts do not excuse what began before them.
#[must_use]
pub fn taken_at(target: &Target, report: &HostReport, kept: Option<Timestamp>) -> Option<Timestamp> {
    kept.or_else(|| report.started_at.filter(|_| report.has_taken(target)))
}

/// Judges a host.
#[must_use]
pub fn progress(target: &Target, report: &HostReport, taken_at: Option<Timestamp>) -> Progress {
    match report.contact {
        Contact::Revoked => return Progress::Gone,
        Contact::Silent => return failed(target, report).map_or(Progress::Silent, Progress::Failed),
        Contact::Heard => {}
    }
    if !report.has_taken(target) {
        return failed(target, report).map_or(Progress::Waiting, Progress::Failed);
    }
    match taken_at.and_then(|at| critical_since(&report.conditions, at)) {
        Some(condition) => {
            let (code, message) = (condition.code, condition.message.as_str());
            Progress::Failed(format!("{code} since the update: {message}"))
        }
        None => Progress::Done,
    }
}

/// Why the host did not keep this edition of the release.
fn failed(target: &Target, report: &HostReport) -> Option<String> {
    if report.has_taken(target) {
        return None;
    }
    let manifest = target.manifest.as_ref()?;
    if let Some(failed) = report.builds.failed.as_ref().filter(|failed| failed.manifest_sha256 == *manifest) {
        return Some(failed.why.clone());
    }
    let refused = report.builds.refused.as_ref();
    let refused = refused.filter(|refused| refused.manifest_sha256.as_ref() == Some(manifest))?;
    Some(format!("{}: {}", refused.code, refused.why))
}

/// A critical condition of the host or of a guest that began after the update.
fn critical_since(conditions: &[ReportedCondition], at: Timestamp) -> Option<&ReportedCondition> {
    let new = conditions.iter().filter(|one| one.severity == Severity::Critical && one.since >= at);
    new.min_by_key(|one| one.since)
}
