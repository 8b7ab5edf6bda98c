//! Live changes of a running guest's network interface, and their failures.
//!
//! In: the interface's old value and the requested one. Out: nothing, or the error text of the step that fails. On the real node the
//! interface is plugged into its bridge again, and any failure there fails the whole call.
use crate::die;
use crate::fail::{Fallible, Refusal};
use crate::node::{HotMounts, Node};
use crate::schema::property::{self, Properties};

use super::options::numbered;

/// Whether an interface can be plugged as `new` says. `at` is the guest and the option.
///
/// # Errors
/// An unknown bridge, a tag where the bridge leads nowhere, a rate that the node's kernel does not keep.
pub fn check(node: &Node, at: (u32, &str), old: Option<&str>, new: &str) -> Fallible<()> {
    let (held, wanted) = (old.map(|old| read(node, old)), read(node, new));
    let bridge = wanted.get("bridge").map_or("", String::as_str);
    if !crate::call::node::has_bridge(node, bridge) {
        match held {
            Some(_) => die!("interface {bridge} does not exist"),
            None => die!("bridge '{bridge}' does not exist"),
        }
    }
    let changes = |keys: &[&str]| {
        held.as_ref().is_none_or(|held| keys.iter().any(|key| held.get(*key) != wanted.get(*key)))
    };
    if wanted.contains_key("tag") && changes(&["tag", "bridge"]) && leads_nowhere(node, bridge) {
        die!("no physical interface on bridge '{bridge}'");
    }
    let rate = wanted.get("rate").and_then(|rate| rate.parse::<f64>().ok()).filter(|rate| *rate > 0.0);
    if let Some(rate) = rate.filter(|_| changes(&["rate"])) {
        limit(node, at, rate)?;
    }
    Ok(())
}

/// The error text as it is reported. For an interface that existed before, the real text ends with one more line break.
#[must_use]
pub fn reported(old: Option<&str>, refusal: &Refusal) -> String {
    format!("{}{}", refusal.in_task(), if old.is_some() { "\n" } else { "" })
}

fn read(node: &Node, value: &str) -> Properties {
    let format = node.table.format("net");
    format.and_then(|format| property::parse(&node.table, format, value).ok()).unwrap_or_default()
}

/// A bridge without a port of the node, which does not know VLANs itself.
fn leads_nowhere(node: &Node, bridge: &str) -> bool {
    let rows = crate::call::node::bridges(node);
    let word = |row: &serde_json::Map<String, serde_json::Value>, key: &str| {
        row.get(key).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
    };
    let own = rows.iter().find(|row| word(row, "iface") == bridge);
    own.is_some_and(|row| word(row, "bridge_ports").is_empty() && word(row, "bridge_vlan_aware") != "yes")
}

/// The kernel that lacks AppArmor, the recorded one, has no traffic control either.
fn limit(node: &Node, (vmid, option): (u32, &str), rate_mib_s: f64) -> Fallible<()> {
    match node.settings.hot_mounts {
        HotMounts::Work => Ok(()),
        HotMounts::NoAppArmor => {
            let number = numbered(option, "net").unwrap_or_default();
            let bytes_s = rate_mib_s * 1024.0 * 1024.0;
            die!(
                "command '/sbin/tc filter add dev veth{vmid}i{number} parent ffff: prio 50 basic police rate {bytes_s:.0}bps burst 1048576b mtu 64kb drop' failed: exit code 2"
            )
        }
    }
}
