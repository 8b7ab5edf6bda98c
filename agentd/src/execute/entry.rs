//! Changes of Proxmox storage entries that need sealed credentials.
//!
//! Opens what is sealed, makes the call, wipes both.
//!
//! In: a warrant, and what the plan decided. Out: the result. The token and the credentials are opened only here, live
//! as long as this call, and are wiped with it. Deliberately absent: deciding, checking whether it was done, trying
//! again.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::TargetName;
use holdfast_protocol::json::chain;
use holdfast_seal::token::Token;
use holdfast_seal::{Creds, HostKey, OpenError, SealContext};

use crate::gate::entry::EntryWarrant;
use crate::plan::storage_entry_actions::EntryChange;
use crate::port::pve::storage_admin::{EntryError, Storekeeper, Use};
use crate::port::pve::transport::Transport;
use crate::port::sealed_token::{self, SealedTokenError};

/// A backup server that refuses a secret takes three seconds; Proxmox gives up after thirty.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// What is needed to change entries. The only secret in it is the host's own key.
#[derive(Clone)]
pub struct Keeper {
    /// Opens what is sealed.
    pub key: Arc<HostKey>,
    /// Where the sealed token is stored.
    pub token: PathBuf,
    /// How Proxmox is reached.
    pub transport: Arc<dyn Transport>,
    /// The targets that root named for this.
    pub targets: BTreeSet<TargetName>,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryOutcome {
    /// Proxmox said yes.
    Done,
    /// There is an entry that we may not see.
    Hidden,
    /// No: a stable code and a sentence.
    Refused(ErrorCode, String),
    /// It may have been done or not; checking the state will show.
    Unsure(String),
}

/// Why nothing was sent.
#[derive(Debug, thiserror::Error)]
enum Unopened {
    #[error(transparent)]
    Token(#[from] SealedTokenError),
    #[error("the sealed `storage` token cannot be opened: run `agentd setup` again")]
    TokenSeal(#[source] OpenError),
    #[error(transparent)]
    Creds(OpenError),
}

pub async fn perform(keeper: Keeper, warrant: EntryWarrant, action: EntryChange) -> EntryOutcome {
    match tokio::time::timeout(WAIT_MAX, attempt(&keeper, &warrant, action)).await {
        Ok(outcome) => outcome,
        Err(_) => EntryOutcome::Unsure(format!("Proxmox did not answer within {} s", WAIT_MAX.as_secs())),
    }
}

async fn attempt(keeper: &Keeper, warrant: &EntryWarrant, action: EntryChange) -> EntryOutcome {
    let (token, creds) = match opened(keeper, warrant) {
        Ok(opened) => opened,
        Err(Unopened::Creds(error)) => return EntryOutcome::Refused(error.code(), chain(&error)),
        Err(error) => return EntryOutcome::Refused(ErrorCode::Unavailable, chain(&error)),
    };
    let storekeeper = Storekeeper::new(keeper.transport.as_ref(), &token, warrant);
    let done = match action {
        EntryChange::Make => storekeeper.make(creds.as_ref()).await,
        EntryChange::Enable => storekeeper.switch(Use::On).await,
        EntryChange::Disable => storekeeper.switch(Use::Off).await,
    };
    match done {
        Ok(()) => EntryOutcome::Done,
        Err(EntryError::There) => EntryOutcome::Hidden,
        Err(error @ EntryError::Unsure(_)) => EntryOutcome::Unsure(error.says()),
        Err(EntryError::Creds(error)) => EntryOutcome::Refused(error.code(), chain(&error)),
        Err(error @ EntryError::Refused(_)) => EntryOutcome::Refused(ErrorCode::StorageWrong, error.says()),
    }
}

/// The credentials first: those that are refused open no token.
fn opened(keeper: &Keeper, warrant: &EntryWarrant) -> Result<(Token, Option<Creds>), Unopened> {
    let approval = warrant.approval();
    let meant = SealContext { target: &approval.name, backend: &approval.backend };
    let creds = warrant.creds().map(|sealed| Creds::open(sealed, &keeper.key, meant)).transpose();
    let creds = creds.map_err(Unopened::Creds)?;
    let sealed = sealed_token::read(&keeper.token)?;
    Ok((Token::open(&sealed, &keeper.key).map_err(Unopened::TokenSeal)?, creds))
}
