//! Parameters of a request, and their values.

use std::borrow::Cow;

use holdfast_protocol::id::Vmid;
use holdfast_protocol::secret::Secret;

/// A parameter's value.
#[derive(Clone, Debug)]
pub(super) enum Value {
    /// `1`. There is no `0` and no other spelling: a switch that is off is not sent.
    On,
    Text(String),
    Secret(Secret),
}

impl Value {
    /// As it is sent.
    pub(super) fn expose(&self) -> Cow<'_, str> {
        match self {
            Self::On => Cow::Borrowed("1"),
            Self::Text(text) => Cow::Borrowed(text),
            Self::Secret(secret) => Cow::Borrowed(secret.expose()),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Text(number.to_string())
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Text(number.to_string())
    }
}

impl From<Vmid> for Value {
    fn from(vmid: Vmid) -> Self {
        vmid.number().into()
    }
}

/// Parameters in the order they are written.
pub(super) type Params = Vec<(Cow<'static, str>, Value)>;

/// The verbs of HTTP that we use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Get,
    Post,
    Put,
    Delete,
}
