//! Carries requests over HTTPS.
//!
//! HTTP/1.1 over TLS 1.3, no redirects, no proxy from the environment, bounded bodies and times. Reads share connections
//! that are dropped before Proxmox drops them (5 s idle); writes each take a fresh one, so that a connection which dies
//! in the pool can never leave us in doubt whether a write was sent. Deliberately absent: retries (`retry`),
//! interpretation (`transport`).

use std::error::Error;
use std::time::Duration;

use bytes::BytesMut;
use net::tls::{Refusal as ServerRefusal, Trust, refusal};
use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::{Client, Method, Url};
use tokio::sync::Semaphore;

use super::error::{Cause, PveError, Sent};
use super::sender::SetUpError;
use super::transport::{Carried, Place, Request, Response, Transport};

const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Proxmox's own proxy gives up after 30 s and says so; a write may wait 10 s for a lock before that.
const READ_MAX: Duration = Duration::from_secs(35);
const WRITE_MAX: Duration = Duration::from_secs(45);
/// A storage that does not answer must not delay calls that do not concern it.
const STORAGE_READ_MAX: Duration = Duration::from_secs(15);
/// pveproxy drops idle connections after 5 s.
const IDLE_MAX: Duration = Duration::from_secs(4);
/// pvedaemon has three workers and a blocked write holds one: one is left for other users.
const WRITES_AT_ONCE: usize = 2;
const READS_AT_ONCE: usize = 8;
/// Reads of single storages have their own slots, so that a dead storage cannot block the other reads.
const STORAGE_READS_AT_ONCE: usize = 4;

#[derive(Debug)]
pub(super) struct Https {
    base: Url,
    reads: Client,
    writes: Client,
    read_slots: Semaphore,
    storage_slots: Semaphore,
    write_slots: Semaphore,
}

impl Https {
    pub(super) fn new(url: &str, trust: &Trust) -> Result<Self, SetUpError> {
        let config = net::tls::client(trust).map_err(SetUpError::Tls)?;
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
            base: base_url(url)?,
            reads: client(READS_AT_ONCE, READ_MAX)?,
            writes: client(0, WRITE_MAX)?,
            read_slots: Semaphore::new(READS_AT_ONCE),
            storage_slots: Semaphore::new(STORAGE_READS_AT_ONCE),
            write_slots: Semaphore::new(WRITES_AT_ONCE),
        })
    }

    async fn send(&self, request: Request) -> Result<Response, PveError> {
        let name = request.call;
        let (client, slots, limit) = match request.place {
            Place::StorageRead => (&self.reads, &self.storage_slots, STORAGE_READ_MAX),
            Place::Read => (&self.reads, &self.read_slots, READ_MAX),
            Place::Write => (&self.writes, &self.write_slots, WRITE_MAX),
        };
        let unsent = |source: Cause| PveError::Unreachable { call: name, sent: Sent::No, source };
        // The semaphores live as long as we do and are never closed.
        let _slot = slots.acquire().await.map_err(|closed| unsent(Cause::new(closed)))?;
        let method =
            Method::from_bytes(request.method.as_bytes()).map_err(|error| unsent(Cause::new(error)))?;
        let mut header = HeaderValue::from_str(request.authorization.expose())
            .map_err(|error| unsent(Cause::new(error)))?;
        header.set_sensitive(true);
        let params: Vec<(&str, &str)> =
            request.params.iter().map(|(key, value)| (key.as_str(), value.expose())).collect();
        let mut url = self.base.clone();
        url.set_path(&request.path);
        let in_query = method == Method::GET || method == Method::DELETE;
        let builder = client.request(method, url);
        let builder = if in_query { builder.query(&params) } else { builder.form(&params) };
        let sent = builder.header(AUTHORIZATION, header).timeout(limit).send().await;
        let response = sent.map_err(|error| transport_error(name, limit, error))?;
        read(&request, limit, response).await
    }
}

impl Transport for Https {
    fn carry(&self, request: Request) -> Carried<'_> {
        Box::pin(self.send(request))
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

async fn read(
    request: &Request,
    limit: Duration,
    mut response: reqwest::Response,
) -> Result<Response, PveError> {
    let status = response.status();
    let reason = match response.extensions().get::<hyper::ext::ReasonPhrase>() {
        Some(phrase) => String::from_utf8_lossy(phrase.as_bytes()).into_owned(),
        None => status.canonical_reason().unwrap_or_default().to_owned(),
    };
    let mut body = BytesMut::new();
    let failed = |error| transport_error(request.call, limit, error);
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        if body.len() + chunk.len() > request.body_max {
            return Err(PveError::TooLarge { call: request.call, limit: request.body_max });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Response { status: status.as_u16(), reason, body: body.into() })
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
}
