//! Table of decisions.

use holdfast_protocol::bootstrap::{BootstrapSchema, BootstrapTokenSchema};
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::pin::{Pin, PinKind};
use holdfast_protocol::secret::Secret;

use super::*;

fn bootstrap_token(mode: Mode) -> BootstrapEnv {
    BootstrapEnv::Token(Box::new(BootstrapToken {
        schema: BootstrapTokenSchema::V1,
        endpoint: "https://10.66.0.1:8443".to_owned(),
        pin: Pin::of(PinKind::Leaf, b"leaf"),
        claim: Secret::new("a-claim-of-some-length".to_owned()),
        mode,
    }))
}

fn bootstrap() -> Bootstrap {
    Bootstrap {
        schema: BootstrapSchema::V1,
        customer: "acme".parse().unwrap(),
        guest: GuestUid::new(uuid::Uuid::nil()),
        hub: "https://hub.example".to_owned(),
        endpoint: "https://10.66.0.1:8443".to_owned(),
        pin: Pin::of(PinKind::Leaf, b"leaf"),
        token: Secret::new("a-token-of-some-length".to_owned()),
        token_generation: 1,
    }
}

fn attempt(outcome: Outcome) -> Option<Attempt> {
    let BootstrapEnv::Token(bootstrap_token) = bootstrap_token(Mode::Serve) else {
        panic!("a bootstrap token")
    };
    let mut attempt = Attempt::begin(&bootstrap_token).unwrap();
    attempt.outcome = outcome;
    Some(attempt)
}

fn word(
    bootstrap: Option<Bootstrap>,
    bootstrap_token: BootstrapEnv,
    attempt: Option<Attempt>,
    doubt: Option<Doubt>,
) -> &'static str {
    match decide(
        Situation { bootstrap: Ok(bootstrap), bootstrap_token: Ok(bootstrap_token), attempt: Ok(attempt) },
        doubt,
    ) {
        Next::SetUp(SetUp::NoToken) => "no bootstrap token",
        Next::SetUp(SetUp::Pending) => "pending",
        Next::SetUp(SetUp::Refused { .. }) => "refused",
        Next::SetUp(SetUp::Spent) => "spent",
        Next::SetUp(_) => "set-up",
        Next::Claim(Claim { attempt: None, earlier: Earlier::None, .. }) => "claim",
        Next::Claim(Claim { attempt: Some(_), earlier: Earlier::None, .. }) => "claim again",
        Next::Claim(Claim { earlier: Earlier::Present, .. }) => "claim over",
        Next::Serve(_, Mode::RestoreTest) => "test",
        Next::Serve(_, Mode::Serve) => "serve",
    }
}

#[test]
fn the_table() {
    let no = || Outcome::Refused("no".to_owned());
    let (serve, test) = (|| bootstrap_token(Mode::Serve), || bootstrap_token(Mode::RestoreTest));
    let doubt = |cause| Some(Doubt { token: bootstrap().token.hash(), cause });
    let token = doubt(Cause::Rejected);
    let silent = doubt(Cause::Silent);
    let other = Some(Doubt { token: TokenHash::of(b"another"), cause: Cause::Rejected });
    let moved = || Bootstrap { endpoint: "https://10.67.0.1:8443".to_owned(), ..bootstrap() };
    let cases = [
        (word(None, BootstrapEnv::Absent, None, None), "no bootstrap token"),
        (word(None, BootstrapEnv::Pending, None, None), "pending"),
        (word(None, serve(), None, None), "claim"),
        (word(None, serve(), attempt(Outcome::Open), None), "claim again"),
        (word(None, serve(), attempt(Outcome::Redeemed), None), "spent"),
        (word(None, serve(), attempt(no()), None), "refused"),
        (word(Some(bootstrap()), BootstrapEnv::Absent, None, None), "serve"),
        (word(Some(bootstrap()), BootstrapEnv::Absent, None, token), "serve"),
        (word(Some(bootstrap()), BootstrapEnv::Pending, None, None), "pending"),
        (word(Some(bootstrap()), serve(), None, None), "serve"),
        (word(Some(bootstrap()), serve(), None, other), "serve"),
        (word(Some(bootstrap()), serve(), None, token), "claim over"),
        (word(Some(bootstrap()), serve(), None, silent), "serve"),
        (word(Some(moved()), serve(), None, silent), "claim over"),
        (word(Some(moved()), serve(), None, None), "serve"),
        (word(Some(bootstrap()), serve(), attempt(Outcome::Redeemed), token), "serve"),
        (word(Some(bootstrap()), serve(), attempt(no()), token), "serve"),
        (word(Some(bootstrap()), test(), None, None), "claim over"),
        (word(Some(bootstrap()), test(), attempt(Outcome::Redeemed), None), "test"),
        (word(Some(bootstrap()), test(), attempt(no()), None), "refused"),
    ];
    for (line, (found, expected)) in cases.iter().enumerate() {
        assert_eq!(found, expected, "line {line}");
    }
}

#[test]
fn the_record_of_another_token_is_ignored() {
    let BootstrapEnv::Token(mut other) = bootstrap_token(Mode::Serve) else { panic!("a bootstrap token") };
    other.claim = Secret::new("another-claim-of-some-length".to_owned());
    let mut attempt = Attempt::begin(&other).unwrap();
    attempt.outcome = Outcome::Redeemed;
    assert_eq!(word(None, bootstrap_token(Mode::Serve), Some(attempt), None), "claim");
}

#[test]
fn a_bad_token_does_not_disturb_a_serving_guest() {
    let seen = |bootstrap| Situation {
        bootstrap: Ok(bootstrap),
        bootstrap_token: Err(BootstrapEnvError::Twice),
        attempt: Ok(None),
    };
    assert!(matches!(decide(seen(Some(bootstrap())), None), Next::Serve(_, Mode::Serve)));
    assert!(matches!(decide(seen(None), None), Next::SetUp(SetUp::BadToken(_))));
}
