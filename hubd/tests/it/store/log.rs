//! Events, their forwarding, and the end of old rows.

use holdfast_protocol::id::InviteId;
use holdfast_protocol::report::AuditHead;
use holdfast_protocol::secret::Secret;
use hubd::domain::summary::Summary;
use hubd::store::{ANSWERS_KEPT, Checkin, EventFilter, EventText, NewInvite, SectionTexts, WriteError};
use uuid::Uuid;

use super::fixture::{Fixture, at, by, checkin, claiming, fresh_key, host_id};

pub async fn events_are_read_by_host_and_page_and_passed_on_in_order(fixture: Fixture) {
    let store = &fixture.store;
    let host = fixture.box7().await;
    let other = fixture.enrol("box8", host_id(8), &fresh_key()).await.host;
    store.check_in(checkin(host, 1, 1)).await.unwrap().unwrap();
    let of = |host, before| store.events(EventFilter { host, before, ..EventFilter::default() }, 2);
    let newest = of(None, None).await.unwrap();
    assert_eq!(newest[0].kind, "host_online");
    let before = of(None, Some(newest[1].number)).await.unwrap();
    assert!(before.iter().all(|event| event.number < newest[1].number) && before.len() == 2);
    assert!(of(Some(other), None).await.unwrap().iter().all(|event| event.host == Some(other)));
    let with = |text: &str| {
        let text = Some(EventText::new(text).unwrap());
        store.events(EventFilter { text, ..EventFilter::default() }, 9)
    };
    // In the kind, whose parts are words, and in the sentence; big letters and signs of patterns mean nothing.
    assert_eq!(with("Host ONLINE").await.unwrap().len(), 1);
    let of_box8 = with("box8").await.unwrap();
    assert!(!of_box8.is_empty() && of_box8.iter().all(|event| event.message.contains("box8")));
    assert!(with("box_").await.unwrap().is_empty() && with("%").await.unwrap().is_empty());
    assert!(EventText::new(" ").is_none() && EventText::new(&"a".repeat(101)).is_none());

    store.pass_over_all(&fixture.term().await).await.unwrap();
    assert!(store.next_outgoing().await.unwrap().is_none());
    store.revoke_host(by(20), hubd::domain::host::HostRef::Id(host)).await.ok().unwrap();
    store.revoke_host(by(21), hubd::domain::host::HostRef::Id(other)).await.ok().unwrap();
    let mut passed = Vec::new();
    while let Some(outgoing) = store.next_outgoing().await.unwrap() {
        // Until it is passed on it is the next one.
        assert_eq!(store.next_outgoing().await.unwrap().unwrap().event.number, outgoing.event.number);
        store.passed_on(&fixture.term().await, outgoing.event.number).await.unwrap();
        passed.push(outgoing.event.host);
    }
    assert_eq!(passed, [Some(host), Some(other)]);
    // An older one does not call back what was passed on.
    store.passed_on(&fixture.term().await, 1).await.unwrap();
    assert!(store.next_outgoing().await.unwrap().is_none());
}

pub async fn a_commit_with_an_event_is_announced(fixture: Fixture) {
    let store = &fixture.store;
    let host = fixture.box7().await;
    // A write that is answered comes after what earlier commits announced.
    store.ready().await.unwrap();
    assert_eq!(store.check_database().await.unwrap(), Vec::<String>::new());
    let mut written = store.events_written();
    written.mark_unchanged();
    store.check_in(checkin(host, 1, 1)).await.unwrap().unwrap();
    written.changed().await.unwrap();
}

pub async fn what_is_past_its_time_goes_and_the_rest_stays(fixture: Fixture) {
    let store = &fixture.store;
    let invite = |number: u128, name: &str| NewInvite {
        id: InviteId::new(Uuid::from_u128(number)),
        host_name: name.parse().unwrap(),
        secret: Secret::new(format!("{number}")).hash(),
    };
    let made = store.create_invite(claiming(0, "k", 1), invite(1, "box7")).await.ok().unwrap();
    store.prune(&fixture.term().await, at(0) + ANSWERS_KEPT).await.unwrap();
    let again = store.create_invite(claiming(1, "k", 1), invite(2, "box7")).await.ok().unwrap();
    assert_eq!(again, made, "the answer is kept for its whole day");
    let reused = store.create_invite(claiming(1, "k", 2), invite(2, "box7")).await;
    assert!(matches!(reused, Err(WriteError::KeyReused)));
    store.prune(&fixture.term().await, at(1) + ANSWERS_KEPT).await.unwrap();
    let fresh = store.create_invite(claiming(2, "k", 2), invite(2, "box7")).await.ok().unwrap();
    assert_ne!(fresh, made);
    assert!(fixture.kinds().await.len() == 2, "events stay");
}

pub async fn an_audit_that_goes_back_or_changes_is_evidence(fixture: Fixture) {
    let store = &fixture.store;
    let host = fixture.box7().await;
    let mut sequence = 0;
    let mut ends_at = async |number: u64, chain: &str, second: i64| {
        sequence += 1;
        let audit = Some(AuditHead { number, chain: chain.to_owned() });
        let summary = Summary { audit, ..Summary::default() };
        let sections = SectionTexts { trust: Some("{}".to_owned()), ..SectionTexts::default() };
        let report = Checkin { summary, sections, at: at(second), ..checkin(host, 1, sequence) };
        store.check_in(report).await.unwrap().unwrap();
        store.audit_evidence("box7".parse().unwrap()).await.unwrap().unwrap()
    };
    ends_at(5, "five", 10).await;
    let grown = ends_at(9, "nine", 20).await;
    assert_eq!(grown.heads.iter().map(|head| head.number).collect::<Vec<_>>(), [9, 5]);
    assert_eq!(ends_at(9, "nine", 30).await, grown, "the same end once more");
    let back = ends_at(7, "seven", 40).await;
    assert_eq!((back.heads.len(), back.breaks.len()), (2, 1));
    assert_eq!((back.breaks[0].kept.number, back.breaks[0].found.number), (9, 7));
    assert_eq!(ends_at(7, "seven", 50).await, back, "known evidence is kept once");
    let changed = ends_at(9, "other", 60).await;
    assert_eq!(changed.breaks[1].kept.chain, "nine");
    assert_eq!(ends_at(11, "eleven", 70).await.heads[0].number, 11, "what follows is kept, too");
    assert_eq!(fixture.kinds().await.iter().filter(|kind| *kind == "audit_chain_broken").count(), 2);
    let facts = store.own_facts(at(80)).await.unwrap();
    assert_eq!(facts.hosts[0].audit_broken_since, Some(at(40)));
}
