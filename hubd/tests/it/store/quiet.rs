//! Stories of hosts that have nothing to say.
//!
//! An engine may answer such a check-in without a look at its disk. No answer may show it.

use holdfast_protocol::checkin::{Coverage, Need};
use holdfast_protocol::desired::Desired;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::HostId;
use holdfast_protocol::operator::HostState;
use hubd::domain::deadman::Liveness;
use hubd::domain::desired::{Delivery, IfMatch};
use hubd::domain::host::HostRef;
use hubd::domain::identity::{IdentityError, Presented};
use hubd::domain::merge::IncomingReport;
use hubd::store::{Checkin, Put, Renewal};

use super::fixture::{CORRELATION, Fixture, at, by, checkin, fresh_key, named};
use crate::world::document;

/// A check-in without news. It comes in the second of its number.
fn quiet(host: HostId, sequence: u64) -> Checkin {
    Checkin {
        arriving: IncomingReport { coverage: Coverage::Changed, run: None, sequence },
        at: at(sequence.try_into().unwrap()),
        ..checkin(host, 1, sequence)
    }
}

/// The first check-in of a run, or one without news after it.
pub fn quiet_after_first(host: HostId, sequence: u64) -> Checkin {
    if sequence == 1 { checkin(host, 1, 1) } else { quiet(host, sequence) }
}

pub async fn a_quiet_host_is_heard_of_by_all_who_ask(fixture: Fixture) {
    let store = &fixture.store;
    let host = fixture.box7().await;
    store.check_in(checkin(host, 1, 10)).await.unwrap().unwrap();
    for sequence in [11, 12, 20] {
        let kept = store.check_in(quiet(host, sequence)).await.unwrap().unwrap();
        assert_eq!(
            (kept.acknowledged, kept.need, kept.delivery),
            (sequence, Need::Changed, Delivery::Nothing)
        );
        let seen = Some(at(sequence.try_into().unwrap()));
        assert_eq!(store.host(named("box7"), at(30)).await.unwrap().unwrap().host.seen_at, seen);
        assert_eq!(store.hosts(None, 1, at(0)).await.unwrap()[0].view.seen_at, seen);
    }
    let late = store.check_in(quiet(host, 20)).await.unwrap().unwrap();
    assert_eq!((late.acknowledged, late.need), (20, Need::Full), "its number was used");
    // The dead-man's switch hears it, and writes no silence over it.
    store.check_in(quiet(host, 21)).await.unwrap().unwrap();
    let contacts = store.listened_to().await.unwrap();
    assert_eq!(contacts[0].since, at(21));
    store.check_in(quiet(host, 22)).await.unwrap().unwrap();
    let worse = vec![(contacts[0].clone(), Liveness::Late)];
    store.write_down(&fixture.term().await, worse, at(23), CORRELATION).await.unwrap();
    assert_eq!(store.host(named("box7"), at(30)).await.unwrap().unwrap().host.state, HostState::Online);
    // Another run of the agent counts anew.
    let anew = IncomingReport { coverage: Coverage::Full, run: Some(at(24)), sequence: 1 };
    store.check_in(quiet(host, 24)).await.unwrap().unwrap();
    let kept = store.check_in(Checkin { arriving: anew, ..quiet(host, 25) }).await.unwrap().unwrap();
    assert_eq!(kept.acknowledged, 1);
    assert_eq!(store.check_in(quiet(host, 2)).await.unwrap().unwrap().need, Need::Changed);
}

pub async fn a_quiet_host_gets_a_new_document_with_its_next_check_in(fixture: Fixture) {
    let store = &fixture.store;
    let host = fixture.box7().await;
    store.check_in(checkin(host, 1, 1)).await.unwrap().unwrap();
    assert_eq!(store.check_in(quiet(host, 2)).await.unwrap().unwrap().poll.get(), 30);
    let text = document(1).replace(":30", ":60");
    let put = Put {
        host: named("box7"),
        seen: IfMatch(Generation::NONE),
        reason: "the story says so".to_owned().try_into().unwrap(),
        desired: Desired::parse(text.as_bytes()).unwrap(),
        text,
    };
    store.put_desired(by(3), put).await.ok().unwrap().unwrap();
    let kept = store.check_in(quiet(host, 4)).await.unwrap().unwrap();
    assert_eq!((kept.delivery, kept.poll.get()), (Delivery::Now, 60));
    let holds = |sequence| Checkin { held: Generation::new(1), ..quiet(host, sequence) };
    for sequence in [5, 6] {
        let kept = store.check_in(holds(sequence)).await.unwrap().unwrap();
        assert_eq!((kept.delivery, kept.poll.get()), (Delivery::Nothing, 60));
    }
    // What it holds is no section, and yet news.
    assert_eq!(store.check_in(quiet(host, 7)).await.unwrap().unwrap().delivery, Delivery::Now);
    assert_eq!(store.check_in(holds(8)).await.unwrap().unwrap().delivery, Delivery::Nothing);
    assert_eq!(store.host(named("box7"), at(9)).await.unwrap().unwrap().host.held, Generation::new(1));
}

pub async fn a_quiet_host_is_refused_from_its_revocation_on(fixture: Fixture) {
    let store = &fixture.store;
    let host = fixture.box7().await;
    for first in [checkin(host, 1, 1), quiet(host, 2), quiet(host, 3)] {
        store.check_in(first).await.unwrap().unwrap();
    }
    store.revoke_host(by(4), named("box7")).await.ok().unwrap().unwrap();
    assert_eq!(store.check_in(quiet(host, 5)).await.unwrap(), Err(IdentityError::Revoked));
    let seen = store.host(HostRef::Id(host), at(6)).await.unwrap().unwrap().host.seen_at;
    assert_eq!(seen, Some(at(3)), "its last contact before that is kept");
}

pub async fn an_old_certificate_freezes_a_quiet_host(fixture: Fixture) {
    let store = &fixture.store;
    let host = fixture.box7().await;
    for first in [checkin(host, 1, 1), quiet(host, 2)] {
        store.check_in(first).await.unwrap().unwrap();
    }
    let old = Presented { host, generation: 1 };
    let renewal = Renewal { presented: old, key: fresh_key(), at: at(3), correlation: CORRELATION };
    store.renew(renewal, fixture.issue()).await.ok().unwrap();
    let newer = |sequence| Checkin { presented: Presented { host, generation: 2 }, ..quiet(host, sequence) };
    for kept in [quiet(host, 4), newer(5), newer(6)] {
        store.check_in(kept).await.unwrap().unwrap();
    }
    let twice = Err(IdentityError::Twice { presented: 1, used: 2 });
    assert_eq!(store.check_in(quiet(host, 7)).await.unwrap(), twice);
    assert_eq!(store.check_in(newer(8)).await.unwrap(), Err(IdentityError::Frozen));
}
