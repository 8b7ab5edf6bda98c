//! `POST /v1/enroll` and `POST /v1/renew`: certificates for agents.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use holdfast_protocol::enrol::{CSR_BYTES_MAX, Enrolled, InviteRedemption, RenewRequest};
use holdfast_protocol::id::HostId;
use net::server::{Answer, Ids};
use uuid::Uuid;

use super::auth::Agent;
use super::problem::ApiError;
use super::{Hub, body};
use crate::authority::AgentKey;
use crate::store::{CertificateRecord, Redemption, Renewal};

/// A CSR whose every byte is escaped, and the rest.
pub(super) const ENROL_BODY_MAX: usize = 8 * CSR_BYTES_MAX;

pub(super) fn enrolled(hub: &Hub, record: CertificateRecord) -> Enrolled {
    let cas = hub.authority.cas();
    Enrolled {
        host_id: record.host,
        host_name: record.name,
        certificate_pem: record.pem,
        ca_pem: cas.named_pem(),
        ca_cross_pem: cas.cross_pem(),
        certificate_generation: record.generation,
        not_before: record.not_before,
        not_after: record.not_after,
    }
}

pub(super) async fn enrol(
    State(hub): State<Arc<Hub>>,
    ids: Ids,
    body: Body,
) -> Result<Answer<Enrolled>, ApiError> {
    let request: InviteRedemption = body::parse("the enrolment", body, ENROL_BODY_MAX).await?;
    let redemption = Redemption {
        secret: request.secret.hash(),
        key: AgentKey::from_csr(&request.csr_pem)?,
        host: HostId::new(Uuid::new_v4()),
        at: hub.clock.now(),
        correlation: ids.correlation,
    };
    let record = hub.store.redeem(redemption, hub.issue()).await?;
    Ok(Answer(StatusCode::OK, enrolled(&hub, record)))
}

pub(super) async fn renew(
    State(hub): State<Arc<Hub>>,
    Agent(presented): Agent,
    ids: Ids,
    body: Body,
) -> Result<Answer<Enrolled>, ApiError> {
    let request: RenewRequest = body::parse("the renewal", body, ENROL_BODY_MAX).await?;
    let renewal = Renewal {
        presented,
        key: AgentKey::from_csr(&request.csr_pem)?,
        at: hub.clock.now(),
        correlation: ids.correlation,
    };
    let record = hub.store.renew(renewal, hub.issue()).await?;
    Ok(Answer(StatusCode::OK, enrolled(&hub, record)))
}
