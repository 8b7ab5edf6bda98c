//! Backups: the calls, and what they check before a task begins.
//!
//! In: a call. Out: a task that works through the guests ([`job`]), each in its mode ([`guest`]); or the configuration
//! that an archive carries. Deliberately absent: fleecing, bandwidth limits (only logged), mail, hook scripts.
mod archive_step;
mod backup;
mod guest;
mod job;
mod mode;
mod notice;
mod options;
mod texts;
mod upload;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::json;

use super::{Answer, Call, Handler, Reply, data};
use crate::archive;
use crate::die;
use crate::fail::{Fallible, Refusal};
use crate::guest::rights::volume_access;
use crate::schema::property;
use crate::storage::backup_client::failed;
use crate::storage::server_names;
use crate::storage::volume::missing;

/// The code of a call of this group.
#[must_use]
pub fn handler(at: &str) -> Option<Handler> {
    Some(match at {
        "POST /nodes/{node}/vzdump" => start,
        "GET /nodes/{node}/vzdump/defaults" => defaults,
        "GET /nodes/{node}/vzdump/extractconfig" => extract_config,
        _ => return None,
    })
}

/// `POST …/vzdump`
///
/// # Errors
/// For options that are not the caller's, and when nothing is chosen.
fn start(call: &Call<'_>) -> Reply {
    for name in ["node", "stdout"] {
        let given = call.text(name);
        let own = name == "node" && given.as_deref() == Some(call.node.name.as_str());
        if given.is_some() && !own {
            return Err(Refusal::param(name, "option is only allowed on the command line interface."));
        }
    }
    if let Some(template) = call.text("notes-template") {
        texts::check_notes(&template).map_err(|text| Refusal::param("notes-template", text))?;
    }
    let fleecing = fleecing(call)?;
    permitted(call, fleecing.as_deref())?;
    let named = call.text("vmid").is_some_and(|ids| !ids.is_empty());
    let chosen = ["all", "stop"].iter().any(|name| call.flag(name)) || call.text("pool").is_some();
    if !chosen && !named {
        return Err(Refusal::param("vmid", "property is missing"));
    }
    let others = [("all", call.flag("all")), ("pool", call.text("pool").is_some())];
    let conflicts = others.into_iter().filter(|(_, given)| named && *given);
    let conflicts: BTreeMap<String, String> = conflicts
        .map(|(name, _)| (name.to_owned(), "option conflicts with option 'vmid'".to_owned()))
        .collect();
    if !conflicts.is_empty() {
        return Err(Refusal::params(conflicts));
    }
    let vmids = options::chosen(call)?;
    if call.flag("stop") {
        stop_running(call);
        if vmids.is_empty() {
            return data("OK");
        }
    }
    if vmids.is_empty() && !call.flag("all") {
        return data("OK");
    }
    let id = match vmids.as_slice() {
        [one] => one.to_string(),
        _ => String::new(),
    };
    let job = job::Job {
        options: options::Options::of(call)?,
        command_line: texts::command_line(&call.node.table, &call.params, &vmids),
        who: call.who.clone(),
        vmids,
    };
    call.spawn("vzdump", &id, move |task| job::run(task, &job))
}

/// Sends a stop request to every backup task of the node.
fn stop_running(call: &Call<'_>) {
    let (running, _) = call.node.tasks.all();
    for upid in running.iter().filter(|upid| upid.kind == "vzdump") {
        if let Some(goal) = call.node.tasks.running(&upid.to_string()) {
            goal.stop();
        }
    }
}

/// Checks parameters that need special rights, in the order of the real code.
fn permitted(call: &Call<'_>, fleecing: Option<&str>) -> Fallible<()> {
    if call.who.is_root() {
        return Ok(());
    }
    for name in ["tmpdir", "dumpdir", "script", "job-id"] {
        if call.text(name).is_some() {
            return Err(Refusal::param(name, "Only root may set this option."));
        }
    }
    let world = call.node.world();
    let judge = world.judge(&call.who);
    if ["bwlimit", "ionice", "performance"].iter().any(|name| call.text(name).is_some()) {
        judge.need("/", &["Sys.Modify"])?;
    }
    if call.flag("stop") {
        judge.need(&format!("/nodes/{}", call.node.name), &["Sys.Modify"])?;
    }
    let storage = call.text("storage").unwrap_or_else(|| options::DEFAULT_STORAGE.to_owned());
    let path = format!("/storage/{storage}");
    if call.text("prune-backups").is_some() {
        judge.need(&path, &["Datastore.Allocate"])?;
    }
    judge.need(&path, &["Datastore.AllocateSpace"])?;
    fleecing
        .map_or(Ok(()), |storage| judge.need(&format!("/storage/{storage}"), &["Datastore.AllocateSpace"]))
}

/// The storage for blocks that a running virtual machine overwrites meanwhile. A container does not use it, and its existence is not
/// checked.
fn fleecing(call: &Call<'_>) -> Fallible<Option<String>> {
    let table = &call.node.table;
    let (Some(text), Some(format)) = (call.text("fleecing"), table.format("backup-fleecing")) else {
        return Ok(None);
    };
    let held = property::parse(table, format, &text).map_err(|fault| {
        Refusal::param("fleecing", format!("invalid format - {}", fault.text("fleecing.")))
    })?;
    let storage = held.get("storage").cloned();
    if storage.is_none() && held.get("enabled").is_some_and(|on| on == "1") {
        let why = "invalid format - 'storage' parameter is required when 'enabled' is set\n";
        return Err(Refusal::param("fleecing", why));
    }
    Ok(storage)
}

/// `GET …/vzdump/defaults`
///
/// # Errors
/// When the storage is not the caller's to use.
fn defaults(call: &Call<'_>) -> Reply {
    let mut found = json!({
        "all": 0, "bwlimit": 0, "compress": "0", "fleecing": {"enabled": 0}, "ionice": 7, "lockwait": 180,
        "mailnotification": "always", "mode": "snapshot", "notification-mode": "auto",
        "performance": {"max-workers": 16, "pbs-entries-max": 1_048_576}, "pigz": 0, "prune-backups": "keep-all=1",
        "quiet": 0, "remove": 1, "stdexcludes": 1, "stop": 0, "stopwait": 10, "zstd": 1,
    });
    let storage = call.text("storage").unwrap_or_else(|| options::DEFAULT_STORAGE.to_owned());
    if let Some(map) = found.as_object_mut() {
        let world = call.node.world();
        world
            .judge(&call.who)
            .need_any(&format!("/storage/{storage}"), &["Datastore.Audit", "Datastore.AllocateSpace"])?;
        let definition = world.storage.get(&storage)?;
        if let Some(retention) = definition.get("prune-backups") {
            map.insert("prune-backups".to_owned(), json!(retention));
        }
        if let Some(path) = definition.path() {
            map.insert("dumpdir".to_owned(), json!(format!("{path}/dump")));
        }
        map.insert("storage".to_owned(), json!(storage));
    }
    // A caller that may not audit the node does not see these.
    let judged =
        call.node.world().judge(&call.who).has(&format!("/nodes/{}", call.node.name), &["Sys.Audit"]);
    if let Some(map) = found.as_object_mut().filter(|_| !judged) {
        ["dumpdir", "ionice"].iter().for_each(|name| drop(map.remove(*name)));
    }
    Ok(Answer::Data(found))
}

/// `GET …/vzdump/extractconfig`
///
/// # Errors
/// When the caller may not read the archive, or the archive does not exist or has no configuration.
fn extract_config(call: &Call<'_>) -> Reply {
    let volid = call.need("volume")?;
    let place = {
        let world = call.node.world();
        let judge = world.judge(&call.who);
        volume_access(&world, &judge, None, &volid, Some("backup"))?;
        let store = world.store();
        let at = store.locate(&volid)?;
        // Independent of the storage's rights: a caller that reads a guest's backup needs the right on that guest.
        judge.need(&format!("/vms/{}", at.name.owner().unwrap_or_default()), &["VM.Backup"])?;
        let place = store.place(&at);
        if server_names::is_one(at.definition) {
            // The storage is not activated for it: the client reports any obstacle.
            world.storage.enabled(at.storage)?;
            store.open(&at)?.map_err(|complaint| failed(&complaint))?;
        } else {
            store.activate(at.storage)?;
        }
        place
    };
    if !place.is_file() {
        return Err(missing(&volid));
    }
    match archive::read_config(&place) {
        Ok(inside) => data(inside.config),
        Err(error) => {
            tracing::debug!(%error, "no configuration in archive");
            die!("ERROR: archive contains no configuration file")
        }
    }
}
