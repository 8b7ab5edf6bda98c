//! The API tokens in use, exchangeable while the client runs.
//!
//! Input: one token for each role. Output: its authorization, and which role a task's owner has. A renewal puts a token of
//! another name in its place for a while ([`RENEWAL_SUFFIX`]): tasks of both belong to the same role. Deliberately absent:
//! reading files, and judging whether a token may what its role needs.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use holdfast_protocol::secret::Secret;

use super::Role;

/// One API token: who, and the secret.
#[derive(Clone, Debug)]
pub struct ApiToken {
    /// `user@realm!name`.
    pub id: String,
    /// The UUID that Proxmox showed once.
    pub secret: Secret,
}

/// A token whose name or secret is not of their form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the `{role}` token is not of the form user@realm!name with a UUID as secret: run `agentd setup`")]
pub struct BadToken {
    /// What it is for.
    pub role: Role,
}

/// What the name of a token ends in that stands in while the lasting one is made anew.
pub const RENEWAL_SUFFIX: &str = "-renewal";

/// The lasting token's id for the id of either.
#[must_use]
pub fn lasting_id(id: &str) -> &str {
    id.strip_suffix(RENEWAL_SUFFIX).unwrap_or(id)
}

struct InUse {
    token: ApiToken,
    authorization: Secret,
}

/// The tokens, by role.
pub(super) struct TokenSet(RwLock<BTreeMap<Role, InUse>>);

impl TokenSet {
    pub(super) fn new(tokens: &BTreeMap<Role, ApiToken>) -> Result<Self, BadToken> {
        Ok(Self(RwLock::new(checked(tokens)?)))
    }

    /// Uses these from the next call on. A call under way keeps what it began with.
    pub(super) fn replace(&self, tokens: &BTreeMap<Role, ApiToken>) -> Result<(), BadToken> {
        let next = checked(tokens)?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = next;
        Ok(())
    }

    pub(super) fn all(&self) -> BTreeMap<Role, ApiToken> {
        self.read().iter().map(|(role, held)| (*role, held.token.clone())).collect()
    }

    pub(super) fn has(&self, role: Role) -> bool {
        self.read().contains_key(&role)
    }

    pub(super) fn authorization(&self, role: Role) -> Option<Secret> {
        self.read().get(&role).map(|held| held.authorization.clone())
    }

    /// The role whose token of now is this very one. A task is followed with the token that started it.
    pub(super) fn holder(&self, id: &str) -> Option<Role> {
        self.read().iter().rfind(|(_, held)| held.token.id == id).map(|(role, _)| *role)
    }

    /// The role that this token belongs to, or belonged to before or during a renewal.
    pub(super) fn role_of(&self, id: &str) -> Option<Role> {
        let of = lasting_id(id);
        self.read().iter().rfind(|(_, held)| lasting_id(&held.token.id) == of).map(|(role, _)| *role)
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<Role, InUse>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

fn checked(tokens: &BTreeMap<Role, ApiToken>) -> Result<BTreeMap<Role, InUse>, BadToken> {
    let in_use = |(role, token): (&Role, &ApiToken)| {
        let authorization = authorization(*role, token)?;
        Ok((*role, InUse { token: token.clone(), authorization }))
    };
    tokens.iter().map(in_use).collect()
}

fn authorization(role: Role, token: &ApiToken) -> Result<Secret, BadToken> {
    let plain = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic() && b != b'=');
    let named = token.id.split_once('@').is_some_and(|(_, rest)| rest.contains('!'));
    if !named || !plain(&token.id) || !plain(token.secret.expose()) {
        return Err(BadToken { role });
    }
    Ok(Secret::new(format!("PVEAPIToken={}={}", token.id, token.secret.expose())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(id: &str, secret: &str) -> ApiToken {
        ApiToken { id: id.to_owned(), secret: Secret::new(secret.to_owned()) }
    }

    #[test]
    fn a_token_that_could_split_a_header_is_refused_and_a_good_one_hides() {
        let good =
            authorization(Role::Observe, &token("hf@pve!observe", "00000000-0000-0000-0000-000000000000"))
                .unwrap();
        assert!(!format!("{good:?}").contains("0000"));
        for (id, secret) in [
            ("hf@pve", "x"),
            ("hf!observe", "x"),
            ("hf@pve!observe", ""),
            ("hf@pve!observe", "a\r\nX: y"),
            ("hf@pve!a=b", "x"),
        ] {
            assert!(authorization(Role::Observe, &token(id, secret)).is_err(), "{id} {secret}");
        }
    }

    #[test]
    fn tasks_of_the_lasting_token_and_of_the_one_that_stands_in_are_of_one_role() {
        let of = |id: &str| BTreeMap::from([(Role::Operate, token(id, "x"))]);
        let set = TokenSet::new(&of("hf@pve!operate")).unwrap();
        assert_eq!(set.holder("hf@pve!operate"), Some(Role::Operate));
        set.replace(&of("hf@pve!operate-renewal")).unwrap();
        assert_eq!(set.holder("hf@pve!operate"), None, "the token of now did not start it");
        for id in ["hf@pve!operate", "hf@pve!operate-renewal"] {
            assert_eq!(set.role_of(id), Some(Role::Operate), "{id}");
        }
        assert_eq!(set.role_of("other@pve!operate"), None);
        assert!(set.replace(&of("hf@pve!a=b")).is_err() && set.has(Role::Operate), "the set stays");
        assert_eq!(set.all()[&Role::Operate].id, "hf@pve!operate-renewal");
    }
}
