//! What a user or token may do at a path.
//!
//! In: the access configuration and an identity. Out: privileges with their propagation flag. The walk: roles at each prefix of the path,
//! where a deeper access list replaces what was inherited, tokens before users before groups; then the roles of the pools the path is a
//! member of (never propagated); then, for a token with privilege separation, the cut with its user's privileges.
use std::collections::{BTreeMap, BTreeSet};

use super::config::{AccessConfig, AclNode, Granted};
use super::privileges;
use crate::fail::Refusal;

/// Privileges by name; the value says whether they reach further down.
pub type Privileges = BTreeMap<String, bool>;

/// Top-level paths that are always reported.
const TOP_LEVEL: &[&str] = &["/", "/access", "/access/groups", "/nodes", "/pool", "/sdn", "/storage", "/vms"];

/// A view of the configuration for one identity: `root@pam`, `agent@pve` or `agent@pve!token`.
#[derive(Debug, Clone, Copy)]
pub struct Judge<'a> {
    pub config: &'a AccessConfig,
    pub who: &'a str,
}

impl Judge<'_> {
    /// All privileges at a path.
    #[must_use]
    pub fn privileges(&self, path: &str) -> Privileges {
        if self.who == "root@pam" {
            return privileges::ALL.iter().map(|name| ((*name).to_owned(), true)).collect();
        }
        let Some((user, _)) = self.who.rsplit_once('!') else { return self.own(path) };
        let Some(token) = self.config.token(self.who) else { return Privileges::new() };
        let of_user = Judge { config: self.config, who: user }.privileges(path);
        if !token.privsep {
            return of_user;
        }
        let own = self.own(path);
        own.into_iter()
            .filter_map(|(name, reach)| of_user.get(&name).map(|theirs| (name, reach && *theirs)))
            .collect()
    }

    /// Privileges of the identity alone.
    fn own(&self, path: &str) -> Privileges {
        let mut roles = self.roles(path);
        if !roles.contains_key("NoAccess") {
            let pooled = self.pool_roles(path);
            if pooled.contains("NoAccess") {
                roles = Granted::from([("NoAccess".to_owned(), false)]);
            } else {
                for role in pooled {
                    roles.entry(role).or_insert(false);
                }
            }
        }
        let mut held = Privileges::new();
        for (role, reach) in &roles {
            for name in self.config.privileges_of(role) {
                let entry = held.entry(name).or_insert(false);
                *entry |= *reach;
            }
        }
        held
    }

    /// Roles by access lists along the path.
    fn roles(&self, path: &str) -> Granted {
        let mut held = Granted::new();
        for prefix in prefixes(path) {
            let Some(node) = self.config.acl.get(prefix) else { continue };
            if let Some(found) = self.at(node, prefix == path) {
                held = found;
            }
        }
        match held.get("NoAccess") {
            Some(reach) => Granted::from([("NoAccess".to_owned(), *reach)]),
            None => held,
        }
    }

    fn at(&self, node: &AclNode, last: bool) -> Option<Granted> {
        let active = |granted: &Granted| -> Granted {
            granted
                .iter()
                .filter(|(_, reach)| last || **reach)
                .map(|(role, reach)| (role.clone(), *reach))
                .collect()
        };
        for list in [&node.tokens, &node.users] {
            if let Some(found) = list.get(self.who).map(active).filter(|found| !found.is_empty()) {
                return Some(found);
            }
        }
        let mut found = Granted::new();
        for (group, granted) in &node.groups {
            if self.config.groups.get(group).is_some_and(|held| held.users.contains(self.who)) {
                found.extend(active(granted));
            }
        }
        (!found.is_empty()).then_some(found)
    }

    fn pool_roles(&self, path: &str) -> BTreeSet<String> {
        let vmid = path.strip_prefix("/vms/").and_then(|id| id.parse::<u32>().ok());
        let storage = path.strip_prefix("/storage/");
        let member = |pool: &super::config::Pool| storage.is_some_and(|id| pool.storage.contains(id));
        let home = vmid.and_then(|id| self.config.pool_of(id));
        let pools =
            self.config.pools.iter().filter(|(name, pool)| home == Some(name.as_str()) || member(pool));
        pools.flat_map(|(name, _)| self.roles(&format!("/pool/{name}")).into_keys()).collect()
    }

    /// Whether all privileges are there.
    #[must_use]
    pub fn has(&self, path: &str, wanted: &[&str]) -> bool {
        let held = self.privileges(path);
        wanted.iter().all(|name| held.contains_key(*name))
    }

    /// Whether one of them is there.
    #[must_use]
    pub fn has_any(&self, path: &str, wanted: &[&str]) -> bool {
        let held = self.privileges(path);
        wanted.iter().any(|name| held.contains_key(*name))
    }

    /// Demands all privileges.
    ///
    /// # Errors
    /// 403 that names the first missing one.
    pub fn need(&self, path: &str, wanted: &[&str]) -> Result<(), Refusal> {
        let held = self.privileges(path);
        match wanted.iter().find(|name| !held.contains_key(**name)) {
            None => Ok(()),
            Some(missing) => Err(Refusal::denied(&format!("{path}, {missing}"))),
        }
    }

    /// Demands one of the privileges.
    ///
    /// # Errors
    /// 403 that names them all.
    pub fn need_any(&self, path: &str, wanted: &[&str]) -> Result<(), Refusal> {
        if self.has_any(path, wanted) {
            Ok(())
        } else {
            Err(Refusal::denied(&format!("{path}, {}", wanted.join("|"))))
        }
    }

    /// Demands privileges on a guest, or on the pool it is to be put into.
    ///
    /// # Errors
    /// 403 that names the guest's path.
    pub fn need_guest(&self, vmid: u32, pool: Option<&str>, wanted: &[&str]) -> Result<(), Refusal> {
        if pool.is_some_and(|pool| self.has(&format!("/pool/{pool}"), wanted)) {
            return Ok(());
        }
        self.need(&format!("/vms/{vmid}"), wanted)
    }

    /// Everything by path, as `/access/permissions` reports it.
    #[must_use]
    pub fn effective(&self) -> BTreeMap<String, Privileges> {
        let mut paths: BTreeSet<String> = TOP_LEVEL.iter().map(|path| (*path).to_owned()).collect();
        for path in self.config.acl.keys() {
            // The real tree has a node for every prefix of a path that was ever named.
            paths.extend(prefixes(path).into_iter().map(str::to_owned));
        }
        for pool in self.config.pools.values() {
            paths.extend(pool.vms.iter().map(|id| format!("/vms/{id}")));
            paths.extend(pool.storage.iter().map(|id| format!("/storage/{id}")));
        }
        paths
            .into_iter()
            .map(|path| (self.privileges(&path), path))
            .filter(|(held, _)| !held.is_empty())
            .map(|(held, path)| (path, held))
            .collect()
    }
}

/// `/`, `/vms`, `/vms/100`
fn prefixes(path: &str) -> Vec<&str> {
    let mut found = vec!["/"];
    let ends = path.char_indices().skip(1).filter(|(_, c)| *c == '/').map(|(at, _)| at).chain([path.len()]);
    found.extend(ends.filter(|end| *end > 1).filter_map(|end| path.get(..end)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lab() -> AccessConfig {
        AccessConfig::parse(include_str!("../../lab/user.cfg"))
    }

    #[test]
    fn a_token_never_has_more_than_its_user() {
        let config = lab();
        let judge = |who| Judge { config: &config, who };
        assert!(judge("agent@pve!hostagent").has("/vms/100", &["VM.Audit"]));
        assert!(judge("agent@pve!none").privileges("/vms/100").is_empty());
        assert_eq!(
            judge("agent@pve!privmore").privileges("/vms/100"),
            judge("agent@pve").privileges("/vms/100")
        );
        assert_eq!(judge("agent@pve!full").privileges("/vms"), judge("agent@pve").privileges("/vms"));
        assert!(judge("agent@pve!privmore").privileges("/").is_empty());
    }

    #[test]
    fn a_deeper_list_replaces_and_a_pool_adds() {
        let mut config = lab();
        config.roles.insert("Look".into(), BTreeSet::from(["VM.Audit".to_owned()]));
        config.grant("/vms/100", "agent2@pve", "Look", false);
        let judge = Judge { config: &config, who: "agent2@pve!rec" };
        assert_eq!(judge.privileges("/vms/100"), Privileges::from([("VM.Audit".to_owned(), false)]));
        assert!(judge.has("/vms/101", &["VM.Allocate"]));
        config.pools.get_mut("labpool").expect("pool").vms.insert(100);
        config.grant("/pool/labpool", "agent2@pve", "AgentRecommended", true);
        let judge = Judge { config: &config, who: "agent2@pve!rec" };
        assert_eq!(judge.privileges("/vms/100").get("VM.Backup"), Some(&false));
    }

    #[test]
    fn a_list_that_does_not_reach_down_stays_where_it_is() {
        let mut config = lab();
        config.grant("/storage", "agent2@pve", "AgentStorage", false);
        let judge = Judge { config: &config, who: "agent2@pve" };
        assert!(
            judge.has("/storage", &["Datastore.Audit"])
                && !judge.has("/storage/offline", &["Datastore.Audit"])
        );
    }
}
