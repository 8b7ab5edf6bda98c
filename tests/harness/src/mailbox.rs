//! Signed jobs in the mailbox of a story of the whole agent.
//!
//! In: orders of the operators. Out: the same texts in every life, as a hub passes them on until it has a report of
//! them; and whether each was taken once and came to its end. The intake is the agent's own.

use agentd::operation::log::Status;
use agentd::port::store::Store;
use agentd::port::store::audit::AuditLine;
use agentd::port::store::job_intake::{Outcome, take};
use agentd::port::store::roster::RosterTexts;
use holdfast_protocol::id::{HostId, JobId, OperationId};
use holdfast_protocol::job::act::{ArchiveText, args};
use holdfast_protocol::job::{Act, JobState, Payload, QueuedJob, SeenHost, Target, UtcSecond};
use jiff::SignedDuration;

use crate::signer::{Signer, signed};
use crate::world::World;

/// The host of every story.
const HOST: u128 = 0x0190_6f3c_6b1f_7c1d_9d0a_2f6d_1c0b_7a02;

#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// The act, given the world before it.
    pub act: fn(&World) -> Act,
    pub target: fn() -> Target,
    /// How the job ends.
    pub end: JobState,
}

/// The id of the order with this place.
#[must_use]
pub fn id(nth: usize) -> JobId {
    JobId::new(uuid::Uuid::from_u128((0x0195_0000_0000_7000_8000 << 48) | nth as u128))
}

fn ada() -> Signer {
    Signer::of("ada", 1)
}

fn texts(version: u32) -> RosterTexts {
    RosterTexts { operators: ada().line(""), policy: format!("version = {version}\n") }
}

/// The same operators under a policy by which documents may make one guest a day.
#[must_use]
pub fn one_guest_a_day() -> RosterTexts {
    RosterTexts {
        operators: ada().line(""),
        policy: "version = 1\n[growth]\nguests_per_day = 1\n".to_owned(),
    }
}

/// The same operators under the policy of a version.
#[must_use]
pub fn policy(version: u32) -> Act {
    let RosterTexts { operators, policy } = texts(version);
    Act::PolicyUpdate(args::PolicyUpdate { signers: operators, policy })
}

/// The first backup of guest 1.
#[must_use]
pub fn archive_of_guest_1(world: &World) -> ArchiveText {
    let scene = world.scene();
    let name = scene.archives.keys().find_map(|name| name.strip_prefix("backup2:vzdump-lxc-300-"));
    format!("backup2:backup/vzdump-lxc-300-{}", name.unwrap()).try_into().unwrap()
}

/// The files that root wrote, as at each start.
pub async fn lay_down(world: &World, store: &Store) -> Result<(), String> {
    store.lay_down(texts(1), world.timeline.now()).await.map(drop).map_err(|error| error.to_string())
}

/// The text of an order: the same in every life, as it was signed when the story began.
pub async fn letter(world: &World, store: &Store, nth: usize, order: &Order) -> QueuedJob {
    let begun = world.timeline.began();
    let payload = Payload {
        job_id: id(nth),
        host_id: HostId::new(uuid::Uuid::from_u128(HOST)),
        host_epoch: store.trust_state().await.unwrap().epoch,
        host: Some(own()),
        target: (order.target)(),
        act: (order.act)(world),
        not_before: UtcSecond::new(begun).unwrap(),
        expires_at: UtcSecond::new(begun.checked_add(SignedDuration::from_hours(23)).unwrap()).unwrap(),
        nonce: format!("{:032x}", (1_u128 << 100) | nth as u128).try_into().unwrap(),
        reason: "a story".to_owned().try_into().unwrap(),
    };
    QueuedJob { id: id(nth), blob: signed(&payload, &[&ada()]), correlation_id: None }
}

/// The host as it knows itself.
#[must_use]
pub fn own() -> SeenHost {
    SeenHost { name: "box1".parse().unwrap(), fingerprint: "4f2a-9c01-77de-b3a8-0c11".parse().unwrap() }
}

/// Passes one letter on.
pub async fn pass_on(world: &World, store: &Store, letter: &QueuedJob) -> Result<Outcome, String> {
    let host = HostId::new(uuid::Uuid::from_u128(HOST));
    take(store, (host, &own()), letter, world.timeline.now()).await.map_err(|error| error.to_string())
}

/// Whether a job is still to come to its end.
pub async fn is_under_way(store: &Store, nth: usize) -> bool {
    let reports = store.job_reports().await.unwrap();
    reports.iter().any(|job| job.id == id(nth) && !job.state.is_end())
}

/// Whether its operation was left to an operator: the job cannot be done by such an end. The story decides whether it
/// may be left so.
async fn was_parked(store: &Store, job: JobId) -> bool {
    let operation = store.operation(OperationId::new(job.uuid())).await.unwrap();
    operation.is_some_and(|operation| operation.status() == Status::Parked)
}

/// The audit action that records a job's end.
const fn line_of(end: JobState) -> &'static str {
    match end {
        JobState::Cancelled => "job_cancelled",
        JobState::Failed => "job_failed",
        _ => "job_done",
    }
}

/// Each job was taken once and ended as it should, and the same text again is known and changes nothing.
pub async fn judge(
    world: &World,
    store: &Store,
    orders: &[Order],
    letters: &[QueuedJob],
) -> Result<(), String> {
    for (nth, (order, letter)) in orders.iter().zip(letters).enumerate() {
        match pass_on(world, store, letter).await? {
            Outcome::Known => {}
            other => return Err(format!("job {nth} again is {other:?}")),
        }
        let reports = store.job_reports().await.unwrap();
        let found: Vec<JobState> =
            reports.iter().filter(|job| job.id == id(nth)).map(|job| job.state).collect();
        let end = if was_parked(store, id(nth)).await { JobState::Failed } else { order.end };
        if found != [end] {
            return Err(format!("job {nth} ended {found:?}, not {end:?}"));
        }
        let lines = store.audit(u32::MAX).await.map_err(|error| error.to_string())?;
        for action in ["job_taken", line_of(end)] {
            let of = |line: &&AuditLine| {
                line.action == action && line.operation.as_deref() == Some(id(nth).to_string().as_str())
            };
            let times = lines.iter().filter(of).count();
            // A cancel is taken and done in one stroke, with one line.
            let cancels = matches!((order.act)(world), Act::Cancel(_)) && action == "job_done";
            if times != usize::from(!cancels) {
                return Err(format!("job {nth}: {times} lines say {action}"));
            }
        }
    }
    Ok(())
}
