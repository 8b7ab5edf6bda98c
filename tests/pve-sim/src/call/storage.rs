//! Storages: definitions, lists and status. Content is in [`super::content`].
use serde_json::{Map, Value, json};

use super::node::{Space, space_of};
use super::{Call, Handler, NOTHING, Reply, data, outside};
use crate::die;
use crate::fail::{Fallible, Refusal};
use crate::node::World;
use crate::schema::format::split_list;
use crate::storage::config::Definition;

/// The code of a call of this group.
#[must_use]
pub fn handler(at: &str) -> Option<Handler> {
    Some(match at {
        "GET /storage" => definitions,
        "GET /storage/{storage}" => definition,
        "POST /storage" => create,
        "PUT /storage/{storage}" => change,
        "DELETE /storage/{storage}" => delete,
        "GET /nodes/{node}/storage" => list,
        "GET /nodes/{node}/storage/{storage}" => index,
        "GET /nodes/{node}/storage/{storage}/status" => status,
        "GET /nodes/{node}/storage/{storage}/rrddata" => |call| {
            let name = call.need("storage")?;
            let world = call.node.world();
            world.storage.get(&name)?;
            let held = space(&world, &name).unwrap_or_default();
            let values = [("total", json!(held.total)), ("used", json!(held.used))];
            data(super::rrd::points(call, &values, super::rrd::Measured::Hour))
        },
        _ => return None,
    })
}

fn shown(world: &World, name: &str, definition: &Definition) -> Value {
    let mut row: Map<String, Value> =
        definition.props.iter().map(|(key, value)| (key.clone(), property(key, value))).collect();
    if definition.is_beyond() {
        row.insert("shared".to_owned(), json!(1));
    }
    row.extend([
        ("storage".to_owned(), json!(name)),
        ("type".to_owned(), json!(definition.kind)),
        ("digest".to_owned(), json!(world.storage.digest())),
    ]);
    Value::Object(row)
}

fn property(key: &str, value: &str) -> Value {
    match key {
        "disable" | "shared" | "preallocation-off" => {
            value.parse::<i64>().map_or_else(|_| json!(value), |n| json!(n))
        }
        _ => json!(value),
    }
}

fn definitions(call: &Call<'_>) -> Reply {
    let world = call.node.world();
    let judge = world.judge(&call.who);
    let kind = call.text("type");
    let visible = world.storage.all.iter().filter(|(name, held)| {
        judge.has_any(&format!("/storage/{name}"), &["Datastore.Audit", "Datastore.AllocateSpace"])
            && kind.as_deref().is_none_or(|kind| kind == held.kind)
    });
    data(visible.map(|(name, held)| shown(&world, name, held)).collect::<Vec<_>>())
}

fn definition(call: &Call<'_>) -> Reply {
    let name = call.need("storage")?;
    let world = call.node.world();
    data(shown(&world, &name, world.storage.get(&name)?))
}

/// Adds the operation to a refusal that came while the storages' file was read or changed.
fn while_doing(what: &str) -> impl Fn(Refusal) -> Refusal {
    move |refusal| Refusal { message: format!("{what} storage failed: {}", refusal.message), ..refusal }
}

fn create(call: &Call<'_>) -> Reply {
    let (name, kind) = (call.need("storage")?, call.need("type")?);
    let content = match kind.as_str() {
        "dir" | "btrfs" => "images,rootdir",
        "nfs" | "cifs" => "images",
        "pbs" => "backup",
        _ => die!("create storage failed: this simulator plays no storages of type '{kind}'"),
    };
    let mut definition = Definition { kind: kind.clone(), ..Definition::default() };
    fill(call, &mut definition);
    if let Some(key) = definition.fixed().iter().find(|key| definition.get(key).is_none()) {
        die!("missing value for required option '{key}'");
    }
    definition.props.entry("content".to_owned()).or_insert_with(|| content.to_owned());
    if matches!(kind.as_str(), "nfs" | "cifs") {
        definition.props.entry("path".to_owned()).or_insert_with(|| format!("/mnt/pve/{name}"));
    }
    let config = add(call, &name, definition).map_err(while_doing("create"))?;
    data(answered(&name, &kind, config))
}

fn add(call: &Call<'_>, name: &str, mut definition: Definition) -> Fallible<Value> {
    let mut world = call.node.world();
    if world.storage.find(name).is_some() {
        die!("storage ID '{name}' already defined");
    }
    let config = outside::added(call, &world, name, &mut definition)?;
    world.storage.all.push((name.to_owned(), definition.clone()));
    let reached = if definition.is_disabled() {
        Ok(())
    } else {
        outside::reach(&world, name, &definition).and_then(|()| world.store().activate(name))
    };
    if let Err(refusal) = reached {
        world.storage.all.retain(|(known, _)| known != name);
        outside::drop_secrets(&world, name);
        return Err(refusal);
    }
    world.save_storage()?;
    Ok(config)
}

fn answered(name: &str, kind: &str, config: Value) -> Value {
    match config {
        Value::Null => json!({"storage": name, "type": kind}),
        config => json!({"storage": name, "type": kind, "config": config}),
    }
}

fn fill(call: &Call<'_>, definition: &mut Definition) {
    let other = ["storage", "type", "digest", "delete", "node"];
    let kept = |name: &str| !other.contains(&name) && !outside::SECRETS.contains(&name);
    for name in call.params.keys().filter(|name| kept(name)) {
        if let Some(value) = call.text(name) {
            definition.props.insert(name.clone(), value);
        }
    }
    if let Some(content) = definition.props.get_mut("content") {
        *content = split_list(content).collect::<Vec<_>>().join(",");
    }
}

fn change(call: &Call<'_>) -> Reply {
    let name = call.need("storage")?;
    let (kind, config) = update(call, &name).map_err(while_doing("update"))?;
    data(answered(&name, &kind, config))
}

fn update(call: &Call<'_>, name: &str) -> Fallible<(String, Value)> {
    let mut world = call.node.world();
    if call.text("digest").is_some_and(|digest| digest != world.storage.digest()) {
        die!("detected modified configuration - file changed by other user? Try again.");
    }
    let mut changed = world.storage.get(name)?.clone();
    // Refused even when the value is the same.
    if let Some(key) = changed.fixed().iter().find(|key| call.text(key).is_some()) {
        die!("can't change value of fixed parameter '{key}'");
    }
    let list = call.text("delete").unwrap_or_default();
    let deleted: Vec<&str> = split_list(&list).collect();
    for key in &deleted {
        if changed.fixed().contains(key) {
            die!("unable to delete required option '{key}'");
        }
        if call.text(key).is_some() && !outside::SECRETS.contains(key) {
            die!("cannot set and delete property '{key}' at the same time!");
        }
    }
    // The secrets are not checked: a wrong one is stored as well.
    let config = outside::changed(call, &world, name, &mut changed, &deleted)?;
    for key in deleted.iter().filter(|key| call.text(key).is_none()) {
        changed.props.remove(*key);
    }
    fill(call, &mut changed);
    let kind = changed.kind.clone();
    if let Some((_, target)) = world.storage.all.iter_mut().find(|(known, _)| known == name) {
        *target = changed;
    }
    world.save_storage()?;
    Ok((kind, config))
}

fn delete(call: &Call<'_>) -> Reply {
    let name = call.need("storage")?;
    let mut world = call.node.world();
    world.storage.get(&name).map_err(while_doing("delete"))?;
    world.storage.all.retain(|(known, _)| *known != name);
    outside::drop_secrets(&world, &name);
    world.access.acl.remove(&format!("/storage/{name}"));
    world.save_access()?;
    world.save_storage()?;
    NOTHING
}

/// The space of an active storage.
#[must_use]
pub fn space(world: &World, name: &str) -> Option<Space> {
    let store = world.store();
    store.activate(name).ok()?;
    let definition = world.storage.find(name)?;
    let root = store.real("/");
    let real = if crate::storage::server_names::is_one(definition) {
        space_of(&root, &store.server(definition))
    } else {
        space_of(&root, &store.real(definition.path()?))
    };
    let Some(percent) = store.filled(name) else { return Some(real) };
    let used = real.total / 100 * percent.min(100);
    let free = real.total - used;
    Some(Space { total: real.total, used, avail: free, free })
}

fn state(world: &World, name: &str, definition: &Definition) -> Map<String, Value> {
    let space = space(world, name);
    let held = space.unwrap_or_default();
    let row = json!({
        "type": definition.kind, "content": definition.get("content").unwrap_or_default(), "shared": u8::from(definition.is_shared()),
        "enabled": u8::from(!definition.is_disabled()), "active": u8::from(space.is_some()),
        "total": held.total, "used": held.used, "avail": held.avail,
    });
    if let Value::Object(map) = row { map } else { Map::new() }
}

fn status(call: &Call<'_>) -> Reply {
    let name = call.need("storage")?;
    let world = call.node.world();
    let definition =
        world.storage.find(&name).ok_or_else(|| Refusal::param("storage", "No such storage."))?;
    data(state(&world, &name, definition))
}

fn list(call: &Call<'_>) -> Reply {
    let world = call.node.world();
    let judge = world.judge(&call.who);
    if call.text("target").is_some_and(|target| target != call.node.name) {
        return data(Vec::<Value>::new());
    }
    let only = call.text("storage");
    if let Some(name) = &only
        && world.storage.find(name).is_none()
    {
        return Err(Refusal::param("storage", "No such storage."));
    }
    let content = call.text("content").unwrap_or_default();
    let wanted: Vec<&str> = split_list(&content).collect();
    let mut rows = Vec::new();
    for (name, definition) in &world.storage.all {
        let visible =
            judge.has_any(&format!("/storage/{name}"), &["Datastore.Audit", "Datastore.AllocateSpace"]);
        let asked = only.as_deref().is_none_or(|only| only == name)
            && (!call.flag("enabled") || !definition.is_disabled());
        if !visible || !asked || !(wanted.is_empty() || wanted.iter().any(|kind| definition.holds(kind))) {
            continue;
        }
        let mut row = state(&world, name, definition);
        row.insert("storage".into(), json!(name));
        if let (Some(used), Some(total)) = (
            row.get("used").and_then(Value::as_f64),
            row.get("total").and_then(Value::as_f64).filter(|total| *total > 0.0),
        ) {
            row.insert("used_fraction".into(), json!(used / total));
        }
        if call.flag("format") {
            row.extend(formats(definition));
        }
        rows.push(Value::Object(row));
    }
    data(rows)
}

fn formats(definition: &Definition) -> Map<String, Value> {
    let supported: &[&str] =
        if definition.kind == "btrfs" { &["raw", "subvol"] } else { &["qcow2", "raw", "subvol", "vmdk"] };
    let old: Map<String, Value> = supported.iter().map(|name| ((*name).to_owned(), json!(1))).collect();
    Map::from_iter([
        ("format".to_owned(), json!([old, "raw"])),
        ("formats".to_owned(), json!({"default": "raw", "supported": supported})),
    ])
}

fn index(call: &Call<'_>) -> Reply {
    call.node.world().storage.get(&call.need("storage")?)?;
    let names = [
        "content",
        "download-url",
        "file-restore",
        "import-metadata",
        "identity",
        "oci-registry-pull",
        "prunebackups",
        "rrd",
        "rrddata",
        "status",
        "upload",
    ];
    data(names.map(|name| json!({"subdir": name})).to_vec())
}
