//! Tests of the copies task, stopped at every point.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use agentd::execute::failpoint::{Failpoints, Killed, Nowhere, Point};
use agentd::model::escrow::{CodeStatus, Codes};
use agentd::plan::escrow::RETIRE_AFTER;
use agentd::port::clock::{Clock, RealClock};
use agentd::task::escrow::EscrowTask;
use agentd::task::stop;
use holdfast_protocol::escrow::EscrowBytes;
use holdfast_protocol::storage::report::TargetStatus;
use holdfast_recovery::escrow::CodeNumber;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

use crate::escrow::copies::{until, view};
use crate::escrow::fake_hub::FakeHub;
use crate::escrow::hub::start;
use crate::escrow::place::{Made, Place, key, lay_down_with};

/// Two for each: two files put and noted; one put anew (reported, renewed, put, drill reported, noted) while the other
/// is looked at; one forgotten while the other is looked at.
const POINTS: u32 = 2 * (2 * 2 + 5 + 1 + 1 + 1);

struct StopsAt {
    number: u32,
    reached: AtomicU32,
    dead: watch::Sender<bool>,
}

impl Failpoints for StopsAt {
    fn reached(&self, point: Point) -> Result<(), Killed> {
        if self.reached.fetch_add(1, Ordering::SeqCst) + 1 < self.number {
            return Ok(());
        }
        self.dead.send_replace(true);
        Err(Killed(point))
    }
}

/// All kept copies were checked since then and are right, and nothing else is remembered.
fn all_right(known: &Codes, since: Timestamp) -> bool {
    let kept = known.codes.iter().filter(|code| matches!(code.status, CodeStatus::Kept { .. }));
    let kept: Vec<CodeNumber> = kept.map(|code| code.number()).collect();
    known.copies.len() == kept.len()
        && known
            .copies
            .iter()
            .all(|copy| kept.contains(&copy.code) && copy.problem.is_none() && copy.seen_at > since)
}

async fn drilled(place: &Place, code: CodeNumber) -> Timestamp {
    let now = place.now();
    place.store().note_drill(code, "a test".to_owned(), now).await.unwrap();
    now
}

/// What happens to two codes at the hub: put, one swapped and put anew, the other given up.
async fn story(place: &Place, hub: &FakeHub) {
    let [older, newer] = [1, 2].map(|number| CodeNumber::try_from(number).unwrap());
    until(place, "put", |known| all_right(known, Timestamp::MIN)).await;
    hub.held().swapped.insert(2, EscrowBytes::try_from(b"something else".to_vec()).unwrap());
    let since = drilled(place, newer).await;
    until(place, "put anew", |known| all_right(known, since)).await;
    let now = place.now();
    place.store().retire_escrow(older, "a test".to_owned(), now).await.unwrap();
    until(place, "forgotten", |known| all_right(known, now)).await;
}

#[test]
fn the_agent_dies_at_each_point_of_the_copies_at_the_hub() {
    let long_ago = RETIRE_AFTER + SignedDuration::from_hours(24);
    let made = [Made::new(1, long_ago), Made::new(2, long_ago)];
    for number in 1..=POINTS + 1 {
        let folder = lay_down_with(&key(), &made);
        let (place, hub) = (Place::at(folder.path(), Arc::new(Nowhere)), FakeHub::new());
        let (dead, mut died) = watch::channel(false);
        let (_reported, storage) = watch::channel(view(TargetStatus::Absent));
        let (_stopper, stop) = stop::pair();
        let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
        let failpoints = Arc::new(StopsAt { number, reached: AtomicU32::new(0), dead });
        let (store, copies) = (place.store().clone(), hub.copies(&place));
        let task = EscrowTask { store, storage, hub: copies, clock, failpoints };
        let first = place.runtime().spawn(task.run(stop));
        let is_finished = place.runtime().block_on(async {
            tokio::select! {
                () = story(&place, &hub) => true,
                died = died.wait_for(|dead| *dead) => !*died.unwrap(),
            }
        });
        // The last point is after the last write, and an observer may see that write first.
        assert!(is_finished || number <= POINTS, "point {number}: there are more");
        assert!(!is_finished || number >= POINTS, "point {number}: there are fewer");
        first.abort();
        place.runtime().block_on(async {
            let _ended = first.await;
            let since = drilled(&place, CodeNumber::try_from(2).unwrap()).await;
            let _running = start(&place, &hub);
            until(&place, "right again", |known| all_right(known, since)).await;
            let files = place.store().escrow_files().await.unwrap();
            place.store().verify_audit().await.unwrap();
            let held = hub.held();
            for (code, kept) in files {
                let version = kept.version.number();
                let lies = held.swapped.get(&version).unwrap_or(&held.puts[&version].file);
                assert_eq!(lies.as_bytes(), kept.file.to_text().as_bytes(), "point {number}, code {code}");
                assert!(code.number() == 1 || held.opened.contains_key(&version), "point {number}");
            }
            assert!(held.puts.len() <= 3, "point {number}: {:?}", held.puts.keys());
        });
    }
}
