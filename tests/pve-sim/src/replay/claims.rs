//! Which rights an answer proves.
//!
//! In: a recorded exchange and the published permission expression of its call. Out: rights that the caller must have had, because its
//! call passed the check that needs them. Checks that the published table leaves to the call itself (creation, backup, volumes)
//! are listed here from the notes on least privileges. Deliberately absent: anything that this simulator answers.
use std::collections::BTreeMap;

use serde_json::Value;

use super::recording::{Call, Task};
use crate::schema::property;
use crate::schema::table::{Check, Table};
use crate::storage::volume::backup_owner;

/// One proved right: all of `privs` (or one of them) at one of `paths`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Where; the first is the usual one.
    pub paths: Vec<String>,
    pub privs: Vec<String>,
    /// Every one of them, not just one.
    pub all: bool,
}

/// What the proof is read from.
#[derive(Debug, Clone, Copy)]
pub struct Exchange<'a> {
    pub call: &'a Call,
    pub task: Option<&'a Task>,
    /// Its name in the table, as `GET /nodes/{node}/lxc`.
    pub template: &'a str,
    /// Values in its path.
    pub in_path: &'a BTreeMap<String, String>,
}

impl Exchange<'_> {
    fn value(&self, name: &str) -> Option<String> {
        self.in_path.get(name).cloned().or_else(|| self.call.param(name))
    }

    fn fill(&self, template: &str) -> Option<String> {
        let parts: Option<Vec<String>> = template
            .split('/')
            .map(|part| match part.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
                Some(name) => self.value(name),
                None => Some(part.to_owned()),
            })
            .collect();
        parts.map(|parts| parts.join("/"))
    }

    /// The place and the rights that a denial names.
    fn denial(&self) -> Option<(String, String)> {
        let inner = self.call.answer.reason.strip_prefix("Permission check failed (")?.strip_suffix(')')?;
        inner.split_once(", ").map(|(path, privs)| (path.to_owned(), privs.to_owned()))
    }

    /// Whether the call passed all checks of rights that come before a task.
    fn passed(&self) -> bool {
        self.call.answer.status == 200
    }

    /// Whether the answer comes from the backup server or its client: they are called after all checks.
    fn reached_server(&self) -> bool {
        let starts = ["proxmox-backup-client failed: ", "encryption configured ("];
        self.call.answer.status == 500
            && starts.iter().any(|start| self.call.answer.reason.starts_with(start))
    }

    fn task_is_fine(&self) -> bool {
        self.passed()
            && self.task.is_none_or(|task| !task.last.to_string().contains("Permission check failed"))
    }
}

fn claim(path: String, privs: &[&str]) -> Claim {
    Claim { paths: vec![path], privs: privs.iter().map(|name| (*name).to_owned()).collect(), all: true }
}

/// Everything that an exchange proves.
#[must_use]
pub fn proved(table: &Table, exchange: &Exchange<'_>) -> Vec<Claim> {
    let mut found = published(table, exchange);
    match exchange.template {
        "POST /nodes/{node}/lxc" => found.extend(creation(table, exchange)),
        "PUT /nodes/{node}/lxc/{vmid}/config" => found.extend(change(table, exchange)),
        "POST /nodes/{node}/vzdump" => found.extend(backup(exchange)),
        "POST /nodes/{node}/lxc/{vmid}/move_volume" => found.extend(reassign(exchange)),
        // The right on the guest is checked only after the right to use the storage.
        "GET /nodes/{node}/vzdump/extractconfig"
            if exchange.denial().is_some_and(|(path, _)| path.starts_with("/vms/")) =>
        {
            let storage =
                exchange.value("volume").and_then(|volid| Some(volid.split_once(':')?.0.to_owned()));
            found.extend(storage.map(|name| claim(format!("/storage/{name}"), &["Datastore.AllocateSpace"])));
        }
        "GET /nodes/{node}/vzdump/extractconfig" if exchange.passed() || exchange.reached_server() => {
            found.extend(exchange.value("volume").map(|volid| archive(&volid)).unwrap_or_default())
        }
        "DELETE /nodes/{node}/storage/{storage}/content/{volume}"
        | "PUT /nodes/{node}/storage/{storage}/content/{volume}"
            if exchange.passed() =>
        {
            found.extend(exchange.value("volume").map(|volid| archive(&volid)).unwrap_or_default());
        }
        "PUT /nodes/{node}/lxc/{vmid}/resize"
            if exchange.passed()
                || exchange.denial().is_some_and(|(path, _)| path.starts_with("/storage/")) =>
        {
            found.extend(exchange.fill("/vms/{vmid}").map(|path| claim(path, &["VM.Config.Options"])));
        }
        "GET /nodes/{node}/lxc/{vmid}/config" | "GET /nodes/{node}/lxc/{vmid}/pending"
            if shows_env(exchange) =>
        {
            found.extend(exchange.fill("/vms/{vmid}").map(|path| claim(path, &["VM.Config.Options"])));
        }
        _ => {}
    }
    found
}

/// An environment is shown only to whom may change it.
fn shows_env(exchange: &Exchange<'_>) -> bool {
    let data = exchange.call.answer.body.as_ref().and_then(|body| body.get("data"));
    let in_rows = data
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .any(|row| row.get("key").and_then(Value::as_str) == Some("env"));
    exchange.passed() && (in_rows || data.and_then(|data| data.get("env")).is_some())
}

/// The published expression was passed unless its own denial came back.
fn published(table: &Table, exchange: &Exchange<'_>) -> Vec<Claim> {
    let Some(Check::List(parts)) = table.call(exchange.template).and_then(|spec| spec.check.as_ref()) else {
        return Vec::new();
    };
    let word = |at: usize| if let Some(Check::Word(word)) = parts.get(at) { word.as_str() } else { "" };
    let (Some(path), Some(Check::List(names))) =
        (exchange.fill(word(1)).filter(|_| word(0) == "perm"), parts.get(2))
    else {
        return Vec::new();
    };
    let privs: Vec<String> = names
        .iter()
        .filter_map(|name| if let Check::Word(name) = name { Some(name.clone()) } else { None })
        .collect();
    let any = (3..parts.len()).any(|at| word(at) == "any");
    let own = exchange.denial().is_some_and(|(denied, named)| {
        denied == path && (named == privs.join("|") || !any && privs.contains(&named))
    });
    let beyond = match exchange.call.answer.status {
        200 | 500 => true,
        403 => {
            exchange.denial().is_some()
                && (!own
                    || any
                        && privs.len() > 1
                        && exchange.denial().is_some_and(|(_, named)| !named.contains('|')))
        }
        _ => false,
    };
    if !beyond {
        return Vec::new();
    }
    // Of several sufficient rights it was not the one that was then denied.
    let absent =
        exchange.denial().filter(|(denied, _)| *denied == path).map(|(_, named)| named).unwrap_or_default();
    let privs = privs.into_iter().filter(|name| !any || *name != absent).collect();
    vec![Claim { paths: vec![path], privs, all: !any }]
}

/// The right that an option of a container needs.
fn of_option(option: &str) -> Option<&'static str> {
    let stem = option.trim_end_matches(|c: char| c.is_ascii_digit());
    match stem {
        "cores" | "cpuunits" | "cpulimit" => Some("VM.Config.CPU"),
        "memory" | "swap" => Some("VM.Config.Memory"),
        "net" | "nameserver" | "searchdomain" | "hostname" => Some("VM.Config.Network"),
        "rootfs" | "mp" => Some("VM.Config.Disk"),
        "description" | "onboot" | "protection" | "env" | "startup" | "tags" | "arch" | "ostype"
        | "console" | "tty" | "cmode" | "timezone" | "entrypoint" | "lock" | "template" | "unused" => {
            Some("VM.Config.Options")
        }
        _ => None,
    }
}

fn creation(table: &Table, exchange: &Exchange<'_>) -> Vec<Claim> {
    let (Some(vmid), denial) = (exchange.value("vmid"), exchange.denial()) else { return Vec::new() };
    let own = format!("/vms/{vmid}");
    let pool = exchange.value("pool").map(|pool| format!("/pool/{pool}"));
    let paths: Vec<String> = pool.into_iter().chain([own.clone()]).collect();
    let mut found = Vec::new();
    let overwrites =
        exchange.value("force").as_deref() == Some("1") && exchange.value("restore").as_deref() == Some("1");
    let beyond = exchange.passed()
        || denial.as_ref().is_some_and(|(path, _)| {
            path.starts_with("/vms/") || path.starts_with("/storage/") || path.starts_with("/sdn/")
        });
    if beyond && !overwrites {
        found.push(Claim { paths: paths.clone(), privs: vec!["VM.Allocate".into()], all: true });
    }
    // A denial may name any option whose right is missing. Only a denial of `VM.Backup` proves that all options passed.
    let at_archive =
        denial.as_ref().is_some_and(|(path, named)| path.starts_with("/vms/") && named == "VM.Backup");
    if exchange.passed() || at_archive {
        for option in exchange.call.params.keys() {
            let here = if option == "tags" { vec![own.clone()] } else { paths.clone() };
            found.extend(of_option(option).map(|name| Claim {
                paths: here,
                privs: vec![name.into()],
                all: true,
            }));
        }
        found.extend(nets(table, exchange));
    }
    if !exchange.passed() {
        return found;
    }
    let volid = exchange.value("ostemplate").unwrap_or_default();
    if exchange.value("restore").as_deref() == Some("1") && volid.contains(":backup/") {
        found.extend(archive(&volid));
    }
    let disks = exchange.call.params.iter().filter(|(key, _)| of_option(key) == Some("VM.Config.Disk"));
    let on: Vec<String> = disks
        .filter_map(|(_, value)| value.as_str()?.split_once(':').map(|(storage, _)| storage.to_owned()))
        .collect();
    let on = if on.is_empty() { exchange.value("storage").into_iter().collect() } else { on };
    found.extend(
        on.into_iter().map(|storage| claim(format!("/storage/{storage}"), &["Datastore.AllocateSpace"])),
    );
    found
}

fn nets(table: &Table, exchange: &Exchange<'_>) -> Vec<Claim> {
    let given = exchange
        .call
        .params
        .iter()
        .filter(|(key, _)| key.strip_prefix("net").is_some_and(|n| n.parse::<u32>().is_ok()));
    given
        .filter_map(|(_, value)| {
            let net = property::parse(table, table.format("net")?, value.as_str()?).ok()?;
            let tag = net.get("tag").map(|tag| format!("/{tag}")).unwrap_or_default();
            Some(claim(format!("/sdn/zones/localnetwork/{}{tag}", net.get("bridge")?), &["SDN.Use"]))
        })
        .collect()
}

fn change(table: &Table, exchange: &Exchange<'_>) -> Vec<Claim> {
    let Some(path) = exchange.fill("/vms/{vmid}") else { return Vec::new() };
    let deleted = exchange.value("delete").unwrap_or_default();
    let named = exchange.call.params.keys().cloned().chain(deleted.split(',').map(str::to_owned));
    let wanted = named.filter_map(|option| of_option(&option));
    match exchange.denial() {
        None if exchange.passed() => {
            wanted.map(|name| claim(path.clone(), &[name])).chain(nets(table, exchange)).collect()
        }
        // The storage or the bridge is checked only after the right to change the option.
        Some((denied, _)) if denied.starts_with("/storage/") => vec![claim(path, &["VM.Config.Disk"])],
        Some((denied, _)) if denied.starts_with("/sdn/") => vec![claim(path, &["VM.Config.Network"])],
        _ => Vec::new(),
    }
}

fn backup(exchange: &Exchange<'_>) -> Vec<Claim> {
    let storage = exchange.value("storage").filter(|_| exchange.passed());
    let mut found: Vec<Claim> = storage
        .map(|storage| claim(format!("/storage/{storage}"), &["Datastore.AllocateSpace"]))
        .into_iter()
        .collect();
    let succeeded =
        exchange.task.is_some_and(|task| task.last.get("exitstatus").and_then(Value::as_str) == Some("OK"));
    if succeeded && exchange.task_is_fine() {
        found.extend(
            exchange
                .value("vmid")
                .unwrap_or_default()
                .split(',')
                .map(|vmid| claim(format!("/vms/{vmid}"), &["VM.Backup"])),
        );
    }
    found
}

fn reassign(exchange: &Exchange<'_>) -> Vec<Claim> {
    let (Some(target), denial) = (exchange.value("target-vmid"), exchange.denial()) else {
        return Vec::new();
    };
    let beyond = exchange.passed()
        || exchange.call.answer.status == 500
        || denial.is_some_and(|(path, _)| path.starts_with("/storage/"));
    if beyond { vec![claim(format!("/vms/{target}"), &["VM.Config.Disk"])] } else { Vec::new() }
}

/// Reading or changing the backup of a guest.
pub(super) fn archive(volid: &str) -> Vec<Claim> {
    let Some((storage, name)) = volid.split_once(':') else { return Vec::new() };
    let Some(vmid) = name.strip_prefix("backup/").and_then(backup_owner) else { return Vec::new() };
    vec![
        claim(format!("/storage/{storage}"), &["Datastore.AllocateSpace"]),
        claim(format!("/vms/{vmid}"), &["VM.Backup"]),
    ]
}
