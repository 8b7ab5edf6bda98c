//! State of the node.
use serde_json::{Map, Value, json};

use super::{Call, Handler, Reply, data};
use crate::node::Node;

/// The code of a call of this group.
#[must_use]
pub fn handler(at: &str) -> Option<Handler> {
    Some(match at {
        "GET /version" | "GET /nodes/{node}/version" => {
            |_| data(json!({"version": "9.2.11", "release": "9.2", "repoid": "14a22df35955d97d"}))
        }
        "GET /nodes" => nodes,
        "GET /nodes/{node}/status" => status,
        "GET /nodes/{node}/time" => |call| {
            let now_s = call.node.clock.now_s();
            data(json!({"timezone": "Etc/UTC", "time": now_s, "localtime": now_s}))
        },
        "GET /nodes/{node}/network" => network,
        "GET /nodes/{node}/qemu" | "GET /nodes/{node}/aplinfo" | "GET /nodes/{node}/sdn/zones" => {
            |_| data(Vec::<Value>::new())
        }
        "GET /nodes/{node}/capabilities" => |_| data(vec![json!({"name": "qemu"})]),
        "GET /nodes/{node}/dns" => |_| data(json!({"dns1": "127.0.0.1"})),
        "GET /nodes/{node}/subscription" => subscription,
        _ => return None,
    })
}

/// Only a caller that may audit the node sees the server's own number.
fn subscription(call: &Call<'_>) -> Reply {
    let mut shown = json!({
        "status": "notfound", "message": "There is no subscription key",
        "url": "https://www.proxmox.com/en/proxmox-virtual-environment/pricing",
    });
    let path = format!("/nodes/{}", call.node.name);
    let audits = call.node.world().judge(&call.who).has(&path, &["Sys.Audit"]);
    if let Some(map) = shown.as_object_mut().filter(|_| audits) {
        map.insert("serverid".to_owned(), json!("AAAABBBBCCCCDDDDEEEEFFFF00001111"));
    }
    data(shown)
}

/// Figures of the node, measured on the machine that plays it.
#[must_use]
pub fn figures(uptime_s: i64) -> Map<String, Value> {
    let (memory, space) = (memory(), disk());
    let row = json!({
        "cpu": 0.05, "maxcpu": cores(), "mem": memory.used, "maxmem": memory.total, "disk": space.used, "maxdisk": space.total, "uptime": uptime_s,
    });
    if let Value::Object(map) = row { map } else { Map::new() }
}

/// Used and total bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Space {
    pub total: u64,
    pub used: u64,
    /// Left for ordinary users.
    pub avail: u64,
    /// Left at all.
    pub free: u64,
}

/// The disk of the node. Other files on the disk of the machine that runs the simulator do not change it.
#[must_use]
pub const fn disk() -> Space {
    const GIB: u64 = 1 << 30;
    Space { total: 256 * GIB, used: 64 * GIB, avail: 192 * GIB, free: 192 * GIB }
}

/// Of the filesystem with this path; on the one with the state folder (`root`) it is the node's disk.
#[must_use]
pub fn space_of(root: &std::path::Path, path: &std::path::Path) -> Space {
    use std::os::unix::fs::MetadataExt as _;
    let device = |path: &std::path::Path| std::fs::metadata(path).map(|found| found.dev()).ok();
    if device(path).is_some_and(|found| device(root) == Some(found)) {
        return disk();
    }
    rustix::fs::statvfs(path).map_or_else(
        |_| Space::default(),
        |found| Space {
            total: found.f_blocks * found.f_frsize,
            used: (found.f_blocks - found.f_bfree) * found.f_frsize,
            avail: found.f_bavail * found.f_frsize,
            free: found.f_bfree * found.f_frsize,
        },
    )
}

/// The memory of the node, independent of the machine that runs the simulator.
const fn memory() -> Space {
    const GIB: u64 = 1 << 30;
    Space { total: 64 * GIB, used: 8 * GIB, avail: 56 * GIB, free: 48 * GIB }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// For how long the node is up at this moment of the even time: longer than any guest.
#[must_use]
pub const fn uptime_s(even_s: i64) -> i64 {
    const UP_BEFORE_S: i64 = 400_000_000;
    even_s.rem_euclid(UP_BEFORE_S) + UP_BEFORE_S
}

fn nodes(call: &Call<'_>) -> Reply {
    let node = call.node;
    let mut row = json!({
        "node": node.name, "id": format!("node/{}", node.name), "type": "node", "status": "online", "level": "",
        "ssl_fingerprint": node.settings.fingerprint,
    });
    if node.world().judge(&call.who).has(&format!("/nodes/{}", node.name), &["Sys.Audit"])
        && let Some(map) = row.as_object_mut()
    {
        map.extend(figures(uptime_s(node.settable.even_s())));
        crate::fault::usage::show(&node.paths.run(), None, map);
    }
    data(vec![row])
}

fn status(call: &Call<'_>) -> Reply {
    let (memory, space) = (memory(), disk());
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let release = kernel.trim();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: Vec<&str> = load.split_whitespace().take(3).collect();
    data(json!({
        "pveversion": "pve-manager/9.2.11/14a22df35955d97d", "kversion": format!("Linux {release} #1 SMP PREEMPT_DYNAMIC"),
        "current-kernel": {"sysname": "Linux", "release": release, "version": "#1 SMP PREEMPT_DYNAMIC", "machine": "x86_64"},
        "boot-info": {"mode": "legacy-bios"}, "uptime": uptime_s(call.node.settable.even_s()), "cpu": 0.05, "idle": 0, "wait": 0.0, "loadavg": load,
        "cpuinfo": {
            "cpus": cores(), "cores": cores(), "sockets": 1, "model": "simulated", "vendor": "simulated", "family": "6", "mhz": "2500.000", "flags": "",
            "hvm": "", "user_hz": 100,
        },
        "memory": {"total": memory.total, "used": memory.used, "available": memory.avail, "free": memory.free},
        "swap": {"total": 0, "used": 0, "free": 0}, "ksm": {"shared": 0},
        "rootfs": {"total": space.total, "used": space.used, "avail": space.avail, "free": space.free},
    }))
}

/// Bridges of the node, from the seeded `interfaces` file.
#[must_use]
pub fn bridges(node: &Node) -> Vec<Map<String, Value>> {
    let text = std::fs::read_to_string(node.paths.etc("interfaces")).unwrap_or_default();
    let mut found: Vec<Map<String, Value>> = Vec::new();
    let auto: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("auto ")).map(str::trim).collect();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["iface", name, "inet", method] if *name != "lo" => {
                let row = json!({
                    "iface": name, "type": "eth", "method": method, "method6": "manual", "active": 1, "priority": found.len() + 3, "families": ["inet"],
                });
                let mut row = if let Value::Object(map) = row { map } else { Map::new() };
                if auto.contains(name) {
                    row.insert("autostart".into(), json!(1));
                }
                found.push(row);
            }
            [key, value @ ..] if line.starts_with(['\t', ' ']) => {
                if let Some(row) = found.last_mut() {
                    interface_property(row, key, &value.join(" "));
                }
            }
            _ => {}
        }
    }
    found
}

fn interface_property(row: &mut Map<String, Value>, key: &str, value: &str) {
    match key {
        "address" => {
            let (address, bits) = value.split_once('/').unwrap_or((value, "24"));
            row.extend(
                [("cidr", value), ("address", address), ("netmask", bits)]
                    .map(|(key, text)| (key.to_owned(), json!(text))),
            );
        }
        "bridge-ports" => {
            let ports = if value == "none" { "" } else { value };
            row.extend([("type".to_owned(), json!("bridge")), ("bridge_ports".to_owned(), json!(ports))]);
        }
        "bridge-stp" => drop(row.insert("bridge_stp".into(), json!(value))),
        "bridge-fd" => drop(row.insert("bridge_fd".into(), json!(value))),
        "bridge-vlan-aware" => drop(row.insert("bridge_vlan_aware".into(), json!(value))),
        "gateway" => drop(row.insert("gateway".into(), json!(value))),
        _ => {}
    }
}

/// Whether a bridge exists.
#[must_use]
pub fn has_bridge(node: &Node, name: &str) -> bool {
    bridges(node).iter().any(|row| row.get("iface").and_then(Value::as_str) == Some(name))
}

fn network(call: &Call<'_>) -> Reply {
    let world = call.node.world();
    let judge = world.judge(&call.who);
    let kind = call.text("type");
    let mut rows = bridges(call.node);
    rows.retain(|row| {
        let held = row.get("type").and_then(Value::as_str).unwrap_or_default();
        let name = row.get("iface").and_then(Value::as_str).unwrap_or_default();
        // A bridge is a zone's network: a caller that may not use or audit it there does not see it here.
        let visible = held != "bridge"
            || judge.has_any(&format!("/sdn/zones/localnetwork/{name}"), &["SDN.Audit", "SDN.Use"]);
        let fits = match kind.as_deref() {
            None => true,
            Some("any_bridge" | "any_local_bridge" | "include_sdn") => held == "bridge",
            Some(other) => other == held,
        };
        fits && visible
    });
    data(rows.into_iter().map(Value::Object).collect::<Vec<_>>())
}
