//! Links with persons of a provider, and sign-ins by them.

use holdfast_protocol::access::{AccessScope, Grant};
use holdfast_protocol::id::{OperatorName, SessionId};
use holdfast_protocol::oidc::{LinkOrigin, ProviderPerson};
use holdfast_protocol::operator::Role;
use holdfast_protocol::secret::{Secret, TokenHash};
use holdfast_protocol::sign_in::SessionKind;
use hubd::domain::oidc::provider::GroupOutcome;
use hubd::domain::sign_in::SignInRules;
use hubd::store::{
    EventFilter, NewOidcSignIn, NewOperator, NewProviderLink, NewSession, OidcSignInError, ProviderIdentity,
    ProviderLinkError, SharedStore, SignInChange, WriteError,
};
use uuid::Uuid;

use super::fixture::{CORRELATION, Fixture, at, by};

const ISSUER: &str = "https://login.example";

fn name(text: &str) -> OperatorName {
    text.parse().unwrap()
}

fn token(number: u32) -> TokenHash {
    Secret::new(format!("token {number}")).hash()
}

fn grant(role: Role) -> Grant {
    Grant::new(role, AccessScope::default()).unwrap()
}

async fn operator(store: &SharedStore, text: &str) {
    let token = Secret::new(format!("bearer of {text}")).hash();
    let (expires_at, at) = (at(1_000_000), at(0));
    let new = NewOperator {
        name: name(text),
        grant: grant(Role::Operator),
        token,
        expires_at,
        at,
        correlation: CORRELATION,
    };
    store.add_operator(new).await.ok().unwrap();
}

fn sign_in(number: u32, subject: &str, person: Option<&str>, groups: GroupOutcome) -> NewOidcSignIn {
    let now = at(i64::from(number));
    NewOidcSignIn {
        identity: ProviderIdentity {
            issuer: ISSUER.to_owned(),
            subject: subject.to_owned(),
            person: person.map(str::to_owned),
        },
        groups,
        provider: "Example".to_owned(),
        session: NewSession {
            token: token(number),
            id: SessionId::new(Uuid::from_u128(number.into())),
            operator: None,
            kind: SessionKind::Full,
            at: now,
            ends: SignInRules::default().ends(SessionKind::Full, now),
            address: "10.0.0.1".to_owned(),
            user_agent: "a browser".to_owned(),
        },
        correlation: CORRELATION,
    }
}

fn subject(text: &str) -> ProviderPerson {
    ProviderPerson::Subject { subject: text.to_owned() }
}

fn claim(text: &str) -> ProviderPerson {
    ProviderPerson::Claim { value: text.to_owned() }
}

async fn link(store: &SharedStore, who: &str, person: ProviderPerson) -> Result<(), ProviderLinkError> {
    let by = SignInChange { operator: name(who), actor: None, at: at(1), correlation: CORRELATION };
    let new = NewProviderLink { operator: name(who), issuer: ISSUER.to_owned(), person };
    match store.add_provider_link(by, new).await {
        Ok(_) => Ok(()),
        Err(WriteError::Refused(error)) => Err(error),
        Err(WriteError::KeyReused) => panic!("no key was sent"),
        Err(WriteError::Store(error)) => panic!("the store failed: {error:?}"),
    }
}

async fn enter(store: &SharedStore, new: NewOidcSignIn) -> Result<(OperatorName, Role), OidcSignInError> {
    match store.sign_in_by_provider(new).await {
        Ok(opened) => Ok((opened.owner.name, opened.owner.grant.role())),
        Err(WriteError::Refused(error)) => Err(error),
        Err(WriteError::KeyReused) => panic!("no key was sent"),
        Err(WriteError::Store(error)) => panic!("the store failed: {error:?}"),
    }
}

pub async fn a_linked_person_of_the_provider_is_their_operator(fixture: Fixture) {
    operator(&fixture.store, "ada").await;
    operator(&fixture.store, "bob").await;
    let (store, (other, _writer)) = (&fixture.store, fixture.second());
    let nothing = GroupOutcome::Nothing;
    let unlinked = OidcSignInError::Unlinked { subject: "s1".to_owned() };
    assert_eq!(enter(store, sign_in(1, "s1", Some("ada@x"), nothing.clone())).await, Err(unlinked.clone()));
    assert_eq!(
        link(store, "eve", subject("s1")).await,
        Err(ProviderLinkError::Unknown { name: name("eve") })
    );
    link(store, "ada", claim("ada@x")).await.unwrap();
    // Another address, one that the provider does not vouch for, and another provider are nobody.
    for person in [Some("eve@x"), None] {
        assert_eq!(enter(store, sign_in(1, "s1", person, nothing.clone())).await, Err(unlinked.clone()));
    }
    let mut elsewhere = sign_in(1, "s1", Some("ada@x"), nothing.clone());
    elsewhere.identity.issuer = "https://other.example".to_owned();
    assert_eq!(enter(store, elsewhere).await, Err(unlinked.clone()));
    assert!(other.session(token(1), at(1)).await.unwrap().is_none());

    let entered = enter(store, sign_in(2, "s1", Some("ada@x"), nothing.clone())).await;
    assert_eq!(entered, Ok((name("ada"), Role::Operator)));
    assert_eq!(other.session(token(2), at(3)).await.unwrap().unwrap().owner.name, name("ada"));
    let kept = other.provider_link(name("ada")).await.unwrap().unwrap();
    assert_eq!((kept.person, kept.origin), (subject("s1"), LinkOrigin::Admin));
    // From now on the subject counts, and who gets the address later is nobody.
    let later = sign_in(3, "s2", Some("ada@x"), nothing.clone());
    assert_eq!(enter(store, later).await, Err(OidcSignInError::Unlinked { subject: "s2".to_owned() }));
    assert!(enter(store, sign_in(4, "s1", Some("new@x"), nothing.clone())).await.is_ok());
    let taken = ProviderLinkError::Taken { name: name("ada") };
    assert_eq!(link(store, "bob", subject("s1")).await, Err(taken));

    let new = NewProviderLink { operator: name("bob"), issuer: ISSUER.to_owned(), person: subject("s3") };
    store.link_provider(by(5), new).await.ok().unwrap();
    assert!(enter(store, sign_in(6, "s3", None, nothing.clone())).await.is_ok());
    store.unlink_provider(by(7), name("bob")).await.ok().unwrap();
    assert!(other.session(token(6), at(7)).await.unwrap().is_none(), "it ended with the link");
    assert!(enter(store, sign_in(8, "s3", None, nothing.clone())).await.is_err());
    let gone = store.unlink_provider(by(8), name("bob")).await;
    assert!(matches!(gone, Err(WriteError::Refused(ProviderLinkError::NoLink { .. }))));

    store.revoke_operator(name("ada"), at(9), CORRELATION).await.ok().unwrap();
    let removed = enter(store, sign_in(10, "s1", None, nothing)).await;
    assert_eq!(removed, Err(OidcSignInError::Removed { name: name("ada") }));
    // The person may be linked with another operator then.
    link(store, "bob", subject("s1")).await.unwrap();
}

pub async fn a_group_makes_an_operator_who_is_never_more_than_it(fixture: Fixture) {
    operator(&fixture.store, "ada").await;
    let (store, (other, _writer)) = (&fixture.store, fixture.second());
    let may = |role, who: Option<&str>| GroupOutcome::May { grant: grant(role), name: who.map(name) };
    assert_eq!(
        enter(store, sign_in(1, "s1", None, may(Role::Admin, None))).await,
        Err(OidcSignInError::Unnamed)
    );
    let taken = OidcSignInError::Taken { name: name("ada"), subject: "s1".to_owned() };
    assert_eq!(enter(store, sign_in(1, "s1", None, may(Role::Admin, Some("ada")))).await, Err(taken));

    let made = enter(store, sign_in(2, "s1", None, may(Role::Admin, Some("bob")))).await;
    assert_eq!(made, Ok((name("bob"), Role::Admin)));
    assert_eq!(other.provider_link(name("bob")).await.unwrap().unwrap().origin, LinkOrigin::Group);
    assert!(matches!(link(store, "bob", subject("s9")).await, Err(ProviderLinkError::OfGroup { .. })));
    // Another name at the provider is the same person; another group changes what they may do, also in sessions before.
    let changed = enter(store, sign_in(3, "s1", None, may(Role::Viewer, Some("robert")))).await;
    assert_eq!(changed, Ok((name("bob"), Role::Viewer)));
    assert_eq!(other.session(token(2), at(4)).await.unwrap().unwrap().owner.grant.role(), Role::Viewer);
    let out = enter(store, sign_in(5, "s1", None, GroupOutcome::Nothing)).await;
    assert_eq!(out, Err(OidcSignInError::NoGroup { name: name("bob") }));
    // Whom an admin linked has what the admin gave them, whatever the groups say.
    link(store, "ada", subject("s2")).await.unwrap();
    let linked = enter(store, sign_in(6, "s2", None, may(Role::Admin, Some("ada")))).await;
    assert_eq!(linked, Ok((name("ada"), Role::Operator)));

    let events = other.events(EventFilter::default(), 100).await.unwrap();
    for kind in ["operator_added", "provider_grant_changed", "provider_linked", "signed_in"] {
        assert!(events.iter().any(|event| event.kind == kind), "{kind}");
    }
    store.revoke_operator(name("bob"), at(7), CORRELATION).await.ok().unwrap();
    let back = enter(store, sign_in(8, "s1", None, may(Role::Admin, Some("bob")))).await;
    assert_eq!(back, Err(OidcSignInError::Removed { name: name("bob") }));
}
