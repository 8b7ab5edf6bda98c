//! Tests of `agentd escrow` at a terminal.
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

mod copies;
mod crash;
mod fake_hub;
mod handed;
mod hub;
mod hub_crash;
mod memory;
mod own_key;
mod place;
mod recovered;

use agentd::model::escrow::CodeStatus;
use agentd::plan::escrow::{RETIRE_AFTER, current};
use holdfast_protocol::code::ErrorCode;
use holdfast_recovery::RecoveryCode;
use holdfast_recovery::escrow::{EscrowFile, Expected};
use jiff::SignedDuration;

use crate::escrow::place::{Place, key};
use crate::paper::{ENTER, Paper};
use crate::terminal::{at_terminal, typed_by};

impl Paper {
    fn of(code: &RecoveryCode) -> Self {
        Self { words: code.words().map(str::to_owned).collect(), ..Self::new(0) }
    }

    fn code(&self) -> RecoveryCode {
        RecoveryCode::read(&self.whole()).unwrap()
    }
}

/// A code whose making was completed is in the store and opens with the words; nothing else holds the words.
fn opens(place: &Place, paper: &Paper, number: u32) -> EscrowFile {
    let known = place.codes();
    let code = current(&known.codes, key().fingerprint()).unwrap();
    assert_eq!(code.number().number(), number);
    let file = place.file(code.number());
    let opened = file.open(&paper.code(), Expected::Exactly(&code.record)).unwrap();
    assert_eq!(opened.key().to_json().unwrap().expose(), key().to_json().unwrap().expose());
    file
}

#[test]
fn a_code_is_made_typed_back_and_drilled_and_nothing_of_it_stays() {
    let place = Place::new();
    let mut paper = Paper::new(2);
    let shown = typed_by(place.path(), "bin/agentd escrow create", &mut |fresh: &str| paper.answer(fresh));
    assert!(shown.contains("Recovery code 1 opens the off-site backups at off1 from now on."), "{shown}");
    assert_eq!(paper.asked, 5, "three words and two slips: {shown}");
    opens(&place, &paper, 1);
    // The words were shown only on the alternate screen, which was wiped before it was left.
    let (before, rest) = shown.split_once("\x1b[?1049h").unwrap();
    let (page, after) = rest.split_once("\x1b[?1049l").unwrap();
    assert!(page.ends_with("\x1b[2J\x1b[H"));
    place.nothing_of(&paper.words, &[before, after]);

    // A wrong word that is on the list is named by its position, as the sheet promises.
    let mut wrong = paper.words.clone();
    wrong[6] = if wrong[6] == "abacus" { "zoology" } else { "abacus" }.to_owned();
    let typed =
        [(crate::paper::WORDS, wrong.join(" ")), ("All eleven words again (not shown): ", paper.whole())];
    let typed: Vec<(&str, &str)> = typed.iter().map(|(asked, words)| (*asked, words.as_str())).collect();
    let named = at_terminal(place.path(), "bin/agentd escrow drill", &typed);
    assert!(named.contains("word 7 is wrong: compare it with the sheet"), "{named}");
    place.nothing_of(&paper.words, &[&named]);

    let drilled = typed_by(place.path(), "bin/agentd escrow drill", &mut |fresh: &str| paper.answer(fresh));
    assert!(drilled.contains("Yes: recovery code 1 opens the off-site backups."), "{drilled}");
    assert!(place.codes().codes[0].drilled_at.is_some());
    let (code, status) = place.without_terminal(&["escrow", "status"]);
    assert_eq!(code, 0, "{status}");
    assert!(status.contains("in use, made") && status.contains("off1"), "{status}");
    let (code, json) = place.without_terminal(&["escrow", "status", "--output", "json"]);
    assert_eq!(code, 0, "{json}");
    assert!(json.contains("holdfast.escrow-status/v1"), "{json}");
    place.nothing_of(&paper.words, &[&drilled, &status, &json]);

    // A second one is only made on explicit request, and then both open the key.
    let again = typed_by(place.path(), "! bin/agentd escrow create", &mut |fresh: &str| paper.answer(fresh));
    assert!(again.contains("code 1 opens this key already"), "{again}");
    let mut newer = Paper::new(0);
    let rotated =
        typed_by(place.path(), "bin/agentd escrow rotate --strict", &mut |fresh: &str| newer.answer(fresh));
    assert!(rotated.contains("Recovery code 2 opens"), "{rotated}");
    opens(&place, &newer, 2);
    let first = place.codes().codes[0].clone();
    place.file(first.number()).open(&paper.code(), Expected::Exactly(&first.record)).unwrap();
    assert!(place.file(first.number()).open(&newer.code(), Expected::Exactly(&first.record)).is_err());

    // The older one is removed only after the hold, and by the words of the newer.
    let held = typed_by(place.path(), "! bin/agentd escrow retire 1", &mut |fresh: &str| newer.answer(fresh));
    assert!(held.contains("an older one stays for 14 days"), "{held}");
    place.later(RETIRE_AFTER + SignedDuration::from_hours(1));
    let gone = typed_by(place.path(), "bin/agentd escrow retire 1", &mut |fresh: &str| newer.answer(fresh));
    assert!(gone.contains("Code 1 is given up"), "{gone}");
    assert!(matches!(place.codes().codes[0].status, CodeStatus::Retired { .. }));
    let last = typed_by(place.path(), "! bin/agentd escrow retire 2", &mut |fresh: &str| newer.answer(fresh));
    assert!(last.contains("it is the newest") || last.contains("is the newest that opens its key"), "{last}");
    opens(&place, &newer, 2);
    place.nothing_of(&paper.words, &[]);
    place.nothing_of(&newer.words, &[&rotated[rotated.find("1049l").unwrap()..], &held, &gone, &last]);
}

/// A person who leaves in the middle leaves a number that opens nothing, and what opened the key before still does.
#[test]
fn any_ends_it_at_any_question_leaves_what_was() {
    let place = Place::new();
    let mut first = Paper::new(0);
    typed_by(place.path(), "bin/agentd escrow create", &mut |fresh: &str| first.answer(fresh));
    for end in [ENTER, "of your paper (not shown): "] {
        let mut paper = Paper::new(0);
        let mut ending = |fresh: &str| {
            if fresh.contains(end) { Some("\x03".to_owned()) } else { paper.answer(fresh) }
        };
        let shown = typed_by(place.path(), "! bin/agentd escrow rotate", &mut ending);
        assert!(shown.contains("this code was thrown away and opens nothing"), "{shown}");
        opens(&place, &first, 1);
        let left = place.codes().codes;
        assert_eq!(left.len(), 2);
        assert!(matches!(left.last().unwrap().status, CodeStatus::Shown { .. }));
    }
    let mut guesser = Paper::new(usize::MAX);
    let shown =
        typed_by(place.path(), "! bin/agentd escrow rotate", &mut |fresh: &str| guesser.answer(fresh));
    assert!(shown.contains("this code was thrown away"), "{shown}");
    assert_eq!(guesser.asked, 6, "bounded");
    opens(&place, &first, 1);
    let (code, status) = place.without_terminal(&["escrow", "status"]);
    assert_eq!(code, 0, "{status}");
    assert_eq!(status.matches("never typed back, opens nothing").count(), 1, "the last try alone: {status}");
    // It opens nothing, so this is said before any question.
    let retire = at_terminal(place.path(), "! bin/agentd escrow retire 2", &[]);
    assert!(retire.contains("code 2 opens nothing: there is nothing to give up"), "{retire}");
    let newest = at_terminal(place.path(), "! bin/agentd escrow retire 1", &[]);
    assert!(newest.contains("code 1 is the newest that opens its key"), "{newest}");
}

#[test]
fn a_sheet_lies_in_memory_while_it_is_printed_and_no_longer() {
    let place = Place::new();
    let sheet = std::path::PathBuf::from(format!("/dev/shm/holdfast-test-{}.txt", std::process::id()));
    let mut paper = Paper::new(0);
    let (at, mut taken) = (sheet.clone(), Vec::new());
    let mut reader = |fresh: &str| {
        if fresh.contains("Enter when you hold the paper") {
            let text = std::fs::read_to_string(&at).unwrap();
            let mut words: Vec<(u32, String)> = text
                .split("[ ] ")
                .skip(1)
                .filter_map(|piece| piece.trim_start().split_once(".  "))
                .map(|(number, rest)| {
                    (number.parse().unwrap(), rest.split_whitespace().next().unwrap().to_owned())
                })
                .collect();
            assert!(
                text.contains("export PBS_REPOSITORY='acme-read@pbs!sheet@10.66.0.1:8007:store1'"),
                "{text}"
            );
            assert!(text.contains("Off-site target: off1"), "{text}");
            words.sort();
            paper.words = words.into_iter().map(|(_, word)| word).collect();
            taken.clone_from(&paper.words);
            return Some(String::new());
        }
        paper.answer(fresh)
    };
    let line = format!("bin/agentd escrow create --output json --sheet {}", sheet.display());
    let shown = typed_by(place.path(), &line, &mut reader);
    assert!(shown.contains("holdfast.escrow-made/v1"), "{shown}");
    assert!(!sheet.exists());
    assert_eq!(taken.len(), 11);
    opens(&place, &paper, 1);
    place.nothing_of(&paper.words, &[&shown]);
    // On a disk the words would outlive the paper.
    let on_disk =
        std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("sheet-{}.pdf", std::process::id()));
    let line = format!("! bin/agentd escrow rotate --sheet {}", on_disk.display());
    let refused = typed_by(place.path(), &line, &mut |fresh: &str| paper.answer(fresh));
    assert!(refused.contains("does not lie in memory"), "is the target folder in memory? {refused}");
    assert!(!on_disk.exists());
}

#[test]
fn without_a_terminal_or_a_target_nothing_begins() {
    let place = Place::new();
    let (code, says) = place.without_terminal(&["escrow", "create"]);
    assert_eq!(code, 74, "{says}");
    assert!(says.contains("there is none: run this in one"), "{says}");
    let plain = at_terminal(place.path(), "! TERM=dumb bin/agentd escrow create", &[]);
    assert!(plain.contains("cannot take back what it shows"), "{plain}");
    let other = at_terminal(place.path(), "! bin/agentd escrow create --target off2", &[]);
    assert!(other.contains("off2 is no attached off-site target"), "{other}");
    let none = at_terminal(place.path(), "! bin/agentd escrow rotate", &[]);
    assert!(none.contains("there is no code for this key yet"), "{none}");
    let drill = at_terminal(place.path(), "! bin/agentd escrow drill", &[]);
    assert!(drill.contains("no wrapped key is kept here"), "{drill}");
    assert!(place.codes().codes.is_empty(), "nothing was begun");
    let (code, status) = place.without_terminal(&["escrow", "status"]);
    assert_eq!(code, 0, "{status}");
    assert!(status.contains(ErrorCode::EscrowMissing.as_str()), "{status}");
}
