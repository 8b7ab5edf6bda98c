//! A stolen hub, given back at the end.
//!
//! In: a seed; each move is chosen by its number and the seed alone, so that the first moves of a run are equal however
//! many follow. Out: replies, the story in words, and the received reports, which are searched for secrets at once.
//! Deliberately absent: an operator's key.

use std::collections::BTreeSet;
use std::time::Duration;

use agentd::port::hub_ca;
use agentd::port::identity::Identity;
use holdfast_protocol::checkin::CheckinRequest;
use holdfast_protocol::enrol::RenewRequest;
use holdfast_protocol::id::JobId;
use holdfast_protocol::report::{AuditHead, Sections};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::mail::{self, Captured};
use super::papers::Papers;
use super::{absurd, document, orders, promise};
use crate::fake_hub::{Brain, Reply, framed};
use power_disk::dice::Dice;

/// The story keeps only this many lines.
const STORY_LINES: usize = 400;

/// The longest report that a quiet host has any reason to send.
pub const REPORT_MAX: usize = 1 << 20;

/// Who controls the hub.
#[derive(Clone, Debug)]
pub enum Rule {
    Stolen,
    /// The hub is back with its owner: it wants this document and this job.
    Honest {
        guests: Value,
        /// Jobs that were signed.
        mail: Vec<(JobId, String)>,
    },
}

/// What the hub heard.
#[derive(Default)]
pub struct ReceivedReports {
    /// The newest content of each section.
    pub sections: Sections,
    /// The generation that is held.
    pub held: u64,
    /// The highest audit line, and its hash.
    pub head: Option<AuditHead>,
    /// Every head that was reported since the last check.
    pub heads: Vec<AuditHead>,
    /// How many check-ins there were.
    pub checkins: u64,
    /// The longest of them.
    pub longest: usize,
    /// Reported things that must not be reported.
    pub reported: Vec<String>,
}

pub struct Stolen {
    seed: u64,
    began: Timestamp,
    /// Who controls it.
    pub rule: Rule,
    /// The number of the next move.
    pub moves: u64,
    /// No move has this number, or a higher one.
    pub until: u64,
    next_at: Duration,
    flood: u64,
    /// The honest document's number, once there is one.
    pub generation: Option<u64>,
    papers: Papers,
    /// An order to restore this host that operators took back.
    pub withdrawn: Option<String>,
    /// What passed through it.
    pub captured: Vec<Captured>,
    /// What was heard.
    pub heard: ReceivedReports,
    /// Secrets that must not be reported.
    pub secrets: BTreeSet<String>,
    pub story: Vec<String>,
}

impl Stolen {
    /// A hub that was just stolen.
    #[must_use]
    pub fn new(seed: u64, until: u64, papers: Papers, began: Timestamp) -> Self {
        Self {
            seed,
            began,
            rule: Rule::Stolen,
            moves: 0,
            until,
            next_at: Duration::from_secs(60),
            flood: 0,
            generation: None,
            papers,
            withdrawn: None,
            captured: Vec::new(),
            heard: ReceivedReports::default(),
            secrets: BTreeSet::new(),
            story: Vec::new(),
        }
    }

    pub fn report(&mut self, at: Duration, text: &str) {
        let line = format!("{:>11.3} {}", at.as_secs_f64(), text.chars().take(200).collect::<String>());
        self.story.push(line);
        if self.story.len() > STORY_LINES {
            self.story.remove(0);
        }
    }

    fn now(&self, at: Duration) -> Timestamp {
        self.began.checked_add(SignedDuration::try_from(at).unwrap()).unwrap()
    }

    /// The dice of a move: of the seed and its number alone.
    fn dice(&self) -> Dice {
        let mut both = Dice::of(self.seed ^ self.moves.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Dice::of(both.throw())
    }

    fn hear_report(&mut self, body: &[u8]) -> Option<CheckinRequest> {
        self.heard.checkins += 1;
        self.heard.longest = self.heard.longest.max(body.len());
        let request: CheckinRequest = match serde_json::from_slice(body) {
            Ok(request) => request,
            Err(error) => {
                self.heard.reported.push(format!("a report that cannot be read: {error}"));
                return None;
            }
        };
        self.heard.held = request.held.number();
        self.heard.sections.apply(request.sections.clone());
        if let Some(trust) = &request.sections.trust {
            self.heard.heads.push(trust.audit.clone());
            self.heard.head = Some(trust.audit.clone());
        }
        Some(request)
    }

    fn search(&mut self, body: &[u8]) {
        let text = String::from_utf8_lossy(body);
        for secret in &self.secrets {
            if text.contains(secret.as_str()) {
                let start: String = secret.chars().take(12).collect();
                self.heard.reported.push(format!("the hub was told the secret {start}…"));
            }
        }
    }

    fn check_in(&mut self, path: &str, body: &[u8], at: Duration) -> Reply {
        let Some(request) = self.hear_report(body) else { return Reply::at_once(400, "{}") };
        let wait = path.split_once("wait=").and_then(|(_, rest)| rest.trim_end_matches('s').parse().ok());
        let wait = Duration::from_secs(wait.unwrap_or(0));
        let quiet = json!({
            "acknowledged": request.sequence, "need": "changed", "poll_interval_s": 60,
            "audit_seen": self.heard.head.as_ref().map_or(0, |head| head.number),
        });
        if let Rule::Honest { guests, mail } = self.rule.clone() {
            return self.honest(quiet, &guests, &mail, wait);
        }
        let idle = match self.moves < self.until {
            true if self.flood > 0 => Duration::ZERO,
            true => self.next_at.saturating_sub(at),
            false => Duration::MAX,
        };
        if idle.is_zero() { self.strike(quiet, at) } else { later(quiet, idle) }
    }

    /// The next move, and the time of the one after it.
    fn strike(&mut self, quiet: Value, at: Duration) -> Reply {
        let mut dice = self.dice();
        self.moves += 1;
        if self.flood > 0 {
            self.flood -= 1;
        }
        let gap = match dice.below(10) {
            0..7 => dice.below(120),
            7 | 8 => dice.below(3_600),
            _ => dice.below(3 * 3_600),
        };
        self.next_at = at + Duration::from_secs(gap);
        let (reply, what) = match dice.below(100) {
            0..38 => self.document(&mut dice, quiet),
            38..72 => self.mailbox(&mut dice, quiet),
            72 => {
                self.flood = 20 + dice.below(180);
                self.mailbox(&mut dice, quiet)
            }
            73 | 74 => replaced(),
            75..77 => orders::write(&mut dice, &self.heard.sections, quiet),
            77..80 => (held(&quiet, Duration::ZERO), "answer: nothing, withheld".to_owned()),
            _ => absurd::write(&mut dice, &quiet),
        };
        self.report(at, &format!("move {}: {what}", self.moves - 1));
        reply
    }

    fn document(&mut self, dice: &mut Dice, mut answer: Value) -> (Reply, String) {
        let written = document::write(dice, self.heard.held);
        answer["desired"] = json!(written.text);
        if dice.below(6) == 0 {
            answer["poll_interval_s"] = json!(*dice.of_these(&[1, 5, 3_600]));
        }
        (Reply::data(&answer), written.what)
    }

    fn mailbox(&mut self, dice: &mut Dice, mut answer: Value) -> (Reply, String) {
        let count = *dice.of_these(&[1, 1, 1, 2, 4, 4, 9]);
        let all: Vec<_> = (0..count).map(|_| mail::write(dice, &self.captured)).collect();
        let words: Vec<&str> = all.iter().map(|one| one.what.as_str()).collect();
        let what = format!("mail: {}", words.join("; "));
        answer["jobs"] = all.iter().map(|one| json!({ "id": one.id, "blob": one.text })).collect();
        (Reply::data(&answer), what)
    }

    fn honest(
        &mut self,
        mut answer: Value,
        guests: &Value,
        mail: &[(JobId, String)],
        wait: Duration,
    ) -> Reply {
        // A document of the thief may still be on its way: then the next number is the right one.
        let generation = match self.generation {
            Some(generation) if generation >= self.heard.held => generation,
            _ => *self.generation.insert(self.heard.held + 1),
        };
        let news = self.heard.held < generation;
        if news {
            let document = json!({
                "schema": "holdfast.desired/v1", "generation": generation, "poll_interval_s": 3_600,
                "policies": promise::honest(), "guests": guests,
            });
            answer["desired"] = json!(document.to_string());
        }
        let spoken_of = |id: &JobId| self.heard.sections.jobs.iter().flatten().any(|job| job.id == *id);
        let left: Vec<Value> = mail
            .iter()
            .filter(|(id, _)| !spoken_of(id))
            .map(|(id, text)| json!({ "id": id, "blob": text }))
            .collect();
        if !left.is_empty() {
            answer["jobs"] = json!(left);
        }
        if news { Reply::data(&answer) } else { held(&answer, wait) }
    }

    /// The order that operators took back, without its withdrawal.
    fn replacement(&self) -> Reply {
        match &self.withdrawn {
            Some(order) => Reply::data(&json!({ "order": order })),
            None => Reply::at_once(404, "{}"),
        }
    }

    fn renew(&mut self, body: &[u8], at: Duration) -> Reply {
        let ask: RenewRequest = serde_json::from_slice(body).unwrap();
        let now = self.now(at);
        let mut dice = self.dice();
        let stolen = matches!(self.rule, Rule::Stolen) && self.moves < self.until;
        let enrolled = if stolen && dice.below(4) > 0 {
            let (wrong, what) = self.papers.wrong(&mut dice, &ask.csr_pem, now);
            self.report(at, &format!("a certificate {what}"));
            wrong
        } else {
            self.papers.renewed(&ask.csr_pem, now)
        };
        Reply::data(&json!(enrolled))
    }
}

/// The hub reports that another host has this one's place: the agent requests the order next.
fn replaced() -> (Reply, String) {
    let error = json!({ "code": "REPLACED", "message": "another box took the place" });
    (Reply::at_once(403, framed(&Value::Null, &error)), "answer: replaced".to_owned())
}

/// Nothing new, and the next check-in only then: the run wastes no check-in on a held connection.
fn later(mut quiet: Value, idle: Duration) -> Reply {
    quiet["poll_interval_s"] = json!(idle.as_secs().clamp(1, 3_600));
    Reply::data(&quiet)
}

/// Nothing new, after this time.
fn held(quiet: &Value, wait: Duration) -> Reply {
    Reply::data(quiet).after(wait)
}

impl Brain for Stolen {
    fn hear(&mut self, path: &str, body: &[u8], at: Duration) -> Reply {
        self.search(body);
        match path.split('?').next().unwrap_or_default() {
            "/v1/renew" => self.renew(body, at),
            "/v1/agent/replacement" => self.replacement(),
            _ => self.check_in(path, body, at),
        }
    }

    fn is_reached_by(&self, identity: &Identity) -> bool {
        let own = hub_ca::pins(&self.papers.ca_pem());
        own.iter().all(|pin| hub_ca::pins(&identity.enrolled.ca_pem).contains(pin))
    }
}
