//! Roles with their scopes, and which of them contain which.
//!
//! In: a role and a scope. Out: a [`Grant`], and whether one grant covers another. Deliberately absent: which call needs
//! what, which is [`crate::hub::access`], and who has which grant, which the hub keeps.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::host_label::{HostLabels, LabelSelector};
use crate::id::CustomerId;

/// What a person or a token may do. Of viewer, operator and admin each may do what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Sees what belongs to one customer, and may object to jobs.
    Customer,
    /// May only read.
    Viewer,
    /// Invites, approves, puts desired documents.
    Operator,
    /// Makes and revokes operators.
    Admin,
}

impl Role {
    /// Every role, the least first.
    pub const ALL: [Self; 4] = [Self::Customer, Self::Viewer, Self::Operator, Self::Admin];

    /// As it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Customer => "customer",
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }
}

/// What a person or a token may touch. A scope only narrows what a role may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum AccessScope {
    /// Everything that the hub has.
    Everything {},
    /// Hosts with these labels, and what is on them.
    Hosts {
        /// All of these.
        labels: LabelSelector,
    },
    /// Guests of one customer, and what belongs to these.
    Customer {
        /// The customer.
        customer: CustomerId,
    },
}

impl Default for AccessScope {
    fn default() -> Self {
        Self::Everything {}
    }
}

/// What is known of an object when its scope is compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectFacts {
    /// The labels of the host that it is on.
    pub labels: HostLabels,
    /// The customer that it belongs to.
    pub customer: Option<CustomerId>,
}

impl AccessScope {
    /// Whether it narrows nothing.
    #[must_use]
    pub const fn is_everything(&self) -> bool {
        matches!(self, Self::Everything {})
    }

    /// Whether all that is in the other scope is in this one.
    #[must_use]
    pub fn contains(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Everything {}, _) => true,
            (Self::Hosts { labels }, Self::Hosts { labels: other }) => other.narrows(labels),
            (Self::Customer { customer }, Self::Customer { customer: other }) => customer == other,
            (Self::Hosts { .. } | Self::Customer { .. }, _) => false,
        }
    }

    /// Whether an object is in it.
    #[must_use]
    pub fn holds(&self, facts: &ObjectFacts) -> bool {
        match self {
            Self::Everything {} => true,
            Self::Hosts { labels } => labels.matches(&facts.labels),
            Self::Customer { customer } => facts.customer.as_ref() == Some(customer),
        }
    }
}

impl fmt::Display for AccessScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everything {} => f.write_str("everything"),
            Self::Hosts { labels } => write!(f, "hosts {labels}"),
            Self::Customer { customer } => write!(f, "customer {customer}"),
        }
    }
}

/// A role within a scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    role: Role,
    scope: AccessScope,
}

/// A role and a scope that do not go together. Nothing was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    /// A customer without a customer.
    #[error("the role customer has the scope of one customer: add --customer NAME")]
    CustomerMissing,
}

impl Grant {
    /// Puts a role and a scope together.
    ///
    /// # Errors
    /// [`GrantError`].
    pub fn new(role: Role, scope: AccessScope) -> Result<Self, GrantError> {
        match (role, &scope) {
            (Role::Customer, AccessScope::Everything {} | AccessScope::Hosts { .. }) => {
                Err(GrantError::CustomerMissing)
            }
            (Role::Customer, AccessScope::Customer { .. })
            | (Role::Viewer | Role::Operator | Role::Admin, _) => Ok(Self { role, scope }),
        }
    }

    /// What it allows.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.role
    }

    /// What it is for.
    #[must_use]
    pub const fn scope(&self) -> &AccessScope {
        &self.scope
    }

    /// Whether the other grant is no more than this one, in role and in scope.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self.role >= other.role && self.scope.contains(&other.scope)
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.role, &self.scope) {
            (Role::Customer, AccessScope::Customer { customer }) => write!(f, "customer of {customer}"),
            (role, scope) => write!(f, "{} of {scope}", role.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(selector: &str) -> AccessScope {
        AccessScope::Hosts { labels: selector.parse().unwrap() }
    }

    fn customer(name: &str) -> AccessScope {
        AccessScope::Customer { customer: name.parse().unwrap() }
    }

    #[test]
    fn a_scope_contains_what_is_narrower() {
        let all = AccessScope::Everything {};
        let table = [
            (all.clone(), all.clone(), true),
            (all.clone(), hosts("tier=canary"), true),
            (all.clone(), customer("acme"), true),
            (hosts("tier=canary"), all.clone(), false),
            (hosts("tier=canary"), hosts("tier=canary"), true),
            (hosts("tier=canary"), hosts("tier=canary+site=graz"), true),
            (hosts("tier=canary+site=graz"), hosts("tier=canary"), false),
            (hosts("tier=canary"), hosts("tier=prod"), false),
            (hosts("tier=canary"), customer("acme"), false),
            (customer("acme"), customer("acme"), true),
            (customer("acme"), customer("beta"), false),
            (customer("acme"), hosts("tier=canary"), false),
            (customer("acme"), all, false),
        ];
        for (one, other, wanted) in table {
            assert_eq!(one.contains(&other), wanted, "{one} contains {other}");
        }
    }

    #[test]
    fn a_grant_covers_less_and_never_more() {
        let grant = |role, scope| Grant::new(role, scope).unwrap();
        let all = AccessScope::Everything {};
        assert!(grant(Role::Admin, all.clone()).covers(&grant(Role::Admin, all.clone())));
        assert!(grant(Role::Operator, all.clone()).covers(&grant(Role::Customer, customer("acme"))));
        assert!(!grant(Role::Operator, all.clone()).covers(&grant(Role::Admin, customer("acme"))));
        assert!(!grant(Role::Admin, customer("acme")).covers(&grant(Role::Viewer, all.clone())));
        assert_eq!(Grant::new(Role::Customer, all), Err(GrantError::CustomerMissing));
        assert_eq!(Grant::new(Role::Customer, hosts("tier=x")), Err(GrantError::CustomerMissing));
    }

    #[test]
    fn a_scope_is_closed_on_the_wire() {
        for (text, good) in [
            (r#"{"kind":"everything"}"#, true),
            (r#"{"kind":"hosts","labels":{"tier":"canary"}}"#, true),
            (r#"{"kind":"customer","customer":"acme"}"#, true),
            (r#"{"kind":"everything","labels":{}}"#, false),
            (r#"{"kind":"hosts","labels":{}}"#, false),
            (r#"{"kind":"customer"}"#, false),
            (r#"{"kind":"all"}"#, false),
        ] {
            assert_eq!(serde_json::from_str::<AccessScope>(text).is_ok(), good, "{text}");
        }
    }
}
