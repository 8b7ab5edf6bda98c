//! Tests of orders to restore a host, and of their withdrawal.

use holdfast_trust::operators::Operators;
use holdfast_trust::policy::Policy;
use jiff::SignedDuration;

use super::*;
use hand::{Hand, job};

#[path = "../../../../../tests/support/ssh_signer.rs"]
mod hand;

const HOST: &str = "01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a02";
const OTHER: &str = "01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a09";

const SEEN: &str = r#""host":{"name":"box7","fingerprint":"4f2a-9c01-77de-b3a8-0c11"},"#;

/// A payload for epoch 2 of the host, for an hour from the start on.
fn payload(verb: &str, args: &str, seen: &str) -> String {
    format!(
        r#"{{"schema":"holdfast.job/v1","job_id":"01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a01","host_id":"{HOST}","host_epoch":2,{seen}"target":{{"kind":"host"}},"verb":"{verb}","args":{args},"not_before":"2026-11-21T14:00:00Z","expires_at":"2026-11-21T15:00:00Z","nonce":"00112233445566778899aabbccddeeff","reason":"it burned"}}"#
    )
}

fn key(byte: &str) -> Pin {
    format!("spki/sha256:{}", byte.repeat(32)).parse().unwrap()
}

fn order() -> String {
    payload("restore_host", &format!(r#"{{"new_key":"spki/sha256:{}"}}"#, "ab".repeat(32)), SEEN)
}

fn withdrawal(of: &str) -> String {
    payload("withdraw_restore", &format!(r#"{{"order":"{}"}}"#, Sha256Text::of(of.as_bytes()).as_str()), SEEN)
}

/// Signed by the one operator.
fn signed_by_alice(payload: &str) -> String {
    job(payload.as_bytes(), &[&Hand::new(1)])
}

fn roster() -> Roster {
    let operators = Operators::parse(&Hand::new(1).line("alice")).unwrap();
    let policy = Policy::parse("version = 1", &operators).unwrap();
    Roster { operators, policy }
}

fn host() -> HostId {
    HOST.parse().unwrap()
}

fn seen(name: &str) -> SeenHost {
    SeenHost { name: name.parse().unwrap(), fingerprint: "4f2a-9c01-77de-b3a8-0c11".parse().unwrap() }
}

fn start(seconds: i64) -> Timestamp {
    "2026-11-21T14:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_secs(seconds)
}

#[test]
fn the_box_with_the_orders_key_takes_the_place_of_the_host_that_it_names() {
    let (order, name) = (order(), "box7".parse().unwrap());
    let right = NewBox { host: host(), name: &name, key: key("ab") };
    let named = Sha256Text::of(order.as_bytes());
    let may = |named: &Sha256Text, new: NewBox<'_>| {
        may_take_the_place(&signed_by_alice(&order), named, &roster(), new, start(60))
    };
    assert_eq!(may(&named, right).unwrap().payload().host_id, host());
    assert!(matches!(may(&Sha256Text::of(b"another"), right), Err(NoOrder::Exchanged)));
    let other = NewBox { host: OTHER.parse().unwrap(), ..right };
    assert!(matches!(may(&named, other), Err(NoOrder::Host { .. })));
    let renamed = "box8".parse().unwrap();
    assert!(matches!(may(&named, NewBox { name: &renamed, ..right }), Err(NoOrder::Name { .. })));
    assert!(matches!(may(&named, NewBox { key: key("cd"), ..right }), Err(NoOrder::Key { .. })));
    let back = withdrawal(&order);
    let none = may_take_the_place(&signed_by_alice(&back), &named, &roster(), right, start(60));
    assert!(matches!(none, Err(NoOrder::Verb(Verb::WithdrawRestore))), "{none:?}");
}

#[test]
fn a_new_box_follows_an_order_from_its_first_second_until_its_end() {
    let (order, name) = (order(), "box7".parse().unwrap());
    let (named, new) =
        (Sha256Text::of(order.as_bytes()), NewBox { host: host(), name: &name, key: key("ab") });
    for (seconds, good) in [(-1, false), (0, true), (1, true), (3_599, true), (3_600, false), (3_601, false)]
    {
        let may = may_take_the_place(&signed_by_alice(&order), &named, &roster(), new, start(seconds));
        match may {
            Ok(_) => assert!(good, "{seconds}"),
            Err(NoOrder::Time { from, until, now }) => {
                assert!(!good, "{seconds}");
                assert_eq!((from, until, now), (start(0), start(3_600), start(seconds)));
            }
            Err(other) => panic!("{seconds}: {other:?}"),
        }
    }
}

#[test]
fn a_box_was_replaced_in_the_life_that_the_order_ends_and_while_no_hub_served_it_after() {
    let (own, renamed) = (seen("box7"), seen("box8"));
    let old = OldBox { host: host(), seen: &own, epoch: HostEpoch::new(2), served: None };
    // It may wake up after years.
    let hear =
        |old: OldBox<'_>| was_replaced(&signed_by_alice(&order()), None, &roster(), old, start(100_000_000));
    assert!(hear(old).is_ok());
    assert!(matches!(hear(OldBox { host: OTHER.parse().unwrap(), ..old }), Err(NoOrder::Host { .. })));
    assert!(matches!(hear(OldBox { seen: &renamed, ..old }), Err(NoOrder::NotHere(NotHere::Name { .. }))));
    for epoch in [1, 3] {
        let lives = hear(OldBox { epoch: HostEpoch::new(epoch), ..old });
        assert!(matches!(lives, Err(NoOrder::Epoch { .. })), "{epoch}: {lives:?}");
    }
    let day = 24 * 3_600;
    for (served, over) in [(0, false), (3_600 + day, false), (3_601 + day, true)] {
        match hear(OldBox { served: Some(start(served)), ..old }) {
            Ok(_) => assert!(!over, "{served}"),
            Err(NoOrder::Over { until, served: at }) => {
                assert!(over, "{served}");
                assert_eq!((until, at), (start(3_600), start(served)));
            }
            Err(other) => panic!("{served}: {other:?}"),
        }
    }
}

#[test]
fn an_order_is_taken_back_by_a_withdrawal_of_this_very_one() {
    let (order, own) = (order(), seen("box7"));
    let another = order.replace("it burned", "it was stolen");
    let old = OldBox { host: host(), seen: &own, epoch: HostEpoch::new(2), served: None };
    let accepted = || was_replaced(&signed_by_alice(&order), None, &roster(), old, start(60)).unwrap();
    let back = |text: &str| takes_back(&signed_by_alice(text), &accepted(), &roster(), old, start(60));
    assert!(back(&withdrawal(&order)).is_ok());
    assert!(matches!(back(&withdrawal(&another)), Err(NoOrder::Exchanged)));
    assert!(matches!(back(&order), Err(NoOrder::Verb(Verb::RestoreHost))));
    let unbound = withdrawal(&order).replace(SEEN, "");
    assert!(matches!(back(&unbound), Err(NoOrder::NotHere(NotHere::Unbound(_)))));

    let hear = |text: &str| was_replaced(&signed_by_alice(&order), Some(text), &roster(), old, start(60));
    assert!(matches!(hear(&signed_by_alice(&withdrawal(&order))), Err(NoOrder::Withdrawn)));
    let strange = job(withdrawal(&order).as_bytes(), &[&Hand::new(9)]);
    for none in [signed_by_alice(&withdrawal(&another)), signed_by_alice(&order), strange, "hello".to_owned()]
    {
        assert!(hear(&none).is_ok(), "{none}");
    }
}
