//! The file of one token, read and written as root.
//!
//! Input: the settings. Output: the token that is in use, and files that name another. Everything goes through held
//! folders, since the agent's user owns the folder and could put links there. Deliberately absent: Proxmox.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use holdfast_protocol::secret::Secret;
use holdfast_seal::token::Token;
use holdfast_seal::{HostKey, OpenError};

use super::step::Name;
use crate::port::atomic_file::{self, FileError, Given, Readers};
use crate::port::held_folder::{self, HeldError, HeldFolder};
use crate::port::host_key::{self, HostKeyError};
use crate::port::pve::tokens::{RENEWAL_SUFFIX, lasting_id};
use crate::port::pve::{ApiToken, Role};
use crate::port::sealed_token::{self, SealedTokenError};
use crate::settings::{SecretFileError, Settings, secret_file};

/// Why a credential cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    #[error(transparent)]
    Held(#[from] HeldError),
    #[error(transparent)]
    Secret(#[from] SecretFileError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Sealed(#[from] SealedTokenError),
    #[error(transparent)]
    HostKey(#[from] HostKeyError),
    #[error("this host's key is missing, to which the `storage` token is sealed: run `agentd setup`")]
    NoKey,
    #[error("the sealed `storage` token cannot be opened with this host's key: run `agentd setup`")]
    Open(#[source] OpenError),
    /// Of another user, or of a name that no renewal gives.
    #[error("{} holds the token {id}, which is not the one of the settings: run `agentd setup`", path.display())]
    Other { path: PathBuf, id: String },
}

/// How a token's secret is stored.
enum Form {
    Plain,
    /// Sealed to the host's key; opened by the agent for one signed job at a time.
    Sealed(Box<HostKey>),
}

/// The credential of one role.
pub struct Credential {
    pub role: Role,
    lasting: String,
    path: PathBuf,
    form: Form,
    given: Given,
}

impl Credential {
    /// All that the settings name.
    ///
    /// # Errors
    /// [`CredentialError`].
    pub fn all(settings: &Settings) -> Result<Vec<Self>, CredentialError> {
        let state = &settings.state.dir;
        let given = owner(state)?;
        let plain = settings.plain_tokens().into_iter().map(|(role, token)| Self {
            role,
            lasting: token.id.clone(),
            path: token.secret_file.clone(),
            form: Form::Plain,
            given,
        });
        let mut all: Vec<Self> = plain.collect();
        if let Some(entries) = &settings.storage_entries {
            let key = host_key::read(state)?.ok_or(CredentialError::NoKey)?;
            let user = super::user_of(settings);
            all.push(Self {
                role: Role::Storage,
                lasting: format!("{user}!{}", Role::Storage),
                path: entries.sealed_token.clone(),
                form: Form::Sealed(Box::new(key)),
                given,
            });
        }
        Ok(all)
    }

    /// The id of one of the two.
    #[must_use]
    pub fn id(&self, name: Name) -> String {
        match name {
            Name::Lasting => self.lasting.clone(),
            Name::StandIn => format!("{}{RENEWAL_SUFFIX}", self.lasting),
        }
    }

    /// The token in use, and which of the two it is.
    ///
    /// # Errors
    /// [`CredentialError`].
    pub fn read(&self) -> Result<(Name, ApiToken), CredentialError> {
        let token = match &self.form {
            Form::Plain => {
                let line = secret_file::read_from(held_folder::open_file(&self.path)?, &self.path)?;
                secret_file::token(&self.lasting, &line, &self.path)?
            }
            Form::Sealed(key) => {
                let token =
                    Token::open(&sealed_token::read(&self.path)?, key).map_err(CredentialError::Open)?;
                ApiToken { id: token.id().to_owned(), secret: token.secret().clone() }
            }
        };
        if lasting_id(&token.id) != self.lasting {
            return Err(CredentialError::Other { path: self.path.clone(), id: token.id });
        }
        let name = if token.id == self.lasting { Name::Lasting } else { Name::StandIn };
        Ok((name, token))
    }

    /// Puts another token into use, whole or not at all.
    ///
    /// # Errors
    /// [`CredentialError`]; the file is as it was.
    pub fn write(&self, name: Name, secret: &Secret) -> Result<(), CredentialError> {
        match &self.form {
            Form::Plain => {
                let line = match name {
                    Name::Lasting => secret.clone(),
                    Name::StandIn => Secret::new(format!("{}={}", self.id(name), secret.expose())),
                };
                atomic_file::write_for(&self.path, line.expose().as_bytes(), Readers::Owner, self.given)?;
            }
            Form::Sealed(key) => {
                let token = Token::new(self.id(name), secret.clone()).map_err(CredentialError::Open)?;
                sealed_token::write(&self.path, &token, key, self.given)?;
            }
        }
        Ok(())
    }

    /// When the token in use was made.
    ///
    /// # Errors
    /// [`CredentialError`].
    pub fn made_at(&self) -> Result<SystemTime, CredentialError> {
        let about = held_folder::open_file(&self.path)?.metadata();
        about.and_then(|about| about.modified()).map_err(|source| self.unread(source))
    }

    /// Puts the token of before into use again, with its age.
    ///
    /// # Errors
    /// [`CredentialError`].
    pub fn put_back(&self, name: Name, secret: &Secret, made_at: SystemTime) -> Result<(), CredentialError> {
        self.write(name, secret)?;
        let file = held_folder::open_file(&self.path)?;
        file.set_modified(made_at).map_err(|source| self.unread(source))
    }

    fn unread(&self, source: std::io::Error) -> CredentialError {
        SecretFileError::Read { path: self.path.clone(), source }.into()
    }

    /// Whether the running agent holds it in memory.
    #[must_use]
    pub const fn is_held_by_the_agent(&self) -> bool {
        matches!(self.form, Form::Plain)
    }
}

/// Who gets what root writes: the owner of the state folder.
fn owner(state: &Path) -> Result<Given, HeldError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(Given::Kept);
    }
    let (uid, gid) = HeldFolder::open(state)?.owner();
    Ok(Given::To { uid, gid })
}
