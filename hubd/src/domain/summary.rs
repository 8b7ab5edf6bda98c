//! The parts of a report that the host list shows.
//!
//! Each part is present only when its section is: what did not change keeps its count.

use holdfast_protocol::generation::Generation;
use holdfast_protocol::operator::Degraded;
use holdfast_protocol::protection::Posture;
use holdfast_protocol::report::{AgentSection, AuditHead, GuestReport, GuestStatus, Running, Sections};

/// Counts out of the guests section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GuestCounts {
    /// Guests that are ours.
    pub guests: u32,
    /// Of these, how many run.
    pub running: u32,
    /// Guests that need a person.
    pub attention: u32,
}

/// What the host list shows of the agent's own section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentSummary {
    pub version: String,
    /// How many problems it reports.
    pub problems: u32,
    /// Since when it has not seen Proxmox, and why.
    pub degraded: Option<Degraded>,
}

impl AgentSummary {
    fn of(agent: &AgentSection) -> Self {
        let reason = || match agent.problems.first() {
            Some(problem) => problem.to_string().chars().take(REASON_MAX).collect(),
            None => "it does not say why".to_owned(),
        };
        Self {
            version: agent.version.chars().take(VERSION_MAX).collect(),
            problems: clamp(agent.problems.len()),
            degraded: agent.unobserved_since.map(|since| Degraded {
                since,
                condition: None,
                reason: reason(),
            }),
        }
    }
}

/// Characters that are kept of what an agent says.
const VERSION_MAX: usize = 64;
const REASON_MAX: usize = 300;

/// The parts of the summary that a report changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// What the agent says of itself.
    pub agent: Option<AgentSummary>,
    /// Counts of guests.
    pub guests: Option<GuestCounts>,
    /// How many things wait for a signature.
    pub waiting: Option<u32>,
    /// What the agent says of the desired document: the outer is whether it said anything, the inner what it refused.
    pub refused: Option<Option<Generation>>,
    /// The end of its audit.
    pub audit: Option<AuditHead>,
}

impl Summary {
    /// Takes a report together.
    #[must_use]
    pub fn of(sections: &Sections) -> Self {
        Self {
            agent: sections.agent.as_ref().map(AgentSummary::of),
            guests: sections.guests.as_deref().map(count),
            waiting: sections.waiting.as_ref().map(|waiting| clamp(waiting.len())),
            refused: sections.desired.as_ref().map(|desired| {
                desired.refused.as_ref().map(|refused| refused.generation.unwrap_or(Generation::NONE))
            }),
            audit: sections.trust.as_ref().map(|trust| trust.audit.clone()),
        }
    }
}

fn count(guests: &[GuestReport]) -> GuestCounts {
    let mut counts = GuestCounts::default();
    for guest in guests {
        // A guest that does not exist yet is ours, too: it is wanted. A restored copy is no further guest.
        let ours = !matches!(guest.status, GuestStatus::Foreign | GuestStatus::RestoredCopy);
        counts.guests += u32::from(ours);
        counts.running += u32::from(ours && guest.run == Running::Running);
        counts.attention += u32::from(needs_a_person(guest));
    }
    counts
}

/// Foreign guests count only when they obstruct something of ours; the agent reports that with a condition. The agent's
/// posture says whether a guest's backups protect it; an unknown posture comes with its cause.
fn needs_a_person(guest: &GuestReport) -> bool {
    match guest.status {
        GuestStatus::Missing | GuestStatus::Broken | GuestStatus::Parked => true,
        GuestStatus::Managed
        | GuestStatus::Unmanaged
        | GuestStatus::Absent
        | GuestStatus::Foreign
        | GuestStatus::RestoredCopy => !guest.conditions.is_empty() || protection_lacks(guest),
    }
}

fn protection_lacks(guest: &GuestReport) -> bool {
    let posture = guest.protection.as_deref().and_then(|report| report.posture.as_ref());
    posture.is_some_and(|posture| match posture.is {
        Posture::Unprotected | Posture::Attention => true,
        Posture::Unknown | Posture::Protected => false,
    })
}

fn clamp(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_protocol::code::ErrorCode;
    use holdfast_protocol::envelope::ErrorBody;
    use holdfast_protocol::protection::{PostureReport, ProtectionReport};
    use holdfast_protocol::report::Condition;

    fn guest(status: GuestStatus, run: Running) -> GuestReport {
        GuestReport {
            uid: None,
            customer: None,
            name: "web".to_owned(),
            vmid: None,
            former_vmids: Vec::new(),
            status,
            run,
            unknown_since: None,
            run_as_of: None,
            configuration_as_of: None,
            wanted: None,
            size: None,
            limits: None,
            address: None,
            address_filter: None,
            levels: None,
            lock: None,
            volumes: Vec::new(),
            golden: None,
            golden_built_at: None,
            root_disk_data: None,
            controller: None,
            protection: None,
            conditions: Vec::new(),
            fields: Vec::new(),
        }
    }

    #[test]
    fn only_what_is_reported_is_counted() {
        assert_eq!(Summary::of(&Sections::default()), Summary::default());
        let mut troubled = guest(GuestStatus::Managed, Running::Stopped);
        troubled.conditions.push(Condition { code: ErrorCode::Locked, message: "locked".to_owned() });
        let guests = vec![
            guest(GuestStatus::Managed, Running::Running),
            guest(GuestStatus::Foreign, Running::Running),
            guest(GuestStatus::Parked, Running::Unknown),
            troubled,
        ];
        let summary = Summary::of(&Sections { guests: Some(guests), ..Sections::default() });
        assert_eq!(summary.guests, Some(GuestCounts { guests: 3, running: 1, attention: 2 }));
        assert_eq!((summary.agent, summary.waiting, summary.refused), (None, None, None));
    }

    #[test]
    fn an_agent_that_cannot_see_proxmox_is_degraded_with_its_first_problem() {
        let section = |since: Option<jiff::Timestamp>| AgentSection {
            version: "0.1.0".to_owned(),
            started_at: jiff::Timestamp::UNIX_EPOCH,
            problems: vec![
                ErrorBody::new(ErrorCode::Unavailable, "Proxmox cannot be asked"),
                ErrorBody::new(ErrorCode::Unavailable, "another"),
            ],
            unobserved_since: since,
            recipient: None,
            builds: None,
            maintenance: None,
            tunnels: Vec::new(),
        };
        let since = Some(jiff::Timestamp::UNIX_EPOCH);
        let of = AgentSummary::of(&section(since));
        assert_eq!(of.problems, 2);
        let degraded = of.degraded.unwrap();
        assert!(Some(degraded.since) == since && degraded.reason.contains("Proxmox cannot be asked"));
        assert_eq!(AgentSummary::of(&section(None)).degraded, None);
    }

    /// A host full of guests without a policy needs an operator.
    #[test]
    fn a_guest_that_its_backups_do_not_protect_needs_a_person() {
        let count = |is| {
            let mut guest = guest(GuestStatus::Managed, Running::Running);
            let posture = Some(PostureReport::because(is, "as the story wants it"));
            guest.protection = Some(Box::new(ProtectionReport { posture, ..ProtectionReport::default() }));
            super::count(&[guest]).attention
        };
        let all = [Posture::Unprotected, Posture::Unknown, Posture::Attention, Posture::Protected];
        assert_eq!(all.map(count), [1, 0, 1, 0]);
    }
}
