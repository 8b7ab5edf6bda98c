//! `GET /live`: what changed, as server-sent events.
//!
//! In: the session's cookie, and the number of the last change that the page knows. Out: an event for each later change, with
//! the hosts that the person may see, until the session or the hub ends. The number is the database's, so that a page goes
//! on at any hub where it left off. Deliberately absent: the facts themselves, which the page reads again by its own address.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::HostName;
use holdfast_protocol::secret::TokenHash;
use holdfast_protocol::sign_in::SessionKind;
use hyper::body::Frame;
use net::server::as_it_is;

use super::person::Person;
use crate::api::Hub;
use crate::api::hosts::host_ref;
use crate::api::live_feed::Listener;
use crate::api::problem::ApiError;
use crate::api::sign_in::session_token;
use crate::domain::host::HostRef;
use crate::store::{PageChange, PageChangeQuery};

/// Proxies close what is silent for long; and the session is looked up this often at least.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// Several changes in this time are one event.
const GATHER: Duration = Duration::from_millis(200);

/// The first bytes, so that the browser knows that it is heard. It comes back after this time.
const GREETING: &str = "retry: 2000\n\n";

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// What a page asks for.
#[derive(Debug, Default, PartialEq, Eq)]
struct LiveQuery {
    after: Option<u64>,
    host: Option<String>,
}

impl LiveQuery {
    /// What the browser says of itself after a drop is newer than the address.
    fn of(query: Option<&str>, headers: &HeaderMap) -> Self {
        let mut read = Self::default();
        for (name, value) in url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            match &*name {
                "after" => read.after = value.parse().ok(),
                "host" => read.host = Some(value.into_owned()),
                _ => {}
            }
        }
        let last = headers.get(LAST_EVENT_ID).and_then(|value| value.to_str().ok()?.parse().ok());
        Self { after: last.or(read.after), ..read }
    }
}

pub(super) async fn live(
    State(hub): State<Arc<Hub>>,
    person: Person,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Response {
    match opened(&hub, &person, &headers, query.as_deref()).await {
        Ok(response) => response,
        Err(error) => error.into_response(),
    }
}

async fn opened(
    hub: &Arc<Hub>,
    person: &Person,
    headers: &HeaderMap,
    query: Option<&str>,
) -> Result<Response, ApiError> {
    let query = LiveQuery::of(query, headers);
    // `require` found the session by it.
    let token = session_token(headers).ok_or_else(|| ApiError::internal("a page without a session"))?;
    let host = query.host.as_deref().map(host_ref).transpose()?;
    let listener = hub.live.listen(person.operator.principal.name()).ok_or_else(|| {
        ApiError::new(
            ErrorCode::Busy,
            "as many pages are open as are told of changes: this one reads itself anew",
        )
    })?;
    let newest = hub.store.newest_page_change().await?;
    // A database that was put back has lower numbers than the page knows.
    let after = query.after.map_or(newest, |after| if after > newest { 0 } else { after });
    let listening = Listening { hub: Arc::clone(hub), listener, token, host, after, has_spoken: false };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    Ok(as_it_is((headers, Body::new(LiveBody::new(listening)))))
}

/// One open page.
struct Listening {
    hub: Arc<Hub>,
    listener: Listener,
    token: TokenHash,
    host: Option<HostRef>,
    after: u64,
    /// Whether the last words were an event.
    has_spoken: bool,
}

impl Listening {
    /// The next words; none at the end of the session or of the hub, and where the database does not answer: the browser
    /// comes back by itself.
    async fn next(&mut self) -> Option<String> {
        let mut stop = self.hub.stop.clone();
        if self.has_spoken {
            self.has_spoken = false;
            tokio::time::sleep(GATHER).await;
        }
        let mut is_first = true;
        loop {
            let record = self.hub.store.session(self.token, self.hub.clock.now()).await.ok()??;
            if record.view.kind != SessionKind::Full || *stop.borrow() {
                return None;
            }
            // Role and scope as they are now.
            let (scope, host) = (record.owner.grant.scope().clone(), self.host.clone());
            let query = PageChangeQuery { scope, host, after: self.after };
            let changes = self.hub.store.page_changes(query).await.ok()?;
            if let Some(last) = changes.last() {
                (self.after, self.has_spoken) = (last.number, true);
                return Some(event(last.number, &changes));
            }
            if !is_first {
                return Some(":\n\n".to_owned());
            }
            is_first = false;
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return None,
                () = self.listener.woken() => {}
                () = tokio::time::sleep(KEEP_ALIVE) => {}
            }
        }
    }
}

/// Names of hosts have no line breaks.
fn event(number: u64, changes: &[PageChange]) -> String {
    let hosts: BTreeSet<&str> =
        changes.iter().filter_map(|one| one.host.as_ref()).map(HostName::as_str).collect();
    let hub = changes.iter().any(|one| one.host.is_none());
    let data = serde_json::json!({ "hosts": hosts, "hub": hub });
    format!("id: {number}\nevent: changed\ndata: {data}\n\n")
}

type Reading = Pin<Box<dyn Future<Output = (Listening, Option<String>)> + Send>>;

struct LiveBody {
    greeting: Option<&'static str>,
    reading: Option<Reading>,
}

fn read(mut listening: Listening) -> Reading {
    Box::pin(async move {
        let words = listening.next().await;
        (listening, words)
    })
}

impl LiveBody {
    fn new(listening: Listening) -> Self {
        Self { greeting: Some(GREETING), reading: Some(read(listening)) }
    }
}

impl hyper::body::Body for LiveBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        if let Some(greeting) = this.greeting.take() {
            return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(greeting.as_bytes())))));
        }
        let Some(reading) = &mut this.reading else { return Poll::Ready(None) };
        let (listening, words) = ready!(reading.as_mut().poll(context));
        // Dropped with the last words, the page's place is free.
        this.reading = words.is_some().then(|| read(listening));
        Poll::Ready(words.map(|words| Ok(Frame::data(Bytes::from(words)))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_browser_saw_last_is_newer_than_the_address() {
        let mut headers = HeaderMap::new();
        let read = LiveQuery::of(Some("after=7&host=box7&odd=1"), &headers);
        assert_eq!(read, LiveQuery { after: Some(7), host: Some("box7".to_owned()) });
        headers.insert(LAST_EVENT_ID, HeaderValue::from_static("9"));
        assert_eq!(LiveQuery::of(Some("after=7"), &headers).after, Some(9));
        headers.insert(LAST_EVENT_ID, HeaderValue::from_static("nine"));
        assert_eq!(LiveQuery::of(None, &headers), LiveQuery::default());
    }

    #[test]
    fn an_event_names_each_host_once() {
        let of =
            |number, host: Option<&str>| PageChange { number, host: host.map(|host| host.parse().unwrap()) };
        let text = event(9, &[of(7, Some("box7")), of(8, None), of(9, Some("box7"))]);
        assert_eq!(text, "id: 9\nevent: changed\ndata: {\"hosts\":[\"box7\"],\"hub\":true}\n\n");
    }
}
