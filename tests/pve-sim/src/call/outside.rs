//! Storages outside of the node.
//!
//! In: a definition with its secrets. Out: the real error text, or nothing. `STATE/run/outside/SERVER` is a server that answers;
//! [`crate::storage::backup_server`] describes what a backup server has there. As on the real node little is checked: no namespace, no
//! key but its JSON, and nothing at all when an entry is changed. Deliberately absent: the data of shares, master keys.
use serde_json::{Value, json};

use super::Call;
use crate::die;
use crate::fail::{Fallible, Refusal, host};
use crate::node::World;
use crate::storage::backup_key;
use crate::storage::config::Definition;

/// Parameters that are never written to `storage.cfg` as they were given.
pub const SECRETS: [&str; 2] = ["password", "encryption-key"];

fn has_secrets(definition: &Definition) -> bool {
    matches!(definition.kind.as_str(), "pbs" | "cifs")
}

/// Handles a new definition: writes the files of its secrets, and removes those that an entry of the same name left behind.
///
/// # Errors
/// When the key is not valid; its password is kept all the same, as on the real node.
pub fn added(call: &Call<'_>, world: &World, name: &str, definition: &mut Definition) -> Fallible<Value> {
    if !has_secrets(definition) {
        return Ok(Value::Null);
    }
    match call.text("password") {
        Some(password) => keep(world, &format!("{name}.pw"), &format!("{password}\n"))?,
        None => remove(world, name, "pw"),
    }
    if definition.kind == "cifs" {
        return Ok(Value::Null);
    }
    if call.text("encryption-key").is_none() {
        remove(world, name, "enc");
    }
    key(call, world, name, definition)
}

/// Handles a changed definition: writes the secrets that are given, and removes those that are to be deleted.
///
/// # Errors
/// When the key is not valid.
pub fn changed(
    call: &Call<'_>,
    world: &World,
    name: &str,
    definition: &mut Definition,
    deleted: &[&str],
) -> Fallible<Value> {
    if !has_secrets(definition) {
        return Ok(Value::Null);
    }
    if let Some(password) = call.text("password") {
        keep(world, &format!("{name}.pw"), &format!("{password}\n"))?;
    } else if deleted.contains(&"password") {
        remove(world, name, "pw");
    }
    if definition.kind == "cifs" {
        return Ok(Value::Null);
    }
    if call.text("encryption-key").is_none() && deleted.contains(&"encryption-key") {
        remove(world, name, "enc");
    }
    key(call, world, name, definition)
}

/// Stores the given encryption key, or generates one, and returns the whole key. No later call returns it again.
fn key(call: &Call<'_>, world: &World, name: &str, definition: &mut Definition) -> Fallible<Value> {
    let Some(given) = call.text("encryption-key") else { return Ok(json!({})) };
    let file = format!("{name}.enc");
    let text = if given == "autogen" {
        move_away(world, &file);
        let mut raw = [0; 32];
        call.node.clock.random(&mut raw);
        let made = backup_key::made(&raw, call.node.clock.now_s());
        keep(world, &file, &made)?;
        made
    } else {
        let key: Value = serde_json::from_str(&given).unwrap_or(Value::Null);
        if key.get("data").is_none() {
            die!("Value does not seems like a valid, JSON formatted encryption key!");
        }
        keep(world, &file, &format!("{given}\n"))?;
        given
    };
    let key: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
    let shown = key.get("fingerprint").and_then(Value::as_str).unwrap_or("1");
    definition.props.insert("encryption-key".to_owned(), shown.to_owned());
    Ok(json!({ "encryption-key": text }))
}

/// Keeps a copy of the old key. This happens only when a generated key replaces it.
fn move_away(world: &World, file: &str) {
    let folder = world.store().secrets();
    // There may be none yet.
    let _moved = std::fs::rename(folder.join(file), folder.join(format!("{file}.old")));
}

fn keep(world: &World, file: &str, text: &str) -> Fallible<()> {
    let folder = world.store().secrets();
    std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(folder.join(file), text))
        .map_err(|error| host("keeping a secret", &error))
}

fn remove(world: &World, name: &str, end: &str) {
    // A missing file is no error.
    let _gone = std::fs::remove_file(world.store().secrets().join(format!("{name}.{end}")));
}

/// Removes the files again: the definition is deleted, or failed its check. The copy of an old key stays.
pub fn drop_secrets(world: &World, name: &str) {
    ["pw", "enc"].iter().for_each(|end| remove(world, name, end));
}

/// Checks the server, as the real node does once when a storage is defined.
///
/// # Errors
/// The real error text.
pub fn reach(world: &World, name: &str, definition: &Definition) -> Fallible<()> {
    match definition.kind.as_str() {
        "nfs" | "cifs" if !world.store().server(definition).is_dir() => {
            Err(Refusal::die(format!("storage '{name}' is not online")))
        }
        "pbs" => world.store().reach(name, definition),
        _ => Ok(()),
    }
}
