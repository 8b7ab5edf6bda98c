//! The first steps of an empty hub, over HTTPS.

use holdfast_protocol::operator::Role;
use rcgen::KeyPair;
use reqwest::StatusCode;

use crate::enrollment_requests::pending;
use crate::operators::operator;
use crate::pages::{open, set_up, signed_in};
use crate::pages_forms::press;
use crate::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_hub_leads_to_its_first_guest() {
    let world = World::start().await;
    operator(&world, "ada", Role::Operator).await;
    operator(&world, "vera", Role::Viewer).await;
    for name in ["ada", "vera"] {
        set_up(&world, name).await;
    }
    let viewer = signed_in(&world, "vera").await;
    assert!(!open(&viewer, "/").await.html.contains("First steps"), "who cannot take them is not shown them");
    let browser = signed_in(&world, "ada").await;
    let start = open(&browser, "/").await;
    for text in ["First steps", "Set up an authenticator", "href=\"/invites/new\""] {
        assert!(start.html.contains(text), "{text}: {}", start.html);
    }
    let form = open(&browser, "/invites/new").await;
    let bad = press(&browser, "/invites/new", &form, "", &[("host_name", "a b")]).await;
    assert!(bad.status.is_client_error() && bad.html.contains("value=\"a b\""), "{}", bad.html);
    assert!(bad.html.contains("role=\"alert\"") && !bad.html.contains("at line"), "{}", bad.html);
    let made = press(&browser, "/invites/new", &form, "", &[("host_name", "box7")]).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.html);
    assert!(
        made.html.contains("agentd enroll") && made.html.contains("<pre class=\"secret\""),
        "{}",
        made.html
    );

    // A host that asks by itself is let in by the key that a person read on it.
    let key = KeyPair::generate().unwrap();
    let (id, fingerprint) = pending(&world, &key).await;
    let path = format!("/enrollment-requests/{id}");
    let start = open(&browser, "/").await;
    assert!(
        start.html.contains(&format!("href=\"{path}\"")) && start.html.contains("compare its key"),
        "{}",
        start.html
    );
    let request = open(&browser, &path).await;
    assert!(!request.html.contains(&fingerprint.to_string()), "it is typed, not copied");
    let other = format!("spki/sha256:{}", "0".repeat(64));
    for (typed, code) in [("", StatusCode::BAD_REQUEST), (other.as_str(), StatusCode::PRECONDITION_FAILED)] {
        let wish = [("host_name", "pve1"), ("fingerprint", typed)];
        let refused = press(&browser, &path, &request, "approve", &wish).await;
        assert_eq!(refused.status, code, "{typed}: {}", refused.html);
        assert!(
            refused.html.contains("role=\"alert\"") && refused.html.contains(&format!("value=\"{typed}\"")),
            "{}",
            refused.html
        );
    }
    let wish = [("host_name", "pve1"), ("fingerprint", &fingerprint.to_string())];
    assert_eq!(press(&browser, &path, &request, "approve", &wish).await.goes_to(), "/");
    let start = open(&browser, "/").await;
    let path = "/hosts/pve1/guests/new";
    assert!(start.html.contains("was not heard of yet") && start.html.contains(path), "{}", start.html);

    let form = open(&browser, path).await;
    let wish = [
        ("name", "web-1"),
        ("customer", "acme"),
        ("golden", "2026.11.1"),
        ("network.address", "10.66.0.11/24"),
        ("reason", "the first one"),
    ];
    let review = press(&browser, path, &form, "review", &wish).await;
    assert!(review.html.contains("The host has never reported"), "{}", review.html);
    let done = press(&browser, path, &review, "apply", &[]).await;
    assert_eq!(done.goes_to(), "/hosts/pve1/desired/history/1");
    assert!(!open(&browser, "/").await.html.contains("First steps"), "they are done");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_refused_for_good() {
    let world = World::start().await;
    operator(&world, "ada", Role::Operator).await;
    set_up(&world, "ada").await;
    let browser = signed_in(&world, "ada").await;
    let (id, _) = pending(&world, &KeyPair::generate().unwrap()).await;
    let path = format!("/enrollment-requests/{id}");
    let request = open(&browser, &path).await;
    assert_eq!(press(&browser, &path, &request, "refuse", &[]).await.goes_to(), "/");
    let again = open(&browser, &path).await;
    assert!(
        again.html.contains("This request is refused") && !again.html.contains("<form class=\"edit\""),
        "{}",
        again.html
    );
    let missing = format!("/enrollment-requests/{}", crate::resources::uid(9));
    assert_eq!(open(&browser, &missing).await.status, StatusCode::NOT_FOUND);
}
