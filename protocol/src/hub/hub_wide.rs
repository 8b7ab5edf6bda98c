//! Calls that need the scope everything, each with its reason.
//!
//! In: nothing. Out: beginnings of paths with a sentence each, for `docs/authorization.md`. A test holds this table to the
//! calls: each call that touches the hub has a row, and each row a call.

/// A group of calls, by how their paths begin, and why no narrower scope reaches them.
#[derive(Clone, Copy, Debug)]
pub struct HubWide {
    /// How their paths begin.
    pub paths: &'static str,
    /// Why.
    pub why: &'static str,
}

const fn row(paths: &'static str, why: &'static str) -> HubWide {
    HubWide { paths, why }
}

/// All of them.
pub const HUB_WIDE: &[HubWide] = &[
    row("/metrics", "one page for a monitoring system, of all hosts and of the hub itself"),
    row("/v1/alerts/explain", "it answers with the routes and receivers of everybody"),
    row("/v1/artifacts", "a file of a release goes to every host"),
    row("/v1/customers", "a new customer has no guest yet, so it lies in no part"),
    row(
        "/v1/deliveries",
        "receivers are the provider's, and one message may be about hosts of several parts",
    ),
    row("/v1/enrollment-requests", "a host that asks has no labels yet, so it lies in no part"),
    row(
        "/v1/hosts/{host}/labels",
        "labels decide who may touch a host: whoever sets them could widen their own scope",
    ),
    row("/v1/image-approvals", "an approval holds for all hosts"),
    row("/v1/invites", "a new host has no labels yet, and takes a name that all hosts share"),
    row("/v1/receivers", "receivers are the provider's addresses, for alerts of all hosts"),
    row("/v1/releases/", "a release is for every host, and one that is deleted is gone for all"),
    row("/v1/rollouts", "there is one rollout at a time, and its waves and limits count all its hosts"),
    row("/v1/state", "a snapshot is of the whole hub, with the digest of the whole"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::access::Object;
    use crate::hub::calls;
    use crate::hub::calls::Caller;

    #[test]
    fn each_call_that_touches_the_hub_has_a_reason_and_each_reason_a_call() {
        let paths: Vec<&str> = calls()
            .filter(|call| matches!(call.caller, Caller::Operator(access) if access.object == Object::Hub))
            .map(|call| call.path)
            .collect();
        for path in &paths {
            assert!(HUB_WIDE.iter().any(|row| path.starts_with(row.paths)), "{path} has no reason");
        }
        for row in HUB_WIDE {
            assert!(paths.iter().any(|path| path.starts_with(row.paths)), "{} is no call", row.paths);
        }
    }
}
