//! `release_brake`: what a signed release lets pass, under which document, until when, and that it is used up by that alone.

use agent_core::operation::{KeepProtection, Operation, Reconfigure, Target};
use agent_store::job_intake::Outcome;
use agent_store::journal::NewOperation;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::Desired;
use holdfast_protocol::generation::{ContentHash, Generation, Numbered};
use holdfast_protocol::id::{GuestUid, JobId, OperationId};
use holdfast_protocol::operation::OperationKind;
use uuid::Uuid;

use crate::intake::door::{Door, GUEST};
use crate::intake::hand::job;

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

/// Signed by both, as the policy asks.
async fn release(door: &mut Door, document: Numbered, kind: &str) -> JobId {
    let (id, payload) = door.payload(&order(document, "web-1", kind)).await;
    let outcome = door.leave(id, &job(payload.as_bytes(), &[&door.alice, &door.bob])).await;
    assert!(matches!(outcome, Outcome::Taken), "{outcome:?}");
    let accepted = door.due(id).await;
    assert_eq!(passes(door, document).await, [], "it waits");
    door.store.release_brake(accepted, door.now).await.unwrap();
    id
}

async fn passes(door: &Door, document: Numbered) -> Vec<(GuestUid, OperationKind)> {
    door.store.released(document, door.now).await.unwrap()
}

/// A document that this host holds.
async fn held(door: &Door, generation: u64) -> Numbered {
    let text = format!(
        r#"{{"schema":"holdfast.desired/v1","generation":{generation},"poll_interval_s":30,"guests":[]}}"#
    );
    let desired = Desired::parse(text.as_bytes()).unwrap();
    let numbered = desired.numbered();
    door.store.offer_desired(desired, door.now).await.unwrap();
    numbered
}

async fn opened(door: &Door, n: u128, generation: Generation, operation: Operation) -> OperationId {
    let id = OperationId::new(Uuid::from_u128(n));
    let new = NewOperation { id, operation, generation, reason: "a document".to_owned(), at: door.now };
    door.store.open_operation(new).await.unwrap();
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
        protection: KeepProtection::AsItIs,
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_lets_its_guest_pass_under_its_document_while_it_lives() {
    let mut door = Door::open().await;
    let document = held(&door, 7).await;
    release(&mut door, document, "stop").await;
    let stop = [(guest(), OperationKind::Stop)];
    assert_eq!(passes(&door, document).await, stop);
    let later = Numbered { generation: Generation::new(8), ..document };
    assert_eq!(passes(&door, later).await, [], "another number");
    let other = Numbered { content: ContentHash::of(b"another"), ..document };
    assert_eq!(passes(&door, other).await, [], "another document under the same number");
    door.pass(3_599);
    assert_eq!(passes(&door, document).await, stop, "its last second");
    door.pass(1);
    assert_eq!(passes(&door, document).await, [], "it has ended");
}

/// A stolen hub cannot spend it on another operation, and not twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_is_used_up_by_its_own_operation_and_by_no_other() {
    let mut door = Door::open().await;
    let document = held(&door, 7).await;
    let id = release(&mut door, document, "stop").await;
    let stop = [(guest(), OperationKind::Stop)];
    let other = opened(&door, 1, document.generation, resize()).await;
    assert_eq!(passes(&door, document).await, stop, "another operation uses nothing up");
    end_by_hand(&door, other);
    opened(&door, 2, document.generation, Operation::Stop(target())).await;
    assert_eq!(passes(&door, document).await, [], "it is used up while its operation is under way");
    let audit = door.audit();
    let told = audit
        .iter()
        .filter(|(action, detail)| action == "brake_release_used" && detail.contains(&id.to_string()));
    assert_eq!(told.count(), 1, "{audit:?}");
    // What was let pass is told apart from what was within the limit.
    let records = door.store.records(document.generation, door.now).await.unwrap();
    let by: Vec<_> = records.touched.iter().map(|touched| touched.by).collect();
    assert_eq!(
        by,
        [agent_core::model::record::PassedBy::Brake, agent_core::model::record::PassedBy::Release]
    );
}

/// As its steps would, in the end.
fn end_by_hand(door: &Door, id: OperationId) {
    let raw = rusqlite::Connection::open(door.folder.path().join("agent.db")).unwrap();
    let sql = "UPDATE operation SET ended_at = opened_at, outcome = 'done' WHERE id = ?1";
    assert_eq!(raw.execute(sql, [id.to_string()]).unwrap(), 1);
    raw.execute("UPDATE operation_hold SET ended = 1", []).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_names_its_document_and_each_guest_by_its_own_name() {
    let mut door = Door::open().await;
    let document = held(&door, 7).await;
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
        let (id, payload) = door.payload(&order).await;
        let blob = job(payload.as_bytes(), &[&door.alice, &door.bob]);
        door.refuses_and_takes(name, id, &blob, code).await;
    }
}
