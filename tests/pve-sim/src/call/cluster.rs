//! State of the cluster: resources, free VMIDs, status.
use std::sync::PoisonError;

use serde_json::{Map, Value, json};

use super::{Call, Handler, Reply, data};
use crate::fail::Refusal;
use crate::guest::options::{Mount, Origin, mounts};
use crate::node::{Figures, Node, World};
use crate::round::Round;

/// The code of a call of this group.
#[must_use]
pub fn handler(at: &str) -> Option<Handler> {
    Some(match at {
        "GET /cluster/nextid" => nextid,
        "GET /cluster/resources" => resources,
        "GET /cluster/status" => status,
        "GET /cluster/tasks" => super::task::newest,
        "GET /cluster/options" => options,
        "GET /cluster/backup" => |_| data(Vec::<Value>::new()),
        "GET /cluster/backup-info/not-backed-up" => not_backed_up,
        "GET /cluster/sdn/zones" | "GET /cluster/sdn/vnets" => |_| data(Vec::<Value>::new()),
        _ => return None,
    })
}

/// Tags may be chosen freely; offered are those of all guests that the caller may see.
fn options(call: &Call<'_>) -> Reply {
    let world = call.node.world();
    let judge = world.judge(&call.who);
    let seen =
        world.guests.all().iter().filter(|(vmid, _)| judge.has(&format!("/vms/{vmid}"), &["VM.Audit"]));
    let tags: std::collections::BTreeSet<&str> = seen
        .filter_map(|(_, config)| config.main.get("tags"))
        .flat_map(crate::schema::format::split_list)
        .collect();
    data(json!({"allowed-tags": tags}))
}

fn nextid(call: &Call<'_>) -> Reply {
    let world = call.node.world();
    if let Some(text) = call.text("vmid") {
        let vmid: u32 = text.parse().unwrap_or_default();
        if world.guests.has(vmid) {
            return Err(Refusal::param("vmid", format!("VM {vmid} already exists")));
        }
        return data(text);
    }
    let free = (100..=999_999_999_u32).find(|vmid| !world.guests.has(*vmid));
    free.map_or_else(
        || Err(Refusal::die("unable to get any free VMID in range [100, 1000000]")),
        |vmid| data(vmid.to_string()),
    )
}

/// The figures of a guest that every list of guests shows.
#[must_use]
pub fn guest_figures(node: &Node, world: &World, vmid: u32) -> Option<Map<String, Value>> {
    let config = world.guests.get(vmid).ok()?;
    let number =
        |key: &str, default: i64| config.main.get(key).and_then(|text| text.parse().ok()).unwrap_or(default);
    let running = node.power.running(vmid);
    let root = mounts(&node.table, &config.main).into_iter().find(|mount| mount.key == "rootfs");
    let size = root.as_ref().and_then(Mount::size).filter(|size| *size > 0).unwrap_or(4 << 30);
    let up = running.is_some();
    let used = running
        .as_ref()
        .and(root)
        .filter(|mount| mount.origin() == Origin::Volume)
        .and_then(|mount| world.store().tree(mount.volume()).ok())
        .map_or(0, |tree| node.folder_sizes.lock().unwrap_or_else(PoisonError::into_inner).of(&tree));
    // In its first second a guest is read as if it had not started yet: a genuine list shows -1 then, and a share below 0.
    let age_s = running.as_ref().map(|running| node.settable.even_s() - running.since_s);
    let (uptime, cpu) = match age_s {
        Some(..=0) => (-1, -0.0007),
        Some(age_s) => (age_s, 0.0),
        None => (0, 0.0),
    };
    let row = json!({
        "vmid": vmid, "status": if up { "running" } else { "stopped" },
        "name": config.main.get("hostname").map_or_else(|| format!("CT{vmid}"), str::to_owned),
        "cpu": cpu, "mem": if up { 24 << 20 } else { 0 }, "maxmem": number("memory", 512) << 20,
        "disk": used, "maxdisk": size, "diskread": 0, "diskwrite": 0, "netin": 0, "netout": 0,
        "uptime": uptime,
    });
    let mut row = match row {
        Value::Object(map) => map,
        _ => return None,
    };
    if up {
        crate::fault::usage::show(&node.paths.run(), Some(vmid), &mut row);
    }
    for key in ["lock", "tags"] {
        if let Some(text) = config.main.get(key) {
            row.insert(key.to_owned(), json!(text));
        }
    }
    Some(row)
}

/// How many processors a guest sees.
#[must_use]
pub fn guest_cores(world: &World, vmid: u32) -> Value {
    let main = world.guests.get(vmid).ok().map(|config| &config.main);
    let limit = main
        .and_then(|main| main.get("cpulimit"))
        .and_then(|text| text.parse::<f64>().ok())
        .filter(|limit| *limit > 0.0);
    let cores = main.and_then(|main| main.get("cores")).and_then(|text| text.parse::<f64>().ok());
    let count = cores.or(limit).unwrap_or(2.0);
    if count.fract() == 0.0 {
        json!(count.trunc().to_string().parse::<i64>().unwrap_or(2))
    } else {
        json!(count)
    }
}

/// A guest in the list of resources.
#[must_use]
pub fn guest_row(node: &Node, world: &World, vmid: u32) -> Option<Value> {
    let mut row = guest_figures(node, world, vmid)?;
    let template = world.guests.get(vmid).is_ok_and(|config| config.main.flag("template"));
    row.extend([
        ("id".to_owned(), json!(format!("lxc/{vmid}"))),
        ("type".to_owned(), json!("lxc")),
        ("node".to_owned(), json!(node.name)),
        ("maxcpu".to_owned(), guest_cores(world, vmid)),
        ("memhost".to_owned(), json!(0)),
        ("template".to_owned(), json!(u8::from(template))),
    ]);
    Some(Value::Object(row))
}

/// A storage in the list of resources.
#[must_use]
pub fn storage_row(node: &Node, world: &World, name: &str) -> Option<Value> {
    let definition = world.storage.find(name)?;
    let mut row = json!({
        "id": format!("storage/{}/{name}", node.name), "type": "storage", "node": node.name, "storage": name,
        "plugintype": definition.kind, "content": definition.get("content").unwrap_or_default(), "shared": u8::from(definition.is_shared()),
        "status": "unknown",
    });
    if let (Some(space), Some(map)) = (super::storage::space(world, name), row.as_object_mut()) {
        map.extend([
            ("status".to_owned(), json!("available")),
            ("disk".to_owned(), json!(space.used)),
            ("maxdisk".to_owned(), json!(space.total)),
        ]);
    }
    Some(row)
}

/// A pool, with the sums of those of its guests that run.
fn pool_row(node: &Node, world: &World, pool: &str) -> Value {
    let mut row = json!({"id": format!("/pool/{pool}"), "pool": pool, "type": "pool"});
    let own = world.guests.all().keys().filter(|vmid| world.access.pool_of(**vmid) == Some(pool));
    let running: Vec<Value> = own
        .filter_map(|vmid| guest_row(node, world, *vmid))
        .filter(|row| row.get("status").and_then(Value::as_str) == Some("running"))
        .collect();
    let figures = |key: &str| running.iter().filter_map(|row| row.get(key)?.as_u64()).collect::<Vec<_>>();
    if let Some(map) = row.as_object_mut().filter(|_| !running.is_empty()) {
        for key in ["mem", "maxmem", "maxcpu"] {
            map.insert(key.to_owned(), json!(figures(key).iter().sum::<u64>()));
        }
        map.insert("uptime".to_owned(), json!(figures("uptime").into_iter().max().unwrap_or_default()));
        map.insert("cpu".to_owned(), json!(0));
    }
    row
}

impl Round {
    /// Reads the state of all guests, unless the last read is recent enough.
    fn go(&mut self, node: &Node, world: &World, every_s: i64) {
        let now_s = node.settable.even_s();
        if self.at_s.is_none_or(|at_s| now_s - at_s >= every_s) {
            let row = |vmid: &u32| Some((*vmid, guest_row(node, world, *vmid)?));
            (self.at_s, self.rows) = (Some(now_s), world.guests.all().keys().filter_map(row).collect());
        }
    }

    /// A guest as it was in the last round, with the live fields. A guest that did not exist then has only its number.
    fn row(&self, node: &Node, world: &World, vmid: u32) -> Option<Value> {
        let unknown = || json!({"id": format!("lxc/{vmid}"), "type": "lxc", "node": node.name, "vmid": vmid, "status": "unknown"});
        let mut row = self.rows.get(&vmid).cloned().unwrap_or_else(unknown);
        let main = &world.guests.get(vmid).ok()?.main;
        for key in ["lock", "tags"] {
            let fields = row.as_object_mut()?;
            match main.get(key) {
                Some(text) => fields.insert(key.to_owned(), json!(text)),
                None => fields.remove(key),
            };
        }
        Some(row)
    }
}

/// A guest as the list of resources has it.
fn listed(node: &Node, world: &World, vmid: u32) -> Option<Value> {
    match node.settings.figures {
        Figures::Live => guest_row(node, world, vmid),
        Figures::Every(every_s) => {
            let mut round = node.round.lock().unwrap_or_else(PoisonError::into_inner);
            round.go(node, world, every_s);
            round.row(node, world, vmid)
        }
    }
}

/// When the status daemon last looked at the node.
fn node_round_s(node: &Node, world: &World) -> i64 {
    match node.settings.figures {
        Figures::Live => node.settable.even_s(),
        Figures::Every(every_s) => {
            let mut round = node.round.lock().unwrap_or_else(PoisonError::into_inner);
            round.go(node, world, every_s);
            round.at_s.unwrap_or_else(|| node.settable.even_s())
        }
    }
}

fn resources(call: &Call<'_>) -> Reply {
    let (node, world) = (call.node, call.node.world());
    let judge = world.judge(&call.who);
    let kind = call.text("type");
    let wanted = |name: &str| kind.as_deref().is_none_or(|held| held == name);
    let mut rows = Vec::new();
    if kind.is_none() {
        let pools =
            world.access.pools.keys().filter(|pool| judge.has(&format!("/pool/{pool}"), &["Pool.Audit"]));
        rows.extend(pools.map(|pool| pool_row(node, &world, pool)));
    }
    if wanted("vm") {
        for vmid in world.guests.all().keys().filter(|vmid| judge.has(&format!("/vms/{vmid}"), &["VM.Audit"]))
        {
            let Some(mut row) = listed(node, &world, *vmid) else { continue };
            if let (Some(pool), Some(map)) = (world.access.pool_of(*vmid), row.as_object_mut()) {
                map.insert("pool".to_owned(), json!(pool));
            }
            rows.push(row);
        }
    }
    if wanted("node") {
        let mut row = json!({"id": format!("node/{}", node.name), "type": "node", "node": node.name, "status": "online", "level": "", "cgroup-mode": 1});
        if judge.has(&format!("/nodes/{}", node.name), &["Sys.Audit"])
            && let Some(map) = row.as_object_mut()
        {
            map.extend(super::node::figures(super::node::uptime_s(node_round_s(node, &world))));
            crate::fault::usage::show(&node.paths.run(), None, map);
        }
        rows.push(row);
    }
    if wanted("storage") {
        let visible = world.storage.all.iter().filter(|(name, _)| {
            judge.has_any(&format!("/storage/{name}"), &["Datastore.Audit", "Datastore.AllocateSpace"])
        });
        rows.extend(visible.filter_map(|(name, _)| storage_row(node, &world, name)));
    }
    if (wanted("sdn") || kind.is_none())
        && judge.has_any("/sdn/zones/localnetwork", &["SDN.Audit", "SDN.Allocate"])
    {
        rows.push(json!({
            "id": format!("network/{}/zone/localnetwork", node.name), "type": "network", "network": "localnetwork", "network-type": "zone",
            "node": node.name, "status": "ok",
        }));
    }
    data(rows)
}

fn status(call: &Call<'_>) -> Reply {
    let name = &call.node.name;
    data(vec![
        json!({"id": format!("node/{name}"), "name": name, "type": "node", "ip": "10.66.0.1", "local": 1, "online": 1, "level": "", "nodeid": 0}),
    ])
}

fn not_backed_up(call: &Call<'_>) -> Reply {
    let world = call.node.world();
    let judge = world.judge(&call.who);
    let visible =
        world.guests.all().iter().filter(|(vmid, _)| judge.has(&format!("/vms/{vmid}"), &["VM.Audit"]));
    let row = |(vmid, config): (&u32, &crate::guest::config::GuestConfig)| {
        let mut row = json!({"vmid": vmid, "type": "lxc"});
        if let (Some(map), Some(name)) = (row.as_object_mut(), config.main.get("hostname")) {
            map.insert("name".to_owned(), json!(name));
        }
        row
    };
    data(visible.map(row).collect::<Vec<_>>())
}
