//! Pools.
use serde_json::{Value, json};

use super::{Call, Handler, NOTHING, Reply, data};
use crate::access::config::Pool;
use crate::access::evaluate::Judge;
use crate::die;
use crate::fail::{Fallible, Refusal};
use crate::guest::config_folder::ConfigFolder;
use crate::node::World;
use crate::schema::format::split_list;

/// The code of a call of this group.
#[must_use]
pub fn handler(at: &str) -> Option<Handler> {
    Some(match at {
        "GET /pools" => list,
        "POST /pools" => create,
        "PUT /pools" | "PUT /pools/{poolid}" => change,
        "DELETE /pools" | "DELETE /pools/{poolid}" => delete,
        "GET /pools/{poolid}" => show,
        _ => return None,
    })
}

/// Errors under the user configuration's lock name the operation that was tried.
///
/// # Errors
/// The inner error, with the operation in front.
pub fn under<T>(what: &str, result: Fallible<T>) -> Fallible<T> {
    result.map_err(|refusal| Refusal::die(format!("{what}: {}", refusal.in_task())))
}

fn list(call: &Call<'_>) -> Reply {
    if let Some(id) = call.text("poolid") {
        return Ok(super::Answer::Data(Value::Array(vec![info(call, &id)?])));
    }
    let world = call.node.world();
    let judge = world.judge(&call.who);
    let visible =
        world.access.pools.iter().filter(|(name, _)| judge.has(&format!("/pool/{name}"), &["Pool.Audit"]));
    data(visible.map(|(name, pool)| with_comment(json!({"poolid": name}), pool)).collect::<Vec<_>>())
}

fn with_comment(mut entry: Value, pool: &Pool) -> Value {
    if let Some(map) = entry.as_object_mut().filter(|_| !pool.comment.is_empty()) {
        map.insert("comment".into(), json!(pool.comment));
    }
    entry
}

fn show(call: &Call<'_>) -> Reply {
    data(info(call, &call.need("poolid")?)?)
}

fn info(call: &Call<'_>, id: &str) -> Fallible<Value> {
    let world = call.node.world();
    let Some(pool) = world.access.pools.get(id) else { die!("pool '{id}' does not exist") };
    let kind = call.text("type");
    let wanted = |name: &str| kind.as_deref().is_none_or(|held| held == name);
    let mut members = Vec::new();
    if wanted("lxc") {
        let own = pool.vms.iter().filter(|vmid| world.access.pool_of(**vmid) == Some(id));
        let rows = own.filter_map(|vmid| super::cluster::guest_row(call.node, &world, *vmid));
        members.extend(rows.map(|mut row| {
            // Members are listed with their figures only.
            for key in ["tags", "lock"] {
                row.as_object_mut().and_then(|map| map.remove(key));
            }
            row
        }));
    }
    if wanted("storage") {
        members.extend(
            pool.storage.iter().filter_map(|name| super::cluster::storage_row(call.node, &world, name)),
        );
    }
    Ok(with_comment(json!({"poolid": id, "members": members}), pool))
}

fn create(call: &Call<'_>) -> Reply {
    let id = call.need("poolid")?;
    let mut world = call.node.world();
    let (parent, leaf) =
        id.rsplit_once('/').map_or((None, id.as_str()), |(parent, leaf)| (Some(parent), leaf));
    if world.access.pools.contains_key(&id) {
        die!("create pool failed: pool '{id}' already exists");
    }
    if let Some(parent) = parent.filter(|parent| !world.access.pools.contains_key(*parent)) {
        die!("create pool failed: parent '{parent}' of pool '{id}' does not exist");
    }
    if !leaf.starts_with(|c: char| c.is_ascii_alphabetic()) {
        die!("create pool failed: pool name must start with a letter");
    }
    world
        .access
        .pools
        .insert(id, Pool { comment: call.text("comment").unwrap_or_default(), ..Pool::default() });
    world.save_access()?;
    NOTHING
}

fn change(call: &Call<'_>) -> Reply {
    let mut world = call.node.world();
    // All or nothing: the new configuration replaces the old one only when every part was fine.
    let before = world.access.clone();
    let result = apply(call, &mut world);
    if result.is_err() {
        world.access = before;
    }
    under("update pools failed", result)?;
    world.save_access()?;
    NOTHING
}

fn apply(call: &Call<'_>, world: &mut World) -> Fallible<()> {
    let id = call.need("poolid")?;
    let delete = call.flag("delete");
    let judged = world.access.clone();
    let judge = Judge { config: &judged, who: &call.who.id };
    let Some(pool) = world.access.pools.get_mut(&id) else { die!("pool '{id}' does not exist") };
    if let Some(comment) = call.text("comment") {
        pool.comment = comment;
    }
    for text in split_list(&call.text("vms").unwrap_or_default()) {
        judge.need_any(&format!("/vms/{text}"), &["Permissions.Modify", "VM.Allocate"])?;
        let vmid: u32 = text.parse().map_err(|_| Refusal::die(format!("unable to parse VM ID '{text}'")))?;
        move_guest(call, world, &judge, &id, vmid)?;
    }
    for name in split_list(&call.text("storage").unwrap_or_default()) {
        judge.need_any(&format!("/storage/{name}"), &["Permissions.Modify", "Datastore.Allocate"])?;
        let Some(pool) = world.access.pools.get_mut(&id) else { die!("pool '{id}' does not exist") };
        match (delete, if delete { pool.storage.remove(name) } else { pool.storage.insert(name.to_owned()) })
        {
            (true, false) => die!("Storage '{name}' is not a pool member"),
            (false, false) => die!("Storage '{name}' is already a pool member"),
            _ => {}
        }
    }
    Ok(())
}

fn move_guest(call: &Call<'_>, world: &mut World, judge: &Judge<'_>, id: &str, vmid: u32) -> Fallible<()> {
    let now_in = world.access.pool_of(vmid).map(str::to_owned);
    let here = now_in.as_deref() == Some(id);
    if call.flag("delete") {
        if !here {
            die!("VM {vmid} is not a pool member");
        }
    } else {
        if here {
            die!("VM {vmid} is already a pool member");
        }
        if let Some(other) = &now_in {
            if !call.flag("allow-move") {
                die!("VM {vmid} belongs already to pool '{other}' and 'allow-move' is not set");
            }
            judge.need(&format!("/pool/{other}"), &["Pool.Allocate"])?;
        }
    }
    if let Some(held) = now_in.and_then(|name| world.access.pools.get_mut(&name)) {
        held.vms.remove(&vmid);
    }
    if !call.flag("delete")
        && let Some(held) = world.access.pools.get_mut(id)
    {
        held.vms.insert(vmid);
    }
    Ok(())
}

fn delete(call: &Call<'_>) -> Reply {
    let id = call.need("poolid")?;
    let mut world = call.node.world();
    under("delete pool failed", empty(&world, &world.guests, &id))?;
    world.access.pools.remove(&id);
    let path = format!("/pool/{id}");
    world.access.acl.remove(&path);
    world.save_access()?;
    NOTHING
}

fn empty(world: &World, guests: &ConfigFolder, id: &str) -> Fallible<()> {
    let Some(pool) = world.access.pools.get(id) else { die!("pool '{id}' does not exist") };
    let inner = format!("{id}/");
    if let Some(child) = world.access.pools.keys().find(|name| name.starts_with(&inner)) {
        die!("pool '{id}' is not empty (contains pool '{child}')");
    }
    if let Some(vmid) = pool.vms.iter().find(|vmid| guests.has(**vmid)) {
        die!("pool '{id}' is not empty (contains VM {vmid})");
    }
    if let Some(name) = pool.storage.iter().find(|name| world.storage.find(name).is_some()) {
        die!("pool '{id}' is not empty (contains storage '{name}')");
    }
    Ok(())
}
