//! SQL of what waits for hosts: signed jobs, work orders, maintenance.
//!
//! Each text is part of a larger statement and is answered by a partial index that is mostly empty. The order in the first
//! text names that index: without it the server's estimates may prefer to read a whole table.

/// Whether nothing waits for any host.
macro_rules! nothing_waits {
    () => {
        "(SELECT host FROM jobs WHERE queue_state = 'queued' ORDER BY host, number LIMIT 1) IS NULL
        AND (SELECT host FROM work_orders WHERE waits = 1 ORDER BY host, number LIMIT 1) IS NULL
        AND (SELECT decode(replace(scope, '-', ''), 'hex') FROM alert_scopes
            WHERE scope <> 'hub' AND jsonb_array_length(stored_json(body) -> 'maintenance') > 0
            ORDER BY decode(replace(scope, '-', ''), 'hex') LIMIT 1) IS NULL"
    };
}

/// Whether something waits for the host of this row of `hosts`.
macro_rules! waits_for_host {
    () => {
        "EXISTS (SELECT FROM jobs WHERE jobs.host = hosts.number AND jobs.queue_state = 'queued')
        OR EXISTS (SELECT FROM work_orders WHERE work_orders.host = hosts.number AND work_orders.waits = 1)
        OR EXISTS (SELECT FROM alert_scopes WHERE decode(replace(alert_scopes.scope, '-', ''), 'hex') = hosts.id
            AND alert_scopes.scope <> 'hub' AND jsonb_array_length(stored_json(alert_scopes.body) -> 'maintenance') > 0)"
    };
}

pub(super) use {nothing_waits, waits_for_host};
