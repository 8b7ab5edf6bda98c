//! Tests of recovery codes on a replacement host.

use agentd::model::escrow::CodeOrigin;
use agentd::plan::escrow::problems;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::escrow::{EscrowBytes, EscrowPut};
use holdfast_recovery::RecoveryCode;
use holdfast_recovery::escrow::{CodeNumber, Escrow, EscrowFile, Record};
use serde_json::json;

use crate::escrow::copies::until;
use crate::escrow::fake_hub::FakeHub;
use crate::escrow::hub::start;
use crate::escrow::opens;
use crate::escrow::place::{Place, key, other_key, record};
use crate::escrow::recovered::hand_over;
use crate::paper::Paper;
use crate::terminal::typed_by;

/// What the lost host had: a key, the number of its newest sheet, and the words on it.
fn of_the_lost_box(
    number: u32,
    key: &holdfast_seal::backup_key::BackupKey,
) -> (Record, RecoveryCode, EscrowFile) {
    let mut record = record();
    record.context.code = CodeNumber::try_from(number).unwrap();
    record.fingerprint = key.fingerprint().clone();
    let code = RecoveryCode::generate().unwrap();
    let file = Escrow::new(record.context.clone(), key.clone()).wrap(&code).unwrap();
    (record, code, file)
}

fn at_hub(hub: &FakeHub, number: u32, record: &Record, file: &EscrowFile) {
    let file = EscrowBytes::try_from(file.to_text().into_bytes()).unwrap();
    let context = &record.context;
    let put: EscrowPut =
        serde_json::from_value(json!({ "schema": "holdfast.escrow-put/v1", "number": number,
        "sha256": file.sha256(), "file": file, "customer": context.customer, "epoch": context.epoch,
        "code": context.code, "fingerprint": record.fingerprint, "made_at": context.made_at }))
        .unwrap();
    hub.held().puts.insert(number, put);
}

fn codes(place: &Place) -> Vec<ErrorCode> {
    let targets = place.runtime().block_on(place.store().storage_targets()).unwrap();
    problems(&place.codes(), &targets, place.now()).into_iter().map(|problem| problem.code).collect()
}

#[test]
fn the_old_sheet_is_in_force_is_drilled_and_its_numbers_go_on() {
    let (place, hub) = (Place::new(), FakeHub::new());
    assert_eq!(codes(&place), [ErrorCode::EscrowMissing]);
    let (record, words, file) = of_the_lost_box(3, &key());
    let (other, _, other_file) = of_the_lost_box(2, &other_key());
    for (number, record, file) in [(5, &record, &file), (2, &other, &other_file)] {
        at_hub(&hub, number, record, file);
    }
    hand_over(&place, &[(5, &record, &file), (2, &other, &other_file)], None);
    // Twice, as two starts of the agent.
    for _ in 0..2 {
        let running = start(&place, &hub);
        place.runtime().block_on(async {
            until(&place, "known and proved at the hub", |known| {
                known.codes.len() == 2
                    && known.copies.len() == 2
                    && known.copies.iter().all(|copy| copy.problem.is_none())
            })
            .await;
        });
        drop(running);
    }
    assert_eq!(hub.held().puts.keys().copied().collect::<Vec<_>>(), [2, 5], "nothing is put anew");
    // Only the hub's statement says that the words open it, so a drill is demanded.
    assert_eq!(codes(&place), [ErrorCode::EscrowDrill]);
    assert!(place.codes().codes.iter().all(|code| code.origin == CodeOrigin::HandedOver));

    let mut paper = Paper::of(&words);
    let shown =
        typed_by(place.path(), "bin/agentd escrow drill --code 3", &mut |fresh: &str| paper.answer(fresh));
    assert!(shown.contains("Yes: recovery code 3 opens the off-site backups."), "{shown}");
    assert_eq!(codes(&place), []);
    opens(&place, &paper, 3);

    let again = typed_by(place.path(), "! bin/agentd escrow create", &mut |fresh: &str| paper.answer(fresh));
    assert!(again.contains("code 3 opens this key already"), "{again}");
    let _running = start(&place, &hub);
    let mut newer = Paper::new(0);
    let shown = typed_by(place.path(), "bin/agentd escrow rotate", &mut |fresh: &str| newer.answer(fresh));
    assert!(shown.contains("Recovery code 4 opens the off-site backups at off1"), "{shown}");
    opens(&place, &newer, 4);
    place.runtime().block_on(async {
        until(&place, "put", |known| {
            known.copies.iter().any(|copy| copy.code.number() == 4 && copy.problem.is_none())
        })
        .await;
    });
    assert_eq!(hub.held().puts.keys().copied().collect::<Vec<_>>(), [2, 5, 6], "behind the lost box's");
}

/// The hub says that the file is this key's, and it is not: that shows when the words are typed. Until then it is no
/// code that another key could replace.
#[test]
fn what_no_one_typed_here_yet_is_no_leave_to_change_the_key() {
    use agentd::plan::escrow::may_replace;
    let (place, hub) = (Place::new(), FakeHub::new());
    let (mine, _) = place.make(agentd::plan::escrow::Purpose::First);
    let (other, words, file) = of_the_lost_box(7, &other_key());
    at_hub(&hub, 9, &other, &file);
    hand_over(&place, &[(9, &other, &file)], None);
    let _running = start(&place, &hub);
    let known = place.runtime().block_on(until(&place, "known", |known| known.codes.len() == 2));
    let (old, new) = (key().fingerprint().clone(), other_key().fingerprint().clone());
    assert_eq!(may_replace(&known.codes, &old, &new).unwrap_err().code, mine);
    let mut paper = Paper::of(&words);
    typed_by(place.path(), "bin/agentd escrow drill --code 7", &mut |fresh: &str| paper.answer(fresh));
    assert!(may_replace(&place.codes().codes, &old, &new).is_ok());
}
