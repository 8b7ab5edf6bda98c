//! A token's rights compared with its needs.
//!
//! Input: effective permissions, and the table of privileges that `setup` also uses. Output: for each path the missing
//! and the surplus privileges, each with the commands that fix it. Pure. Deliberately absent: guessing which entry of
//! the access list a surplus comes from; the token cannot see the list.

use std::collections::{BTreeMap, BTreeSet};

use crate::port::pve::{AclPath, Permissions, Role};
use crate::setup::plan::Places;
use crate::setup::privilege::{NEEDS, PLACES, Place, privileges, pve_role, pve_roles};
use crate::setup::write::{Write, quoted};

/// Something about one token on one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub role: Role,
    pub path: String,
    /// Needed and not there.
    pub missing: BTreeSet<String>,
    /// There and not needed.
    pub surplus: BTreeSet<String>,
    /// The operations that the missing privileges prevent.
    pub prevents: Vec<&'static str>,
    /// Commands that fix it.
    pub mend: Vec<String>,
}

/// The paths on which a token needs something, with all it needs there and the roles that carry it.
fn needed(role: Role, places: &Places) -> BTreeMap<AclPath, Vec<Place>> {
    let mut needed: BTreeMap<AclPath, Vec<Place>> = BTreeMap::new();
    for place in PLACES.into_iter().filter(|place| pve_role(role, *place).is_some()) {
        for path in places.paths(place) {
            needed.entry(path).or_default().push(place);
        }
    }
    needed
}

/// The paths to ask about, one by one: those of guests do not all show in the list of everything.
#[must_use]
pub fn paths_to_ask(role: Role, places: &Places) -> Vec<AclPath> {
    needed(role, places).into_keys().collect()
}

/// Judges one token. `permissions` holds the answers for [`paths_to_ask`] and the list of everything.
#[must_use]
pub fn judge(role: Role, token_id: &str, places: &Places, permissions: &Permissions) -> Vec<Finding> {
    let needed = needed(role, places);
    let mut findings: Vec<Finding> = Vec::new();
    for (path, at) in &needed {
        let wanted: BTreeSet<&str> = at.iter().flat_map(|place| privileges(role, *place)).collect();
        let missing: BTreeSet<String> =
            wanted.iter().filter(|p| !permissions.holds(path, p)).map(|p| (*p).to_owned()).collect();
        if !missing.is_empty() {
            let prevents = prevented(role, at, &missing);
            let mend = at.iter().flat_map(|place| grant_lines(role, *place, path, token_id)).collect();
            findings.push(Finding {
                role,
                path: path.to_string(),
                missing,
                surplus: BTreeSet::new(),
                prevents,
                mend,
            });
        }
    }
    for (path, has) in permissions.iter() {
        let places_here =
            needed.iter().find(|(p, _)| p.as_str() == path).map(|(_, at)| at.as_slice()).unwrap_or_default();
        let allowed = allowed(role, path, places_here, places);
        let surplus: BTreeSet<String> =
            has.iter().filter(|p| !allowed.contains(p.as_str())).cloned().collect();
        if !surplus.is_empty() {
            let mend = surplus_lines(role, path, has, places_here, token_id);
            let path = path.to_owned();
            findings.push(Finding {
                role,
                path,
                missing: BTreeSet::new(),
                surplus,
                prevents: Vec::new(),
                mend,
            });
        }
    }
    findings
}

fn prevented(role: Role, at: &[Place], missing: &BTreeSet<String>) -> Vec<&'static str> {
    let touches = |need: &&crate::setup::privilege::Need| {
        need.role == role && at.contains(&need.place) && need.privileges.iter().any(|p| missing.contains(*p))
    };
    NEEDS.iter().filter(touches).map(|need| need.operation).collect()
}

/// The privileges that may exist on a path without being needed exactly there.
fn allowed(role: Role, path: &str, here: &[Place], places: &Places) -> BTreeSet<&'static str> {
    let mut allowed: BTreeSet<&str> = here.iter().flat_map(|place| privileges(role, *place)).collect();
    let bridge = AclPath::bridge(&places.bridge);
    if path.strip_prefix(bridge.as_str()).is_some_and(|rest| rest.starts_with('/')) {
        // VLANs that were given to setup; the settings do not repeat them.
        allowed.extend(privileges(role, Place::Bridge));
    }
    if path.starts_with("/vms/") {
        // Members of our pools are listed with their own paths.
        allowed.extend(privileges(role, Place::Pool));
        allowed.extend(privileges(role, Place::ScratchPool));
    }
    if role == Role::Observe && path.starts_with("/pool/") {
        allowed.extend(privileges(role, Place::ScratchPool));
    }
    allowed
}

fn grant_lines(role: Role, place: Place, path: &AclPath, token_id: &str) -> Vec<String> {
    let Some(name) = pve_role(role, place) else { return Vec::new() };
    let user = token_id.split('!').next().unwrap_or_default().to_owned();
    let grant = Write::Grant { path: path.clone(), pve_role: name.to_owned(), user, role };
    vec![role_line(name), grant.line()]
}

/// Sets a role to exactly the privileges of the table; makes it when it is missing.
fn role_line(name: &str) -> String {
    let all = pve_roles(&Role::ALL);
    let privileges: Vec<String> = all.get(name).into_iter().flatten().map(|p| (*p).to_owned()).collect();
    let set = Write::SetRole { name: name.to_owned(), privileges: privileges.clone() };
    let add = Write::AddRole { name: name.to_owned(), privileges };
    format!("{} || {}", set.line(), add.line())
}

fn surplus_lines(
    role: Role,
    path: &str,
    has: &BTreeSet<String>,
    here: &[Place],
    token_id: &str,
) -> Vec<String> {
    let mut lines: Vec<String> =
        here.iter().filter_map(|place| pve_role(role, *place)).map(role_line).collect();
    let all = pve_roles(&Role::ALL);
    // Our own grant that is left over from other settings can be named; for any other, the access list shows its owner.
    let ours =
        all.iter().find(|(_, privileges)| privileges.iter().copied().eq(has.iter().map(String::as_str)));
    let name = ours.filter(|_| here.is_empty()).map(|(name, _)| *name);
    if name.is_none() {
        lines.push("pveum acl list   # shows which ROLE brings it".to_owned());
    }
    let name = name.unwrap_or("ROLE");
    lines.push(format!("pveum acl delete {} --tokens {} --roles {name}", quoted(path), quoted(token_id)));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Places {
        Places {
            node: "pve1".parse().unwrap(),
            pool: "holdfast".parse().unwrap(),
            scratch: None,
            guest_storages: vec!["labbtrfs".parse().unwrap()],
            backup_storages: vec!["backup2".parse().unwrap()],
            archive_storages: vec!["labbtrfs".parse().unwrap()],
            golden_vmids: vec![900_001.try_into().unwrap()],
            targets: BTreeSet::new(),
            bridge: "vmbr0".parse().unwrap(),
            vlans: Vec::new(),
        }
    }

    /// Exactly the grants of `setup`.
    fn granted(role: Role) -> BTreeMap<String, BTreeSet<String>> {
        let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let roles = pve_roles(&Role::ALL);
        for grant in places().grants(&[role]) {
            let privileges = roles[grant.pve_role].iter().map(|p| (*p).to_owned());
            all.entry(grant.path.to_string()).or_default().extend(privileges);
        }
        all
    }

    fn judged(role: Role, has: BTreeMap<String, BTreeSet<String>>) -> Vec<Finding> {
        judge(role, &format!("holdfast@pve!{role}"), &places(), &has.into_iter().collect())
    }

    #[test]
    fn what_setup_grants_is_exactly_what_doctor_wants() {
        for role in [Role::Observe, Role::Operate, Role::Allocate] {
            assert_eq!(judged(role, granted(role)), [], "{role}");
            let mut with_members = granted(role);
            let pool = with_members["/pool/holdfast"].clone();
            with_members.insert("/vms/300".to_owned(), pool);
            assert_eq!(judged(role, with_members), [], "{role}");
        }
    }

    #[test]
    fn each_missing_privilege_is_named_with_its_path_and_its_line() {
        for role in [Role::Observe, Role::Operate, Role::Allocate] {
            for (path, privileges) in granted(role) {
                for privilege in privileges {
                    let mut less = granted(role);
                    less.get_mut(&path).unwrap().remove(&privilege);
                    let findings = judged(role, less);
                    assert_eq!(findings.len(), 1, "{role} {path} {privilege}");
                    let finding = &findings[0];
                    assert_eq!((&finding.path, finding.missing.len()), (&path, 1));
                    assert!(finding.missing.contains(&privilege) && !finding.prevents.is_empty());
                    let grant = format!(
                        "pveum acl modify {path} --users holdfast@pve --tokens 'holdfast@pve!{role}'"
                    );
                    assert!(finding.mend.iter().any(|line| line.starts_with(&grant)), "{:?}", finding.mend);
                }
            }
        }
    }

    #[test]
    fn too_much_is_named_wherever_it_stands() {
        for (path, privilege) in [
            ("/", "Sys.Modify"),
            ("/storage", "Datastore.Allocate"),
            ("/pool/holdfast", "VM.Allocate"),
            ("/vms/300", "VM.Console"),
            ("/sdn/zones/localnetwork/vmbr0/5", "SDN.Allocate"),
        ] {
            let mut more = granted(Role::Operate);
            more.entry(path.to_owned()).or_default().insert(privilege.to_owned());
            let findings = judged(Role::Operate, more);
            assert_eq!(findings.len(), 1, "{path} {privilege}: {findings:?}");
            assert_eq!((findings[0].path.as_str(), findings[0].surplus.len()), (path, 1));
        }
    }

    #[test]
    fn a_grant_left_over_from_other_settings_is_named() {
        let mut more = granted(Role::Allocate);
        more.insert("/sdn/zones/localnetwork/vmbr9".to_owned(), ["SDN.Use".to_owned()].into());
        let findings = judged(Role::Allocate, more);
        assert_eq!(
            findings[0].mend,
            ["pveum acl delete /sdn/zones/localnetwork/vmbr9 --tokens 'holdfast@pve!allocate' --roles HfSdn"]
        );
    }
}
