//! Passwords, authenticators, sign-in links and sessions.

use holdfast_protocol::access::{AccessScope, Grant};
use holdfast_protocol::id::{OperatorName, SessionId};
use holdfast_protocol::operator::Role;
use holdfast_protocol::secret::{Secret, TokenHash};
use holdfast_protocol::sign_in::SessionKind;
use hubd::domain::event::{EventKind, NewEvent};
use hubd::domain::sign_in::totp::Step;
use hubd::domain::sign_in::{LINK_LIFE, SignInRules};
use hubd::store::{
    ConfirmedAuthenticator, NewLinkSession, NewOperator, NewPassword, NewSession, NewSignIn, NewSignInLink,
    SESSIONS_MAX, SessionChoice, SessionEnd, SharedStore, SignInChange, SignInError, UsedFactor, WriteError,
};
use uuid::Uuid;

use super::fixture::{CORRELATION, Fixture, at, by, claiming};

fn name(text: &str) -> OperatorName {
    text.parse().unwrap()
}

fn token(number: u32) -> TokenHash {
    Secret::new(format!("token {number}")).hash()
}

async fn operator(store: &SharedStore, text: &str) {
    let token = Secret::new(format!("bearer of {text}")).hash();
    let (expires_at, at) = (at(1_000_000), at(0));
    let new = NewOperator {
        name: name(text),
        grant: Grant::new(Role::Operator, AccessScope::default()).unwrap(),
        token,
        expires_at,
        at,
        correlation: CORRELATION,
    };
    store.add_operator(new).await.ok().unwrap();
}

fn session(number: u32, second: i64, kind: SessionKind) -> NewSession {
    NewSession {
        token: token(number),
        id: SessionId::new(Uuid::from_u128(number.into())),
        operator: Some(name("ada")),
        kind,
        at: at(second),
        ends: SignInRules::default().ends(kind, at(second)),
        address: format!("10.0.0.{}", number % 200),
        user_agent: "a browser".to_owned(),
    }
}

fn sign_in(number: u32, second: i64, factor: UsedFactor) -> NewSignIn {
    let session = session(number, second, SessionKind::Full);
    NewSignIn { session, password: "hash".to_owned(), factor, correlation: CORRELATION }
}

fn change(second: i64) -> SignInChange {
    SignInChange { operator: name("ada"), actor: Some(name("ada")), at: at(second), correlation: CORRELATION }
}

fn password(second: i64, hash: &str, checked: Option<&str>) -> NewPassword {
    let (hash, checked) = (hash.to_owned(), checked.map(str::to_owned));
    NewPassword { by: change(second), hash, checked, keep: None }
}

/// Ada, with a password.
async fn ada(fixture: &Fixture) {
    operator(&fixture.store, "ada").await;
    fixture.store.set_password(password(0, "hash", None)).await.ok().unwrap();
}

fn refused<T>(result: Result<T, WriteError<SignInError>>) -> SignInError {
    match result {
        Err(WriteError::Refused(error)) => error,
        Err(_) => panic!("not a refusal"),
        Ok(_) => panic!("not refused"),
    }
}

pub async fn a_session_lives_by_its_use_and_ends_with_its_operator(fixture: Fixture) {
    ada(&fixture).await;
    let (store, (other, _writer)) = (&fixture.store, fixture.second());
    let opened = store.sign_in(sign_in(1, 0, UsedFactor::None)).await.ok().unwrap();
    assert_eq!((opened.owner.grant.role(), opened.view.kind), (Role::Operator, SessionKind::Full));
    assert_eq!(opened.view.idle_ends_at, at(1800));
    assert_eq!(other.session(token(1), at(1799)).await.unwrap(), Some(opened.clone()));
    assert_eq!(store.session(token(1), at(1800)).await.unwrap(), None);
    assert_eq!(store.session(token(2), at(1)).await.unwrap(), None);
    store.use_session(token(1), at(1000), at(2800)).await.unwrap();
    let used = other.session(token(1), at(2799)).await.unwrap().unwrap();
    assert_eq!((used.view.used_at, used.view.made_at), (at(1000), at(0)));
    // The absolute end holds, whatever is written as the idle one.
    store.use_session(token(1), at(43_000), at(99_000)).await.unwrap();
    assert!(store.session(token(1), at(43_199)).await.unwrap().is_some());
    assert_eq!(store.session(token(1), at(43_200)).await.unwrap(), None);
    store.revoke_operator(name("ada"), at(3), CORRELATION).await.ok().unwrap();
    assert_eq!(other.session(token(1), at(4)).await.unwrap(), None);
    assert!(other.credentials(name("ada")).await.unwrap().is_none());
    assert_eq!(refused(store.sign_in(sign_in(2, 5, UsedFactor::None)).await), SignInError::Refused);
    assert_eq!(store.sessions(None, at(4)).await.unwrap(), []);
}

pub async fn a_session_is_ended_by_its_operator_or_an_admin(fixture: Fixture) {
    ada(&fixture).await;
    operator(&fixture.store, "bob").await;
    let store = &fixture.store;
    for number in 1..=3 {
        store.sign_in(sign_in(number, number.into(), UsedFactor::None)).await.ok().unwrap();
    }
    let ids = |sessions: Vec<holdfast_protocol::sign_in::SessionView>| {
        sessions.iter().map(|session| session.id.uuid().as_u128()).collect::<Vec<_>>()
    };
    assert_eq!(ids(store.sessions(Some(name("ada")), at(9)).await.unwrap()), [3, 2, 1]);
    assert_eq!(ids(store.sessions(Some(name("bob")), at(9)).await.unwrap()), [0; 0]);
    let end = |session| {
        store.end_session(SessionEnd { session, actor: name("bob"), at: at(9), correlation: CORRELATION })
    };
    let id = |number| SessionId::new(Uuid::from_u128(number));
    assert!(end(SessionChoice::Own(id(1), name("bob"))).await.unwrap().is_none());
    assert_eq!(end(SessionChoice::Own(id(1), name("ada"))).await.unwrap().unwrap().id, id(1));
    assert!(end(SessionChoice::Own(id(1), name("ada"))).await.unwrap().is_none(), "it has ended");
    assert_eq!(end(SessionChoice::Any(id(2))).await.unwrap().unwrap().id, id(2));
    assert_eq!(end(SessionChoice::Token(token(3))).await.unwrap().unwrap().id, id(3));
    assert_eq!(store.sessions(None, at(10)).await.unwrap(), []);
    assert_eq!(fixture.kinds().await.iter().filter(|kind| *kind == "session_ended").count(), 3);
    // From where ada signed in is known for a time.
    assert!(store.has_signed_in_from(name("ada"), "10.0.0.1".to_owned()).await.unwrap());
    assert!(!store.has_signed_in_from(name("bob"), "10.0.0.1".to_owned()).await.unwrap());
    store.prune(&fixture.term().await, at(31 * 86_400)).await.unwrap();
    assert!(!store.has_signed_in_from(name("ada"), "10.0.0.1".to_owned()).await.unwrap());
}

pub async fn sessions_of_one_operator_are_bounded(fixture: Fixture) {
    ada(&fixture).await;
    for number in 1..=SESSIONS_MAX + 2 {
        fixture.store.sign_in(sign_in(number, number.into(), UsedFactor::None)).await.ok().unwrap();
    }
    let left = fixture.store.sessions(None, at(60)).await.unwrap();
    assert_eq!(left.len(), SESSIONS_MAX as usize);
    assert!(fixture.store.session(token(2), at(60)).await.unwrap().is_none(), "the oldest went");
    assert!(fixture.store.session(token(SESSIONS_MAX + 2), at(60)).await.unwrap().is_some());
}

pub async fn a_password_change_ends_all_other_sessions_and_links(fixture: Fixture) {
    ada(&fixture).await;
    let store = &fixture.store;
    for number in 1..=2 {
        store.sign_in(sign_in(number, 1, UsedFactor::None)).await.ok().unwrap();
    }
    let link = NewSignInLink {
        operator: name("ada"),
        token: token(9),
        kind: SessionKind::Setup,
        expires_at: at(900),
    };
    store.add_sign_in_link(change(1), link).await.ok().unwrap();
    let stale = store.set_password(password(2, "next", Some("another"))).await;
    assert_eq!(refused(stale), SignInError::Refused);
    assert!(store.session(token(2), at(2)).await.unwrap().is_some(), "a refusal changed nothing");
    let new = NewPassword { keep: Some(token(1)), ..password(2, "next", Some("hash")) };
    store.set_password(new).await.ok().unwrap();
    assert!(store.session(token(1), at(3)).await.unwrap().is_some());
    assert!(store.session(token(2), at(3)).await.unwrap().is_none());
    let by_link = NewLinkSession {
        full: session(3, 3, SessionKind::Full),
        setup: session(3, 3, SessionKind::Setup),
        correlation: CORRELATION,
    };
    assert_eq!(refused(store.sign_in_by_link(token(9), by_link).await), SignInError::Link);
    // A sign-in that was checked against the password before.
    assert_eq!(refused(store.sign_in(sign_in(4, 4, UsedFactor::None)).await), SignInError::Refused);
    store.rehash_password(name("ada"), "old".to_owned(), "wrong".to_owned()).await.unwrap();
    store.rehash_password(name("ada"), "next".to_owned(), "hash".to_owned()).await.unwrap();
    assert!(store.sign_in(sign_in(4, 4, UsedFactor::None)).await.is_ok());
    let credentials = store.credentials(name("ada")).await.unwrap().unwrap();
    assert_eq!(
        (credentials.password.as_deref(), credentials.state.password_set_at),
        (Some("hash"), Some(at(2)))
    );
    let unknown =
        NewPassword { by: SignInChange { operator: name("cyd"), ..change(1) }, ..password(1, "x", None) };
    assert_eq!(refused(store.set_password(unknown).await), SignInError::Unknown { name: name("cyd") });
}

pub async fn each_step_and_each_recovery_code_is_used_once(fixture: Fixture) {
    ada(&fixture).await;
    let store = &fixture.store;
    let confirm = |sealed: &[u8], step| {
        let codes = vec![token(100), token(101)];
        let (by, sealed) = (change(1), sealed.to_vec());
        store.confirm_authenticator(ConfirmedAuthenticator { by, sealed, step: Step(step), codes })
    };
    assert_eq!(refused(confirm(b"one", 5).await), SignInError::NothingPending);
    store.begin_authenticator(name("ada"), b"one".to_vec()).await.ok().unwrap();
    // Until it is confirmed nothing is asked for.
    assert!(store.sign_in(sign_in(1, 1, UsedFactor::None)).await.is_ok());
    store.begin_authenticator(name("ada"), b"two".to_vec()).await.ok().unwrap();
    assert_eq!(refused(confirm(b"one", 5).await), SignInError::NothingPending);
    confirm(b"two", 5).await.ok().unwrap();
    assert_eq!(refused(confirm(b"two", 6).await), SignInError::NothingPending);
    let credentials = store.credentials(name("ada")).await.unwrap().unwrap();
    assert_eq!((credentials.state.totp_since, credentials.state.recovery_codes), (Some(at(1)), 2));
    assert!(credentials.pending.is_none() && credentials.authenticator.unwrap().last == Some(Step(5)));

    let attempt = |number, factor| store.sign_in(sign_in(number, 2, factor));
    for bad in [
        UsedFactor::None,
        UsedFactor::Step(Step(5)),
        UsedFactor::Step(Step(4)),
        UsedFactor::RecoveryCode(token(102)),
    ] {
        assert_eq!(refused(attempt(2, bad).await), SignInError::Refused);
    }
    // Two at once with the same code: one of them gets in.
    for factor in [UsedFactor::Step(Step(6)), UsedFactor::RecoveryCode(token(100))] {
        let (one, two) = tokio::join!(attempt(3, factor), attempt(4, factor));
        assert_ne!(one.is_ok(), two.is_ok());
    }
    let state = store.credentials(name("ada")).await.unwrap().unwrap().state;
    assert_eq!(state.recovery_codes, 1);
}

pub async fn a_link_opens_one_session_within_its_time(fixture: Fixture) {
    operator(&fixture.store, "ada").await;
    let store = &fixture.store;
    let link = |number, kind| NewSignInLink {
        operator: name("ada"),
        token: token(number),
        kind,
        expires_at: at(0) + LINK_LIFE,
    };
    let open = |number, second| {
        let full = NewSession { operator: None, ..session(number, second, SessionKind::Full) };
        let setup = NewSession { operator: None, ..session(number, second, SessionKind::Setup) };
        NewLinkSession { full, setup, correlation: CORRELATION }
    };
    let made = store.make_sign_in_link(claiming(0, "k", 1), link(1, SessionKind::Setup), Uuid::from_u128(1));
    let made = made.await.ok().unwrap();
    let again = store.make_sign_in_link(claiming(0, "k", 1), link(2, SessionKind::Setup), Uuid::from_u128(2));
    assert_eq!(again.await.ok().unwrap(), made);
    assert_eq!(refused(store.sign_in_by_link(token(1), open(11, 900)).await), SignInError::Link, "too late");
    let opened = store.sign_in_by_link(token(1), open(11, 899)).await.ok().unwrap();
    assert_eq!((opened.view.kind, opened.owner.name), (SessionKind::Setup, name("ada")));
    assert_eq!(refused(store.sign_in_by_link(token(1), open(12, 899)).await), SignInError::Link, "used");
    // A newer link ends the one before; the machine's own may open a whole session.
    store.add_sign_in_link(change(0), link(3, SessionKind::Full)).await.ok().unwrap();
    store.add_sign_in_link(change(0), link(4, SessionKind::Full)).await.ok().unwrap();
    assert_eq!(refused(store.sign_in_by_link(token(3), open(13, 1)).await), SignInError::Link);
    assert_eq!(store.sign_in_by_link(token(4), open(14, 1)).await.ok().unwrap().view.kind, SessionKind::Full);
    store.add_sign_in_link(change(0), link(5, SessionKind::Full)).await.ok().unwrap();
    store.revoke_operator(name("ada"), at(2), CORRELATION).await.ok().unwrap();
    assert_eq!(refused(store.sign_in_by_link(token(5), open(15, 3)).await), SignInError::Link);
    let unknown = store.make_sign_in_link(by(0), link(6, SessionKind::Setup), Uuid::from_u128(6)).await;
    assert_eq!(refused(unknown), SignInError::Unknown { name: name("ada") });
}

pub async fn refusals_are_written_down(fixture: Fixture) {
    let event = NewEvent {
        at: at(1),
        kind: EventKind::SignInRefused,
        host: None,
        actor: None,
        correlation: CORRELATION,
        message: "a sign-in was refused".to_owned(),
    };
    fixture.store.record_refusals(vec![event.clone(), event]).await.unwrap();
    assert_eq!(fixture.kinds().await, ["sign_in_refused"; 2]);
}
