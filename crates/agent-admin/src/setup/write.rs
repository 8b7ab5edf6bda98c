//! One change to Proxmox's access control, as `pveum` and API call.
//!
//! Input: a [`Write`], a closed enum. Output: the arguments of the command, or verb, path and parameters. Both are made
//! from one value, so that the printed command equals the change that is made. Deliberately absent: executing it
//! (`way`), and any change to a guest.

use crate::port::pve::{AclPath, Role};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Makes a pool.
    AddPool(String),
    /// Removes an empty pool.
    DeletePool(String),
    /// Makes a role.
    AddRole { name: String, privileges: Vec<String> },
    /// Sets the privileges of an existing role.
    SetRole {
        name: String,
        /// Its privileges, all of them.
        privileges: Vec<String>,
    },
    /// Removes a role.
    DeleteRole(String),
    /// Makes a user without a password, so login as this user is impossible.
    AddUser(String),
    /// Removes a user.
    DeleteUser(String),
    /// Makes a privilege-separated token. Its answer holds the secret, once.
    AddToken { user: String, role: Role },
    /// Removes a token.
    DeleteToken { user: String, role: Role },
    /// Grants a role on exactly this path, to the user and its token.
    Grant {
        path: AclPath,
        pve_role: String,
        user: String,
        /// To which token of the user.
        role: Role,
    },
    /// Takes an entry of the access list away.
    Revoke {
        path: String,
        pve_role: String,
        /// From whom: a user, or a token when it has a `!`.
        from: String,
    },
}

/// A verb of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Post,
    Put,
    Delete,
}

/// A call of the API below `/api2/json`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiCall {
    pub verb: Verb,
    pub path: String,
    pub params: Vec<(&'static str, String)>,
}

const COMMENT: &str = "made by agentd setup";

fn token_id(user: &str, role: Role) -> String {
    format!("{user}!{role}")
}

impl Write {
    /// As a call of the API.
    #[must_use]
    pub fn call(&self) -> ApiCall {
        let call = |verb, path: String, params| ApiCall { verb, path, params };
        let comment = || ("comment", COMMENT.to_owned());
        match self {
            Self::AddPool(name) => {
                call(Verb::Post, "/pools".into(), vec![("poolid", name.clone()), comment()])
            }
            Self::DeletePool(name) => call(Verb::Delete, "/pools".into(), vec![("poolid", name.clone())]),
            Self::AddRole { name, privileges } => call(
                Verb::Post,
                "/access/roles".into(),
                vec![("roleid", name.clone()), ("privs", privileges.join(","))],
            ),
            Self::SetRole { name, privileges } => {
                call(Verb::Put, format!("/access/roles/{name}"), vec![("privs", privileges.join(","))])
            }
            Self::DeleteRole(name) => call(Verb::Delete, format!("/access/roles/{name}"), Vec::new()),
            Self::AddUser(user) => {
                call(Verb::Post, "/access/users".into(), vec![("userid", user.clone()), comment()])
            }
            Self::DeleteUser(user) => call(Verb::Delete, format!("/access/users/{user}"), Vec::new()),
            Self::AddToken { user, role } => {
                let params = vec![("privsep", "1".to_owned()), comment()];
                call(Verb::Post, format!("/access/users/{user}/token/{role}"), params)
            }
            Self::DeleteToken { user, role } => {
                call(Verb::Delete, format!("/access/users/{user}/token/{role}"), Vec::new())
            }
            Self::Grant { path, pve_role, user, role } => {
                let params = vec![
                    ("path", path.to_string()),
                    ("roles", pve_role.clone()),
                    ("users", user.clone()),
                    ("tokens", token_id(user, *role)),
                    ("propagate", "0".to_owned()),
                ];
                call(Verb::Put, "/access/acl".into(), params)
            }
            Self::Revoke { path, pve_role, from } => {
                let owner = if from.contains('!') { "tokens" } else { "users" };
                let params = vec![
                    ("path", path.clone()),
                    ("roles", pve_role.clone()),
                    (owner, from.clone()),
                    ("delete", "1".to_owned()),
                ];
                call(Verb::Put, "/access/acl".into(), params)
            }
        }
    }

    /// As the arguments of a command.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        match self {
            Self::AddPool(name) => words(&["pveum", "pool", "add", name, "--comment", COMMENT]),
            Self::DeletePool(name) => words(&["pveum", "pool", "delete", name]),
            Self::AddRole { name, privileges } => {
                words(&["pveum", "role", "add", name, "--privs", &privileges.join(" ")])
            }
            Self::SetRole { name, privileges } => {
                words(&["pveum", "role", "modify", name, "--privs", &privileges.join(" ")])
            }
            Self::DeleteRole(name) => words(&["pveum", "role", "delete", name]),
            Self::AddUser(user) => words(&["pveum", "user", "add", user, "--comment", COMMENT]),
            Self::DeleteUser(user) => words(&["pveum", "user", "delete", user]),
            Self::AddToken { user, role } => {
                let role = role.text();
                let head = ["pveum", "user", "token", "add", user, role, "--privsep", "1"];
                let tail = ["--comment", COMMENT, "--output-format", "json"];
                words(&[head.as_slice(), tail.as_slice()].concat())
            }
            Self::DeleteToken { user, role } => {
                words(&["pveum", "user", "token", "remove", user, role.text()])
            }
            Self::Grant { path, pve_role, user, role } => {
                let token = token_id(user, *role);
                let head = ["pveum", "acl", "modify", path.as_str(), "--users", user];
                let tail = ["--tokens", token.as_str(), "--roles", pve_role, "--propagate", "0"];
                words(&[head.as_slice(), tail.as_slice()].concat())
            }
            Self::Revoke { path, pve_role, from } => {
                let owner = if from.contains('!') { "--tokens" } else { "--users" };
                words(&["pveum", "acl", "delete", path, owner, from, "--roles", pve_role])
            }
        }
    }

    /// As a line that can be pasted into a shell.
    #[must_use]
    pub fn line(&self) -> String {
        self.words().iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    }
}

/// An argument, quoted for a POSIX shell.
#[must_use]
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@,=+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant() -> Write {
        Write::Grant {
            path: AclPath::pool(&"holdfast".parse().unwrap()),
            pve_role: "HfObserve".to_owned(),
            user: "holdfast@pve".to_owned(),
            role: Role::Observe,
        }
    }

    #[test]
    fn a_grant_reaches_user_and_token_and_does_not_spread() {
        assert_eq!(
            grant().line(),
            "pveum acl modify /pool/holdfast --users holdfast@pve --tokens 'holdfast@pve!observe' --roles HfObserve --propagate 0"
        );
        let call = grant().call();
        assert_eq!((call.verb, call.path.as_str()), (Verb::Put, "/access/acl"));
        assert!(call.params.contains(&("propagate", "0".to_owned())));
    }

    #[test]
    fn a_token_is_always_privilege_separated() {
        let add = Write::AddToken { user: "holdfast@pve".to_owned(), role: Role::Operate };
        assert!(
            add.line().contains("--privsep 1") && add.call().params.contains(&("privsep", "1".to_owned()))
        );
    }

    #[test]
    fn no_word_escapes_its_quotes() {
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's; rm -rf /"), r"'it'\''s; rm -rf /'");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("$(x)"), "'$(x)'");
    }
}
