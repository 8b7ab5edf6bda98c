//! Tests of claims for a container that takes a guest's place.

use holdfast_protocol::generation::Generation;

use super::*;
use crate::journal::NewOperation;
use crate::tests::{at, open, operation_id, provision, uid};
use agent_core::model::token_reuse::PresentedToken;

/// A guest with its first token.
async fn guest(folder: &std::path::Path) -> Store {
    let store = open(folder).await;
    let new = NewOperation {
        id: operation_id(1),
        operation: provision(1),
        generation: Generation::new(1),
        reason: "test".to_owned(),
        at: at(1),
    };
    store.open_operation(new).await.unwrap();
    store.mint_claim(uid(1), TokenHash::of(b"claim"), at(600), at(0)).await.unwrap();
    redeem(&store, b"claim", b"own").await;
    store
}

async fn redeem(store: &Store, claim: &[u8], token: &[u8]) {
    let attempt = Redemption {
        claim: TokenHash::of(claim),
        redeemer: Some(TokenHash::of(b"me")),
        token: TokenHash::of(token),
    };
    assert!(matches!(store.redeem_claim(attempt, at(2)).await.unwrap(), Redeemed::Granted { .. }));
}

async fn shown(store: &Store, token: &[u8]) -> Option<PresentedToken> {
    store.holder(TokenHash::of(token)).await.unwrap().map(|holder| holder.shown)
}

#[tokio::test]
async fn a_guest_keeps_its_token_until_its_successor_has_one() {
    let folder = tempfile::tempdir().unwrap();
    let store = guest(folder.path()).await;
    assert_eq!(store.present_token(uid(1)).await.unwrap(), Some(1));
    store.mint_successor_claim(uid(1), TokenHash::of(b"next"), at(900), at(3)).await.unwrap();
    assert!(store.claim_lives(uid(1), TokenHash::of(b"next"), at(800)).await.unwrap());
    assert_eq!(shown(&store, b"own").await, Some(PresentedToken::Current));
    // Taken back before it was redeemed: nothing is left of it.
    assert_eq!(store.give_token_back(uid(1), Some(1), at(4)).await.unwrap(), TokenBack::Is);
    assert!(!store.claim_lives(uid(1), TokenHash::of(b"next"), at(800)).await.unwrap());
    assert_eq!(shown(&store, b"own").await, Some(PresentedToken::Current));
    // Redeemed: the one ends as the other begins.
    store.mint_successor_claim(uid(1), TokenHash::of(b"next"), at(900), at(5)).await.unwrap();
    redeem(&store, b"next", b"new").await;
    assert_eq!(shown(&store, b"own").await, Some(PresentedToken::Former));
    assert_eq!(shown(&store, b"new").await, Some(PresentedToken::Current));
    store.verify_audit().await.unwrap();
}

/// However often the new container repeated a lost answer, and however often the undo is done.
#[tokio::test]
async fn a_token_is_given_back_once_and_its_count_never_falls() {
    let folder = tempfile::tempdir().unwrap();
    let store = guest(folder.path()).await;
    store.mint_successor_claim(uid(1), TokenHash::of(b"next"), at(900), at(3)).await.unwrap();
    for token in [b"new1", b"new2"] {
        redeem(&store, b"next", token).await;
    }
    for _ in 0..2 {
        assert_eq!(store.give_token_back(uid(1), Some(1), at(4)).await.unwrap(), TokenBack::Is);
        assert_eq!(shown(&store, b"own").await, Some(PresentedToken::Current));
        assert_eq!(shown(&store, b"new2").await, Some(PresentedToken::Former));
        assert_eq!(store.present_token(uid(1)).await.unwrap(), Some(3));
    }
    store.verify_audit().await.unwrap();
}

#[tokio::test]
async fn a_token_that_is_not_remembered_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let store = guest(folder.path()).await;
    store.mint_successor_claim(uid(1), TokenHash::of(b"next"), at(900), at(3)).await.unwrap();
    for n in 0..12_u8 {
        redeem(&store, b"next", &[n]).await;
    }
    assert_eq!(store.give_token_back(uid(1), Some(1), at(4)).await.unwrap(), TokenBack::Gone);
}

#[tokio::test]
async fn a_guest_without_a_token_has_none_to_get_back() {
    let folder = tempfile::tempdir().unwrap();
    let store = guest(folder.path()).await;
    store.mint_claim(uid(1), TokenHash::of(b"second"), at(600), at(3)).await.unwrap();
    assert_eq!(store.present_token(uid(1)).await.unwrap(), None);
    store.mint_successor_claim(uid(1), TokenHash::of(b"next"), at(900), at(3)).await.unwrap();
    assert_eq!(store.give_token_back(uid(1), None, at(4)).await.unwrap(), TokenBack::Is);
    assert_eq!(shown(&store, b"own").await, Some(PresentedToken::Former));
}
