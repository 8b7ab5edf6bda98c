//! Restore certificates at the hub: kept, countersigned, refused.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::enrol::{Enrolled, RenewRequest};
use holdfast_protocol::id::HostId;
use holdfast_protocol::report::Sections;
use holdfast_protocol::restore_certificate::{
    CertificateKept, CertificatePut, CertificateView, RestoreCertificate, SignedCertificate,
};
use jiff::Timestamp;
use rcgen::KeyPair;
use reqwest::{Method, StatusCode};
use restore_certificate::verify::{HubTrust, KnownHub, verify};
use restore_certificate::{PublicKey, SigningKey, issue};
use serde_json::json;
use uuid::Uuid;

use crate::world::{Answered, Host, World, csr};

pub const GUEST: u128 = 0x018f_3c1e_6b1f_7c1d_9d0a_0000_0000_0001;

/// A document of the guest's test `test`, which ended at a time.
pub fn document(host: HostId, guest: u128, test: u128, ended_at: Timestamp) -> RestoreCertificate {
    let second = |at: Timestamp| Timestamp::from_second(at.as_second()).unwrap();
    serde_json::from_value(json!({
        "schema": "holdfast.restore_certificate/v1",
        "guest": { "uid": Uuid::from_u128(guest), "name": "web-1", "customer": "acme" },
        "host": { "id": host, "name": "box7", "node": "pve" },
        "backup": {
            "operation": Uuid::from_u128(2), "archive": "backup2:backup/a.tar.zst",
            "taken_at": "2026-11-21T02:00:00Z", "bytes": 1000, "storage": "backup2"
        },
        "test": {
            "operation": Uuid::from_u128(test),
            "began_at": "2026-11-21T03:00:00Z", "ended_at": second(ended_at),
            "verdict": "proved", "reason": "canaries as they were: 1",
            "checks": [{ "check": "restored" }],
            "took": { "restore_s": 180, "up_s": 42 }
        },
        "issued_at": second(ended_at),
        "agent_version": "0.1.0"
    }))
    .unwrap()
}

pub fn signed(document: &RestoreCertificate, key: &KeyPair) -> SignedCertificate {
    issue::issue(document, &SigningKey::from_pkcs8(&key.serialize_der()).unwrap()).unwrap()
}

impl Host {
    async fn put_certificate(&self, certificate: &SignedCertificate) -> Answered<CertificateKept> {
        let put = CertificatePut { certificate: certificate.clone() };
        self.client.send(Method::PUT, "/v1/agent/restore-certificates", &put).await
    }

    /// Reports one guest.
    async fn with_guest(self, guest: u128) -> Self {
        let guests = json!([{
            "uid": Uuid::from_u128(guest), "name": "web-1", "vmid": 300, "status": "managed", "run": "running"
        }]);
        let guests = Sections { guests: serde_json::from_value(guests).unwrap(), ..Sections::default() };
        self.check_in(&self.full(1, 0), "0s").await.data(StatusCode::OK);
        self.check_in(&self.changed(2, 0, guests), "0s").await.data(StatusCode::OK);
        self
    }
}

fn place(host: &str, guest: u128) -> String {
    format!("/v1/hosts/{host}/guests/{}/restore-certificate", Uuid::from_u128(guest))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_countersigned_once_and_served() {
    let world = World::start().await;
    let host = world.enrol("box7").await.with_guest(GUEST).await;
    let admin = world.admin();
    assert_eq!(admin.get::<CertificateView>(&place("box7", GUEST)).await.code(), ErrorCode::NotFound);
    let now = world.clock.advance(1);
    let first = document(host.enrolled.host_id, GUEST, 50, now);
    let sent = signed(&first, &host.key);
    let kept = host.put_certificate(&sent).await.data(StatusCode::OK);
    // The answer was lost: the same again is the same answer, and the same signature.
    let served: CertificateView = admin.get(&place("box7", GUEST)).await.data(StatusCode::OK);
    world.clock.advance(60);
    assert_eq!(host.put_certificate(&sent).await.data(StatusCode::OK), kept);
    let again: CertificateView = admin.get(&place("box7", GUEST)).await.data(StatusCode::OK);
    assert_eq!(again, served);

    let known = KnownHub::Key(PublicKey::from_openssh(served.hub_key.as_str()).unwrap());
    let proof = verify(served.certificate.clone(), &known).unwrap();
    assert_eq!((proof.document, proof.trust), (first, HubTrust::Compared));
    assert_eq!((proof.statement.host, proof.statement.certificate_generation), (host.enrolled.host_id, 1));
    assert_eq!(proof.statement.received_at, kept.received_at);

    // A later test replaces it; of three the newest two are kept.
    for test in [51, 52] {
        let later = document(host.enrolled.host_id, GUEST, test, world.clock.advance(60));
        host.put_certificate(&signed(&later, &host.key)).await.data(StatusCode::OK);
        let newest: CertificateView = admin.get(&place("box7", GUEST)).await.data(StatusCode::OK);
        assert_eq!(newest.certificate.read().unwrap(), later);
    }
    assert_eq!(
        host.put_certificate(&sent).await.code(),
        ErrorCode::RestoreCertificateOld,
        "the first one is gone, and comes back no more"
    );

    // The key is the same after a restart.
    let (folder, _temp) = world.stop().await;
    let world = World::in_folder(folder, None).await;
    let newest: CertificateView = world.admin().get(&place("box7", GUEST)).await.data(StatusCode::OK);
    assert_eq!(newest.hub_key, served.hub_key);
    verify(newest.certificate, &known).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_the_senders_own_is_refused() {
    let world = World::start().await;
    let host = world.enrol("box7").await.with_guest(GUEST).await;
    let other = world.enrol("box8").await.with_guest(GUEST + 1).await;
    let (id, now) = (host.enrolled.host_id, world.clock.advance(1));
    let own = |guest, test| document(id, guest, test, now);
    let right = signed(&own(GUEST, 50), &host.key);
    let edit = |from: &str, to: &str| SignedCertificate {
        document: right.document.as_str().replace(from, to).try_into().unwrap(),
        ..right.clone()
    };
    let refused = [
        ("another host's key", signed(&own(GUEST, 50), &other.key)),
        ("no host's key", signed(&own(GUEST, 50), &KeyPair::generate().unwrap())),
        ("another host", signed(&document(other.enrolled.host_id, GUEST, 50, now), &host.key)),
        ("another host's guest", signed(&own(GUEST + 1, 50), &host.key)),
        ("a changed byte", edit("web-1", "web-2")),
        ("a field that was added", edit("\"agent_version\"", "\"more\":1,\"agent_version\"")),
    ];
    for (what, certificate) in refused {
        assert_eq!(host.put_certificate(&certificate).await.code(), ErrorCode::RestoreCertificate, "{what}");
    }
    // What another host signed is not this host's, although all of it is true.
    assert_eq!(other.put_certificate(&right).await.code(), ErrorCode::RestoreCertificate);
    host.put_certificate(&right).await.data(StatusCode::OK);
    // A second certificate of the same test, by the right key.
    let mut second = own(GUEST, 50);
    second.backup.bytes = 9000;
    let second = signed(&second, &host.key);
    assert_eq!(host.put_certificate(&second).await.code(), ErrorCode::RestoreCertificateOld);
    // A test that ended before.
    let before = Timestamp::from_second(now.as_second() - 60).unwrap();
    let before = signed(&document(id, GUEST, 49, before), &host.key);
    assert_eq!(host.put_certificate(&before).await.code(), ErrorCode::RestoreCertificateOld);
    // An operator's token is no host's certificate.
    let put = CertificatePut { certificate: right };
    let sent: Answered<CertificateKept> =
        world.admin().send(Method::PUT, "/v1/agent/restore-certificates", &put).await;
    assert_eq!(sent.code(), ErrorCode::Certificate);
}

/// A certificate that was signed before a renewal is delivered after it.
#[tokio::test(flavor = "multi_thread")]
async fn the_key_before_a_renewal_is_still_the_hosts() {
    let world = World::start().await;
    let host = world.enrol("box7").await.with_guest(GUEST).await;
    let certificate = signed(&document(host.enrolled.host_id, GUEST, 50, world.clock.advance(1)), &host.key);
    let next = KeyPair::generate().unwrap();
    let renewed: Enrolled = host
        .client
        .send(Method::POST, "/v1/renew", &RenewRequest { csr_pem: csr(&next) })
        .await
        .data(StatusCode::OK);
    let renewed = world.host(renewed, next);
    renewed.put_certificate(&certificate).await.data(StatusCode::OK);
    let served: CertificateView = world.admin().get(&place("box7", GUEST)).await.data(StatusCode::OK);
    let statement = served.certificate.hub.unwrap().read().unwrap();
    assert_eq!(statement.certificate_generation, 1);
}
