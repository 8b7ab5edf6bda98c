//! `PUT /v1/agent/restore-certificates`: a certificate of the calling host.
//! `GET /v1/hosts/{id or name}/guests/{guest}/restore-certificate`: the newest of a guest, for operators.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::json::chain;
use holdfast_protocol::restore_certificate::{
    CertificateKept, CertificatePut, CertificateView, PUT_BYTES_MAX,
};
use net::server::{Answer, Ids};
use restore_certificate::countersign::{ReceiveError, receive};

use super::auth::{Agent, Operator};
use super::hosts::host_ref;
use super::problem::ApiError;
use super::{Hub, body, since_epoch, too_often};
use crate::store::CertificateDelivery;

pub(super) async fn put(
    State(hub): State<Arc<Hub>>,
    Agent(presented): Agent,
    ids: Ids,
    body: Body,
) -> Result<Answer<CertificateKept>, ApiError> {
    let at = hub.clock.now();
    let paced = hub.rates.restore_certificates.take(presented.host, since_epoch(at));
    paced.map_err(|often| too_often("this host has sent many restore certificates", often))?;
    let put: CertificatePut = body::parse("the restore certificate", body, PUT_BYTES_MAX).await?;
    let received = receive(put.certificate).map_err(|error| refusal(&error))?;
    let delivery = CertificateDelivery { presented, received, at, correlation: ids.correlation };
    let kept = hub.store.put_restore_certificate(delivery, hub.countersign()).await?;
    Ok(Answer(StatusCode::OK, kept))
}

fn refusal(error: &ReceiveError) -> ApiError {
    let code = match error {
        ReceiveError::Document(error) => error.code(),
        ReceiveError::Signature(_) => ErrorCode::RestoreCertificate,
    };
    ApiError::new(code, chain(error))
}

pub(super) async fn newest(
    State(hub): State<Arc<Hub>>,
    _: Operator,
    Path((host, guest)): Path<(String, String)>,
) -> Result<Answer<CertificateView>, ApiError> {
    let guest: GuestUid = guest.parse().map_err(|_| ApiError::not_found("guest"))?;
    let found = hub.store.restore_certificate(host_ref(&host)?, guest).await?;
    let certificate = found.ok_or_else(|| ApiError::not_found("restore certificate"))?;
    let hub_key = hub.authority.countersign_key().public().openssh();
    let hub_key = hub_key.map_err(|error| ApiError::internal(error.to_string()))?;
    Ok(Answer(StatusCode::OK, CertificateView { certificate, hub_key }))
}
