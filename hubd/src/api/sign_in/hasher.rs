//! Hashing of passwords: off the runtime's threads, a few at once.
//!
//! Each takes 19 MiB and some tens of milliseconds, so their number bounds memory and CPU. An unknown name costs as much as
//! a known one.

use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::sign_in::Password;
use tokio::sync::Semaphore;

use crate::api::problem::ApiError;
use crate::domain::sign_in::password_hash::{PasswordHash, PasswordHashError, SALT_BYTES, WORK};

/// At once: 76 MiB.
const AT_ONCE: usize = 4;

const TURN_WAIT: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub(super) struct Hasher {
    turns: Arc<Semaphore>,
}

impl Default for Hasher {
    fn default() -> Self {
        Self { turns: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

/// Whether a password is the stored one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Match {
    /// It is. Its hash is to be made anew where its work is not today's.
    Right {
        outdated: bool,
    },
    Wrong,
}

impl Hasher {
    /// Checks a password. Without a stored one the same work is done for nothing.
    pub(super) async fn check(&self, stored: Option<&str>, password: Password) -> Result<Match, ApiError> {
        let stored = stored.map(PasswordHash::parse).transpose().map_err(failed)?;
        self.work(move || {
            let Some(stored) = stored else {
                PasswordHash::make(&password, [0; SALT_BYTES], WORK)?;
                return Ok(Match::Wrong);
            };
            Ok(match stored.is_of(&password)? {
                true => Match::Right { outdated: stored.is_outdated() },
                false => Match::Wrong,
            })
        })
        .await
    }

    /// The text to be stored of a password.
    pub(super) async fn hash(&self, password: Password) -> Result<String, ApiError> {
        let mut salt = [0; SALT_BYTES];
        fill(&mut salt)?;
        self.work(move || PasswordHash::make(&password, salt, WORK).map(|made| made.text())).await
    }

    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, PasswordHashError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let turn = tokio::time::timeout(TURN_WAIT, Arc::clone(&self.turns).acquire_owned()).await;
        let Ok(Ok(turn)) = turn else {
            return Err(ApiError::new(
                ErrorCode::Busy,
                "too many sign-ins at once: try again a little later",
            ));
        };
        let done = tokio::task::spawn_blocking(move || {
            // Held to the end of the work, also when nobody waits for its answer any more.
            let _turn = turn;
            work()
        });
        let done =
            done.await.map_err(|_| ApiError::internal("the hashing of a password ended in a mistake"))?;
        done.map_err(failed)
    }
}

fn failed(error: PasswordHashError) -> ApiError {
    ApiError::internal(error.to_string())
}

/// Random bytes of the system.
pub(super) fn fill(bytes: &mut [u8]) -> Result<(), ApiError> {
    getrandom::fill(bytes)
        .map_err(|error| ApiError::internal(format!("the system gives no random bytes: {error}")))
}
