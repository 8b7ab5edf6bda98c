//! Changes of the hub's CA, and ended certificates, over real TLS.
//!
//! The command is the real one, beside a hub that runs. Hosts are played here: what an agent decides is tested in its own
//! crates.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::enrol::{Enrolled, EnrollmentAnswer, RenewRequest};
use holdfast_protocol::operator::{EnrollmentRequestView, HostState, Page};
use holdfast_protocol::pin::{Pin, PinKind};
use net::tls::Trust;
use rcgen::KeyPair;
use reqwest::{Method, StatusCode};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};

use crate::process::hubd;
use crate::readmission::{approve, let_in, pending, submit};
use crate::world::{Client, Host, Options, World, client, csr, until};

/// As many hosts as `HOLDFAST_CA_HOSTS` says.
fn hosts() -> usize {
    std::env::var("HOLDFAST_CA_HOSTS").ok().and_then(|count| count.parse().ok()).unwrap_or(6)
}

/// `hubd ca rotate …` on the folder of a hub that runs: whether it did that, and what it printed.
async fn rotate(world: &World, arguments: &[&str]) -> (bool, String) {
    let mut command = hubd();
    command.args(["ca", "rotate"]).args(arguments).arg("--dir").arg(&world.folder);
    let output = command.output().await.unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    (output.status.success(), text)
}

async fn rotated(world: &World, arguments: &[&str]) -> String {
    let (done, text) = rotate(world, arguments).await;
    assert!(done, "{text}");
    text
}

fn certificates(pem: &str) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem.as_bytes()).map(Result::unwrap).collect()
}

fn pin(certificate: &CertificateDer<'_>) -> Pin {
    Pin::of(PinKind::Leaf, certificate)
}

/// Whether a server answers this client at all.
async fn reaches(client: &Client) -> bool {
    client.http.get(format!("{}/healthz", client.url)).send().await.is_ok()
}

/// As an agent does it: the CA that is announced comes with a renewal, and its proof holds.
async fn follow(world: &World, host: &Host) -> Host {
    let key = KeyPair::generate().unwrap();
    let renewed: Enrolled = host
        .client
        .send(Method::POST, "/v1/renew", &RenewRequest { csr_pem: csr(&key) })
        .await
        .data(StatusCode::OK);
    let [old, new] = <[_; 2]>::try_from(certificates(&renewed.ca_pem)).unwrap();
    let proof = certificates(renewed.ca_cross_pem.as_deref().unwrap());
    assert_eq!(net::tls::succeeds(&old, &new, &proof[0]), Ok(()));
    let client = client(&renewed.ca_pem, &world.url, Some((&renewed.certificate_pem, &key)));
    let host = Host { enrolled: renewed, key, client, started_at: host.started_at };
    host.check_in(&host.full(2, 0), "0s").await.data(StatusCode::OK);
    host
}

async fn announced(host: &Host) -> Option<Pin> {
    host.check_in(&host.full(1, 0), "0s").await.data(StatusCode::OK).hub_ca
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_follow_a_change_of_the_ca_and_one_that_was_away_comes_back() {
    let world = World::start().await;
    let begun = std::time::Instant::now();
    let mut fleet = Vec::new();
    for number in 0..hosts() {
        fleet.push(world.enrol(&format!("box{number}")).await);
    }
    let away = world.enrol("away").await;
    away.check_in(&away.full(1, 0), "0s").await.data(StatusCode::OK);
    let unused = world.invite("later").await;
    let enrolled_after = begun.elapsed();

    let old = pin(&certificates(&world.ca_pem)[0]);
    assert!(rotated(&world, &["begin"]).await.contains("The new CA is leaf/sha256:"));
    let (again, why) = rotate(&world, &["begin"]).await;
    assert!(!again && why.contains("under way already"), "{why}");
    let first = &fleet[0];
    until("announced", || async { announced(first).await.is_some() }).await;
    let new = announced(first).await.unwrap();
    assert_ne!(new, old);
    let (early, why) = rotate(&world, &["finish"]).await;
    assert!(!early && why.contains("box0"), "{why}");

    let mut followed = Vec::new();
    for host in &fleet {
        assert_eq!(announced(host).await, Some(new));
        followed.push(follow(&world, host).await);
    }
    let followed_after = begun.elapsed();
    let status = rotated(&world, &["status"]).await;
    let done = format!("{} of {} hosts do not need", fleet.len(), fleet.len() + 1);
    assert!(status.contains(&done) && status.contains("waits for: away."), "{status}");
    let (early, why) = rotate(&world, &["finish"]).await;
    assert!(!early && why.contains("still use the CA that goes: away."), "{why}");
    let (wrong, why) = rotate(&world, &["finish", "--leave", "box0"]).await;
    assert!(!wrong && why.contains("box0 does not need"), "{why}");
    let text = rotated(&world, &["finish", "--leave", "away"]).await;
    assert!(text.contains("left behind: away"), "{text}");

    // The listener is of the new CA within seconds, and who trusts the old one finds the way to it.
    let new_alone = std::fs::read_to_string(world.folder.join("ca.pem")).unwrap();
    until("of the new CA", || async { reaches(&client(&new_alone, &world.url, None)).await }).await;
    assert!(reaches(&client(&world.ca_pem, &world.url, None)).await);
    for host in &followed {
        let fresh = client(&new_alone, &world.url, Some((&host.enrolled.certificate_pem, &host.key)));
        let host = Host { client: fresh, enrolled: host.enrolled.clone(), ..follow_key(host) };
        host.check_in(&host.full(3, 0), "0s").await.data(StatusCode::OK);
    }
    let finished_after = begun.elapsed();

    // An invite from before: its host knows the old CA's pin alone.
    let pinned = net::tls::client(&Trust::CaPin(unused.ca)).unwrap();
    let http = reqwest::Client::builder().tls_backend_preconfigured(pinned).no_proxy().build().unwrap();
    let key = KeyPair::generate().unwrap();
    let redeemer = Client { http, ..world.anyone() };
    let request = holdfast_protocol::enrol::InviteRedemption {
        secret: holdfast_protocol::secret::Secret::new(unused.secret.expose().to_owned()),
        csr_pem: csr(&key),
    };
    let later: Enrolled = redeemer.send(Method::POST, "/v1/enroll", &request).await.data(StatusCode::OK);
    assert_eq!(certificates(&later.ca_pem).iter().map(pin).collect::<Vec<_>>(), [new]);
    assert_eq!(world.invite("next").await.ca, new);

    // The one that was away is refused, asks with its old key, and an operator lets it in.
    let stranded = world.client(Some((&away.enrolled.certificate_pem, &away.key)));
    assert!(!reaches(&stranded).await);
    let asked = pending(&world, &away.key).await;
    let page: Page<EnrollmentRequestView> =
        world.admin().get("/v1/enrollment-requests").await.data(StatusCode::OK);
    assert_eq!(page.items[0].holder, Some(away.enrolled.host_id));
    assert_eq!(approve(&world, &asked, "away", None).await.code(), ErrorCode::PreconditionFailed);
    approve(&world, &asked, "away", Some(away.enrolled.host_id)).await.data(StatusCode::OK);
    let back = let_in(&world, away.key).await;
    assert_eq!((back.enrolled.host_id, back.enrolled.certificate_generation), (away.enrolled.host_id, 2));
    let proof = certificates(back.enrolled.ca_cross_pem.as_deref().unwrap());
    let [old_ca, new_ca] = [&world.ca_pem, &back.enrolled.ca_pem].map(|pem| certificates(pem).remove(0));
    assert_eq!(net::tls::succeeds(&old_ca, &new_ca, &proof[0]), Ok(()));
    back.check_in(&back.full(2, 0), "0s").await.data(StatusCode::OK);
    let status = rotated(&world, &["status"]).await;
    assert!(status.contains("no change is under way"), "{status}");
    let kinds = world.event_kinds().await;
    for kind in ["ca_change_begun", "ca_change_finished"] {
        assert_eq!(kinds.iter().filter(|one| *one == kind).count(), 1, "{kind}");
    }
    eprintln!(
        "{} hosts: enrolled after {enrolled_after:?}, all on the new CA after {followed_after:?}, finished after {finished_after:?}",
        fleet.len()
    );
}

/// The same host; its key is made anew from its text, since a key pair is not copied.
fn follow_key(host: &Host) -> Host {
    Host {
        enrolled: host.enrolled.clone(),
        key: KeyPair::from_pem(&host.key.serialize_pem()).unwrap(),
        client: host.client.clone(),
        started_at: host.started_at,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_is_taken_back_keeps_every_host() {
    let world = World::start().await;
    let (ahead, behind) = (world.enrol("ahead").await, world.enrol("behind").await);
    rotated(&world, &["begin"]).await;
    until("announced", || async { announced(&ahead).await.is_some() }).await;
    let ahead = follow(&world, &ahead).await;
    rotated(&world, &["abort"]).await;
    until("taken back", || async { announced(&behind).await.is_none() }).await;
    let status = rotated(&world, &["status"]).await;
    assert!(status.contains("taken back") && status.contains("waits for: ahead."), "{status}");
    assert!(!rotate(&world, &["finish"]).await.0);
    // The next renewal is of the old CA, which alone is named.
    let key = KeyPair::generate().unwrap();
    let request = RenewRequest { csr_pem: csr(&key) };
    let renewed: Enrolled = ahead.client.send(Method::POST, "/v1/renew", &request).await.data(StatusCode::OK);
    assert_eq!(renewed.ca_pem, world.ca_pem);
    let ahead = world.host(renewed, key);
    ahead.check_in(&ahead.full(3, 0), "0s").await.data(StatusCode::OK);
    rotated(&world, &["finish"]).await;
    behind.check_in(&behind.full(2, 0), "0s").await.data(StatusCode::OK);
    assert_eq!(std::fs::read_to_string(world.folder.join("ca.pem")).unwrap(), world.ca_pem);
    assert!(!world.folder.join("next-ca.key").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_goes_on_after_a_restart_of_the_hub() {
    let world = World::start().await;
    let host = world.enrol("box7").await;
    rotated(&world, &["begin"]).await;
    let ca_pem = world.ca_pem.clone();
    let (folder, temp) = world.stop().await;
    let world = World::started(folder, Options::default()).await;
    let client = client(&ca_pem, &world.url, Some((&host.enrolled.certificate_pem, &host.key)));
    let host = Host { client, ..host };
    assert!(announced(&host).await.is_some());
    follow(&world, &host).await;
    rotated(&world, &["finish"]).await;
    drop(temp);
}

/// Certificates are checked by the machine's clock, so the host is enrolled two days ago.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_was_away_longer_than_its_certificate_asks_and_is_let_in() {
    let world = World::start().await;
    world.clock.advance(-2 * 86_400);
    let host = world.enrol("box7").await;
    world.clock.advance(2 * 86_400);
    assert!(!reaches(&host.client).await, "its certificate is over");
    let asked = pending(&world, &host.key).await;
    assert_eq!(
        asked.1,
        net::tls::pin_of(PinKind::Spki, &certificates(&host.enrolled.certificate_pem)[0]).unwrap()
    );
    let id = host.enrolled.host_id;
    // Under its own name and id alone, and not as a new host.
    for (name, returns) in [("box8", Some(id)), ("box7", None), ("box8", None)] {
        assert_eq!(approve(&world, &asked, name, returns).await.code(), ErrorCode::PreconditionFailed);
    }
    approve(&world, &asked, "box7", Some(id)).await.data(StatusCode::OK);
    let back = let_in(&world, host.key).await;
    assert_eq!((back.enrolled.host_id, back.enrolled.certificate_generation), (id, 2));
    back.check_in(&back.full(1, 0), "0s").await.data(StatusCode::OK);
    assert_eq!(world.view("box7").await.state, HostState::Online);
    // Away once more, with the same key: the approval before gives nothing, and an operator decides again.
    world.clock.advance(2 * 86_400);
    let EnrollmentAnswer::Pending { request, fingerprint, .. } =
        submit(&world, &back.key).await.data(StatusCode::ACCEPTED)
    else {
        panic!("let in by an approval that was used");
    };
    approve(&world, &(request.to_string(), fingerprint), "box7", Some(id)).await.data(StatusCode::OK);
    let EnrollmentAnswer::Approved(again) = submit(&world, &back.key).await.data(StatusCode::OK) else {
        panic!("not let in");
    };
    assert_eq!(again.certificate_generation, 3);
    // A revoked host's key stays refused.
    let path = format!("/v1/hosts/{id}/revoke");
    let _: holdfast_protocol::operator::HostView =
        world.admin().send(Method::POST, &path, &()).await.data(StatusCode::OK);
    assert_eq!(submit(&world, &back.key).await.code(), ErrorCode::Refused);
}
