//! The hub's HTTP API as a table of calls.

pub mod access;
pub mod agent_calls;
pub mod alert_calls;
pub mod approval_calls;
pub mod calls;
pub mod customer_calls;
pub mod hub_wide;
pub mod login_calls;
pub mod oidc_calls;
pub mod openapi;
pub mod order_calls;
pub mod release_calls;
pub mod resource_calls;
pub mod rollout_calls;
pub mod state_calls;
pub mod token_calls;
pub mod tunnel_calls;

use calls::Call;

/// All calls, by table.
pub const TABLES: &[&[Call]] = &[
    agent_calls::CALLS,
    calls::CALLS,
    login_calls::CALLS,
    oidc_calls::CALLS,
    alert_calls::CALLS,
    approval_calls::CALLS,
    order_calls::CALLS,
    release_calls::CALLS,
    resource_calls::GUESTS,
    resource_calls::VOLUMES,
    resource_calls::STORAGE_TARGETS,
    resource_calls::POLICIES,
    resource_calls::VERSIONS,
    rollout_calls::CALLS,
    state_calls::CALLS,
    tunnel_calls::CALLS,
    customer_calls::CALLS,
    token_calls::CALLS,
];

/// All calls.
pub fn calls() -> impl Iterator<Item = &'static Call> {
    TABLES.iter().copied().flatten()
}
