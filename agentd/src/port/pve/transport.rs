//! Sending one request, once.
//!
//! What comes in: a closed [`Call`]. What goes out: the answer's JSON, or one [`PveError`]. HTTP/1.1 over TLS 1.3, no
//! redirects, no proxy from the environment, bounded bodies and times. Reads share connections that are dropped before
//! Proxmox drops them (5 s idle); writes each take a fresh one, so that a connection which dies in the pool can never
//! leave us in doubt whether a write was sent. Deliberately absent: repeating (`retry`), meaning (`read`).

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

use bytes::BytesMut;
use holdfast_protocol::id::NodeName;
use holdfast_protocol::secret::Secret;
use holdfast_tls::{Refusal as ServerRefusal, TlsError, Trust, refusal};
use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::{Client, Method, Response, Url};
use serde_json::Value as Json;
use tokio::sync::Semaphore;

use super::Role;
use super::call::{Call, Verb};
use super::classify::{Refusal, classify};
use super::error::{Cause, PveError, Sent};

/// One API token: who, and the secret.
#[derive(Clone, Debug)]
pub struct ApiToken {
    /// `user@realm!name`.
    pub id: String,
    /// The UUID that Proxmox showed once.
    pub secret: Secret,
}

/// What is needed to speak to one node.
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
    Url {
        /// As given.
        url: String,
    },
    /// A token's name or secret is not of their form.
    #[error(
        "the `{role}` token is not of the form user@realm!name with a UUID as secret: run `agentd setup`"
    )]
    Token {
        /// Whose.
        role: Role,
    },
    /// TLS cannot be set up.
    #[error("TLS towards Proxmox cannot be set up")]
    Tls(#[source] TlsError),
    /// The HTTP client cannot be set up.
    #[error("the HTTP client cannot be set up")]
    Http(#[source] reqwest::Error),
}

const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Proxmox's own proxy gives up after 30 s and says so; a write may wait 10 s for a lock before that.
const READ_MAX: Duration = Duration::from_secs(35);
const WRITE_MAX: Duration = Duration::from_secs(45);
/// A storage that is away must not hold up what has nothing to do with it.
const STORAGE_READ_MAX: Duration = Duration::from_secs(15);
/// pveproxy drops idle connections after 5 s.
const IDLE_MAX: Duration = Duration::from_secs(4);
/// pvedaemon has three workers and a blocked write holds one: leave one for people.
const WRITES_AT_ONCE: usize = 2;
const READS_AT_ONCE: usize = 8;
/// Reads of single storages have places of their own, so that a dead one cannot take those of the rest.
const STORAGE_READS_AT_ONCE: usize = 4;

/// An answer with a good status.
#[derive(Debug)]
pub(super) struct Answer {
    pub data: Json,
    pub total: Option<Json>,
}

#[derive(Debug)]
pub(super) struct Transport {
    base: Url,
    reads: Client,
    writes: Client,
    read_slots: Semaphore,
    storage_slots: Semaphore,
    write_slots: Semaphore,
    headers: BTreeMap<Role, HeaderValue>,
}

impl Transport {
    pub(super) fn new(settings: &PveSettings) -> Result<Self, SetUpError> {
        let config = holdfast_tls::client(&settings.trust).map_err(SetUpError::Tls)?;
        let client = |idle: usize, total: Duration| {
            Client::builder()
                .tls_backend_preconfigured(config.clone())
                .http1_only()
                .redirect(reqwest::redirect::Policy::none())
                .no_proxy()
                .https_only(true)
                .connect_timeout(CONNECT_MAX)
                .timeout(total)
                .pool_idle_timeout(IDLE_MAX)
                .pool_max_idle_per_host(idle)
                .build()
                .map_err(SetUpError::Http)
        };
        Ok(Self {
            base: base_url(&settings.url)?,
            reads: client(READS_AT_ONCE, READ_MAX)?,
            writes: client(0, WRITE_MAX)?,
            read_slots: Semaphore::new(READS_AT_ONCE),
            storage_slots: Semaphore::new(STORAGE_READS_AT_ONCE),
            write_slots: Semaphore::new(WRITES_AT_ONCE),
            headers: settings
                .tokens
                .iter()
                .map(|(role, token)| Ok((*role, header(*role, token)?)))
                .collect::<Result<_, _>>()?,
        })
    }

    /// Sends the call once.
    pub(super) async fn send(&self, call: &Call) -> Result<Answer, PveError> {
        let name = call.endpoint().text();
        let header = self.headers.get(&call.role()).ok_or(PveError::NoToken { role: call.role() })?;
        let (client, slots, limit) = match call.endpoint().verb() {
            Verb::Get if call.storage().is_some() => (&self.reads, &self.storage_slots, STORAGE_READ_MAX),
            Verb::Get => (&self.reads, &self.read_slots, READ_MAX),
            Verb::Post | Verb::Put | Verb::Delete => (&self.writes, &self.write_slots, WRITE_MAX),
        };
        // The semaphores live as long as we do and are never closed.
        let _slot = slots.acquire().await.map_err(|closed| PveError::Unreachable {
            call: name,
            sent: Sent::No,
            source: Cause::new(closed),
        })?;
        let params: Vec<(&str, String)> =
            call.params().iter().map(|(key, value)| (key.as_ref(), value.expose().into_owned())).collect();
        let mut url = self.base.clone();
        url.set_path(&format!("/api2/json{}", call.path()));
        let request = match call.endpoint().verb() {
            Verb::Get => client.request(Method::GET, url).query(&params),
            Verb::Delete => client.request(Method::DELETE, url).query(&params),
            Verb::Post => client.request(Method::POST, url).form(&params),
            Verb::Put => client.request(Method::PUT, url).form(&params),
        };
        let sent = request.header(AUTHORIZATION, header.clone()).timeout(limit).send().await;
        let response = sent.map_err(|error| transport_error(name, limit, error))?;
        read_answer(call, limit, response).await
    }
}

fn base_url(text: &str) -> Result<Url, SetUpError> {
    let parsed = Url::parse(text).ok().filter(|url| {
        let bare = matches!(url.path(), "/" | "" | "/api2/json" | "/api2/json/");
        url.scheme() == "https"
            && url.has_host()
            && bare
            && url.username().is_empty()
            && url.query().is_none()
    });
    parsed.ok_or_else(|| SetUpError::Url { url: text.to_owned() })
}

fn header(role: Role, token: &ApiToken) -> Result<HeaderValue, SetUpError> {
    let plain = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic() && b != b'=');
    let named = token.id.split_once('@').is_some_and(|(_, rest)| rest.contains('!'));
    if !named || !plain(&token.id) || !plain(token.secret.expose()) {
        return Err(SetUpError::Token { role });
    }
    let text = Secret::new(format!("PVEAPIToken={}={}", token.id, token.secret.expose()));
    let mut value = HeaderValue::from_str(text.expose()).map_err(|_| SetUpError::Token { role })?;
    value.set_sensitive(true);
    Ok(value)
}

async fn read_answer(call: &Call, limit: Duration, mut response: Response) -> Result<Answer, PveError> {
    let name = call.endpoint().text();
    let body_max = call.endpoint().body_max();
    let status = response.status();
    let reason = match response.extensions().get::<hyper::ext::ReasonPhrase>() {
        Some(phrase) => String::from_utf8_lossy(phrase.as_bytes()).into_owned(),
        None => status.canonical_reason().unwrap_or_default().to_owned(),
    };
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| transport_error(name, limit, error))? {
        if body.len() + chunk.len() > body_max {
            return Err(PveError::TooLarge { call: name, limit: body_max });
        }
        body.extend_from_slice(&chunk);
    }
    if !status.is_success() {
        let refusal = Refusal {
            call: name,
            role: call.role(),
            vmid: call.vmid(),
            storage: call.storage(),
            status: status.as_u16(),
            reason: &reason,
            body: &body,
        };
        return Err(classify(&refusal));
    }
    let garbled = |what: String| PveError::Garbled { call: name, what };
    let mut frame: Json = serde_json::from_slice(&body).map_err(|error| garbled(error.to_string()))?;
    let object = frame.as_object_mut().ok_or_else(|| garbled("an object is expected".to_owned()))?;
    let data = object.remove("data").ok_or_else(|| garbled("data: missing".to_owned()))?;
    Ok(Answer { data, total: object.remove("total") })
}

fn transport_error(call: &'static str, limit: Duration, error: reqwest::Error) -> PveError {
    if let Some(refused) = refusal(&error) {
        return match refused {
            ServerRefusal::NotPinned { spki, .. } => PveError::PinMismatch { offered: *spki },
            ServerRefusal::CaNotShown { .. } => {
                PveError::CertificateRefused { source: Cause::new(refused.clone()) }
            }
        };
    }
    if let Some(refused) = certificate_error(&error) {
        return PveError::CertificateRefused { source: Cause::new(refused) };
    }
    let sent = if error.is_connect() || error.is_builder() { Sent::No } else { Sent::Perhaps };
    if error.is_timeout() && sent == Sent::Perhaps {
        return PveError::TimedOut { call, limit_s: limit.as_secs() };
    }
    PveError::Unreachable { call, sent, source: Cause::new(error.without_url()) }
}

/// Looks for a refused certificate below the layers of the HTTP client. `io::Error` hides what it wraps from `source`.
fn certificate_error(error: &reqwest::Error) -> Option<rustls::Error> {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        let found = match inner {
            Some(inner) => inner.downcast_ref::<rustls::Error>(),
            None => error.downcast_ref::<rustls::Error>(),
        };
        if let Some(refused @ rustls::Error::InvalidCertificate(_)) = found {
            return Some(refused.clone());
        }
        next = match inner {
            Some(inner) => Some(inner as &(dyn Error + 'static)),
            None => error.source(),
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_bare_address_of_a_tls_server_is_taken() {
        assert!(
            base_url("https://127.0.0.1:8006").is_ok() && base_url("https://pve1:8006/api2/json").is_ok()
        );
        for bad in [
            "http://127.0.0.1:8006",
            "https://root:x@pve1",
            "https://pve1/other",
            "https://pve1/?a=b",
            "pve1:8006",
            "",
        ] {
            assert!(base_url(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_token_that_could_split_a_header_is_refused_and_a_good_one_hides() {
        let token =
            |id: &str, secret: &str| ApiToken { id: id.to_owned(), secret: Secret::new(secret.to_owned()) };
        let good =
            header(Role::Observe, &token("hf@pve!observe", "00000000-0000-0000-0000-000000000000")).unwrap();
        assert!(good.is_sensitive() && !format!("{good:?}").contains("0000"));
        for (id, secret) in [
            ("hf@pve", "x"),
            ("hf!observe", "x"),
            ("hf@pve!observe", ""),
            ("hf@pve!observe", "x\r\nA: b"),
            ("hf@pve!a=b", "x"),
        ] {
            assert!(header(Role::Observe, &token(id, secret)).is_err(), "{id} {secret}");
        }
    }
}
