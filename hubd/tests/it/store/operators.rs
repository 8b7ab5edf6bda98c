//! Operators, their tokens, and their idempotency keys.

use holdfast_protocol::access::{AccessScope, Grant};
use holdfast_protocol::id::InviteId;
use holdfast_protocol::operator::Role;
use holdfast_protocol::secret::Secret;
use hubd::store::{InviteRequestError, NewInvite, NewOperator, OperatorError, WriteError};
use uuid::Uuid;

use super::fixture::{CORRELATION, Fixture, at, by, claiming};

fn invite(number: u128) -> NewInvite {
    let secret = Secret::new(format!("secret {number}")).hash();
    NewInvite { id: InviteId::new(Uuid::from_u128(number)), host_name: "box7".parse().unwrap(), secret }
}

pub async fn a_repeat_with_the_same_key_is_the_same_answer(fixture: Fixture) {
    let store = &fixture.store;
    let made = store.create_invite(claiming(0, "k", 1), invite(1)).await.ok().unwrap();
    let again = store.create_invite(claiming(9, "k", 1), invite(2)).await.ok().unwrap();
    assert_eq!(again, made);
    let reused = store.create_invite(claiming(9, "k", 2), invite(2)).await;
    assert!(matches!(reused, Err(WriteError::KeyReused)));
    // A refusal changed nothing, so its key is free.
    fixture.box7().await;
    let taken = store.create_invite(claiming(9, "other", 1), invite(3)).await;
    assert!(matches!(taken, Err(WriteError::Refused(InviteRequestError::Taken { .. }))));
    let free = NewInvite { host_name: "box8".parse().unwrap(), ..invite(3) };
    assert!(store.create_invite(claiming(9, "other", 2), free).await.is_ok());
}

pub async fn a_refusal_in_a_shared_commit_undoes_itself_alone(fixture: Fixture) {
    let mut tries = tokio::task::JoinSet::new();
    for number in 0..200_u8 {
        let store = fixture.store.clone();
        tries.spawn(async move {
            // Every other key is one key with another request: refused, in the same commits as the others.
            let key = if number % 2 == 0 { format!("k-{number}") } else { "same".to_owned() };
            store.create_invite(claiming(0, &key, number), invite(u128::from(number) + 1)).await
        });
    }
    let answers = tries.join_all().await;
    let made = answers.iter().filter(|answer| answer.is_ok()).count();
    let reused = answers.iter().filter(|answer| matches!(answer, Err(WriteError::KeyReused))).count();
    assert_eq!((made, reused), (101, 99));
    assert_eq!(fixture.kinds().await, vec!["invite_created"; 101]);
}

fn operator(name: &str, role: Role, token: &str, ends: i64) -> NewOperator {
    NewOperator {
        name: name.parse().unwrap(),
        grant: Grant::new(role, AccessScope::Everything {}).unwrap(),
        token: Secret::new(token.to_owned()).hash(),
        expires_at: at(ends),
        at: at(0),
        correlation: CORRELATION,
    }
}

pub async fn tokens_end_and_the_last_admin_stays(fixture: Fixture) {
    let store = &fixture.store;
    store.add_operator(operator("ada", Role::Admin, "a", 100)).await.ok().unwrap();
    store.add_operator(operator("ada", Role::Admin, "b", 200)).await.ok().unwrap();
    let other = store.add_operator(operator("ada", Role::Viewer, "c", 200)).await;
    assert!(matches!(other, Err(WriteError::Refused(OperatorError::Taken { .. }))));
    let who = |token: &str, second| store.operator_by_token(Secret::new(token.to_owned()).hash(), at(second));
    assert_eq!(who("a", 99).await.unwrap().unwrap().grant.role(), Role::Admin);
    assert!(who("a", 100).await.unwrap().is_none() && who("c", 1).await.unwrap().is_none());
    assert_eq!(store.operators().await.unwrap()[0].expires_at, Some(at(200)));

    let last = store.let_operator_go(by(10), "ada".parse().unwrap()).await;
    assert!(matches!(last, Err(WriteError::Refused(OperatorError::LastAdmin { .. }))));
    let number = Uuid::from_u128(1);
    let bob = operator("bob", Role::Admin, "d", 300);
    assert_eq!(store.make_operator(by(10), bob, number).await.ok().unwrap().number, number);
    let gone = store.let_operator_go(by(11), "ada".parse().unwrap()).await.ok().unwrap();
    assert_eq!(gone.revoked_at, Some(at(11)));
    assert!(who("b", 12).await.unwrap().is_none());
    let unknown = store.revoke_operator("cyd".parse().unwrap(), at(12), CORRELATION).await;
    assert!(matches!(unknown, Err(WriteError::Refused(OperatorError::Unknown { .. }))));
    // The machine's own administrator may end the last one.
    store.revoke_operator("bob".parse().unwrap(), at(12), CORRELATION).await.ok().unwrap();
    assert!(store.operators().await.unwrap().iter().all(|record| record.revoked_at.is_some()));
}
