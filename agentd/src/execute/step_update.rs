//! The step that waits for an updated guest agent.
//!
//! The offer is that this step is under way: `GET /v1/desired` reads it from the journal. So the offer is valid from
//! the moment the intent is on disk until the outcome is, even over a restart of the agent.

use std::time::Duration;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;

use super::context::{Context, Started, StepOutput};
use super::trouble::StepError;
use crate::model::records::{Access, HelloRecord};
use crate::operation::log::Finding;
use crate::operation::update_controller::{self, Came, HelloState, Judged, Speech, TurnTime};
use crate::operation::{Operation, UpdateController};
use crate::port::pve::GuestConfig;
use crate::port::pve::volume::InBackup;

/// How often it is looked whether time is up.
const LOOK: Duration = Duration::from_secs(5);

fn spec<'a>(context: &'a Context<'_>) -> Result<&'a UpdateController, StepError> {
    match &context.progress.operation {
        Operation::UpdateController(update) => Ok(update),
        other => Err(StepError::fault(format!("a {} exchanges no controller", other.kind().as_str()))),
    }
}

/// Whether a step is not gone, and why.
pub(super) fn skipped(context: &Context<'_>) -> Option<StepOutput> {
    update_controller::skipped(context.progress, context.step).map(StepOutput::note)
}

/// Why no snapshot is taken of a guest with volumes that no backup holds.
pub(super) fn bulk_volume(config: &GuestConfig) -> Option<ErrorBody> {
    let bulk = config.mounts.values().find(|disk| disk.in_backup == InBackup::No)?;
    let at = bulk.mount.as_deref().unwrap_or("a volume");
    let text =
        format!("no snapshot was taken: {at} is in no backup, and one would keep what is overwritten there");
    Some(ErrorBody::new(ErrorCode::Unsupported, text))
}

pub(super) async fn act(context: &Context<'_>) -> Result<Started, StepError> {
    let update = spec(context)?;
    let (store, clock) = (&context.ports.store, &context.ports.clock);
    let since = context.progress.intended_at(context.place).unwrap_or(context.progress.opened_at);
    let mut changes = store.changes();
    // Both are counted anew after the agent was away: no controller could say hello to it meanwhile.
    let end = clock.monotonic() + Duration::from_secs(update.turn_s());
    let (mut last, mut word_at) = (None, clock.monotonic());
    let mut would_hear = store.would_hear_since(update.target().uid);
    let (mut fine, mut previous) = (Span::default(), Span::default());
    context.say("waiting for the hellos of the new controller");
    loop {
        changes.mark_unchanged();
        let record = store.guest(update.target().uid).await?;
        let record = record.ok_or_else(|| StepError::fault("there is no record of the guest"))?;
        // A hello that only repeats the last one is in no record for a while, and still counts as a sign of life.
        let hello = store.last_word(update.target().uid).or(record.hello);
        let hello: Option<HelloRecord> = hello.filter(|hello| hello.at >= since);
        let now = clock.monotonic();
        let fetched = store.fetched(context.progress.id).await?;
        if hello.as_ref().map(|hello| hello.at) != last {
            (last, word_at) = (hello.as_ref().map(|hello| hello.at), now);
            fine = fine.next(hello.as_ref().filter(|hello| update.is_fine(hello)), now);
            previous = previous.next(hello.as_ref().filter(|hello| update.is_previous(hello, fetched)), now);
        }
        // A controller that could not be heard is not silent: its time is counted anew from when it could.
        if store.would_hear_since(update.target().uid) != would_hear {
            (would_hear, word_at) = (store.would_hear_since(update.target().uid), now);
        }
        let frozen = record.access == Access::Frozen;
        let silent = now.saturating_sub(word_at) >= Duration::from_secs(update.silent_after_s());
        let heard = HelloState {
            hello: hello.as_ref(),
            fine_for: fine.lasts(),
            previous_for: previous.lasts(),
            fetched,
            returned: store.returned(update.target().uid, &update.sha256),
            // A frozen guest is heard no more, whatever it says.
            speech: if silent || frozen { Speech::Silent } else { Speech::Lately },
            turn: if now >= end || frozen { TurnTime::Over } else { TurnTime::Running },
        };
        match update.judge(heard) {
            Judged::Waits => {}
            Judged::Up => {
                return Ok(learnt(Came::Up, format!("controller {} is up", update.version.as_str())));
            }
            Judged::Bad(why) => return Ok(learnt(Came::Bad, why)),
            Judged::Silent(why) => return Ok(learnt(Came::Silent, why)),
            Judged::NotTaken(why) => return Err(StepError::give_up(ErrorCode::Unavailable, why)),
        }
        tokio::select! {
            biased;
            woken = changes.changed() => woken.map_err(|_| StepError::fault("the store is closed"))?,
            () = clock.sleep(LOOK) => {}
        }
    }
}

/// The first and the last of hellos of one sort without a break, by the agent's steady clock.
#[derive(Clone, Copy, Default)]
struct Span(Option<(Duration, Duration)>);

impl Span {
    /// With one more hello; none of this sort begins it anew.
    fn next(self, hello: Option<&HelloRecord>, now: Duration) -> Self {
        Self(hello.map(|_| (self.0.map_or(now, |(first, _)| first), now)))
    }

    fn lasts(self) -> Duration {
        self.0.map_or(Duration::ZERO, |(first, last)| last.saturating_sub(first))
    }
}

fn learnt(came: Came, why: String) -> Started {
    Started::Learnt(StepOutput {
        facts: vec![Finding::Controller { came, why: why.clone() }],
        note: Some(why),
    })
}
