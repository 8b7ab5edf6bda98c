//! A person's role and scope, changed in place.
//!
//! | call | request | answer |
//! | --- | --- | --- |
//! | `GET /v1/operators/{name}` | | [`crate::operator::OperatorView`], ETag is [`grant_tag`] in quotes |
//! | `PUT /v1/operators/{name}/grant`, `If-Match` | [`GrantPut`] | [`GrantChanged`] |

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::access::{AccessScope, Role};
use crate::id::OperatorName;
use crate::operator::OperatorView;

/// A new role and scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrantPut {
    /// What they may do from now on.
    pub role: Role,
    /// What they may touch from now on.
    #[serde(default, skip_serializing_if = "AccessScope::is_everything")]
    pub scope: AccessScope,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrantChanged {
    /// The person as they are now.
    pub operator: OperatorView,
    /// Machine tokens of theirs that ended, since they were more than their maker is now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended_tokens: Vec<OperatorName>,
}

/// A role and a scope in one word. It is the same as long as both are.
#[must_use]
pub fn grant_tag(role: Role, scope: &AccessScope) -> String {
    format!("{} of {scope}", role.as_str()).replace(' ', ".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_differs_with_the_role_and_with_the_scope() {
        let hosts = AccessScope::Hosts { labels: "site=vienna+tier=x".parse().unwrap() };
        assert_eq!(grant_tag(Role::Operator, &hosts), "operator.of.hosts.site=vienna+tier=x");
        assert_eq!(grant_tag(Role::Viewer, &AccessScope::Everything {}), "viewer.of.everything");
        let customer = AccessScope::Customer { customer: "acme".parse().unwrap() };
        assert_eq!(grant_tag(Role::Customer, &customer), "customer.of.customer.acme");
    }
}
