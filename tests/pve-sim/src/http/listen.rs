//! The listener: TLS, HTTP/1.1, and the wire habits of the real daemon.
//!
//! Habits: `Server: pve-api-daemon/3.0`; titled header names; every answer of 400 and above closes the connection; a plain request on the
//! TLS port is redirected to https; statuses beyond 599 do not exist but 595 and 596 do. In: a bound socket. Out: nothing; it runs until
//! it gets the signal to end. Connections are bounded in number and in idle time.
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{HeaderName, HeaderValue};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::body::Body;
use super::entry;
use super::params::MAX_BODY_BYTES;
use crate::node::Node;
use crate::wire::{Request, Response, Spoil};

/// Connections at once.
const MAX_CONNECTIONS: usize = 512;
/// How long the head of a request may take, and how long a kept connection may idle.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How long running answers may take after the end was requested.
const DRAIN: Duration = Duration::from_secs(2);

/// Serves until `end` turns true.
pub async fn serve(
    node: Arc<Node>,
    listener: TcpListener,
    tls: Arc<rustls::ServerConfig>,
    mut end: watch::Receiver<bool>,
) {
    let acceptor = tokio_rustls::TlsAcceptor::from(tls);
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let permit = tokio::select! {
            _ = end.changed() => break,
            permit = Arc::clone(&room).acquire_owned() => permit,
        };
        let Ok(permit) = permit else { break };
        let accepted = tokio::select! {
            _ = end.changed() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let (node, acceptor, end) = (Arc::clone(&node), acceptor.clone(), end.clone());
                connections.spawn(async move {
                    let _permit = permit;
                    if let Err(error) = connection(node, stream, acceptor, end).await {
                        tracing::debug!(%error, "connection ended");
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "accept failed");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
    let _ = tokio::time::timeout(DRAIN, async { while connections.join_next().await.is_some() {} }).await;
    connections.shutdown().await;
}

async fn connection(
    node: Arc<Node>,
    stream: TcpStream,
    acceptor: tokio_rustls::TlsAcceptor,
    mut end: watch::Receiver<bool>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let mut first = [0_u8; 1];
    let peeked = tokio::time::timeout(HEAD_TIMEOUT, stream.peek(&mut first)).await??;
    if peeked == 0 {
        return Ok(());
    }
    // A TLS handshake starts with 0x16; anything else is plain HTTP.
    if first != [0x16] {
        return redirect(stream).await;
    }
    let stream = tokio::time::timeout(HEAD_TIMEOUT, acceptor.accept(stream)).await??;
    let service = hyper::service::service_fn(move |request| answer(Arc::clone(&node), request));
    let mut server = hyper::server::conn::http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).title_case_headers(true);
    let serving = server.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(serving);
    tokio::select! {
        done = serving.as_mut() => return done.map_err(Into::into),
        _ = end.changed() => serving.as_mut().graceful_shutdown(),
    }
    serving.await.map_err(Into::into)
}

async fn redirect(stream: TcpStream) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let service = hyper::service::service_fn(|request: hyper::Request<Incoming>| async move {
        let host = request
            .headers()
            .get("host")
            .and_then(|value| value.to_str().ok())
            .unwrap_or("localhost")
            .to_owned();
        let mut answer = hyper::Response::new(Full::new(Bytes::from_static(b"Moved Permanently")));
        *answer.status_mut() = hyper::StatusCode::MOVED_PERMANENTLY;
        if let Ok(value) = HeaderValue::from_str(&format!("https://{host}{}", request.uri())) {
            answer.headers_mut().insert("location", value);
        }
        answer.headers_mut().insert("server", HeaderValue::from_static("pve-api-daemon/3.0"));
        Ok::<_, Infallible>(answer)
    });
    let mut server = hyper::server::conn::http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).title_case_headers(true);
    server.serve_connection(TokioIo::new(stream), service).await.map_err(Into::into)
}

/// An answer that must not be sent.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error("the connection was dropped on purpose")]
    Dropped,
    #[error("the answer cannot be put on the wire")]
    Unsendable(#[from] hyper::http::Error),
    #[error("the worker of a request ended early")]
    Worker(#[from] tokio::task::JoinError),
}

async fn answer(node: Arc<Node>, request: hyper::Request<Incoming>) -> Result<hyper::Response<Body>, Broken> {
    let head = request.method() == hyper::Method::HEAD;
    let (parts, body) = request.into_parts();
    let headers = parts
        .headers
        .iter()
        .map(|(name, value)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        })
        .collect();
    // One byte beyond the limit is enough to know that it is too much.
    let limited = Limited::new(body, MAX_BODY_BYTES + 1).collect().await;
    let body = limited.map_or_else(|_| vec![0; MAX_BODY_BYTES + 1], |read| read.to_bytes().to_vec());
    let target = parts.uri.path_and_query().map_or_else(|| parts.uri.path().to_owned(), ToString::to_string);
    let wire = Request { method: parts.method.to_string(), target, headers, body };
    // Calls are synchronous and may touch files.
    let response = tokio::task::spawn_blocking(move || entry::serve(&node, &wire)).await?;
    if response.delay_ms > 0 {
        tokio::time::sleep(Duration::from_millis(response.delay_ms)).await;
    }
    send(response, head)
}

fn send(response: Response, head: bool) -> Result<hyper::Response<Body>, Broken> {
    if response.spoil == Spoil::Drop {
        return Err(Broken::Dropped);
    }
    let mut builder = hyper::Response::builder().status(response.status);
    if let Some(headers) = builder.headers_mut() {
        for (name, value) in
            [("cache-control", "max-age=0"), ("pragma", "no-cache"), ("server", "pve-api-daemon/3.0")]
        {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let keep = if response.status >= 400 { "close" } else { "Keep-Alive" };
        headers.insert("connection", HeaderValue::from_static(keep));
        if let Some(kind) = response.content_type {
            headers.insert("content-type", HeaderValue::from_static(kind));
        }
        if let Some(value) = response.disposition.as_deref().and_then(|text| HeaderValue::from_str(text).ok())
        {
            headers.insert("content-disposition", value);
        }
        if response.spoil == Spoil::Cut {
            headers.insert("content-length", HeaderValue::from(response.body.len()));
        }
    }
    let whole = if head { Bytes::new() } else { Bytes::from(response.body) };
    let body = match response.spoil {
        Spoil::Cut => Body::cut(&whole),
        Spoil::Nothing | Spoil::Drop => Body::whole(whole),
    };
    let mut answer = builder.body(body)?;
    if let Ok(reason) = hyper::ext::ReasonPhrase::try_from(response.reason.as_bytes()) {
        answer.extensions_mut().insert(reason);
    }
    Ok(answer)
}
