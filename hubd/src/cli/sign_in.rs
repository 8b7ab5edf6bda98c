//! The commands `hubd operator password` and `hubd operator sign-in-link`.
//!
//! They work for who may write the hub's folder or its database, and who may could make an admin with a token there as well.
//! So a link that opens a whole session gives nobody more than they have.

use anyhow::Context as _;
use holdfast_protocol::id::{CorrelationId, OperatorName};
use holdfast_protocol::secret::Secret;
use holdfast_protocol::sign_in::{LINK_TOKEN_PREFIX, Password, SessionKind};
use jiff::Timestamp;
use zeroize::Zeroizing;

use super::hidden_prompt;
use crate::domain::sign_in::password_hash::{PasswordHash, SALT_BYTES, WORK};
use crate::domain::sign_in::{LINK_LIFE, password};
use crate::settings::{Given, Settings};
use crate::store::{
    NewPassword, NewSignInLink, SharedStore, SignInChange, SignInError, StoreError, WriteError,
};

/// When, and as part of what.
type Moment = (Timestamp, CorrelationId);

pub(super) async fn password(
    store: &SharedStore,
    name: OperatorName,
    (at, correlation): Moment,
) -> anyhow::Result<()> {
    if store.credentials(name.clone()).await?.is_none() {
        return Err(explain(WriteError::Refused(SignInError::Unknown { name })));
    }
    let asked_for = name.clone();
    let typed = tokio::task::spawn_blocking(move || hidden_prompt::new_password(&asked_for));
    let typed: Password = typed.await.context("the prompt ended in a mistake")??;
    password::check(&typed, &name)?;
    let mut salt = [0; SALT_BYTES];
    getrandom::fill(&mut salt).context("the system gives no random bytes")?;
    let hashed = tokio::task::spawn_blocking(move || PasswordHash::make(&typed, salt, WORK));
    let hash = hashed.await.context("the hashing ended in a mistake")??.text();
    let by = SignInChange { operator: name.clone(), actor: None, at, correlation };
    let new = NewPassword { by, hash, checked: None, keep: None };
    store.set_password(new).await.map_err(explain)?;
    eprintln!("the password of {name} is set; their sessions ended");
    Ok(())
}

pub(super) async fn link(
    store: &SharedStore,
    name: OperatorName,
    kind: SessionKind,
    (at, correlation): Moment,
    given: &Given,
) -> anyhow::Result<Secret> {
    let url = Settings::reached_at(given)?;
    let mut random = Zeroizing::new([0_u8; 32]);
    getrandom::fill(random.as_mut_slice()).context("the system gives no random bytes")?;
    let text = Zeroizing::new(hex::encode(random.as_slice()));
    let token = Secret::new(format!("{LINK_TOKEN_PREFIX}{}", text.as_str()));
    let expires_at = at.checked_add(LINK_LIFE).context("the clock is beyond what can be written")?;
    let by = SignInChange { operator: name.clone(), actor: None, at, correlation };
    let new = NewSignInLink { operator: name, token: token.hash(), kind, expires_at };
    store.add_sign_in_link(by, new).await.map_err(explain)?;
    Ok(Secret::new(format!("{}/sign-in#{}", url.as_str(), token.expose())))
}

fn explain(error: WriteError<SignInError>) -> anyhow::Error {
    match error {
        WriteError::Refused(SignInError::Unknown { name }) => {
            anyhow::anyhow!("there is no operator {name}: `hubd operator list` shows who there is")
        }
        WriteError::Refused(refusal) => refusal.into(),
        WriteError::KeyReused => StoreError::Busy.into(),
        WriteError::Store(error) => error.into(),
    }
}
