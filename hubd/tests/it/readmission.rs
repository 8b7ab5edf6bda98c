//! Readmission of revoked hosts by approved enrollment requests.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::enrol::{EnrollmentAnswer, EnrollmentRequest, InviteRedemption};
use holdfast_protocol::id::HostId;
use holdfast_protocol::operator::{
    AuditEvidence, DesiredVersion, EnrollmentApproval, EnrollmentRequestState, EnrollmentRequestView,
    EpochEnd, HostDetail, HostState, HostView, Page,
};
use holdfast_protocol::pin::Pin;
use holdfast_protocol::secret::Secret;
use rcgen::KeyPair;
use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::jobs::{BLOB, leave, trust};
use crate::world::{Answered, Host, World, csr, document};

pub async fn submit(world: &World, key: &KeyPair) -> Answered<EnrollmentAnswer> {
    let request =
        EnrollmentRequest { csr_pem: csr(key), claimed_name: "box7".parse().unwrap(), sealing: None };
    world.anyone().send(Method::POST, "/v1/enrollment-requests", &request).await
}

pub async fn pending(world: &World, key: &KeyPair) -> (String, Pin) {
    match submit(world, key).await.data(StatusCode::ACCEPTED) {
        EnrollmentAnswer::Pending { request, fingerprint, .. } => (request.to_string(), fingerprint),
        EnrollmentAnswer::Approved(_) => panic!("nobody approved"),
    }
}

pub async fn approve(
    world: &World,
    (request, fingerprint): &(String, Pin),
    name: &str,
    returns: Option<HostId>,
) -> Answered<EnrollmentRequestView> {
    let approval =
        EnrollmentApproval { host_name: name.parse().unwrap(), fingerprint: *fingerprint, returns };
    world.admin().send(Method::POST, &format!("/v1/enrollment-requests/{request}/approve"), &approval).await
}

pub async fn let_in(world: &World, key: KeyPair) -> Host {
    let EnrollmentAnswer::Approved(enrolled) = submit(world, &key).await.data(StatusCode::OK) else {
        panic!("not let in");
    };
    world.host(*enrolled, key)
}

async fn revoke(world: &World, host: HostId) {
    let path = format!("/v1/hosts/{host}/revoke");
    let view: HostView = world.admin().send(Method::POST, &path, &()).await.data(StatusCode::OK);
    assert_eq!(view.state, HostState::Revoked);
}

async fn detail(world: &World, host: HostId) -> HostDetail {
    world.admin().get(&format!("/v1/hosts/{host}")).await.data(StatusCode::OK)
}

/// Every row of the hub's audit of a host, as it is shown.
async fn events_of(world: &World, host: HostId) -> Vec<Value> {
    let page: Page<Value> =
        world.admin().get(&format!("/v1/events?host={host}&limit=100")).await.data(StatusCode::OK);
    page.items
}

/// A host with a report, a document, and an audit that was heard up to a line.
async fn with_history(world: &World) -> Host {
    let host = world.enrol("box7").await;
    let put = world.admin().put_desired::<DesiredVersion>("box7", Some("\"0\""), document(1)).await;
    put.data(StatusCode::OK);
    host.check_in(&host.full(1, 1), "0s").await.data(StatusCode::OK);
    host.check_in(&host.changed(2, 1, trust(40)), "0s").await.data(StatusCode::OK);
    host
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_host_comes_back_as_who_it_was_and_its_old_certificate_does_not() {
    let world = World::start().await;
    let old = with_history(&world).await;
    let id = old.enrolled.host_id;
    // A job for the host before its revocation; the readmitted host does not get it.
    leave(&world.admin(), 1, BLOB).await.data(StatusCode::CREATED);
    revoke(&world, id).await;
    assert_eq!(old.check_in(&old.full(3, 1), "0s").await.code(), ErrorCode::Revoked);

    let key = KeyPair::generate().unwrap();
    let asked = pending(&world, &key).await;
    let page: Page<EnrollmentRequestView> =
        world.admin().get("/v1/enrollment-requests").await.data(StatusCode::OK);
    let shown: Vec<HostId> = page.items[0].revoked.iter().map(|host| host.id).collect();
    assert_eq!(shown, [id], "the operator sees whose name it is");
    for _ in 0..2 {
        let view = approve(&world, &asked, "box7", Some(id)).await.data(StatusCode::OK);
        assert_eq!(
            (view.state, view.host, view.revoked.len()),
            (EnrollmentRequestState::Approved, Some(id), 0)
        );
    }
    let new = let_in(&world, key).await;
    assert_eq!((new.enrolled.host_id, new.enrolled.certificate_generation), (id, 2));

    // Its audit begins anew at line 1, and that neither collides with the 40 lines of before nor hides them.
    let answer = new.check_in(&new.full(1, 0), "0s").await.data(StatusCode::OK);
    assert!(answer.desired.is_some(), "its document is kept");
    assert_eq!((answer.audit_seen, answer.jobs.len()), (0, 0));
    let answer = new.check_in(&new.changed(2, 1, trust(1)), "0s").await.data(StatusCode::OK);
    assert_eq!(answer.audit_seen, 1);
    let now = detail(&world, id).await;
    assert_eq!(now.host.state, HostState::Online);
    let epochs: Vec<_> =
        now.epochs.iter().map(|epoch| (epoch.before_generation, epoch.audit_seen, epoch.end)).collect();
    assert_eq!(epochs, [(2, 40, EpochEnd::Readmitted)]);
    let kinds: Vec<String> =
        events_of(&world, id).await.iter().map(|event| event["kind"].as_str().unwrap().to_owned()).collect();
    for kind in ["host_enrolled", "host_revoked", "host_readmitted"] {
        assert!(kinds.iter().any(|seen| seen == kind), "{kind} in {kinds:?}");
    }

    // What was revoked stays so, and does not freeze the host.
    assert_eq!(old.check_in(&old.full(4, 1), "0s").await.code(), ErrorCode::Revoked);
    assert_eq!(old.read_escrow().await.code(), ErrorCode::Revoked);
    new.check_in(&new.full(3, 1), "0s").await.data(StatusCode::OK);
    assert_eq!(detail(&world, id).await.host.state, HostState::Online);

    // A second time is another epoch.
    revoke(&world, id).await;
    let key = KeyPair::generate().unwrap();
    let asked = pending(&world, &key).await;
    approve(&world, &asked, "box7", Some(id)).await.data(StatusCode::OK);
    let third = let_in(&world, key).await;
    assert_eq!(third.enrolled.certificate_generation, 3);
    let epochs: Vec<_> = detail(&world, id).await.epochs.iter().map(|epoch| epoch.audit_seen).collect();
    assert_eq!(epochs, [1, 40]);
    assert_eq!(submit(&world, &new.key).await.code(), ErrorCode::Refused, "its earlier request is over");
    assert_eq!(new.check_in(&new.full(4, 1), "0s").await.code(), ErrorCode::Revoked);
}

async fn evidence(world: &World, id: HostId) -> AuditEvidence {
    world.admin().get(&format!("/v1/hosts/{id}/audit-heads")).await.data(StatusCode::OK)
}

/// A host with records of its own anew is as suspicious as a thief that removed them. An operator ends that.
#[tokio::test(flavor = "multi_thread")]
async fn evidence_of_an_audit_that_began_anew_ends_with_the_readmission() {
    let world = World::start().await;
    let old = with_history(&world).await;
    let id = old.enrolled.host_id;
    assert_eq!(evidence(&world, id).await.breaks, []);

    // Records that were set aside have no audit: that is no evidence, and hides none.
    old.check_in(&old.full(3, 1), "0s").await.data(StatusCode::OK);
    assert_eq!(evidence(&world, id).await.breaks, []);
    old.check_in(&old.changed(4, 1, trust(2)), "0s").await.data(StatusCode::OK);
    let broken = evidence(&world, id).await.breaks;
    assert_eq!(broken.iter().map(|one| (one.kept.number, one.found.number)).collect::<Vec<_>>(), [(40, 2)]);

    revoke(&world, id).await;
    let key = KeyPair::generate().unwrap();
    let asked = pending(&world, &key).await;
    approve(&world, &asked, "box7", Some(id)).await.data(StatusCode::OK);
    let new = let_in(&world, key).await;
    new.check_in(&new.full(1, 0), "0s").await.data(StatusCode::OK);
    new.check_in(&new.changed(2, 1, trust(3)), "0s").await.data(StatusCode::OK);
    let now = evidence(&world, id).await;
    assert_eq!((now.heads.len(), now.breaks), (1, Vec::new()), "another epoch, with an audit of its own");
    // In the epoch that is new an audit cannot go back either.
    new.check_in(&new.changed(3, 1, trust(1)), "0s").await.data(StatusCode::OK);
    assert_eq!(evidence(&world, id).await.breaks.len(), 1);
    let kinds = events_of(&world, id).await;
    let broken = kinds.iter().filter(|event| event["kind"] == "audit_chain_broken");
    assert_eq!(broken.count(), 2, "each is an event, which stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_with_the_name_of_a_revoked_host_gets_nothing_of_it_without_approval() {
    let world = World::start().await;
    let old = with_history(&world).await;
    let id = old.enrolled.host_id;
    // While the host is not revoked, no applicant comes back as it.
    let key = KeyPair::generate().unwrap();
    let asked = pending(&world, &key).await;
    let page: Page<EnrollmentRequestView> =
        world.admin().get("/v1/enrollment-requests").await.data(StatusCode::OK);
    assert!(page.items[0].revoked.is_empty());
    let refused = approve(&world, &asked, "box7", Some(id)).await;
    assert_eq!(refused.code(), ErrorCode::PreconditionFailed);
    revoke(&world, id).await;

    // A request alone admits no host, and neither does the revoked host's own key.
    assert_eq!(pending(&world, &key).await.0, asked.0);
    assert_eq!(submit(&world, &old.key).await.code(), ErrorCode::Csr);
    let invite = Secret::new("0".repeat(43));
    let guess = InviteRedemption { secret: invite, csr_pem: csr(&key) };
    assert!(world.anyone().send::<Value>(Method::POST, "/v1/enroll", &guess).await.status.is_client_error());
    assert_eq!(detail(&world, id).await.host.state, HostState::Revoked);

    // Another name, another host and another key are refused, and change nothing.
    let other = world.enrol("box8").await.enrolled.host_id;
    let wrong = |name: &'static str, returns| {
        let (world, asked) = (&world, &asked);
        async move { approve(world, asked, name, returns).await.code() }
    };
    assert_eq!(wrong("box9", Some(id)).await, ErrorCode::PreconditionFailed);
    assert_eq!(wrong("box8", Some(other)).await, ErrorCode::PreconditionFailed);
    assert_eq!(wrong("box7", Some(HostId::new(uuid::Uuid::nil()))).await, ErrorCode::NotFound);
    assert_eq!(detail(&world, id).await.host.state, HostState::Revoked);

    // Approved without naming the revoked host, it is a new host, with nothing of the other's.
    let view = approve(&world, &asked, "box7", None).await.data(StatusCode::OK);
    let new = let_in(&world, key).await;
    assert_ne!(new.enrolled.host_id, id);
    assert_eq!(view.host, Some(new.enrolled.host_id));
    let answer = new.check_in(&new.full(1, 0), "0s").await.data(StatusCode::OK);
    assert!(answer.desired.is_none());
    assert_eq!(answer.audit_seen, 0);
    assert!(detail(&world, new.enrolled.host_id).await.epochs.is_empty());
    assert_eq!(detail(&world, id).await.host.state, HostState::Revoked);

    // The name is another's now, so the first does not come back.
    let asked = pending(&world, &KeyPair::generate().unwrap()).await;
    assert_eq!(approve(&world, &asked, "box7", Some(id)).await.code(), ErrorCode::NameTaken);
}
