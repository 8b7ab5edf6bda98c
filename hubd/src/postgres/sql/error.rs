//! Errors of statements and of columns.

use ::postgres::error::SqlState;

/// The error of another type, or a sentence.
type Source = Box<dyn std::error::Error + Send + Sync>;

/// Why a statement has no answer.
#[derive(Debug, thiserror::Error)]
pub(in crate::postgres) enum Error {
    #[error("PostgreSQL did not carry out a statement")]
    Server(#[from] ::postgres::Error),
    #[error("a column holds something that this hub cannot read")]
    Unreadable(#[source] Source),
    #[error("a value cannot be written into a column")]
    Unwritable(#[source] Source),
    #[error("a row that must be there is missing")]
    NoRow,
    #[error("the database has no session for this hub")]
    Unconnected(#[source] Source),
}

pub(in crate::postgres) type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(in crate::postgres) fn unreadable(source: impl Into<Source>) -> Self {
        Self::Unreadable(source.into())
    }

    pub(in crate::postgres) fn unwritable(source: impl Into<Source>) -> Self {
        Self::Unwritable(source.into())
    }

    pub(in crate::postgres) fn unconnected(source: impl Into<Source>) -> Self {
        Self::Unconnected(source.into())
    }

    /// Whether another transaction held a row for too long, or waited for this one.
    pub(in crate::postgres) fn is_of_locks(&self) -> bool {
        let Self::Server(error) = self else { return false };
        error.code().is_some_and(|code| {
            *code == SqlState::LOCK_NOT_AVAILABLE || *code == SqlState::T_R_DEADLOCK_DETECTED
        })
    }

    /// The error with its causes, for the log.
    pub(in crate::postgres) fn sentence(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        text
    }
}

/// A missing row as an absent value.
pub(in crate::postgres) trait OptionalExtension<T> {
    fn optional(self) -> Result<Option<T>>;
}

impl<T> OptionalExtension<T> for Result<T> {
    fn optional(self) -> Result<Option<T>> {
        match self {
            Ok(value) => Ok(Some(value)),
            Err(Error::NoRow) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
