//! Sending one call, once.
//!
//! Input: a closed [`Call`]. Output: the answer's JSON, or one [`PveError`]. How it is carried is the [`Transport`]'s.
//! Deliberately absent: repeating (`retry`), meaning (`read`).

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_protocol::id::NodeName;
use holdfast_protocol::secret::Secret;
use net::tls::{TlsError, Trust};
use serde_json::Value as Json;

use super::Role;
use super::call::Call;
use super::classify::{Refusal, classify};
use super::error::PveError;
use super::params::Verb;
use super::tokens::{ApiToken, BadToken, TokenSet};
use super::transport::{Place, Request, Response, Transport};

/// The settings needed to talk to one node.
#[derive(Clone, Debug)]
pub struct PveSettings {
    /// `https://127.0.0.1:8006`.
    pub url: String,
    /// The node's name in paths.
    pub node: NodeName,
    /// Whom to believe.
    pub trust: Trust,
    /// The narrow tokens there are.
    pub tokens: BTreeMap<Role, ApiToken>,
}

/// A client that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum SetUpError {
    /// The URL is no URL.
    #[error("{url:?} is not the address of a Proxmox API, such as https://127.0.0.1:8006")]
    Url { url: String },
    /// A token's name or secret is not of their form.
    #[error(transparent)]
    Token(#[from] BadToken),
    /// TLS cannot be set up.
    #[error("TLS towards Proxmox cannot be set up")]
    Tls(#[source] TlsError),
    /// The HTTP client cannot be set up.
    #[error("the HTTP client cannot be set up")]
    Http(#[source] reqwest::Error),
}

/// An answer with a good status.
#[derive(Debug)]
pub(super) struct Answer {
    pub data: Json,
    pub total: Option<Json>,
}

pub(super) struct Sender {
    transport: Arc<dyn Transport>,
    tokens: TokenSet,
}

impl Sender {
    pub(super) fn new(
        transport: Arc<dyn Transport>,
        tokens: &BTreeMap<Role, ApiToken>,
    ) -> Result<Self, SetUpError> {
        Ok(Self { transport, tokens: TokenSet::new(tokens)? })
    }

    pub(super) const fn tokens(&self) -> &TokenSet {
        &self.tokens
    }

    pub(super) fn transport(&self) -> Arc<dyn Transport> {
        Arc::clone(&self.transport)
    }

    /// Sends the call once, with this token.
    pub(super) async fn send(&self, call: &Call, role: Role) -> Result<Answer, PveError> {
        let authorization = self.tokens.authorization(role).ok_or(PveError::NoToken { role })?;
        let (method, place) = match call.endpoint().verb() {
            Verb::Get if call.storage().is_some() => ("GET", Place::StorageRead),
            Verb::Get => ("GET", Place::Read),
            Verb::Post => ("POST", Place::Write),
            Verb::Put => ("PUT", Place::Write),
            Verb::Delete => ("DELETE", Place::Write),
        };
        let params = call.params().iter();
        let request = Request {
            call: call.endpoint().text(),
            method,
            path: format!("/api2/json{}", call.path()),
            params: params
                .map(|(key, value)| (key.clone().into_owned(), Secret::new(value.expose().into_owned())))
                .collect(),
            authorization,
            place,
            body_max: call.endpoint().body_max(),
        };
        read_answer(call, role, &self.transport.carry(request).await?)
    }
}

fn read_answer(call: &Call, role: Role, response: &Response) -> Result<Answer, PveError> {
    let name = call.endpoint().text();
    if !(200..300).contains(&response.status) {
        let refusal = Refusal {
            call: name,
            role,
            vmid: call.vmid(),
            storage: call.storage(),
            status: response.status,
            reason: &response.reason,
            body: &response.body,
        };
        return Err(classify(&refusal));
    }
    let garbled = |what: String| PveError::Garbled { call: name, what };
    let mut frame: Json =
        serde_json::from_slice(&response.body).map_err(|error| garbled(error.to_string()))?;
    let object = frame.as_object_mut().ok_or_else(|| garbled("an object is expected".to_owned()))?;
    let data = object.remove("data").ok_or_else(|| garbled("data: missing".to_owned()))?;
    Ok(Answer { data, total: object.remove("total") })
}
