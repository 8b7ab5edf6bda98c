//! One case of a story: where it is killed or fails, and what came of it.
//!
//! In: a story, a case, and how the story goes undisturbed. Out: the points of its last life, what does not hold, and a hash
//! of all that happened. A case has a name, `provision/12,5`, by which it can be run alone.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use agentd::operation::log::Status;

use crate::book::Book;
use crate::ground::Template;
use crate::invariant::{Evidence, Reference, Violation, Wanted, done, judge};
use crate::life::{Begin, End, live, told};
use crate::points::{Conductor, Fail, How, Kill, Place, Seen};
use crate::scene::Scene;
use crate::story::Story;
use crate::virtual_time;
use crate::world::World;

/// The number of the story's operation in the journal.
const OPERATION: u8 = 1;

/// A step may fail so often; after that the world is well again.
const FAILURES: u32 = 40;

/// What goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Case {
    /// Nothing.
    Undisturbed,
    /// Killed at these points, one after the other, each in the life that follows; each next life begins after a while.
    Killed {
        /// The points by their number in each life.
        at: Vec<usize>,
        /// How long the agent stays dead.
        dead_for: Duration,
    },
    /// Killed before each outcome once, so that every step, and every step back, is done again.
    EachStepAgain,
    /// The requests of one step fail.
    Failing {
        /// Which step.
        step: String,
        /// How.
        how: How,
    },
}

impl Case {
    /// Killed at these points; the agent is back at once.
    #[must_use]
    pub fn killed(at: &[usize]) -> Self {
        Self::Killed { at: at.to_vec(), dead_for: Duration::ZERO }
    }

    /// Reads what [`fmt::Display`] writes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "undisturbed" => return Some(Self::Undisturbed),
            "again" => return Some(Self::EachStepAgain),
            _ => {}
        }
        if let Some((step, how)) = text.strip_prefix("fail:").and_then(|rest| rest.split_once(':')) {
            let how = HOWS.iter().find(|(_, word)| *word == how)?.0;
            return Some(Self::Failing { step: step.to_owned(), how });
        }
        let (points, dead_s) = text.split_once('+').unwrap_or((text, "0"));
        let at = points.split(',').map(str::parse).collect::<Result<_, _>>().ok()?;
        Some(Self::Killed { at, dead_for: Duration::from_secs(dead_s.parse().ok()?) })
    }

    fn wanted(&self) -> Wanted {
        match self {
            Self::Killed { dead_for, .. } if !dead_for.is_zero() => Wanted::TheSameOrNothing,
            Self::Undisturbed | Self::Killed { .. } | Self::EachStepAgain => Wanted::TheSameEnd,
            Self::Failing { .. } => Wanted::AnyLawfulEnd,
        }
    }
}

/// Every way to fail, with its word.
pub const HOWS: [(How, &str); 3] =
    [(How::Refused, "refused"), (How::ReplyLost, "reply-lost"), (How::RequestLost, "request-lost")];

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undisturbed => f.write_str("undisturbed"),
            Self::EachStepAgain => f.write_str("again"),
            Self::Failing { step, how } => {
                let word = HOWS.iter().find(|(known, _)| known == how).map_or("?", |(_, word)| word);
                write!(f, "fail:{step}:{word}")
            }
            Self::Killed { at, dead_for } => {
                let points: Vec<String> = at.iter().map(ToString::to_string).collect();
                f.write_str(&points.join(","))?;
                if dead_for.is_zero() { Ok(()) } else { write!(f, "+{}", dead_for.as_secs()) }
            }
        }
    }
}

/// What came of a case.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The points of its last life.
    pub places: Vec<Place>,
    /// Where it was killed.
    pub died: Vec<Place>,
    /// What does not hold.
    pub violations: Vec<Violation>,
    /// How it ended.
    pub end: Option<Status>,
    /// How it goes, for others to be compared with.
    pub reference: Reference,
    /// One number for all that happened.
    pub hash: u64,
    /// The operation in words, when it ended in its last life.
    pub told: String,
}

/// Runs a case on this thread. A harness that breaks is a violation too.
#[must_use]
pub fn run(story: &Story, case: &Case, reference: Option<&Reference>) -> Outcome {
    let template = Template::of(story.ground);
    let ran = std::panic::catch_unwind(|| virtual_time(|| play(story, case, reference, &template)));
    ran.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        let what = format!("it broke: {}", text.unwrap_or_default());
        Outcome {
            places: Vec::new(),
            died: Vec::new(),
            violations: vec![Violation { name: "harness", what }],
            end: None,
            reference: Reference { after: Scene::default().comparable(), done: Default::default() },
            hash: 0,
            told: String::new(),
        }
    })
}

/// What a case has seen by now.
struct Play<'a> {
    story: &'a Story,
    world: World,
    written: u32,
    places: Vec<Place>,
    died: Vec<Place>,
    wrong: Vec<Violation>,
    told: String,
}

impl Play<'_> {
    /// One life. Gives whether it was killed.
    async fn live(&mut self, kill: Kill, fail: Option<Fail>) -> bool {
        let refused = self.story.refused;
        let fail = fail.or(refused.map(|step| Fail { step, how: How::Refused, times: FAILURES }));
        let conductor = Conductor::new(kill, fail);
        let begin = if self.died.is_empty() {
            Begin::With(OPERATION, Box::new((self.story.operation)(&self.world.kit)))
        } else {
            Begin::TakingUp
        };
        let end = live(&self.world, &conductor, self.story.speech, begin).await;
        self.places = conductor.places();
        self.written += conductor.written();
        self.journal_is_what_was_written();
        for place in &self.places {
            self.world.log.note(self.world.timeline.passed(), &place.to_string());
        }
        match end {
            End::Killed(place) => {
                self.died.push(place);
                return true;
            }
            End::Came(ended) => self.told = ended.iter().map(told).collect(),
            End::Stuck(what) => self.wrong.push(Violation { name: "I12", what }),
        }
        false
    }

    /// I7: after each life the journal holds every event that was written and none that was not.
    fn journal_is_what_was_written(&mut self) {
        let book = Book::of(&self.world.agent_folder());
        let found = book.events.get(&operation_id()).copied().unwrap_or_default();
        if found != self.written {
            let what = format!("{} events were written, {found} are in the journal", self.written);
            self.wrong.push(Violation { name: "I7", what });
        }
    }
}

fn operation_id() -> String {
    uuid::Uuid::from_u128(u128::from(OPERATION)).to_string()
}

async fn play(story: &Story, case: &Case, reference: Option<&Reference>, template: &Template) -> Outcome {
    let world = template.world(7);
    let began_micros = world.timeline.now().as_microsecond();
    let mut play = Play {
        story,
        world,
        written: 0,
        places: Vec::new(),
        died: Vec::new(),
        wrong: Vec::new(),
        told: String::new(),
    };
    match case {
        Case::Undisturbed => drop(play.live(Kill::Never, None).await),
        Case::Killed { at, dead_for } => {
            for point in at {
                if !play.live(Kill::At(*point), None).await {
                    let what = format!("point {point} was not reached: the story is not the same twice");
                    play.wrong.push(Violation { name: "harness", what });
                    break;
                }
                tokio::time::sleep(*dead_for).await;
            }
            play.live(Kill::Never, None).await;
        }
        Case::EachStepAgain => {
            let seen = Seen::default();
            while play.live(Kill::BeforeEachOutcome(Arc::clone(&seen)), None).await {}
        }
        Case::Failing { step, how } => {
            let step = known(&play, step).await;
            play.live(Kill::Never, Some(Fail { step, how: *how, times: FAILURES })).await;
        }
    }
    play.world.settle().await;
    close(play, case, reference, template, began_micros)
}

/// Steps are compared by their static names.
async fn known(play: &Play<'_>, step: &str) -> &'static str {
    let steps = (play.story.operation)(&play.world.kit).steps();
    steps.iter().map(|known| known.name()).find(|name| *name == step).expect("a step of this operation")
}

fn close(
    mut play: Play<'_>,
    case: &Case,
    reference: Option<&Reference>,
    template: &Template,
    began_micros: i64,
) -> Outcome {
    let after = play.world.scene();
    let book = Book::of(&play.world.agent_folder());
    let end = match book.outcomes.get(&operation_id()).map(String::as_str) {
        Some("done") => Some(Status::Done),
        Some("undone") => Some(Status::Undone),
        Some("parked") => Some(Status::Parked),
        _ => None,
    };
    let ended = |upid: &str| play.world.node.tasks.ended(upid).map_or("?".to_owned(), |ended| ended.status);
    let tasks: Vec<_> =
        play.world.log.tasks().into_iter().map(|task| (task.clone(), ended(&task.upid))).collect();
    let offences: Vec<String> = play.world.node.guard.offences().iter().map(ToString::to_string).collect();
    let evidence = Evidence {
        story: play.story,
        reference,
        wanted: case.wanted(),
        before: &template.scene,
        after: &after,
        book_before: &template.book,
        book: &book,
        end,
        effects: &play.world.log.effects(),
        tasks: &tasks,
        began_micros,
        offences: &offences,
        on_the_way: &std::mem::take(&mut play.wrong),
    };
    Outcome {
        places: play.places,
        died: play.died,
        violations: judge(&evidence),
        end,
        reference: Reference { after: after.comparable(), done: done(&tasks) },
        hash: play.world.log.hash(),
        told: play.told,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_named_so_that_it_can_be_run_again() {
        for text in ["undisturbed", "again", "12", "12,5", "12+3600", "fail:restore:reply-lost"] {
            assert_eq!(Case::parse(text).map(|case| case.to_string()).as_deref(), Some(text));
        }
        assert_eq!(Case::parse("fail:restore:never"), None);
        assert_eq!(Case::parse("x"), None);
    }
}
