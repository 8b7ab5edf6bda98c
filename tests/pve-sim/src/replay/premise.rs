//! What was done by hand between recorded calls, as far as the recording shows it.
//!
//! A recording starts on a node that has been lived in, and its recorder locks, unlocks, removes and restores things on the node between
//! calls. From a recorded answer alone one can tell some of it: an answer `CT is locked (backup)` proves the lock, `CT 120 not running`
//! proves that it is stopped. Only such proofs are turned into hand edits; our own answer is never looked at.
use std::collections::BTreeSet;
use std::sync::Arc;

use regex::Regex;
use serde_json::Value;

use super::known::Principal;
use super::names::Names;
use super::recording::{Call, Content, Line, Task};
use crate::fail::Fallible;
use crate::fault::admin::{Edit, apply};
use crate::node::Node;

/// The secret of every token in a replay.
pub const SECRET: &str = "00000000-1111-2222-3333-444444444444";

/// Whether an answer to a creation could only be given when the number was free.
fn past_the_number(call: &Call) -> bool {
    let before = [
        "Parameter verification failed.",
        "Permission check failed (/, Sys.Modify)",
        "Permission check failed (/, Sys.Console)",
    ];
    call.answer.status != 401 && !before.contains(&call.answer.reason.as_str())
}

/// Reads premises out of a recording.
#[derive(Debug)]
pub struct Premises<'a> {
    pub(super) node: &'a Arc<Node>,
    lines: &'a [Line],
    patterns: Patterns,
    /// What was taken, in words.
    pub taken: Vec<String>,
    granted: BTreeSet<String>,
    /// Lines about a guest's state that were taken already.
    seen: BTreeSet<usize>,
}

#[derive(Debug)]
struct Patterns {
    in_path: Regex,
    locked: Regex,
    missing_volume: Regex,
    disabled: Regex,
    protected: Regex,
    denied: Regex,
    volume: Regex,
    mounted: Regex,
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
            mounted: Regex::new(r"(including|excluding) (?:volume )?mount point (mp\d+) \('([^']+)'\)")?,
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
        for id in &ids {
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

    /// The seed was taken at the end: an archive that a recorded backup makes was not there before it.
    fn archives_to_come(&mut self) {
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

    /// The seed was taken at the end: who is not used in a recording of users, roles and rights was not there yet.
    fn latecomers(&mut self, ids: &BTreeSet<String>) {
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
    fn memory_of_the_seed(&mut self) {
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

    fn user_cfg(&mut self, lines: &[String]) {
        let mut world = self.node.world();
        let text = format!("{}{}\n", world.access.print(), lines.join("\n"));
        world.access = crate::access::config::AccessConfig::parse(&text);
        self.taken.push(format!("at the start: user.cfg gains {} lines", lines.len()));
    }

    /// Before one call.
    ///
    /// # Errors
    /// Never; what cannot be done is told among the premises.
    pub fn before(&mut self, line: &Line, call: &Call, task: Option<&Task>, names: &Names) -> Fallible<()> {
        self.grants(line.number, call);
        let evidence = call.evidence(task);
        self.users(line.number, call);
        self.archives(line.number, call, &evidence);
        self.pruned(line.number, task, names);
        self.unprotected(line.number, call, task, names);
        self.storages(line.number, call, &evidence);
        self.lists(line.number, call);
        self.foreign_task(line.number, call);
        for vmid in self.guests_of(call) {
            self.guest(line.number, call, task, vmid, &evidence);
        }
        Ok(())
    }

    /// Rights as the recorder's note lists them.
    fn grants(&mut self, number: usize, call: &Call) {
        let Some(id) = call.auth.strip_prefix("token:").map(str::to_owned) else { return };
        let found = self
            .patterns
            .denied
            .captures(&call.note)
            .and_then(|found| found.get(1).map(|text| text.as_str().to_owned()));
        let Some(text) = found else { return };
        let granted: Value = serde_json::from_str(&text).unwrap_or_default();
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
            let role = format!("Granted{n}");
            let privs =
                privs.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
            world.access.roles.insert(role.clone(), privs);
            world.access.grant(path, &user, &role, false);
            world.access.grant(path, &id, &role, false);
        }
        drop(world);
        self.taken.push(format!("before line {}: {id} is granted {text}", number + 1));
    }

    fn users(&mut self, number: usize, call: &Call) {
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
            "user disabled" => (false, 0),
            "user expired" => (true, 1_000_000_000),
            _ => (true, 0),
        };
        let held = self.node.world().access.users.get(&user).map(|held| (held.enabled, held.expire));
        if held.is_some_and(|held| held != wanted) {
            self.edit(number, &Edit::User { id: user, enabled: wanted.0, expire: wanted.1 });
        }
    }

    /// A recorded archive that we do not have was made by hand, or on another day.
    fn archives(&mut self, number: usize, call: &Call, evidence: &str) {
        let asked = ["ostemplate", "volume", "archive"]
            .iter()
            .filter_map(|name| call.param(name))
            .find(|volid| volid.contains(":backup/vzdump-lxc-"));
        let from_path = call
            .path
            .split("/content/")
            .nth(1)
            .map(|rest| percent_encoding::percent_decode_str(rest).decode_utf8_lossy().into_owned());
        let from_query = call
            .path
            .split("volume=")
            .nth(1)
            .map(|rest| percent_encoding::percent_decode_str(rest).decode_utf8_lossy().into_owned());
        let volid =
            asked.or_else(|| from_path.filter(|volid| volid.contains(":backup/vzdump-lxc-"))).or(from_query);
        let Some(volid) = volid else { return };
        let missing = evidence.contains(&format!("volume '{volid}' does not exist"))
            || evidence.contains("disk image '");
        let gone = missing || call.answer.status == 403 || self.is_made_by_backup(&volid, number);
        let world = self.node.world();
        let store = world.store();
        if gone || store.exists(&volid) || store.locate(&volid).is_err() || volid.starts_with("offline:") {
            return;
        }
        let config = self.embedded(&volid).or_else(|| self.restored(&volid)).or_else(|| self.named(&volid));
        let made = crate::state::volumes::provide(&store, None, &volid, 0);
        let place = store.locate(&volid).map(|at| store.place(&at));
        if let (Ok(place), Some(config)) = (&place, config) {
            let _ = crate::state::volumes::write_backup(place, &config);
        }
        if evidence.contains("premature end")
            && let (Ok(place), Some(bytes)) = (&place, crate::state::volumes::genuine())
        {
            let _ = std::fs::write(place, bytes.get(..100_000).unwrap_or_default());
        }
        drop(world);
        self.taken.push(format!(
            "before line {}: archive {volid} made by hand ({})",
            number + 1,
            if made.is_ok() { "done" } else { "failed" }
        ));
    }

    /// The configuration inside an archive, when the recording shows it.
    fn embedded(&self, volid: &str) -> Option<String> {
        self.calls().find_map(|(_, call, _)| {
            let asked = call.path.contains("extractconfig")
                && (call.param("volume").as_deref() == Some(volid) || call.path.contains(volid));
            asked.then(|| call.answer.body.as_ref()?.get("data")?.as_str().map(str::to_owned)).flatten()
        })
    }

    /// The configuration of a guest restored from an archive, as shown next.
    fn restored(&self, volid: &str) -> Option<String> {
        let restores = self.calls().filter(|(_, call, _)| {
            call.path.ends_with("/lxc")
                && call.param("ostemplate").as_deref() == Some(volid)
                && call.answer.status == 200
        });
        restores
            .filter_map(|(at, call, _)| {
                let path = format!("/lxc/{}/config", call.param("vmid")?);
                let (_, shown, _) =
                    self.calls().find(|(next, call, _)| *next > at && call.path.ends_with(&path))?;
                let body = shown
                    .answer
                    .body
                    .as_ref()
                    .filter(|_| shown.method == "GET" && shown.answer.status == 200)?;
                Some(self.config_of(body, &BTreeSet::new()))
            })
            .next()
    }

    /// A small configuration for the guest that an archive is named after, with a network when a restore needed the right to one.
    fn named(&self, volid: &str) -> Option<String> {
        let vmid = crate::storage::volume::backup_owner(volid.rsplit('/').next()?)?;
        if vmid == 140 || vmid == 155 || vmid == 159 || vmid == 200 {
            return None;
        }
        let netted = self.calls().any(|(_, call, task)| {
            call.param("ostemplate").as_deref() == Some(volid)
                && task.is_some_and(|task| task.last.to_string().contains("SDN.Use"))
        });
        let net = if netted {
            format!("net0: name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:{:02X},type=veth\n", vmid % 256)
        } else {
            String::new()
        };
        let sized = self.calls().filter(|(_, call, _)| call.param("ostemplate").as_deref() == Some(volid));
        let bytes = sized.filter_map(|(_, _, task)| task).flat_map(|task| &task.log).find_map(|line| {
            line.starts_with("Formatting ")
                .then(|| line.split(" size=").nth(1)?.split(' ').next()?.parse::<u64>().ok())?
        });
        let size = bytes.map_or("size=1G".to_owned(), |bytes| format!("size={}M", bytes >> 20));
        Some(format!("{}{net}", self.small(vmid).replacen("size=1G", &size, 1)))
    }

    fn storages(&mut self, number: usize, call: &Call, evidence: &str) {
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
    fn foreign_task(&mut self, number: usize, call: &Call) {
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

    /// What a recorded list does not show was not there: guests made or removed by hand, and parts of the seed that came later.
    fn lists(&mut self, number: usize, call: &Call) {
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
        }
        if plain.ends_with("/content") {
            let vmid = call.param("vmid").and_then(|id| id.parse().ok());
            self.content(number, plain, (call.param("content").as_deref(), vmid), rows);
        }
    }

    fn content(
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

    /// Guests that a call is about.
    fn guests_of(&self, call: &Call) -> Vec<u32> {
        let mut found: Vec<u32> = self
            .patterns
            .in_path
            .captures(&call.path)
            .and_then(|found| found.get(1)?.as_str().parse().ok())
            .into_iter()
            .collect();
        if call.path.ends_with("/vzdump") || call.path.ends_with("/lxc") && call.method == "POST" {
            found.extend(
                call.param("vmid").unwrap_or_default().split(',').filter_map(|id| id.parse::<u32>().ok()),
            );
        }
        found.extend(call.param("target-vmid").and_then(|id| id.parse::<u32>().ok()));
        found.extend(
            call.param("vms")
                .into_iter()
                .flat_map(|ids| ids.split(',').filter_map(|id| id.parse::<u32>().ok()).collect::<Vec<_>>()),
        );
        found
    }

    fn guest(&mut self, number: usize, call: &Call, task: Option<&Task>, vmid: u32, evidence: &str) {
        let creating = call.method == "POST" && call.path.ends_with("/lxc");
        let absent = evidence.contains(&format!("{vmid}.conf' does not exist"))
            || evidence.contains(&format!("unable to find VM '{vmid}'"));
        let exists = self.node.world().guests.has(vmid);
        let taken = evidence.contains(&format!("CT {vmid} already exists"));
        let overwrites = creating
            && call.param("force").as_deref() == Some("1")
            && call.param("restore").as_deref() == Some("1");
        match (creating, exists) {
            (true, true) if !taken && !overwrites && past_the_number(call) => {
                self.edit(number, &Edit::Destroy { vmid })
            }
            (true, false)
                if taken
                    || evidence.contains("can't overwrite running")
                    || evidence.contains("protection mode")
                    || evidence.contains("CT is locked") =>
            {
                self.make(number, vmid)
            }
            (true, false)
                if overwrites && call.answer.status == 200 && self.is_named_elsewhere(vmid, number) =>
            {
                self.make(number, vmid)
            }
            (false, false)
                if !absent && call.answer.status != 400 && !evidence.contains("could not find CT") =>
            {
                self.make(number, vmid)
            }
            (false, true) if absent => self.edit(number, &Edit::Destroy { vmid }),
            _ => {}
        }
        if self.node.world().guests.has(vmid) {
            self.left(number, vmid);
            self.lock(number, call, vmid, evidence);
            self.protection(number, call, vmid, evidence);
            self.power(number, call, task, vmid, evidence);
            self.volumes(number, vmid, evidence);
            self.moves(number, call, task, vmid);
            self.waits_no_more(number, call, vmid);
            self.boots_systemd(number, call, task, vmid);
        }
    }

    /// What was last done to the guest outside the recorded calls left it so.
    fn left(&mut self, number: usize, vmid: u32) {
        let before =
            self.lines.iter().filter(|line| line.number < number && !self.seen.contains(&line.number));
        let of_it = before.filter_map(|line| match &line.content {
            Content::Other { left: Some(left), .. } if left.vmid == vmid => Some((line.number, left.clone())),
            _ => None,
        });
        let all: Vec<_> = of_it.collect();
        self.seen.extend(all.iter().map(|(at, _)| *at));
        let Some((_, left)) = all.last() else { return };
        let running = self.node.power.is_running(vmid);
        let config = self.node.world().guests.get(vmid).cloned().unwrap_or_default();
        if left.running != running {
            self.edit(number, &if left.running { Edit::Start { vmid } } else { Edit::Stop { vmid } });
        }
        for name in left.snapshots.iter().filter(|name| !config.snapshots.contains_key(*name)) {
            self.edit(number, &Edit::Snapshot { vmid, name: name.clone() });
        }
        match &left.lock {
            Some(value) => self.edit(number, &Edit::Set { vmid, key: "lock".into(), value: value.clone() }),
            None if config.lock().is_some() => self.edit(number, &Edit::Unset { vmid, key: "lock".into() }),
            None => {}
        }
    }

    fn is_named_elsewhere(&self, vmid: u32, number: usize) -> bool {
        self.calls().any(|(other, call, _)| other < number && call.path.contains(&format!("/lxc/{vmid}/")))
    }

    fn calls(&self) -> impl Iterator<Item = (usize, &Call, Option<&Task>)> {
        self.lines.iter().enumerate().filter_map(|(at, line)| match &line.content {
            Content::Call(call) => {
                let task = self.lines.get(at + 1).and_then(|next| {
                    if let Content::Task(task) = &next.content { Some(task.as_ref()) } else { None }
                });
                Some((line.number, call.as_ref(), task))
            }
            _ => None,
        })
    }

    /// A guest that was there before the recording: as its next shown configuration says, else a small one.
    fn make(&mut self, number: usize, vmid: u32) {
        let path = format!("/lxc/{vmid}/config");
        let shown = self.calls().filter(|(at, call, _)| {
            *at >= number
                && call.method == "GET"
                && call.path.split('?').next().is_some_and(|plain| plain.ends_with(&path))
        });
        let first_of = |fits: &dyn Fn(&Call) -> bool| {
            self.calls().find(|(at, call, _)| *at >= number && fits(call)).map_or(usize::MAX, |(at, ..)| at)
        };
        let changed = first_of(&|call| call.method == "PUT" && call.path.ends_with(&path));
        let own = format!("/lxc/{vmid}");
        let reborn = first_of(&|call| {
            let created = call.method == "POST"
                && call.path.ends_with("/lxc")
                && call.param("vmid") == Some(vmid.to_string());
            call.answer.status == 200 && (created || call.method == "DELETE" && call.path.ends_with(&own))
        });
        let first = shown
            .filter(|(at, call, _)| call.answer.status == 200 && *at < reborn)
            .map(|(at, call, _)| (at, call.answer.body.clone()))
            .next();
        let config = match first {
            Some((at, Some(body))) => self.config_of(&body, &self.changed_between(vmid, number, at)),
            _ => self
                .backed_up(vmid, number, changed.min(reborn))
                .unwrap_or_else(|| self.seen_running(vmid, number, reborn)),
        };
        self.edit(number, &Edit::Place { vmid, config });
    }

    /// The configuration as a recorded backup of the guest carried it, when that is shown later.
    fn backed_up(&self, vmid: u32, from: usize, to: usize) -> Option<String> {
        self.calls().find_map(|(_, call, _)| {
            let volid = call
                .param("volume")
                .filter(|_| call.path.ends_with("/extractconfig") && call.answer.status == 200)?;
            let own = crate::storage::volume::backup_owner(volid.rsplit('/').next()?) == Some(vmid);
            let in_time = self.is_made_by_backup(&volid, to) && !self.is_made_by_backup(&volid, from);
            (own && in_time)
                .then(|| call.answer.body.as_ref()?.get("data")?.as_str().map(str::to_owned))
                .flatten()
        })
    }

    /// A small guest with what a look at its state shows of its configuration.
    fn seen_running(&self, vmid: u32, from: usize, to: usize) -> String {
        let path = format!("/lxc/{vmid}/status/current");
        let mut looks = self.calls().filter(|(at, call, _)| {
            (from..to).contains(at)
                && call.method == "GET"
                && call.answer.status == 200
                && call.path.ends_with(&path)
        });
        let text = self.small(vmid);
        let Some(data) = looks.find_map(|(_, call, _)| call.answer.body.as_ref()?.get("data")) else {
            return text;
        };
        let word = |key: &str| data.get(key).and_then(Value::as_str);
        let mut kept: Vec<String> = text.lines().map(str::to_owned).collect();
        let mut set = |key: &str, value: String| {
            kept.retain(|line| !line.starts_with(&format!("{key}: ")));
            kept.push(format!("{key}: {value}"));
        };
        word("name").into_iter().for_each(|name| set("hostname", name.to_owned()));
        word("tags").into_iter().for_each(|tags| set("tags", tags.to_owned()));
        data.get("maxmem")
            .and_then(Value::as_u64)
            .into_iter()
            .for_each(|bytes| set("memory", (bytes >> 20).to_string()));
        data.get("maxswap")
            .and_then(Value::as_u64)
            .into_iter()
            .for_each(|bytes| set("swap", (bytes >> 20).to_string()));
        kept.join("\n") + "\n"
    }

    fn small(&self, vmid: u32) -> String {
        let about = |text: &str| {
            self.patterns
                .volume
                .captures_iter(text)
                .filter(|found| found.get(2).is_some_and(|id| id.as_str() == vmid.to_string()))
                .find_map(|found| found.get(1).map(|s| s.as_str().to_owned()))
        };
        let storage = self.calls().find_map(|(_, call, task)| about(&call.evidence(task)));
        let storage = storage.unwrap_or_else(|| {
            if self.is_snapshotted(vmid) { "labbtrfs".to_owned() } else { "labdir".to_owned() }
        });
        let disks = self.observed(vmid).unwrap_or_else(|| {
            format!("rootfs: {storage}:{vmid}/vm-{vmid}-disk-0.raw,size=1G\n{}", self.further(vmid, &storage))
        });
        format!(
            "arch: amd64\nhostname: ct{vmid}\nmemory: 128\nostype: debian\nswap: 0\nunprivileged: 1\n{disks}"
        )
    }

    /// Mount points that later calls and backups show the guest to have had.
    fn further(&self, vmid: u32, storage: &str) -> String {
        let own = format!("/lxc/{vmid}/move_volume");
        let mut found: std::collections::BTreeMap<String, String> = std::collections::BTreeMap::new();
        let mut place = |key: &str, path: &str, backup: bool| {
            let n: u32 = key.trim_start_matches("mp").parse().unwrap_or_default();
            let value = format!(
                "{storage}:{vmid}/vm-{vmid}-disk-{}.raw,mp={path},backup={},size=1G",
                n + 1,
                u8::from(backup)
            );
            found.entry(key.to_owned()).or_insert(value);
        };
        let of_job = |task: &Task| task.upid.contains(&format!(":vzdump:{vmid}:"));
        for (_, call, task) in self.calls() {
            for line in task.filter(|task| of_job(task)).map(|task| task.log.clone()).unwrap_or_default() {
                if let Some(found) = self.patterns.mounted.captures(&line) {
                    let text = |n: usize| found.get(n).map_or("", |text| text.as_str());
                    place(text(2), text(3), text(1) == "including");
                }
            }
            let absent = call.evidence(task).contains("does not exist");
            if let Some(key) = call
                .param("volume")
                .filter(|key| call.path.ends_with(&own) && key.starts_with("mp") && !absent)
            {
                place(&key, "/data", false);
            }
        }
        found.into_iter().map(|(key, value)| format!("{key}: {value}\n")).collect()
    }

    /// Disks as the recorder looked them up on the node.
    fn observed(&self, vmid: u32) -> Option<String> {
        let own = format!(":{vmid}/");
        let looked = self.lines.iter().filter_map(|line| {
            if let Content::Other { output, .. } = &line.content { Some(output) } else { None }
        });
        let is_disk =
            |line: &&str| line.contains(&own) && (line.starts_with("rootfs: ") || line.starts_with("mp"));
        looked
            .map(|output| output.lines().filter(is_disk).map(|line| format!("{line}\n")).collect::<String>())
            .find(|disks| disks.contains("rootfs: "))
    }

    fn is_snapshotted(&self, vmid: u32) -> bool {
        let path = format!("/lxc/{vmid}/snapshot");
        let left = |line: &Line| matches!(&line.content, Content::Other { left: Some(left), .. } if left.vmid == vmid && !left.snapshots.is_empty());
        self.lines.iter().any(left)
            || self.calls().any(|(_, call, task)| {
                call.method == "POST"
                    && call.path.ends_with(&path)
                    && task
                        .is_some_and(|task| task.last.get("exitstatus").and_then(Value::as_str) == Some("OK"))
            })
    }

    /// Options that calls changed between two lines, so that what is shown at the second was not there at the first.
    fn changed_between(&self, vmid: u32, from: usize, to: usize) -> BTreeSet<String> {
        let path = format!("/lxc/{vmid}/config");
        let between =
            self.calls().filter(|(at, call, _)| (from..to).contains(at) && call.path.ends_with(&path));
        let effective = between.filter(|(_, call, _)| call.method == "PUT" && call.answer.status == 200);
        effective.flat_map(|(_, call, _)| call.params.keys().cloned()).collect()
    }

    fn config_of(&self, body: &Value, changed: &BTreeSet<String>) -> String {
        let mut text = String::new();
        for (key, value) in body.get("data").and_then(Value::as_object).into_iter().flatten() {
            let plain = crate::call::plain(value).unwrap_or_default();
            let basic = matches!(
                key.as_str(),
                "arch" | "hostname" | "memory" | "ostype" | "swap" | "unprivileged" | "rootfs"
            ) || key.starts_with("mp");
            match key.as_str() {
                "digest" | "lock" | "parent" | "snaptime" | "lxc" => {}
                _ if changed.contains(key) && !basic => {}
                "description" => plain.lines().for_each(|line| text.push_str(&format!("#{line}\n"))),
                "env" => plain
                    .split('\0')
                    .for_each(|line| text.push_str(&format!("lxc.environment.runtime: {line}\n"))),
                _ => text.push_str(&format!("{key}: {plain}\n")),
            }
        }
        text
    }

    fn lock(&mut self, number: usize, call: &Call, vmid: u32, evidence: &str) {
        let held =
            self.node.world().guests.get(vmid).ok().and_then(|config| config.lock().map(str::to_owned));
        let told = self
            .patterns
            .locked
            .captures(evidence)
            .and_then(|found| found.get(1).map(|lock| lock.as_str().to_owned()));
        let shown = call.answer.body.as_ref().and_then(|body| body.pointer("/data")).filter(|_| {
            call.method == "GET" && (call.path.ends_with("/status/current") || call.path.contains("/config"))
        });
        let shown_lock = shown
            .filter(|data| data.is_object())
            .map(|data| data.get("lock").and_then(Value::as_str).map(str::to_owned));
        let busy = !self.node.tasks.all().0.is_empty();
        let wanted = match (told, shown_lock) {
            (Some(lock), _) => Some(lock),
            (None, Some(shown)) if !busy => shown,
            (None, Some(_)) => return,
            // An effect proves that no lock was in the way.
            (None, None) if call.answer.status == 200 && call.method != "GET" && !busy => None,
            (None, None) => return,
        };
        if wanted == held {
            return;
        }
        match wanted {
            Some(value) => self.edit(number, &Edit::Set { vmid, key: "lock".into(), value }),
            None => self.edit(number, &Edit::Unset { vmid, key: "lock".into() }),
        }
    }

    fn protection(&mut self, number: usize, call: &Call, vmid: u32, evidence: &str) {
        let held = self.node.world().guests.get(vmid).is_ok_and(|config| config.main.flag("protection"));
        let told = self.patterns.protected.is_match(evidence);
        let destroys = call.method == "DELETE" && call.path.ends_with(&format!("/lxc/{vmid}"));
        let gone = !told
            && (destroys || call.method == "POST" && call.path.ends_with("/lxc"))
            && call.answer.status != 403
            && call.answer.status != 400;
        if told && !held {
            self.edit(number, &Edit::Set { vmid, key: "protection".into(), value: "1".into() });
        } else if gone && held {
            self.edit(number, &Edit::Unset { vmid, key: "protection".into() });
        }
    }

    fn power(&mut self, number: usize, call: &Call, task: Option<&Task>, vmid: u32, evidence: &str) {
        let running = self.node.power.is_running(vmid);
        let busy = !self.node.tasks.all().0.is_empty();
        let data = call.answer.body.as_ref().and_then(|body| body.get("data"));
        let shown = data
            .and_then(|data| data.get("status"))
            .and_then(Value::as_str)
            .filter(|_| call.path.ends_with("/status/current") && !busy);
        let of_job = task.and_then(|task| {
            task.log.iter().find_map(|line| line.strip_prefix("INFO: status = ").map(str::to_owned))
        });
        let up = match () {
            () if evidence.contains(&format!("{vmid} not running")) => Some(false),
            () if evidence.contains(&format!("{vmid} already running"))
                || evidence.contains("container is running") =>
            {
                Some(true)
            }
            () if evidence.contains("can't overwrite running")
                || evidence.contains("in-use volume while the source CT is running") =>
            {
                call.path
                    .ends_with("/lxc")
                    .then_some(true)
                    .or(call.path.contains(&format!("/lxc/{vmid}/")).then_some(true))
            }
            () if let Some(word) = shown => Some(word == "running"),
            () if let Some(word) = of_job.filter(|_| call.param("vmid") == Some(vmid.to_string())) => {
                Some(word == "running")
            }
            () if call.answer.status == 200
                && call.method == "POST"
                && call.path.ends_with("/status/start") =>
            {
                Some(false)
            }
            () if call.answer.status == 200
                && call.method == "POST"
                && ["/status/stop", "/status/shutdown", "/status/reboot"]
                    .iter()
                    .any(|end| call.path.ends_with(end)) =>
            {
                Some(true)
            }
            () if call.answer.status == 200
                && call.method == "DELETE"
                && call.path.ends_with(&format!("/lxc/{vmid}"))
                && call.param("force").is_none() =>
            {
                Some(false)
            }
            () => None,
        };
        match up {
            Some(true) if !running => self.edit(number, &Edit::Start { vmid }),
            Some(false) if running => self.edit(number, &Edit::Stop { vmid }),
            _ => {}
        }
    }

    fn volumes(&mut self, number: usize, vmid: u32, evidence: &str) {
        let named = self
            .patterns
            .missing_volume
            .captures(evidence)
            .filter(|found| found.get(2).is_some_and(|id| id.as_str() == vmid.to_string()));
        let Some(volid) = named.and_then(|found| found.get(1).map(|volid| volid.as_str().to_owned())) else {
            return;
        };
        let in_config = self
            .node
            .world()
            .guests
            .get(vmid)
            .is_ok_and(|config| config.main.values.values().any(|value| value.starts_with(&volid)));
        if !in_config && !evidence.contains("vzrestore") {
            self.edit(
                number,
                &Edit::Set { vmid, key: "mp9".into(), value: format!("{volid},mp=/by-hand,size=1G") },
            );
        }
        if self.node.world().store().exists(&volid) {
            self.edit(number, &Edit::RemoveVolume { volid });
        }
    }
}
