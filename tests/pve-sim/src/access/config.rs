//! The user configuration, in the form of `user.cfg`.
//!
//! In: the text of the file. Out: [`AccessConfig`], and the text again (sorted as the real writer sorts). Lines that the real reader
//! would ignore with a warning are ignored with a warning here too.
//! Deliberately absent: secrets ([`super::credential`]) and judgement ([`super::evaluate`]).
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::privileges;
use crate::schema::format::split_list;

/// Everything in `user.cfg`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessConfig {
    /// Users by `name@realm`.
    pub users: BTreeMap<String, User>,
    /// Groups by name.
    pub groups: BTreeMap<String, Group>,
    /// Pools by name.
    pub pools: BTreeMap<String, Pool>,
    /// Roles that are not built in.
    pub roles: BTreeMap<String, BTreeSet<String>>,
    /// Access lists by normalised path.
    pub acl: BTreeMap<String, AclNode>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    /// May log in.
    pub enabled: bool,
    /// Unix seconds, 0 for never.
    pub expire: i64,
    pub firstname: String,
    pub lastname: String,
    pub email: String,
    pub comment: String,
    pub keys: String,
    /// Tokens by their short id.
    pub tokens: BTreeMap<String, Token>,
}

/// One API token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Unix seconds, 0 for never.
    pub expire: i64,
    /// Has rights of its own, cut with the user's.
    pub privsep: bool,
    pub comment: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Group {
    pub users: BTreeSet<String>,
    pub comment: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pool {
    pub comment: String,
    pub vms: BTreeSet<u32>,
    pub storage: BTreeSet<String>,
}

/// Roles with their propagation flag.
pub type Granted = BTreeMap<String, bool>;

/// The access list at one path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AclNode {
    pub users: BTreeMap<String, Granted>,
    pub groups: BTreeMap<String, Granted>,
    pub tokens: BTreeMap<String, Granted>,
}

impl AccessConfig {
    /// Reads the file.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut config = Self::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let fields: Vec<&str> = line.split(':').map(str::trim).collect();
            if config.take(&fields).is_none() {
                tracing::warn!(line, "user config: line ignored");
            }
        }
        config
            .users
            .entry("root@pam".to_owned())
            .or_insert_with(|| User { enabled: true, ..User::default() });
        config
    }

    fn take(&mut self, fields: &[&str]) -> Option<()> {
        let at = |index: usize| fields.get(index).copied().unwrap_or_default();
        match at(0) {
            "user" => {
                let user = User {
                    enabled: at(2) == "1",
                    expire: number(at(3))?,
                    firstname: decode(at(4)),
                    lastname: decode(at(5)),
                    email: at(6).to_owned(),
                    comment: decode(at(7)),
                    keys: at(8).to_owned(),
                    tokens: self.users.remove(at(1)).map(|held| held.tokens).unwrap_or_default(),
                };
                self.users.insert(at(1).to_owned(), user);
            }
            "token" => {
                let (user, token) = at(1).rsplit_once('!')?;
                let held = self.users.get_mut(user)?;
                held.tokens.insert(
                    token.to_owned(),
                    Token { expire: number(at(2))?, privsep: at(3) == "1", comment: decode(at(4)) },
                );
            }
            "group" => {
                let users = split_list(at(2)).map(str::to_owned).collect();
                self.groups.insert(at(1).to_owned(), Group { users, comment: decode(at(3)) });
            }
            "pool" => {
                let vms = split_list(at(3))
                    .filter_map(|id| id.parse().ok())
                    .filter(|id| self.pool_of(*id).is_none())
                    .collect();
                let storage = split_list(at(4)).map(str::to_owned).collect();
                self.pools.insert(at(1).to_owned(), Pool { comment: decode(at(2)), vms, storage });
            }
            "role" if !privileges::is_special(at(1)) => {
                let privs =
                    split_list(at(2)).filter(|name| privileges::exists(name)).map(str::to_owned).collect();
                self.roles.insert(at(1).to_owned(), privs);
            }
            "acl" => self.take_acl(at(1) == "1", at(2), at(3), at(4))?,
            _ => return None,
        }
        Some(())
    }

    fn take_acl(&mut self, propagate: bool, path: &str, members: &str, roles: &str) -> Option<()> {
        let path = normalize_path(path)?;
        for role in split_list(roles) {
            if !self.has_role(role) {
                tracing::warn!(role, "user config: unknown role in access list ignored");
                continue;
            }
            for member in split_list(members) {
                if member.contains('!') && self.token(member).is_none() {
                    tracing::warn!(member, "user config: unknown token in access list ignored");
                    continue;
                }
                self.grant(&path, member, role, propagate);
            }
        }
        Some(())
    }

    /// Gives a role at a path to a user, a token (`!` inside) or a group (`@` in front).
    pub fn grant(&mut self, path: &str, member: &str, role: &str, propagate: bool) {
        let node = self.acl.entry(path.to_owned()).or_default();
        let held = match member.strip_prefix('@') {
            Some(group) => node.groups.entry(group.to_owned()),
            None if member.contains('!') => node.tokens.entry(member.to_owned()),
            None => node.users.entry(member.to_owned()),
        };
        held.or_default().insert(role.to_owned(), propagate);
    }

    /// Takes a role at a path away again.
    pub fn revoke(&mut self, path: &str, member: &str, role: &str) {
        let Some(node) = self.acl.get_mut(path) else { return };
        let held = match member.strip_prefix('@') {
            Some(group) => node.groups.get_mut(group),
            None if member.contains('!') => node.tokens.get_mut(member),
            None => node.users.get_mut(member),
        };
        if let Some(granted) = held {
            granted.remove(role);
        }
    }

    /// A token by its full id.
    #[must_use]
    pub fn token(&self, full: &str) -> Option<&Token> {
        let (user, token) = full.rsplit_once('!')?;
        self.users.get(user)?.tokens.get(token)
    }

    /// Whether a role exists, built in or not.
    #[must_use]
    pub fn has_role(&self, role: &str) -> bool {
        privileges::is_special(role) || self.roles.contains_key(role)
    }

    /// The privileges of a role.
    #[must_use]
    pub fn privileges_of(&self, role: &str) -> Vec<String> {
        if let Some((_, privs)) = privileges::ROLES.iter().find(|(name, _)| *name == role) {
            return privs.iter().map(|name| (*name).to_owned()).collect();
        }
        self.roles.get(role).map(|privs| privs.iter().cloned().collect()).unwrap_or_default()
    }

    /// The pool a guest is in. The file may list it in several; the first of them counts, by name.
    #[must_use]
    pub fn pool_of(&self, vmid: u32) -> Option<&str> {
        self.pools.iter().find(|(_, pool)| pool.vms.contains(&vmid)).map(|(name, _)| name.as_str())
    }

    /// Removes the access lists and the pool membership of a guest that is removed.
    pub fn forget_guest(&mut self, vmid: u32) {
        let own = format!("/vms/{vmid}");
        self.acl.retain(|path, _| *path != own);
        for pool in self.pools.values_mut() {
            pool.vms.remove(&vmid);
        }
    }

    /// Writes the file.
    #[must_use]
    pub fn print(&self) -> String {
        let mut out = String::new();
        for (id, user) in &self.users {
            let names = [
                encode(&user.firstname),
                encode(&user.lastname),
                user.email.clone(),
                encode(&user.comment),
                user.keys.clone(),
            ];
            let _ =
                writeln!(out, "user:{id}:{}:{}:{}:", u8::from(user.enabled), user.expire, names.join(":"));
            for (token, held) in &user.tokens {
                let _ = writeln!(
                    out,
                    "token:{id}!{token}:{}:{}:{}:",
                    held.expire,
                    u8::from(held.privsep),
                    encode(&held.comment)
                );
            }
        }
        out.push('\n');
        for (name, group) in &self.groups {
            let _ = writeln!(out, "group:{name}:{}:{}:", joined(group.users.iter()), encode(&group.comment));
        }
        out.push('\n');
        for (name, pool) in &self.pools {
            let vms = pool.vms.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
            let _ =
                writeln!(out, "pool:{name}:{}:{vms}:{}:", encode(&pool.comment), joined(pool.storage.iter()));
        }
        out.push('\n');
        for (name, privs) in &self.roles {
            let _ = writeln!(out, "role:{name}:{}:", joined(privs.iter()));
        }
        out.push('\n');
        for (path, node) in &self.acl {
            node.print(path, &mut out);
        }
        out
    }
}

impl AclNode {
    fn print(&self, path: &str, out: &mut String) {
        let mut lines: BTreeMap<(bool, String), BTreeSet<String>> = BTreeMap::new();
        let groups = self.groups.iter().map(|(name, granted)| (format!("@{name}"), granted));
        let others = self.users.iter().chain(&self.tokens).map(|(name, granted)| (name.clone(), granted));
        for (member, granted) in groups.chain(others) {
            for wanted in [false, true] {
                let roles: Vec<&String> = granted
                    .iter()
                    .filter(|(_, propagate)| **propagate == wanted)
                    .map(|(role, _)| role)
                    .collect();
                if !roles.is_empty() {
                    lines.entry((wanted, joined(roles.into_iter()))).or_default().insert(member.clone());
                }
            }
        }
        for ((propagate, roles), members) in lines {
            let _ = writeln!(out, "acl:{}:{path}:{}:{roles}:", u8::from(propagate), joined(members.iter()));
        }
    }
}

/// The one spelling of an access path, or `None` when it cannot be one.
#[must_use]
pub fn normalize_path(path: &str) -> Option<String> {
    if path.is_empty() {
        return None;
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let joined = format!("/{}", parts.join("/"));
    joined.chars().all(|c| c.is_ascii_alphanumeric() || ".-_/".contains(c)).then_some(joined)
}

fn number(text: &str) -> Option<i64> {
    if text.is_empty() { Some(0) } else { text.parse().ok() }
}

fn joined<'a>(parts: impl Iterator<Item = &'a String>) -> String {
    parts.map(String::as_str).collect::<Vec<_>>().join(",")
}

/// Colons, percent signs, control and non-ASCII bytes are written as `%XX`.
#[must_use]
pub fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if (0x20..=0x7e).contains(&byte) && byte != b':' && byte != b'%' {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// The reverse of [`encode`].
#[must_use]
pub fn decode(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lab_file_survives_a_round_trip() {
        let text = include_str!("../../lab/user.cfg");
        let config = AccessConfig::parse(text);
        assert_eq!(AccessConfig::parse(&config.print()), config);
        assert!(config.token("agent@pve!hostagent").is_some_and(|token| token.privsep));
        assert_eq!(
            config.acl["/"].tokens["agent@pve!privmore"],
            Granted::from([("Administrator".to_owned(), true)])
        );
    }

    #[test]
    fn paths_have_one_spelling() {
        assert_eq!(normalize_path("//vms/100/"), Some("/vms/100".to_owned()));
        assert_eq!(normalize_path("/"), Some("/".to_owned()));
        assert_eq!(normalize_path("vms"), Some("/vms".to_owned()));
        assert_eq!(normalize_path("/vms/a b"), None);
    }
}
