//! The simulator answers as the recorded, genuine node did.
//!
//! The committed recordings are always played; both whole collections too, where they are stored next to the checkout. A difference that is
//! not listed in `conformance/differences.toml` with its reason fails the test.
#![forbid(unsafe_code)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "the helpers of a test fail the test"
)]

use std::path::{Path, PathBuf};

use pve_sim::replay::known_differences::Book;
use pve_sim::replay::play;
use pve_sim::replay::report::Report;

fn recordings(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("folder of recordings");
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.expect("entry").path())
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .collect();
    found.sort();
    found
}

/// Two files at a time: a replay mostly waits for its own workers.
fn play_all(files: &[PathBuf], book: &Book) -> Report {
    let mut report = Report::default();
    for pair in files.chunks(2) {
        std::thread::scope(|scope| {
            let running: Vec<_> =
                pair.iter().map(|file| scope.spawn(move || play::file(file, book))).collect();
            for played in running {
                report.merge(played.join().expect("a replay does not panic").expect("a replay runs"));
            }
        });
    }
    report
}

fn judge(report: &Report) {
    println!("{}", report.summary());
    let sum = report.sum();
    assert!(sum.total > 0, "nothing was played");
    assert!(
        report.differences.is_empty(),
        "{} differences:\n{}",
        report.differences.len(),
        report.differences.join("\n")
    );
    assert_eq!(sum.equal, sum.total);
}

#[test]
fn committed_recordings() {
    let files = recordings(&Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings"));
    assert!(files.len() >= 40, "recordings are missing");
    judge(&play_all(&files, &Book::committed().expect("lists of differences")));
}

#[test]
fn both_whole_collections_where_they_are_there() {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/pve");
    let mut files = Vec::new();
    for collection in ["transcripts", "transcripts-2"] {
        let folder = shared.join(collection);
        if !folder.is_dir() {
            println!("left out: {} is not there", folder.display());
            return;
        }
        files.extend(recordings(&folder));
    }
    let book = Book::committed().expect("lists of differences");
    let report = play_all(&files, &book);
    let unused = book.unused(&report.used);
    assert!(unused.is_empty(), "understood differences that no recording shows any more: {unused:?}");
    judge(&report);
}
