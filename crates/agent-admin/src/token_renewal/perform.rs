//! The renewal of one role's token, step by step.
//!
//! Input: its credential, Proxmox as root, and the running agent. Output: how it ended. A token is removed only once the
//! agent said that it uses the other one, and while no task runs that it began: such a task is followed and stopped with
//! the token that began it. Whatever fails leaves the token in use as it was.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use holdfast_protocol::secret::Secret;

use super::credential::{Credential, CredentialError};
use super::step::{Name, Presence, Situation, Step, Turn, next};
use super::write::{TokenWrite, parts};
use crate::port::admin_socket::{self, StatusError};
use crate::port::pve::error::PveError;
use crate::port::pve::{ApiToken, Permissions, Pve, PveClient, Role, SetUpError};
use crate::setup::access::{Way, WayError, secret_in};
use crate::setup::{SetupError, look};

/// A whole renewal has four steps; one that was cut off has two more.
const STEPS_MAX: usize = 8;

/// Why a token was not renewed.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error(transparent)]
    Credential(#[from] CredentialError),
    #[error(transparent)]
    Look(#[from] SetupError),
    #[error(transparent)]
    Way(#[from] WayError),
    #[error(transparent)]
    Client(#[from] SetUpError),
    #[error("Proxmox does not list the token {id} that is in use: run `agentd setup`, which makes it anew")]
    Unknown { id: String },
    /// Tried by this program.
    #[error("the new token {id} could not be tried and was removed; the one of before stays in use")]
    Tried {
        id: String,
        #[source]
        source: PveError,
    },
    #[error(
        "the new token {id} may not do the same as the one of before, so it was removed, and that one stays in use"
    )]
    Differs { id: String },
    #[error("which tasks run is not known, so nothing was removed")]
    Tasks(#[source] PveError),
    /// Nothing is lost: both tokens exist.
    #[error("the token {id} could not be tried; nothing was removed, and the next run goes on from here")]
    Untried {
        id: String,
        #[source]
        source: PveError,
    },
    /// The agent goes on with the old one.
    #[error(
        "the running agent did not take the token {id}; it was removed, and the one of before stays in use"
    )]
    Refused {
        id: String,
        #[source]
        source: StatusError,
    },
    /// Nothing is lost: both tokens exist.
    #[error(
        "the agent did not say whether it uses {id}; nothing was removed, and the next run goes on from here"
    )]
    Unsaid {
        id: String,
        #[source]
        source: StatusError,
    },
    #[error(
        "the running agent uses {used} although {id} is configured; nothing was removed: `systemctl restart agentd`"
    )]
    UsesOther { id: String, used: String },
    #[error("the renewal of {id} did not come to an end: look at the tokens with `pveum user token list`")]
    Endless { id: String },
}

/// How a token's renewal ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was young enough, and nothing was left over.
    NotDue,
    Renewed,
    /// Something of an earlier run was left over, and is gone.
    TidiedUp,
    /// A task runs that the token began; the next run goes on.
    WaitsForTask {
        upid: String,
    },
}

/// What a renewal works with.
pub struct Renewal<'a> {
    pub way: &'a Way,
    /// The client for trying tokens, with those that are in use.
    pub client: &'a PveClient,
    /// The agent's state folder, where its admin socket is.
    pub state: &'a Path,
}

impl Renewal<'_> {
    /// Renews one.
    ///
    /// # Errors
    /// [`TokenError`].
    pub async fn run(&self, credential: &Credential, turn: Turn) -> Result<Outcome, TokenError> {
        let (mut turn, mut ended) = (turn, Outcome::NotDue);
        for _ in 0..STEPS_MAX {
            let (in_use, token) = credential.read()?;
            self.use_now(credential, &token)?;
            let seen = look(self.way, parts(&token.id).0).await?;
            let presence = |name| {
                let is_there = seen.tokens.contains_key(parts(&credential.id(name)).1);
                if is_there { Presence::There } else { Presence::Absent }
            };
            let (lasting, stand_in) = (presence(Name::Lasting), presence(Name::StandIn));
            let step = next(Situation { in_use, lasting, stand_in, turn })
                .map_err(|_| TokenError::Unknown { id: token.id.clone() })?;
            // A change of the one in use, or the removal of the other: neither while a task of the other runs.
            let touched = match step {
                Step::Rest => return Ok(ended),
                Step::Make(_) => token.id.clone(),
                Step::Remove(name) => credential.id(name),
            };
            if let Some(upid) = self.task_of(&touched).await? {
                return Ok(Outcome::WaitsForTask { upid });
            }
            match step {
                Step::Rest => return Ok(ended),
                Step::Make(name) => {
                    let acl: Vec<_> =
                        seen.acl.iter().filter(|entry| entry.who == token.id).cloned().collect();
                    let grants =
                        acl.into_iter().map(|like| TokenWrite::Grant { id: credential.id(name), like });
                    self.make(credential, name, (in_use, &token), grants.collect()).await?;
                    if name == Name::Lasting {
                        (turn, ended) = (Turn::NotYet, Outcome::Renewed);
                    }
                }
                Step::Remove(_) => {
                    self.confirm(credential, &token.id).await?;
                    self.change(&TokenWrite::Remove { id: touched }).await?;
                    if ended == Outcome::NotDue {
                        ended = Outcome::TidiedUp;
                    }
                }
            }
        }
        Err(TokenError::Endless { id: credential.id(Name::Lasting) })
    }

    /// The client of this program goes on with the token in use: the one of before may be gone.
    fn use_now(&self, credential: &Credential, token: &ApiToken) -> Result<(), SetUpError> {
        if !credential.is_held_by_the_agent() {
            return Ok(());
        }
        let mut tokens = self.client.tokens();
        tokens.insert(credential.role, token.clone());
        self.client.take_tokens(&tokens)
    }

    /// Makes a token like the one in use, tries it, and has the agent use it.
    async fn make(
        &self,
        credential: &Credential,
        name: Name,
        (before, old): (Name, &ApiToken),
        grants: Vec<TokenWrite>,
    ) -> Result<(), TokenError> {
        let id = credential.id(name);
        let made_at = credential.made_at()?;
        let answer = self.change(&TokenWrite::Add { id: id.clone() }).await?;
        let made = self.put_into_use(credential, name, &answer, (old, &grants)).await;
        let error = match made {
            Ok(()) if !credential.is_held_by_the_agent() => return Ok(()),
            Ok(()) => match self.confirm(credential, &id).await {
                Ok(()) => return Ok(()),
                Err(TokenError::Unsaid { source: source @ StatusError::Refused(_), .. }) => {
                    credential.put_back(before, &old.secret, made_at)?;
                    TokenError::Refused { id: id.clone(), source }
                }
                // It may use it or not: both stay.
                Err(error) => return Err(error),
            },
            Err(error) => error,
        };
        // The first error says more than this one; what stays is removed by the next run.
        if let Err(left) = self.change(&TokenWrite::Remove { id: id.clone() }).await {
            eprintln!(
                "agentd: the token {id} stays until the next run: {}",
                holdfast_protocol::json::chain(&left)
            );
        }
        Err(error)
    }

    async fn put_into_use(
        &self,
        credential: &Credential,
        name: Name,
        answer: &serde_json::Value,
        (old, grants): (&ApiToken, &[TokenWrite]),
    ) -> Result<(), TokenError> {
        let id = credential.id(name);
        let secret = secret_in(answer, &id)?;
        for grant in grants {
            self.change(grant).await?;
        }
        let tried = |source| TokenError::Tried { id: id.clone(), source };
        let held = self.permissions(credential.role, old).await?.map_err(tried)?;
        let new = ApiToken { id: id.clone(), secret: Secret::new(secret.expose().to_owned()) };
        let offered = self.permissions(credential.role, &new).await?.map_err(tried)?;
        if held != offered {
            return Err(TokenError::Differs { id });
        }
        Ok(credential.write(name, &secret)?)
    }

    /// What a token may, as Proxmox answers the token itself.
    async fn permissions(
        &self,
        role: Role,
        token: &ApiToken,
    ) -> Result<Result<Permissions, PveError>, SetUpError> {
        let client = self.client.with_tokens(&BTreeMap::from([(role, token.clone())]))?;
        Ok(client.permissions(role, None).await)
    }

    /// Whether the agent uses this token. It holds no sealed one: this program tries that.
    async fn confirm(&self, credential: &Credential, id: &str) -> Result<(), TokenError> {
        if !credential.is_held_by_the_agent() {
            let (_, token) = credential.read()?;
            let untried = |source| TokenError::Untried { id: id.to_owned(), source };
            self.permissions(credential.role, &token).await?.map_err(untried)?;
            return Ok(());
        }
        let used = admin_socket::take_tokens(self.state)
            .map_err(|source| TokenError::Unsaid { id: id.to_owned(), source })?;
        match used.get(&credential.role) {
            Some(used) if used == id => Ok(()),
            used => Err(TokenError::UsesOther {
                id: id.to_owned(),
                used: used.cloned().unwrap_or_else(|| "none".to_owned()),
            }),
        }
    }

    /// A running task that this token began.
    async fn task_of(&self, id: &str) -> Result<Option<String>, TokenError> {
        let running = self.client.running_tasks().await.map_err(TokenError::Tasks)?;
        Ok(running.iter().find(|upid| upid.owner() == id).map(ToString::to_string))
    }

    async fn change(&self, write: &TokenWrite) -> Result<serde_json::Value, TokenError> {
        Ok(self.way.change(&write.words(), &write.call()).await?)
    }
}

/// A client with the tokens in use.
///
/// # Errors
/// When it cannot be made.
pub fn client(
    settings: &crate::settings::Settings,
    tokens: BTreeMap<Role, ApiToken>,
) -> Result<PveClient, SetUpError> {
    use crate::port::pve::{PveSettings, RealPace};
    let proxmox = &settings.proxmox;
    let settings = PveSettings {
        url: proxmox.url.clone(),
        node: proxmox.node.clone(),
        trust: net::tls::Trust::Pins(proxmox.pins.clone()),
        tokens,
    };
    PveClient::new(&settings, Arc::new(RealPace::default()))
}
