//! Preconditions about the past of a node.
//!
//! In: one recorded exchange, or the whole recording at its start. Out: the things that its answers show and that no recorded call made.
use serde_json::Value;

use super::known_differences::Storage;
use super::precondition::{Premises, SECRET};
use super::recording::{Call, Task};
use crate::access::config::{Token, User};
use crate::fault::admin::Edit;
use crate::storage::config::StorageConfig;
use crate::task::index::Ended;
use crate::task::upid::Upid;

/// An address that a node's administrator may have.
const ADDRESS: &str = "root@example.invalid";

fn rows(call: &Call) -> Vec<&Value> {
    let fine = call.method == "GET" && call.answer.status == 200;
    let body = call.answer.body.as_ref().filter(|_| fine).and_then(|body| body.get("data"));
    body.and_then(Value::as_array).into_iter().flatten().collect()
}

fn word<'a>(row: &'a Value, key: &str) -> Option<&'a str> {
    row.get(key).and_then(Value::as_str)
}

fn plain_path(call: &Call) -> &str {
    call.path.split('?').next().unwrap_or_default()
}

impl Premises<'_> {
    /// Storages that the recording speaks of, and the roles that it hands out.
    pub(super) fn lived_in(&mut self, storages: &[Storage]) {
        let spoken: Vec<&Storage> = storages.iter().filter(|storage| self.speaks_of(&storage.name)).collect();
        for storage in spoken {
            let text =
                format!("{}: {}\n\t{}\n", storage.kind, storage.name, storage.storage_cfg.join("\n\t"));
            let mut world = self.node.world();
            if world.storage.find(&storage.name).is_none() {
                world.storage.all.extend(StorageConfig::parse(&text).all);
                drop(world);
                self.taken.push(format!("at the start: storage {} is defined", storage.name));
            }
        }
        let handed: Vec<String> = self
            .calls()
            .filter(|(_, call, _)| call.path.ends_with("/access/acl") && call.answer.status == 200)
            .filter_map(|(_, call, _)| call.param("roles"))
            .collect();
        for role in handed.iter().flat_map(|roles| roles.split(',')) {
            let known = self.node.world().access.has_role(role) || self.makes_role(role);
            let listed = self.calls().filter(|(_, call, _)| plain_path(call).ends_with("/access/roles"));
            let shown = listed
                .flat_map(|(_, call, _)| rows(call))
                .find(|row| word(row, "roleid") == Some(role))
                .and_then(|row| word(row, "privs").map(str::to_owned));
            if let Some(privs) = shown.filter(|_| !known) {
                let privs = crate::schema::format::split_list(&privs).map(str::to_owned).collect();
                self.node.world().access.roles.insert(role.to_owned(), privs);
                self.taken.push(format!("at the start: role {role} is there as it is listed"));
            }
        }
    }

    fn speaks_of(&self, name: &str) -> bool {
        let in_volume = format!("{name}:");
        self.calls().any(|(_, call, task)| {
            let given = call
                .params
                .values()
                .any(|value| value.as_str().is_some_and(|text| text == name || text.starts_with(&in_volume)));
            given
                || call.path.contains(&format!("/storage/{name}/"))
                || call.evidence(task).contains(&format!("\"{in_volume}"))
        })
    }

    fn makes_role(&self, role: &str) -> bool {
        self.calls().any(|(_, call, _)| {
            call.method == "POST"
                && call.path.ends_with("/access/roles")
                && call.param("roleid").as_deref() == Some(role)
        })
    }

    /// Before one call.
    pub(super) fn lived(&mut self, number: usize, call: &Call, task: Option<&Task>, evidence: &str) {
        self.earlier_tasks(number, call);
        self.pools_of_rows(number, call);
        self.accounts(number, call);
        self.roles(number, call);
        self.restarted(number, call, task);
        self.address_of_root(number, call, evidence);
        self.room(number, call, evidence);
        self.freed(number, task);
    }

    /// Tasks of a list that no recorded call began.
    fn earlier_tasks(&mut self, number: usize, call: &Call) {
        if !(plain_path(call).ends_with("/nodes/pve1/tasks") || plain_path(call).ends_with("/cluster/tasks"))
        {
            return;
        }
        // The newest end comes first in a list.
        let listed = rows(call).into_iter().rev().filter_map(|row| {
            let ended = Ended {
                endtime: row.get("endtime").and_then(Value::as_i64)?,
                status: word(row, "status")?.to_owned(),
            };
            Some((Upid::parse(word(row, "upid")?)?, ended))
        });
        let mut count = 0;
        for (upid, ended) in listed.collect::<Vec<_>>() {
            let name = upid.to_string();
            if self.begins(&upid) || self.node.tasks.ended(&name).is_some() {
                continue;
            }
            count += usize::from(self.node.tasks.import(&upid, ended, &self.log_of(&name)).is_ok());
        }
        if count > 0 {
            self.taken.push(format!("before line {}: {count} earlier tasks are remembered", number + 1));
        }
    }

    /// Whether a recorded call began this task; a conversion to a template does not answer its name.
    fn begins(&self, upid: &Upid) -> bool {
        let name = upid.to_string();
        let converted = format!("/lxc/{}/template", upid.id);
        self.calls().any(|(_, call, _)| {
            let data = call.answer.body.as_ref().and_then(|body| body.get("data"));
            let converts = upid.kind == "vztemplate"
                && call.answer.status == 200
                && call.path.ends_with(&converted)
                && call.auth == format!("token:{}", upid.owner);
            converts || data.and_then(Value::as_str) == Some(name.as_str())
        })
    }

    /// The log of an earlier task, when the recording shows it.
    fn log_of(&self, name: &str) -> Vec<String> {
        let shown = self.calls().find(|(_, call, _)| {
            let path = percent_encoding::percent_decode_str(plain_path(call)).decode_utf8_lossy();
            path.ends_with(&format!("/tasks/{name}/log"))
        });
        let lines = shown.map(|(_, call, _)| rows(call)).unwrap_or_default();
        lines.into_iter().filter_map(|line| word(line, "t").map(str::to_owned)).collect()
    }

    /// A guest that is shown in a pool is in it.
    fn pools_of_rows(&mut self, number: usize, call: &Call) {
        if !plain_path(call).ends_with("/cluster/resources") {
            return;
        }
        for row in rows(call) {
            let vmid = row.get("vmid").and_then(Value::as_u64).and_then(|vmid| u32::try_from(vmid).ok());
            if let (Some(vmid), Some(pool)) = (vmid, word(row, "pool")) {
                self.member(number, vmid, pool);
            }
        }
    }

    /// A change that the recorder made by hand on the node, with a recorded command.
    pub(super) fn commanded(&mut self, number: usize, command: &str) {
        for part in command.split(';') {
            let words: Vec<&str> = part.split_whitespace().collect();
            match words.as_slice() {
                ["pct", "unlock", vmid] => {
                    if let Some(vmid) = vmid.parse().ok().filter(|vmid| self.node.world().guests.has(*vmid)) {
                        self.edit(number, &Edit::Unset { vmid, key: "lock".to_owned() });
                    }
                }
                ["pct", "delsnapshot", vmid, name] => {
                    vmid.parse().into_iter().for_each(|vmid| self.unshot(number, vmid, name));
                }
                ["pveum", "user", "modify", id, "-email", address] => {
                    let mut world = self.node.world();
                    world
                        .access
                        .users
                        .get_mut(*id)
                        .into_iter()
                        .for_each(|user| (*address).clone_into(&mut user.email));
                    drop(world);
                    self.taken.push(format!("line {}: the address of {id} is {address:?}", number + 1));
                }
                _ => {}
            }
        }
    }

    /// Drops a snapshot by hand.
    fn unshot(&mut self, number: usize, vmid: u32, name: &str) {
        let mut world = self.node.world();
        let Ok(mut config) = world.guests.get(vmid).cloned() else { return };
        let Some(held) = config.snapshots.remove(name) else { return };
        for mount in crate::guest::options::mounts(&self.node.table, &held) {
            // One that was not taken of this volume is not there to be dropped.
            let _ = world.store().drop_snapshot(mount.volume(), name);
        }
        if config.main.get("parent") == Some(name) {
            match held.get("parent") {
                Some(parent) => config.main.set("parent", parent),
                None => drop(config.main.unset("parent")),
            }
        }
        let done = world.guests.put(vmid, config).is_ok();
        drop(world);
        self.taken
            .push(format!("line {}: snapshot {name} of {vmid} is dropped by hand ({done})", number + 1));
    }

    /// When no worker is busy with the guest, a lock that a list shows or lacks was set or removed by hand.
    pub(super) fn locks_of_rows(&mut self, number: usize, rows: &[Value]) {
        for row in rows {
            let Some(vmid) =
                row.get("vmid").and_then(Value::as_u64).and_then(|vmid| u32::try_from(vmid).ok())
            else {
                continue;
            };
            let Ok(held) = self.node.world().guests.get(vmid).map(|config| config.lock().map(str::to_owned))
            else {
                continue;
            };
            if self.node.tasks.all().0.iter().any(|upid| upid.id == vmid.to_string()) {
                continue;
            }
            let shown = word(row, "lock").map(str::to_owned);
            match shown {
                Some(value) if held.as_ref() != Some(&value) => {
                    self.edit(number, &Edit::Set { vmid, key: "lock".to_owned(), value });
                }
                None if held.is_some() => self.edit(number, &Edit::Unset { vmid, key: "lock".to_owned() }),
                Some(_) | None => {}
            }
        }
    }

    /// A guest that the node's own list shows up or down is so, where no worker is at it.
    pub(super) fn power_of_rows(&mut self, number: usize, rows: &[Value]) {
        for row in rows {
            let vmid = row.get("vmid").and_then(Value::as_u64).and_then(|vmid| u32::try_from(vmid).ok());
            let Some(vmid) = vmid.filter(|vmid| self.node.world().guests.has(*vmid)) else { continue };
            let up = word(row, "status") == Some("running");
            let busy = self.node.tasks.all().0.iter().any(|upid| upid.id == vmid.to_string());
            if !busy && self.node.power.is_running(vmid) != up {
                self.edit(number, &if up { Edit::Start { vmid } } else { Edit::Stop { vmid } });
            }
        }
    }

    /// A guest that is there is a member of a pool, which is made where it is missing.
    pub(super) fn member(&mut self, number: usize, vmid: u32, pool: &str) {
        let mut world = self.node.world();
        let there = world.guests.has(vmid);
        if !there || world.access.pool_of(vmid) == Some(pool) {
            return;
        }
        world.access.pools.entry(pool.to_owned()).or_default().vms.insert(vmid);
        drop(world);
        self.taken.push(format!("before line {}: {vmid} is in pool {pool}", number + 1));
    }

    /// Users in the list exist, with their tokens; all others do not.
    fn accounts(&mut self, number: usize, call: &Call) {
        let all = call.auth.starts_with("token:root@pam!") || call.auth == "ticket:root@pam";
        if !all || !plain_path(call).ends_with("/access/users") || call.param("enabled").is_some() {
            return;
        }
        let listed = rows(call);
        if listed.is_empty() {
            return;
        }
        let full = call.param("full").is_some();
        let mut world = self.node.world();
        let mut changed = 0_usize;
        for row in &listed {
            let Some(id) = word(row, "userid") else { continue };
            let tokens: Vec<(String, Token)> = row
                .get("tokens")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(|token| {
                    let kept = Token {
                        expire: token.get("expire").and_then(Value::as_i64).unwrap_or_default(),
                        privsep: token.get("privsep").and_then(Value::as_i64) != Some(0),
                        comment: word(token, "comment").unwrap_or_default().to_owned(),
                    };
                    Some((word(token, "tokenid")?.to_owned(), kept))
                })
                .collect();
            if !world.access.users.contains_key(id) {
                let text = |key: &str| word(row, key).unwrap_or_default().to_owned();
                let user =
                    User { enabled: true, comment: text("comment"), email: text("email"), ..User::default() };
                world.access.users.insert(id.to_owned(), user);
                changed += 1;
            }
            for (name, token) in tokens.into_iter().filter(|_| full) {
                let held = world.access.users.get_mut(id);
                if held.is_some_and(|held| held.tokens.insert(name.clone(), token).is_none()) {
                    let secrets = &mut world.secrets.tokens;
                    secrets.entry(format!("{id}!{name}")).or_insert_with(|| SECRET.to_owned());
                    changed += 1;
                }
            }
        }
        let before = world.access.users.len();
        world.access.users.retain(|id, _| listed.iter().any(|row| word(row, "userid") == Some(id)));
        changed += before - world.access.users.len();
        drop(world);
        if changed > 0 {
            self.taken.push(format!("before line {}: {changed} accounts are as they are listed", number + 1));
        }
    }

    /// A role that is not listed is not there.
    fn roles(&mut self, number: usize, call: &Call) {
        let listed = rows(call);
        if !plain_path(call).ends_with("/access/roles") || listed.is_empty() {
            return;
        }
        let mut world = self.node.world();
        let before = world.access.roles.len();
        world.access.roles.retain(|name, _| listed.iter().any(|row| word(row, "roleid") == Some(name)));
        let gone = before - world.access.roles.len();
        drop(world);
        if gone > 0 {
            self.taken.push(format!("before line {}: {gone} roles are not there", number + 1));
        }
    }

    /// A backup that already uses options pending until a stop proves that the guest was restarted meanwhile.
    fn restarted(&mut self, number: usize, call: &Call, task: Option<&Task>) {
        let vmid = call.param("vmid").and_then(|vmid| vmid.parse::<u32>().ok());
        let Some((vmid, task)) = vmid.filter(|_| call.path.ends_with("/vzdump")).zip(task) else { return };
        let Some(config) = self.node.world().guests.get(vmid).ok().cloned() else { return };
        let now = |key: &str, value: &str| {
            let mount = crate::guest::options::Mount::parse(&self.node.table, key, value);
            mount.is_ok_and(|mount| mount.in_backup())
        };
        let follows = config.pending.iter().any(|(key, value)| {
            let (held, waits) = (config.main.get(key).is_some_and(|held| now(key, held)), now(key, value));
            let reported = if waits { "including" } else { "excluding volume" };
            let line = format!("INFO: {reported} mount point {key} (");
            held != waits && task.log.iter().any(|logged| logged.starts_with(&line))
        });
        if follows && self.node.power.is_running(vmid) {
            self.edit(number, &Edit::Stop { vmid });
            self.edit(number, &Edit::Start { vmid });
        }
    }

    /// Whether the administrator has an email address: the log of a job, or a read of the account, shows it.
    fn address_of_root(&mut self, number: usize, call: &Call, evidence: &str) {
        let look = plain_path(call).ends_with("/access/users/root@pam") && call.answer.status == 200;
        let shown = call.answer.body.as_ref().and_then(|body| body.pointer("/data/email")?.as_str());
        let wanted = match () {
            () if evidence.contains("'root@pam' does not have a configured email address") => "",
            () if evidence.contains("notified via target `mail-to-root`") => ADDRESS,
            () if look && call.method == "GET" => shown.unwrap_or_default(),
            () => return,
        };
        let mut world = self.node.world();
        let Some(root) = world.access.users.get_mut("root@pam").filter(|root| root.email != wanted) else {
            return;
        };
        root.email = wanted.to_owned();
        drop(world);
        self.taken.push(format!("before line {}: the address of root@pam is {wanted:?}", number + 1));
    }

    /// A storage that a copy did not fit on was full, and is not any longer.
    fn room(&mut self, number: usize, call: &Call, evidence: &str) {
        let copies = call.path.ends_with("/move_volume") && evidence.contains("No space left on device");
        if let Some(storage) = self.full.take() {
            self.edit(number, &Edit::StorageFill { storage, percent: None });
        }
        if let Some(storage) = call.param("storage").filter(|_| copies) {
            self.full = Some(storage.clone());
            self.edit(number, &Edit::StorageFill { storage, percent: Some(100) });
        }
    }

    /// A volume that was removed had been there.
    fn freed(&mut self, number: usize, task: Option<&Task>) {
        let whole = task.filter(|task| !task.log.iter().any(|line| line.contains("does not exist")));
        let removed =
            whole.and_then(|task| task.log.iter().find_map(|line| line.strip_prefix("Removed volume '")));
        let Some(volid) = removed.and_then(|rest| rest.strip_suffix('\'')) else { return };
        let disk = volid.contains("/vm-") || volid.contains("/subvol-");
        let world = self.node.world();
        if !disk || world.store().exists(volid) {
            return;
        }
        let bytes = if volid.ends_with(".subvol") { 0 } else { 1 << 30 };
        let made = crate::state::seed::make_disk(&world.store(), volid, bytes).is_ok();
        drop(world);
        self.taken.push(format!("before line {}: volume {volid} lies there ({made})", number + 1));
    }
}
