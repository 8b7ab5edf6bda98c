//! Exchange of the tokens for Proxmox while the agent runs.
//!
//! In: the settings' files, which root's renewal wrote. Out: the client with the new tokens, once each of them was seen to
//! hold every privilege that its predecessor holds; else the client as it was, and why. Deliberately absent: making and
//! removing tokens, which no token can do for its own user.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;

use crate::port::pve::error::PveError;
use crate::port::pve::{ApiToken, Permissions, Pve, PveClient, Role, SetUpError};
use crate::settings::{SecretFileError, Settings, pve_settings};

/// Takes up the tokens that lie there now, and answers with the ids in use.
pub type TakeTokensCall = Arc<
    dyn Fn() -> Pin<Box<dyn Future<Output = Result<BTreeMap<Role, String>, ExchangeError>> + Send>>
        + Send
        + Sync,
>;

/// Why the tokens of before stay in use.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    #[error(transparent)]
    Secret(#[from] SecretFileError),
    #[error(transparent)]
    Form(#[from] SetUpError),
    /// Proxmox does not take it, or does not answer.
    #[error("the new `{role}` token could not be tried, and the one of before stays in use")]
    Tried {
        role: Role,
        #[source]
        source: PveError,
    },
    /// It may less.
    #[error("the new `{role}` token lacks {missing}, and the one of before stays in use: run `agentd setup`")]
    Lacks {
        role: Role,
        /// Privileges with their paths.
        missing: String,
    },
}

/// The call for this client and these settings.
#[must_use]
pub fn call(client: Arc<PveClient>, settings: Settings) -> TakeTokensCall {
    let settings = Arc::new(settings);
    Arc::new(move || {
        let (client, settings) = (Arc::clone(&client), Arc::clone(&settings));
        Box::pin(async move { take(&client, &settings).await })
    })
}

/// Tries each token that changed, and uses all when each was good.
///
/// # Errors
/// [`ExchangeError`]; then nothing changed.
pub async fn take(client: &PveClient, settings: &Settings) -> Result<BTreeMap<Role, String>, ExchangeError> {
    let (now, next) = (client.tokens(), pve_settings(settings)?.tokens);
    let changed: Vec<Role> = next
        .iter()
        .filter(|(role, token)| now.get(role).is_none_or(|held| !is_same(held, token)))
        .map(|(role, _)| *role)
        .collect();
    if !changed.is_empty() {
        let candidate = client.with_tokens(&next)?;
        for role in changed.iter().copied() {
            prove(client, &candidate, role).await?;
        }
        client.take_tokens(&next)?;
        let ids: Vec<&str> = changed.iter().filter_map(|role| Some(next.get(role)?.id.as_str())).collect();
        tracing::info!(tokens = ids.join(", "), "other tokens for Proxmox are in use");
    }
    Ok(next.into_iter().map(|(role, token)| (role, token.id)).collect())
}

fn is_same(held: &ApiToken, token: &ApiToken) -> bool {
    held.id == token.id && held.secret.expose() == token.secret.expose()
}

/// One call that needs a privilege, and the whole list of what the token may. Where its predecessor is refused already,
/// there is nothing to compare with, and any privilege will do.
async fn prove(client: &PveClient, candidate: &PveClient, role: Role) -> Result<(), ExchangeError> {
    let tried = |source| ExchangeError::Tried { role, source };
    let offered = candidate.permissions(role, None).await.map_err(tried)?;
    if role == Role::Observe {
        candidate.node_status().await.map_err(tried)?;
    }
    let missing = match client.permissions(role, None).await {
        Ok(held) => missing(&held, &offered),
        Err(_) if offered.iter().next().is_none() => "every privilege".to_owned(),
        Err(_) => String::new(),
    };
    if missing.is_empty() { Ok(()) } else { Err(ExchangeError::Lacks { role, missing }) }
}

/// What the one holds and the other does not.
fn missing(held: &Permissions, offered: &Permissions) -> String {
    let offered: BTreeMap<&str, &BTreeSet<String>> = offered.iter().collect();
    let lacks = |path: &str, privilege: &str| !offered.get(path).is_some_and(|set| set.contains(privilege));
    let all = held.iter().flat_map(|(path, set)| set.iter().map(move |privilege| (path, privilege.as_str())));
    let lines: Vec<String> = all
        .filter(|(path, privilege)| lacks(path, privilege))
        .take(MISSING_MAX)
        .map(|(path, privilege)| format!("{privilege} on {path}"))
        .collect();
    lines.join(", ")
}

/// The first few say enough.
const MISSING_MAX: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rows: &[(&str, &[&str])]) -> Permissions {
        rows.iter()
            .map(|(path, set)| ((*path).to_owned(), set.iter().map(|p| (*p).to_owned()).collect()))
            .collect()
    }

    #[test]
    fn a_token_that_may_less_is_named_with_what_it_lacks() {
        let held = of(&[("/pool/holdfast", &["VM.Audit", "VM.Backup"]), ("/nodes/pve1", &["Sys.Audit"])]);
        assert_eq!(missing(&held, &held), "");
        let more = of(&[
            ("/pool/holdfast", &["VM.Audit", "VM.Backup", "VM.Console"]),
            ("/nodes/pve1", &["Sys.Audit"]),
        ]);
        assert_eq!(missing(&held, &more), "", "what a person granted meanwhile is no fault here");
        let less = of(&[("/pool/holdfast", &["VM.Audit"])]);
        assert_eq!(missing(&held, &less), "Sys.Audit on /nodes/pve1, VM.Backup on /pool/holdfast");
    }
}
