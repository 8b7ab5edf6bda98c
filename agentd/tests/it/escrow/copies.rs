//! Tests of copies of wrapped keys on a disk.
//!
//! The disk is a tmpfs at the very place where the helper mounts, in a mount namespace of this test's own. The test
//! restarts itself in one, as root. An ordinary user has none; the comparison itself has its own test
//! (`port/escrow_copy`).

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use agentd::execute::failpoint::Nowhere;
use agentd::model::escrow::{Codes, CopyPlace, CopyRecord};
use agentd::model::storage::{FirstPoll, StorageView};
use agentd::plan::escrow::{Purpose, RETIRE_AFTER, problems};
use agentd::port::clock::{Clock, RealClock};
use agentd::task::escrow::EscrowTask;
use agentd::task::stop;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::storage::report::{TargetReport, TargetStatus};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tokio::sync::watch;

use crate::escrow::fake_hub::FakeHub;
use crate::escrow::place::{MARK, Place};

const INSIDE: &str = "HOLDFAST_TEST_IN_NAMESPACE";
const DISK: &str = "/mnt/holdfast/usb1";

const MOUNTS: &str = "mount -t tmpfs parent /mnt && mkdir -p /mnt/holdfast/usb1 && \
    mount -t tmpfs disk /mnt/holdfast/usb1 && mkdir /mnt/holdfast/usb1/.holdfast && \
    exec \"$0\" --exact escrow::copies::copies_are_kept_as_they_should_be";

pub fn view(status: TargetStatus) -> Arc<StorageView> {
    let reported = TargetReport {
        name: "usb1".parse().unwrap(),
        backend: "a disk".to_owned(),
        role: serde_json::from_value(json!("local-backup")).unwrap(),
        class: serde_json::from_value(json!("slow")).unwrap(),
        label: None,
        status,
        since: Timestamp::UNIX_EPOCH,
        reason: String::new(),
        entry: Vec::new(),
        device: None,
        iops: None,
        off_site: None,
    };
    Arc::new(StorageView { looked: FirstPoll::Yes, targets: vec![reported], ..StorageView::default() })
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a namespace of its own")]
fn copies_are_kept_as_they_should_be() {
    if std::env::var_os(INSIDE).is_some() {
        return inside();
    }
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let itself = std::env::current_exe().unwrap();
    let status =
        Command::new("unshare").args(["--mount", "sh", "-c", MOUNTS]).arg(itself).env(INSIDE, "1").status();
    assert!(status.unwrap().success());
}

/// Waits until all is known as it should be.
pub async fn until(place: &Place, what: &str, is: impl Fn(&Codes) -> bool) -> Codes {
    let mut changes = place.store().changes();
    let waiting = async {
        loop {
            changes.borrow_and_update();
            let known = place.store().escrow().await.unwrap();
            if is(&known) {
                return known;
            }
            changes.changed().await.unwrap();
        }
    };
    let waited = tokio::time::timeout(std::time::Duration::from_secs(60), waiting).await;
    waited.unwrap_or_else(|_| panic!("never {what}"))
}

fn on_disk(known: &Codes) -> impl Iterator<Item = &CopyRecord> {
    known.copies.iter().filter(|copy| copy.place != CopyPlace::Hub)
}

fn right(known: &Codes, copies: usize) -> bool {
    on_disk(known).count() == copies && known.copies.iter().all(|copy| copy.problem.is_none())
}

#[expect(clippy::disallowed_methods, reason = "the loop under test runs beside the test, which ends it")]
fn inside() {
    let place = Place::new();
    let folder = Path::new(DISK).join(".holdfast");
    let marker =
        |mark: &str| json!({ "schema": "holdfast.target/v1", "target": "usb1", "mark": mark }).to_string();
    std::fs::write(folder.join("target.json"), marker(MARK)).unwrap();
    let (first, _) = place.make(Purpose::First);
    let (reported, storage) = watch::channel(view(TargetStatus::Absent));
    let (_stopper, stop) = stop::pair();
    let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
    let task = EscrowTask {
        store: place.store().clone(),
        storage,
        hub: FakeHub::new().copies(&place),
        clock,
        failpoints: Arc::new(Nowhere),
    };
    place.runtime().block_on(async {
        tokio::spawn(task.run(stop));
        reported.send_replace(view(TargetStatus::Mounted));
        until(&place, "copied", |known| right(known, 1)).await;
        let path = folder.join("escrow-1.age");
        let wanted = place.store().escrow_files().await.unwrap().remove(&first).unwrap().file.to_text();
        let lies = || std::fs::read_to_string(&path).unwrap();
        assert_eq!(lies(), wanted);
        // A disk that comes back is compared at once: lost, then changed.
        for (round, damage) in [None, Some("something else")].into_iter().enumerate() {
            match damage {
                None => std::fs::remove_file(&path).unwrap(),
                Some(text) => std::fs::write(&path, text).unwrap(),
            }
            let before = on_disk(&place.store().escrow().await.unwrap()).next().unwrap().seen_at;
            reported.send_replace(view(TargetStatus::Dropped));
            reported.send_replace(view(TargetStatus::Mounted));
            // Two comparisons may fall into one observation; another code is another one in any case.
            place.another(Purpose::Another).await;
            until(&place, "put back", |known| {
                right(known, 2 + round) && on_disk(known).next().unwrap().seen_at > before
            })
            .await;
            assert_eq!(lies(), wanted);
            let audit = place.store().audit(100).await.unwrap();
            let wrong = audit.iter().filter(|line| line.action == "escrow_copy_wrong").count();
            assert_eq!(wrong, round + 1, "{audit:#?}");
        }
        // Another disk in its place is not written to, and is reported.
        std::fs::write(folder.join("target.json"), marker("01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a02")).unwrap();
        std::fs::remove_file(&path).unwrap();
        place.another(Purpose::Another).await;
        let known =
            until(&place, "told", |known| known.copies.iter().any(|copy| copy.problem.is_some())).await;
        assert!(!path.exists());
        let targets = place.store().storage_targets().await.unwrap();
        let reported_of = problems(&known, &targets, Timestamp::UNIX_EPOCH);
        assert!(reported_of.iter().any(|problem| problem.code == ErrorCode::EscrowCopy), "{reported_of:?}");
        std::fs::write(folder.join("target.json"), marker(MARK)).unwrap();
        place.another(Purpose::Another).await;
        let known = until(&place, "right again", |known| right(known, 5)).await;
        assert_eq!(lies(), wanted);
        // A code that is given up is removed from the disk.
        place.later(RETIRE_AFTER + SignedDuration::from_hours(1));
        let now = place.now();
        let newest = known.codes.last().unwrap().number();
        place.store().note_drill(newest, "a test".to_owned(), now).await.unwrap();
        place.store().retire_escrow(first, "a test".to_owned(), now).await.unwrap();
        let known = until(&place, "taken away", |known| {
            right(known, 4) && known.copies.iter().all(|copy| copy.code != first)
        })
        .await;
        assert!(on_disk(&known).all(|copy| copy.place == CopyPlace::Target("usb1".parse().unwrap())));
        assert!(!path.exists());
        place.store().verify_audit().await.unwrap();
    });
}
