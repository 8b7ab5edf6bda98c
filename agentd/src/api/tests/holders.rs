//! Tests of two holders of one guest's tokens.

use crate::model::records::Access;
use crate::port::store::token_holder::Thawed;

use super::*;

fn web() -> holdfast_protocol::id::GuestUid {
    WEB.parse().unwrap()
}

impl World {
    async fn access(&self) -> Access {
        self.store.guest(web()).await.unwrap().unwrap().access
    }

    /// The first guest gets a number in Proxmox.
    fn has_number(&self, vmid: u32) {
        let raw = rusqlite::Connection::open(self._dir.path().join("agent.db")).unwrap();
        raw.execute("UPDATE guest SET vmid = ?2, place = 'made' WHERE uid = ?1", (WEB, vmid)).unwrap();
    }

    /// What the audit says of guests, by action.
    async fn said(&self, action: &str) -> Vec<String> {
        let lines = self.store.audit(u32::MAX).await.unwrap();
        lines.into_iter().filter(|line| line.action == action).map(|line| line.detail).collect()
    }

    /// The stranger learns nothing: it is the answer to no token at all.
    async fn is_turned_away(&self, from: [u8; 4], token: &str) {
        let (nothing, reported) =
            (self.get(from, "/v1/self", None).await, self.get(from, "/v1/self", Some(token)).await);
        assert_eq!((reported.status, reported.body), (StatusCode::UNAUTHORIZED, nothing.body));
    }

    async fn is_served(&self, from: [u8; 4], token: &str) {
        assert_eq!(self.get(from, "/v1/self", Some(token)).await.status, StatusCode::OK);
    }

    async fn is_frozen(&self, from: [u8; 4], token: &str) {
        assert_eq!(self.get(from, "/v1/self", Some(token)).await.code(), Some(ErrorCode::Frozen));
    }
}

#[tokio::test]
async fn a_token_of_an_earlier_generation_shows_a_second_holder() {
    let world = World::new().await;
    let first = world.token(0, WEB_AT).await;
    world.is_served(WEB_AT, &first).await;
    // The guest is made anew: another claim, another token.
    let claim = Secret::new("claim-of-the-guest-made-anew".to_owned());
    let until = world.clock.now() + jiff::SignedDuration::from_secs(600);
    world.store.mint_claim(web(), claim.hash(), until, world.clock.now()).await.unwrap();
    world.is_turned_away(WEB_AT, &first).await;
    assert_eq!(world.access().await, Access::Open, "nobody used the next one: there is one holder");
    let second: Bootstrap = world.claim(WEB_AT, &claim, None).await.data();
    assert_eq!(second.token_generation, 2);
    let second = second.token.expose();
    world.is_turned_away(WEB_AT, &first).await;
    assert_eq!(world.access().await, Access::Open);
    world.is_served(WEB_AT, second).await;

    world.is_turned_away(WEB_AT, &first).await;
    assert_eq!(world.access().await, Access::Frozen);
    world.is_frozen(WEB_AT, second).await;
    for _ in 0..3 {
        world.is_turned_away(WEB_AT, &first).await;
    }
    let said = world.said("token_twice").await;
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].contains("token 2 is used from 10.66.0.91, and an earlier one was shown from"),
        "{said:?}"
    );
    world.store.verify_audit().await.unwrap();
}

#[tokio::test]
async fn a_token_shown_from_elsewhere_while_its_guest_uses_it_freezes_both() {
    let world = World::new().await;
    let (web_token, db_token) = (world.token(0, WEB_AT).await, world.token(1, DB_AT).await);
    // Before the guest itself ever called there is at most one holder, whichever it is.
    world.is_turned_away(DB_AT, &web_token).await;
    assert_eq!(world.access().await, Access::Open);
    world.is_served(WEB_AT, &web_token).await;
    world.is_turned_away(DB_AT, &web_token).await;
    world.is_frozen(WEB_AT, &web_token).await;
    world.is_served(DB_AT, &db_token).await;
    // Every call of the frozen guest, not only the harmless one.
    for path in ["/v1/storage", "/v1/snapshots", "/v1/backups", "/v1/audit"] {
        assert_eq!(world.get(WEB_AT, path, Some(&web_token)).await.code(), Some(ErrorCode::Frozen), "{path}");
    }

    // A person looked, ended the copy, and says so.
    let now = world.clock.now();
    assert_eq!(world.store.thaw(web(), "the copy is gone".to_owned(), now).await.unwrap(), Thawed::Yes);
    assert_eq!(world.store.thaw(web(), "again".to_owned(), now).await.unwrap(), Thawed::WasOpen);
    let no_one = holdfast_protocol::id::GuestUid::new(Uuid::from_u128(99));
    assert_eq!(world.store.thaw(no_one, "x".to_owned(), now).await.unwrap(), Thawed::Unknown);
    world.is_served(WEB_AT, &web_token).await;
    assert_eq!(world.said("thawed").await, ["the copy is gone"]);
    // A copy that was not ended is found again.
    world.is_turned_away(DB_AT, &web_token).await;
    assert_eq!(world.access().await, Access::Frozen);
}

#[tokio::test]
async fn what_is_known_of_holders_outlives_the_agent() {
    let world = World::new().await;
    let token = world.token(0, WEB_AT).await;
    world.is_served(WEB_AT, &token).await;
    let holder = world.store.holder(holdfast_protocol::secret::TokenHash::of(token.as_bytes())).await;
    assert_eq!(holder.unwrap().unwrap().holding.used_from, Some(IpAddr::from(WEB_AT)));
    let path = world._dir.path().join("agent.db");
    let raw = rusqlite::Connection::open(path).unwrap();
    let kept: String =
        raw.query_row("SELECT token_used_from FROM guest WHERE uid = ?1", [WEB], |row| row.get(0)).unwrap();
    assert_eq!(kept, "10.66.0.91");
}

#[tokio::test]
async fn a_guest_owner_address_the_document_moved_is_no_second_holder() {
    let world = World::new().await;
    let token = world.token(0, WEB_AT).await;
    world.is_served(WEB_AT, &token).await;
    world.store.offer_desired(document(2, "10.66.0.93/24"), world.clock.now()).await.unwrap();
    world.is_turned_away(WEB_AT, &token).await;
    assert_eq!(world.access().await, Access::Open);
    world.is_served([10, 66, 0, 93], &token).await;
    assert_eq!(world.access().await, Access::Open);
    // Now the guest is at its new address; a caller from the old address is another holder.
    world.is_turned_away(WEB_AT, &token).await;
    assert_eq!(world.access().await, Access::Frozen);
}

/// Moved by hand on the node, or not moved yet to the document's address: Proxmox is asked before a guest is frozen.
#[tokio::test]
async fn a_guest_that_calls_from_where_proxmox_has_it_is_served_and_not_frozen() {
    let world = World::new().await;
    let token = world.token(0, WEB_AT).await;
    world.has_number(300);
    world.is_served(WEB_AT, &token).await;
    let by_hand = [10, 66, 0, 77];
    // Proxmox does not answer: no guest is frozen on incomplete evidence, and no caller is served.
    world.is_turned_away(by_hand, &token).await;
    assert_eq!(world.access().await, Access::Open);
    world.pass(60);
    *world.web_at.lock().unwrap() = Some(IpAddr::from(by_hand));
    world.is_served(by_hand, &token).await;
    assert_eq!(world.access().await, Access::Open);
    // The document's own address stays good: the guest is put back there.
    world.is_served(WEB_AT, &token).await;
    world.pass(60);
    // A document that moves it, which waits for a person: the guest keeps its address, and is served.
    *world.web_at.lock().unwrap() = Some(IpAddr::from(WEB_AT));
    world.store.offer_desired(document(2, "10.99.0.5/24"), world.clock.now()).await.unwrap();
    world.is_served(WEB_AT, &token).await;
    // A caller from a third address is a second holder.
    world.is_turned_away([10, 66, 0, 78], &token).await;
    assert_eq!(world.access().await, Access::Frozen);
    let said = world.said("token_twice").await;
    assert!(said[0].starts_with("Proxmox has the guest at 10.66.0.91; "), "{said:?}");
}
