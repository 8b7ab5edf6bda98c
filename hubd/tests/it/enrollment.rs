//! Invites, certificates, renewal, and copied identities.

use holdfast_protocol::checkin::CheckinAnswer;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::enrol::{Enrolled, InviteRedemption, RenewRequest};
use holdfast_protocol::operator::{HostState, HostView, InviteRequest};
use holdfast_protocol::pin::{Pin, PinKind};
use holdfast_protocol::secret::Secret;
use rcgen::KeyPair;
use reqwest::{Method, StatusCode};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use serde_json::Value;

use crate::world::{Host, World, csr};

#[tokio::test(flavor = "multi_thread")]
async fn an_invite_names_hub_and_ca_and_gives_one_certificate() {
    let world = World::start().await;
    let invite = world.invite("box7").await;
    assert_eq!(invite.hub, world.url);
    let ca = CertificateDer::from_pem_slice(world.ca_pem.as_bytes()).unwrap();
    assert_eq!(invite.ca, Pin::of(PinKind::Leaf, &ca));
    let key = KeyPair::generate().unwrap();
    let enrolled = world.redeem(&invite, &key).await.data(StatusCode::OK);
    assert_eq!((enrolled.host_name.as_str(), enrolled.certificate_generation), ("box7", 1));
    assert_eq!(enrolled.not_after.duration_since(enrolled.not_before).as_hours(), 24);
    assert_eq!(enrolled.ca_pem, world.ca_pem);
    assert_eq!(world.view("box7").await.state, HostState::New);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_at_once_get_one_certificate_between_them() {
    let world = World::start().await;
    let invite = world.invite("box7").await;
    let keys: Vec<KeyPair> = (0..100).map(|_| KeyPair::generate().unwrap()).collect();
    let mut tries = tokio::task::JoinSet::new();
    for (host, key) in (1..).zip(&keys) {
        let secret = Secret::new(invite.secret.expose().to_owned());
        // Each from an address of its own: one address has fewer connections at once.
        let client = world.from([127, 8, 11, host].into());
        let request = InviteRedemption { secret, csr_pem: csr(key) };
        tries.spawn(async move { client.send::<Enrolled>(Method::POST, "/v1/enroll", &request).await });
    }
    let answers = tries.join_all().await;
    let given = answers.iter().filter(|answer| answer.status == StatusCode::OK).count();
    let used = answers
        .iter()
        .filter(|answer| answer.envelope.error.is_some() && answer.code() == ErrorCode::InviteUsed)
        .count();
    assert_eq!((given, used), (1, 99));
    let enrolled = world.event_kinds().await.into_iter().filter(|kind| kind == "host_enrolled").count();
    assert_eq!(enrolled, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_reply_is_repeated_for_the_same_key_alone() {
    let world = World::start().await;
    let invite = world.invite("box7").await;
    let (mine, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let first = world.redeem(&invite, &mine).await.data(StatusCode::OK);
    let again = world.redeem(&invite, &mine).await.data(StatusCode::OK);
    assert_eq!(first, again);
    assert_eq!(world.redeem(&invite, &other).await.code(), ErrorCode::InviteUsed);
    // The hour is over, and the same key still gets its certificate; a new one would not.
    world.clock.advance(2 * 3600);
    assert_eq!(world.redeem(&invite, &mine).await.data(StatusCode::OK), first);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invite_ends_after_an_hour_and_a_wrong_one_is_unknown() {
    let world = World::start().await;
    let mut invite = world.invite("box7").await;
    let key = KeyPair::generate().unwrap();
    world.clock.advance(3600);
    assert_eq!(world.redeem(&invite, &key).await.code(), ErrorCode::InviteExpired);
    invite.secret = Secret::new("0".repeat(64));
    assert_eq!(world.redeem(&invite, &key).await.code(), ErrorCode::InviteUnknown);
    assert!(!world.event_kinds().await.contains(&"host_enrolled".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_csr_uses_nothing_up() {
    let world = World::start().await;
    let invite = world.invite("box7").await;
    let rsa = include_str!("../csr/rsa-1024.csr.pem").to_owned();
    let long = format!("{}{}", csr(&KeyPair::generate().unwrap()), " ".repeat(9000));
    for csr_pem in [rsa, long, String::new(), "hello".to_owned()] {
        let secret = Secret::new(invite.secret.expose().to_owned());
        let request = InviteRedemption { secret, csr_pem };
        let answer = world.anyone().send::<Enrolled>(Method::POST, "/v1/enroll", &request).await;
        assert_eq!(answer.code(), ErrorCode::Csr);
    }
    world.redeem(&invite, &KeyPair::generate().unwrap()).await.data(StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_given_to_one_host_until_it_is_revoked() {
    let world = World::start().await;
    let (first, second) = (world.invite("box7").await, world.invite("box7").await);
    let key = || KeyPair::generate().unwrap();
    let enrolled = world.redeem(&first, &key()).await.data(StatusCode::OK);
    assert_eq!(world.redeem(&second, &key()).await.code(), ErrorCode::NameTaken);
    let request = InviteRequest { host_name: "box7".parse().unwrap() };
    let refused = world.admin().send::<Value>(Method::POST, "/v1/invites", &request).await;
    assert_eq!(refused.code(), ErrorCode::NameTaken);
    let revoked: HostView =
        world.admin().send(Method::POST, "/v1/hosts/box7/revoke", &()).await.data(StatusCode::OK);
    assert_eq!((revoked.id, revoked.state), (enrolled.host_id, HostState::Revoked));
    let next = world.redeem(&second, &key()).await.data(StatusCode::OK);
    assert_ne!(next.host_id, enrolled.host_id);
}

async fn renew(host: &Host, key: &KeyPair) -> crate::world::Answered<Enrolled> {
    host.client.send(Method::POST, "/v1/renew", &RenewRequest { csr_pem: csr(key) }).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_counts_on_and_a_lost_reply_is_repeated() {
    let world = World::start().await;
    let host = world.enrol("box7").await;
    let key = KeyPair::generate().unwrap();
    let second = renew(&host, &key).await.data(StatusCode::OK);
    assert_eq!(second.certificate_generation, 2);
    assert_eq!(renew(&host, &key).await.data(StatusCode::OK), second);
    // Until the new one is used, the old one is good.
    host.check_in(&host.full(1, 0), "0s").await.data(StatusCode::OK);
    let renewed = world.host(second, key);
    renewed.check_in(&renewed.full(2, 0), "0s").await.data(StatusCode::OK);
    assert_eq!(world.view("box7").await.state, HostState::Online);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_holders_of_one_identity_are_both_frozen() {
    let world = World::start().await;
    let clone = world.enrol("box7").await;
    let key = KeyPair::generate().unwrap();
    let second = renew(&clone, &key).await.data(StatusCode::OK);
    let right = world.host(second, key);
    right.check_in(&right.full(1, 0), "0s").await.data(StatusCode::OK);
    assert_eq!(clone.check_in(&clone.full(1, 0), "0s").await.code(), ErrorCode::Frozen);
    assert_eq!(right.check_in(&right.full(2, 0), "0s").await.code(), ErrorCode::Frozen);
    assert_eq!(renew(&right, &right.key).await.code(), ErrorCode::Frozen);
    assert_eq!(world.view("box7").await.state, HostState::Frozen);
    let kinds = world.event_kinds().await;
    assert_eq!(kinds.iter().filter(|kind| *kind == "host_frozen").count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_certificate_is_refused_at_the_next_request() {
    let world = World::start().await;
    let host = world.enrol("box7").await;
    host.check_in(&host.full(1, 0), "0s").await.data(StatusCode::OK);
    let id = host.enrolled.host_id.to_string();
    world.admin().send::<HostView>(Method::POST, "/v1/hosts/box7/revoke", &()).await.data(StatusCode::OK);
    let refused = host.check_in(&host.full(2, 0), "0s").await;
    assert_eq!(refused.code(), ErrorCode::Revoked);
    assert!(world.admin().get::<Value>("/v1/hosts/box7").await.code() == ErrorCode::NotFound);
    assert_eq!(world.view(&id).await.state, HostState::Revoked);
    let nobody: crate::world::Answered<CheckinAnswer> =
        world.anyone().send(Method::POST, "/v1/agent/checkin", &host.full(3, 0)).await;
    assert_eq!(nobody.code(), ErrorCode::Certificate);
}
