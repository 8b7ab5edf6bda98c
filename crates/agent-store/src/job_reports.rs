//! Reports on signed jobs, recorded and refused.
//!
//! A refused text changes nothing on disk but the audit. So it is remembered only in this run, and their number is
//! limited. The same text, refused again for the same reason, leaves no second line. After `LINES_PER_HOUR` lines
//! within an hour nothing more is written, reported or judged until the hour is over. An attacker who controls the hub
//! can send any number of bad texts. They must cost neither disk space nor the time of the audit's readers.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use holdfast_protocol::audit::hex;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::{JobId, OperationId};
use holdfast_protocol::job::{JobReport, JobState, SignedJob, Verb};
use jiff::{SignedDuration, Timestamp};
use rusqlite::Connection;
use sha2::{Digest, Sha256};

use super::columns::{from_json, parsed, time};
use super::{Store, StoreError};

/// Texts that are remembered and reported.
const REPORTED: usize = 32;

/// A refused text is not judged again sooner than this: the hub keeps offering it until it gets the report.
const JUDGED_AGAIN: SignedDuration = SignedDuration::from_secs(30);

/// Lines an hour.
const LINES_PER_HOUR: usize = 120;

/// Jobs on record that are reported.
const ON_RECORD: u32 = 50;

/// A text that was turned away.
#[derive(Clone, Debug)]
pub(super) struct Word {
    id: JobId,
    /// SHA-256 of the text, in hex.
    pub blob: String,
    problem: ErrorBody,
    at: Timestamp,
    judged_at: Timestamp,
}

/// The texts that were refused lately.
#[derive(Default)]
pub(super) struct Mail(Mutex<Lately>);

#[derive(Default)]
struct Lately {
    words: VecDeque<Word>,
    lines: VecDeque<Timestamp>,
}

impl Lately {
    fn is_full(&mut self, at: Timestamp) -> bool {
        // A line dated ahead of now was written before the clock was set back, and does not count for this hour.
        let within = SignedDuration::ZERO..=SignedDuration::from_hours(1);
        self.lines.retain(|line| within.contains(&at.duration_since(*line)));
        self.lines.len() >= LINES_PER_HOUR
    }
}

impl Mail {
    fn lately(&self) -> MutexGuard<'_, Lately> {
        // A poisoned lock still guards valid messages and times.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The entry to write for a text, unless it was written already.
    pub(super) fn word(&self, id: JobId, blob: &str, problem: &ErrorBody, at: Timestamp) -> Option<Word> {
        let blob = hex(&Sha256::digest(blob.as_bytes()));
        let mut lately = self.lately();
        let same = |word: &&mut Word| word.id == id && word.blob == blob && word.problem.code == problem.code;
        if let Some(word) = lately.words.iter_mut().find(same) {
            word.judged_at = at;
            return None;
        }
        Some(Word { id, blob, problem: problem.clone(), at, judged_at: at })
    }

    /// Whether a text was turned away a moment ago, so that nothing can have become of it since.
    fn is_judged(&self, id: JobId, blob: &str, at: Timestamp) -> bool {
        let blob = hex(&Sha256::digest(blob.as_bytes()));
        // A moment in the future was noted before the clock was set back.
        let lately = SignedDuration::ZERO..JUDGED_AGAIN;
        let same = |word: &Word| word.id == id && word.blob == blob;
        self.lately()
            .words
            .iter()
            .any(|word| same(word) && lately.contains(&at.duration_since(word.judged_at)))
    }

    /// A line was written.
    pub(super) fn line(&self, at: Timestamp) {
        self.lately().lines.push_back(at);
    }

    /// The operators have changed: a text that was refused before may be valid now.
    pub(super) fn judge_anew(&self) {
        for word in &mut self.lately().words {
            word.judged_at = Timestamp::MIN;
        }
    }

    /// It could not be written.
    pub(super) fn unkeep(&self, id: JobId) {
        let mut lately = self.lately();
        lately.words.retain(|word| word.id != id);
        lately.lines.pop_back();
    }

    /// It is on disk, or will be in a moment.
    pub(super) fn keep(&self, word: Word) {
        let mut lately = self.lately();
        lately.lines.push_back(word.at);
        // A later reason for the same text replaces the earlier one.
        lately.words.retain(|other| other.id != word.id);
        lately.words.push_back(word);
        if lately.words.len() > REPORTED {
            lately.words.pop_front();
        }
    }

    fn reports(&self) -> Vec<JobReport> {
        let report = |word: &Word| JobReport {
            id: word.id,
            blob: word.blob.clone(),
            state: JobState::Refused,
            verb: None,
            guest: None,
            signers: Vec::new(),
            taken_at: word.at,
            due_at: None,
            ended_at: None,
            operation: None,
            problem: Some(word.problem.clone()),
            // The hub has the one of the text.
            correlation_id: None,
        };
        self.lately().words.iter().map(report).collect()
    }
}

struct Raw {
    texts: [String; 5],
    guest: Option<String>,
    problem: Option<String>,
    times: [i64; 2],
    ended_at: Option<i64>,
    opened: bool,
    correlation: Option<String>,
}

fn raw(row: &rusqlite::Row<'_>) -> Result<Raw, rusqlite::Error> {
    Ok(Raw {
        texts: [row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?],
        guest: row.get(5)?,
        problem: row.get(6)?,
        times: [row.get(7)?, row.get(8)?],
        ended_at: row.get(9)?,
        opened: row.get(10)?,
        correlation: row.get(11)?,
    })
}

impl Raw {
    fn report(self) -> Result<JobReport, StoreError> {
        let [id, blob, verb, signers, state] = self.texts;
        let [taken_at, due_at] = self.times;
        let id: JobId = parsed("a job", &id)?;
        let verb: Verb = from_json("a verb", &format!("\"{verb}\""))?;
        let state: JobState = from_json("a job's state", &format!("\"{state}\""))?;
        Ok(JobReport {
            id,
            blob: hex(&Sha256::digest(blob.as_bytes())),
            state,
            verb: Some(verb),
            guest: self.guest.map(|guest| parsed("a guest", &guest)).transpose()?,
            signers: from_json("who signed", &signers)?,
            taken_at: time(taken_at)?,
            due_at: (state == JobState::Waiting).then(|| time(due_at)).transpose()?,
            ended_at: self.ended_at.map(time).transpose()?,
            operation: self.opened.then(|| OperationId::new(id.uuid())),
            problem: self.problem.map(|text| from_json("why a job ended", &text)).transpose()?,
            correlation_id: self.correlation.map(|id| parsed("a correlation id", &id)).transpose()?,
        })
    }
}

fn on_record(connection: &Connection) -> Result<Vec<JobReport>, StoreError> {
    let sql = "SELECT id, blob, verb, signers, state, guest, problem, taken_at, due_at, ended_at,
               EXISTS (SELECT 1 FROM operation WHERE operation.id = job.id), correlation FROM job
               ORDER BY ended_at IS NULL DESC, taken_at DESC, id LIMIT ?1";
    let rows: Vec<Raw> = connection
        .prepare_cached(sql)
        .and_then(|mut select| select.query_map([ON_RECORD], raw)?.collect())
        .map_err(StoreError::sqlite("read the jobs"))?;
    rows.into_iter().map(Raw::report).collect()
}

impl Store {
    /// Reports on signed jobs: those on record, the open ones first, and those refused lately.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn job_reports(&self) -> Result<Vec<JobReport>, StoreError> {
        let mut reports = self.read(on_record).await?;
        // A job that was taken after all speaks for itself.
        let away = self.mail.reports().into_iter().filter(|word| reports.iter().all(|job| job.id != word.id));
        let away: Vec<JobReport> = away.collect();
        reports.extend(away);
        Ok(reports)
    }

    /// Whether texts are judged now, or too many were refused within the hour.
    #[must_use]
    pub fn takes_mail(&self, at: Timestamp) -> bool {
        !self.mail.lately().is_full(at)
    }

    /// Whether a text was judged and turned away a moment ago.
    #[must_use]
    pub fn turned_away_just_now(&self, left: JobId, blob: &str, at: Timestamp) -> bool {
        self.mail.is_judged(left, blob, at)
    }

    /// The signed job that a text is, when it is on record.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn knows_job(&self, signed: &SignedJob) -> Result<bool, StoreError> {
        let digest = Sha256::digest(&signed.payload).to_vec();
        self.read(move |connection| {
            connection
                .prepare_cached("SELECT count(*) FROM job WHERE digest = ?1")
                .and_then(|mut select| select.query_row([digest], |row| row.get::<_, u32>(0)))
                .map(|known| known > 0)
                .map_err(StoreError::sqlite("look for a job"))
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_count_for_an_hour_and_not_when_the_clock_was_set_back() {
        let at = |second: i64| Timestamp::from_second(1_800_000_000 + second).unwrap();
        let mail = Mail::default();
        (0..LINES_PER_HOUR).for_each(|_| mail.line(at(0)));
        assert!(mail.lately().is_full(at(3_600)));
        assert!(!mail.lately().is_full(at(3_601)), "an hour has passed");
        (0..LINES_PER_HOUR).for_each(|_| mail.line(at(4_000)));
        assert!(!mail.lately().is_full(at(3_999)), "the clock was set back");
    }
}
