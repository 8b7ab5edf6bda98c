//! Tests of copies of wrapped keys at the hub.

use std::sync::Arc;

use agentd::execute::failpoint::Nowhere;
use agentd::model::escrow::{Codes, CopyPlace};
use agentd::plan::escrow::Purpose;
use agentd::port::clock::{Clock, RealClock};
use agentd::port::host_replacement::HandOverFolder;
use agentd::task::escrow::EscrowTask;
use agentd::task::stop::{self, Stopper};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::escrow::{EscrowBytes, EscrowNumber, EscrowPut, form};
use holdfast_protocol::restore::HandOver;
use holdfast_protocol::storage::report::TargetStatus;
use holdfast_recovery::escrow::{CodeNumber, Context, Escrow, EscrowFile, Expected};
use serde_json::json;
use tokio::sync::watch;

use crate::escrow::copies::{until, view};
use crate::escrow::fake_hub::FakeHub;
use crate::escrow::place::{Place, key};

/// The loop under test, which ends when this is dropped.
pub struct Running {
    _storage: watch::Sender<Arc<agentd::model::storage::StorageView>>,
    _stopper: Stopper,
}

pub fn start(place: &Place, hub: &FakeHub) -> Running {
    let (reported, storage) = watch::channel(view(TargetStatus::Absent));
    let (stopper, stop) = stop::pair();
    let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
    let task = EscrowTask {
        store: place.store().clone(),
        storage,
        hub: hub.copies(place),
        clock,
        failpoints: Arc::new(Nowhere),
    };
    place.runtime().spawn(task.run(stop));
    Running { _storage: reported, _stopper: stopper }
}

/// Has the loop compare, as a drill does, and waits until it did.
async fn compared(place: &Place, code: CodeNumber) -> Codes {
    let drilled = place.now();
    place.store().note_drill(code, "a test".to_owned(), drilled).await.unwrap();
    let seen = |known: &Codes| known.copies.iter().all(|copy| copy.seen_at > drilled);
    until(place, "compared", |known| seen(known) && settled(known)).await
}

/// What is repaired is reported first; that problem does not stay.
fn settled(known: &Codes) -> bool {
    let passing = ["lost it, or holds", "lists a newer version"];
    known
        .copies
        .iter()
        .all(|copy| copy.problem.as_ref().is_none_or(|says| passing.iter().all(|part| !says.contains(part))))
}

async fn version(place: &Place, code: CodeNumber) -> u32 {
    place.store().escrow_files().await.unwrap().remove(&code).unwrap().version.number()
}

/// How often a wrong copy was reported.
async fn alarms(place: &Place) -> Vec<String> {
    let audit = place.store().audit(500).await.unwrap();
    audit.into_iter().filter(|line| line.action == "escrow_copy_wrong").map(|line| line.detail).collect()
}

/// The state of the copies at the hub: all right, and this many.
fn right(known: &Codes, copies: usize) -> bool {
    known.copies.len() == copies
        && known.copies.iter().all(|copy| copy.place == CopyPlace::Hub && copy.problem.is_none())
}

#[test]
fn what_the_hub_loses_swaps_or_rolls_back_is_put_anew() {
    let (place, hub) = (Place::new(), FakeHub::new());
    let (first, _) = place.make(Purpose::First);
    let _running = start(&place, &hub);
    place.runtime().block_on(async {
        until(&place, "put", |known| right(known, 1)).await;
        let wrong = async || alarms(&place).await.len();
        assert_eq!((version(&place, first).await, wrong().await), (1, 0));
        // The hub serves something else in its place, and says in its list that nothing has changed.
        let other = EscrowBytes::try_from(b"something else".to_vec()).unwrap();
        hub.held().swapped.insert(1, other);
        let (second, _) = place.another(Purpose::Another).await;
        until(&place, "put anew", |known| right(known, 2)).await;
        assert_eq!(
            (version(&place, first).await, wrong().await),
            (3, 1),
            "behind the second, and never over the first"
        );
        // A drill is reported.
        let drilled = place.now();
        place.store().note_drill(first, "a test".to_owned(), drilled).await.unwrap();
        let reported =
            |known: &Codes| known.copies.iter().any(|copy| copy.code == first && copy.seen_at > drilled);
        until(&place, "told of the drill", reported).await;
        assert!(hub.held().opened.contains_key(&3));
        // It is rolled back to its first day.
        hub.held().puts.retain(|number, _| *number == 1);
        let (third, _) = place.another(Purpose::Another).await;
        until(&place, "put back", |known| right(known, 3)).await;
        let files = place.store().escrow_files().await.unwrap();
        let held = hub.held().puts.clone();
        for code in [first, second, third] {
            let kept = &files[&code];
            assert_eq!(
                held[&kept.version.number()].file.as_bytes(),
                kept.file.to_text().as_bytes(),
                "{code}"
            );
        }
        assert_eq!(wrong().await, 3, "both were right before");
        // What the hub refuses is reported, with the hub's own code; and the host continues.
        hub.held().refuses = Some("ESCROW_OTHER");
        place.another(Purpose::Another).await;
        let known =
            until(&place, "told", |known| known.copies.iter().any(|copy| copy.problem.is_some())).await;
        let problem = known.copies.iter().find_map(|copy| copy.problem.clone()).unwrap();
        assert!(problem.contains("not there yet"), "{problem}");
        assert_eq!(known.copies.iter().filter(|copy| copy.problem.is_none()).count(), 3, "no false alarm");
        place.store().verify_audit().await.unwrap();
    });
}

/// What a hub could hold instead of what was put, and the refusal when it is to be opened.
struct Instead {
    what: &'static str,
    file: Vec<u8>,
    refused: ErrorCode,
}

/// The same file, asking for another work factor.
fn asking(file: &EscrowFile, factor: &str) -> Vec<u8> {
    let bytes = form::judge(file.to_text().as_bytes()).unwrap();
    let at = bytes.windows(4).position(|part| part == b" 16\n").unwrap();
    let changed = [&bytes[..=at], factor.as_bytes(), &bytes[at + 3..]].concat();
    form::to_text(&changed).into_bytes()
}

#[test]
fn whatever_the_hub_holds_instead_is_refused_by_who_opens_it_and_put_right_by_the_box() {
    let (place, hub) = (Place::new(), FakeHub::new());
    let (older, _) = place.make(Purpose::First);
    let (code, words) = place.make(Purpose::Another);
    let _running = start(&place, &hub);
    let (kept, before) = (place.file(code), place.file(older));
    let record = place.codes().codes.pop().unwrap().record;
    let other = Context { customer: "globex".parse().unwrap(), ..record.context.clone() };
    let other = Escrow::new(other, key()).wrap(&words).unwrap().to_text().into_bytes();
    let text = kept.to_text().into_bytes();
    let all = [
        Instead { what: "another customer's", file: other, refused: ErrorCode::EscrowOther },
        Instead {
            what: "rolled back to the code before",
            file: before.to_text().into_bytes(),
            refused: ErrorCode::EscrowCode,
        },
        Instead { what: "cut", file: text[..text.len() / 2].to_vec(), refused: ErrorCode::EscrowBroken },
        Instead { what: "no file", file: b"-".to_vec(), refused: ErrorCode::EscrowBroken },
        Instead { what: "full", file: vec![b'A'; 4096], refused: ErrorCode::EscrowBroken },
        Instead { what: "weak", file: asking(&kept, "1"), refused: ErrorCode::EscrowWork },
        Instead { what: "just too weak", file: asking(&kept, "15"), refused: ErrorCode::EscrowWork },
        Instead { what: "just too long", file: asking(&kept, "21"), refused: ErrorCode::EscrowWork },
        Instead { what: "endless", file: asking(&kept, "255"), refused: ErrorCode::EscrowWork },
        Instead { what: "absurd", file: asking(&kept, "99999999999"), refused: ErrorCode::EscrowBroken },
    ];
    place.runtime().block_on(async {
        until(&place, "put", |known| right(known, 2)).await;
        for (already, Instead { what, file, refused }) in all.into_iter().enumerate() {
            // Everything except a file in a form that may be opened is refused before anything slow is begun.
            let opened =
                EscrowFile::parse(&file).and_then(|file| file.open(&words, Expected::Exactly(&record)));
            assert_eq!(opened.map(drop).unwrap_err().code(), refused, "{what}");
            let at = version(&place, code).await;
            hub.held().swapped.insert(at, EscrowBytes::try_from(file).unwrap());
            let known = compared(&place, code).await;
            assert!(right(&known, 2), "{what}: {known:?}");
            assert_eq!(alarms(&place).await.len(), already + 1, "{what}");
            let now = version(&place, code).await;
            assert_eq!(now, at + 1, "{what}: put once");
            assert_eq!(hub.held().puts[&now].file.as_bytes(), text, "{what}");
        }
        assert_eq!(version(&place, older).await, 1, "what is as it should be is left alone");
    });
}

#[test]
fn a_version_that_this_box_never_put_is_reported_and_does_not_stay_the_newest() {
    let (place, hub) = (Place::new(), FakeHub::new());
    let (code, _) = place.make(Purpose::First);
    let _running = start(&place, &hub);
    let pretend = |number: u32| {
        let mut held = hub.held();
        let mut put = held.puts[&1].clone();
        put.number = EscrowNumber::try_from(number).unwrap();
        put.file = EscrowBytes::try_from(b"a thief's".to_vec()).unwrap();
        put.sha256 = put.file.sha256();
        held.puts.insert(number, put);
    };
    place.runtime().block_on(async {
        until(&place, "put", |known| right(known, 1)).await;
        pretend(3);
        assert!(right(&compared(&place, code).await, 1));
        assert_eq!(version(&place, code).await, 4);
        let reported = alarms(&place).await;
        assert_eq!(reported.len(), 1);
        assert!(reported[0].contains("somebody else has its certificate"), "{reported:?}");
        assert_eq!(hub.held().puts.keys().copied().collect::<Vec<_>>(), [1, 3, 4]);
        // A number is not followed to where none would be left.
        pretend(999_999);
        let known = compared(&place, code).await;
        let says = known.copies[0].problem.clone().unwrap();
        assert!(says.contains("far ahead of any that this box put"), "{says}");
        assert_eq!(version(&place, code).await, 4);
        hub.held().puts.remove(&999_999);
        assert!(right(&compared(&place, code).await, 1));
        assert_eq!(version(&place, code).await, 4);
    });
}

/// The hub holds versions that the lost host put, the last of them far ahead of any first one. They raise no alarm
/// here, and the numbers continue behind them.
#[test]
fn the_numbers_of_the_box_owner_place_this_one_took_go_on() {
    let (place, hub) = (Place::new(), FakeHub::new());
    let (code, _) = place.make(Purpose::First);
    let context = place.codes().codes.remove(0).record.context;
    let mut last = None;
    for number in [1, 2, 150] {
        let file = EscrowBytes::try_from(format!("the lost box's, {number}").into_bytes()).unwrap();
        let put: EscrowPut =
            serde_json::from_value(json!({ "schema": "holdfast.escrow-put/v1", "number": number,
            "sha256": file.sha256(), "file": file, "customer": context.customer, "epoch": 1, "code": 1,
            "fingerprint": key().fingerprint(), "made_at": context.made_at }))
            .unwrap();
        last = Some(json!({ "version": FakeHub::view(&hub.held(), &put), "file": put.file }));
        hub.held().puts.insert(number, put);
    }
    let handed: HandOver = serde_json::from_value(json!({ "sections": {}, "escrows": [last] })).unwrap();
    HandOverFolder::of(&place.path().join("state")).keep(&handed).unwrap();
    let _running = start(&place, &hub);
    place.runtime().block_on(async {
        until(&place, "put", |known| right(known, 1)).await;
        assert_eq!(version(&place, code).await, 151);
        let (second, _) = place.another(Purpose::Another).await;
        until(&place, "put", |known| right(known, 2)).await;
        assert_eq!((version(&place, second).await, alarms(&place).await), (152, Vec::new()));
        assert_eq!(hub.held().puts.keys().copied().collect::<Vec<_>>(), [1, 2, 150, 151, 152]);
        // The hub forgets it all: what was put here comes back, behind the lost host's numbers.
        hub.held().puts.clear();
        assert!(right(&compared(&place, second).await, 2));
        assert_eq!(hub.held().puts.keys().copied().collect::<Vec<_>>(), [151, 152]);
    });
}

#[test]
fn a_hub_that_keeps_hashes_alone_is_found_out_and_not_flooded() {
    let (place, hub) = (Place::new(), FakeHub::new());
    hub.held().forgets = true;
    let (code, _) = place.make(Purpose::First);
    let _running = start(&place, &hub);
    place.runtime().block_on(async {
        for round in 1..=2 {
            let known = if round == 1 {
                until(&place, "told", |known| known.copies.iter().any(|copy| copy.problem.is_some())).await
            } else {
                compared(&place, code).await
            };
            let says = known.copies[0].problem.clone().unwrap();
            assert!(says.contains("cannot prove that it holds it"), "{says}");
            assert_eq!(hub.held().puts.len(), round, "one put for each comparison");
        }
        hub.held().forgets = false;
        assert!(right(&compared(&place, code).await, 1));
    });
}
