//! The client that changes storage entries, and nothing else.
//!
//! Input: a token that was opened for this, the warrant of a signed job, and credentials. Output: done, or why not. In
//! Proxmox a token that may make one entry may make and delete all of them. So this module limits the token: no delete,
//! no change of a field, no path but these two, and every field comes from the signed job. The token is held as long as
//! this value lives. Deliberately absent: retries; the caller first checks which entries exist.

use std::sync::Arc;

use holdfast_protocol::json::chain;
use holdfast_protocol::secret::Secret;
use holdfast_seal::token::Token;
use holdfast_seal::{Creds, OpenError};
use net::tls::Trust;
use zeroize::Zeroizing;

use super::error::PveError;
use super::https::Https;
use super::sender::SetUpError;
use super::transport::{Place, Request, Transport};
use agent_core::gate::entry::EntryWarrant;
use agent_core::plan::entry::fields;

/// An answer holds the entry's name and, once, its backup key.
const BODY_MAX: usize = 64 << 10;

/// A sentence of Proxmox is shorter.
const SAYS_MAX: usize = 400;

/// Why it was not done.
#[derive(Debug, thiserror::Error)]
pub enum EntryError {
    /// There is one of that name.
    #[error("Proxmox has an entry of that name already, which the observe token may not see")]
    There,
    /// Proxmox refused.
    #[error("Proxmox refuses it: {0}")]
    Refused(String),
    /// It may have been done or not.
    #[error("Proxmox did not answer")]
    Unsure(#[source] PveError),
    /// The credentials do not match the signed job.
    #[error(transparent)]
    Creds(#[from] OpenError),
}

/// Whether Proxmox uses an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    On,
    /// It does not; nothing on it is touched.
    Off,
}

/// The transport for such calls: its own connection, without a token.
///
/// # Errors
/// When address or trust cannot be used.
pub fn transport(url: &str, trust: &Trust) -> Result<Arc<dyn Transport>, SetUpError> {
    Ok(Arc::new(Https::new(url, trust)?))
}

/// The client, for one warrant.
pub struct Storekeeper<'a> {
    transport: &'a dyn Transport,
    authorization: Secret,
    warrant: &'a EntryWarrant,
}

impl<'a> Storekeeper<'a> {
    /// Makes it from a token that was opened. Nothing is sent yet.
    #[must_use]
    pub fn new(transport: &'a dyn Transport, token: &Token, warrant: &'a EntryWarrant) -> Self {
        let authorization = Secret::new(format!("PVEAPIToken={}={}", token.id(), token.secret().expose()));
        Self { transport, authorization, warrant }
    }

    /// `POST /storage`: makes the entry that was signed for.
    ///
    /// # Errors
    /// [`EntryError`].
    pub async fn make(&self, creds: Option<&Creds>) -> Result<(), EntryError> {
        let approval = self.warrant.approval();
        let (kind, fields) = fields(approval);
        let mut params = vec![text("storage", approval.name.as_str()), text("type", kind)];
        for (name, value) in fields {
            let value = match (name, creds.and_then(Creds::key)) {
                // The signed value is its fingerprint; Proxmox takes the key itself, and keeps the fingerprint
                // readable.
                ("encryption-key", Some(key)) => key.to_json()?,
                _ => Secret::new(value),
            };
            params.push((name.to_owned(), value));
        }
        if let Some(creds) = creds {
            params.push(text("username", creds.user()));
            params.push(("password".to_owned(), creds.password().clone()));
        }
        self.send("POST /storage", "POST", "/api2/json/storage".to_owned(), params).await
    }

    /// `PUT /storage/{storage}`: switches the entry on or off.
    ///
    /// # Errors
    /// [`EntryError`].
    pub async fn switch(&self, to: Use) -> Result<(), EntryError> {
        let param = match to {
            Use::On => text("delete", "disable"),
            Use::Off => text("disable", "1"),
        };
        // A target's name needs no escape in a path.
        let path = format!("/api2/json/storage/{}", self.warrant.approval().name);
        self.send("PUT /storage/{storage}", "PUT", path, vec![param]).await
    }

    async fn send(
        &self,
        call: &'static str,
        method: &'static str,
        path: String,
        params: Vec<(String, Secret)>,
    ) -> Result<(), EntryError> {
        let request = Request {
            call,
            method,
            path,
            params,
            authorization: self.authorization.clone(),
            place: Place::Write,
            body_max: BODY_MAX,
        };
        let response = self.transport.carry(request).await.map_err(EntryError::Unsure)?;
        // It shows the backup key, this once.
        let _wiped = Zeroizing::new(response.body);
        match response.status {
            200..300 => Ok(()),
            // The proxy's own errors: the call may still be carried out.
            status @ 595..=599 => {
                Err(EntryError::Unsure(PveError::Garbled { call, what: format!("status {status}") }))
            }
            _ if response.reason.contains("already defined") => Err(EntryError::There),
            status => Err(EntryError::Refused(said(status, &response.reason))),
        }
    }
}

fn text(name: &str, value: &str) -> (String, Secret) {
    (name.to_owned(), Secret::new(value.to_owned()))
}

fn said(status: u16, reason: &str) -> String {
    let plain: String = reason.chars().filter(|c| !c.is_control()).take(SAYS_MAX).collect();
    match status {
        403 => format!("{plain}; run `agentd setup` again with --target"),
        _ if plain.is_empty() => format!("status {status}"),
        _ => plain,
    }
}

impl EntryError {
    /// The complete sentence.
    #[must_use]
    pub fn says(&self) -> String {
        chain(self)
    }
}
