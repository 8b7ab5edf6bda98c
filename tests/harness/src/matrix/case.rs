//! One case of a story: its kill or fault, and outcome.
//!
//! In: a story, a case, and the undisturbed course of the story. Out: the points of its last life, what does not hold,
//! and a hash of all that happened. A case has a name, `provision/12,5`, by which it can be run alone.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use agentd::operation::log::Status;
use agentd::operation::step::Step;
use pve_sim::fault::Fault;

use crate::agent_run::{Begin, End, Tone, live, reported};
use crate::db_reader::Book;
use crate::invariant::{Condition, Evidence, GONE, Reference, Violation, done, judge};
use crate::log::TaskSpan;
use crate::points::{Conductor, Fail, How, Kill, Place, VisitedPoints};
use crate::power::server::Served;
use crate::scene::Scene;
use crate::story::{Does, Story};
use crate::virtual_time;
use crate::whole;
use crate::windows::{self, Windows};
use crate::world::World;
use crate::world_template::Template;
use power_disk::fate::Fate;

/// Long enough for each controller to check a few times.
const FAREWELL: Duration = Duration::from_secs(2);

/// The number of the story's operation in the journal.
pub(super) const OPERATION: u8 = 1;

/// How many requests of a step may be lost; after that the world is well again. A refused step is refused for ever.
const LOSSES: u32 = 40;

/// This many tasks of each kind have a wrong end: more than a story has, and more than any step may try.
const TASKS: usize = 12;

/// The numbers of guests that the stories are about.
const GUESTS: [u32; 2] = [300, 301];

/// The kinds of tasks that the agent starts.
const TASK_KINDS: [&str; 12] = [
    "vzrestore",
    "vzstart",
    "vzstop",
    "vzshutdown",
    "resize",
    "vzdump",
    "vzsnapshot",
    "vzdelsnapshot",
    "vzrollback",
    "move_volume",
    "vzdestroy",
    "imgdel",
];

/// Kinds that can report `OK` and do nothing.
const IDLE_KINDS: [&str; 2] = ["resize", "vzdump"];

/// How tasks end otherwise than they should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskEnd {
    /// All is done, and the end is `WARNINGS: 1`.
    Warned,
    /// All is done, and the end is `unexpected status`.
    Unknown,
    /// All is done, and they are gone from the index, with their logs.
    Gone,
    /// `OK`, and nothing was done, and that can be seen: nothing grew, there is no archive.
    Idle,
    Failed,
}

/// Every such end, with its name.
pub const TASK_ENDS: [(TaskEnd, &str); 5] = [
    (TaskEnd::Warned, "warned"),
    (TaskEnd::Unknown, "unknown"),
    (TaskEnd::Gone, "gone"),
    (TaskEnd::Idle, "idle"),
    (TaskEnd::Failed, "failed"),
];

impl TaskEnd {
    /// Whether the work was done in spite of that, and the world shows it.
    #[must_use]
    pub const fn is_done(self) -> bool {
        matches!(self, Self::Warned | Self::Unknown | Self::Gone)
    }

    fn faults(self) -> Vec<Fault> {
        let of_kinds = |fault: &dyn Fn(String) -> Fault| -> Vec<Fault> {
            TASK_KINDS.iter().map(|kind| fault((*kind).to_owned())).collect()
        };
        let once = match self {
            Self::Warned => of_kinds(&|task| Fault::WarnWorker { task }),
            Self::Unknown => of_kinds(&|task| Fault::UnknownEnd { task }),
            Self::Gone => of_kinds(&|task| Fault::VanishTask { task }),
            Self::Failed => of_kinds(&|task| Fault::FailWorker {
                task,
                phase: String::new(),
                text: "command failed: exit code 5".to_owned(),
            }),
            Self::Idle => GUESTS
                .iter()
                .flat_map(|guest| {
                    let vmid = *guest;
                    [Fault::NoGrow { vmid }, Fault::NoArchive { vmid }]
                })
                .collect(),
        };
        std::iter::repeat_n(once, TASKS).flatten().collect()
    }
}

/// The fault of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Case {
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
        step: String,
        how: How,
    },
    /// Every task has this end: the state of the world counts, not the reported status.
    Tasks(TaskEnd),
    /// The agent's disk loses its power, and again in the life after it, and so on.
    PowerLost(Vec<PowerLoss>),
}

/// A loss of power in one life of the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerLoss {
    /// The change of a file before which the power is lost, by its number in that life, from 0.
    pub at: u64,
    /// The fate of unsynced data.
    pub fate: Fate,
}

impl PowerLoss {
    fn parse(text: &str) -> Option<Self> {
        let (at, fate) = text.split_once(':')?;
        Some(Self { at: at.parse().ok()?, fate: Fate::parse(fate)? })
    }
}

impl fmt::Display for PowerLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.at, self.fate)
    }
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
        if let Some(losses) = text.strip_prefix("power:") {
            return losses.split(',').map(PowerLoss::parse).collect::<Option<_>>().map(Self::PowerLost);
        }
        if let Some(word) = text.strip_prefix("tasks:") {
            return Some(Self::Tasks(TASK_ENDS.iter().find(|(_, known)| *known == word)?.0));
        }
        let (points, dead_s) = text.split_once('+').unwrap_or((text, "0"));
        let at = points.split(',').map(str::parse).collect::<Result<_, _>>().ok()?;
        Some(Self::Killed { at, dead_for: Duration::from_secs(dead_s.parse().ok()?) })
    }

    fn wanted(&self) -> Condition {
        match self {
            Self::Killed { dead_for, .. } if !dead_for.is_zero() => Condition::TheSameOrNothing,
            Self::Undisturbed | Self::Killed { .. } | Self::EachStepAgain | Self::PowerLost(_) => {
                Condition::TheSameEnd
            }
            Self::Tasks(end) if end.is_done() => Condition::TheSameEnd,
            Self::Tasks(_) | Self::Failing { .. } => Condition::AnyLawfulEnd,
        }
    }
}

/// Every way to fail, with its name.
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
            Self::Tasks(end) => {
                let word = TASK_ENDS.iter().find(|(known, _)| known == end).map_or("?", |(_, word)| word);
                write!(f, "tasks:{word}")
            }
            Self::PowerLost(losses) => {
                let losses: Vec<String> = losses.iter().map(ToString::to_string).collect();
                write!(f, "power:{}", losses.join(","))
            }
            Self::Killed { at, dead_for } => {
                let points: Vec<String> = at.iter().map(ToString::to_string).collect();
                f.write_str(&points.join(","))?;
                if dead_for.is_zero() { Ok(()) } else { write!(f, "+{}", dead_for.as_secs()) }
            }
        }
    }
}

/// The result of a case.
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
    /// The course of this case, for others to be compared with.
    pub reference: Reference,
    /// One number for all that happened.
    pub hash: u64,
    /// The operation in words, when it ended in its last life.
    pub reported: String,
    /// How many changes of files each life had in which the power was to go.
    pub changes: Vec<u64>,
}

/// Runs a case on this thread. A harness that breaks is a violation too.
#[must_use]
pub fn run(story: &Story, case: &Case, reference: Option<&Reference>) -> Outcome {
    let template = Template::of(story.ground);
    let ran = std::panic::catch_unwind(|| virtual_time(|| play(story, case, reference, &template)));
    // The runtime has dropped what had files open on the disks.
    let ran = ran.map(|(outcome, _disks)| outcome);
    ran.unwrap_or_else(|panic| Outcome {
        places: Vec::new(),
        died: Vec::new(),
        violations: vec![Violation::of_panic(panic.as_ref())],
        end: None,
        reference: Reference {
            after: Scene::default().comparable(),
            done: Default::default(),
            operations: 0,
        },
        hash: 0,
        reported: String::new(),
        changes: Vec::new(),
    })
}

/// What a life begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// The story's operation.
    Anew,
    /// What the journal holds.
    TakingUp,
}

/// What a case has seen by now.
pub(super) struct Play<'a> {
    pub(super) story: &'a Story,
    pub(super) world: World,
    /// Events in the journals: what the ground's operations wrote, and what was written since.
    pub(super) written: u32,
    places: Vec<Place>,
    died: Vec<Place>,
    pub(super) wrong: Vec<Violation>,
    reported: String,
    pub(super) changes: Vec<u64>,
}

impl Play<'_> {
    /// One life. Gives whether it was killed.
    async fn live(&mut self, kill: Kill, fail: Option<Fail>) -> bool {
        let conductor = self.conductor(kill, fail);
        let begin = if self.died.is_empty() { Entry::Anew } else { Entry::TakingUp };
        let end = self.begin(&conductor, begin).await;
        self.written += conductor.written();
        self.journal_is_what_was_written();
        self.note(&conductor);
        self.end(end)
    }

    pub(super) fn conductor(&self, kill: Kill, fail: Option<Fail>) -> Arc<Conductor> {
        let refused = self.story.refused;
        Conductor::new(kill, fail.or(refused.map(|step| Fail { step, how: How::Refused, times: LOSSES })))
    }

    /// A life until its end or its death, and nothing else.
    pub(super) async fn begin(&self, conductor: &Arc<Conductor>, entry: Entry) -> End {
        let (speech, windows) = (self.story.speech, self.story.windows);
        match self.story.does {
            Does::Operation(operation) => {
                let begin = match entry {
                    Entry::Anew => Begin::With(OPERATION, Box::new(operation(&self.world.kit))),
                    Entry::TakingUp => Begin::TakingUp,
                };
                // A whole life of an agent is too large to be stored in every case that awaits one.
                Box::pin(live(&self.world, conductor, Tone { speech, windows }, begin)).await
            }
            Does::Goals(goals) => {
                let number = match entry {
                    Entry::Anew => self.died.len(),
                    Entry::TakingUp => self.died.len().max(1),
                };
                let life = whole::Life { speech, windows, goals: &goals(), number };
                Box::pin(whole::live(&self.world, conductor, &life)).await
            }
        }
    }

    /// Records the results of a life.
    pub(super) fn note(&mut self, conductor: &Conductor) {
        self.places = conductor.places();
        for place in &self.places {
            self.world.log.note(self.world.timeline.passed(), &place.to_string());
        }
    }

    /// Gives whether the life was killed.
    pub(super) fn end(&mut self, end: End) -> bool {
        match end {
            End::Killed(place) => {
                self.died.push(place);
                return true;
            }
            End::Came(ended) => self.reported = ended.iter().map(reported).collect(),
            End::Stuck(what) => self.wrong.push(Violation { name: "I12", what }),
        }
        false
    }

    /// Controllers continue after the agent's work is done: each with stopped programs checks once more, and starts its
    /// programs.
    async fn farewell(&self) {
        if self.story.windows == Windows::NoOne {
            return;
        }
        let conductor = Conductor::undisturbed();
        let ports = self.world.agent(&conductor).await;
        let played = windows::play(&self.world, &ports.store, &conductor, self.story.windows);
        // The play never ends by itself; the timeout only lets time pass.
        drop(tokio::time::timeout(FAREWELL, played).await);
    }

    /// I7: after each life the journal holds every event that was written and none that was not.
    fn journal_is_what_was_written(&mut self) {
        let book = Book::of(&self.world.agent_folder());
        let found: u32 = book.events.values().sum();
        if found != self.written {
            let what = format!("{} events were written, {found} are in the journal", self.written);
            self.wrong.push(Violation { name: "I7", what });
        }
    }
}

async fn play(
    story: &Story,
    case: &Case,
    reference: Option<&Reference>,
    template: &Template,
) -> (Outcome, Vec<Arc<Served>>) {
    let mut disks = Vec::new();
    let world = template.world(7);
    let began_micros = world.timeline.now().as_microsecond();
    let mut play = Play {
        story,
        world,
        written: template.book.events.values().sum(),
        places: Vec::new(),
        died: Vec::new(),
        wrong: Vec::new(),
        reported: String::new(),
        changes: Vec::new(),
    };
    if let Some((task, phase, hold_ms)) = story.slow {
        let (task, phase) = (task.to_owned(), phase.to_owned());
        play.world.node.faults.arm(Fault::HoldWorker { task, phase, hold_ms });
    }
    match case {
        Case::Undisturbed => drop(play.live(Kill::Never, None).await),
        Case::Killed { at, dead_for } => {
            for point in at {
                let killed = play.live(Kill::At(*point), None).await;
                // Of two guests that move at the same moment either may be first, and one life may have a point less.
                if !killed && matches!(story.does, Does::Goals(_)) {
                    break;
                }
                if !killed {
                    let what = format!("point {point} was not reached: the story is not the same twice");
                    play.wrong.push(Violation { name: "harness", what });
                    break;
                }
                tokio::time::sleep(*dead_for).await;
            }
            play.live(Kill::Never, None).await;
        }
        Case::EachStepAgain => {
            let seen = VisitedPoints::default();
            while play.live(Kill::BeforeEachOutcome(Arc::clone(&seen)), None).await {}
        }
        Case::Failing { step, how } => {
            let times = if *how == How::Refused { u32::MAX } else { LOSSES };
            play.live(Kill::Never, Some(Fail { step: known(step), how: *how, times })).await;
        }
        Case::Tasks(end) => {
            for fault in end.faults() {
                play.world.node.faults.arm(fault);
            }
            play.live(Kill::Never, None).await;
        }
        Case::PowerLost(losses) => disks = play.lose_power(losses).await,
    }
    play.farewell().await;
    play.world.settle().await;
    (close(play, case, reference, template, began_micros), disks)
}

/// Steps are compared by their static names.
fn known(step: &str) -> &'static str {
    Step::ALL.iter().map(|known| known.name()).find(|name| *name == step).expect("a step")
}

/// How the story's operations ended, and how many there were: all of them done, or the worst of their ends.
fn ends(before: &Book, book: &Book) -> (Option<Status>, usize) {
    let is_new = |id: &&String| !before.outcomes.contains_key(*id) && !before.open.contains(id);
    let open = book.open.iter().filter(is_new).count();
    let ended: Vec<_> = book.outcomes.keys().filter(is_new).map(|id| book.outcomes[id].as_str()).collect();
    let all = |wanted: &[&str]| ended.iter().all(|end| wanted.contains(end));
    let end = match () {
        () if open > 0 || ended.is_empty() => None,
        () if all(&["done"]) => Some(Status::Done),
        () if all(&["done", "undone"]) => Some(Status::Undone),
        () if all(&["done", "undone", "parked"]) => Some(Status::Parked),
        () => None,
    };
    (end, open + ended.len())
}

fn close(
    mut play: Play<'_>,
    case: &Case,
    reference: Option<&Reference>,
    template: &Template,
    began_micros: i64,
) -> Outcome {
    let offences = play.world.node.guard.offences();
    play.wrong.extend(offences.iter().map(|offence| Violation { name: "wire", what: offence.to_string() }));
    let after = play.world.scene();
    let book = Book::of(&play.world.agent_folder());
    let (end, operations) = ends(&template.book, &book);
    let ended = |task: &TaskSpan| match case {
        Case::Tasks(TaskEnd::Idle) if IDLE_KINDS.contains(&task.kind.as_str()) => "idle".to_owned(),
        _ => play.world.node.tasks.ended(&task.upid).map_or(GONE.to_owned(), |ended| ended.status),
    };
    let tasks: Vec<_> = play
        .world
        .log
        .tasks()
        .into_iter()
        .map(|task| {
            let status = ended(&task);
            (task, status)
        })
        .collect();
    let offences: Vec<String> = play.world.node.guard.offences().iter().map(ToString::to_string).collect();
    let evidence = Evidence {
        should_end: if matches!(case, Case::Tasks(_)) { play.story.unclear } else { play.story.end },
        may_take: play.story.may_take,
        may_rename: play.story.may_rename,
        takes_over: play.story.takes_over,
        never_both: play.story.never_both,
        wanted_operations: play.story.operations,
        reference,
        wanted: case.wanted(),
        before: &template.scene,
        after: &after,
        book_before: &template.book,
        book: &book,
        end,
        operations,
        stood: &play.world.windows.stood(),
        label: play.story.label,
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
        reference: Reference { after: after.comparable(), done: done(&tasks), operations },
        hash: play.world.log.hash(),
        reported: play.reported,
        changes: play.changes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_named_so_that_it_can_be_run_again() {
        for text in [
            "undisturbed",
            "again",
            "12",
            "12,5",
            "12+3600",
            "fail:restore:reply-lost",
            "tasks:gone",
            "power:7:lost",
            "power:8:torn9",
            "power:8:torn9,3:lost",
        ] {
            assert_eq!(Case::parse(text).map(|case| case.to_string()).as_deref(), Some(text));
        }
        assert_eq!(Case::parse("fail:restore:never"), None);
        assert_eq!(Case::parse("tasks:never"), None);
        assert_eq!(Case::parse("x"), None);
    }
}
