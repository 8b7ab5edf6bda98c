//! A hub that loses its power before each change of a file.
//!
//! In: a share of the losses. Out: what does not hold. A hub is started in an empty folder and answers a fixed list of
//! requests. After a loss of power the next start must succeed, must know everything that was answered, and must answer
//! the rest of the list. Requests without an answer are sent again, as agents and operators do. The hub draws its keys
//! and ids, so a repeated case can have other bytes; TLS is absent, as in [`crate::hub`].

use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::hub_client::{Client, NoAnswer};
use super::hub_requests::{REQUESTS, Session, check};
use super::server::Served;
use crate::hub::open_routes;
use crate::invariant::Violation;
use crate::matrix::case::PowerLoss;
use crate::matrix::plan::Share;
use crate::world::folder;
use power_disk::dice::Dice;
use power_disk::fate::Fate;

/// A start after a loss makes about this many changes.
const START: u64 = 16;

/// The result of the suite.
#[derive(Debug, Default)]
pub struct HubReport {
    /// Changes of files, from the empty folder to the last answer.
    pub changes: u64,
    /// Losses that were tried.
    pub tried: usize,
    /// In this many of them the power was lost again in the start that followed.
    pub twice: usize,
    /// What does not hold, with its case.
    pub wrong: Vec<String>,
}

/// How a life of the hub ended.
enum Life {
    /// Every request was answered.
    Ended,
    /// It could not start, or did not answer.
    Failed(String),
}

/// Starts the hub in a folder, compares its state with its earlier answers, and sends the remaining requests.
async fn live(
    (folder, disk): (&Path, Option<&Served>),
    session: &mut Session,
    wrong: &mut Vec<String>,
) -> Life {
    let opened = match open_routes(&folder.join("hub"), Arc::new(hubd::clock::SystemClock)).await {
        Ok(opened) => opened,
        Err(error) => return Life::Failed(format!("the hub does not start: {error}: {error:?}")),
    };
    let client = Client { opened: &opened };
    let found = session.read_admin_token(folder, opened.admin_token.as_deref());
    wrong.extend(found);
    wrong.extend(check(&client, session).await);
    let now = || disk.map(|disk| disk.power().changes);
    session.answered_at.extend(now());
    let life = loop {
        let Some((name, request)) = REQUESTS.get(session.answered) else { break Life::Ended };
        match request(&client, session).await {
            Ok(()) => session.answered += 1,
            Err(NoAnswer::Failed) => break Life::Failed(format!("{name} was not answered")),
            Err(NoAnswer::Refused(why)) => {
                wrong.push(format!("{name} was refused: {why}"));
                break Life::Ended;
            }
        }
        session.answered_at.extend(now());
    };
    opened.close().await;
    life
}

/// The result of one case.
#[derive(Default)]
struct LossOutcome {
    /// The changes of each life on the disk.
    changes: Vec<u64>,
    /// How many there were at the end of the start, and after each answer.
    answered_at: Vec<u64>,
    /// What does not hold.
    wrong: Vec<String>,
}

/// A hub that loses its power so, once after the other.
fn lose(losses: &[PowerLoss]) -> LossOutcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (mut session, mut wrong, mut changes) = (Session::default(), Vec::new(), Vec::new());
    let mut held = folder();
    for loss in losses {
        let disk = Served::at(held.path(), loss.at);
        let life = runtime.block_on(live((held.path(), Some(&disk)), &mut session, &mut wrong));
        let power = disk.power();
        changes.push(power.changes);
        match life {
            Life::Failed(what) if !power.cut => wrong.push(what),
            Life::Failed(_) | Life::Ended => {}
        }
        if !power.cut {
            return LossOutcome { changes, answered_at: session.answered_at, wrong };
        }
        let found = folder();
        disk.found(loss.fate, found.path());
        drop(disk);
        held = found;
    }
    if let Life::Failed(what) = runtime.block_on(live((held.path(), None), &mut session, &mut wrong)) {
        wrong.push(what);
    }
    LossOutcome { changes, answered_at: session.answered_at, wrong }
}

/// Three single losses before each change, and one that is followed by another in the next start.
fn cases(changes: u64) -> impl Iterator<Item = Vec<PowerLoss>> {
    (0..changes).flat_map(|at| {
        let fates = [Fate::Lost, Fate::Kept, Fate::Torn(at)];
        let mut dice = Dice::of(at);
        let again = PowerLoss { at: dice.below(START), fate: *dice.of_these(&fates) };
        let twice = vec![PowerLoss { at, fate: *dice.of_these(&fates) }, again];
        fates.map(|fate| vec![PowerLoss { at, fate }]).into_iter().chain([twice])
    })
}

/// Tries a share of all losses. In each share the power is also lost right after each answer, with all unsynced data.
#[must_use]
pub fn run(share: Share, threads: usize) -> HubReport {
    let whole = lose(&[PowerLoss { at: u64::MAX, fate: Fate::Kept }]);
    let changes = whole.changes.first().copied().unwrap_or(0);
    let mut report = HubReport { changes, wrong: whole.wrong, ..HubReport::default() };
    if report.changes == 0 || !report.wrong.is_empty() {
        report.wrong.push(format!("undisturbed, {} changes", report.changes));
        return report;
    }
    let in_share = |nth: usize| Dice::of(nth as u64).below(share.of as u64) == share.number as u64;
    let after_answers = whole.answered_at.iter().map(|at| vec![PowerLoss { at: *at, fate: Fate::Lost }]);
    let sampled = cases(report.changes).enumerate().filter(|(nth, _)| in_share(*nth)).map(|(_, case)| case);
    let chosen: Vec<_> = after_answers.chain(sampled).collect();
    report.tried = chosen.len();
    let (next, twice, wrong) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while let Some(case) = chosen.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let ran = std::panic::catch_unwind(|| lose(case));
                    let lost = ran.unwrap_or_else(|panic| LossOutcome {
                        wrong: vec![Violation::of_panic(panic.as_ref()).what],
                        ..LossOutcome::default()
                    });
                    let again = case.get(1).is_some_and(|loss| lost.changes.get(1) == Some(&loss.at));
                    twice.fetch_add(usize::from(again), Ordering::SeqCst);
                    let named: Vec<String> = case.iter().map(ToString::to_string).collect();
                    let named = named.join(",");
                    wrong
                        .lock()
                        .unwrap()
                        .extend(lost.wrong.iter().map(|what| format!("hub, {named}: {what}")));
                }
            });
        }
    });
    report.twice = twice.into_inner();
    report.wrong = wrong.into_inner().unwrap();
    report
}
