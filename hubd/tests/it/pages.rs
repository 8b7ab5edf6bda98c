//! Pages over HTTPS: forms, contents and walls.

use holdfast_protocol::access::AccessScope;
use holdfast_protocol::operator::Role;
use holdfast_protocol::sign_in::{SESSION_COOKIE, SignInLink};
use hubd::domain::sign_in::{SecondFactorRule, SignInRules};
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::operators::{operator, person};
use crate::world::{Client, MANY_CALLS, Options, World};

pub const PASSWORD: &str = "seven green bottles";

/// A page as a browser gets it.
pub struct PageAnswer {
    pub status: StatusCode,
    pub headers: reqwest::header::HeaderMap,
    pub html: String,
}

impl PageAnswer {
    pub fn goes_to(&self) -> &str {
        assert_eq!(self.status, StatusCode::SEE_OTHER, "{}", self.html);
        self.headers["location"].to_str().unwrap()
    }

    /// The token that each form of the page sends back.
    pub fn csrf(&self) -> String {
        let (_, rest) = self.html.split_once("name=\"csrf\" value=\"").unwrap();
        rest.split_once('"').unwrap().0.to_owned()
    }

    pub fn cookie(&self) -> String {
        let set = self.headers["set-cookie"].to_str().unwrap();
        assert!(set.ends_with("; Secure; HttpOnly; SameSite=Strict; Path=/"), "{set}");
        set.split(';').next().unwrap().to_owned()
    }
}

pub async fn open(client: &Client, path: &str) -> PageAnswer {
    shown(client.http.get(format!("{}{path}", client.url)).headers(client.headers.clone())).await
}

pub async fn send(client: &Client, path: &str, fields: &[(&str, &str)]) -> PageAnswer {
    let request = client.http.request(Method::POST, format!("{}{path}", client.url));
    shown(request.headers(client.headers.clone()).form(fields)).await
}

async fn shown(request: reqwest::RequestBuilder) -> PageAnswer {
    let answer = request.send().await.unwrap();
    let (status, headers) = (answer.status(), answer.headers().clone());
    PageAnswer { status, headers, html: answer.text().await.unwrap() }
}

/// A person with a password, set by the page that a sign-in link leads to.
pub async fn set_up(world: &World, name: &str) {
    let path = format!("/v1/operators/{name}/sign-in-link");
    let made: SignInLink =
        world.admin().send(Method::POST, &path, &json!({})).await.data(StatusCode::CREATED);
    let (page, token) = made.url.expose().split_once('#').unwrap();
    assert!(page.ends_with("/sign-in"));
    let form = open(&world.anyone(), "/sign-in").await;
    assert!(form.html.contains("action=\"/sign-in/link\""), "{} {}", form.status, form.html);
    let entered = send(&world.anyone(), "/sign-in/link", &[("token", token)]).await;
    assert_eq!(entered.goes_to(), "/");
    let browser = world.anyone().with("cookie", &entered.cookie());
    assert_eq!(open(&browser, "/hosts").await.goes_to(), "/account", "it may only set up a sign-in");
    let account = open(&browser, "/account").await;
    let forged = send(&browser, "/account/password", &[("csrf", "x"), ("password", PASSWORD)]).await;
    assert_eq!(forged.status, StatusCode::FORBIDDEN);
    let csrf = account.csrf();
    let short = send(&browser, "/account/password", &[("csrf", &csrf), ("password", "short")]).await;
    assert!(short.status.is_client_error() && short.html.contains("role=\"alert\""), "{}", short.html);
    let set = send(&browser, "/account/password", &[("csrf", &csrf), ("password", PASSWORD)]).await;
    assert!(set.html.contains("The password was set"), "{}", set.html);
    let offer = send(&browser, "/account/authenticator", &[("csrf", &csrf)]).await;
    assert!(offer.html.contains("otpauth://totp/") && offer.html.contains("<svg"), "{}", offer.html);
}

/// A hub whose admins sign in with a password alone, and where many pages are opened.
pub fn for_browsers() -> Options {
    let sign_in = SignInRules { second_factor: SecondFactorRule::Optional, ..SignInRules::default() };
    Options { operator_calls: MANY_CALLS, sign_in, ..Options::default() }
}

/// A person with a password, and their browser.
pub async fn browser_of(world: &World, name: &str) -> Client {
    let path = format!("/v1/operators/{name}/sign-in-link");
    let made: SignInLink =
        world.admin().send(Method::POST, &path, &json!({})).await.data(StatusCode::CREATED);
    let token = made.url.expose().split_once('#').unwrap().1.to_owned();
    let entered = send(&world.anyone(), "/sign-in/link", &[("token", &token)]).await;
    let setup = world.anyone().with("cookie", &entered.cookie());
    let csrf = open(&setup, "/account").await.csrf();
    send(&setup, "/account/password", &[("csrf", &csrf), ("password", PASSWORD)]).await;
    let entered = send(&world.anyone(), "/sign-in", &[("name", name), ("password", PASSWORD)]).await;
    assert_eq!(entered.goes_to(), "/");
    world.anyone().with("cookie", &entered.cookie())
}

pub async fn signed_in(world: &World, name: &str) -> Client {
    let wrong = send(&world.anyone(), "/sign-in", &[("name", name), ("password", "another password")]).await;
    assert_eq!(wrong.status, StatusCode::UNAUTHORIZED);
    assert!(!wrong.headers.contains_key("set-cookie") && wrong.html.contains("role=\"alert\""));
    let entered = send(&world.anyone(), "/sign-in", &[("name", name), ("password", PASSWORD)]).await;
    assert_eq!(entered.goes_to(), "/");
    assert!(entered.cookie().starts_with(SESSION_COOKIE));
    world.anyone().with("cookie", &entered.cookie())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_signs_in_by_forms_looks_around_and_signs_out() {
    let world = World::start().await;
    operator(&world, "eve", Role::Operator).await;
    world.enrol("box7").await;
    set_up(&world, "eve").await;
    let browser = signed_in(&world, "eve").await;
    for (path, text) in [
        ("/", "What needs a person"),
        ("/hosts", "box7"),
        ("/hosts?filter=@state-new", "box7"),
        ("/hosts/box7", "<h1>box7"),
        ("/guests", "No guest here"),
        ("/events", "host enrolled"),
        ("/account", "Your sign-in"),
    ] {
        let page = open(&browser, path).await;
        assert_eq!(page.status, StatusCode::OK, "{path}");
        assert!(page.html.contains(text) && page.html.contains("eve"), "{path}: {}", page.html);
        let policy = page.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(page.headers["cache-control"], "no-store", "{path}");
        let live = (path != "/account").then_some(("live-", "text/javascript"));
        for (asset, media) in [("style-", "text/css"), ("page-", "text/javascript")].into_iter().chain(live) {
            let (_, rest) = page.html.split_once(&format!("/assets/{asset}")).unwrap();
            let file = format!("/assets/{asset}{}", rest.split('"').next().unwrap());
            let file = open(&world.anyone(), &file).await;
            assert_eq!(file.status, StatusCode::OK);
            assert!(file.headers["content-type"].to_str().unwrap().starts_with(media));
        }
    }
    let bad = open(&browser, "/hosts?filter=%40nonsense").await;
    assert_eq!(bad.status, StatusCode::BAD_REQUEST);
    assert!(bad.html.contains("value=\"@nonsense\"") && bad.html.contains("role=\"alert\""), "{}", bad.html);
    assert_eq!(open(&browser, "/hosts/box9").await.status, StatusCode::NOT_FOUND);
    assert_eq!(open(&browser, "/assets/style-0.css").await.status, StatusCode::NOT_FOUND);

    // A session is known like a token: its pages are not the few tries of an address without one.
    for _ in 0..40 {
        assert_eq!(open(&browser, "/hosts").await.status, StatusCode::OK);
    }
    let csrf = open(&browser, "/").await.csrf();
    assert_eq!(send(&browser, "/sign-out", &[("csrf", "x")]).await.status, StatusCode::FORBIDDEN);
    assert_eq!(open(&browser, "/").await.status, StatusCode::OK, "a forged form ended nothing");
    assert_eq!(send(&browser, "/sign-out", &[("csrf", &csrf)]).await.goes_to(), "/sign-in");
    assert_eq!(open(&browser, "/").await.goes_to(), "/sign-in");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_shows_no_more_than_the_call_that_it_stands_for() {
    let world = World::start().await;
    let scope = AccessScope::Customer { customer: "acme".parse().unwrap() };
    person(&world, "ann", Role::Customer, scope).await;
    world.enrol("box7").await;
    for path in ["/", "/hosts", "/hosts/box7", "/guests", "/events", "/account"] {
        assert_eq!(open(&world.anyone(), path).await.goes_to(), "/sign-in", "{path}");
        // A token is for programs: no page takes it.
        assert_eq!(open(&world.admin(), path).await.goes_to(), "/sign-in", "{path}");
    }
    set_up(&world, "ann").await;
    let browser = signed_in(&world, "ann").await;
    for (path, status) in [
        ("/", StatusCode::OK),
        ("/guests", StatusCode::OK),
        ("/events", StatusCode::OK),
        // Whether there is such a host is not told.
        ("/hosts/box7", StatusCode::FORBIDDEN),
        ("/hosts/box9", StatusCode::FORBIDDEN),
    ] {
        let page = open(&browser, path).await;
        assert_eq!(page.status, status, "{path}: {}", page.html);
        // The form of the theme leads back to the address that was asked for.
        let shown = page.html.replace(&format!("value=\"{path}\""), "");
        assert!(!shown.contains("box7"), "{path}: {}", page.html);
        assert!(!page.html.contains("href=\"/hosts\""), "{path}: {}", page.html);
    }
}
