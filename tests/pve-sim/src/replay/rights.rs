//! Rights of principals that the seed does not know.
//!
//! The recorder gave and took such rights on the node between calls. For a principal of the seed nothing is ever inferred: there the rules
//! are on trial. For any other one an answer beyond the rights check proves the right, and a denial that names a right proves its absence.
//! Notes that list the granted rights are taken by their word, and then nothing is inferred either.
use std::sync::Arc;

use super::recording::{Call, Task};
use crate::access::config::AccessConfig;
use crate::access::evaluate::Judge;
use crate::node::Node;
use crate::wire::Response;

/// Gives and takes rights by what a recording proves.
#[derive(Debug)]
pub struct Inferred<'a> {
    node: &'a Arc<Node>,
    known: AccessConfig,
    count: usize,
}

impl<'a> Inferred<'a> {
    /// Principals of the seed are known from here.
    #[must_use]
    pub fn new(node: &'a Arc<Node>) -> Self {
        Self { node, known: node.world().access.clone(), count: 0 }
    }

    /// The token of a call whose rights may be inferred.
    fn open(&self, call: &Call) -> Option<String> {
        let id = call.auth.strip_prefix("token:")?;
        let open = self.known.token(id).is_none() && !call.note.contains("granted=");
        open.then(|| id.to_owned())
    }

    /// Before a call: rights that its answer proves absent go; rights that its task proves come.
    pub fn before(&mut self, call: &Call, task: Option<&Task>) -> Vec<String> {
        let Some(id) = self.open(call) else { return Vec::new() };
        let mut told = Vec::new();
        if call.answer.status == 403 {
            for (path, privs) in denied(&call.answer.reason, call) {
                let held = {
                    let world = self.node.world();
                    let judge = Judge { config: &world.access, who: &id };
                    privs.iter().any(|name| judge.has(&path, &[name]))
                };
                if held {
                    self.take(&id, &path, &privs);
                    told.push(format!("{id} has no {} on {path}", privs.join("|")));
                }
            }
        }
        let refused = task.is_some_and(|task| task.last.to_string().contains("Permission check failed"));
        if call.answer.status == 200 && !refused {
            let restores = call.path.ends_with("/lxc") && call.method == "POST";
            let backs_up = call.path.ends_with("/vzdump") && call.method == "POST";
            let mut wanted: Vec<(String, &str)> = Vec::new();
            if restores {
                wanted.push(("/sdn/zones/localnetwork/vmbr0".to_owned(), "SDN.Use"));
            }
            if backs_up {
                wanted.extend(
                    call.param("vmid")
                        .unwrap_or_default()
                        .split(',')
                        .map(|vmid| (format!("/vms/{vmid}"), "VM.Backup")),
                );
            }
            for (path, name) in wanted {
                let has = { Judge { config: &self.node.world().access, who: &id }.has(&path, &[name]) };
                if !has {
                    self.give(&id, &path, name);
                    told.push(format!("{id} has {name} on {path}"));
                }
            }
        }
        told
    }

    /// After our denial of a call that was not denied: the right it names is given. Says whether to ask again.
    pub fn after(&mut self, call: &Call, response: &Response) -> Option<String> {
        let id = self.open(call)?;
        if response.status != 403 || call.answer.status == 403 {
            return None;
        }
        let (path, privs) = denied(&response.reason, call).into_iter().next()?;
        let name = privs.first()?.clone();
        if (Judge { config: &self.node.world().access, who: &id }).has(&path, &[&name]) {
            return None;
        }
        self.give(&id, &path, &name);
        Some(format!("{id} has {name} on {path}"))
    }

    fn role(&mut self) -> String {
        self.count += 1;
        format!("Proved{}", self.count)
    }

    /// A right more at exactly this path, beside all that is effective there.
    fn give(&mut self, id: &str, path: &str, name: &str) {
        let role = self.role();
        let mut world = self.node.world();
        for who in [id, id.rsplit_once('!').map_or(id, |(user, _)| user)] {
            let mut privs: std::collections::BTreeSet<String> =
                Judge { config: &world.access, who }.privileges(path).into_keys().collect();
            privs.insert(name.to_owned());
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
            let less = format!("Less{}", self.count);
            world.access.roles.insert(less.clone(), kept);
            world.access.revoke(&at, &who, &role);
            world.access.grant(&at, &who, &less, reach);
        }
    }
}

/// Paths and privileges that a denial names; the bare one of a creation means `VM.Allocate`.
fn denied(reason: &str, call: &Call) -> Vec<(String, Vec<String>)> {
    if reason == "Permission check failed" && call.path.ends_with("/lxc") {
        let own = call.param("vmid").map(|vmid| format!("/vms/{vmid}"));
        let pool = call.param("pool").map(|pool| format!("/pool/{pool}"));
        return pool.into_iter().chain(own).map(|path| (path, vec!["VM.Allocate".to_owned()])).collect();
    }
    let inner = reason.strip_prefix("Permission check failed (").and_then(|rest| rest.strip_suffix(')'));
    let named = inner.and_then(|inner| inner.split_once(", ")).filter(|(path, _)| path.starts_with('/'));
    named
        .map(|(path, privs)| (path.to_owned(), privs.split('|').map(str::to_owned).collect()))
        .into_iter()
        .collect()
}
