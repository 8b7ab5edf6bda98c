//! Replaced small files under a power loss before each change.
//!
//! In: nothing. Out: what does not hold. After each loss the file holds one of the texts whole: the last one whose
//! write was confirmed, or the one that was being written.

use std::path::Path;

use agentd::port::atomic_file::{self, Readers};

use super::server::Served;
use crate::world::folder;
use power_disk::fate::Fate;

/// How often the file is written; each text is longer than a sector.
const TIMES: usize = 3;

/// This many torn fates are tried for each change.
const TORN: u64 = 4;

/// More changes than writing takes, so that the walk ends.
const CHANGES_MAX: u64 = 200;

fn text(nth: usize) -> Vec<u8> {
    format!("text {nth} ").into_bytes().repeat(200)
}

/// Loses the power before each change, with each fate.
#[must_use]
pub fn run() -> Vec<String> {
    let mut wrong = Vec::new();
    for cut_at in 0..CHANGES_MAX {
        match lose(cut_at) {
            LostWrite::Ended if cut_at > 0 => return wrong,
            LostWrite::Ended => return vec!["nothing was written".to_owned()],
            LostWrite::Found(found) => wrong.extend(found),
        }
    }
    wrong.push(format!("more than {CHANGES_MAX} changes"));
    wrong
}

enum LostWrite {
    /// All was written before.
    Ended,
    /// What does not hold afterwards.
    Found(Vec<String>),
}

fn lose(cut_at: u64) -> LostWrite {
    let dir = folder();
    let shown = dir.path().join("shown");
    std::fs::create_dir(&shown).unwrap();
    let disk = Served::at(&shown, cut_at);
    let path = shown.join("key.json");
    let written =
        (1..=TIMES).take_while(|nth| atomic_file::write(&path, &text(*nth), Readers::Owner).is_ok()).count();
    if !disk.is_cut() {
        return LostWrite::Ended;
    }
    let fates =
        [Fate::Lost, Fate::Kept].into_iter().chain((0..TORN).map(|nth| Fate::Torn(cut_at * TORN + nth)));
    let judged = fates.filter_map(|fate| {
        let found = dir.path().join(fate.to_string());
        std::fs::create_dir(&found).unwrap();
        disk.found(fate, &found);
        judge(&found, written).map(|what| format!("power lost before change {cut_at}, {fate}: {what}"))
    });
    LostWrite::Found(judged.collect())
}

fn judge(found: &Path, written: usize) -> Option<String> {
    let bytes = std::fs::read(found.join("key.json")).ok();
    let lawful = [written, written + 1].into_iter().any(|nth| match &bytes {
        Some(bytes) => nth > 0 && *bytes == text(nth),
        None => nth == 0,
    });
    let length = bytes.map(|bytes| bytes.len());
    (!lawful)
        .then(|| format!("text {written} was told as written, found are {length:?} bytes of something else"))
}
