//! Views of containers: lists, status, addresses, features.
use serde_json::{Map, Value, json};

use crate::call::cluster::{guest_cores, guest_figures};
use crate::call::{Call, Reply, data};
use crate::fail::Refusal;
use crate::guest::options::{Origin, mounts};
use crate::node::World;

/// `GET /nodes/{node}/lxc`
///
/// # Errors
/// Never; what may not be seen is left out.
pub fn list(call: &Call<'_>) -> Reply {
    let world = call.node.world();
    let judge = world.judge(&call.who);
    let visible = world.guests.all().keys().filter(|vmid| judge.has(&format!("/vms/{vmid}"), &["VM.Audit"]));
    data(visible.filter_map(|vmid| figures(call, &world, *vmid)).map(Value::Object).collect::<Vec<_>>())
}

fn figures(call: &Call<'_>, world: &World, vmid: u32) -> Option<Map<String, Value>> {
    let mut row = guest_figures(call.node, world, vmid)?;
    let main = &world.guests.get(vmid).ok()?.main;
    let swap = main.get("swap").and_then(|text| text.parse::<i64>().ok()).unwrap_or_default();
    row.extend([
        ("type".to_owned(), json!("lxc")),
        ("cpus".to_owned(), guest_cores(world, vmid)),
        ("swap".to_owned(), json!(0)),
        ("maxswap".to_owned(), json!(swap << 20)),
    ]);
    if main.flag("template") {
        row.insert("template".to_owned(), json!(1));
    }
    if let Some(running) = call.node.power.running(vmid) {
        row.insert("pid".to_owned(), json!(running.pid));
        // Without pressure information in the kernel the figures are there, but empty.
        for what in ["cpufull", "cpusome", "iofull", "iosome", "memoryfull", "memorysome"] {
            row.insert(format!("pressure{what}"), Value::Null);
        }
    }
    Some(row)
}

/// `GET …/status/current`
///
/// # Errors
/// When the guest is not there.
pub fn status(call: &Call<'_>) -> Reply {
    let vmid = call.vmid()?;
    let world = call.node.world();
    world.guests.get(vmid)?;
    let mut row = figures(call, &world, vmid).unwrap_or_default();
    row.insert("ha".to_owned(), json!({"managed": 0}));
    data(row)
}

/// `GET …/{vmid}`
///
/// # Errors
/// When the guest is not there.
pub fn index(call: &Call<'_>) -> Reply {
    call.node.world().guests.get(call.vmid()?)?;
    let names = [
        "config",
        "pending",
        "status",
        "vncproxy",
        "termproxy",
        "vncwebsocket",
        "spiceproxy",
        "migrate",
        "clone",
        "rrd",
        "rrddata",
        "firewall",
        "snapshot",
        "resize",
        "interfaces",
    ];
    data(names.map(|name| json!({"subdir": name})).to_vec())
}

/// `GET …/status`
///
/// # Errors
/// When the guest is not there.
pub fn status_index(call: &Call<'_>) -> Reply {
    call.node.world().guests.get(call.vmid()?)?;
    data(
        ["current", "start", "stop", "shutdown", "reboot", "migrate"]
            .map(|name| json!({"subdir": name}))
            .to_vec(),
    )
}

/// `GET …/interfaces`
///
/// # Errors
/// When the runtime cannot report them.
pub fn interfaces(call: &Call<'_>) -> Reply {
    let vmid = call.vmid()?;
    let found = call.node.power.interfaces(vmid).map_err(|error| Refusal::die(error.to_string()))?;
    let Some(found) = found else { return data(Value::Null) };
    let rows: Vec<Value> = found
        .iter()
        .map(|interface| {
            let mut row = json!({"name": interface.name, "hwaddr": interface.hwaddr, "hardware-address": interface.hwaddr});
            let shown = |kind: &str| interface.addresses.iter().find(|(ip, _)| ip.is_ipv4() == (kind == "inet")).map(|(ip, prefix)| format!("{ip}/{prefix}"));
            let list: Vec<Value> = interface
                .addresses
                .iter()
                .map(|(ip, prefix)| json!({"ip-address": ip.to_string(), "prefix": prefix, "ip-address-type": if ip.is_ipv4() { "inet" } else { "inet6" }}))
                .collect();
            if let Some(map) = row.as_object_mut() {
                map.insert("ip-addresses".to_owned(), json!(list));
                for kind in ["inet", "inet6"] {
                    map.extend(shown(kind).map(|text| (kind.to_owned(), json!(text))));
                }
            }
            row
        })
        .collect();
    data(rows)
}

/// Whether all volumes of a section can be snapshotted; for backups only those that go into one.
#[must_use]
pub fn can_snapshot(
    call_table: &crate::schema::table::Table,
    world: &World,
    section: &crate::guest::config::Section,
    backup_only: bool,
) -> bool {
    mounts(call_table, section).iter().filter(|mount| !backup_only || mount.in_backup()).all(|mount| {
        let storage = mount
            .volume()
            .split_once(':')
            .map(|(storage, _)| storage)
            .and_then(|storage| world.storage.find(storage));
        mount.origin() == Origin::Volume && storage.is_some_and(crate::storage::config::Definition::snapshots)
    })
}

/// `GET …/feature`
///
/// # Errors
/// When the guest or the snapshot is not there.
pub fn feature(call: &Call<'_>) -> Reply {
    let vmid = call.vmid()?;
    let world = call.node.world();
    let config = world.guests.get(vmid)?;
    let section = match call.text("snapname") {
        None => &config.main,
        Some(name) => config
            .snapshots
            .get(&name)
            .ok_or_else(|| Refusal::die(format!("snapshot '{name}' does not exist")))?,
    };
    let has = match call.need("feature")?.as_str() {
        "snapshot" => can_snapshot(&call.node.table, &world, section, false),
        "copy" => call.text("snapname").is_none() || can_snapshot(&call.node.table, &world, section, false),
        _ => section.flag("template"),
    };
    data(json!({"hasFeature": u8::from(has)}))
}

/// `GET …/rrddata`
///
/// # Errors
/// When the guest is not there.
pub fn rrddata(call: &Call<'_>) -> Reply {
    let vmid = call.vmid()?;
    let world = call.node.world();
    if !world.guests.has(vmid) {
        return Err(Refusal::die(format!(
            "RRD error: rrdcached@unix:/var/run/rrdcached.sock: rrd_fetch_r failed: opening '/var/lib/rrdcached/db/pve-vm-9.0/{vmid}': No such file or directory"
        )));
    }
    let row = figures(call, &world, vmid).unwrap_or_default();
    let now: Vec<(&str, Value)> = ["maxmem", "maxdisk", "disk"]
        .iter()
        .filter_map(|key| row.get(*key).map(|value| (*key, value.clone())))
        .collect();
    data(crate::call::rrd::points(call, &now, crate::call::rrd::Measured::Now))
}
