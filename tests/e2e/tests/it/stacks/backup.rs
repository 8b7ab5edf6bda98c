//! Measurements of a backup: label, stop time, copy time.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use e2e::wait;
use serde_json::Value;

use super::guest::Guest;
use super::shop;
use super::stand::Stand;

/// A stack is back soon after its controller was killed; this is no measurement.
const BOUND: Duration = Duration::from_secs(300);

/// The kind of backup that is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    AsAfterAPowerCut,
    StandingStill,
}

/// A backup that was taken.
pub struct TimedBackup {
    pub archive: PathBuf,
    /// The highest number that the database had acknowledged before the backup was requested.
    pub acknowledged: u64,
    /// From the first stop to the last start, as the controller counted it.
    still: Duration,
    /// From the first to the last byte of the archive.
    copy: Duration,
    /// The longest time between two commits, while the backup went on.
    gap: Duration,
    /// Commits between the first and the last byte of the archive.
    copy_of: u64,
}

/// Takes one, as a person in the guest does.
pub fn take(stand: &Stand, shop: &Guest, want: Want) -> TimedBackup {
    stand.step(match want {
        Want::AsAfterAPowerCut => "a backup for which nothing is stopped",
        Want::StandingStill => "a backup for which the stacks stand still",
    });
    let (before, acknowledged) = (stand.archives(shop), shop::acknowledged(shop));
    let mut words = vec!["guestd", "backup", "--output", "json"];
    words.extend((want == Want::AsAfterAPowerCut).then_some("--crash-consistent"));
    let view: Value = serde_json::from_str(&shop.run(&words)).unwrap();
    let kind = if want == Want::StandingStill { "quiesced_backup" } else { "backup" };
    assert_eq!((view["kind"].as_str(), view["status"].as_str()), (Some(kind), Some("done")), "{view:#}");
    shop::goes_on(shop);
    let (begun, archive) = stand.archives(shop).pop_last().expect("an archive");
    assert!(!before.contains_key(&begun), "a new one");
    let still = match want {
        Want::AsAfterAPowerCut => Duration::ZERO,
        Want::StandingStill => stood_still(shop),
    };
    let ended = archive.metadata().unwrap().modified().unwrap();
    let (copy, copy_of) = (ended.duration_since(begun).unwrap(), commits(shop, begun, ended));
    TimedBackup { archive, acknowledged, still, copy, gap: gap(shop, acknowledged), copy_of }
}

/// Another one with more to copy. The archive is begun while everything is stopped. A program that commits before its
/// last byte was therefore started again without waiting for the copy.
pub fn of_more(stand: &Stand, shop: &Guest) -> TimedBackup {
    shop::grow(stand, shop);
    let taken = take(stand, shop, Want::StandingStill);
    assert!(taken.copy_of > 0, "nobody wrote before the copy was done, in {:?}", taken.copy);
    taken
}

/// The controller is killed while it has stacks stopped: they come back without it, and so does the lane.
pub fn interrupted(stand: &Stand, shop: &Guest) {
    stand.step("a window whose controller is killed");
    let before = stand.archives(shop).len();
    let closed = || shop::journal(shop).1.len();
    let stopped_before = closed();
    shop.run(&["systemd-run", "--quiet", "--unit=window", "guestd", "backup"]);
    wait::until("a container that was told to stop", BOUND, || Ok((closed() > stopped_before).then_some(())))
        .unwrap();
    shop.run(&["systemctl", "kill", "--signal=KILL", "window.service"]);
    wait::until("all of it is back", BOUND, || {
        Ok((!shop.path("/var/lib/holdfast/quiesce.json").exists()).then_some(()))
    })
    .unwrap();
    // Whatever happened to its backup, the next one gets the guest's lane.
    shop.run(&["guestd", "backup", "--crash-consistent"]);
    assert!(stand.archives(shop).len() > before);
}

/// The downtime in the controller's report of its last window.
fn stood_still(shop: &Guest) -> Duration {
    let status: Value = serde_json::from_str(&shop.run(&["guestd", "status", "--output", "json"])).unwrap();
    let last = &status["stacks"]["status"]["last"];
    assert_eq!(last["stacks"], serde_json::json!(["db", "shop"]), "{status:#}");
    assert_eq!(last["label"]["consistency"], "application", "{status:#}");
    Duration::from_millis(last["stopped_ms"].as_u64().expect("a number"))
}

fn gap(shop: &Guest, from: u64) -> Duration {
    let sql = format!(
        "select coalesce(max(extract(epoch from gap)), 0) from \
         (select at - lag(at) over (order by n) as gap from ledger where n >= {from}) as gaps"
    );
    Duration::from_secs_f64(shop::asked(shop, "ledger", &sql).parse().expect("seconds"))
}

/// How many there were in this time: the guest has the clock of its node.
fn commits(shop: &Guest, from: SystemTime, to: SystemTime) -> u64 {
    let seconds = |at: SystemTime| at.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64();
    let (from, to) = (seconds(from), seconds(to));
    let sql =
        format!("select count(*) from ledger where at > to_timestamp({from}) and at < to_timestamp({to})");
    shop::asked(shop, "ledger", &sql).parse().expect("a number")
}

/// The agent's labels for each backup of this guest, grouped by the contents that it reports.
pub fn labels(shop: &Guest) -> BTreeMap<String, Vec<String>> {
    let list: Value =
        serde_json::from_str(&shop.run(&["guestd", "backup", "--list", "--output", "json"])).unwrap();
    let kept = list["backups"].as_array().unwrap_or_else(|| panic!("a list: {list:#}"));
    let mut labels: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for backup in kept {
        let word = |key: &str| backup["kept"]["label"][key].as_str().expect("a label").to_owned();
        labels.entry(word("consistency")).or_default().push(word("why"));
    }
    println!("         {labels:?}");
    labels
}

/// The measurements, for people: they do not affect the verdict.
pub fn figures(cut: &TimedBackup, still: &TimedBackup, more: &TimedBackup) {
    println!(
        "\n         | backup | stacks were stopped for | longest pause between commits | copy | commits meanwhile | stopped / copy |"
    );
    let rows =
        [("nothing stopped", cut), ("programs stopped", still), ("programs stopped, more to copy", more)];
    for (name, taken) in rows {
        let [stood, gap, copy] = [taken.still, taken.gap, taken.copy].map(|time| time.as_secs_f64());
        let (copy_of, ratio) = (taken.copy_of, stood / copy);
        println!("         | {name} | {stood:.2} s | {gap:.2} s | {copy:.2} s | {copy_of} | {ratio:.2} |");
    }
    println!();
}
