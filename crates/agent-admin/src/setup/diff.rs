//! The steps from the current to the desired setup.
//!
//! Input: [`DesiredSetup`], [`CurrentSetup`], and which secrets we still have. Output: every wanted item as one
//! [`Step`], already done or with the writes that make it so, in an order that works. Pure. Running the writes and
//! comparing again gives a list with nothing to do. Rights of our own tokens on storages from earlier choices are
//! removed. Deliberately absent: removing rights that another user granted; `doctor` shows those.

use std::collections::BTreeSet;

use super::current::{AclEntry, CurrentSetup, PrivSep, Spread};
use super::plan::DesiredSetup;
use super::privilege::pve_roles;
use super::write::Write;
use crate::port::pve::Role;

/// The state of a wanted item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepState {
    Done,
    /// Not there yet.
    Missing,
    /// There, but otherwise than wanted: why it is touched.
    Differs(&'static str),
}

/// One wanted thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// A description of the step.
    pub what: String,
    /// Its state.
    pub status: StepState,
    /// The writes that make it so.
    pub writes: Vec<Write>,
}

impl Step {
    fn new(what: String, status: StepState, writes: Vec<Write>) -> Self {
        Self { what, status, writes }
    }
}

/// All steps, in order.
#[must_use]
pub fn settle(wanted: &DesiredSetup, seen: &CurrentSetup, secrets: &BTreeSet<Role>) -> Vec<Step> {
    let pools = wanted.pools.iter().map(|pool| pool_step(pool.as_str(), seen));
    let roles = wanted.pve_roles.iter().map(|(name, privileges)| role_step(name, privileges, seen));
    let mut steps: Vec<Step> = pools.chain(roles).collect();
    steps.push(user_step(&wanted.user, seen));
    // A token that is made anew loses its grants with the old one.
    let mut remade = BTreeSet::new();
    for role in &wanted.tokens {
        let step = token_step(&wanted.user, *role, seen, secrets.contains(role));
        if step.status != StepState::Done {
            remade.insert(*role);
        }
        steps.push(step);
    }
    for grant in &wanted.grants {
        let has = |who: String| {
            let entry = AclEntry {
                path: grant.path.to_string(),
                role: grant.pve_role.to_owned(),
                who,
                spreads: Spread::Here,
            };
            seen.acl.contains(&entry)
        };
        let both = has(wanted.user.clone()) && has(format!("{}!{}", wanted.user, grant.role));
        let status = if both && !remade.contains(&grant.role) { StepState::Done } else { StepState::Missing };
        let write = Write::Grant {
            path: grant.path.clone(),
            pve_role: grant.pve_role.to_owned(),
            user: wanted.user.clone(),
            role: grant.role,
        };
        let what = format!("grant {} on {} to {}!{}", grant.pve_role, grant.path, wanted.user, grant.role);
        steps.push(done_or(what, status, vec![write]));
    }
    steps.extend(left_over(wanted, seen));
    steps
}

/// Grants of our roles to our own tokens on storages that only earlier choices needed. The user keeps what another of
/// its tokens needs.
fn left_over(wanted: &DesiredSetup, seen: &CurrentSetup) -> Vec<Step> {
    let ours = pve_roles(&Role::ALL);
    let is_needed = |entry: &AclEntry| {
        wanted.grants.iter().any(|grant| {
            let here = grant.path.as_str() == entry.path && grant.pve_role == entry.role;
            here && (entry.who == wanted.user || entry.who == format!("{}!{}", wanted.user, grant.role))
        })
    };
    let is_of_us = |who: &str| {
        who == wanted.user || wanted.tokens.iter().any(|role| who == format!("{}!{role}", wanted.user))
    };
    let left = seen.acl.iter().filter(|entry| {
        entry.path.starts_with("/storage/")
            && entry.spreads == Spread::Here
            && ours.contains_key(entry.role.as_str())
            && is_of_us(&entry.who)
            && !is_needed(entry)
    });
    let step = |entry: &AclEntry| {
        let (path, pve_role, from) = (entry.path.clone(), entry.role.clone(), entry.who.clone());
        let what = format!("no grant {pve_role} on {path} to {from}");
        let why = StepState::Differs("nothing that was chosen needs it any more");
        Step::new(what, why, vec![Write::Revoke { path, pve_role, from }])
    };
    left.map(step).collect()
}

fn done_or(what: String, status: StepState, writes: Vec<Write>) -> Step {
    let writes = if status == StepState::Done { Vec::new() } else { writes };
    Step::new(what, status, writes)
}

fn pool_step(pool: &str, seen: &CurrentSetup) -> Step {
    let status = if seen.pools.contains(pool) { StepState::Done } else { StepState::Missing };
    done_or(format!("pool {pool}"), status, vec![Write::AddPool(pool.to_owned())])
}

fn role_step(name: &str, privileges: &BTreeSet<&'static str>, seen: &CurrentSetup) -> Step {
    let list: Vec<String> = privileges.iter().map(|privilege| (*privilege).to_owned()).collect();
    let what = format!("role {name} ({})", list.join(" "));
    match seen.roles.get(name) {
        None => Step::new(
            what,
            StepState::Missing,
            vec![Write::AddRole { name: name.to_owned(), privileges: list }],
        ),
        Some(has) if has.iter().map(String::as_str).eq(privileges.iter().copied()) => {
            Step::new(what, StepState::Done, Vec::new())
        }
        Some(_) => {
            let write = Write::SetRole { name: name.to_owned(), privileges: list };
            Step::new(what, StepState::Differs("it holds other privileges"), vec![write])
        }
    }
}

fn user_step(user: &str, seen: &CurrentSetup) -> Step {
    let status = if seen.users.contains(user) { StepState::Done } else { StepState::Missing };
    done_or(format!("user {user}, without a password"), status, vec![Write::AddUser(user.to_owned())])
}

fn token_step(user: &str, role: Role, seen: &CurrentSetup, have_secret: bool) -> Step {
    let what = format!("token {user}!{role}, privilege-separated");
    let add = Write::AddToken { user: user.to_owned(), role };
    let delete = Write::DeleteToken { user: user.to_owned(), role };
    match (seen.tokens.get(role.text()), have_secret) {
        (None, _) => Step::new(what, StepState::Missing, vec![add]),
        (Some(PrivSep::Yes), true) => Step::new(what, StepState::Done, Vec::new()),
        (Some(PrivSep::Yes), false) => {
            let why = "its secret is not in the settings and Proxmox never shows one twice: it is made anew";
            Step::new(what, StepState::Differs(why), vec![delete, add])
        }
        (Some(PrivSep::No), _) => {
            let why = "it is not privilege-separated: it is made anew";
            Step::new(what, StepState::Differs(why), vec![delete, add])
        }
    }
}

/// The items that `--remove` removes: grants, tokens, user, roles, and pools when they are empty.
#[must_use]
pub fn unsettle(wanted: &DesiredSetup, seen: &CurrentSetup) -> Vec<Step> {
    let mut steps = Vec::new();
    let ours =
        |who: &str| who == wanted.user || who.split_once('!').is_some_and(|(user, _)| user == wanted.user);
    for entry in seen.acl.iter().filter(|entry| ours(&entry.who)) {
        let write =
            Write::Revoke { path: entry.path.clone(), pve_role: entry.role.clone(), from: entry.who.clone() };
        let what = format!("grant {} on {} of {}", entry.role, entry.path, entry.who);
        steps.push(Step::new(what, StepState::Differs("it is there"), vec![write]));
    }
    for role in Role::ALL.into_iter().filter(|role| seen.tokens.contains_key(role.text())) {
        let write = Write::DeleteToken { user: wanted.user.clone(), role };
        steps.push(Step::new(
            format!("token {}!{role}", wanted.user),
            StepState::Differs("it is there"),
            vec![write],
        ));
    }
    if seen.users.contains(&wanted.user) {
        let write = Write::DeleteUser(wanted.user.clone());
        steps.push(Step::new(
            format!("user {}", wanted.user),
            StepState::Differs("it is there"),
            vec![write],
        ));
    }
    let elsewhere = |name: &str| seen.acl.iter().any(|entry| entry.role == name && !ours(&entry.who));
    for (name, _) in
        wanted.pve_roles.iter().filter(|(name, _)| seen.roles.contains_key(*name) && !elsewhere(name))
    {
        let write = Write::DeleteRole((*name).to_owned());
        steps.push(Step::new(format!("role {name}"), StepState::Differs("it is there"), vec![write]));
    }
    for pool in wanted.pools.iter().filter(|pool| seen.pools.contains(pool.as_str())) {
        let write = Write::DeletePool(pool.to_string());
        steps.push(Step::new(
            format!("pool {pool}, if it is empty"),
            StepState::Differs("it is there"),
            vec![write],
        ));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::{choices, tried};
    use super::*;

    /// Carries writes out on a [`CurrentSetup`], as Proxmox would.
    fn carry_out(seen: &mut CurrentSetup, steps: &[Step]) {
        for write in steps.iter().flat_map(|step| &step.writes) {
            match write.clone() {
                Write::AddPool(name) => assert!(seen.pools.insert(name)),
                Write::DeletePool(name) => assert!(seen.pools.remove(&name)),
                Write::AddRole { name, privileges } => {
                    assert!(seen.roles.insert(name, privileges.into_iter().collect()).is_none());
                }
                Write::SetRole { name, privileges } => {
                    assert!(seen.roles.insert(name, privileges.into_iter().collect()).is_some());
                }
                Write::DeleteRole(name) => assert!(seen.roles.remove(&name).is_some()),
                Write::AddUser(user) => assert!(seen.users.insert(user)),
                Write::DeleteUser(user) => assert!(seen.users.remove(&user)),
                Write::AddToken { role, .. } => {
                    assert!(seen.tokens.insert(role.text().to_owned(), PrivSep::Yes).is_none());
                }
                Write::DeleteToken { user, role } => {
                    assert!(seen.tokens.remove(role.text()).is_some());
                    seen.acl.retain(|entry| entry.who != format!("{user}!{role}"));
                }
                Write::Grant { path, pve_role, user, role } => {
                    assert!(seen.roles.contains_key(&pve_role) && seen.tokens.contains_key(role.text()));
                    for who in [user.clone(), format!("{user}!{role}")] {
                        let (path, role) = (path.to_string(), pve_role.clone());
                        seen.acl.insert(AclEntry { path, role, who, spreads: Spread::Here });
                    }
                }
                Write::Revoke { path, pve_role, from } => {
                    seen.acl.retain(|e| !(e.path == path && e.role == pve_role && e.who == from));
                }
            }
        }
    }

    fn writes(steps: &[Step]) -> usize {
        steps.iter().map(|step| step.writes.len()).sum()
    }

    #[test]
    fn from_nothing_to_all_and_then_nothing_to_do() {
        let wanted = DesiredSetup::of(&choices());
        let mut seen = CurrentSetup::default();
        let first = settle(&wanted, &seen, &BTreeSet::new());
        assert!(first.iter().all(|step| step.status == StepState::Missing));
        carry_out(&mut seen, &first);
        let secrets: BTreeSet<Role> = wanted.tokens.iter().copied().collect();
        let second = settle(&wanted, &seen, &secrets);
        assert!(second.iter().all(|step| step.status == StepState::Done), "{second:#?}");
        assert_eq!((writes(&second), second.len()), (0, first.len()));
    }

    #[test]
    fn a_lost_secret_makes_the_token_anew_and_grants_again() {
        let wanted = DesiredSetup::of(&choices());
        let mut seen = CurrentSetup::default();
        let steps = settle(&wanted, &seen, &BTreeSet::new());
        carry_out(&mut seen, &steps);
        let kept: BTreeSet<Role> = [Role::Observe, Role::Operate].into();
        let steps = settle(&wanted, &seen, &kept);
        let touched: Vec<&str> =
            steps.iter().filter(|step| !step.writes.is_empty()).map(|step| step.what.as_str()).collect();
        assert!(touched.iter().all(|what| what.contains("!allocate")) && touched.len() == 8, "{touched:?}");
        carry_out(&mut seen, &steps);
        let all: BTreeSet<Role> = wanted.tokens.iter().copied().collect();
        assert_eq!(writes(&settle(&wanted, &seen, &all)), 0);
    }

    /// A host that was set up before its storage had a twin: the token's rights there are removed, and another user's
    /// rights stay.
    #[test]
    fn what_a_counterpart_takes_the_place_of_is_taken_away() {
        let mut before = tried();
        before.scratch.as_mut().unwrap().twins.clear();
        let mut seen = CurrentSetup::default();
        let secrets: BTreeSet<Role> = DesiredSetup::of(&before).tokens.iter().copied().collect();
        let steps = settle(&DesiredSetup::of(&before), &seen, &BTreeSet::new());
        carry_out(&mut seen, &steps);
        let has = |seen: &CurrentSetup, path: &str| -> Vec<String> {
            let reads = |entry: &&AclEntry| entry.path == path && entry.role == "HfStRead";
            seen.acl.iter().filter(reads).map(|entry| entry.who.clone()).collect()
        };
        let [user, allocate, scratch] = ["", "!allocate", "!scratch"].map(|end| format!("holdfast@pve{end}"));
        assert_eq!(has(&seen, "/storage/off1"), [user.clone(), allocate.clone(), scratch.clone()]);
        let steps = settle(&DesiredSetup::of(&tried()), &seen, &secrets);
        carry_out(&mut seen, &steps);
        assert_eq!(has(&seen, "/storage/off1"), [user.clone(), allocate]);
        assert_eq!(has(&seen, "/storage/off1-read"), [user, scratch]);
        assert_eq!(writes(&settle(&DesiredSetup::of(&tried()), &seen, &secrets)), 0);
    }

    #[test]
    fn grants_on_a_storage_that_is_no_longer_chosen_are_taken_away_and_those_of_others_stay() {
        let mut seen = CurrentSetup::default();
        let before = DesiredSetup::of(&tried());
        carry_out(&mut seen, &settle(&before, &CurrentSetup::default(), &BTreeSet::new()));
        let by_hand = AclEntry {
            path: "/storage/labdir".to_owned(),
            role: "PVEDatastoreUser".to_owned(),
            who: "holdfast@pve".to_owned(),
            spreads: Spread::Here,
        };
        seen.acl.insert(by_hand.clone());
        let mut moved = tried();
        moved.scratch.as_mut().unwrap().storage = "other".parse().unwrap();
        moved.bulk_storage = None;
        let (wanted, secrets) = (DesiredSetup::of(&moved), before.tokens.iter().copied().collect());
        let steps = settle(&wanted, &seen, &secrets);
        carry_out(&mut seen, &steps);
        let left: Vec<_> = seen.acl.iter().filter(|entry| entry.path == "/storage/labdir").collect();
        assert_eq!(left, [&by_hand]);
        assert!(
            seen.acl
                .iter()
                .any(|entry| entry.path == "/storage/other" && entry.who == "holdfast@pve!scratch")
        );
        assert_eq!(writes(&settle(&wanted, &seen, &secrets)), 0);
    }

    #[test]
    fn a_changed_role_and_a_wide_token_are_put_right() {
        let wanted = DesiredSetup::of(&choices());
        let mut seen = CurrentSetup::default();
        let steps = settle(&wanted, &seen, &BTreeSet::new());
        carry_out(&mut seen, &steps);
        seen.roles.insert("HfObserve".to_owned(), ["Sys.Modify".to_owned()].into());
        seen.tokens.insert("observe".to_owned(), PrivSep::No);
        let all: BTreeSet<Role> = wanted.tokens.iter().copied().collect();
        let steps = settle(&wanted, &seen, &all);
        carry_out(&mut seen, &steps);
        assert_eq!(writes(&settle(&wanted, &seen, &all)), 0);
        assert!(!seen.roles["HfObserve"].contains("Sys.Modify") && seen.tokens["observe"] == PrivSep::Yes);
    }

    #[test]
    fn removing_leaves_what_others_made() {
        let wanted = DesiredSetup::of(&choices());
        let mut seen = CurrentSetup::default();
        let other = AclEntry {
            path: "/".to_owned(),
            role: "HfNode".to_owned(),
            who: "admin@pam".to_owned(),
            spreads: Spread::Below,
        };
        seen.acl.insert(other.clone());
        seen.users.insert("admin@pam".to_owned());
        let steps = settle(&wanted, &seen, &BTreeSet::new());
        carry_out(&mut seen, &steps);
        let removal = unsettle(&wanted, &seen);
        carry_out(&mut seen, &removal);
        assert_eq!(seen.acl, [other].into());
        assert_eq!(seen.roles.keys().collect::<Vec<_>>(), ["HfNode"]);
        assert_eq!(seen.users.len(), 1);
        assert!(seen.pools.is_empty() && seen.tokens.is_empty() && unsettle(&wanted, &seen).is_empty());
    }
}
