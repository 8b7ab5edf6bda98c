//! Deliveries over HTTP.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use url::Url;

use super::error::quote;
use super::{DeliveryError, Receipt, Remark, resolve, tls};
use crate::channel::HttpChannel;
use crate::egress::EgressPolicy;
use crate::field::CaPem;
use crate::http::{ANSWER_BYTES_MAX, HttpAnswer, HttpRequest, Method};
use crate::id::OutboxId;
use crate::message::Message;
use crate::ping::Ping;
use crate::url::SecretUrl;
use crate::verdict::{Fallback, Form, Verdict};

/// A receiver that takes longer is down. Lookup, connection and answer count together.
const HTTP_WAIT: Duration = Duration::from_secs(10);
const USER_AGENT: &str = concat!("holdfast/", env!("CARGO_PKG_VERSION"));

/// Delivers a message, with the fallbacks that its answers call for.
pub(super) async fn deliver(
    contract: &dyn HttpChannel,
    policy: EgressPolicy,
    (message, id): (&Message, &OutboxId),
    now: Timestamp,
) -> Result<Receipt, DeliveryError> {
    let mut form = Form::default();
    let mut receipt = Receipt::default();
    loop {
        let request = contract.request(message, id, now, form);
        let sent = tokio::time::timeout(HTTP_WAIT, send(&request, contract.ca(), policy)).await;
        let answer = sent.map_err(|_| DeliveryError::Timeout { within: HTTP_WAIT })??;
        let status = answer.status;
        let said = || quote(&String::from_utf8_lossy(&answer.body), secrets(&request));
        let fallback = match contract.verdict(&answer, now) {
            Verdict::Delivered => return Ok(receipt),
            Verdict::RetryAfter(after) => return Err(DeliveryError::Busy { status, after }),
            Verdict::Retry => return Err(DeliveryError::Unavailable { status, said: said() }),
            Verdict::Permanent(reason) => {
                return Err(DeliveryError::Refused { reason, status, said: said() });
            }
            Verdict::Fallback(fallback) => fallback,
        };
        // A receiver that asks for the same change again would do so for ever; so would a chat that moves twice.
        let next = form.after(fallback).filter(|_| form.chat.is_none() || fallback == Fallback::PlainText);
        form = next.ok_or_else(|| DeliveryError::Unavailable { status, said: said() })?;
        receipt.remarks.push(match fallback {
            Fallback::PlainText => Remark::PlainText,
            Fallback::Chat(chat) => Remark::ChatMoved(chat),
        });
    }
}

/// What a receiver could repeat: the values of headers, and the URL behind its host.
fn secrets(request: &HttpRequest) -> Vec<&str> {
    let url = request.url.expose();
    let behind = url.split_once("://").and_then(|(_, rest)| rest.find('/').and_then(|at| rest.get(at..)));
    request.headers.iter().map(|(_, value)| value.expose()).chain(behind).collect()
}

/// Reads the beginning of a page.
pub(super) async fn page(url: Url, policy: EgressPolicy) -> Result<HttpAnswer, DeliveryError> {
    let request = HttpRequest::get(url);
    let sent = tokio::time::timeout(HTTP_WAIT, send(&request, None, policy)).await;
    sent.map_err(|_| DeliveryError::Timeout { within: HTTP_WAIT })?
}

/// Posts a document as it is. Nothing signs it.
pub(super) async fn post(
    url: &SecretUrl,
    id: &OutboxId,
    body: Vec<u8>,
    policy: EgressPolicy,
) -> Result<(), DeliveryError> {
    let request = HttpRequest { method: Method::Post, url: url.clone(), headers: Vec::new(), body }
        .with("idempotency-key", id.as_str());
    let sent = tokio::time::timeout(HTTP_WAIT, send(&request, None, policy)).await;
    let answer = sent.map_err(|_| DeliveryError::Timeout { within: HTTP_WAIT })??;
    if (200..300).contains(&answer.status) {
        return Ok(());
    }
    let said = quote(&String::from_utf8_lossy(&answer.body), secrets(&request));
    Err(DeliveryError::Unavailable { status: answer.status, said })
}

/// Sends a ping.
pub(super) async fn ping(ping: &Ping, url: &SecretUrl, policy: EgressPolicy) -> Result<(), DeliveryError> {
    let request = ping.request(url);
    let sent = tokio::time::timeout(HTTP_WAIT, send(&request, None, policy)).await;
    let answer = sent.map_err(|_| DeliveryError::Timeout { within: HTTP_WAIT })??;
    if Ping::is_taken(&answer) {
        return Ok(());
    }
    let said = quote(&String::from_utf8_lossy(&answer.body), secrets(&request));
    Err(DeliveryError::Unavailable { status: answer.status, said })
}

async fn send(
    request: &HttpRequest,
    ca: Option<&CaPem>,
    policy: EgressPolicy,
) -> Result<HttpAnswer, DeliveryError> {
    let url = Url::parse(request.url.expose()).map_err(|_| DeliveryError::Unwritable)?;
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return Err(DeliveryError::Unwritable);
    };
    let addresses = resolve::resolve(host, port, policy).await?;
    let roots = match url.scheme() {
        "https" => tls::roots(ca).await?,
        _ => Vec::new(),
    };
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(tls::config(roots)?)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .retry(reqwest::retry::never())
        .http1_only()
        .resolve_to_addrs(host, &addresses)
        .user_agent(USER_AGENT)
        .build()
        .map_err(|error| DeliveryError::Tls(error.without_url().into()))?;
    let method = match request.method {
        Method::Get => reqwest::Method::GET,
        Method::Post => reqwest::Method::POST,
        Method::Put => reqwest::Method::PUT,
    };
    let mut call = client.request(method, url.clone()).header(CONTENT_TYPE, "application/json");
    for (name, value) in &request.headers {
        let mut value = HeaderValue::from_str(value.expose()).map_err(|_| DeliveryError::Unwritable)?;
        value.set_sensitive(true);
        call = call.header(*name, value);
    }
    let sent = call.body(request.body.clone()).send().await;
    let mut response = sent.map_err(|error| DeliveryError::Connection(error.without_url().into()))?;
    let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let mut answer = HttpAnswer {
        status: response.status().as_u16(),
        retry_after: retry_after.map(str::to_owned),
        body: Vec::new(),
    };
    // The status has come: a body that breaks off changes nothing about it.
    while let Ok(Some(piece)) = response.chunk().await {
        let room = ANSWER_BYTES_MAX.saturating_sub(answer.body.len());
        answer.body.extend(piece.iter().take(room));
        if piece.len() >= room {
            break;
        }
    }
    Ok(answer)
}
