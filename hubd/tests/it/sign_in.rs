//! Sign-in over HTTPS: cookies, walls, rates, links.

use std::net::{IpAddr, Ipv4Addr};

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::operator::{Page, Role, WhoAmI};
use holdfast_protocol::sign_in::{
    CSRF_HEADER, RecoveryCodes, SESSION_COOKIE, SessionKind, SessionOpened, SessionView, SignInLink,
    SignInState, TotpOffer,
};
use hubd::clock::Clock as _;
use hubd::domain::sign_in::totp::{SECRET_BYTES, Step, TotpSecret};
use hubd::domain::sign_in::{SecondFactorRule, SignInRules};
use reqwest::header::HeaderMap;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::operators::operator;
use crate::world::{Answered, Client, Options, World};

const PASSWORD: &str = "seven green bottles";

/// A browser: its cookie, and the value for the header of changes.
struct Browser {
    client: Client,
    csrf: String,
}

fn cookie(headers: &HeaderMap) -> String {
    headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned()
}

impl Browser {
    fn of(world: &World, answer: Answered<SessionOpened>) -> Self {
        let cookie = cookie(&answer.headers);
        let csrf = answer.data(StatusCode::OK).csrf.expose().to_owned();
        Self { client: world.anyone().with("cookie", &cookie), csrf }
    }

    fn changing(&self) -> Client {
        self.client.with(CSRF_HEADER, &self.csrf)
    }

    async fn post<T: serde::de::DeserializeOwned>(&self, path: &str, body: Value) -> Answered<T> {
        self.changing().send(Method::POST, path, &body).await
    }
}

async fn link_of(world: &World, name: &str) -> String {
    let path = format!("/v1/operators/{name}/sign-in-link");
    let made: SignInLink =
        world.admin().send(Method::POST, &path, &json!({})).await.data(StatusCode::CREATED);
    made.url.expose().split_once('#').unwrap().1.to_owned()
}

async fn redeem(world: &World, token: &str) -> Answered<SessionOpened> {
    world.anyone().send(Method::POST, "/v1/sign-in-link", &json!({ "token": token })).await
}

async fn login(client: &Client, name: &str, password: &str, code: Option<&str>) -> Answered<SessionOpened> {
    let mut body = json!({ "name": name, "password": password });
    if let Some(code) = code {
        body["code"] = json!(code);
    }
    client.send(Method::POST, "/v1/login", &body).await
}

/// An operator with a password, set by a link.
async fn with_password(world: &World, name: &str, role: Role) -> Browser {
    operator(world, name, role).await;
    let browser = Browser::of(world, redeem(world, &link_of(world, name).await).await);
    browser.post::<SignInState>("/v1/password", json!({ "password": PASSWORD })).await.data(StatusCode::OK);
    browser
}

/// What an authenticator shows now.
struct Phone(TotpSecret);

impl Phone {
    fn scan(offer: &TotpOffer) -> Self {
        let text = offer.secret.expose();
        assert!(offer.uri.expose().contains(text) && offer.uri.expose().starts_with("otpauth://totp/"));
        let (mut bytes, mut held, mut bits) = (Vec::new(), 0_u32, 0);
        for letter in text.bytes() {
            let five = if letter.is_ascii_digit() { letter - b'2' + 26 } else { letter - b'A' };
            held = held << 5 | u32::from(five);
            bits += 5;
            if bits >= 8 {
                bits -= 8;
                bytes.push((held >> bits) as u8);
            }
        }
        Self(TotpSecret::new(<[u8; SECRET_BYTES]>::try_from(bytes).unwrap()))
    }

    fn shows(&self, world: &World) -> String {
        self.0.code(Step::at(world.clock.now())).to_string()
    }
}

/// Sets an authenticator up; gives it, with the recovery codes.
async fn with_authenticator(world: &World, browser: &Browser) -> (Phone, Vec<String>) {
    let offer: TotpOffer = browser.post("/v1/totp", json!({})).await.data(StatusCode::OK);
    let phone = Phone::scan(&offer);
    let code = phone.shows(world);
    let codes: RecoveryCodes =
        browser.post("/v1/totp/confirm", json!({ "code": code })).await.data(StatusCode::OK);
    (phone, codes.codes.iter().map(|code| code.expose().to_owned()).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_signs_in_works_and_signs_out() {
    let world = World::start().await;
    with_password(&world, "eve", Role::Operator).await;
    let answer = login(&world.anyone(), "eve", PASSWORD, None).await;
    let set = answer.headers["set-cookie"].to_str().unwrap();
    assert!(set.starts_with(&format!("{SESSION_COOKIE}=hfs_")), "{set}");
    assert!(set.ends_with("; Secure; HttpOnly; SameSite=Strict; Path=/"), "{set}");
    assert_eq!(answer.headers["cache-control"], "no-store");
    let browser = Browser::of(&world, answer);
    let who: WhoAmI = browser.client.get("/v1/whoami").await.data(StatusCode::OK);
    assert_eq!((who.name.as_str(), who.role), ("eve", Role::Operator));
    let again: SessionOpened = browser.client.get("/v1/session").await.data(StatusCode::OK);
    assert_eq!(again.csrf.expose(), browser.csrf);
    let invite = json!({ "host_name": "box7" });
    assert_eq!(browser.post::<Value>("/v1/invites", invite).await.status, StatusCode::CREATED);

    let out = browser.post::<SessionView>("/v1/logout", json!({})).await;
    assert!(out.headers["set-cookie"].to_str().unwrap().ends_with("; Max-Age=0"));
    assert_eq!(browser.client.get::<Value>("/v1/whoami").await.code(), ErrorCode::Unauthenticated);
    let kinds = world.event_kinds().await;
    for kind in ["sign_in_link_made", "password_set", "signed_in", "session_ended"] {
        assert!(kinds.iter().any(|one| one == kind), "{kind}: {kinds:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_by_a_session_needs_its_own_csrf_value() {
    let world = World::start().await;
    with_password(&world, "eve", Role::Operator).await;
    let one = Browser::of(&world, login(&world.anyone(), "eve", PASSWORD, None).await);
    let two = Browser::of(&world, login(&world.anyone(), "eve", PASSWORD, None).await);
    let sessions: Page<SessionView> = one.client.get("/v1/sessions").await.data(StatusCode::OK);
    let id = format!("/v1/sessions/{}", sessions.items[0].id);
    let forged =
        [one.client.clone(), one.client.with(CSRF_HEADER, &two.csrf), one.client.with(CSRF_HEADER, "x")];
    for client in &forged {
        for (method, path) in [
            (Method::POST, "/v1/invites"),
            (Method::POST, "/v1/logout"),
            (Method::POST, "/v1/password"),
            (Method::POST, "/v1/totp"),
            (Method::POST, "/v1/totp/confirm"),
            (Method::PUT, "/v1/hosts/box7/desired"),
            (Method::DELETE, id.as_str()),
        ] {
            let refused = client.send::<Value>(method.clone(), path, &json!({ "host_name": "box7" })).await;
            assert_eq!(refused.code(), ErrorCode::Forbidden, "{method} {path}");
        }
    }
    // A token needs none, and is not helped by a session next to it.
    let bearer = world.admin();
    let made = bearer.send::<Value>(Method::POST, "/v1/invites", &json!({ "host_name": "box7" })).await;
    assert_eq!(made.status, StatusCode::CREATED);
    let mixed = one.client.with("authorization", "Bearer hfo_wrong");
    assert_eq!(mixed.get::<Value>("/v1/whoami").await.code(), ErrorCode::Unauthenticated);
    // A token cannot set a password: that needs the person.
    let refused = bearer.send::<Value>(Method::POST, "/v1/password", &json!({ "password": PASSWORD })).await;
    assert_eq!(refused.code(), ErrorCode::Unauthenticated);
    assert_eq!(two.changing().send::<Value>(Method::DELETE, &id, &json!({})).await.status, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_never_the_callers_choice() {
    let world = World::start().await;
    with_password(&world, "eve", Role::Operator).await;
    let planted =
        format!("{SESSION_COOKIE}=hfs_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
    let victim = world.anyone().with("cookie", &planted);
    let answer = login(&victim, "eve", PASSWORD, None).await;
    assert_ne!(cookie(&answer.headers), planted);
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(victim.get::<Value>("/v1/whoami").await.code(), ErrorCode::Unauthenticated);
    // Another site signs nobody in.
    for site in ["cross-site", "same-site"] {
        let refused = login(&world.anyone().with("sec-fetch-site", site), "eve", PASSWORD, None).await;
        assert_eq!(refused.code(), ErrorCode::Forbidden);
        assert!(!refused.headers.contains_key("set-cookie"));
    }
    let own = login(&world.anyone().with("sec-fetch-site", "same-origin"), "eve", PASSWORD, None).await;
    assert_eq!(own.status, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_unknown_or_wrong_gets_one_answer() {
    let world = World::start().await;
    with_password(&world, "eve", Role::Operator).await;
    operator(&world, "bare", Role::Viewer).await;
    operator(&world, "gone", Role::Viewer).await;
    let nil = holdfast_protocol::id::CorrelationId::new(uuid::Uuid::nil());
    world.store.revoke_operator("gone".parse().unwrap(), world.clock.now(), nil).await.ok().unwrap();
    let mut says = std::collections::BTreeSet::new();
    for (name, password) in [("eve", "wrong"), ("mallory", "wrong"), ("bare", "wrong"), ("gone", "wrong")] {
        let refused = login(&world.anyone(), name, password, None).await;
        assert_eq!(refused.code(), ErrorCode::Unauthenticated, "{name}");
        assert!(!refused.headers.contains_key("set-cookie"));
        says.insert(refused.envelope.error.unwrap().message);
    }
    assert_eq!(says.len(), 1, "{says:?}");
    for (body, code) in [
        (json!({ "name": "eve" }), ErrorCode::Missing),
        (json!({ "name": "eve", "password": "x", "extra": 1 }), ErrorCode::UnknownField),
        (json!({ "name": "eve", "password": "x".repeat(257) }), ErrorCode::Range),
        (json!({ "name": "eve", "password": "x".repeat(9000) }), ErrorCode::Size),
        (json!({ "name": "no name", "password": "x" }), ErrorCode::Range),
        (json!(["eve", "x"]), ErrorCode::Range),
    ] {
        let refused = world.anyone().send::<Value>(Method::POST, "/v1/login", &body).await;
        assert_eq!(refused.code(), code, "{body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_end_by_time_by_password_and_with_the_operator() {
    let world = World::start().await;
    with_password(&world, "eve", Role::Operator).await;
    let open = async || Browser::of(&world, login(&world.anyone(), "eve", PASSWORD, None).await);
    let works =
        async |browser: &Browser| browser.client.get::<Value>("/v1/whoami").await.status == StatusCode::OK;
    let used = open().await;
    let idle = open().await;
    for _ in 0..3 {
        world.clock.advance(20 * 60);
        assert!(works(&used).await);
    }
    assert!(!works(&idle).await);
    // Used all the time, it ends all the same.
    for _ in 0..33 {
        world.clock.advance(20 * 60);
        drop(used.client.get::<Value>("/v1/whoami").await);
    }
    assert!(!works(&used).await);

    let (one, other) = (open().await, open().await);
    let change = |current: &str| json!({ "current": current, "password": "nine purple elephants" });
    let bare = one.post::<Value>("/v1/password", json!({ "password": "nine purple elephants" })).await;
    assert_eq!(bare.code(), ErrorCode::PreconditionFailed);
    assert_eq!(
        one.post::<Value>("/v1/password", change("wrong")).await.code(),
        ErrorCode::PreconditionFailed
    );
    for weak in ["short", "password12345", "evee-evee-eve"] {
        let refused =
            one.post::<Value>("/v1/password", json!({ "current": PASSWORD, "password": weak })).await;
        assert_eq!(refused.code(), ErrorCode::Range, "{weak}");
    }
    assert!(works(&other).await);
    one.post::<SignInState>("/v1/password", change(PASSWORD)).await.data(StatusCode::OK);
    assert!(works(&one).await && !works(&other).await);
    assert_eq!(login(&world.anyone(), "eve", PASSWORD, None).await.code(), ErrorCode::Unauthenticated);

    let nil = holdfast_protocol::id::CorrelationId::new(uuid::Uuid::nil());
    world.store.revoke_operator("eve".parse().unwrap(), world.clock.now(), nil).await.ok().unwrap();
    assert!(!works(&one).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admin_needs_an_authenticator_and_each_code_counts_once() {
    let world = World::start().await;
    with_password(&world, "ann", Role::Admin).await;
    let first = login(&world.anyone(), "ann", PASSWORD, None).await;
    let setup = Browser::of(&world, first);
    let opened: SessionOpened = setup.client.get("/v1/session").await.data(StatusCode::OK);
    assert_eq!(opened.session.kind, SessionKind::Setup);
    for path in ["/v1/whoami", "/v1/hosts", "/v1/sessions", "/v1/operators"] {
        assert_eq!(setup.client.get::<Value>(path).await.code(), ErrorCode::Forbidden, "{path}");
    }
    let early = setup.post::<Value>("/v1/totp/confirm", json!({ "code": "123456" })).await;
    assert_eq!(early.code(), ErrorCode::PreconditionFailed);
    let (phone, recovery) = with_authenticator(&world, &setup).await;
    assert_eq!(recovery.len(), 10);
    let wrong = async |code: Option<&str>| {
        assert_eq!(
            login(&world.anyone(), "ann", PASSWORD, code).await.code(),
            ErrorCode::Unauthenticated,
            "{code:?}"
        );
    };
    // The code that confirmed it was used by that.
    wrong(Some(&phone.shows(&world))).await;
    wrong(None).await;
    world.clock.advance(30);
    let code = phone.shows(&world);
    let full = login(&world.anyone(), "ann", PASSWORD, Some(&code)).await;
    let full = Browser::of(&world, full);
    let opened: SessionOpened = full.client.get("/v1/session").await.data(StatusCode::OK);
    assert_eq!((opened.session.kind, opened.role), (SessionKind::Full, Role::Admin));
    wrong(Some(&code)).await;
    let first = &recovery[0];
    assert_eq!(
        login(&world.anyone(), "ann", PASSWORD, Some(&first.to_lowercase())).await.status,
        StatusCode::OK
    );
    world.clock.advance(600);
    wrong(Some(first)).await;
    // A new one needs the password, and the one in use stays until it is confirmed.
    assert_eq!(full.post::<Value>("/v1/totp", json!({})).await.code(), ErrorCode::PreconditionFailed);
    let offer: TotpOffer = full.post("/v1/totp", json!({ "password": PASSWORD })).await.data(StatusCode::OK);
    world.clock.advance(600);
    let code = phone.shows(&world);
    assert_eq!(login(&world.anyone(), "ann", PASSWORD, Some(&code)).await.status, StatusCode::OK);
    let next = Phone::scan(&offer);
    let bad = full.post::<Value>("/v1/totp/confirm", json!({ "code": phone.shows(&world) })).await;
    assert_eq!(bad.code(), ErrorCode::Range);
    let shows = next.shows(&world);
    full.post::<RecoveryCodes>("/v1/totp/confirm", json!({ "code": shows })).await.data(StatusCode::OK);
    world.clock.advance(600);
    wrong(Some(&recovery[1])).await;
    wrong(Some(&phone.shows(&world))).await;
    let code = next.shows(&world);
    assert_eq!(login(&world.anyone(), "ann", PASSWORD, Some(&code)).await.status, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_settings_let_admins_in_without_an_authenticator() {
    let rules = SignInRules { second_factor: SecondFactorRule::Optional, ..SignInRules::default() };
    let world = World::with(Options { sign_in: rules, ..Options::default() }).await;
    with_password(&world, "ann", Role::Admin).await;
    let browser = Browser::of(&world, login(&world.anyone(), "ann", PASSWORD, None).await);
    assert_eq!(browser.client.get::<Value>("/v1/operators").await.status, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_sets_up_once_and_only_admins_make_one() {
    let world = World::start().await;
    let eve = world.with_token(&operator(&world, "eve", Role::Operator).await);
    let path = "/v1/operators/eve/sign-in-link";
    assert_eq!(eve.send::<Value>(Method::POST, path, &json!({})).await.code(), ErrorCode::Forbidden);
    let unknown = "/v1/operators/nobody/sign-in-link";
    assert_eq!(
        world.admin().send::<Value>(Method::POST, unknown, &json!({})).await.code(),
        ErrorCode::NotFound
    );
    let keyed = world.admin().with("idempotency-key", "k-1");
    let one: SignInLink = keyed.send(Method::POST, path, &json!({})).await.data(StatusCode::CREATED);
    let two: SignInLink = keyed.send(Method::POST, path, &json!({})).await.data(StatusCode::CREATED);
    assert_eq!(one.url.expose(), two.url.expose());
    assert!(one.url.expose().starts_with(&format!("{}/sign-in#hfl_", world.url)));
    let token = one.url.expose().split_once('#').unwrap().1;
    let setup = Browser::of(&world, redeem(&world, token).await);
    assert_eq!(redeem(&world, token).await.code(), ErrorCode::Unauthenticated);
    assert_eq!(setup.client.get::<Value>("/v1/whoami").await.code(), ErrorCode::Forbidden);
    let late = link_of(&world, "eve").await;
    world.clock.advance(15 * 60);
    assert_eq!(redeem(&world, &late).await.code(), ErrorCode::Unauthenticated);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_from_one_address_locks_no_account() {
    let world = World::start().await;
    with_password(&world, "eve", Role::Operator).await;
    let from = |last| world.from(IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)));
    let attacker = from(66);
    let mut wait = None;
    for number in 0..200 {
        let refused = login(&attacker, "eve", "wrong", None).await;
        match refused.code() {
            ErrorCode::Unauthenticated => assert!(number < 10, "{number}"),
            ErrorCode::RateLimited => {
                wait = refused.headers["retry-after"].to_str().unwrap().parse::<i64>().ok()
            }
            other => panic!("{other}"),
        }
    }
    assert!((1..=60).contains(&wait.unwrap()), "{wait:?}");
    // Nor does the right password help there, as long as it waits.
    assert_eq!(login(&attacker, "eve", PASSWORD, None).await.code(), ErrorCode::RateLimited);
    for _ in 0..30 {
        assert_eq!(
            login(&from(7), "eve", PASSWORD, None).await.status,
            StatusCode::OK,
            "right ones do not count"
        );
    }
    world.clock.advance(wait.unwrap());
    assert_eq!(login(&attacker, "eve", PASSWORD, None).await.status, StatusCode::OK);
    // Many addresses: strangers wait, and eve gets in from where she was before.
    for last in 100..110 {
        for _ in 0..10 {
            drop(login(&from(last), "eve", "wrong", None).await);
        }
    }
    assert_eq!(login(&from(200), "eve", PASSWORD, None).await.code(), ErrorCode::RateLimited);
    assert_eq!(login(&from(7), "eve", PASSWORD, None).await.status, StatusCode::OK);
    let events = world.store.events(hubd::store::EventFilter::default(), 500).await.unwrap();
    let refusals = events.iter().filter(|event| event.kind == "sign_in_refused").count();
    assert!((2..=17).contains(&refusals), "{refusals}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_of_a_sign_in_is_in_the_database_or_an_event() {
    let world = World::start().await;
    let typed = "my real password!";
    drop(login(&world.anyone(), "typed-as-a-name", typed, None).await);
    let setup = with_password(&world, "ann", Role::Admin).await;
    let (phone, recovery) = with_authenticator(&world, &setup).await;
    world.clock.advance(60);
    let code = phone.shows(&world);
    let full = Browser::of(&world, login(&world.anyone(), "ann", PASSWORD, Some(&code)).await);
    let link = link_of(&world, "ann").await;
    let session = full.client.headers["cookie"].to_str().unwrap().split_once('=').unwrap().1.to_owned();
    let secrets = [PASSWORD.to_owned(), typed.to_owned(), link, session, full.csrf.clone()]
        .into_iter()
        .chain(recovery)
        .map(String::into_bytes)
        .chain([phone.0.expose().to_vec(), b"typed-as-a-name".to_vec()])
        .collect::<Vec<_>>();
    let (folder, _temp) = world.stop().await;
    let mut looked = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if !path.to_string_lossy().contains("hub.db") {
            continue;
        }
        looked += 1;
        let bytes = std::fs::read(&path).unwrap();
        for secret in &secrets {
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_slice());
            assert!(!found, "{} is in {path:?}", String::from_utf8_lossy(secret));
        }
    }
    assert!(looked > 0);
}
