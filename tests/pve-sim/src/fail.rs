//! Refusals in the shapes of the real API.
//!
//! A refusal is a status, a sentence that becomes both reason phrase and message, and perhaps an `errors` object. The constructors are
//! named after the real code's ways of dying.
use std::collections::BTreeMap;

/// Why a call did not do its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// HTTP status; 500 for nearly everything.
    pub status: u16,
    /// The sentence, without a final newline.
    pub message: String,
    /// Faults by parameter.
    pub errors: BTreeMap<String, String>,
}

/// What a call gives or why not.
pub type Fallible<T> = Result<T, Refusal>;

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}

impl Refusal {
    /// The plain 500.
    #[must_use]
    pub fn die(message: impl Into<String>) -> Self {
        Self { status: 500, message: message.into(), errors: BTreeMap::new() }
    }

    /// 403 with the checked thing in brackets.
    #[must_use]
    pub fn denied(what: &str) -> Self {
        Self { status: 403, message: format!("Permission check failed ({what})"), errors: BTreeMap::new() }
    }

    /// 403 without saying what.
    #[must_use]
    pub fn denied_bare() -> Self {
        Self { status: 403, message: "Permission check failed".to_owned(), errors: BTreeMap::new() }
    }

    /// 400 for one parameter.
    #[must_use]
    pub fn param(name: &str, text: impl Into<String>) -> Self {
        Self::params(BTreeMap::from([(name.to_owned(), text.into())]))
    }

    /// 400 for several.
    #[must_use]
    pub fn params(errors: BTreeMap<String, String>) -> Self {
        Self { status: 400, message: "Parameter verification failed.".to_owned(), errors }
    }

    /// The sentence as it reads when a task dies of it: exceptions of the API carry their status in front.
    #[must_use]
    pub fn in_task(&self) -> String {
        let faults: String =
            self.errors.iter().map(|(name, text)| format!("\n{name}: {}", text.trim_end())).collect();
        match self.status {
            500 => format!("{}{faults}", self.message),
            status => format!("{status} {}{faults}", self.message),
        }
    }
}

/// `die` with a format string.
#[macro_export]
macro_rules! die {
    ($($arg:tt)*) => { return Err($crate::fail::Refusal::die(format!($($arg)*))) };
}

/// An unexpected failure of this program's own files, reported as the real code reports a failed system call.
#[must_use]
pub fn host(what: &str, error: &dyn std::error::Error) -> Refusal {
    let mut text = format!("{what} failed: {error}");
    let mut source = error.source();
    while let Some(inner) = source {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        source = inner.source();
    }
    Refusal::die(text)
}
