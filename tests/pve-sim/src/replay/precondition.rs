//! Manual changes between recorded calls.
//!
//! A recording starts on a node that has been lived in, and its recorder locks, unlocks, removes and restores things on the node between
//! calls. A recorded answer alone proves some of this: an answer `CT is locked (backup)` proves the lock, `CT 120 not running`
//! proves that it is stopped. Only such proofs are turned into hand edits; our own answer is never used.
use std::collections::BTreeSet;
use std::sync::Arc;

use regex::Regex;
use serde_json::Value;

use super::known_differences::Principal;
use super::names::Names;
use super::recording::{Call, Content, Line, Task};
use crate::fail::Fallible;
use crate::fault::admin::{Edit, apply};
use crate::node::Node;

/// The secret of every token in a replay.
pub const SECRET: &str = "00000000-1111-2222-3333-444444444444";

/// Reads premises out of a recording.
#[derive(Debug)]
pub struct Premises<'a> {
    pub(super) node: &'a Arc<Node>,
    pub(super) lines: &'a [Line],
    pub(super) patterns: Patterns,
    /// The premises that were assumed, as text.
    pub taken: Vec<String>,
    pub(super) granted: BTreeSet<String>,
    /// Lines about a guest's state that were taken already.
    pub(super) seen: BTreeSet<usize>,
    /// A storage that was set to full for one call.
    pub(super) full: Option<String>,
}

#[derive(Debug)]
pub(super) struct Patterns {
    pub(super) in_path: Regex,
    pub(super) locked: Regex,
    pub(super) missing_volume: Regex,
    pub(super) disabled: Regex,
    pub(super) protected: Regex,
    pub(super) denied: Regex,
    pub(super) volume: Regex,
    pub(super) mounted: Regex,
    pub(super) orphan: Regex,
    pub(super) image: Regex,
}

impl Patterns {
    fn new() -> Result<Self, regex::Error> {
        Ok(Self {
            in_path: Regex::new(r"/lxc/(\d{3,9})")?,
            locked: Regex::new(r"CT is locked \(([a-z-]+)\)")?,
            missing_volume: Regex::new(r"volume '([a-z0-9]+:(\d+)/[^' ]+)' does not exist")?,
            disabled: Regex::new(r"storage '([a-z0-9]+)' is disabled")?,
            protected: Regex::new(r"protection mode enabled")?,
            denied: Regex::new(r"granted=(\{.*\})")?,
            image: Regex::new(r"/mnt/(\w+)/images/\d+/(\S+\.raw)")?,
            mounted: Regex::new(r"(including|excluding) (?:volume )?mount point (mp\d+) \('([^']+)'\)")?,
            orphan: Regex::new(
                r"btrfs subvolume snapshot -r -- (\S+) \S+@(\w+)' failed: ERROR: Could not create subvolume",
            )?,
            volume: Regex::new(r"([a-z0-9]+):(\d+)/(?:vm|subvol)-\d+-disk-\d+")?,
        })
    }
}

impl<'a> Premises<'a> {
    /// For one file.
    ///
    /// # Errors
    /// Never in practice: the patterns are fixed.
    pub fn new(node: &'a Arc<Node>, lines: &'a [Line]) -> Result<Self, regex::Error> {
        Ok(Self {
            node,
            lines,
            patterns: Patterns::new()?,
            taken: Vec::new(),
            granted: BTreeSet::new(),
            seen: BTreeSet::new(),
            full: None,
        })
    }

    pub(super) fn edit(&mut self, number: usize, edit: &Edit) {
        match apply(self.node, edit) {
            Ok(()) => self.taken.push(format!("before line {}: {edit:?}", number + 1)),
            Err(refusal) => {
                self.taken.push(format!("before line {}: {edit:?} failed: {refusal}", number + 1))
            }
        }
    }

    /// Principals, their rights, and guests that the file never makes.
    pub fn opening(&mut self, principals: &[Principal]) {
        let mut ids: BTreeSet<String> = BTreeSet::new();
        for line in self.lines {
            if let Content::Call(call) = &line.content
                && let Some(id) = call.auth.strip_prefix("token:")
            {
                ids.insert(id.to_owned());
            }
        }
        // A token that the recording itself makes does not exist before.
        let earlier: Vec<&String> = ids.iter().filter(|id| !self.is_made(id)).collect();
        for id in earlier {
            self.edit(0, &Edit::Token { id: id.clone(), secret: SECRET.to_owned(), privsep: true });
        }
        let lines: Vec<String> = principals
            .iter()
            .filter(|principal| ids.contains(&principal.id))
            .flat_map(|principal| principal.user_cfg.clone())
            .collect();
        let lines: Vec<String> = lines.into_iter().collect::<BTreeSet<_>>().into_iter().rev().collect();
        if !lines.is_empty() {
            self.user_cfg(&lines);
        }
        self.latecomers(&ids);
        self.memory_of_the_seed();
        self.archives_to_come();
        let users: BTreeSet<String> = self
            .calls()
            .filter(|(_, call, _)| call.param("password").as_deref() == Some("<password>"))
            .filter_map(|(_, call, _)| call.param("username"))
            .collect();
        for user in users {
            let hash = self.node.world().secrets.passwords.get("root@pam").cloned();
            self.node.world().secrets.passwords.extend(hash.map(|hash| (user, hash)));
        }
    }

    /// Whether a recorded call makes this token.
    fn is_made(&self, id: &str) -> bool {
        makes_token(self.calls().map(|(_, call, _)| call), id)
    }

    /// The seed was taken at the end: an archive that a recorded backup makes was not there before it.
    pub(super) fn archives_to_come(&mut self) {
        let seeded = include_str!("../../lab/volumes.txt")
            .lines()
            .filter_map(|line| line.rsplit_once(' ').map(|(volid, _)| volid));
        let to_come: Vec<String> =
            seeded.filter(|volid| self.is_made_by_backup(volid, usize::MAX)).map(str::to_owned).collect();
        to_come.into_iter().for_each(|volid| self.edit(0, &Edit::RemoveVolume { volid }));
    }

    /// Whether a backup recorded before a line made this archive.
    pub(super) fn is_made_by_backup(&self, volid: &str, before: usize) -> bool {
        let Some(name) =
            volid.rsplit('/').next().filter(|name| name.contains(".tar") && !name.ends_with(".notes"))
        else {
            return false;
        };
        let made = format!("/{name}'");
        let jobs = self.calls().filter(|(at, ..)| *at < before).filter_map(|(_, _, task)| task);
        jobs.flat_map(|task| &task.log)
            .any(|line| line.contains("creating vzdump archive") && line.ends_with(&made))
    }

    /// The seed was taken at the end. A principal that a recording of users, roles and rights does not use did not exist
    /// yet.
    pub(super) fn latecomers(&mut self, ids: &BTreeSet<String>) {
        let about_access = self.calls().any(|(_, call, _)| {
            ["/access/acl", "/access/roles", "/access/permissions"]
                .iter()
                .any(|part| call.path.contains(part))
        });
        if !about_access || ids.iter().any(|id| id.starts_with("agent2@pve!")) {
            return;
        }
        let mut world = self.node.world();
        world.access.users.remove("agent2@pve");
        world.access.roles.retain(|name, _| !name.starts_with("Agent"));
        for node in world.access.acl.values_mut() {
            node.users.remove("agent2@pve");
        }
        world
            .access
            .acl
            .retain(|_, node| !(node.users.is_empty() && node.tokens.is_empty() && node.groups.is_empty()));
        drop(world);
        self.taken.push("at the start: agent2@pve and its roles are not there yet".to_owned());
    }

    /// A seeded guest has the memory that the recording first shows.
    pub(super) fn memory_of_the_seed(&mut self) {
        let seeded: Vec<u32> = self.node.world().guests.all().keys().copied().collect();
        for vmid in seeded {
            let shown = self.calls().find_map(|(at, call, _)| {
                let body = call.answer.body.as_ref()?;
                let rows = body.get("data")?.as_array();
                let row = rows
                    .into_iter()
                    .flatten()
                    .find(|row| row.get("vmid").and_then(Value::as_u64) == Some(u64::from(vmid)));
                let of_row =
                    row.and_then(|row| row.get("maxmem")).and_then(Value::as_u64).map(|bytes| bytes >> 20);
                let of_config = body
                    .pointer("/data/memory")
                    .and_then(Value::as_u64)
                    .filter(|_| call.path.contains(&format!("/lxc/{vmid}/config")));
                of_row.or(of_config).map(|mebibytes| (at, mebibytes))
            });
            let changed = self
                .calls()
                .find(|(_, call, _)| {
                    call.method == "PUT" && call.path.contains(&format!("/lxc/{vmid}/config"))
                })
                .map_or(usize::MAX, |(at, ..)| at);
            if let Some((_, mebibytes)) = shown.filter(|(at, _)| *at < changed) {
                let held = self
                    .node
                    .world()
                    .guests
                    .get(vmid)
                    .ok()
                    .and_then(|config| config.main.get("memory").map(str::to_owned));
                if held != Some(mebibytes.to_string()) {
                    self.edit(0, &Edit::Set { vmid, key: "memory".into(), value: mebibytes.to_string() });
                }
            }
        }
    }

    pub(super) fn user_cfg(&mut self, lines: &[String]) {
        let mut world = self.node.world();
        let text = format!("{}{}\n", world.access.print(), lines.join("\n"));
        world.access = crate::access::config::AccessConfig::parse(&text);
        self.taken.push(format!("at the start: user.cfg gains {} lines", lines.len()));
    }

    /// Before one call.
    ///
    /// # Errors
    /// Never; an edit that cannot be done is reported among the premises.
    pub fn before(&mut self, line: &Line, call: &Call, task: Option<&Task>, names: &Names) -> Fallible<()> {
        self.grants(line.number, call);
        let evidence = call.evidence(task);
        self.lived(line.number, call, task, &evidence);
        self.users(line.number, call);
        self.archives(line.number, call, &evidence);
        self.on_server(line.number, call, &evidence, names);
        self.bars(line.number, call, task);
        self.former_snapshot(line.number, call, task);
        self.pool_sums(line.number, call);
        self.pruned(line.number, call, task, names);
        self.unprotected(line.number, call, task, names);
        self.storages(line.number, call, &evidence);
        self.lists(line.number, call);
        self.foreign_task(line.number, call);
        self.firewall(line.number, call);
        // A guest need not be there for its firewall.
        let about = if call.path.contains("/firewall") { Vec::new() } else { self.guests_of(call) };
        for vmid in about {
            self.guest(line.number, call, task, vmid, &evidence);
        }
        Ok(())
    }

    /// Rights as the recorder's note lists them.
    pub(super) fn grants(&mut self, number: usize, call: &Call) {
        let Some(id) = call.auth.strip_prefix("token:").map(str::to_owned) else { return };
        let found = self
            .patterns
            .denied
            .captures(&call.note)
            .and_then(|found| found.get(1).map(|text| text.as_str().to_owned()));
        let Some(text) = found else { return };
        let granted: Value = serde_json::from_str(&text).unwrap_or_default();
        // Rights on a pool are checked for its members.
        let pools =
            granted.as_object().into_iter().flatten().filter_map(|(path, _)| path.strip_prefix("/pool/"));
        for pool in pools.map(str::to_owned).collect::<Vec<_>>() {
            let about = call.param("path").and_then(|path| path.strip_prefix("/vms/")?.parse().ok());
            let asked = if call.path.contains("/pools") { Vec::new() } else { self.guests_of(call) };
            for vmid in asked.into_iter().chain(about) {
                let mut world = self.node.world();
                if world.access.pools.entry(pool.clone()).or_default().vms.insert(vmid) {
                    drop(world);
                    self.taken.push(format!("before line {}: {vmid} is in pool {pool}", number + 1));
                }
            }
        }
        let key = format!("{id} {text}");
        if self.granted.contains(&key) {
            return;
        }
        self.granted = BTreeSet::from([key]);
        let user = id.rsplit_once('!').map_or(id.clone(), |(user, _)| user.to_owned());
        let mut world = self.node.world();
        for node in world.access.acl.values_mut() {
            node.users.remove(&user);
            node.tokens.remove(&id);
        }
        for (n, (path, privs)) in granted.as_object().into_iter().flatten().enumerate() {
            let role = format!("{}Granted{n}", OWN);
            let privs =
                privs.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
            world.access.roles.insert(role.clone(), privs);
            world.access.grant(path, &user, &role, false);
            world.access.grant(path, &id, &role, false);
        }
        drop(world);
        self.taken.push(format!("before line {}: {id} is granted {text}", number + 1));
    }

    pub(super) fn users(&mut self, number: usize, call: &Call) {
        let token = call
            .auth
            .strip_prefix("token:")
            .and_then(|id| id.rsplit_once('!'))
            .map(|(user, _)| user.to_owned());
        let ticket = call
            .auth
            .strip_prefix("ticket:")
            .or_else(|| call.auth.strip_prefix("ticket-nocsrf:"))
            .map(str::to_owned);
        let Some(user) = token.or(ticket).or_else(|| call.param("username")) else { return };
        let wanted = match call.note.as_str() {
            "user disabled" if call.answer.status == 401 => (false, 0),
            "user expired" if call.answer.status == 401 => (true, 1_000_000_000),
            // As recorded calls left them.
            _ if call.answer.status == 401 => return,
            _ => (true, 0),
        };
        let held = self.node.world().access.users.get(&user).map(|held| (held.enabled, held.expire));
        if held.is_some_and(|held| held != wanted) {
            self.edit(number, &Edit::User { id: user, enabled: wanted.0, expire: wanted.1 });
        }
    }

    pub(super) fn storages(&mut self, number: usize, call: &Call, evidence: &str) {
        let shown_off = call.path.ends_with("/status")
            && call.path.contains("/storage/")
            && evidence.contains("\"enabled\":0");
        let named = self
            .patterns
            .disabled
            .captures(evidence)
            .and_then(|found| found.get(1).map(|name| name.as_str().to_owned()));
        let in_path = call
            .path
            .split("/storage/")
            .nth(1)
            .and_then(|rest| rest.split(['/', '?']).next())
            .map(str::to_owned);
        let off = named.or_else(|| in_path.clone().filter(|_| shown_off)).or_else(|| {
            call.param("storage")
                .filter(|_| evidence.contains("\"enabled\":0") && call.path.ends_with("/storage"))
        });
        let held: Vec<String> = self
            .node
            .world()
            .storage
            .all
            .iter()
            .filter(|(_, held)| held.is_disabled())
            .map(|(name, _)| name.clone())
            .collect();
        if let Some(name) = off {
            if !held.contains(&name) && self.node.world().storage.find(&name).is_some() {
                self.edit(number, &Edit::StorageDisable { storage: name, disabled: true });
            }
            return;
        }
        let mutating = call.method != "GET";
        for name in held {
            if mutating || in_path.as_deref() == Some(&name) {
                self.edit(number, &Edit::StorageDisable { storage: name, disabled: false });
            }
        }
    }

    /// A task that ended before the recording is remembered as the recording shows it.
    pub(super) fn foreign_task(&mut self, number: usize, call: &Call) {
        let decoded = percent_encoding::percent_decode_str(&call.path).decode_utf8_lossy().into_owned();
        let Some(upid) = decoded
            .split("/tasks/")
            .nth(1)
            .and_then(|rest| rest.split('/').next())
            .and_then(crate::task::upid::Upid::parse)
        else {
            return;
        };
        let own = self.calls().any(|(_, call, _)| {
            call.answer.body.as_ref().and_then(|body| body.get("data")).and_then(Value::as_str)
                == Some(upid.to_string().as_str())
        });
        let name = upid.to_string();
        if own || self.node.tasks.ended(&name).is_some() || call.answer.status != 200 {
            return;
        }
        let data = call.answer.body.as_ref().and_then(|body| body.get("data"));
        let exit = data.and_then(|data| data.get("exitstatus")).and_then(Value::as_str);
        let log: Vec<String> = data
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|line| line.get("t").and_then(Value::as_str).map(str::to_owned))
            .collect();
        let known = exit.is_some() || log.last().is_some_and(|line| line.starts_with("TASK "));
        if known {
            let ended = crate::task::index::Ended {
                endtime: upid.starttime,
                status: exit.unwrap_or("OK").to_owned(),
            };
            let done = self.node.tasks.import(&upid, ended, &log).is_ok();
            self.taken.push(format!("before line {}: task {name} is remembered ({done})", number + 1));
        }
    }

    /// Removes what a recorded list does not show: guests made or removed by hand, and parts of the seed that came later.
    pub(super) fn lists(&mut self, number: usize, call: &Call) {
        if call.path.ends_with("/cluster/nextid") && call.param("vmid").is_none() {
            let next = call
                .answer
                .body
                .as_ref()
                .and_then(|body| body.get("data"))
                .and_then(Value::as_str)
                .and_then(|text| text.parse::<u32>().ok());
            if let Some(vmid) = next.filter(|vmid| self.node.world().guests.has(*vmid)) {
                self.edit(number, &Edit::Destroy { vmid });
            }
        }
        let plain = call.path.split('?').next().unwrap_or_default();
        let Some(rows) = call
            .answer
            .body
            .as_ref()
            .and_then(|body| body.get("data"))
            .and_then(Value::as_array)
            .filter(|_| call.method == "GET" && call.answer.status == 200)
        else {
            return;
        };
        let who = call.auth.strip_prefix("token:").unwrap_or("root@pam").to_owned();
        let whole = call.param("type").is_none_or(|kind| kind == "vm");
        if plain.ends_with("/nodes/pve1/lxc") || plain.ends_with("/cluster/resources") && whole {
            let listed: BTreeSet<u64> =
                rows.iter().filter_map(|row| row.get("vmid").and_then(Value::as_u64)).collect();
            let gone: Vec<u32> = {
                let world = self.node.world();
                let judge = crate::access::evaluate::Judge { config: &world.access, who: &who };
                let visible = world
                    .guests
                    .all()
                    .keys()
                    .filter(|vmid| judge.has(&format!("/vms/{vmid}"), &["VM.Audit"]));
                visible.filter(|vmid| !listed.contains(&u64::from(**vmid))).copied().collect()
            };
            gone.into_iter().for_each(|vmid| self.edit(number, &Edit::Destroy { vmid }));
            self.locks_of_rows(number, rows);
            if plain.ends_with("/nodes/pve1/lxc") {
                self.power_of_rows(number, rows);
            }
        }
        if plain.ends_with("/content") {
            let vmid = call.param("vmid").and_then(|id| id.parse().ok());
            self.content(number, plain, (call.param("content").as_deref(), vmid), rows);
        }
    }

    pub(super) fn content(
        &mut self,
        number: usize,
        path: &str,
        (kind, vmid): (Option<&str>, Option<u32>),
        rows: &[Value],
    ) {
        let Some(storage) =
            path.split("/storage/").nth(1).and_then(|rest| rest.split('/').next()).map(str::to_owned)
        else {
            return;
        };
        let listed: BTreeSet<&str> =
            rows.iter().filter_map(|row| row.get("volid").and_then(Value::as_str)).collect();
        let (mut guests, mut files) = (BTreeSet::new(), Vec::new());
        {
            let world = self.node.world();
            for row in crate::call::content::rows(&world, &storage, kind, vmid)
                .unwrap_or_default()
                .iter()
                .filter(|row| !listed.contains(row.volid.as_str()))
            {
                let seeded = include_str!("../../lab/volumes.txt").contains(&row.volid);
                match row.vmid.filter(|_| row.content == "rootdir") {
                    Some(vmid) if matches!(vmid, 100 | 200) => drop(guests.insert(vmid)),
                    None if seeded => files.push(row.volid.clone()),
                    Some(_) | None if seeded => files.push(row.volid.clone()),
                    Some(_) | None => {}
                }
            }
        }
        guests.into_iter().for_each(|vmid| self.edit(number, &Edit::Destroy { vmid }));
        files.into_iter().for_each(|volid| self.edit(number, &Edit::RemoveVolume { volid }));
    }

    pub(super) fn calls(&self) -> impl Iterator<Item = (usize, &Call, Option<&Task>)> {
        self.lines.iter().enumerate().filter_map(|(at, line)| match &line.content {
            Content::Call(call) => {
                Some((line.number, call.as_ref(), super::recording::task_of(self.lines, at)))
            }
            _ => None,
        })
    }
}

/// Whether one of these calls makes a token.
pub(super) fn makes_token<'a>(mut calls: impl Iterator<Item = &'a Call>, id: &str) -> bool {
    let Some((user, name)) = id.rsplit_once('!') else { return false };
    let path = format!("/access/users/{user}/token/{name}");
    calls.any(|call| call.method == "POST" && call.answer.status == 200 && call.path.ends_with(&path))
}

/// How roles begin that a replay made for itself.
pub const OWN: &str = "Replay";
