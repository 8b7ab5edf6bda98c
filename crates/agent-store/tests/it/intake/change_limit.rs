//! Tests of `release_brake`: scope, end and single use.

use agent_core::operation::{KeepProtection, Operation, Reconfigure, Stop, Target};
use agent_store::job_intake::Outcome;
use agent_store::journal::NewOperation;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::Desired;
use holdfast_protocol::generation::{ContentHash, Generation, Numbered};
use holdfast_protocol::id::{GuestUid, JobId, OperationId};
use holdfast_protocol::operation::OperationKind;
use uuid::Uuid;

use crate::intake::hand::job;
use crate::intake::store_fixture::{GUEST, StoreFixture};

fn order(document: Numbered, name: &str, kind: &str) -> String {
    let (generation, content) = (document.generation, document.content);
    format!(
        "\"target\":{{\"kind\":\"host\"}},\"verb\":\"release_brake\",\"args\":{{\"generation\":{generation},\
         \"document\":\"{content}\",\"changes\":[{{\"guest\":\"{GUEST}\",\"name\":\"{name}\",\"operation\":\"{kind}\"}}]}}"
    )
}

fn guest() -> GuestUid {
    GUEST.parse().unwrap()
}

/// Signed by both, as the policy requires.
async fn release(listener: &mut StoreFixture, document: Numbered, kind: &str) -> JobId {
    let (id, payload) = listener.payload(&order(document, "web-1", kind)).await;
    let outcome = listener.leave(id, &job(payload.as_bytes(), &[&listener.alice, &listener.bob])).await;
    assert!(matches!(outcome, Outcome::Taken), "{outcome:?}");
    let accepted = listener.due(id).await;
    assert_eq!(passes(listener, document).await, [], "it waits");
    listener.store.release_brake(accepted, listener.now).await.unwrap();
    id
}

async fn passes(listener: &StoreFixture, document: Numbered) -> Vec<(GuestUid, OperationKind)> {
    listener.store.released(document, listener.now).await.unwrap()
}

/// A document that this host holds.
async fn held(listener: &StoreFixture, generation: u64) -> Numbered {
    let text = format!(
        r#"{{"schema":"holdfast.desired/v1","generation":{generation},"poll_interval_s":30,"guests":[]}}"#
    );
    let desired = Desired::parse(text.as_bytes()).unwrap();
    let numbered = desired.numbered();
    listener.store.offer_desired(desired, listener.now).await.unwrap();
    numbered
}

async fn opened(
    listener: &StoreFixture,
    n: u128,
    generation: Generation,
    operation: Operation,
) -> OperationId {
    let id = OperationId::new(Uuid::from_u128(n));
    let new = NewOperation { id, operation, generation, reason: "a document".to_owned(), at: listener.now };
    listener.store.open_operation(new).await.unwrap();
    id
}

fn target() -> Target {
    Target { uid: guest(), name: "web-1".parse().unwrap(), vmid: 300.try_into().unwrap() }
}

fn resize() -> Operation {
    Operation::Reconfigure(Reconfigure {
        name: None,
        network: None,
        filter: None,
        resolver: None,
        target: target(),
        cores: None,
        memory: Some(512.try_into().unwrap()),
        swap: None,
        limits: None,
        protection: KeepProtection::AsItIs,
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_lets_its_guest_pass_under_its_document_while_it_lives() {
    let mut listener = StoreFixture::open().await;
    let document = held(&listener, 7).await;
    release(&mut listener, document, "stop").await;
    let stop = [(guest(), OperationKind::Stop)];
    assert_eq!(passes(&listener, document).await, stop);
    let later = Numbered { generation: Generation::new(8), ..document };
    assert_eq!(passes(&listener, later).await, [], "another number");
    let other = Numbered { content: ContentHash::of(b"another"), ..document };
    assert_eq!(passes(&listener, other).await, [], "another document under the same number");
    listener.pass(3_599);
    assert_eq!(passes(&listener, document).await, stop, "its last second");
    listener.pass(1);
    assert_eq!(passes(&listener, document).await, [], "it has ended");
}

/// A stolen hub cannot spend it on another operation, and not twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_is_used_up_by_its_own_operation_and_by_no_other() {
    let mut listener = StoreFixture::open().await;
    let document = held(&listener, 7).await;
    let id = release(&mut listener, document, "stop").await;
    let stop = [(guest(), OperationKind::Stop)];
    let other = opened(&listener, 1, document.generation, resize()).await;
    assert_eq!(passes(&listener, document).await, stop, "another operation uses nothing up");
    end_by_hand(&listener, other);
    opened(&listener, 2, document.generation, Operation::Stop(Stop(target()))).await;
    assert_eq!(passes(&listener, document).await, [], "it is used up while its operation is under way");
    let audit = listener.audit();
    let reported = audit
        .iter()
        .filter(|(action, detail)| action == "brake_release_used" && detail.contains(&id.to_string()));
    assert_eq!(reported.count(), 1, "{audit:?}");
    // Changes that were let pass are distinguished from changes within the limit.
    let records = listener.store.records(document.generation, listener.now).await.unwrap();
    let by: Vec<_> = records.touched.iter().map(|touched| touched.by).collect();
    assert_eq!(
        by,
        [agent_core::model::records::PassedBy::Brake, agent_core::model::records::PassedBy::Release]
    );
}

/// As its steps would, in the end.
fn end_by_hand(listener: &StoreFixture, id: OperationId) {
    let raw = rusqlite::Connection::open(listener.folder.path().join("agent.db")).unwrap();
    let sql = "UPDATE operation SET ended_at = opened_at, outcome = 'done' WHERE id = ?1";
    assert_eq!(raw.execute(sql, [id.to_string()]).unwrap(), 1);
    raw.execute("UPDATE operation_hold SET ended = 1", []).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_names_its_document_and_each_guest_by_its_own_name() {
    let mut listener = StoreFixture::open().await;
    let document = held(&listener, 7).await;
    let right = order(document, "web-1", "stop");
    let content = format!("\"document\":\"{}\",", document.content);
    for (name, order, code) in [
        ("another guest's name", order(document, "web-2", "stop"), ErrorCode::TargetChanged),
        (
            "no guest of ours",
            right.replacen(GUEST, &GUEST.replace("7a03", "7a09"), 1),
            ErrorCode::TargetChanged,
        ),
        ("no document", right.replacen(&content, "", 1), ErrorCode::JobUnbound),
    ] {
        let (id, payload) = listener.payload(&order).await;
        let blob = job(payload.as_bytes(), &[&listener.alice, &listener.bob]);
        listener.refuses_and_takes(name, id, &blob, code).await;
    }
}
