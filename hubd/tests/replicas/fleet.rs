//! Agents that check in at whichever hub answers.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use holdfast_protocol::checkin::{CheckinAnswer, CheckinRequest, Need};
use holdfast_protocol::condition::{ConditionCode, ConditionSet, ReportedCondition, Subject};
use holdfast_protocol::envelope::Envelope;
use holdfast_protocol::report::Sections;
use hubd::clock::{Clock as _, SystemClock};
use reqwest::{Method, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::RwLock;
use tokio::time::Instant;

use crate::world::{Client, Host};

/// A hub that does not answer for so long is left for the next one.
const ANSWER_WAIT: Duration = Duration::from_secs(8);

/// How long a watcher asks to be held.
pub const HELD_S: u64 = 10;

/// A request that may fail. None where nobody answered.
pub async fn asked<T: DeserializeOwned>(
    client: &Client,
    method: Method,
    path: &str,
    body: &impl Serialize,
    wait: Duration,
) -> Option<(StatusCode, Envelope<T>)> {
    let request =
        client.http.request(method, format!("{}{path}", client.url)).headers(client.headers.clone());
    let answered = async {
        let answer = request.body(serde_json::to_vec(body).ok()?).send().await.ok()?;
        let status = answer.status();
        Some((status, serde_json::from_slice(&answer.bytes().await.ok()?).ok()?))
    };
    tokio::time::timeout(wait, answered).await.ok()?
}

/// Numbers that follow from a seed.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

/// What all agents share.
#[derive(Default)]
pub struct Fleet {
    /// Held to read by each check-in, and to write by who compares.
    pub turn: RwLock<()>,
    pub over: AtomicBool,
    /// The mean time between two check-ins of an agent, in milliseconds.
    pub pace_ms: u64,
    pub answered: AtomicU64,
    pub failed: AtomicU64,
    /// The last number of each host that was acknowledged.
    pub acknowledged: Mutex<BTreeMap<String, u64>>,
    /// When a watcher had which generation.
    pub woken: Mutex<BTreeMap<(String, u64), Instant>>,
}

impl Fleet {
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

/// An agent.
pub struct Agent {
    pub name: String,
    pub host: Host,
    pub clients: Vec<Client>,
    /// The hub it asks.
    pub at: usize,
    sequence: u64,
    held: u64,
    need: Need,
    /// What is wrong, once a hub has it.
    reported: bool,
}

impl Agent {
    pub fn new(name: String, host: Host, clients: Vec<Client>, at: usize) -> Self {
        Self { name, host, clients, at, sequence: 0, held: 0, need: Need::Full, reported: false }
    }

    fn request(&self, wrong: bool) -> CheckinRequest {
        let full = self.host.full(self.sequence, self.held);
        let sections = match self.need {
            Need::Full => full.sections.clone(),
            Need::Changed => Sections::default(),
        };
        let says = wrong && (self.need == Need::Full || !self.reported);
        let conditions = says.then(|| {
            let code = ConditionCode::RecordsBroken;
            ConditionSet::collect([ReportedCondition::new(
                code,
                Subject::Host {},
                SystemClock.now(),
                "no write succeeds",
            )])
        });
        let sections = Sections { conditions, ..sections };
        match self.need {
            Need::Full => CheckinRequest { sections, ..full },
            Need::Changed => self.host.changed(self.sequence, self.held, sections),
        }
    }

    /// One check-in; who does not answer is not asked again.
    pub async fn check_in(&mut self, fleet: &Fleet, wrong: bool, held_s: u64) -> Option<CheckinAnswer> {
        self.sequence += 1;
        let request = self.request(wrong);
        let path = format!("/v1/agent/checkin?wait={held_s}s");
        let wait = ANSWER_WAIT + Duration::from_secs(held_s);
        let answer =
            asked::<CheckinAnswer>(&self.clients[self.at], Method::POST, &path, &request, wait).await;
        let Some((StatusCode::OK, Envelope { data: Some(answer), .. })) = answer else {
            fleet.failed.fetch_add(1, Ordering::Relaxed);
            self.at = (self.at + 1) % self.clients.len();
            return None;
        };
        fleet.answered.fetch_add(1, Ordering::Relaxed);
        // A report that a hub could not take in asks for all, and acknowledges what it had.
        fleet.acknowledged.lock().unwrap().insert(self.name.clone(), answer.acknowledged);
        self.need = answer.need;
        self.reported |= wrong;
        if let Some(desired) = &answer.desired {
            self.held = generation_of(desired);
        }
        Some(answer)
    }

    /// Checks in now and then, and says after some time that something is wrong.
    pub async fn live(mut self, fleet: std::sync::Arc<Fleet>, mut random: Random, wrong_after: Option<u64>) {
        let mut round = 0;
        while !fleet.is_over() {
            let turn = fleet.turn.read().await;
            let wrong = wrong_after.is_some_and(|after| round >= after);
            self.check_in(&fleet, wrong, 0).await;
            drop(turn);
            round += 1;
            tokio::time::sleep(Duration::from_millis(fleet.pace_ms / 2 + random.below(fleet.pace_ms))).await;
        }
    }

    /// Is held at a hub, and keeps when each document came.
    pub async fn watch(mut self, fleet: std::sync::Arc<Fleet>) {
        while !fleet.is_over() {
            let before = self.held;
            if self.check_in(&fleet, false, HELD_S).await.is_none() {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            for generation in before + 1..=self.held {
                fleet.woken.lock().unwrap().insert((self.name.clone(), generation), Instant::now());
            }
        }
    }
}

/// The generation of a document that came with an answer.
fn generation_of(document: &str) -> u64 {
    let document: serde_json::Value = serde_json::from_str(document).unwrap();
    document["generation"].as_u64().unwrap_or_else(|| panic!("{document}"))
}
