//! Calls of image approvals for all hosts.

use super::calls::{Call, JOB, KEY, change, get};
use crate::api::{Answer, framed, of};
use crate::code::ErrorCode::*;
use crate::image_approval::{ImageApprovalDetail, ImageApprovalSubmit, ImageApprovalView};
use crate::operator::Page;

/// All of them.
pub const CALLS: &[Call] = &[
    get(
        "/v1/image-approvals",
        "imageApprovals",
        "Approvals of images for all hosts, the newest first.",
        Answer::Done(framed::<Page<ImageApprovalView>>),
    ),
    Call {
        parts: &[KEY],
        refusals: &[IdempotencyMismatch, JobExpired, JobLife, NameTaken, NotYours, Quota],
        ..change(
            "/v1/image-approvals",
            (
                "submitImageApproval",
                "Leaves a signed approval for all hosts. The hub reads its form and checks no signature.",
            ),
            Some(of::<ImageApprovalSubmit>),
            Answer::Made(framed::<ImageApprovalView>),
        )
    },
    Call {
        parts: &[JOB],
        refusals: &[NotFound],
        ..get(
            "/v1/image-approvals/{job}",
            "imageApproval",
            "One approval with its text, and what each host says of it.",
            Answer::Done(framed::<ImageApprovalDetail>),
        )
    },
    Call {
        parts: &[JOB, KEY],
        refusals: &[IdempotencyMismatch, NotFound, Size],
        ..change(
            "/v1/image-approvals/{job}/withdraw",
            ("withdrawImageApproval", "Takes an approval back from the hosts that have not seen it."),
            None,
            Answer::Done(framed::<ImageApprovalView>),
        )
    },
];
