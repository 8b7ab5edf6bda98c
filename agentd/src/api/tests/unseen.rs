//! Tests of a guest that the document does not name.

use holdfast_protocol::report::GuestReport;

use super::*;

/// As after a fallback to the last good document, which is older than the guest.
async fn unnamed(world: &World) {
    let mut document = document(2, "10.66.0.91/24").document().clone();
    document.guests.remove(0);
    world.store.offer_desired(Desired::check(document).unwrap(), world.clock.now()).await.unwrap();
}

fn seen(world: &World, address: &str) {
    let guest: GuestReport = serde_json::from_value(json!({
        "uid": WEB, "name": "web", "vmid": 100, "status": "unmanaged", "run": "running", "address": address
    }))
    .unwrap();
    world.view.send_replace(Arc::new(HostSnapshot { guests: vec![guest], ..HostSnapshot::default() }));
}

#[tokio::test]
async fn a_claim_is_not_refused_for_good_before_its_guest_was_seen() {
    let world = World::new().await;
    let (_, claim) = world.provision(0).await;
    unnamed(&world).await;
    let early = world.claim(WEB_AT, &claim, Some("proof")).await;
    assert_eq!((early.status, early.code()), (StatusCode::SERVICE_UNAVAILABLE, Some(ErrorCode::Unavailable)));
    seen(&world, "10.66.0.91/24");
    assert_eq!(world.claim(DB_AT, &claim, Some("proof")).await.code(), Some(ErrorCode::ClaimRefused));
    assert_eq!(world.claim(WEB_AT, &claim, Some("proof")).await.status, StatusCode::OK);
}

#[tokio::test]
async fn no_one_is_frozen_by_half_of_what_is_known() {
    let world = World::new().await;
    let token = world.token(0, WEB_AT).await;
    let used = world.get(WEB_AT, "/v1/self", Some(&token)).await;
    assert_eq!(used.status, StatusCode::OK);
    unnamed(&world).await;
    // It moved meanwhile; without its address this would appear as a second holder.
    const MOVED: [u8; 4] = [10, 66, 0, 95];
    let early = world.get(MOVED, "/v1/self", Some(&token)).await;
    assert_eq!(early.code(), Some(ErrorCode::Unavailable));
    seen(&world, "10.66.0.95/24");
    // Answered, though the document does not name it.
    assert_eq!(world.get(MOVED, "/v1/self", Some(&token)).await.code(), Some(ErrorCode::NotFound));
}
