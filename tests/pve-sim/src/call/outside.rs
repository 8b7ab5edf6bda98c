//! Storages that lie beyond the node: what is looked at when one is defined, and where its secrets go.
//!
//! In: a definition with its secrets. Out: the real sentence of what is wrong, or nothing. `STATE/run/outside/SERVER` is a server that
//! answers; what a backup server has there stands in [`crate::storage::backup_server`]. As on the real node little is checked: no
//! namespace, no key but its JSON. Deliberately absent: the data of shares.
use serde_json::{Value, json};

use super::Call;
use crate::die;
use crate::fail::{Fallible, Refusal, host};
use crate::node::World;
use crate::storage::config::Definition;

/// What never stands in `storage.cfg` as it was given.
pub const SECRETS: [&str; 2] = ["password", "encryption-key"];

/// Takes a new definition's secrets: their files, and what of them stands in the file for all to see.
///
/// # Errors
/// When the key is none.
pub fn take_secrets(
    call: &Call<'_>,
    world: &World,
    name: &str,
    definition: &mut Definition,
) -> Fallible<Value> {
    if !matches!(definition.kind.as_str(), "pbs" | "cifs") {
        return Ok(Value::Null);
    }
    if let Some(password) = call.text("password") {
        keep(world, &format!("{name}.pw"), &password)?;
    }
    if definition.kind == "cifs" {
        return Ok(Value::Null);
    }
    let Some(given) = call.text("encryption-key") else { return Ok(json!({})) };
    let text = if given == "autogen" { autogen() } else { given };
    let key: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
    if key.get("data").is_none() {
        return Err(Refusal::die("Value does not seems like a valid, JSON formatted encryption key!"));
    }
    keep(world, &format!("{name}.enc"), &text)?;
    let shown = key.get("fingerprint").and_then(Value::as_str).unwrap_or("1");
    definition.props.insert("encryption-key".to_owned(), shown.to_owned());
    Ok(json!({ "encryption-key": text }))
}

/// Not a secret of anybody's: a simulated key.
fn autogen() -> String {
    let fingerprint = vec!["b2"; 32].join(":");
    json!({ "kdf": null, "created": "2026-11-21T04:33:52+00:00", "modified": "2026-11-21T04:33:52+00:00",
        "data": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "fingerprint": fingerprint })
    .to_string()
}

fn keep(world: &World, file: &str, text: &str) -> Fallible<()> {
    let folder = world.store().secrets();
    std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(folder.join(file), format!("{text}\n")))
        .map_err(|error| host("keeping a secret", &error))
}

/// Takes the files away again, as a definition that failed its check does.
pub fn drop_secrets(world: &World, name: &str) {
    for end in ["pw", "enc"] {
        // One that was never there is gone as well.
        let _gone = std::fs::remove_file(world.store().secrets().join(format!("{name}.{end}")));
    }
}

/// Looks at the server, as the real node does once when a storage is defined.
///
/// # Errors
/// The real sentence.
pub fn reach(world: &World, name: &str, definition: &Definition) -> Fallible<()> {
    match definition.kind.as_str() {
        "nfs" | "cifs" if !world.store().server(definition).is_dir() => {
            die!("storage '{name}' is not online")
        }
        "pbs" => world.store().reach(name, definition),
        _ => Ok(()),
    }
}
