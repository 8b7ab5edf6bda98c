//! The provider as the settings describe it.

use holdfast_protocol::access::Grant;
use holdfast_protocol::id::OperatorName;
use holdfast_protocol::secret::Secret;

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
    use super::*;

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
