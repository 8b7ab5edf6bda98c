//! The hub's HTTP API as a table of calls.

pub mod agent_calls;
pub mod alert_calls;
pub mod approval_calls;
pub mod calls;
pub mod login_calls;
pub mod openapi;
pub mod order_calls;
pub mod release_calls;
pub mod rollout_calls;
pub mod tunnel_calls;

use calls::Call;

/// All calls, by table.
pub const TABLES: &[&[Call]] = &[
    agent_calls::CALLS,
    calls::CALLS,
    login_calls::CALLS,
    alert_calls::CALLS,
    approval_calls::CALLS,
    order_calls::CALLS,
    release_calls::CALLS,
    rollout_calls::CALLS,
    tunnel_calls::CALLS,
];

/// All calls.
pub fn calls() -> impl Iterator<Item = &'static Call> {
    TABLES.iter().copied().flatten()
}
