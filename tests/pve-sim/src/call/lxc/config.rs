//! A container's options: shown, changed, pending.
use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::call::{Call, NOTHING, Reply, data};
use crate::die;
use crate::fail::{Fallible, Refusal};
use crate::guest::change::{Change, Run, low_level, unlocked};
use crate::guest::options::{self, json_section, json_value};
use crate::guest::rights::Rights;
use crate::node::World;
use crate::schema::format::split_list;

/// Options that a caller may read only if it may write them. The real code means to hide them, but refuses the whole call.
fn may_read(call: &Call<'_>, world: &World, vmid: u32, has_env: bool) -> Fallible<()> {
    if !has_env || call.who.is_root() {
        return Ok(());
    }
    world.judge(&call.who).need_any(&format!("/vms/{vmid}"), &["VM.Config.Options"])
}

/// `GET …/config`
///
/// # Errors
/// When the guest or snapshot is not there, or may not be read.
pub fn show(call: &Call<'_>) -> Reply {
    let vmid = call.vmid()?;
    // One that went down by itself.
    super::power::settle(call.node, vmid)?;
    let (snapshot, current) = (call.text("snapshot"), call.flag("current"));
    if snapshot.is_some() && current {
        let why = "cannot use 'snapshot' parameter with 'current'".to_owned();
        return Err(Refusal::params(
            [("snapshot".to_owned(), why.clone()), ("current".to_owned(), why)].into(),
        ));
    }
    let world = call.node.world();
    let config = world.guests.get(vmid)?;
    let section = match &snapshot {
        Some(name) => config
            .snapshots
            .get(name)
            .ok_or_else(|| Refusal::die(format!("snapshot '{name}' does not exist")))?
            .clone(),
        None if current => config.main.clone(),
        None => config.upcoming(),
    };
    may_read(call, &world, vmid, section.get("env").is_some())?;
    let mut out = json_section(&call.node.table, &section);
    out.insert("digest".to_owned(), json!(config.digest()));
    data(out)
}

/// `GET …/pending`
///
/// # Errors
/// When the guest is not there or may not be read.
pub fn pending(call: &Call<'_>) -> Reply {
    let vmid = call.vmid()?;
    // One that went down by itself.
    super::power::settle(call.node, vmid)?;
    let world = call.node.world();
    let config = world.guests.get(vmid)?;
    may_read(call, &world, vmid, config.main.get("env").is_some() || config.pending.contains_key("env"))?;
    let table = &call.node.table;
    let mut rows: Vec<Value> = Vec::new();
    for (key, value) in &config.main.values {
        let mut row = json!({"key": key, "value": json_value(table, key, value)});
        if let Some(map) = row.as_object_mut() {
            map.extend(
                config.pending.get(key).map(|value| ("pending".to_owned(), json_value(table, key, value))),
            );
            if config.pending_delete.contains(key) {
                map.insert("delete".to_owned(), json!(1));
            }
        }
        rows.push(row);
    }
    rows.extend(
        config
            .pending
            .iter()
            .filter(|(key, _)| config.main.get(key).is_none())
            .map(|(key, value)| json!({"key": key, "pending": json_value(table, key, value)})),
    );
    rows.push(json!({"key": "digest", "value": config.digest()}));
    data(rows)
}

/// The options among the parameters.
#[must_use]
pub fn given(call: &Call<'_>, not: &[&str]) -> BTreeMap<String, String> {
    call.params
        .keys()
        .filter(|name| !not.contains(&name.as_str()))
        .filter_map(|name| call.text(name).map(|value| (name.clone(), value)))
        .collect()
}

/// `PUT …/config`
///
/// # Errors
/// In the real order: nothing to do, not there, locked, changed meanwhile, not allowed, unknown options, faults.
pub fn change(call: &Call<'_>) -> Reply {
    let vmid = call.vmid()?;
    let mut new = given(call, &["node", "vmid", "digest", "delete", "revert"]);
    let list = |name: &str| {
        call.text(name)
            .map(|text| split_list(&text).map(str::to_owned).collect::<Vec<_>>())
            .unwrap_or_default()
    };
    let (delete, revert) = (list("delete"), list("revert"));
    if new.is_empty() && !call.params.contains_key("delete") && !call.params.contains_key("revert") {
        die!("no options specified");
    }
    clamp(&mut new);
    call.node.faults.lock_config(vmid)?;
    super::power::settle(call.node, vmid)?;
    let mut world = call.node.world();
    let mut config = world.guests.get(vmid)?.clone();
    unlocked(&config)?;
    same_digest(call.text("digest"), &config.digest())?;
    let rights = Rights {
        world: &world,
        table: &call.node.table,
        who: &call.who,
        vmid,
        pool: None,
        old: Some(&config.main),
        unprivileged: config.main.flag("unprivileged"),
    };
    rights.delete(&delete)?;
    rights.delete(&revert)?;
    known(call, &new, &delete, &revert)?;
    rights.set(&new)?;
    let running = if call.node.power.is_running(vmid) { Run::Up } else { Run::Down };
    let change = Change { node: call.node, store: world.store(), vmid, running };
    let faults = change.apply(&mut config, &new, &delete, &revert)?;
    if !faults.is_empty() {
        return Err(Refusal::params(faults));
    }
    world.guests.put(vmid, config)?;
    // The low-level configuration is written last: a missing bridge is reported although the change is in force.
    low_level(call.node, &world.guests.get(vmid)?.main)?;
    NOTHING
}

/// Limits CPU shares to the range that the kernel accepts.
fn clamp(new: &mut BTreeMap<String, String>) {
    if let Some(shares) = new.get_mut("cpuunits")
        && let Ok(number) = shares.parse::<u64>()
    {
        *shares = number.clamp(1, 500_000).to_string();
    }
}

/// Dies when the configuration is not the one that the caller has seen.
///
/// # Errors
/// The real error text.
pub fn same_digest(seen: Option<String>, now: &str) -> Fallible<()> {
    match seen {
        Some(seen) if seen != now => {
            Err(Refusal::die("detected modified configuration - file changed by other user? Try again."))
        }
        _ => Ok(()),
    }
}

fn known(
    call: &Call<'_>,
    new: &BTreeMap<String, String>,
    delete: &[String],
    revert: &[String],
) -> Fallible<()> {
    let table = &call.node.table;
    for option in revert {
        if !options::exists(table, option) {
            return Err(Refusal::param("revert", format!("unknown option '{option}'")));
        }
        if new.contains_key(option) {
            return Err(Refusal::param(
                "revert",
                format!("you can't use '-{option}' and '-revert {option}' at the same time"),
            ));
        }
    }
    for option in delete {
        if !options::exists(table, option) {
            return Err(Refusal::param("delete", format!("unknown option '{option}'")));
        }
        if new.contains_key(option) {
            return Err(Refusal::param(
                "delete",
                format!("you can't use '-{option}' and -delete {option}' at the same time"),
            ));
        }
        if revert.contains(option) {
            return Err(Refusal::param(
                "delete",
                format!("you can't use '-delete {option}' and '-revert {option}' at the same time"),
            ));
        }
    }
    Ok(())
}
