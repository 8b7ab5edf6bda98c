//! Rights of principals that the seed does not know.
//!
//! The recorder gave and took such rights on the node between calls. For a principal of the seed nothing is ever inferred, because there
//! the rules are under test. For any other principal, a call that passed a published check proves the right ([`claims`]), and a denial
//! that names a right proves its absence. Notes that list the granted rights are trusted, and then nothing is inferred either.
use std::collections::BTreeSet;
use std::sync::Arc;

use super::claims::{self, Claim, Exchange};
use super::precondition::{OWN, makes_token};
use super::recording::{Call, Content, Line, Task};
use crate::access::config::AccessConfig;
use crate::access::evaluate::Judge;
use crate::node::Node;
use crate::task::upid::Upid;

/// Gives and takes rights by what a recording proves.
#[derive(Debug)]
pub struct Inferred<'a> {
    node: &'a Arc<Node>,
    known: AccessConfig,
    made: BTreeSet<String>,
    count: usize,
}

impl<'a> Inferred<'a> {
    /// Principals of the seed are known from here.
    #[must_use]
    pub fn new(node: &'a Arc<Node>, lines: &[Line]) -> Self {
        let calls = || {
            lines.iter().filter_map(|line| match &line.content {
                Content::Call(call) => Some(call.as_ref()),
                _ => None,
            })
        };
        let ids = calls().filter_map(|call| call.auth.strip_prefix("token:"));
        let made = ids.filter(|id| makes_token(calls(), id)).map(str::to_owned).collect();
        Self { node, known: node.world().access.clone(), made, count: 0 }
    }

    /// The token of a call whose rights may be inferred.
    fn open(&self, call: &Call) -> Option<String> {
        let id = call.auth.strip_prefix("token:")?;
        let open = self.known.token(id).is_none() && !call.note.contains("granted=");
        open.then(|| id.to_owned())
    }

    /// Before a call: removes rights that its answer proves absent, and grants rights that it proves present.
    pub fn before(&mut self, exchange: &Exchange<'_>) -> Vec<String> {
        let call = exchange.call;
        let Some(id) = self.open(call) else { return Vec::new() };
        if self.made.contains(&id) {
            // Recorded calls gave it its rights; only the members of pools are not recorded.
            return self.members(exchange);
        }
        let mut reported = Vec::new();
        for (path, privs) in denied(call).into_iter().filter(|_| call.answer.status == 403) {
            if self.judge(|judge| judge.has_any(&path, &words(&privs)), &id) {
                self.take(&id, &path, &privs);
                reported.push(format!("{id} has no {} on {path}", privs.join("|")));
            }
        }
        for (path, privs) in exchange.task.into_iter().filter_map(denied_in_task) {
            if self.judge(|judge| judge.has_any(&path, &words(&privs)), &id) {
                self.take(&id, &path, &privs);
                reported.push(format!("{id} has no {} on {path}", privs.join("|")));
            }
        }
        let mut claims = claims::proved(&self.node.table, exchange);
        claims.extend(self.overwrites(&id, exchange));
        claims.extend(self.sees(&id, exchange));
        claims.extend(Self::oversees(&id, exchange));
        claims.retain(|claim| !self.is_allowed_otherwise(&id, exchange, claim));
        let refused =
            exchange.task.is_some_and(|task| task.last.to_string().contains("Permission check failed"));
        if call.answer.status == 200
            && !refused
            && call.method == "POST"
            && call.path.ends_with("/lxc")
            && call.param("restore").is_some()
        {
            claims.push(Claim {
                paths: vec!["/sdn/zones/localnetwork/vmbr0".to_owned()],
                privs: vec!["SDN.Use".to_owned()],
                all: true,
            });
        }
        claims.extend(self.on_storage(exchange));
        reported.extend(self.listed(&id, exchange));
        for claim in claims {
            reported.extend(self.make_true(&id, &claim));
        }
        reported
    }

    /// Only a caller that may audit the node sees tasks of others in the list.
    fn oversees(id: &str, exchange: &Exchange<'_>) -> Option<Claim> {
        let body = exchange.call.answer.body.as_ref().and_then(|body| body.get("data"));
        let mut rows = body.and_then(serde_json::Value::as_array)?.iter();
        let of_others = rows.any(|row| {
            let upid = row.get("upid").and_then(serde_json::Value::as_str).and_then(Upid::parse);
            upid.is_some_and(|upid| upid.owner != id)
        });
        let node = exchange.in_path.get("node").filter(|_| of_others)?;
        (exchange.template == "GET /nodes/{node}/tasks").then(|| Claim {
            paths: vec![format!("/nodes/{node}")],
            privs: vec!["Sys.Audit".to_owned()],
            all: true,
        })
    }

    /// A list shows a backup only to a caller that may read it.
    fn sees(&self, id: &str, exchange: &Exchange<'_>) -> Vec<Claim> {
        let body = exchange.call.answer.body.as_ref().and_then(|body| body.get("data"));
        let rows = body.and_then(serde_json::Value::as_array).into_iter().flatten();
        let listed = exchange.template == "GET /nodes/{node}/storage/{storage}/content";
        let volids = rows.filter(|_| listed).filter_map(|row| row.get("volid")?.as_str());
        let mut found: Vec<Claim> = Vec::new();
        for claim in volids.filter(|volid| volid.contains(":backup/")).flat_map(claims::archive) {
            if !found.contains(&claim) {
                found.push(claim);
            }
        }
        let storage =
            exchange.in_path.get("storage").map(|name| format!("/storage/{name}")).unwrap_or_default();
        let all = self.judge(|judge| judge.has(&storage, &["Datastore.Allocate"]), id);
        if all { Vec::new() } else { found }
    }

    /// Overwriting a guest without a pool needs the right to back it up or to make it.
    fn overwrites(&self, id: &str, exchange: &Exchange<'_>) -> Option<Claim> {
        let call = exchange.call;
        let set = |name: &str| call.param(name).as_deref() == Some("1");
        let forced = set("force") && set("restore") && call.param("pool").is_none();
        let restores = exchange.template == "POST /nodes/{node}/lxc" && call.answer.status == 200;
        let own = format!("/vms/{}", call.param("vmid").filter(|_| forced && restores)?);
        let makes = self.judge(|judge| judge.has(&own, &["VM.Allocate"]), id);
        (!makes).then(|| Claim { paths: vec![own], privs: vec!["VM.Backup".to_owned()], all: true })
    }

    /// A caller with `Datastore.Allocate` on a storage may read and mark backups there without further rights.
    fn is_allowed_otherwise(&self, id: &str, exchange: &Exchange<'_>, claim: &Claim) -> bool {
        let call = exchange.call;
        let volid = match exchange.template {
            "POST /nodes/{node}/lxc" => call.param("ostemplate"),
            "PUT /nodes/{node}/storage/{storage}/content/{volume}" => exchange.in_path.get("volume").cloned(),
            _ => None,
        };
        let Some((storage, name)) = volid.as_deref().and_then(|volid| volid.split_once(":backup/")) else {
            return false;
        };
        let (path, owner) = (format!("/storage/{storage}"), crate::storage::volume::backup_owner(name));
        let of_storage = claim.paths == [path.clone()] && claim.privs == ["Datastore.AllocateSpace"];
        let of_guest =
            owner.is_some_and(|vmid| claim.paths == [format!("/vms/{vmid}")]) && claim.privs == ["VM.Backup"];
        (of_storage || of_guest) && self.judge(|judge| judge.has(&path, &["Datastore.Allocate"]), id)
    }

    /// Growing or moving a volume needs a right on its storage.
    fn on_storage(&self, exchange: &Exchange<'_>) -> Option<Claim> {
        let moves = exchange.template == "POST /nodes/{node}/lxc/{vmid}/move_volume";
        let grows = exchange.template == "PUT /nodes/{node}/lxc/{vmid}/resize";
        if exchange.call.answer.status != 200 || !(moves || grows) {
            return None;
        }
        let key = exchange.call.param(if moves { "volume" } else { "disk" })?;
        let vmid: u32 = exchange.in_path.get("vmid")?.parse().ok()?;
        let held = self.node.world().guests.get(vmid).ok()?.main.get(&key)?.split_once(':')?.0.to_owned();
        let storage = exchange.call.param("storage").unwrap_or(held);
        Some(Claim {
            paths: vec![format!("/storage/{storage}")],
            privs: vec!["Datastore.AllocateSpace".into()],
            all: true,
        })
    }

    /// Rights over a guest that reach no further, as those of a pool: the guest is its member.
    fn members(&self, exchange: &Exchange<'_>) -> Vec<String> {
        let body =
            exchange.call.answer.body.as_ref().filter(|_| exchange.template == "GET /access/permissions");
        let rows = body.and_then(|body| body.get("data")?.as_object());
        let pool = |row: &serde_json::Value| {
            let rows = rows.into_iter().flatten();
            let mut pools =
                rows.filter(|(_, held)| *held == row).filter_map(|(path, _)| path.strip_prefix("/pool/"));
            pools.next().map(str::to_owned)
        };
        let mut reported = Vec::new();
        for (path, row) in rows.into_iter().flatten() {
            let vmid = path.strip_prefix("/vms/").and_then(|vmid| vmid.parse::<u32>().ok());
            let local =
                row.as_object().is_some_and(|row| !row.is_empty() && row.values().all(|reach| reach == 0));
            let (Some(vmid), Some(pool)) = (vmid.filter(|_| local), pool(row)) else { continue };
            let mut world = self.node.world();
            if world.access.pools.entry(pool.clone()).or_default().vms.insert(vmid) {
                reported.push(format!("{vmid} is in pool {pool}"));
            }
        }
        reported
    }

    /// A list of a caller's own rights is what the recorder had granted before.
    fn listed(&mut self, id: &str, exchange: &Exchange<'_>) -> Option<String> {
        let call = exchange.call;
        let body = call
            .answer
            .body
            .as_ref()
            .filter(|_| exchange.template == "GET /access/permissions" && call.answer.status == 200)?;
        let rows = body.get("data")?.as_object().filter(|_| call.param("userid").is_none())?;
        let one = call.param("path");
        let user = id.rsplit_once('!').map_or(id, |(user, _)| user).to_owned();
        let mut world = self.node.world();
        for (path, node) in &mut world.access.acl {
            if one.as_ref().is_none_or(|one| one == path) {
                node.users.remove(&user);
                node.tokens.remove(id);
            }
        }
        let names = |row: &serde_json::Value| {
            row.as_object().map(|row| row.keys().cloned().collect::<BTreeSet<_>>()).unwrap_or_default()
        };
        for (path, row) in rows {
            let pool = rows
                .iter()
                .find(|(pool, held)| pool.starts_with("/pool/") && names(held) == names(row))
                .map(|(pool, _)| pool.trim_start_matches("/pool/"));
            let vmid = path.strip_prefix("/vms/").and_then(|vmid| vmid.parse::<u32>().ok());
            // Rights that reach no further, as those of a pool: the guest is its member.
            let local = row.as_object().into_iter().flatten().all(|(_, reach)| reach == 0);
            if let (Some(vmid), Some(pool), true) = (vmid, pool, local) {
                world.access.pools.get_mut(pool).into_iter().for_each(|pool| {
                    pool.vms.insert(vmid);
                });
                continue;
            }
            for reach in [0, 1] {
                let privs: BTreeSet<String> = row
                    .as_object()
                    .into_iter()
                    .flatten()
                    .filter(|(_, value)| **value == reach)
                    .map(|(name, _)| name.clone())
                    .collect();
                if privs.is_empty() {
                    continue;
                }
                self.count += 1;
                let role = format!("{OWN}Listed{}", self.count);
                world.access.roles.insert(role.clone(), privs);
                world.access.grant(path, &user, &role, reach == 1);
                world.access.grant(path, id, &role, reach == 1);
            }
        }
        Some(format!("{id} has the rights that it is then told"))
    }

    fn judge<T>(&self, ask: impl FnOnce(Judge<'_>) -> T, id: &str) -> T {
        ask(Judge { config: &self.node.world().access, who: id })
    }

    fn make_true(&mut self, id: &str, claim: &Claim) -> Option<String> {
        let wanted = words(&claim.privs);
        let holds = |judge: Judge<'_>| {
            claim
                .paths
                .iter()
                .any(|path| if claim.all { judge.has(path, &wanted) } else { judge.has_any(path, &wanted) })
        };
        if self.judge(holds, id) {
            return None;
        }
        let path = claim.paths.first()?;
        if let Some(pool) = self.pool_for(id, path, &wanted, claim.all) {
            return Some(format!("{path} is in pool {pool}"));
        }
        let given =
            if claim.all { claim.privs.clone() } else { claim.privs.iter().take(1).cloned().collect() };
        self.give(id, path, &given);
        Some(format!("{id} has {} on {path}", given.join(" ")))
    }

    /// A guest without a pool is put into a pool that gives the caller the wanted rights.
    fn pool_for(&self, id: &str, path: &str, wanted: &[&str], all: bool) -> Option<String> {
        let vmid: u32 = path.strip_prefix("/vms/")?.parse().ok()?;
        let mut world = self.node.world();
        if world.access.pool_of(vmid).is_some() {
            return None;
        }
        let judge = Judge { config: &world.access, who: id };
        let fits = |pool: &&String| {
            if all {
                judge.has(&format!("/pool/{pool}"), wanted)
            } else {
                judge.has_any(&format!("/pool/{pool}"), wanted)
            }
        };
        let pool = world.access.pools.keys().find(fits)?.clone();
        world.access.pools.get_mut(&pool)?.vms.insert(vmid);
        Some(pool)
    }

    fn role(&mut self) -> String {
        self.count += 1;
        format!("{OWN}Proved{}", self.count)
    }

    /// Grants one more right at exactly this path, in addition to all that is effective there.
    fn give(&mut self, id: &str, path: &str, names: &[String]) {
        let role = self.role();
        let mut world = self.node.world();
        for who in [id, id.rsplit_once('!').map_or(id, |(user, _)| user)] {
            let mut privs: BTreeSet<String> =
                Judge { config: &world.access, who }.privileges(path).into_keys().collect();
            privs.extend(names.iter().cloned());
            let role = format!("{role}{}", if who == id { "T" } else { "U" });
            world.access.roles.insert(role.clone(), privs);
            world.access.grant(path, who, &role, false);
        }
    }

    /// These rights vanish from every role that reaches this path.
    fn take(&mut self, id: &str, path: &str, privs: &[String]) {
        let mut world = self.node.world();
        let user = id.rsplit_once('!').map_or(id, |(user, _)| user).to_owned();
        let pool = path
            .strip_prefix("/vms/")
            .and_then(|vmid| vmid.parse().ok())
            .and_then(|vmid| world.access.pool_of(vmid).map(|pool| format!("/pool/{pool}")));
        let reaches = |at: &str| {
            path == at
                || path.starts_with(&format!("{}/", at.trim_end_matches('/')))
                || pool.as_deref() == Some(at)
        };
        let mut found: Vec<(String, String, String, bool)> = Vec::new();
        for (at, node) in world.access.acl.iter().filter(|(at, _)| reaches(at)) {
            for (who, list) in [(&user, &node.users), (&id.to_owned(), &node.tokens)] {
                found.extend(
                    list.get(who)
                        .into_iter()
                        .flatten()
                        .map(|(role, reach)| (at.clone(), who.clone(), role.clone(), *reach)),
                );
            }
        }
        for (at, who, role, reach) in found {
            let kept =
                world.access.privileges_of(&role).into_iter().filter(|name| !privs.contains(name)).collect();
            self.count += 1;
            let less = format!("{OWN}Less{}", self.count);
            world.access.roles.insert(less.clone(), kept);
            world.access.revoke(&at, &who, &role);
            world.access.grant(&at, &who, &less, reach);
        }
    }
}

/// The path and the privileges whose lack ended a backup task.
fn denied_in_task(task: &Task) -> Option<(String, Vec<String>)> {
    let end = task.last.get("exitstatus")?.as_str()?.strip_prefix("403 Permission check failed (")?;
    let (path, privs) = end.strip_suffix(')')?.split_once(", ")?;
    Some((path.to_owned(), privs.split('|').map(str::to_owned).collect()))
}

/// Paths and privileges that a denial names; the bare one of a creation means `VM.Allocate`.
fn denied(call: &Call) -> Vec<(String, Vec<String>)> {
    let reason = call.answer.reason.as_str();
    let creating = call.method == "POST" && call.path.ends_with("/lxc");
    let pool = call.param("pool").filter(|_| creating).map(|pool| format!("/pool/{pool}"));
    if reason == "Permission check failed" && creating {
        let own = call.param("vmid").map(|vmid| format!("/vms/{vmid}"));
        return pool.into_iter().chain(own).map(|path| (path, vec!["VM.Allocate".to_owned()])).collect();
    }
    let inner = reason.strip_prefix("Permission check failed (").and_then(|rest| rest.strip_suffix(')'));
    let named = inner.and_then(|inner| inner.split_once(", ")).filter(|(path, _)| path.starts_with('/'));
    let privs = |text: &str| text.split('|').map(str::to_owned).collect::<Vec<_>>();
    // A denial on a guest to be made says the same of the pool that it was to be made in.
    let of_pool = named
        .filter(|(path, privs)| path.starts_with("/vms/") && *privs != "VM.Backup")
        .and_then(|(_, named)| pool.map(|pool| (pool, privs(named))));
    named.map(|(path, named)| (path.to_owned(), privs(named))).into_iter().chain(of_pool).collect()
}

fn words(privs: &[String]) -> Vec<&str> {
    privs.iter().map(String::as_str).collect()
}
