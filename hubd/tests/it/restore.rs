//! Replacement of a lost host by a signed order.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::enrol::{Enrolled, Invite, RenewRequest};
use holdfast_protocol::escrow::notice::Reader;
use holdfast_protocol::escrow::{CodeNumber, EscrowPut};
use holdfast_protocol::id::{HostId, JobId, KeyFingerprint};
use holdfast_protocol::job::act::{Sha256Text, args};
use holdfast_protocol::job::{Act, Draft, HostEpoch, Nonce, Order, SignedJob, Target, UtcSecond};
use holdfast_protocol::operator::{DesiredVersion, HostDetail, HostState, HostView, InviteCreated};
use holdfast_protocol::pin::{Pin, PinKind};
use holdfast_protocol::restore::{
    Replacement, RestoreOrder, RestoreRedeem, RestoreRequest, RestoreState, Restored, WithdrawRequest,
};
use holdfast_protocol::secret::Secret;
use rcgen::{KeyPair, PublicKeyData as _};
use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::escrow::{Customer, version};
use crate::world::{Answered, Host, World, csr, document, until};

/// As operators would submit it; the hosts check its signature.
pub(super) fn ordered(host: HostId, act: Act) -> String {
    let at = |text: &str| UtcSecond::try_from(text.to_owned()).unwrap();
    let order = Order {
        job_id: JobId::new(uuid::Uuid::new_v4()),
        host_id: host,
        host_epoch: HostEpoch::new(7),
        host: None,
        not_before: at("2026-11-22T12:00:00Z"),
        expires_at: at("2026-11-22T14:00:00Z"),
        nonce: Nonce::try_from("ab".repeat(16)).unwrap(),
        reason: "the box burnt".to_owned().try_into().unwrap(),
    };
    let payload = Draft { target: Target::Host {}, act }.ordered(order).to_json().unwrap().into_bytes();
    SignedJob { payload, signatures: vec!["signed".to_owned()], consents: Vec::new() }.to_json().unwrap()
}

/// The order lets the machine with this key take the place.
fn order(host: HostId, key: &KeyPair) -> String {
    let new_key = Some(Pin::of(PinKind::Spki, &key.subject_public_key_info()));
    ordered(host, Act::RestoreHost(args::RestoreHost { new_key }))
}

/// What takes such an order back.
fn withdrawal(host: HostId, order: &str) -> String {
    let order = Sha256Text::of(&SignedJob::parse(order.as_bytes()).unwrap().payload);
    ordered(host, Act::WithdrawRestore(args::WithdrawRestore { order }))
}

async fn withdraw(world: &World, name: &str, withdrawal: &str) -> Answered<RestoreOrder> {
    let request = WithdrawRequest { withdrawal: withdrawal.to_owned() };
    world.admin().send(Method::POST, &format!("/v1/hosts/{name}/restore/withdraw"), &request).await
}

/// The orders that the hub shows.
async fn orders(world: &World) -> Vec<RestoreState> {
    let detail: HostDetail =
        world.admin().send(Method::GET, "/v1/hosts/box7", &()).await.data(StatusCode::OK);
    detail.restores.iter().map(|order| order.state).collect()
}

async fn invite(world: &World, name: &str, order: &str) -> Answered<InviteCreated> {
    let request = RestoreRequest { order: order.to_owned() };
    world.admin().send(Method::POST, &format!("/v1/hosts/{name}/restore"), &request).await
}

async fn redeem(world: &World, invite: &Invite, key: &KeyPair) -> Answered<Restored> {
    let secret = Secret::new(invite.secret.expose().to_owned());
    let request = RestoreRedeem { secret, csr_pem: csr(key) };
    world.anyone().send(Method::POST, "/v1/restore", &request).await
}

async fn opened(world: &World, host: &Host, key: &KeyPair) -> Invite {
    let made = invite(world, "box7", &order(host.enrolled.host_id, key)).await.data(StatusCode::CREATED);
    Invite::open(&made.code).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_new_host_gets_everything_and_the_old_one_is_stopped() {
    let customer = Customer::default();
    let world = World::with_notice(customer.for_all().await).await;
    let old = world.enrol("box7").await;
    old.check_in(&old.full(1, 0), "0s").await.data(StatusCode::OK);
    old.check_in(&old.changed(2, 0, crate::jobs::trust(40)), "0s").await.data(StatusCode::OK);
    old.put_escrow(&version(1)).await.data(StatusCode::OK);
    let put = world.admin().put_desired::<DesiredVersion>("box7", Some("\"0\""), document(1)).await;
    put.data(StatusCode::OK);
    let key = KeyPair::generate().unwrap();
    let invite = opened(&world, &old, &key).await;
    let restored = redeem(&world, &invite, &key).await.data(StatusCode::OK);
    let enrolled = &restored.enrolled;
    assert_eq!((enrolled.host_id, &enrolled.host_name), (old.enrolled.host_id, &old.enrolled.host_name));
    assert_eq!((enrolled.certificate_generation, restored.order), (2, order_of(&old).await));
    assert_eq!(restored.handover.desired, Some(document(1)));
    assert!(restored.handover.sections.guests.is_some());
    assert_eq!(restored.handover.escrows[0].file, version(1).file);
    until("the customer was told", || async { customer.notices().len() == 1 }).await;
    assert_eq!(customer.notices()[0].reader, Reader::Restore);

    assert_eq!(old.check_in(&old.full(2, 0), "0s").await.code(), ErrorCode::Replaced);
    assert_eq!(old.put_escrow(&version(2)).await.code(), ErrorCode::Replaced);
    assert_eq!(old.read_escrow().await.code(), ErrorCode::Replaced);
    let renewed: Answered<Enrolled> =
        old.client.send(Method::POST, "/v1/renew", &RenewRequest { csr_pem: csr(&old.key) }).await;
    assert_eq!(renewed.code(), ErrorCode::Replaced);

    // The old machine's reports neither freeze the new one nor count as its own.
    let new = world.host(restored.enrolled, key);
    new.check_in(&new.full(1, 0), "0s").await.data(StatusCode::OK);
    assert_eq!(old.check_in(&old.full(3, 0), "0s").await.code(), ErrorCode::Replaced);
    assert_eq!(new.check_in(&new.full(2, 0), "0s").await.data(StatusCode::OK).audit_seen, 0);
    let detail: HostDetail = world.admin().get("/v1/hosts/box7").await.data(StatusCode::OK);
    let epochs: Vec<_> =
        detail.epochs.iter().map(|epoch| (epoch.before_generation, epoch.audit_seen)).collect();
    assert_eq!(epochs, [(2, 40)], "the audit of the box before keeps its own number");
    assert_eq!(world.view("box7").await.state, HostState::Online);
    assert_eq!(new.escrows().await.versions.len(), 1);
}

/// Two off-site targets with two keys: which of them could be read hung on which code was made last.
#[tokio::test(flavor = "multi_thread")]
async fn of_each_key_the_file_in_force_is_handed_over() {
    let customer = Customer::default();
    let world = World::with_notice(customer.for_all().await).await;
    let old = world.enrol("box7").await;
    let other_key: KeyFingerprint = ["cd"; 32].join(":").parse().unwrap();
    let code = |number: u32| CodeNumber::try_from(number).unwrap();
    let put = async |put: EscrowPut| old.put_escrow(&put).await.data(StatusCode::OK);
    put(version(1)).await;
    put(EscrowPut { code: code(2), fingerprint: other_key.clone(), ..version(2) }).await;
    put(EscrowPut { code: code(3), ..version(3) }).await;
    // The hub had lost the first, and it was put anew: its code is none the newer for it.
    put(EscrowPut { code: code(1), ..version(4) }).await;
    let key = KeyPair::generate().unwrap();
    let invite = opened(&world, &old, &key).await;
    let restored = redeem(&world, &invite, &key).await.data(StatusCode::OK);
    let handed: Vec<(u32, u32, &KeyFingerprint)> = restored
        .handover
        .escrows
        .iter()
        .map(|found| (found.version.number.number(), found.version.code.number(), &found.version.fingerprint))
        .collect();
    assert_eq!(handed, [(3, 3, &version(1).fingerprint), (2, 2, &other_key)]);
    assert_eq!(restored.handover.escrows[1].file, version(2).file);
    until("the customer was told of each", || async { customer.notices().len() == 2 }).await;
}

/// What the old machine is shown.
async fn order_of(old: &Host) -> String {
    let path = "/v1/agent/replacement";
    old.client.send::<Replacement>(Method::POST, path, &()).await.data(StatusCode::OK).order
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_host_in_a_long_poll_is_answered_at_once() {
    let world = World::start().await;
    let old = world.enrol("box7").await;
    old.check_in(&old.full(1, 0), "0s").await.data(StatusCode::OK);
    let held = old.changed(2, 0, holdfast_protocol::report::Sections::default());
    let key = KeyPair::generate().unwrap();
    let invite = opened(&world, &old, &key).await;
    let (held, _) = tokio::join!(old.check_in(&held, "25s"), async {
        until("it is redeemed", || async { redeem(&world, &invite, &key).await.status == StatusCode::OK })
            .await;
    });
    assert_eq!(held.code(), ErrorCode::Replaced);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_invite_works_once_and_a_lost_reply_is_repeated() {
    let world = World::start().await;
    let old = world.enrol("box7").await;
    let (mine, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let (first, second) = (opened(&world, &old, &mine).await, opened(&world, &old, &other).await);
    let own = opened(&world, &old, &old.key).await;
    assert_eq!(redeem(&world, &own, &old.key).await.code(), ErrorCode::Csr, "the old box's own key");
    for stranger in [&old.key, &other] {
        assert_eq!(
            redeem(&world, &first, stranger).await.code(),
            ErrorCode::NotYours,
            "not the key that it names"
        );
    }
    let restored = redeem(&world, &first, &mine).await.data(StatusCode::OK);
    assert!(restored.handover.escrows.is_empty());
    assert_eq!(restored.handover.withheld.unwrap().code, ErrorCode::NotFound);
    let again = redeem(&world, &first, &mine).await.data(StatusCode::OK);
    assert_eq!(again.enrolled, restored.enrolled);
    assert_eq!(redeem(&world, &first, &other).await.code(), ErrorCode::InviteUsed);
    assert_eq!(orders(&world).await.iter().filter(|state| **state == RestoreState::Used).count(), 1);
    // A second invite replaces the replacement; the first invite's machine counts as old then, too.
    let third = redeem(&world, &second, &other).await.data(StatusCode::OK).enrolled;
    assert_eq!(third.certificate_generation, 3);
    let middle = world.host(restored.enrolled, mine);
    assert_eq!(middle.check_in(&middle.full(1, 0), "0s").await.code(), ErrorCode::Replaced);
    assert_eq!(redeem(&world, &first, &middle.key).await.code(), ErrorCode::InviteUsed);
    let kinds = world.event_kinds().await;
    assert_eq!(kinds.iter().filter(|kind| *kind == "host_restored").count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_order_for_this_host_makes_no_invite() {
    let world = World::start().await;
    let (host, other) = (world.enrol("box7").await, world.enrol("box8").await);
    let id = host.enrolled.host_id;
    let key = KeyPair::generate().unwrap();
    let order = |id: HostId| order(id, &key);
    let old_command = ordered(id, Act::RestoreHost(args::RestoreHost { new_key: None }));
    assert_eq!(invite(&world, "box7", &old_command).await.code(), ErrorCode::JobUnbound);
    for bad in ["", "hello", "{}", &order(id)[..100]] {
        assert_eq!(invite(&world, "box7", bad).await.code(), ErrorCode::Range, "{bad:?}");
    }
    let cancel = ordered(id, Act::Cancel(args::Cancel { job: JobId::new(uuid::Uuid::nil()) }));
    assert_eq!(invite(&world, "box7", &cancel).await.code(), ErrorCode::Range);
    assert_eq!(invite(&world, "box7", &order(other.enrolled.host_id)).await.code(), ErrorCode::NotYours);
    assert_eq!(invite(&world, "box9", &order(id)).await.code(), ErrorCode::NotFound);
    let request = RestoreRequest { order: order(id) };
    let nobody: Answered<Value> = world.anyone().send(Method::POST, "/v1/hosts/box7/restore", &request).await;
    assert_eq!(nobody.code(), ErrorCode::Unauthenticated);
    let path = "/v1/agent/replacement";
    let none: Answered<Value> = host.client.send(Method::POST, path, &()).await;
    assert_eq!(none.code(), ErrorCode::NotFound);
    let late = opened(&world, &host, &key).await;
    world.clock.advance(3600);
    assert_eq!(redeem(&world, &late, &key).await.code(), ErrorCode::InviteExpired);
    let gone = opened(&world, &host, &key).await;
    world.admin().send::<HostView>(Method::POST, "/v1/hosts/box7/revoke", &()).await.data(StatusCode::OK);
    assert_eq!(redeem(&world, &gone, &key).await.code(), ErrorCode::Revoked);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_is_shown_until_it_ended_and_is_taken_back_by_another() {
    let world = World::start().await;
    let old = world.enrol("box7").await;
    let (id, key) = (old.enrolled.host_id, KeyPair::generate().unwrap());
    let text = order(id, &key);
    let made = invite(&world, "box7", &text).await.data(StatusCode::CREATED);
    assert_eq!(orders(&world).await, [RestoreState::Unused]);
    let other = order(id, &KeyPair::generate().unwrap());
    let unknown = withdraw(&world, "box7", &withdrawal(id, &other)).await;
    assert_eq!(unknown.code(), ErrorCode::NotFound);
    assert_eq!(withdraw(&world, "box7", &text).await.code(), ErrorCode::Range, "an order takes nothing back");
    let stranger = HostId::new(uuid::Uuid::new_v4());
    let elsewhere = withdraw(&world, "box7", &withdrawal(stranger, &text)).await;
    assert_eq!(elsewhere.code(), ErrorCode::NotYours);
    assert_eq!(orders(&world).await, [RestoreState::Unused], "nothing was taken back");
    for _ in 0..2 {
        let kept = withdraw(&world, "box7", &withdrawal(id, &text)).await.data(StatusCode::OK);
        assert_eq!(kept.state, RestoreState::Withdrawn);
    }
    let opened = Invite::open(&made.code).unwrap();
    assert_eq!(redeem(&world, &opened, &key).await.code(), ErrorCode::InviteWithdrawn);
    assert_eq!(world.event_kinds().await.iter().filter(|kind| *kind == "restore_withdrawn").count(), 1);

    world.clock.advance(1);
    invite(&world, "box7", &other).await.data(StatusCode::CREATED);
    world.clock.advance(3600);
    assert_eq!(orders(&world).await, [RestoreState::Ended, RestoreState::Withdrawn]);
}

/// The old machine may wake up after that: it is shown both.
#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_a_box_followed_is_handed_over_with_what_takes_it_back() {
    let world = World::start().await;
    let old = world.enrol("box7").await;
    let (id, key) = (old.enrolled.host_id, KeyPair::generate().unwrap());
    let text = order(id, &key);
    let made = invite(&world, "box7", &text).await.data(StatusCode::CREATED);
    redeem(&world, &Invite::open(&made.code).unwrap(), &key).await.data(StatusCode::OK);
    let path = "/v1/agent/replacement";
    let shown: Replacement = old.client.send(Method::POST, path, &()).await.data(StatusCode::OK);
    assert_eq!((&shown.order, &shown.withdrawal), (&text, &None));
    let back = withdrawal(id, &text);
    withdraw(&world, "box7", &back).await.data(StatusCode::OK);
    let shown: Replacement = old.client.send(Method::POST, path, &()).await.data(StatusCode::OK);
    assert_eq!((shown.order, shown.withdrawal), (text, Some(back)));
}
