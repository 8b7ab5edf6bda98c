//! One change to a token of Proxmox, as `pveum` and API call.
//!
//! Input: a [`TokenWrite`], a closed enum. Output: the arguments of the command, or verb, path and parameters.

use crate::setup::current::{AclEntry, Spread};
use crate::setup::write::{ApiCall, Verb};

const COMMENT: &str = "made by agentd renew-tokens";

/// A change. A token is named by its whole id, `user@realm!name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenWrite {
    /// Makes a privilege-separated token. Its answer holds the secret, once.
    Add { id: String },
    /// Gives it an entry of the access list that another token has.
    Grant { id: String, like: AclEntry },
    /// Removes it, and with it its entries of the access list.
    Remove { id: String },
}

impl TokenWrite {
    /// As a call of the API.
    #[must_use]
    pub fn call(&self) -> ApiCall {
        match self {
            Self::Add { id } => {
                let params = vec![("privsep", "1".to_owned()), ("comment", COMMENT.to_owned())];
                ApiCall { verb: Verb::Post, path: path(id), params }
            }
            Self::Grant { id, like } => {
                let params = vec![
                    ("path", like.path.clone()),
                    ("roles", like.role.clone()),
                    ("tokens", id.clone()),
                    ("propagate", propagate(like).to_owned()),
                ];
                ApiCall { verb: Verb::Put, path: "/access/acl".to_owned(), params }
            }
            Self::Remove { id } => ApiCall { verb: Verb::Delete, path: path(id), params: Vec::new() },
        }
    }

    /// As the arguments of a command.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect();
        match self {
            Self::Add { id } => {
                let (user, name) = parts(id);
                let head = ["pveum", "user", "token", "add", user, name, "--privsep", "1"];
                words(&[head.as_slice(), &["--comment", COMMENT, "--output-format", "json"]].concat())
            }
            Self::Grant { id, like } => {
                let head = ["pveum", "acl", "modify", like.path.as_str(), "--tokens", id.as_str()];
                words(
                    &[head.as_slice(), &["--roles", like.role.as_str(), "--propagate", propagate(like)]]
                        .concat(),
                )
            }
            Self::Remove { id } => {
                let (user, name) = parts(id);
                words(&["pveum", "user", "token", "remove", user, name])
            }
        }
    }
}

/// The user, and the token's name.
#[must_use]
pub fn parts(id: &str) -> (&str, &str) {
    id.split_once('!').unwrap_or((id, ""))
}

fn path(id: &str) -> String {
    let (user, name) = parts(id);
    format!("/access/users/{user}/token/{name}")
}

const fn propagate(like: &AclEntry) -> &'static str {
    match like.spreads {
        Spread::Here => "0",
        Spread::Below => "1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_and_call_say_the_same() {
        let id = "holdfast@pve!observe-renewal".to_owned();
        let add = TokenWrite::Add { id: id.clone() };
        assert!(
            add.words()
                .join(" ")
                .starts_with("pveum user token add holdfast@pve observe-renewal --privsep 1")
        );
        assert_eq!(add.call().path, "/access/users/holdfast@pve/token/observe-renewal");
        let like = AclEntry {
            path: "/pool/holdfast".to_owned(),
            role: "HfObserve".to_owned(),
            who: "holdfast@pve!observe".to_owned(),
            spreads: Spread::Here,
        };
        let grant = TokenWrite::Grant { id: id.clone(), like };
        assert_eq!(
            grant.words().join(" "),
            "pveum acl modify /pool/holdfast --tokens holdfast@pve!observe-renewal --roles HfObserve --propagate 0"
        );
        let params = grant.call().params;
        assert!(params.contains(&("tokens", id)) && params.contains(&("propagate", "0".to_owned())));
        assert!(!params.iter().any(|(name, _)| *name == "users"), "the user has it already");
    }
}
