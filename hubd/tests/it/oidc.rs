//! Sign-in by a provider of the test, which forges.
//!
//! Its documents and answers have the form of those that `oidc-provider` gave in `oidc_provider`; keys and signatures are its
//! own.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::http::HeaderMap as Headers;
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use holdfast_protocol::access::{AccessScope, Grant};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::oidc::{ProviderLink, ProviderPerson};
use holdfast_protocol::operator::{OperatorView, Role};
use holdfast_protocol::secret::Secret;
use hubd::clock::Clock as _;
use hubd::domain::oidc::provider::{GroupGrant, ProviderSettings};
use reqwest::header::HeaderMap;
use reqwest::{Method, StatusCode, Url};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::operators::operator;
use crate::world::{Client, Options, World};

pub const CLIENT: &str = "holdfast";
pub const SECRET: &str = "a secret of a test, with +/=% in it";

/// A provider as the hub's settings have it.
pub fn provider(issuer: &str) -> ProviderSettings {
    let grant = Grant::new(Role::Operator, AccessScope::default()).unwrap();
    ProviderSettings {
        issuer: issuer.to_owned(),
        name: "Example & Sons".to_owned(),
        client_id: CLIENT.to_owned(),
        client_secret: Some(Secret::new(SECRET.to_owned())),
        scopes: ["email", "profile", "groups"].map(str::to_owned).to_vec(),
        person_claim: "email".to_owned(),
        name_claim: "preferred_username".to_owned(),
        group_claim: "groups".to_owned(),
        groups: vec![GroupGrant { group: "operators".to_owned(), grant }],
        ca_pem: None,
    }
}

/// An answer as a browser gets it.
pub struct PageSeen {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub html: String,
}

impl PageSeen {
    pub fn location(&self) -> Url {
        assert_eq!(self.status, StatusCode::SEE_OTHER, "{}", self.html);
        self.headers["location"].to_str().unwrap().parse().unwrap()
    }

    /// The cookie of this name, as it is sent back.
    pub fn cookie(&self, name: &str) -> Option<String> {
        let all = self.headers.get_all("set-cookie").iter().map(|value| value.to_str().unwrap());
        let mut named = all.filter(|line| line.starts_with(name) && !line.contains("Max-Age=0"));
        named.next().map(|line| line.split(';').next().unwrap().to_owned())
    }
}

pub async fn open(client: &Client, path: &str) -> PageSeen {
    let request = client.http.get(format!("{}{path}", client.url)).headers(client.headers.clone());
    let answer = request.send().await.unwrap();
    let (status, headers) = (answer.status(), answer.headers().clone());
    PageSeen { status, headers, html: answer.text().await.unwrap() }
}

/// A browser that was sent to the provider.
pub struct BegunSignIn {
    pub browser: Client,
    /// Where it was sent.
    pub url: Url,
}

pub async fn begin(world: &World) -> BegunSignIn {
    let sent = open(&world.anyone(), "/sign-in/oidc").await;
    let cookie = sent.cookie("__Host-holdfast-oidc").unwrap_or_else(|| panic!("{}", sent.html));
    BegunSignIn { browser: world.anyone().with("cookie", &cookie), url: sent.location() }
}

impl BegunSignIn {
    fn query(&self, name: &str) -> String {
        let found = self.url.query_pairs().find(|(one, _)| one == name);
        found.unwrap_or_else(|| panic!("no {name} in {}", self.url)).1.into_owned()
    }

    /// Comes back with this code.
    async fn back(&self, code: &str) -> PageSeen {
        let state = self.query("state");
        open(&self.browser, &format!("/sign-in/oidc/callback?code={code}&state={state}")).await
    }
}

/// How a token is forged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Forgery {
    Honest,
    AlgNone,
    /// HS256 with the public key as the secret.
    PublicKeyAsSecret,
    UnknownKey,
    OtherKey,
}

/// What the provider does beyond its duty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keys {
    Good,
    Huge,
    Silent,
}

struct FakeState {
    issuer: Mutex<String>,
    key: EcdsaKeyPair,
    other: EcdsaKeyPair,
    kid: Mutex<&'static str>,
    forgery: Mutex<Forgery>,
    keys: Mutex<Keys>,
    /// Claims that replace the honest ones.
    claims: Mutex<Value>,
    /// The nonce and the challenge of each code that was not used.
    codes: Mutex<HashMap<String, (String, String)>>,
    fetches: AtomicU32,
    now: Mutex<i64>,
}

/// A provider on loopback, for as long as the test runs.
struct FakeProvider {
    shared: Arc<FakeState>,
    issuer: String,
}

fn pair() -> EcdsaKeyPair {
    let random = SystemRandom::new();
    let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random).unwrap()
}

fn jwk(key: &EcdsaKeyPair, kid: &str) -> Value {
    let point = key.public_key().as_ref();
    json!({ "kty": "EC", "crv": "P-256", "kid": kid, "use": "sig",
        "x": URL_SAFE_NO_PAD.encode(&point[1..33]), "y": URL_SAFE_NO_PAD.encode(&point[33..]) })
}

impl FakeProvider {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(FakeState {
            issuer: Mutex::new(issuer.clone()),
            key: pair(),
            other: pair(),
            kid: Mutex::new("one"),
            forgery: Mutex::new(Forgery::Honest),
            keys: Mutex::new(Keys::Good),
            claims: Mutex::new(json!({})),
            codes: Mutex::default(),
            fetches: AtomicU32::new(0),
            now: Mutex::new(0),
        });
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(discovery))
            .route("/jwks", get(key_set))
            .route("/token", post(token))
            .with_state(Arc::clone(&shared));
        #[expect(clippy::disallowed_methods, reason = "it ends with the runtime of its test")]
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { shared, issuer }
    }

    async fn world(&self) -> World {
        let world =
            World::with(Options { provider: Some(provider(&self.issuer)), ..Options::default() }).await;
        *self.shared.now.lock().unwrap() = world.clock.now().as_second();
        world
    }

    /// What its page does: a code for who signs in there.
    fn sign_in(&self, begun: &BegunSignIn) -> String {
        let mut codes = self.shared.codes.lock().unwrap();
        let code = format!("code-{}-{}", codes.len(), begun.query("state"));
        codes.insert(code.clone(), (begun.query("nonce"), begun.query("code_challenge")));
        code
    }

    fn claims(&self, claims: Value) {
        *self.shared.claims.lock().unwrap() = claims;
    }

    fn forge(&self, forgery: Forgery) {
        *self.shared.forgery.lock().unwrap() = forgery;
    }
}

async fn discovery(State(shared): State<Arc<FakeState>>) -> Json<Value> {
    let issuer = shared.issuer.lock().unwrap().clone();
    Json(json!({ "issuer": issuer, "authorization_endpoint": format!("{issuer}/auth"),
        "token_endpoint": format!("{issuer}/token"), "jwks_uri": format!("{issuer}/jwks"),
        "code_challenge_methods_supported": ["S256"], "response_types_supported": ["code id_token", "code", "none"],
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post", "none"] }))
}

async fn key_set(State(shared): State<Arc<FakeState>>) -> String {
    shared.fetches.fetch_add(1, Ordering::SeqCst);
    let keys = *shared.keys.lock().unwrap();
    match keys {
        Keys::Good => json!({ "keys": [jwk(&shared.key, *shared.kid.lock().unwrap())] }).to_string(),
        Keys::Huge => json!({ "keys": [], "more": "x".repeat(1 << 20) }).to_string(),
        Keys::Silent => std::future::pending().await,
    }
}

async fn token(
    State(shared): State<Arc<FakeState>>,
    headers: Headers,
    body: String,
) -> (StatusCode, Json<Value>) {
    let form: HashMap<String, String> = url::form_urlencoded::parse(body.as_bytes()).into_owned().collect();
    let secret: String = url::form_urlencoded::byte_serialize(SECRET.as_bytes()).collect();
    let basic = base64::engine::general_purpose::STANDARD.encode(format!("{CLIENT}:{secret}"));
    assert_eq!(headers["authorization"], format!("Basic {basic}"));
    assert_eq!(form["grant_type"], "authorization_code");
    let begun = shared.codes.lock().unwrap().remove(&form["code"]);
    let verified =
        |challenge: &str| URL_SAFE_NO_PAD.encode(Sha256::digest(&form["code_verifier"])) == challenge;
    match begun {
        Some((nonce, challenge)) if verified(&challenge) => {
            (StatusCode::OK, Json(json!({ "token_type": "Bearer", "id_token": signed(&shared, &nonce) })))
        }
        _ => (StatusCode::BAD_REQUEST, Json(json!({ "error": "invalid_grant" }))),
    }
}

fn signed(shared: &FakeState, nonce: &str) -> String {
    let now = *shared.now.lock().unwrap();
    let mut claims = json!({ "iss": *shared.issuer.lock().unwrap(), "sub": "s-1", "aud": CLIENT, "iat": now, "exp": now + 3600,
        "nonce": nonce, "email": "ada@x.example", "email_verified": true, "preferred_username": "ada" });
    for (name, value) in shared.claims.lock().unwrap().as_object().unwrap() {
        claims[name] = value.clone();
    }
    let forgery = *shared.forgery.lock().unwrap();
    let kid = *shared.kid.lock().unwrap();
    let head = match forgery {
        Forgery::Honest | Forgery::OtherKey => json!({ "alg": "ES256", "kid": kid }),
        Forgery::AlgNone => json!({ "alg": "none" }),
        Forgery::PublicKeyAsSecret => json!({ "alg": "HS256", "kid": kid }),
        Forgery::UnknownKey => json!({ "alg": "ES256", "kid": "nobody's" }),
    };
    let signed = [head, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string())).join(".");
    let by =
        |key: &EcdsaKeyPair| key.sign(&SystemRandom::new(), signed.as_bytes()).unwrap().as_ref().to_vec();
    let signature = match forgery {
        Forgery::Honest | Forgery::UnknownKey => by(&shared.key),
        Forgery::OtherKey => by(&shared.other),
        Forgery::AlgNone => Vec::new(),
        Forgery::PublicKeyAsSecret => {
            let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, shared.key.public_key().as_ref());
            ring::hmac::sign(&key, signed.as_bytes()).as_ref().to_vec()
        }
    };
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}

/// An operator who is linked with the subject of the fake's tokens.
async fn linked(world: &World, name: &str, person: &ProviderPerson) {
    operator(world, name, Role::Operator).await;
    let path = format!("/v1/operators/{name}/oidc");
    world.admin().send::<ProviderLink>(Method::PUT, &path, person).await.data(StatusCode::OK);
}

fn subject() -> ProviderPerson {
    ProviderPerson::Subject { subject: "s-1".to_owned() }
}

/// The account page by the session that an answer opened.
async fn account(world: &World, entered: &PageSeen) -> PageSeen {
    assert_eq!(entered.status, StatusCode::OK, "{}", entered.html);
    let cookie = entered.cookie("__Host-holdfast-session").unwrap();
    open(&world.anyone().with("cookie", &cookie), "/account").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_linked_person_signs_in_and_gets_a_session_of_their_own() {
    let fake = FakeProvider::start().await;
    let world = fake.world().await;
    let form = open(&world.anyone(), "/sign-in").await;
    assert!(
        form.html.contains("Sign in with Example &#38; Sons") || form.html.contains("Example &amp; Sons"),
        "{}",
        form.html
    );
    let begun = begin(&world).await;
    assert_eq!(begun.query("redirect_uri"), format!("{}/sign-in/oidc/callback", world.url));
    assert_eq!(begun.query("scope"), "openid email profile groups");
    let stranger = begun.back(&fake.sign_in(&begun)).await;
    assert_eq!(stranger.status, StatusCode::UNAUTHORIZED);
    assert!(
        stranger.html.contains("hubd operator link-oidc") && stranger.html.contains("s-1"),
        "{}",
        stranger.html
    );

    linked(&world, "ada", &ProviderPerson::Claim { value: "ada@x.example".to_owned() }).await;
    let begun = begin(&world).await;
    let code = fake.sign_in(&begun);
    let entered = begun.back(&code).await;
    assert!(entered.html.contains("http-equiv=\"refresh\""), "{}", entered.html);
    assert!(account(&world, &entered).await.html.contains("ada"));
    let link: ProviderLink = world.admin().get("/v1/operators/ada/oidc").await.data(StatusCode::OK);
    assert_eq!(link.person, subject());
    // The same answer again: the provider gives nothing for a code that was used.
    let replayed = begun.back(&code).await;
    assert_eq!(replayed.status, StatusCode::UNAUTHORIZED);
    assert!(replayed.cookie("__Host-holdfast-session").is_none());
    let kinds = world.event_kinds().await;
    for kind in ["provider_linked", "signed_in", "sign_in_refused"] {
        assert!(kinds.iter().any(|one| one == kind), "{kind}: {kinds:?}");
    }
    let path = "/v1/operators/ada/oidc";
    world.admin().send::<ProviderLink>(Method::DELETE, path, &json!({})).await.data(StatusCode::OK);
    assert_eq!(
        account(&world, &entered).await.status,
        StatusCode::SEE_OTHER,
        "the session ended with the link"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_token_opens_nothing() {
    let fake = FakeProvider::start().await;
    let world = fake.world().await;
    linked(&world, "ada", &subject()).await;
    let now = world.clock.now().as_second();
    let mut tried = 0_u8;
    let mut refused = async |what: &str| {
        // Each from an address of its own: they are too many for one.
        tried += 1;
        let place = world.from(std::net::Ipv4Addr::new(127, 0, 3, tried).into());
        let sent = open(&place, "/sign-in/oidc").await;
        let cookie = sent.cookie("__Host-holdfast-oidc").unwrap();
        let begun = BegunSignIn { browser: place.with("cookie", &cookie), url: sent.location() };
        let seen = begun.back(&fake.sign_in(&begun)).await;
        assert_eq!(seen.status, StatusCode::UNAUTHORIZED, "{what}: {}", seen.html);
        assert!(seen.cookie("__Host-holdfast-session").is_none(), "{what}");
    };
    for (name, value) in [
        ("iss", json!("https://elsewhere.example")),
        ("aud", json!("another")),
        ("aud", json!([CLIENT, "another"])),
        ("azp", json!("another")),
        ("nonce", json!("another")),
        ("exp", json!(now - 61)),
        ("iat", json!(now - 3600)),
        ("iat", json!(now + 3600)),
        ("sub", json!("")),
    ] {
        fake.claims(json!({ name: value }));
        refused(name).await;
    }
    fake.claims(json!({}));
    for forgery in [Forgery::AlgNone, Forgery::PublicKeyAsSecret, Forgery::UnknownKey, Forgery::OtherKey] {
        fake.forge(forgery);
        refused(&format!("{forgery:?}")).await;
    }
    fake.forge(Forgery::Honest);
    let begun = begin(&world).await;
    assert_eq!(begun.back(&fake.sign_in(&begun)).await.status, StatusCode::OK, "the honest one");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_counts_in_the_browser_that_began_and_in_time() {
    let fake = FakeProvider::start().await;
    let world = fake.world().await;
    linked(&world, "ada", &subject()).await;
    let begun = begin(&world).await;
    let code = fake.sign_in(&begun);
    let (state, other) = (begun.query("state"), begin(&world).await);
    let callback = |state: &str| format!("/sign-in/oidc/callback?code={code}&state={state}");
    // Without the cookie, with another browser's, and with another state.
    assert_eq!(open(&world.anyone(), &callback(&state)).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(open(&other.browser, &callback(&state)).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(open(&begun.browser, &callback("")).await.status, StatusCode::UNAUTHORIZED);
    // A code of another's sign-in: it does not fit the verifier.
    assert_eq!(other.back(&code).await.status, StatusCode::UNAUTHORIZED);
    let denied =
        open(&begun.browser, &format!("/sign-in/oidc/callback?error=access_denied&state={state}")).await;
    assert_eq!(denied.status, StatusCode::UNAUTHORIZED);
    assert!(denied.html.contains("did not sign you in"), "{}", denied.html);
    // The answer of another provider.
    let mixed = format!("{}&iss=https://elsewhere.example", callback(&state));
    assert_eq!(open(&begun.browser, &mixed).await.status, StatusCode::UNAUTHORIZED);
    let late = begin(&world).await;
    let code = fake.sign_in(&late);
    *fake.shared.now.lock().unwrap() = world.clock.advance(600).as_second();
    assert_eq!(late.back(&code).await.status, StatusCode::UNAUTHORIZED);
    let elsewhere = world.anyone().with("sec-fetch-site", "cross-site");
    assert_eq!(open(&elsewhere, "/sign-in/oidc").await.status, StatusCode::FORBIDDEN);
}

#[tokio::test(flavor = "multi_thread")]
async fn new_keys_are_fetched_and_not_for_every_token() {
    let fake = FakeProvider::start().await;
    let world = fake.world().await;
    linked(&world, "ada", &subject()).await;
    let enter = async || {
        let begun = begin(&world).await;
        begun.back(&fake.sign_in(&begun)).await.status
    };
    let fetches = || fake.shared.fetches.load(Ordering::SeqCst);
    assert_eq!((enter().await, fetches()), (StatusCode::OK, 1));
    *fake.shared.kid.lock().unwrap() = "two";
    assert_eq!((enter().await, fetches()), (StatusCode::UNAUTHORIZED, 1), "they were fetched just now");
    *fake.shared.now.lock().unwrap() = world.clock.advance(60).as_second();
    assert_eq!((enter().await, fetches()), (StatusCode::OK, 2));
    fake.forge(Forgery::UnknownKey);
    for _ in 0..3 {
        assert_eq!(enter().await, StatusCode::UNAUTHORIZED);
    }
    assert_eq!(fetches(), 2, "unknown keys cause no flood");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_misbehaves_costs_its_own_sign_ins_alone() {
    let fake = FakeProvider::start().await;
    let world = fake.world().await;
    linked(&world, "ada", &subject()).await;
    for keys in [Keys::Huge, Keys::Silent] {
        *fake.shared.keys.lock().unwrap() = keys;
        let begun = begin(&world).await;
        let seen = begun.back(&fake.sign_in(&begun)).await;
        assert_eq!(seen.status, StatusCode::SERVICE_UNAVAILABLE, "{keys:?}: {}", seen.html);
        assert!(seen.html.contains("the provider"), "{}", seen.html);
        assert_eq!(open(&world.anyone(), "/sign-in").await.status, StatusCode::OK);
        // Right after a failure it is not asked again.
        let (begun, fetches) = (begin(&world).await, fake.shared.fetches.load(Ordering::SeqCst));
        assert_eq!(begun.back(&fake.sign_in(&begun)).await.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(fake.shared.fetches.load(Ordering::SeqCst), fetches);
        *fake.shared.now.lock().unwrap() = world.clock.advance(5).as_second();
    }
    *fake.shared.keys.lock().unwrap() = Keys::Good;
    let begun = begin(&world).await;
    assert_eq!(begun.back(&fake.sign_in(&begun)).await.status, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_makes_operators_who_have_no_password() {
    let fake = FakeProvider::start().await;
    let world = fake.world().await;
    fake.claims(json!({ "groups": ["people", "operators"], "preferred_username": "bob" }));
    let begun = begin(&world).await;
    let entered = begun.back(&fake.sign_in(&begun)).await;
    assert!(account(&world, &entered).await.html.contains("bob"));
    let all: holdfast_protocol::operator::Page<OperatorView> =
        world.admin().get("/v1/operators").await.data(StatusCode::OK);
    let bob = all.items.into_iter().find(|one| one.name.as_str() == "bob").unwrap();
    assert_eq!((bob.role, bob.expires_at), (Role::Operator, None));
    // An admin cannot link them with another person, and a sign-in link gives them no password.
    let path = "/v1/operators/bob/oidc";
    let other = ProviderPerson::Subject { subject: "s-9".to_owned() };
    let refused = world.admin().send::<ProviderLink>(Method::PUT, path, &other).await;
    assert_eq!(refused.code(), ErrorCode::PreconditionFailed);
    fake.claims(json!({ "groups": ["people"], "preferred_username": "bob" }));
    let begun = begin(&world).await;
    let out = begun.back(&fake.sign_in(&begun)).await;
    assert_eq!(out.status, StatusCode::UNAUTHORIZED);
    assert!(out.html.contains("in no group any more"), "{}", out.html);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_without_a_provider_offers_none() {
    let world = World::start().await;
    operator(&world, "ada", Role::Operator).await;
    let form = open(&world.anyone(), "/sign-in").await;
    assert!(!form.html.contains("/sign-in/oidc"), "{}", form.html);
    assert_eq!(open(&world.anyone(), "/sign-in/oidc").await.status, StatusCode::NOT_FOUND);
    let put = world.admin().send::<ProviderLink>(Method::PUT, "/v1/operators/ada/oidc", &subject()).await;
    assert_eq!(put.code(), ErrorCode::PreconditionFailed);
    let none = world.admin().get::<ProviderLink>("/v1/operators/ada/oidc").await;
    assert_eq!(none.code(), ErrorCode::NotFound);
}
