//! Wrapped keys and the notices about their reads.

use holdfast_protocol::escrow::{self, EscrowOpened, EscrowPut};
use holdfast_protocol::id::HostId;
use holdfast_protocol::job::{Nonce, UtcSecond};
use hubd::domain::escrow_notice::Recipients;
use hubd::domain::identity::Presented;
use hubd::store::{EscrowCaller, EscrowError, EscrowSelector, NoticeEnd, WriteError};

use super::fixture::{CORRELATION, Fixture, at, by, fresh_key, host_id, named};
use crate::escrow::version;

fn caller(host: HostId) -> EscrowCaller {
    EscrowCaller { presented: Presented { host, generation: 1 }, at: at(10), correlation: CORRELATION }
}

fn all_others() -> Recipients {
    Recipients { all_others: true, ..Recipients::default() }
}

pub async fn a_version_is_kept_proved_and_read_with_a_notice(fixture: Fixture) {
    let store = &fixture.store;
    let host = fixture.box7().await;
    let asking = caller(host);
    let none = store.read_escrow(asking, EscrowSelector::Newest, all_others()).await;
    assert!(matches!(none, Err(WriteError::Refused(EscrowError::None))));
    let kept = store.put_escrow(asking, version(1), all_others()).await.ok().unwrap();
    assert_eq!(store.put_escrow(asking, version(1), all_others()).await.ok().unwrap(), kept);
    let changed = EscrowPut { number: 1.try_into().unwrap(), ..version(2) };
    let taken = store.put_escrow(asking, changed, all_others()).await;
    assert!(matches!(taken, Err(WriteError::Refused(EscrowError::Put(_)))));
    let nonce = Nonce::try_from("ab".repeat(16)).unwrap();
    let proof = store.prove_escrow(asking, 1.try_into().unwrap(), nonce.clone()).await.ok().unwrap();
    assert_eq!(proof.proof, escrow::proof(&nonce, &version(1).file));
    // Without anybody to notify nothing is read, and nothing is queued.
    let unset = store.read_escrow(asking, EscrowSelector::Newest, Recipients::default()).await;
    assert!(matches!(unset, Err(WriteError::Refused(EscrowError::Unset { .. }))));
    assert!(store.open_notices().await.unwrap().is_empty());
    let found = store.read_escrow(asking, EscrowSelector::Newest, all_others()).await.ok().unwrap();
    assert_eq!(found.file, version(1).file);
    let files = store.fetch_escrow(by(11), named("box7"), EscrowSelector::EachKey, all_others()).await;
    assert_eq!(files.ok().unwrap().unwrap().files.len(), 1);
    let opened = EscrowOpened { at: UtcSecond::new(at(12)).unwrap() };
    let number = 1.try_into().unwrap();
    let kept = store.escrow_opened(asking, number, opened, all_others()).await.ok().unwrap();
    assert_eq!(kept.version.opened_at.map(UtcSecond::at), Some(at(12)));
    let listed = store.host_escrows(named("box7"), all_others()).await.unwrap().unwrap();
    assert_eq!(store.escrows(asking, all_others()).await.ok().unwrap(), listed);
    assert!(store.host_escrows(named("box8"), all_others()).await.unwrap().is_none());
    let notices = store.open_notices().await.unwrap();
    assert_eq!(
        (notices.len(), notices[0].host),
        (1, host),
        "the second read of a customer waits behind the first"
    );
    let kinds = fixture.kinds().await;
    assert_eq!(kinds[2..], ["escrow_kept", "escrow_read", "escrow_read", "escrow_opened"]);
}

pub async fn a_host_that_asks_too_often_is_refused_and_the_count_stays(fixture: Fixture) {
    let store = &fixture.store;
    let host = fixture.box7().await;
    let asking = caller(host);
    store.put_escrow(asking, version(1), all_others()).await.ok().unwrap();
    let mut read = 0;
    let refusal = loop {
        match store.read_escrow(asking, EscrowSelector::Newest, all_others()).await {
            Ok(_) => read += 1,
            Err(WriteError::Refused(refusal)) => break refusal,
            Err(other) => panic!("{other:?}"),
        }
        assert!(read < 1000, "no bound");
    };
    assert!(matches!(refusal, EscrowError::TooOften(_)) && read > 0, "{read}: {refusal}");
    let still = store.read_escrow(asking, EscrowSelector::Newest, all_others()).await;
    assert!(matches!(still, Err(WriteError::Refused(EscrowError::TooOften(_)))));
    let later = EscrowCaller { at: at(10 + 3601), ..asking };
    assert!(store.read_escrow(later, EscrowSelector::Newest, all_others()).await.is_ok());
}

pub async fn one_customer_who_cannot_be_reached_delays_no_other(fixture: Fixture) {
    let store = &fixture.store;
    for (name, number, customer) in [("box7", 7, "acme"), ("box8", 8, "ibex")] {
        let host = fixture.enrol(name, host_id(number), &fresh_key()).await.host;
        let put = EscrowPut { customer: customer.parse().unwrap(), ..version(1) };
        store.put_escrow(caller(host), put, all_others()).await.ok().unwrap();
        for _ in 0..2 {
            store.read_escrow(caller(host), EscrowSelector::Newest, all_others()).await.ok().unwrap();
        }
    }
    let customers = |notices: &[hubd::store::OutgoingNotice]| -> Vec<String> {
        notices.iter().map(|notice| notice.customer.to_string()).collect()
    };
    let first = store.open_notices().await.unwrap();
    assert_eq!(customers(&first), ["acme", "ibex"]);
    store.notice_ended(&fixture.term().await, &first[1], NoticeEnd::Sent, at(20)).await.unwrap();
    let next = store.open_notices().await.unwrap();
    assert_eq!((next[0].number, customers(&next).len()), (first[0].number, 2));
    assert!(next[1].number > first[1].number);
    for _ in 0..2 {
        store.notice_ended(&fixture.term().await, &next[1], NoticeEnd::GivenUp, at(30)).await.unwrap();
    }
    assert_eq!(customers(&store.open_notices().await.unwrap()), ["acme"]);
    assert_eq!(fixture.kinds().await.iter().filter(|kind| *kind == "notice_given_up").count(), 1);
}
