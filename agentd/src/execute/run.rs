//! One operation, run to its end.

use std::time::Duration;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;

use super::Ports;
use super::context::{Context, Entry, StepOutput};
use super::failpoint::{Killed, Moment, Point, Side};
use super::slots::HeavyPlace;
use super::trouble::{StepError, StepRecovery};
use super::undo;
use crate::model::view::{HeavyWork, SlotRequest};
use crate::operation::log::{AfterFailure, Event, Finding, Status};
use crate::operation::progress::{OperationState, then};
use crate::operation::step::{Exhausted, Step, Weight};
use crate::port::store::journal::AppendError;

/// An undo is tried this often when Proxmox answers but it does not work; then it is left for a person.
const UNDO_TRIES: u32 = 10;

/// The operation stays at its journal's state; a later run continues from there.
#[derive(Debug, thiserror::Error)]
pub enum Stopped {
    /// The journal could not be written.
    #[error("the operation stops where it stands: its journal cannot be written")]
    Journal(#[from] AppendError),
    /// A test stopped the world.
    #[error(transparent)]
    Killed(#[from] Killed),
}

/// One operation under way.
pub(super) struct Run<'a> {
    pub(super) ports: &'a Ports,
    pub(super) progress: OperationState,
    /// The place for heavy work, from one heavy step to the next.
    pub(super) place: Option<HeavyPlace>,
}

/// Brings an operation to its end, from the current state of its journal.
///
/// # Errors
/// [`Stopped`] when its journal cannot be written any more.
pub async fn run(ports: &Ports, progress: OperationState) -> Result<OperationState, Stopped> {
    let id = progress.id;
    sit_down(ports, std::iter::once(&progress));
    let end = match ports.of(&progress.operation) {
        Some(ports) => to_its_end(&ports, progress).await,
        None => without_token(ports, progress).await,
    };
    ports.heavy.leave(id);
    ports.lines.send_modify(|lines| {
        lines.remove(&id);
    });
    end
}

/// Gives slots to the operations that were at heavy work when the agent was restarted, before any of them continues.
pub fn sit_down<'a>(ports: &Ports, open: impl Iterator<Item = &'a OperationState>) {
    for token in open.filter_map(at_work) {
        ports.heavy.sit_down(token);
    }
}

/// The slot of an operation in heavy work: Proxmox works for it, or an earlier step took the slot for this one.
fn at_work(progress: &OperationState) -> Option<SlotRequest> {
    let (Status::Before(place) | Status::During(place)) = progress.status() else { return None };
    let work = work(progress.step(place)?)?;
    let before = place.checked_sub(1).and_then(|before| progress.step(before)).and_then(self::work);
    let begun = progress.upid(place).is_some() || before == Some(work);
    begun.then(|| token(progress, work))
}

fn token(progress: &OperationState, work: HeavyWork) -> SlotRequest {
    SlotRequest { opened_at: progress.opened_at, operation: progress.id, work }
}

/// What a step needs a place for.
const fn work(step: Step) -> Option<HeavyWork> {
    match step.facts().weight {
        Weight::Light => None,
        Weight::Heavy => Some(HeavyWork::Archive),
        Weight::Backup => Some(HeavyWork::Backup),
    }
}

/// The token was removed from the settings while this operation was open.
async fn without_token(ports: &Ports, progress: OperationState) -> Result<OperationState, Stopped> {
    let mut run = Run { ports, progress, place: None };
    let remedy = run.progress.vmid().map_or_else(
        || "agentd parked forget".to_owned(),
        |vmid| format!("pct stop {vmid}; pct destroy {vmid}"),
    );
    let text = "it needs the `scratch` token, which the settings do not name any more";
    let problem = ErrorBody::new(ErrorCode::Unavailable, text);
    run.park(StepError { problem, next: StepRecovery::Park(remedy) }).await?;
    Ok(run.progress)
}

async fn to_its_end(ports: &Ports, progress: OperationState) -> Result<OperationState, Stopped> {
    let mut run = Run { ports, progress, place: None };
    // Whatever the journal says was under way was begun by an earlier run.
    let mut entry = Entry::Resumed;
    if let Some(step) = run.progress.unknown_step().filter(|_| !run.progress.status().is_end()) {
        let text = format!(
            "its step {step} is not known to agentd {}: a newer agent opened it, and nothing more is done for it",
            env!("CARGO_PKG_VERSION")
        );
        let remedy = "install the newer agent again, then `agentd parked retry`; or end it with `agentd parked forget`";
        let trouble = StepError::park(ErrorCode::Version, text, remedy.to_owned());
        run.park(trouble).await?;
    }
    loop {
        match run.progress.status() {
            Status::Queued => run.write(Event::Begun).await?,
            Status::Before(place) => {
                run.write(Event::Intended { step: place }).await?;
                entry = Entry::Fresh;
            }
            Status::During(place) => run.during(place, entry).await?,
            Status::Broken(place) => run.broken(place).await?,
            Status::AllDone => run.write(Event::Finished).await?,
            Status::UndoBefore(place) => run.write(Event::UndoIntended { step: place }).await?,
            Status::UndoDuring(place) => run.undoing(place).await?,
            Status::AllUndone => run.write(Event::TakenBack).await?,
            Status::Done | Status::Undone | Status::Parked | Status::Forgotten => return Ok(run.progress),
        }
    }
}

impl<'a> Run<'a> {
    async fn during(&mut self, place: u16, entry: Entry) -> Result<(), Stopped> {
        let Some(step) = self.progress.step(place) else {
            return self
                .park(StepError::fault("the journal names a step that the operation does not have"))
                .await;
        };
        self.heavy(place, step).await;
        match self.attempt(place, step, entry).await? {
            Ok(StepOutput { facts, note }) => self.write(Event::Succeeded { step: place, facts, note }).await,
            Err(trouble) => self.failed(place, step, trouble).await,
        }
    }

    /// Heavy steps wait for a slot, which is kept for those that follow at once; every other step runs without one.
    async fn heavy(&mut self, place: u16, step: Step) {
        let work = work(step);
        if self.place.as_ref().is_some_and(|held| work.is_some_and(|work| held.is_for(work))) {
            return;
        }
        self.place = None;
        if let Some(work) = work {
            Context { ports: self.ports, progress: &self.progress, place, step }.say("waits for its turn");
            self.place = Some(self.ports.heavy.place(token(&self.progress, work)).await);
        }
    }

    async fn failed(&mut self, place: u16, step: Step, trouble: StepError) -> Result<(), Stopped> {
        tracing::warn!(operation = %self.progress.id, step = step.name(), problem = %trouble.problem, "a step failed");
        let follows = match &trouble.next {
            StepRecovery::Park(_) => return self.park(trouble).await,
            StepRecovery::GiveUp => AfterFailure::GiveUp,
            StepRecovery::Look | StepRecovery::Again | StepRecovery::Away | StepRecovery::Busy => {
                then(self.progress.tries(place), step.bound().tries)
            }
        };
        match (follows, self.progress.operation.exhausted(step)) {
            (AfterFailure::Again, _) | (AfterFailure::GiveUp, Exhausted::Undo) => {
                self.write(Event::Failed { step: place, problem: trouble.problem, then: follows }).await?;
            }
            (AfterFailure::GiveUp, Exhausted::Continue) => {
                let note = Some(trouble.problem.message.clone());
                let facts = vec![Finding::Condition(trouble.problem)];
                self.write(Event::Succeeded { step: place, facts, note }).await?;
            }
            (AfterFailure::GiveUp, Exhausted::Park) => {
                let remedy = step.remedy(self.progress.vmid());
                self.park(StepError { next: StepRecovery::Park(remedy), ..trouble }).await?;
            }
        }
        if follows == AfterFailure::Again {
            self.ports.clock.sleep(Duration::from_secs(u64::from(self.progress.tries(place).min(30)))).await;
        }
        Ok(())
    }

    async fn broken(&mut self, place: u16) -> Result<(), Stopped> {
        self.place = None;
        let problem = self.progress.failure(place).cloned();
        let problem =
            problem.unwrap_or_else(|| ErrorBody::new(ErrorCode::Internal, "a step failed without a reason"));
        self.write(Event::UndoBegun { problem }).await
    }

    async fn undoing(&mut self, place: u16) -> Result<(), Stopped> {
        let Some(step) = self.progress.step(place) else {
            return self
                .park(StepError::fault("the journal names a step that the operation does not have"))
                .await;
        };
        let mut tries = 0;
        loop {
            self.reach(step.name(), Side::Before, Moment::Effect)?;
            let taken = self.take_back(place, step).await?;
            self.reach(step.name(), Side::After, Moment::Effect)?;
            let trouble = match taken {
                Ok(StepOutput { facts, note }) => {
                    return self.write(Event::UndoSucceeded { step: place, facts, note }).await;
                }
                Err(trouble) => trouble,
            };
            // Proxmox being away is waited out; anything else is tried a few times.
            tries += u32::from(trouble.next != StepRecovery::Away);
            let remedy = undo::after(step, self.progress.vmid(), &trouble);
            if let Some(remedy) =
                remedy.or_else(|| (tries >= UNDO_TRIES).then(|| step.remedy(self.progress.vmid())))
            {
                return self.park(StepError { next: StepRecovery::Park(remedy), ..trouble }).await;
            }
            tracing::warn!(operation = %self.progress.id, step = step.name(), problem = %trouble.problem, "an undo is tried again");
            self.ports.clock.sleep(Duration::from_secs(u64::from(tries.clamp(1, 30)))).await;
        }
    }

    pub(super) async fn park(&mut self, trouble: StepError) -> Result<(), Stopped> {
        let StepError { problem, next } = trouble;
        let remedy = match next {
            StepRecovery::Park(remedy) => remedy,
            _ => "look at the guest on the node".to_owned(),
        };
        tracing::error!(operation = %self.progress.id, %problem, %remedy, "an operation was parked");
        self.write(Event::Parked { problem, remedy }).await
    }

    /// Writes an event. When this returns, it is on disk.
    pub(super) async fn write(&mut self, event: Event) -> Result<(), Stopped> {
        let (step, moment) = self.point(&event);
        self.reach(step, Side::Before, moment)?;
        let now = self.ports.clock.now();
        self.progress = self.ports.store.append(&self.progress, event, now).await?;
        self.reach(step, Side::After, moment)
    }

    fn point(&self, event: &Event) -> (&'static str, Moment) {
        let name = |place: u16| self.progress.step(place).map_or("operation", Step::name);
        match event {
            Event::Intended { step } | Event::UndoIntended { step } => (name(*step), Moment::Intent),
            Event::Posted { step, .. } => (name(*step), Moment::Posted),
            Event::Succeeded { step, .. }
            | Event::Failed { step, .. }
            | Event::UndoSucceeded { step, .. } => (name(*step), Moment::Outcome),
            Event::Begun
            | Event::UndoBegun { .. }
            | Event::Parked { .. }
            | Event::Reopened { .. }
            | Event::Forgotten { .. }
            | Event::Finished
            | Event::TakenBack => ("operation", Moment::Frame),
        }
    }

    pub(super) fn reach(&self, step: &'static str, side: Side, moment: Moment) -> Result<(), Stopped> {
        Ok(self.ports.failpoints.reached(Point { step, side, moment })?)
    }
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::id::{GuestUid, OperationId, Vmid};
    use jiff::Timestamp;
    use uuid::Uuid;

    use super::*;
    use crate::model::policy::QuiesceBound;
    use crate::model::records::BackupWhy;
    use crate::operation::log::Entry;
    use crate::operation::{Backup, Operation, QuiescedBackup, Target};

    /// Killed after each line of a backup's journal. It keeps its place from the grant of its window to the end of its
    /// copy, also between two lines. No other guest's programs are stopped for it.
    #[test]
    fn a_granted_window_keeps_its_slot_until_its_copy_is_done() {
        let at = Timestamp::from_second(1_800_000_000).unwrap();
        let target = Target {
            uid: GuestUid::new(Uuid::from_u128(1)),
            name: "web-1".parse().unwrap(),
            vmid: Vmid::try_from(300).unwrap(),
        };
        let storage = "backup2".parse().unwrap();
        let backup =
            Backup { target, storage, why: BackupWhy::Asked, due: None, key: None, leaves_out: Vec::new() };
        let operation = Operation::QuiescedBackup(QuiescedBackup { backup, bound: QuiesceBound::usual() });
        let id = OperationId::new(Uuid::from_u128(2));
        let each =
            |step| [Event::Intended { step }, Event::Succeeded { step, facts: Vec::new(), note: None }];
        let journal: Vec<Event> = std::iter::once(Event::Begun).chain((0..4).flat_map(each)).collect();
        let sits = (0..=journal.len()).map(|length| {
            let lines = (1..).zip(journal.iter().take(length).cloned());
            let entries: Vec<Entry> = lines.map(|(number, event)| Entry { number, at, event }).collect();
            at_work(
                &OperationState::replay(OperationState::new(id, operation.clone(), at), &entries).unwrap(),
            )
            .is_some()
        });
        // Nothing, begun, the grant intended; granted, waiting, notified, the copy; it is done, and the release.
        let sits: Vec<bool> = sits.collect();
        assert_eq!(sits, [false, false, false, true, true, true, true, false, false, false]);
    }
}
