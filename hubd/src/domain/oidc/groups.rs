//! What the groups of a person come to.
//!
//! In: the settings' groups, and the claims of a person. Out: what they may do. The first group of the settings that fits
//! counts.

use super::claims::Claims;
use super::provider::{GroupOutcome, ProviderSettings};

/// What a person may do by their groups.
#[must_use]
pub fn by_groups(provider: &ProviderSettings, claims: &Claims) -> GroupOutcome {
    let groups = claims.groups(provider);
    match provider.groups.iter().find(|one| groups.contains(&one.group)) {
        None => GroupOutcome::Nothing,
        Some(found) => {
            let name = claims.text(&provider.name_claim).and_then(|text| text.parse().ok());
            GroupOutcome::May { grant: found.grant.clone(), name }
        }
    }
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::access::{AccessScope, Grant};
    use holdfast_protocol::operator::Role;
    use jiff::Timestamp;
    use serde_json::{Value, json};

    use super::*;
    use crate::domain::oidc::claims::{Expected, check};
    use crate::domain::oidc::provider::GroupGrant;

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
        let outcome = |more: Value| by_groups(&provider, &claims(&provider, &more));
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
}
