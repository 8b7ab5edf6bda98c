//! Tests of a restored and booted copy.

use std::time::Duration;

use e2e::wait;

use super::backup::TimedBackup;
use super::guest::Guest;
use super::shop;
use super::stand::Stand;

/// A recovery replays minutes of writing at most; nothing is measured by it.
const UP: Duration = Duration::from_secs(300);
const LOG: &str = "/var/log/postgresql/postgresql-17-main.log";

/// Nothing was stopped: PostgreSQL recovers, and has every row that it acknowledged before.
pub fn after_a_power_cut(stand: &Stand, taken: &TimedBackup) {
    stand.step("the first backup, restored and booted: PostgreSQL recovers");
    let copy = stand.restore(&taken.archive);
    assert!(!copy.path("/var/lib/holdfast/quiesce.json").exists(), "nothing was stopped for it");
    assert!(shop::journal(&copy).1.is_empty(), "the till was never told to stop");
    let said = booted(stand, &copy);
    assert!(
        said.contains("database system was not properly shut down; automatic recovery in progress"),
        "{said}"
    );
    assert!(!said.contains("database system was shut down at"), "{said}");
    whole(&copy, taken);
    off(stand, &copy);
}

/// Everything was stopped: PostgreSQL has nothing to recover, and what ran then runs now.
pub fn after_an_orderly_end(stand: &Stand, taken: &TimedBackup) {
    stand.step("the second backup, restored and booted: PostgreSQL was shut down");
    let copy = stand.restore(&taken.archive);
    assert!(copy.path("/var/lib/holdfast/quiesce.json").is_file(), "it says what ran");
    let (last, closed) = shop::journal(&copy);
    assert_eq!(closed, [format!("closed after {last}")], "the till had ended in order");
    let said = booted(stand, &copy);
    assert!(said.contains("database system was shut down at"), "{said}");
    assert!(!said.contains("recovery"), "{said}");
    whole(&copy, taken);
    let wanted =
        [("aside", "exited"), ("till", "running")].map(|(one, two)| (one.to_owned(), two.to_owned()));
    wait::until("what ran when it was taken", UP, || Ok((shop::containers(&copy) == wanted).then_some(())))
        .unwrap();
    wait::until("the till writes on", UP, || Ok((shop::journal(&copy).0 > last).then_some(()))).unwrap();
    off(stand, &copy);
}

/// Boots it, and returns what PostgreSQL logged of its start.
fn booted(stand: &Stand, copy: &Guest) -> String {
    let before = copy.read(LOG).len();
    stand.stage.fault(&["start", &copy.vmid.to_string()]).unwrap();
    let log = wait::until("PostgreSQL in the copy", UP, || {
        let said = copy.read(LOG).get(before..).unwrap_or_default().to_owned();
        Ok(said.contains("database system is ready to accept connections").then_some(said))
    });
    let said = log.unwrap();
    for line in said.lines().filter(|line| line.contains("database system")) {
        println!("         {line}");
    }
    said
}

/// Every row that was acknowledged is there, none is missing between, and the pages are sound.
fn whole(copy: &Guest, taken: &TimedBackup) {
    // The copy's own record was written after each acknowledgement, so it is never ahead.
    let noted = shop::acknowledged(copy);
    let said = copy.run(&["/bin/bash", "/srv/whole.sh"]);
    let of = |name: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name} is missing: {said}")).to_owned()
    };
    let (rows, last): (u64, u64) = (of("rows").parse().unwrap(), of("last").parse().unwrap());
    assert_eq!(rows, last, "no row is missing: {said}");
    assert!(last >= noted && noted >= taken.acknowledged, "{last} of {noted} of {}", taken.acknowledged);
    assert_eq!((of("books").as_str(), of("pages").as_str()), ("t", "sound"), "{said}");
    println!("         {rows} rows, {} acknowledged before the backup was asked for", taken.acknowledged);
}

fn off(stand: &Stand, copy: &Guest) {
    stand.stage.fault(&["stop", &copy.vmid.to_string()]).unwrap();
}
