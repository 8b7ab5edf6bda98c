//! An agent's first start under a power loss before each change.
//!
//! In: a share of the changes. Out: what does not hold. The agent makes its database in an empty folder. After each
//! loss the next start opens it and may write. It must not take anything for damaged, for another program's, or for a
//! case for an operator.

use std::path::Path;

use agentd::port::store::Store;
use jiff::Timestamp;

use super::server::Served;
use crate::matrix::plan::Share;
use crate::world::folder;
use power_disk::dice::Dice;
use power_disk::fate::Fate;

/// This many torn fates are tried for each change.
const TORN: u64 = 4;

/// The number of fates.
const FATES: usize = 2 + TORN as usize;

fn open(folder: &Path) -> Option<String> {
    match Store::open_on_callers_thread(folder, Timestamp::from_second(1_700_000_000).unwrap()) {
        Ok(store) => store.refusal().map(|refusal| format!("the store takes nothing: {refusal:?}")),
        Err(error) => Some(format!("the store does not open: {error:?}")),
    }
}

/// Loses the power before each change of a share, with each fate. Gives how many changes there are, how many losses were tried, and
/// what does not hold.
#[must_use]
pub fn run(share: Share) -> (u64, usize, Vec<String>) {
    let (changes, mut wrong) = start(u64::MAX);
    let chosen = (0..changes).filter(|at| Dice::of(*at).below(share.of as u64) == share.number as u64);
    let mut tried = 0;
    for at in chosen {
        wrong.extend(start(at).1);
        tried += FATES;
    }
    (changes, tried, wrong)
}

/// Starts, and loses the power before a change. Gives how many changes there were until then.
fn start(cut_at: u64) -> (u64, Vec<String>) {
    let dir = folder();
    let shown = dir.path().join("agent");
    std::fs::create_dir(&shown).unwrap();
    let disk = Served::at(&shown, cut_at);
    let said = open(&shown);
    let power = disk.power();
    if !power.cut {
        return (power.changes, said.into_iter().collect());
    }
    let torn = (0..TORN).map(|nth| Fate::Torn(cut_at * TORN + nth));
    let found = [Fate::Lost, Fate::Kept].into_iter().chain(torn).filter_map(|fate| {
        let found = dir.path().join(fate.to_string());
        std::fs::create_dir(&found).unwrap();
        disk.found(fate, &found);
        open(&found).map(|what| format!("first start, {cut_at}:{fate}: {what}"))
    });
    (power.changes, found.collect())
}
