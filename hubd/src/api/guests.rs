//! `GET /v1/guests`: guests of all hosts, as last reported.
//!
//! Hosts come by name, and the guests of each by uid; those without a uid come after them, by VMID. For one answer the
//! reports of at most [`HOSTS_READ_MAX`] hosts are read, so that a filter that selects little costs no more than a page.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use holdfast_protocol::access::ObjectFacts;
use holdfast_protocol::filter::GuestFilter;
use holdfast_protocol::id::{GuestUid, HostName, Vmid};
use holdfast_protocol::operator::{GuestOnHost, HostView, Page};
use holdfast_protocol::report::GuestReport;
use net::server::Answer;
use serde::Deserialize;

use super::Hub;
use super::auth::Operator;
use super::hosts::{host_ref, place};
use super::page::{CheckedQuery, bad_cursor, close, limit, open};
use super::problem::ApiError;
use crate::store::PAGE_MAX;

/// Reports that are read for one answer at most.
const HOSTS_READ_MAX: u32 = 200;

/// Reports that are in memory at once.
const BATCH: u32 = 10;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GuestQuery {
    pub(super) limit: Option<u32>,
    pub(super) cursor: Option<String>,
    pub(super) host: Option<String>,
    pub(super) filter: Option<GuestFilter>,
}

/// The order of a host's guests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum GuestPlace {
    Ours(GuestUid),
    Other(Option<Vmid>),
}

impl GuestPlace {
    fn of(guest: &GuestReport) -> Self {
        guest.uid.map_or(Self::Other(guest.vmid), Self::Ours)
    }

    fn text(self) -> String {
        match self {
            Self::Ours(uid) => uid.to_string(),
            Self::Other(vmid) => vmid.map(|vmid| vmid.to_string()).unwrap_or_default(),
        }
    }

    fn read(text: &str) -> Result<Self, ApiError> {
        if let Ok(uid) = text.parse() {
            return Ok(Self::Ours(uid));
        }
        let vmid = if text.is_empty() { None } else { Some(text.parse().map_err(|_| bad_cursor())?) };
        Ok(Self::Other(vmid))
    }
}

/// Where a page begins: after this host, or within it after this guest.
struct Begin {
    host: (HostName, i64),
    guest: Option<GuestPlace>,
}

impl Begin {
    fn read(cursor: &str) -> Result<Self, ApiError> {
        let cursor = open(cursor)?;
        Ok(match cursor.split_once(' ') {
            Some((host, guest)) => Self { host: place(host)?, guest: Some(GuestPlace::read(guest)?) },
            None => Self { host: place(&cursor)?, guest: None },
        })
    }

    /// The host of a guest is read again.
    fn after(&self) -> (HostName, i64) {
        let (name, number) = &self.host;
        (name.clone(), if self.guest.is_some() { number.saturating_sub(1) } else { *number })
    }
}

/// A page under way.
struct Filling {
    items: Vec<GuestOnHost>,
    limit: usize,
    filter: Option<GuestFilter>,
}

impl Filling {
    /// Takes the guests of a host, and gives the place of the last one where not all have room.
    fn take(
        &mut self,
        host: &HostView,
        mut guests: Vec<GuestReport>,
        after: Option<GuestPlace>,
    ) -> Option<GuestPlace> {
        guests.sort_by_key(GuestPlace::of);
        let mut last = after;
        for guest in guests {
            let place = GuestPlace::of(&guest);
            let is_before = after.is_some_and(|after| place <= after);
            if is_before || self.filter.as_ref().is_some_and(|filter| !filter.selects(host, &guest)) {
                continue;
            }
            if self.items.len() >= self.limit {
                return last;
            }
            last = Some(place);
            let (host_id, name) = (host.id, host.name.clone());
            let (host_state, seen_at) = (host.state, host.seen_at);
            self.items.push(GuestOnHost { host_id, host: name, host_state, seen_at, guest });
        }
        None
    }
}

pub(super) async fn list(
    State(hub): State<Arc<Hub>>,
    operator: Operator,
    CheckedQuery(query): CheckedQuery<GuestQuery>,
) -> Result<Answer<Page<GuestOnHost>>, ApiError> {
    let limit = limit(query.limit, PAGE_MAX)? as usize;
    let begin = query.cursor.as_deref().map(Begin::read).transpose()?;
    let mut filling = Filling { items: Vec::new(), limit, filter: query.filter };
    let now = hub.clock.now();
    if let Some(host) = query.host {
        let detail = hub.store.host(host_ref(&host)?, now).await?;
        let detail = detail.ok_or_else(|| ApiError::not_found("host"))?;
        let (after, mut guests) =
            (begin.and_then(|begin| begin.guest), detail.sections.guests.unwrap_or_default());
        guests.retain(|guest| {
            let (labels, customer) = (detail.host.labels.clone(), guest.customer.clone());
            operator.grant.scope().holds(&ObjectFacts { labels, customer })
        });
        // A host without any guest of the caller's is not told from one that is not there.
        let of_host = ObjectFacts { labels: detail.host.labels.clone(), customer: None };
        if guests.is_empty() && !operator.grant.scope().holds(&of_host) {
            return Err(ApiError::not_found("host"));
        }
        let last = filling.take(&detail.host, guests, after);
        let next = last.map(|guest| close(&format!("{}/0 {}", detail.host.name, guest.text())));
        return Ok(Answer(StatusCode::OK, Page { items: filling.items, next }));
    }
    let (mut after, mut read) = (begin.as_ref().map(Begin::after), 0);
    loop {
        let batch = hub.store.reported_guests_within(operator.scope(), after.clone(), BATCH, now).await?;
        let is_end = batch.len() < BATCH as usize;
        for (record, guests) in batch {
            let host = (record.view.name.clone(), record.number);
            let within = begin.as_ref().filter(|begin| begin.host == host).and_then(|begin| begin.guest);
            let at = format!("{}/{}", host.0, host.1);
            if let Some(last) = filling.take(&record.view, guests, within) {
                let next = Some(close(&format!("{at} {}", last.text())));
                return Ok(Answer(StatusCode::OK, Page { items: filling.items, next }));
            }
            (after, read) = (Some(host), read + 1);
            if filling.items.len() >= limit || read >= HOSTS_READ_MAX {
                let next = Some(close(&at));
                return Ok(Answer(StatusCode::OK, Page { items: filling.items, next }));
            }
        }
        if is_end {
            return Ok(Answer(StatusCode::OK, Page { items: filling.items, next: None }));
        }
    }
}
