//! Content of a storage: list, show, mark, allocate, free, prune.
use serde_json::{Map, Value, json};

use super::{Call, Handler, NOTHING, Reply, data};
use crate::die;
use crate::fail::{Fallible, Refusal, host};
use crate::guest::rights::volume_access;
use crate::node::World;
use crate::storage::backup_client::{self, Act};
use crate::storage::content::{Row, copy_of, file_bytes, files, images, is_protected, note};
use crate::storage::volume::{Located, Store, VolumeName, missing};
use crate::storage::{backup_server, server_names};

/// The code of a call of this group.
#[must_use]
pub fn handler(at: &str) -> Option<Handler> {
    let at = at
        .strip_prefix("GET ")
        .or_else(|| at.strip_prefix("POST "))
        .or_else(|| at.strip_prefix("PUT "))
        .or_else(|| at.strip_prefix("DELETE "))
        .map(|path| (at.split(' ').next().unwrap_or_default(), path))?;
    Some(match at {
        ("GET", "/nodes/{node}/storage/{storage}/content") => list,
        ("POST", "/nodes/{node}/storage/{storage}/content") => allocate,
        ("GET", "/nodes/{node}/storage/{storage}/content/{volume}") => show,
        ("PUT", "/nodes/{node}/storage/{storage}/content/{volume}") => mark,
        ("DELETE", "/nodes/{node}/storage/{storage}/content/{volume}") => free,
        ("GET", "/nodes/{node}/storage/{storage}/prunebackups") => super::prune::preview,
        ("DELETE", "/nodes/{node}/storage/{storage}/prunebackups") => super::prune::prune,
        _ => return None,
    })
}

/// All rows of a storage; of only one content or one guest when these are given.
///
/// # Errors
/// When the storage is not there or not active.
pub fn rows(world: &World, storage: &str, content: Option<&str>, vmid: Option<u32>) -> Fallible<Vec<Row>> {
    let definition = world.storage.get(storage)?;
    let store = world.store();
    store.activate(storage)?;
    let wanted = |kind: &str| content.is_none_or(|held| held == kind) && definition.holds(kind);
    if server_names::is_one(definition) {
        return if wanted("backup") { store.snapshots_of(storage, definition, vmid) } else { Ok(Vec::new()) };
    }
    let mut found = Vec::new();
    for row in images(&store, storage, vmid) {
        // A disk of a container is `rootdir`; a disk without an owner, or of another kind of guest, is `images`.
        let of_container = row.vmid.is_some_and(|owner| world.guests.has(owner));
        let kind = if of_container { "rootdir" } else { "images" };
        if wanted(kind) {
            found.push(Row { content: kind.to_owned(), ..row });
        }
    }
    for kind in ["vztmpl", "iso", "backup", "snippets"] {
        let of_guest = matches!(kind, "vztmpl" | "iso") && vmid.is_some();
        if wanted(kind) && !of_guest {
            found.extend(
                files(&store, storage, kind)
                    .into_iter()
                    .filter(|row| vmid.is_none() || row.vmid.is_none() || row.vmid == vmid),
            );
        }
    }
    found.sort_by_key(|row| row.volid.to_ascii_lowercase());
    Ok(found)
}

fn shown(world: &World, row: &Row) -> Value {
    let mut out = json!({"volid": row.volid, "content": row.content, "format": row.format, "size": row.size, "ctime": row.ctime});
    let Some(map) = out.as_object_mut() else { return out };
    map.extend(row.vmid.map(|vmid| ("vmid".to_owned(), json!(vmid))));
    if let Some(used) = row.used {
        map.extend([("used".to_owned(), json!(used)), ("parent".to_owned(), Value::Null)]);
    }
    let storage = row.volid.split_once(':').and_then(|(storage, _)| world.storage.find(storage));
    if row.format == "subvol" && storage.is_some_and(|definition| definition.kind == "btrfs") {
        // The btrfs listing of a subvolume has no time.
        map.remove("ctime");
    }
    if row.content == "backup" {
        map.extend(row.vmid.map(|_| {
            ("subtype".to_owned(), json!(if row.volid.contains("vzdump-qemu") { "qemu" } else { "lxc" }))
        }));
        let store = world.store();
        if let Ok(place) = store.locate(&row.volid).map(|at| store.place(&at)) {
            map.extend(
                note(&place)
                    .and_then(|text| text.lines().next().map(str::to_owned))
                    .filter(|text| !text.is_empty())
                    .map(|text| ("notes".to_owned(), json!(text))),
            );
            if is_protected(&place) {
                map.insert("protected".to_owned(), json!(1));
            }
            // Only for complete snapshots: the server reports neither for one that is still being written.
            if row.format == "pbs-ct" && place.is_file() {
                map.extend(backup_server::sealed(&place).map(|key| ("encrypted".to_owned(), json!(key))));
                let verified = backup_server::verification(&place);
                map.extend(verified.map(|said| ("verification".to_owned(), said)));
            }
        }
    }
    out
}

fn list(call: &Call<'_>) -> Reply {
    let storage = call.need("storage")?;
    let world = call.node.world();
    let vmid = call.number("vmid").and_then(|id| u32::try_from(id).ok());
    let judge = world.judge(&call.who);
    let found = rows(&world, &storage, call.text("content").as_deref(), vmid)?;
    data(
        found
            .iter()
            .filter(|row| volume_access(&world, &judge, None, &row.volid, None).is_ok())
            .map(|row| shown(&world, row))
            .collect::<Vec<_>>(),
    )
}

/// The volume of a call: the storage's name may be left out of it.
fn volid(call: &Call<'_>) -> Fallible<String> {
    let (storage, volume) = (call.need("storage")?, call.need("volume")?);
    match volume.split_once(':') {
        Some((own, _)) if own != storage => {
            Err(Refusal::param("storage", format!("storage ID missmatch ({own} != {storage})")))
        }
        Some(_) => Ok(volume),
        None => Ok(format!("{storage}:{volume}")),
    }
}

fn show(call: &Call<'_>) -> Reply {
    let volid = volid(call)?;
    let world = call.node.world();
    volume_access(&world, &world.judge(&call.who), None, &volid, None)?;
    let store = world.store();
    let at = store.locate(&volid)?;
    let place = store.place(&at);
    if !place.exists() {
        die!("volume_size_info on '{volid}' failed - no format");
    }
    let mut out = Map::new();
    let image = matches!(at.name, VolumeName::Image { .. });
    let size = if image { store.size(&volid)? } else { file_bytes(&place) };
    let format = if volid.ends_with(".subvol") { "subvol" } else { "raw" };
    let snapshot = server_names::is_one(at.definition);
    let format = if snapshot { "pbs-ct" } else { format };
    let used = match (image, snapshot) {
        (true, _) => size / 32,
        (false, true) => size,
        (false, false) => size.next_multiple_of(4096),
    };
    out.extend(
        [
            ("path", json!(store.shown_path(&at))),
            ("size", json!(size)),
            ("used", json!(used)),
            ("format", json!(format)),
        ]
        .map(|(key, value)| (key.to_owned(), value)),
    );
    if at.name.content() == "backup" {
        out.insert("notes".to_owned(), json!(note(&place).unwrap_or_default()));
        let protected = is_protected(&place);
        let shown = if snapshot { json!(protected) } else { json!(u8::from(protected)) };
        out.insert("protected".to_owned(), shown);
    }
    data(out)
}

fn mark(call: &Call<'_>) -> Reply {
    let volid = volid(call)?;
    let world = call.node.world();
    volume_access(&world, &world.judge(&call.who), None, &volid, None)?;
    let store = world.store();
    let at = store.locate(&volid)?;
    let place = store.place(&at);
    let attributes = call.text("notes").is_some() || call.maybe("protected").is_some();
    if attributes && at.name.content() != "backup" {
        die!(
            "only backups support attribute '{}'",
            if call.text("notes").is_some() { "notes" } else { "protected" }
        );
    }
    if attributes && server_names::is_one(at.definition) {
        may_mark(call, &store, &at)?;
    }
    if attributes && !place.exists() {
        return Err(missing(&volid));
    }
    let failed = |error: std::io::Error| host("write of attribute", &error);
    if let Some(text) = call.text("notes") {
        let path = copy_of(&place, "notes");
        if text.is_empty() {
            remove(&path).map_err(failed)?
        } else {
            std::fs::write(path, text).map_err(failed)?
        }
    }
    if let Some(on) = call.maybe("protected") {
        let path = copy_of(&place, "protected");
        if on { std::fs::write(path, "").map_err(failed)? } else { remove(&path).map_err(failed)? }
    }
    NOTHING
}

/// Notes are written by the client, the protection by a call of the node's own.
fn may_mark(call: &Call<'_>, store: &Store<'_>, at: &Located<'_>) -> Fallible<()> {
    let allowed = store.may(at.definition, Act::Mark);
    if call.text("notes").is_some() {
        let entered = store.enter(at.storage, at.definition);
        entered.and(allowed).map_err(|complaint| backup_client::failed(&complaint))
    } else {
        allowed.map_err(|_| Refusal::die("403 Forbidden"))
    }
}

fn remove(path: &std::path::Path) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn allocate(call: &Call<'_>) -> Reply {
    let (storage, name, text) = (call.need("storage")?, call.need("filename")?, call.need("size")?);
    let vmid = call.vmid()?;
    let (digits, shift) = text
        .strip_suffix('M')
        .map(|n| (n, 20))
        .or_else(|| text.strip_suffix('G').map(|n| (n, 30)))
        .unwrap_or((&text, 10));
    let bytes = digits
        .parse::<u64>()
        .map(|n| n << shift)
        .map_err(|_| Refusal::param("size", format!("unable to parse size '{text}'")))?;
    let world = call.node.world();
    let store = world.store();
    store.activate(&storage)?;
    let volid = format!("{storage}:{vmid}/{name}");
    let at = store.locate(&volid)?;
    if store.place(&at).exists() {
        die!("disk image '{}' already exists", store.shown_path(&at));
    }
    store.make(at.definition, vmid, &name, bytes)?;
    data(volid)
}

fn free(call: &Call<'_>) -> Reply {
    let volid = volid(call)?;
    let world = call.node.world();
    let at = world.store().locate(&volid)?;
    let judge = world.judge(&call.who);
    let path = format!("/storage/{}", at.storage);
    let owner = at.name.owner();
    match owner {
        Some(vmid) if at.name.content() == "backup" => {
            judge.need(&path, &["Datastore.AllocateSpace"])?;
            judge.need(&format!("/vms/{vmid}"), &["VM.Backup"])?;
        }
        _ => judge.need(&path, &["Datastore.Allocate"])?,
    }
    let id = owner.map_or_else(|| at.storage.to_owned(), |vmid| format!("{vmid}@{}", at.storage));
    drop(world);
    let volume = volid.clone();
    call.spawn("imgdel", &id, move |task| {
        let reported = free_volume(&task.node.world(), &volume)?;
        reported.into_iter().for_each(|line| task.log(line));
        task.log(format!("Removed volume '{volume}'"));
        Ok(())
    })
}

/// Frees a volume with the files that belong to it; returns the message to report, if any.
///
/// # Errors
/// When it is protected or cannot be removed.
pub fn free_volume(world: &World, volid: &str) -> Fallible<Option<String>> {
    let store = world.store();
    let at = store.locate(volid)?;
    let VolumeName::File { kind, name } = &at.name else { return store.free(volid) };
    store.activate(at.storage)?;
    let place = store.place(&at);
    if server_names::is_one(at.definition) {
        return store.forget(&at).map(|()| None);
    }
    if kind == "backup" && is_protected(&place) {
        die!("cannot remove protected volume 'backup/{name}' on '{}'", at.storage);
    }
    let failed = |error: std::io::Error| host("removal of volume", &error);
    let reported = if place.exists() {
        std::fs::remove_file(&place).map_err(failed)?;
        None
    } else {
        Some(format!("disk image '{}' does not exist", store.shown_path(&at)))
    };
    if kind == "backup" {
        for other in [copy_of(&place, "notes"), crate::state::volumes::sized(&place), log_of(&place)] {
            remove(&other).map_err(failed)?;
        }
    }
    Ok(reported)
}

/// The log file of a backup: its name up to `.tar`, then `.log`.
#[must_use]
pub fn log_of(place: &std::path::Path) -> std::path::PathBuf {
    let name = place.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    place.with_file_name(format!("{}.log", name.split(".tar").next().unwrap_or(name)))
}
