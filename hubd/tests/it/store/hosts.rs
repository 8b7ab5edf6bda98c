//! Hosts: enrolment, certificates, reports, silence, replacement.

use holdfast_protocol::checkin::{Coverage, Need};
use holdfast_protocol::enrol::{SealingIdentity, request_fingerprint};
use holdfast_protocol::id::{EnrollmentRequestId, HostId, InviteId};
use holdfast_protocol::job::act::args;
use holdfast_protocol::job::{Act, HostEpoch, SignedJob};
use holdfast_protocol::operator::{EnrollmentApproval, EnrollmentRequestState, HostState};
use holdfast_protocol::restore::RestoreState;
use holdfast_protocol::secret::Secret;
use hubd::authority::{AgentKey, IssueError};
use hubd::domain::deadman::Liveness;
use hubd::domain::desired::Delivery;
use hubd::domain::enrollment::InviteError;
use hubd::domain::escrow_notice::Recipients;
use hubd::domain::host::HostRef;
use hubd::domain::identity::{IdentityError, Presented};
use hubd::domain::merge::IncomingReport;
use hubd::store::{
    Approval, CaEvent, CaEventKind, Checkin, ENROLLMENT_REQUESTS_KEPT, EnrollmentReply,
    EnrollmentRequestError, INVITES_KEPT, NewEnrollmentRequest, NewInvite, NewRestore, NewWithdrawal,
    RedeemError, Redemption, RenewError, Renewal, RestoreError, RestoreRedemption, SectionTexts,
    WithdrawError, WriteError,
};
use jiff::SignedDuration;
use uuid::Uuid;

use super::fixture::{CORRELATION, Fixture, at, by, checkin, fresh_key, host_id, named};
use crate::restore::ordered;

pub async fn a_host_is_invited_enrolled_heard_and_let_go(fixture: Fixture) {
    let store = &fixture.store;
    let host = fixture.box7().await;
    let kept = store.check_in(checkin(host, 1, 1)).await.unwrap().unwrap();
    assert_eq!((kept.acknowledged, kept.need, kept.delivery), (1, Need::Changed, Delivery::Nothing));
    let unknown = store.check_in(checkin(host_id(9), 1, 1)).await.unwrap();
    assert_eq!(unknown, Err(IdentityError::Unknown));
    assert_eq!(store.check_in(checkin(host, 92, 2)).await.unwrap(), Err(IdentityError::Unknown));
    assert_eq!(store.host(named("box7"), at(5)).await.unwrap().unwrap().host.seen_at, Some(at(5)));
    fixture.enrol("box1", host_id(1), &fresh_key()).await;
    let first = store.hosts(None, 1, at(0)).await.unwrap();
    assert_eq!(first[0].view.name.as_str(), "box1");
    let rest = store.hosts(Some((first[0].view.name.clone(), first[0].number)), 5, at(0)).await.unwrap();
    assert_eq!(rest.iter().map(|record| record.view.id).collect::<Vec<_>>(), [host]);
    for second in [6, 7] {
        let view = store.revoke_host(by(second), HostRef::Id(host)).await.ok().unwrap().unwrap();
        assert_eq!(view.state, HostState::Revoked);
    }
    assert_eq!(store.check_in(checkin(host, 1, 3)).await.unwrap(), Err(IdentityError::Revoked));
    assert!(store.host(named("box7"), at(5)).await.unwrap().is_none(), "its name is free");
    assert!(store.host(HostRef::Id(host), at(5)).await.unwrap().is_some(), "its id stays");
    assert!(store.revoke_host(by(8), named("box9")).await.ok().unwrap().is_none());
    assert_eq!(fixture.kinds().await.iter().filter(|kind| *kind == "host_revoked").count(), 1);
}

pub async fn guests_are_listed_with_their_hosts(fixture: Fixture) {
    let store = &fixture.store;
    let host = fixture.box7().await;
    let other = fixture.enrol("box1", host_id(1), &fresh_key()).await.host;
    let mut report = checkin(host, 1, 1);
    let guests = r#"[{"name":"web","vmid":5001,"status":"managed","run":"running"}]"#;
    report.sections = SectionTexts { guests: Some(guests.to_owned()), ..SectionTexts::default() };
    store.check_in(report).await.unwrap().unwrap();
    let listed = store.reported_guests(None, 5, at(5)).await.unwrap();
    let names: Vec<_> = listed.iter().map(|(host, guests)| (host.view.id, guests.len())).collect();
    assert_eq!(names, [(other, 0), (host, 1)], "by name, also a host that reported nothing");
    assert_eq!((listed[1].1[0].name.as_str(), listed[1].0.view.seen_at), ("web", Some(at(5))));
    let first = store.reported_guests(None, 1, at(5)).await.unwrap();
    let after = (first[0].0.view.name.clone(), first[0].0.number);
    assert_eq!(store.reported_guests(Some(after), 5, at(5)).await.unwrap()[0].0.view.id, host);
    store.revoke_host(by(6), HostRef::Id(host)).await.ok().unwrap().unwrap();
    assert_eq!(
        store.reported_guests(None, 5, at(7)).await.unwrap().len(),
        1,
        "a host that was let go is left out"
    );
}

pub async fn a_refused_certificate_leaves_nothing(fixture: Fixture) {
    let store = &fixture.store;
    let secret = Secret::new("s".repeat(64)).hash();
    let new = NewInvite { id: InviteId::new(Uuid::from_u128(1)), host_name: "box7".parse().unwrap(), secret };
    let made = store.create_invite(by(0), new).await.ok().unwrap();
    assert_eq!(made.expires_at, at(3600));
    let key = fresh_key();
    let redemption = |host: u128, key: &AgentKey| Redemption {
        secret,
        key: key.clone(),
        host: host_id(host),
        at: at(1),
        correlation: CORRELATION,
    };
    let unlucky = store.redeem(redemption(3, &key), Box::new(|_, _, _, _| Err(IssueError::Time))).await;
    assert!(matches!(unlucky, Err(WriteError::Refused(RedeemError::Issue(_)))), "{unlucky:?}");
    assert!(store.hosts(None, 10, at(0)).await.unwrap().is_empty());
    let given = store.redeem(redemption(7, &key), fixture.issue()).await.ok().unwrap();
    assert_eq!((given.host, given.generation), (host_id(7), 1));
    // Its reply was lost: the same key has the same certificate, another key nothing.
    let again = store.redeem(redemption(8, &key), fixture.issue()).await.ok().unwrap();
    assert_eq!(again, given);
    let other = store.redeem(redemption(8, &fresh_key()), fixture.issue()).await;
    assert!(matches!(other, Err(WriteError::Refused(RedeemError::Invite(_)))), "{other:?}");
    assert_eq!(store.hosts(None, 10, at(0)).await.unwrap().len(), 1);
}

pub fn renewal(host: HostId, generation: u32, key: &AgentKey) -> Renewal {
    let presented = Presented { host, generation };
    Renewal { presented, key: key.clone(), at: at(9), correlation: CORRELATION }
}

pub async fn a_renewal_is_repeated_for_its_key_and_for_no_other(fixture: Fixture) {
    let store = &fixture.store;
    let first = fresh_key();
    let host = fixture.enrol("box7", host_id(7), &first).await.host;
    let theirs = fresh_key();
    fixture.enrol("box8", host_id(8), &theirs).await;
    let taken = store.renew(renewal(host, 1, &theirs), fixture.issue()).await;
    assert!(matches!(taken, Err(WriteError::Refused(RenewError::KeyTaken))), "{taken:?}");
    let next = fresh_key();
    let given = store.renew(renewal(host, 1, &next), fixture.issue()).await.ok().unwrap();
    assert_eq!(given.generation, 2);
    assert_eq!(store.renew(renewal(host, 1, &next), fixture.issue()).await.ok().unwrap(), given);
    let other = store.renew(renewal(host, 1, &fresh_key()), fixture.issue()).await.ok().unwrap();
    assert_eq!(other.generation, 3);
}

/// A hub that was restored from a backup did not write down what it gave since.
pub async fn a_host_that_is_ahead_of_the_record_is_served_and_renewed(fixture: Fixture) {
    let store = &fixture.store;
    let host = fixture.box7().await;
    store.check_in(checkin(host, 4, 1)).await.unwrap().unwrap();
    assert_eq!(store.host_certificates().await.unwrap()[0].pem, None);
    store.check_in(checkin(host, 4, 2)).await.unwrap().unwrap();
    assert_eq!(fixture.kinds().await.iter().filter(|kind| *kind == "host_ahead").count(), 1);
    let twice = store.check_in(checkin(host, 3, 3)).await.unwrap();
    assert_eq!(twice, Err(IdentityError::Twice { presented: 3, used: 4 }));
    let other = fixture.enrol("box8", host_id(8), &fresh_key()).await.host;
    let next = store.renew(renewal(other, 3, &fresh_key()), fixture.issue()).await.ok().unwrap();
    assert_eq!(next.generation, 4);
}

/// A certificate that ended is followed by the next one, for the key of the latest alone.
pub async fn a_host_goes_on_with_its_latest_key_alone(fixture: Fixture) {
    let store = &fixture.store;
    let (first, second) = (fresh_key(), fresh_key());
    let host = fixture.enrol("box7", host_id(7), &first).await.host;
    store.renew(renewal(host, 1, &second), fixture.issue()).await.ok().unwrap();
    let used = store.host_certificates().await.unwrap();
    assert_eq!((used.len(), used[0].host, used[0].ends_at), (1, host, at(1 + 86_400)));
    // Before the second one is used, the first key is good as well: the reply may have been lost.
    let ask = |number: u128, key: &AgentKey, second: i64| NewEnrollmentRequest {
        at: at(second),
        ..request(number, key)
    };
    store.request_enrollment(ask(1, &first, 10)).await.ok().unwrap();
    store.check_in(checkin(host, 2, 1)).await.unwrap().unwrap();
    assert_eq!(store.host_certificates().await.unwrap()[0].ends_at, at(9 + 86_400));
    let late = store.request_enrollment(ask(2, &first, 11)).await;
    assert!(matches!(late, Ok(EnrollmentReply::Pending(_))), "the request is there already");
    let approval = |number: u128, key: &AgentKey, returns| Approval {
        id: EnrollmentRequestId::new(Uuid::from_u128(number)),
        request: EnrollmentApproval {
            host_name: "box7".parse().unwrap(),
            fingerprint: key.fingerprint(),
            returns,
        },
        host: host_id(99),
    };
    let old = store.approve_enrollment(by(12), approval(1, &first, Some(host)), fixture.issue()).await;
    assert!(matches!(old, Err(WriteError::Refused(EnrollmentRequestError::KeyTaken))), "{old:?}");
    store.request_enrollment(ask(3, &second, 13)).await.ok().unwrap();
    let views = store.enrollment_requests(None, 10).await.unwrap();
    assert_eq!(views.iter().map(|view| view.holder).collect::<Vec<_>>(), [None, Some(host)]);
    let new = store.approve_enrollment(by(14), approval(3, &second, None), fixture.issue()).await;
    assert!(matches!(new, Err(WriteError::Refused(EnrollmentRequestError::Holder { .. }))), "{new:?}");
    store.approve_enrollment(by(15), approval(3, &second, Some(host)), fixture.issue()).await.ok().unwrap();
    let answer = store.request_enrollment(ask(4, &second, 16)).await.ok().unwrap();
    let EnrollmentReply::Approved(given) = answer else { panic!("{answer:?}") };
    assert_eq!((given.host, given.generation), (host, 3));
    store.check_in(checkin(host, 3, 2)).await.unwrap().unwrap();
    // The approval is used up once its certificate ended.
    let over = store.request_enrollment(ask(5, &second, 16 + 86_400)).await.ok().unwrap();
    assert!(matches!(over, EnrollmentReply::Pending(_)), "{over:?}");
    store.revoke_host(by(17 + 86_400), HostRef::Id(host)).await.ok().unwrap();
    assert!(store.host_certificates().await.unwrap().is_empty());
    let event = CaEvent {
        kind: CaEventKind::Begun,
        message: "the CA changes".to_owned(),
        at: at(20),
        correlation: CORRELATION,
    };
    store.record_ca_event(event).await.unwrap();
    assert!(fixture.kinds().await.contains(&"ca_change_begun".to_owned()));
}

pub async fn an_old_certificate_after_a_newer_one_freezes_its_host_for_good(fixture: Fixture) {
    let store = &fixture.store;
    let host = fixture.box7().await;
    store.renew(renewal(host, 1, &fresh_key()), fixture.issue()).await.ok().unwrap();
    store.check_in(checkin(host, 2, 1)).await.unwrap().unwrap();
    // The refusal changes something all the same: both holders are refused from now on.
    let twice = store.check_in(checkin(host, 1, 2)).await.unwrap();
    assert_eq!(twice, Err(IdentityError::Twice { presented: 1, used: 2 }));
    assert_eq!(store.check_in(checkin(host, 2, 3)).await.unwrap(), Err(IdentityError::Frozen));
    let refused = store.renew(renewal(host, 2, &fresh_key()), fixture.issue()).await;
    assert!(matches!(refused, Err(WriteError::Refused(RenewError::Identity(IdentityError::Frozen)))));
    assert_eq!(store.host(named("box7"), at(9)).await.unwrap().unwrap().host.state, HostState::Frozen);
    assert_eq!(fixture.kinds().await.iter().filter(|kind| *kind == "host_frozen").count(), 1);
}

pub async fn a_report_changes_what_it_names_and_an_old_one_nothing(fixture: Fixture) {
    let store = &fixture.store;
    let host = fixture.box7().await;
    let guests = |text: &str| SectionTexts { guests: Some(text.to_owned()), ..SectionTexts::default() };
    let report = |coverage, sequence, sections| Checkin {
        arriving: IncomingReport { coverage, run: Some(at(0)), sequence },
        sections,
        ..checkin(host, 1, sequence)
    };
    // Changes alone mean nothing to a hub that has no whole report of this run.
    let early = store.check_in(report(Coverage::Changed, 4, guests("[]"))).await.unwrap().unwrap();
    assert_eq!((early.acknowledged, early.need), (0, Need::Full));
    let waiting = SectionTexts { waiting: Some("[]".to_owned()), ..guests("[]") };
    let full = store.check_in(report(Coverage::Full, 5, waiting)).await.unwrap().unwrap();
    assert_eq!((full.acknowledged, full.need), (5, Need::Changed));
    let jobs = SectionTexts { jobs: Some("[]".to_owned()), ..SectionTexts::default() };
    assert_eq!(store.check_in(report(Coverage::Changed, 6, jobs)).await.unwrap().unwrap().acknowledged, 6);
    let sections = store.host(named("box7"), at(9)).await.unwrap().unwrap().sections;
    assert!(sections.guests.is_some() && sections.waiting.is_some() && sections.jobs.is_some());
    assert!(sections.storage.is_none());
    let storage = SectionTexts { storage: Some("no JSON".to_owned()), ..SectionTexts::default() };
    let late = store.check_in(report(Coverage::Changed, 5, storage)).await.unwrap().unwrap();
    assert_eq!(late.acknowledged, 6);
    assert!(store.host(named("box7"), at(9)).await.unwrap().unwrap().sections.storage.is_none());
}

pub async fn silence_is_written_down_once_and_not_over_a_later_word(fixture: Fixture) {
    let store = &fixture.store;
    let host = fixture.box7().await;
    store.check_in(checkin(host, 1, 1)).await.unwrap().unwrap();
    let contacts = store.listened_to().await.unwrap();
    assert_eq!((contacts[0].host, contacts[0].since, contacts[0].written), (host, at(5), Liveness::Online));
    let gone = || vec![(contacts[0].clone(), Liveness::Offline)];
    // It reported between the check and the recording of its result.
    store.check_in(Checkin { at: at(600), ..checkin(host, 1, 2) }).await.unwrap().unwrap();
    store.write_down(&fixture.term().await, gone(), at(601), CORRELATION).await.unwrap();
    assert_eq!(store.host(named("box7"), at(601)).await.unwrap().unwrap().host.state, HostState::Online);
    let contacts = store.listened_to().await.unwrap();
    for second in [1300, 1305] {
        let worse = vec![(contacts[0].clone(), Liveness::Offline)];
        store.write_down(&fixture.term().await, worse, at(second), CORRELATION).await.unwrap();
    }
    assert_eq!(store.host(named("box7"), at(1305)).await.unwrap().unwrap().host.state, HostState::Offline);
    assert!(store.listened_to().await.unwrap().is_empty(), "it cannot get worse");
    store.check_in(Checkin { at: at(1400), ..checkin(host, 1, 3) }).await.unwrap().unwrap();
    let kinds = fixture.kinds().await;
    assert_eq!(kinds[kinds.len() - 2..], ["heartbeat_missed", "host_online"]);
}

fn request(number: u128, key: &AgentKey) -> NewEnrollmentRequest {
    NewEnrollmentRequest {
        id: EnrollmentRequestId::new(Uuid::from_u128(number)),
        key: key.clone(),
        claimed_name: "box7".parse().unwrap(),
        sealing: None,
        origin: std::net::IpAddr::from([192, 0, 2, 1]).into(),
        at: at(2),
        correlation: CORRELATION,
    }
}

fn approval(number: u128, key: &AgentKey) -> Approval {
    let fingerprint = key.fingerprint();
    Approval {
        id: EnrollmentRequestId::new(Uuid::from_u128(number)),
        request: EnrollmentApproval { host_name: "box7".parse().unwrap(), fingerprint, returns: None },
        host: host_id(7),
    }
}

pub async fn a_request_waits_for_an_operator_and_gives_one_certificate(fixture: Fixture) {
    let store = &fixture.store;
    let (key, other) = (fresh_key(), fresh_key());
    let id = EnrollmentRequestId::new(Uuid::from_u128(1));
    for number in [1, 2] {
        let reply = store.request_enrollment(request(number, &key)).await.ok().unwrap();
        assert_eq!(reply, EnrollmentReply::Pending(id), "one key is one request");
    }
    store.request_enrollment(request(3, &other)).await.ok().unwrap();
    let wrong = Approval { id, ..approval(1, &other) };
    let refused = store.approve_enrollment(by(3), wrong, fixture.issue()).await;
    let mismatch = EnrollmentRequestError::Fingerprint { actual: key.fingerprint() };
    assert!(matches!(refused, Err(WriteError::Refused(error)) if error.to_string() == mismatch.to_string()));
    for _ in 0..2 {
        let view = store.approve_enrollment(by(3), approval(1, &key), fixture.issue()).await.ok().unwrap();
        assert_eq!((view.state, view.host), (EnrollmentRequestState::Approved, Some(host_id(7))));
    }
    let EnrollmentReply::Approved(given) = store.request_enrollment(request(4, &key)).await.ok().unwrap()
    else {
        panic!("it is approved");
    };
    assert_eq!((given.host, given.generation), (host_id(7), 1));
    let taken = store.approve_enrollment(by(3), approval(3, &other), fixture.issue()).await;
    assert!(matches!(taken, Err(WriteError::Refused(EnrollmentRequestError::Taken { .. }))));
    let third = EnrollmentRequestId::new(Uuid::from_u128(3));
    let view = store.refuse_enrollment(by(4), third).await.ok().unwrap();
    assert_eq!(view.state, EnrollmentRequestState::Refused);
    let asked = store.request_enrollment(request(5, &other)).await;
    assert!(matches!(asked, Err(WriteError::Refused(EnrollmentRequestError::Refused))));
    let listed = store.enrollment_requests(None, 1).await.unwrap();
    let rest = store.enrollment_requests(Some((listed[0].first_at, listed[0].id)), 5).await.unwrap();
    assert_eq!((listed[0].id, rest.len(), rest[0].id), (id, 1, third));
}

pub async fn what_a_request_seals_for_stays_from_its_approval_on(fixture: Fixture) {
    let (store, key) = (&fixture.store, fresh_key());
    let sealing = |letter: &str| SealingIdentity {
        recipient: format!("age1{}", letter.repeat(58)).parse().unwrap(),
        epoch: HostEpoch::new(1),
    };
    let submit = async |letter: &str| {
        let request = NewEnrollmentRequest { sealing: Some(sealing(letter)), ..request(1, &key) };
        store.request_enrollment(request).await.ok().unwrap();
        store.enrollment_requests(None, 1).await.unwrap().remove(0)
    };
    submit("p").await;
    let shown = submit("q").await;
    let fingerprint = request_fingerprint(key.fingerprint(), Some(&sealing("q")));
    assert_eq!((shown.fingerprint, shown.key), (fingerprint, Some(key.fingerprint())), "what it says last");
    let approval = |fingerprint| Approval {
        request: EnrollmentApproval { host_name: "box7".parse().unwrap(), fingerprint, returns: None },
        ..approval(1, &key)
    };
    let before = approval(request_fingerprint(key.fingerprint(), Some(&sealing("p"))));
    let refused = store.approve_enrollment(by(3), before, fixture.issue()).await;
    assert!(matches!(refused, Err(WriteError::Refused(EnrollmentRequestError::Fingerprint { .. }))));
    store.approve_enrollment(by(3), approval(fingerprint), fixture.issue()).await.ok().unwrap();
    assert_eq!(submit("p").await.sealing, Some(sealing("q")), "what was approved");
}

pub async fn an_abandoned_request_and_an_old_invite_are_deleted(fixture: Fixture) {
    let store = &fixture.store;
    let (abandoned, decided) = (fresh_key(), fresh_key());
    store.request_enrollment(request(1, &abandoned)).await.ok().unwrap();
    store.request_enrollment(request(2, &decided)).await.ok().unwrap();
    store.refuse_enrollment(by(3), EnrollmentRequestId::new(Uuid::from_u128(2))).await.ok().unwrap();
    let secret = Secret::new("unused".to_owned()).hash();
    let new = NewInvite { id: InviteId::new(Uuid::from_u128(9)), host_name: "box9".parse().unwrap(), secret };
    let ends = store.create_invite(by(0), new).await.ok().unwrap().expires_at;
    store.prune(&fixture.term().await, at(2) + ENROLLMENT_REQUESTS_KEPT).await.unwrap();
    assert_eq!(store.enrollment_requests(None, 9).await.unwrap().len(), 2);
    store.prune(&fixture.term().await, at(3) + ENROLLMENT_REQUESTS_KEPT).await.unwrap();
    let left = store.enrollment_requests(None, 9).await.unwrap();
    assert_eq!(left.iter().map(|view| view.state).collect::<Vec<_>>(), [EnrollmentRequestState::Refused]);
    // An ended invite is still known as one, and later as none.
    let redemption = || Redemption {
        secret,
        key: fresh_key(),
        host: host_id(9),
        at: ends + INVITES_KEPT,
        correlation: CORRELATION,
    };
    let ended = store.redeem(redemption(), fixture.issue()).await;
    assert!(matches!(ended, Err(WriteError::Refused(RedeemError::Invite(InviteError::Expired { .. })))));
    store.prune(&fixture.term().await, ends + INVITES_KEPT + SignedDuration::from_secs(1)).await.unwrap();
    let unknown = store.redeem(redemption(), fixture.issue()).await;
    assert!(matches!(unknown, Err(WriteError::Refused(RedeemError::Invite(InviteError::Unknown)))));
}

pub async fn another_machine_takes_a_place_by_an_order_that_names_it(fixture: Fixture) {
    let store = &fixture.store;
    let host = fixture.box7().await;
    store.check_in(checkin(host, 1, 1)).await.unwrap().unwrap();
    let key = fresh_key();
    let order = ordered(host, Act::RestoreHost(args::RestoreHost { new_key: Some(key.fingerprint()) }));
    let secret = Secret::new("restore".to_owned()).hash();
    let new = |ordered| NewRestore {
        id: InviteId::new(Uuid::from_u128(5)),
        secret,
        host: named("box7"),
        ordered,
        order: order.clone(),
    };
    assert!(store.create_restore(by(6), new(host_id(9))).await.is_err(), "it is for another host");
    store.create_restore(by(6), new(host)).await.ok().unwrap().unwrap();
    let redemption = |key: &AgentKey| RestoreRedemption {
        secret,
        key: key.clone(),
        at: at(7),
        correlation: CORRELATION,
        reached: Recipients::default(),
    };
    let stranger = store.redeem_restore(redemption(&fresh_key()), fixture.issue()).await;
    assert!(matches!(stranger, Err(WriteError::Refused(RestoreError::OtherKey))));
    for _ in 0..2 {
        let given = store.redeem_restore(redemption(&key), fixture.issue()).await.ok().unwrap();
        assert_eq!((given.certificate.host, given.certificate.generation), (host, 2));
    }
    assert_eq!(store.check_in(checkin(host, 1, 2)).await.unwrap(), Err(IdentityError::Replaced));
    let told = store.replacement(Presented { host, generation: 1 }).await.unwrap().unwrap();
    assert_eq!((told.order, told.withdrawal), (order.clone(), None));
    assert!(store.replacement(Presented { host, generation: 2 }).await.unwrap().is_none());
    let payload = SignedJob::parse(order.as_bytes()).unwrap().payload;
    let digest = holdfast_protocol::job::act::Sha256Text::of(&payload);
    let unknown = holdfast_protocol::job::act::Sha256Text::of(b"another");
    let withdrawal = |order| NewWithdrawal {
        host: named("box7"),
        ordered: host,
        order,
        withdrawal: "taken back".to_owned(),
    };
    let none = store.withdraw_restore(by(8), withdrawal(unknown)).await;
    assert!(matches!(none, Err(WriteError::Refused(WithdrawError::Unknown(_)))));
    let view = store.withdraw_restore(by(8), withdrawal(digest)).await.ok().unwrap().unwrap();
    assert_eq!(view.state, RestoreState::Withdrawn);
    let detail = store.host(named("box7"), at(9)).await.unwrap().unwrap();
    assert_eq!((detail.restores[0].state, detail.epochs.len()), (RestoreState::Withdrawn, 1));
    assert_eq!(detail.host.state, HostState::New, "what the lost box said says nothing of this one");
}
