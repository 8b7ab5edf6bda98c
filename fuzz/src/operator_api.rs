//! Requests of operators to the hub, and its answers.

use holdfast_protocol::operator::{
    DesiredPut, DesiredVersion, EnrollmentApproval, EnrollmentRequestView, EventView, HostDetail,
    InviteRequest, JobDetail, JobSubmit, Page, WhoAmI,
};

use crate::round;

const BYTES_MAX: usize = 2 * 1024 * 1024;

/// One input.
///
/// # Panics
/// When a rule does not hold.
pub fn target(data: &[u8]) {
    round::document::<InviteRequest>(data, BYTES_MAX);
    round::document::<EnrollmentApproval>(data, BYTES_MAX);
    round::document::<DesiredPut>(data, BYTES_MAX);
    round::document::<JobSubmit>(data, BYTES_MAX);
    round::document::<JobDetail>(data, BYTES_MAX);
    round::document::<DesiredVersion>(data, BYTES_MAX);
    round::document::<HostDetail>(data, BYTES_MAX);
    round::document::<WhoAmI>(data, BYTES_MAX);
    round::document::<Page<EventView>>(data, BYTES_MAX);
    round::document::<Page<EnrollmentRequestView>>(data, BYTES_MAX);
}
