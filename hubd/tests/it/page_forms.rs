//! Forms of pages: good, bad, forged, and refused by role.

use holdfast_protocol::operator::Role;
use reqwest::StatusCode;

use crate::authorization::side;
use crate::operators::operator;
use crate::pages::{PageAnswer, browser_of, for_browsers, open, send};
use crate::world::{Client, World};

async fn world() -> World {
    World::with(for_browsers()).await
}

/// Opens a page, and sends one of its forms.
async fn fill(browser: &Client, page: &str, path: &str, fields: &[(&str, &str)]) -> PageAnswer {
    let csrf = open(browser, page).await.csrf();
    let fields: Vec<(&str, &str)> = fields.iter().copied().chain([("csrf", csrf.as_str())]).collect();
    send(browser, path, &fields).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alert_is_acknowledged_and_silenced_by_forms() {
    let world = world().await;
    let (side, _host) = side(&world, 1, "box7", "acme").await;
    operator(&world, "eve", Role::Operator).await;
    operator(&world, "ida", Role::Viewer).await;
    let eve = browser_of(&world, "eve").await;
    let page = format!("/alerts/{}", side.alert);
    let list = open(&eve, "/alerts?filter=all&host=box7").await;
    assert!(list.html.contains(&page) && list.html.contains("value=\"box7\""), "{}", list.html);
    let bad = open(&eve, "/alerts?severity=dreadful").await;
    assert_eq!(bad.status, StatusCode::BAD_REQUEST);
    assert!(bad.html.contains("role=\"alert\""), "{}", bad.html);

    let (known, back) = (format!("{page}/acknowledge"), format!("{page}/unacknowledge"));
    let much = fill(&eve, &page, &known, &[("hours", "100000")]).await;
    assert_eq!(much.status, StatusCode::BAD_REQUEST);
    assert_eq!(fill(&eve, &page, &known, &[("hours", "4")]).await.goes_to(), page);
    let shown = open(&eve, &page).await;
    assert!(shown.html.contains("eve knows of it since"), "{}", shown.html);
    assert_eq!(fill(&eve, &page, &back, &[]).await.goes_to(), page);
    assert!(!open(&eve, &page).await.html.contains("eve knows"));

    let silence = [("matchers", "host=box7, code=GUEST_BROKEN"), ("comment", "a new disk comes")];
    let bad = fill(&eve, &page, "/silences", &silence).await;
    assert_eq!(bad.status, StatusCode::BAD_REQUEST);
    assert!(bad.html.contains("value=\"a new disk comes\""), "what was typed stays: {}", bad.html);
    let nowhere = [("matchers", "host=box9"), ("hours", "4"), ("comment", "a new disk comes")];
    assert!(fill(&eve, &page, "/silences", &nowhere).await.html.contains("no host is called"));
    let good = [silence[0], silence[1], ("hours", "4")];
    assert_eq!(fill(&eve, &page, "/silences", &good).await.goes_to(), "/silences");
    let shown = open(&eve, "/silences").await;
    assert!(shown.html.contains("host=box7, code=GUEST_BROKEN"), "{}", shown.html);
    // Another one was there before.
    let ends: Vec<&str> = shown.html.split("action=\"/silences/").skip(1).collect();
    assert_eq!(ends.len(), 2, "{}", shown.html);
    for rest in ends {
        let end = format!("/silences/{}", rest.split('"').next().unwrap());
        assert_eq!(fill(&eve, "/silences", &end, &[]).await.goes_to(), "/silences");
    }
    assert!(open(&eve, "/silences").await.html.contains("Nothing is silenced"));

    let ida = browser_of(&world, "ida").await;
    assert!(!open(&ida, &page).await.html.contains("I know of it"));
    for (path, fields) in [(known.as_str(), &[][..]), ("/silences", &good[..])] {
        assert_eq!(fill(&ida, &page, path, fields).await.status, StatusCode::FORBIDDEN, "{path}");
    }
    assert!(open(&ida, "/silences").await.html.contains("Nothing is silenced"));
}

/// The secret that a page shows once.
fn secret(page: &PageAnswer) -> String {
    let (_, rest) =
        page.html.split_once("<pre class=\"command\"><code>").unwrap_or_else(|| panic!("{}", page.html));
    rest.split_once('<').unwrap().0.to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_shown_once_and_a_form_sent_twice_makes_one() {
    let world = world().await;
    operator(&world, "ada", Role::Admin).await;
    let ada = browser_of(&world, "ada").await;
    let token = [("name", "ci"), ("role", "viewer"), ("scope", "site=north"), ("days", "5")];
    let bad = fill(&ada, "/tokens", "/tokens", &[token[0], token[1], token[2], ("days", "many")]).await;
    assert_eq!(bad.status, StatusCode::BAD_REQUEST);
    assert!(bad.html.contains("value=\"site=north\"") && bad.html.contains("role=\"alert\""), "{}", bad.html);
    let fields = [token[0], token[1], token[2], token[3], ("key", "7c9f")];
    let made = fill(&ada, "/tokens", "/tokens", &fields).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.html);
    assert!(!made.html.contains("data-live"), "it would be read anew, and the secret be gone");
    let first = secret(&made);
    assert_eq!(secret(&fill(&ada, "/tokens", "/tokens", &fields).await), first);
    let list = open(&ada, "/tokens").await;
    assert!(list.html.contains("hosts site=north") && !list.html.contains(&first), "{}", list.html);
    assert_eq!(world.with_token(&first).get::<serde_json::Value>("/v1/hosts").await.status, StatusCode::OK);

    let next = secret(&fill(&ada, "/tokens", "/tokens/ci/rotate", &[]).await);
    assert_ne!(next, first);
    let asked = fill(&ada, "/tokens", "/tokens/ci/revoke", &[]).await;
    assert!(asked.status == StatusCode::OK && asked.html.contains("Revoke ci?"), "{}", asked.html);
    assert!(open(&ada, "/tokens").await.html.contains("in force"), "nothing was done without a yes");
    let done = fill(&ada, "/tokens", "/tokens/ci/revoke", &[("confirmed", "yes")]).await;
    assert_eq!(done.goes_to(), "/tokens");
    assert!(!open(&ada, "/tokens").await.html.contains("in force"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admin_adds_a_person_gives_a_link_and_lets_them_go() {
    let world = world().await;
    operator(&world, "ada", Role::Admin).await;
    operator(&world, "eve", Role::Operator).await;
    let (ada, eve) = (browser_of(&world, "ada").await, browser_of(&world, "eve").await);
    let person = [("name", "ann"), ("role", "customer"), ("days", "5"), ("key", "1")];
    let bad = fill(&ada, "/operators", "/operators", &person).await;
    assert!(bad.status.is_client_error() && bad.html.contains("value=\"ann\""), "{}", bad.html);
    let person = [person[0], person[1], person[2], ("scope", "customer=acme"), ("key", "2")];
    let made = fill(&ada, "/operators", "/operators", &person).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.html);
    let list = open(&ada, "/operators").await;
    assert!(list.html.contains("customer acme") && !list.html.contains(&secret(&made)), "{}", list.html);
    let link = secret(&fill(&ada, "/operators", "/operators/ann/sign-in-link", &[]).await);
    assert!(link.contains("/sign-in#"), "{link}");
    // An operator neither sees people nor makes any.
    assert_eq!(open(&eve, "/operators").await.status, StatusCode::FORBIDDEN);
    assert!(!open(&eve, "/settings").await.html.contains("href=\"/operators\""));
    assert_eq!(fill(&eve, "/tokens", "/operators", &person).await.status, StatusCode::FORBIDDEN);
    let done = fill(&ada, "/operators", "/operators/ann/revoke", &[("confirmed", "yes")]).await;
    assert_eq!(done.goes_to(), "/operators");
    assert!(open(&ada, "/operators").await.html.contains("let go"));
}

#[tokio::test(flavor = "multi_thread")]
async fn customers_are_added_and_events_are_found_by_words() {
    let world = world().await;
    let (side, _host) = side(&world, 1, "box7", "acme").await;
    operator(&world, "eve", Role::Operator).await;
    let eve = browser_of(&world, "eve").await;
    let bad = fill(&eve, "/customers", "/customers", &[("name", "acme"), ("mail", "nobody")]).await;
    assert!(bad.status.is_client_error() && bad.html.contains("value=\"nobody\""), "{}", bad.html);
    let good = [("name", "acme"), ("display_name", "Acme <Ltd>"), ("mail", "it@acme.example")];
    assert_eq!(fill(&eve, "/customers", "/customers", &good).await.goes_to(), "/customers/acme");
    let page = open(&eve, "/customers/acme").await;
    assert!(page.html.contains("Acme &#60;Ltd&#62;") && page.html.contains("web-acme"), "{}", page.html);
    let found = open(&eve, "/events?text=Host+ENROLLED&host=box7&host=").await;
    assert!(found.html.contains("host enrolled") && !found.html.contains("customer added"), "{}", found.html);
    assert!(open(&eve, "/events?text=no+such+thing").await.html.contains("No event of this kind"));
    assert!(open(&eve, "/events?host=box9").await.html.contains("No event of this kind"));

    // The job of the host is there with its line, and is withdrawn no more: its host has it.
    let job = format!("/hosts/box7/jobs/{}", side.job);
    assert!(open(&eve, "/hosts/box7/jobs").await.html.contains(&job));
    let page = open(&eve, &job).await;
    let line = format!("holdfast job cancel box7 {}", side.job);
    assert!(page.html.contains(&line) && !page.html.contains("Withdraw the job"), "{}", page.html);
}
