//! The present state of Proxmox's access control.
//!
//! Input: the answers of six reads, as the API or `pvesh` gives them. Output: pools, roles, users, tokens and the
//! access list. Deliberately absent: anything that is not ours to compare.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

/// One entry of the access list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AclEntry {
    pub path: String,
    pub role: String,
    /// A user, or a token when it has a `!`.
    pub who: String,
    /// Whether it spreads to the paths below.
    pub spreads: Spread,
}

/// Whether an entry of the access list spreads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Spread {
    /// On this path alone.
    Here,
    /// To all paths below.
    Below,
}

/// The present state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CurrentSetup {
    /// Which Proxmox it is.
    pub version: String,
    /// Pools by name.
    pub pools: BTreeSet<String>,
    /// Roles with their privileges.
    pub roles: BTreeMap<String, BTreeSet<String>>,
    /// Users by name.
    pub users: BTreeSet<String>,
    /// Tokens of our user.
    pub tokens: BTreeMap<String, PrivSep>,
    /// The access list.
    pub acl: BTreeSet<AclEntry>,
}

/// Whether a token has only the rights it was given itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrivSep {
    Yes,
    /// It has all rights of its user.
    No,
}

/// A boolean in any of Proxmox's spellings.
#[derive(Deserialize)]
#[serde(untagged)]
enum Flag {
    Bool(bool),
    Number(u8),
    Text(String),
}

impl Flag {
    fn is_on(&self) -> bool {
        match self {
            Self::Bool(flag) => *flag,
            Self::Number(number) => *number != 0,
            Self::Text(text) => text == "1",
        }
    }
}

#[derive(Deserialize)]
struct VersionRow {
    version: String,
}

#[derive(Deserialize)]
struct PoolRow {
    poolid: String,
}

#[derive(Deserialize)]
struct RoleRow {
    roleid: String,
    #[serde(default)]
    privs: Option<String>,
}

#[derive(Deserialize)]
struct UserRow {
    userid: String,
}

#[derive(Deserialize)]
struct TokenRow {
    tokenid: String,
    #[serde(default)]
    privsep: Option<Flag>,
}

#[derive(Deserialize)]
struct AclRow {
    path: String,
    roleid: String,
    ugid: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    propagate: Option<Flag>,
}

/// One of the reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// `/version`.
    Version,
    /// `/pools`.
    Pools,
    /// `/access/roles`.
    Roles,
    /// `/access/users`.
    Users,
    /// `/access/acl`.
    Acl,
    /// `/access/users/{user}/token`, once the user is there.
    Tokens,
}

impl Read {
    /// Its path below `/api2/json`.
    #[must_use]
    pub fn path(self, user: &str) -> String {
        match self {
            Self::Version => "/version".to_owned(),
            Self::Pools => "/pools".to_owned(),
            Self::Roles => "/access/roles".to_owned(),
            Self::Users => "/access/users".to_owned(),
            Self::Acl => "/access/acl".to_owned(),
            Self::Tokens => format!("/access/users/{user}/token"),
        }
    }
}

/// An answer that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("Proxmox's answer to {read:?} cannot be read: report this with the Proxmox version")]
pub struct SeenError {
    read: Read,
    #[source]
    source: serde_json::Error,
}

impl CurrentSetup {
    /// Takes in one answer: the JSON itself, without `data` around it.
    ///
    /// # Errors
    /// When it is not of the expected form.
    pub fn take(&mut self, read: Read, list: serde_json::Value) -> Result<(), SeenError> {
        let error = |source| SeenError { read, source };
        match read {
            Read::Version => {
                let row: VersionRow = serde_json::from_value(list).map_err(error)?;
                self.version = row.version;
            }
            Read::Pools => {
                let rows: Vec<PoolRow> = serde_json::from_value(list).map_err(error)?;
                self.pools = rows.into_iter().map(|row| row.poolid).collect();
            }
            Read::Roles => {
                let rows: Vec<RoleRow> = serde_json::from_value(list).map_err(error)?;
                let set = |text: &str| {
                    text.split([',', ' ', ';']).filter(|p| !p.is_empty()).map(str::to_owned).collect()
                };
                self.roles = rows
                    .into_iter()
                    .map(|row| (row.roleid, set(row.privs.as_deref().unwrap_or_default())))
                    .collect();
            }
            Read::Users => {
                let rows: Vec<UserRow> = serde_json::from_value(list).map_err(error)?;
                self.users = rows.into_iter().map(|row| row.userid).collect();
            }
            Read::Tokens => {
                let rows: Vec<TokenRow> = serde_json::from_value(list).map_err(error)?;
                // Absent is the default, and the default is separated.
                let separated = |row: &TokenRow| row.privsep.as_ref().is_none_or(Flag::is_on);
                let kind = |row: &TokenRow| if separated(row) { PrivSep::Yes } else { PrivSep::No };
                self.tokens = rows.into_iter().map(|row| (row.tokenid.clone(), kind(&row))).collect();
            }
            Read::Acl => {
                let rows: Vec<AclRow> = serde_json::from_value(list).map_err(error)?;
                let entry = |row: AclRow| AclEntry {
                    path: row.path,
                    role: row.roleid,
                    who: row.ugid,
                    spreads: if row.propagate.is_none_or(|flag| flag.is_on()) {
                        Spread::Below
                    } else {
                        Spread::Here
                    },
                };
                self.acl = rows.into_iter().filter(|row| row.kind != "group").map(entry).collect();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn recorded_answers() {
        let mut seen = CurrentSetup::default();
        seen.take(Read::Pools, json!([{"poolid": "labpool", "comment": "lab pool"}])).unwrap();
        seen.take(Read::Roles, json!([{"special": 1, "roleid": "PVEPoolUser", "privs": "Pool.Audit"}, {"roleid": "NoAccess", "privs": ""}]))
            .unwrap();
        let acl = json!([{"ugid": "agent@pve!privmore", "roleid": "Administrator", "path": "/", "type": "token", "propagate": 1},
            {"ugid": "ops", "roleid": "Administrator", "path": "/", "type": "group", "propagate": 1},
            {"roleid": "HfNode", "ugid": "hf@pve", "path": "/nodes/pve1", "type": "user", "propagate": "0"}]);
        seen.take(Read::Acl, acl).unwrap();
        seen.take(
            Read::Tokens,
            json!([{"tokenid": "observe", "privsep": 1, "expire": 0}, {"tokenid": "wide", "privsep": 0}]),
        )
        .unwrap();
        assert!(seen.pools.contains("labpool") && seen.roles["NoAccess"].is_empty());
        assert_eq!(seen.acl.len(), 2);
        assert!(seen.acl.iter().any(|entry| entry.who == "hf@pve" && entry.spreads == Spread::Here));
        assert_eq!(seen.tokens["wide"], PrivSep::No);
        assert!(seen.take(Read::Users, json!({"userid": 1})).is_err());
    }
}
