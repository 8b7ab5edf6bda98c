//! The event log of a world, with its hash.
//!
//! In: entries from the transport and the clock. Out: lists for the invariants, and one number by which two runs of one
//! seed can be compared. Random values (ids, claims) are not part of it.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;
use std::time::Duration;

/// A request that could change something and reached the simulator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    pub at: Duration,
    /// The step that the agent was in.
    pub step: &'static str,
    /// Its kind of call.
    pub call: &'static str,
    /// The path of the request.
    pub path: String,
    /// What was answered.
    pub status: u16,
    /// The archive that it restores.
    pub archive: Option<String>,
}

/// A task of the simulator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSpan {
    /// Its whole name.
    pub upid: String,
    /// `vzrestore` and so on.
    pub kind: String,
    /// The guest or storage that it works on.
    pub id: String,
    /// Who started it.
    pub owner: String,
    /// When it began.
    pub from: Duration,
    /// When it ended.
    pub to: Option<Duration>,
}

impl TaskSpan {
    /// A task that begins.
    #[must_use]
    pub fn new(upid: &str, from: Duration) -> Self {
        let part = |n: usize| upid.split(':').nth(n).unwrap_or_default().to_owned();
        Self { upid: upid.to_owned(), kind: part(5), id: part(6), owner: part(7), from, to: None }
    }

    /// The guests it works on. The handing over of a volume is named after two: `215-mp0>214-mp0`.
    pub fn guests(&self) -> impl Iterator<Item = &str> {
        self.id.split('>').map(|part| part.split_once('-').map_or(part, |(vmid, _)| vmid))
    }

    /// Whether an agent started it.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.owner.starts_with("hf@pve!")
    }
}

#[derive(Default)]
struct HeldLines {
    effects: Vec<Effect>,
    tasks: Vec<TaskSpan>,
    requests: usize,
    by_call: BTreeMap<&'static str, usize>,
    hash: DefaultHasher,
}

/// What happened in a world.
#[derive(Default)]
pub struct Log(Mutex<HeldLines>);

impl Log {
    /// A request was answered. Gives how many there were.
    pub fn request(&self, at: Duration, call: &'static str, path: &str, status: u16) -> usize {
        let mut held = self.0.lock().unwrap();
        (at.as_millis(), call, path, status).hash(&mut held.hash);
        held.requests += 1;
        *held.by_call.entry(call).or_default() += 1;
        held.requests
    }

    /// How many requests of each call there were.
    #[must_use]
    pub fn by_call(&self) -> BTreeMap<&'static str, usize> {
        self.0.lock().unwrap().by_call.clone()
    }

    /// A request could change something.
    pub fn effect(&self, effect: Effect) {
        self.0.lock().unwrap().effects.push(effect);
    }

    /// Something else worth comparing.
    pub fn note(&self, at: Duration, text: &str) {
        (at.as_millis(), text).hash(&mut self.0.lock().unwrap().hash);
    }

    /// A task begins; gives its place.
    pub fn begin_task(&self, span: TaskSpan) -> usize {
        let mut held = self.0.lock().unwrap();
        (span.from.as_millis(), &span.kind, &span.id).hash(&mut held.hash);
        held.tasks.push(span);
        held.tasks.len() - 1
    }

    /// A task ended.
    pub fn end_task(&self, place: usize, at: Duration) {
        let mut held = self.0.lock().unwrap();
        (at.as_millis(), place).hash(&mut held.hash);
        if let Some(span) = held.tasks.get_mut(place) {
            span.to = Some(at);
        }
    }

    /// The requests that could change something.
    #[must_use]
    pub fn effects(&self) -> Vec<Effect> {
        self.0.lock().unwrap().effects.clone()
    }

    #[must_use]
    pub fn tasks(&self) -> Vec<TaskSpan> {
        self.0.lock().unwrap().tasks.clone()
    }

    /// One number for all that happened.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.0.lock().unwrap().hash.finish()
    }
}
