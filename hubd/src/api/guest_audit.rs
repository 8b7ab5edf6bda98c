//! `PUT /v1/agent/guest-audit`: audit records about guests of the calling host.
//! `GET /v1/hosts/{id or name}/guests/{guest}/audit`: the newest about a guest, for operators.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::guest_audit::{
    DETAIL_BYTES_MAX, GuestAuditKept, GuestAuditPut, GuestAuditView, PUT_BYTES_MAX, RECORDS_PER_PUT,
};
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::local::audit::AuditRecord;
use net::server::{Answer, Ids};

use super::auth::{Agent, Operator};
use super::hosts::host_ref;
use super::problem::ApiError;
use super::{Hub, body, since_epoch, too_often};
use crate::store::AuditDelivery;

pub(super) async fn put(
    State(hub): State<Arc<Hub>>,
    Agent(presented): Agent,
    ids: Ids,
    body: Body,
) -> Result<Answer<GuestAuditKept>, ApiError> {
    let at = hub.clock.now();
    let paced = hub.rates.guest_audit.take(presented.host, since_epoch(at));
    paced.map_err(|often| too_often("this host has sent many audit records", often))?;
    let put: GuestAuditPut = body::parse("the audit records", body, PUT_BYTES_MAX).await?;
    if put.records.len() > RECORDS_PER_PUT {
        let says = format!("at most {RECORDS_PER_PUT} audit records come with one request");
        return Err(ApiError::new(ErrorCode::Range, says));
    }
    let records = put.records.into_iter().map(of_guest).collect::<Result<_, _>>()?;
    let (through, correlation) = (put.through, ids.correlation);
    let delivery = AuditDelivery { presented, records, through, at, correlation };
    Ok(Answer(StatusCode::OK, hub.store.put_guest_audit(delivery).await?))
}

/// A record that is what its hash says, with its guest.
fn of_guest(record: AuditRecord) -> Result<(GuestUid, AuditRecord), ApiError> {
    let odd = |why: &str| {
        ApiError::new(ErrorCode::Range, format!("record {} of the audit {why}", record.line.number))
    };
    let guest = record.line.guest.as_deref().and_then(|guest| guest.parse().ok());
    let guest: GuestUid = guest.ok_or_else(|| odd("is about no guest"))?;
    if record.line.detail.len() > DETAIL_BYTES_MAX {
        return Err(odd("is too long"));
    }
    if !record.holds() {
        return Err(odd("is not what its hash says"));
    }
    Ok((guest, record))
}

pub(super) async fn newest(
    State(hub): State<Arc<Hub>>,
    _: Operator,
    Path((host, guest)): Path<(String, String)>,
) -> Result<Answer<GuestAuditView>, ApiError> {
    let guest: GuestUid = guest.parse().map_err(|_| ApiError::not_found("guest"))?;
    let found = hub.store.guest_audit(host_ref(&host)?, guest).await?;
    Ok(Answer(StatusCode::OK, found.ok_or_else(|| ApiError::not_found("host"))?))
}
