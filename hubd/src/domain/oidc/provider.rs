//! The provider as the settings describe it, and what its groups may do.

use holdfast_protocol::access::Grant;
use holdfast_protocol::id::OperatorName;
use holdfast_protocol::secret::Secret;

use super::claims::Claims;

/// A provider of identities. There is at most one.
#[derive(Clone, Debug)]
pub struct ProviderSettings {
    /// As its tokens name it, to the letter.
    pub issuer: String,
    /// What the button of the sign-in page says.
    pub name: String,
    /// What the provider calls this hub.
    pub client_id: String,
    /// None for a client without one: PKCE alone proves it then.
    pub client_secret: Option<Secret>,
    /// What is asked for, next to `openid`.
    pub scopes: Vec<String>,
    /// The claim by which an admin may let a person in before their first sign-in.
    pub person_claim: String,
    /// The claim that names an operator whom a group makes.
    pub name_claim: String,
    /// The claim with the groups.
    pub group_claim: String,
    /// What people may do who are in a group. The first that fits counts.
    pub groups: Vec<GroupGrant>,
    /// CA certificates of the provider, as PEM, next to those of the system.
    pub ca_pem: Option<Vec<u8>>,
}

/// What the people of one group may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupGrant {
    pub group: String,
    pub grant: Grant,
}

/// What the groups of a person come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupOutcome {
    /// The settings name none of them, or no groups at all.
    Nothing,
    /// May do this. Without a name nobody can be made.
    May { grant: Grant, name: Option<OperatorName> },
}

impl ProviderSettings {
    /// What a person may do by their groups.
    #[must_use]
    pub fn by_groups(&self, claims: &Claims) -> GroupOutcome {
        let groups = claims.groups(self);
        match self.groups.iter().find(|one| groups.contains(&one.group)) {
            None => GroupOutcome::Nothing,
            Some(found) => {
                let name = claims.text(&self.name_claim).and_then(|text| text.parse().ok());
                GroupOutcome::May { grant: found.grant.clone(), name }
            }
        }
    }

    /// Where the provider publishes how it is reached.
    #[must_use]
    pub fn discovery_url(&self) -> String {
        format!("{}/.well-known/openid-configuration", self.issuer.trim_end_matches('/'))
    }

    /// A provider with usual settings.
    #[cfg(test)]
    pub(super) fn for_tests(issuer: &str, client_id: &str) -> Self {
        Self {
            issuer: issuer.to_owned(),
            name: "Example".to_owned(),
            client_id: client_id.to_owned(),
            client_secret: None,
            scopes: Vec::new(),
            person_claim: "email".to_owned(),
            name_claim: "preferred_username".to_owned(),
            group_claim: "groups".to_owned(),
            groups: Vec::new(),
            ca_pem: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::access::AccessScope;
    use holdfast_protocol::operator::Role;
    use jiff::Timestamp;
    use serde_json::{Value, json};

    use super::*;
    use crate::domain::oidc::claims::{Expected, check};

    fn claims(provider: &ProviderSettings, more: &Value) -> Claims {
        let mut claims = json!({ "iss": provider.issuer, "sub": "s", "aud": provider.client_id,
            "exp": 1_700_000_300, "iat": 1_700_000_000, "nonce": "n" });
        for (name, value) in more.as_object().unwrap() {
            claims[name] = value.clone();
        }
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        check(claims.to_string().as_bytes(), Expected { provider, nonce: "n", now }).unwrap()
    }

    #[test]
    fn the_first_group_that_fits_says_what_a_person_may_do() {
        let of = |group: &str, role| {
            let grant = Grant::new(role, AccessScope::default()).unwrap();
            GroupGrant { group: group.to_owned(), grant }
        };
        let mut provider = ProviderSettings::for_tests("https://login.example", "holdfast");
        provider.groups = vec![of("watchers", Role::Viewer), of("admins", Role::Admin)];
        let outcome = |more: Value| provider.by_groups(&claims(&provider, &more));
        let may = |role, name: Option<&str>| GroupOutcome::May {
            grant: Grant::new(role, AccessScope::default()).unwrap(),
            name: name.map(|name| name.parse().unwrap()),
        };
        let named = |groups: Value| json!({ "groups": groups, "preferred_username": "ada" });
        assert_eq!(outcome(named(json!(["admins", "watchers"]))), may(Role::Viewer, Some("ada")));
        assert_eq!(outcome(named(json!("admins"))), may(Role::Admin, Some("ada")));
        assert_eq!(outcome(json!({ "groups": ["admins"] })), may(Role::Admin, None));
        let unwritable = json!({ "groups": ["admins"], "preferred_username": "a da" });
        assert_eq!(outcome(unwritable), may(Role::Admin, None));
        for none in
            [json!({}), named(json!([])), named(json!(["Admins", "admin"])), named(json!({ "admins": 1 }))]
        {
            assert_eq!(outcome(none.clone()), GroupOutcome::Nothing, "{none}");
        }
    }

    #[test]
    fn discovery_is_below_the_issuer() {
        for issuer in ["https://login.example/realm", "https://login.example/realm/"] {
            let provider = ProviderSettings::for_tests(issuer, "h");
            assert_eq!(
                provider.discovery_url(),
                "https://login.example/realm/.well-known/openid-configuration"
            );
        }
    }
}
