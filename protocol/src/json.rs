//! Strict JSON: a typed value, or its first mistake.
//!
//! Every wire document is read here, so a refusal reads the same everywhere. Duplicate and unknown keys are refused by
//! the types (`deny_unknown_fields`); trailing bytes and a byte-order mark by the parser.

use serde::de::DeserializeOwned;

use crate::code::ErrorCode;

mod mistake;
#[cfg(test)]
mod path_tests;
mod scanner;

/// Why bytes are not the document they should be.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// Longer than the document may be.
    #[error("{what} is {len} bytes long; at most {max} are accepted")]
    TooLarge {
        /// Which document.
        what: &'static str,
        /// Its length in bytes.
        len: usize,
        /// The bound in bytes.
        max: usize,
    },
    /// Not JSON, or more than one document.
    #[error("{what} is not JSON")]
    Syntax {
        /// Which document.
        what: &'static str,
        /// Where and why.
        #[source]
        source: serde_json::Error,
    },
    /// A list. The parser would read its values as fields in their order, a second spelling of the same document.
    #[error("{what} is a list; write it as an object with named fields")]
    List {
        /// Which document.
        what: &'static str,
    },
    /// JSON, but not of the document's form.
    #[error("{what} is refused at {path}")]
    Form {
        /// Which document.
        what: &'static str,
        /// The JSON path of the mistake, `.` for the whole.
        path: String,
        /// What is wrong there.
        #[source]
        source: serde_json::Error,
    },
}

impl JsonError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::TooLarge { .. } => ErrorCode::Size,
            Self::Syntax { .. } => ErrorCode::Syntax,
            Self::List { .. } => ErrorCode::Range,
            Self::Form { source, .. } => form_code(&source.to_string()),
        }
    }

    /// The JSON path, where there is one.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Form { path, .. } => Some(path),
            _ => None,
        }
    }
}

/// serde offers no kind for these, so the fixed first words of its message decide; a test checks them.
fn form_code(message: &str) -> ErrorCode {
    if message.starts_with("unknown field") {
        ErrorCode::UnknownField
    } else if message.starts_with("duplicate field") {
        ErrorCode::DuplicateKey
    } else if message.starts_with("missing field") {
        ErrorCode::Missing
    } else if message.starts_with(crate::desired::NOT_SETTABLE) {
        ErrorCode::Unsupported
    } else if message.starts_with("unknown variant") {
        ErrorCode::Version
    } else {
        ErrorCode::Range
    }
}

/// Reads one JSON document of at most `max` bytes. The path of a mistake is looked for only when there is one.
///
/// # Errors
/// [`JsonError`], with the path of the first mistake.
pub fn parse<T: DeserializeOwned>(what: &'static str, bytes: &[u8], max: usize) -> Result<T, JsonError> {
    check_form(what, bytes, max)?;
    serde_json::from_slice(bytes).map_err(|source| {
        let read = |beginning: &[u8]| serde_json::from_slice::<T>(beginning);
        refusal(what, bytes, source, &|beginning| read(beginning).is_err_and(|error| error.is_data()))
    })
}

fn check_form(what: &'static str, bytes: &[u8], max: usize) -> Result<(), JsonError> {
    if bytes.len() > max {
        return Err(JsonError::TooLarge { what, len: bytes.len(), max });
    }
    if bytes.trim_ascii_start().first() == Some(&b'[') {
        return Err(JsonError::List { what });
    }
    Ok(())
}

/// Not generic, so that it is compiled once for all types.
fn refusal(
    what: &'static str,
    bytes: &[u8],
    source: serde_json::Error,
    is_refused: &dyn Fn(&[u8]) -> bool,
) -> JsonError {
    if source.is_data() {
        let path = mistake::path(bytes, (source.line(), source.column()), is_refused);
        JsonError::Form { what, path, source }
    } else {
        JsonError::Syntax { what, source }
    }
}

/// An error with all its sources in one line, for logs and messages: `outer: inner: innermost`.
#[must_use]
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text.push_str(": ");
        text.push_str(&source.to_string());
        next = source.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        #[expect(dead_code, reason = "only its reading matters")]
        size: crate::size::Cores,
    }

    #[test]
    fn each_mistake_has_its_code_and_place() {
        let cases: [(&[u8], ErrorCode); 11] = [
            (b" [1]", ErrorCode::Range),
            (b"", ErrorCode::Syntax),
            (b"{\"size\":1} {}", ErrorCode::Syntax),
            (b"\xef\xbb\xbf{\"size\":1}", ErrorCode::Syntax),
            (b"{\"size\":1,\"size\":2}", ErrorCode::DuplicateKey),
            (b"{\"size\":1,\"s\\u0069ze\":2}", ErrorCode::DuplicateKey),
            (b"{\"size\":1,\"force\":true}", ErrorCode::UnknownField),
            (b"{}", ErrorCode::Missing),
            (b"{\"size\":0}", ErrorCode::Range),
            (b"{\"size\":\"1\"}", ErrorCode::Range),
            (b"{\"size\":100000000000000000000000000}", ErrorCode::Range),
        ];
        for (bytes, code) in cases {
            let error = parse::<Sample>("sample", bytes, 100).unwrap_err();
            assert_eq!(error.code(), code, "{:?}: {}", String::from_utf8_lossy(bytes), chain(&error));
        }
        assert!(parse::<Sample>("sample", b"{\"size\":4}", 100).is_ok());
        assert_eq!(parse::<Sample>("sample", &[b' '; 101], 100).unwrap_err().code(), ErrorCode::Size);
    }
}
