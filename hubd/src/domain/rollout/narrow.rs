//! A rollout narrowed to some of its hosts.
//!
//! In: a rollout, and the names of its hosts that lie in a scope. Out: the same with these hosts alone. What selected the
//! hosts and why the rollout is held may name others, so both are left out, unless no host is. Deliberately absent: which
//! hosts lie in a scope, which the store says.

use std::collections::BTreeSet;

use holdfast_protocol::id::HostName;
use holdfast_protocol::release::rollout::RolloutView;

/// None where no host of it is inside.
#[must_use]
pub fn narrowed(mut view: RolloutView, inside: &BTreeSet<HostName>) -> Option<RolloutView> {
    let is_inside = |name: &HostName| inside.contains(name);
    let hosts = || view.waves.iter().flat_map(|wave| &wave.hosts).map(|host| &host.host);
    if !hosts().any(is_inside) {
        return None;
    }
    if hosts().all(is_inside) {
        return Some(view);
    }
    view.reason = None;
    for wave in &mut view.waves {
        wave.hosts.retain(|host| inside.contains(&host.host));
        wave.selects = None;
    }
    Some(view)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rollout() -> RolloutView {
        let host = |name: &str| json!({ "host": name, "state": "waiting" });
        let wave = |hosts: serde_json::Value| json!({ "hosts": hosts, "selects": { "count": 2 }, "max_failures": 0, "soak_s": 0, "timeout_s": 60 });
        serde_json::from_value(
            json!({ "number": 1, "version": "2026.11.1", "state": "held", "reason": "box2 failed",
            "by": "ada", "at": "2026-11-21T14:00:00Z",
            "waves": [wave(json!([host("box1"), host("box2")])), wave(json!([host("box3")]))] }),
        )
        .unwrap()
    }

    fn names(names: &[&str]) -> BTreeSet<HostName> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    #[test]
    fn hosts_outside_are_left_out_and_what_may_name_them() {
        let view = narrowed(rollout(), &names(&["box1", "box9"])).unwrap();
        let sizes: Vec<usize> = view.waves.iter().map(|wave| wave.hosts.len()).collect();
        assert_eq!(sizes, [1, 0], "the waves keep their numbers");
        assert_eq!((view.reason, view.waves[0].selects.clone()), (None, None));
    }

    #[test]
    fn nothing_is_left_out_where_all_are_inside_and_nothing_is_shown_where_none_is() {
        assert_eq!(narrowed(rollout(), &names(&["box1", "box2", "box3"])), Some(rollout()));
        assert_eq!(narrowed(rollout(), &names(&["box9"])), None);
    }
}
