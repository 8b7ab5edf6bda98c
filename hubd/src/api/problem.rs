//! The conversion of errors into API errors.

use alerts::silence::SilenceError;
use axum::response::{IntoResponse, Response};
use holdfast_protocol::access::GrantError;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::DesiredError;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::escrow::form::FormError;
use holdfast_protocol::host_label::LabelError;
use holdfast_protocol::json::{JsonError, chain};
use holdfast_protocol::release::ReleaseError;
use holdfast_protocol::resource::PartError;
use holdfast_protocol::resource::on_host::StillOnHost;
use net::server::Refused;
use net::server::body::BodyError;

use crate::artifacts::ArtifactError;
use crate::authority::CsrError;
use crate::domain::alerting::sample::SampleError;
use crate::domain::desired::PutError;
use crate::domain::enrollment::InviteError;
use crate::domain::identity::IdentityError;
use crate::domain::image_approval::ImageApprovalError;
use crate::domain::job_queue::JobQueueError;
use crate::domain::readmission::ReadmitError;
use crate::domain::release::ReleasePutError;
use crate::domain::release_offer::OfferError;
use crate::domain::rollout::action::ActionError;
use crate::domain::work_order::WorkOrderError;
use crate::store::OperatorError;
use crate::store::{
    AcknowledgeError, CustomerError, EnrollmentRequestError, EscrowError, InviteRequestError,
    MachineTokenError, ObjectionError, OidcSignInError, PlanRolloutError, ProviderLinkError, RedeemError,
    RenewError, RestoreCertificateError, RestoreError, RestoreRequestError, SignInError, SilenceRequestError,
    StoreError, TestError, WithdrawError, WriteError,
};

/// The value of `Retry-After`, for the error codes that carry one, where none is known.
const RETRY_AFTER_S: u32 = 5;

/// As many users of a part as an error names.
const USERS_MAX: usize = 100;

/// A bad answer.
#[derive(Debug)]
pub(super) struct ApiError(Refused);

impl ApiError {
    pub(super) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        ErrorBody::new(code, message).into()
    }

    pub(super) fn internal(cause: impl Into<String>) -> Self {
        Self(Refused::internal(cause))
    }

    pub(super) const fn code(&self) -> ErrorCode {
        self.0.problem.code
    }

    /// The path of the mistake in what was sent, where there is one.
    pub(super) fn path(&self) -> Option<&str> {
        self.0.problem.details.get("path").map(String::as_str)
    }

    /// The code and the sentence, for a page.
    pub(super) fn shown(self) -> (ErrorCode, String) {
        (self.0.problem.code, self.0.problem.message)
    }

    pub(super) fn not_found(what: &str) -> Self {
        Self::new(ErrorCode::NotFound, format!("there is no such {what} here"))
    }

    /// An error whose sources are for the log.
    fn caused(code: ErrorCode, error: &dyn std::error::Error) -> Self {
        let problem = ErrorBody::new(code, error.to_string());
        Self(Refused { cause: Some(chain(error)), ..Refused::new(problem) })
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let asks_again =
            matches!(self.0.problem.code, ErrorCode::Busy | ErrorCode::RateLimited | ErrorCode::Unavailable);
        let usual = asks_again.then_some(RETRY_AFTER_S);
        Refused { retry_after_s: self.0.retry_after_s.or(usual), ..self.0 }.into_response()
    }
}

impl From<ErrorBody> for ApiError {
    fn from(problem: ErrorBody) -> Self {
        Self(Refused::new(problem))
    }
}

impl From<Refused> for ApiError {
    fn from(refused: Refused) -> Self {
        Self(refused)
    }
}

impl From<BodyError> for ApiError {
    fn from(error: BodyError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match &error {
            StoreError::Busy => Self::new(ErrorCode::Busy, error.to_string()),
            StoreError::Stopped | StoreError::TermOver(_) => {
                Self::new(ErrorCode::Unavailable, error.to_string())
            }
            StoreError::Engine { .. } => Self::caused(ErrorCode::Unavailable, &error),
            StoreError::Damaged { .. } => Self::caused(ErrorCode::Internal, &error),
        }
    }
}

impl<E: Into<Self>> From<WriteError<E>> for ApiError {
    fn from(error: WriteError<E>) -> Self {
        match error {
            WriteError::Refused(refusal) => refusal.into(),
            WriteError::KeyReused => Self::new(
                ErrorCode::IdempotencyMismatch,
                "this Idempotency-Key was used for another request: make a new key for a new request",
            ),
            WriteError::Store(error) => error.into(),
        }
    }
}

impl From<std::convert::Infallible> for ApiError {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}

impl From<JsonError> for ApiError {
    fn from(error: JsonError) -> Self {
        let mut problem = ErrorBody::new(error.code(), chain(&error));
        if let Some(path) = error.path() {
            problem = problem.with("path", path);
        }
        problem.into()
    }
}

impl From<DesiredError> for ApiError {
    fn from(error: DesiredError) -> Self {
        let mut problem = ErrorBody::new(error.code(), chain(&error));
        if let Some(path) = error.path() {
            problem = problem.with("path", path);
        }
        problem.into()
    }
}

impl From<PartError> for ApiError {
    fn from(error: PartError) -> Self {
        let mut problem = ErrorBody::new(error.code(), error.to_string());
        if let Some(path) = error.path() {
            problem = problem.with("path", path);
        }
        if let PartError::InUse { users, .. } = &error {
            let all: Vec<String> = users.iter().take(USERS_MAX).map(ToString::to_string).collect();
            problem = problem.with("users", all.join(", "));
        }
        problem.into()
    }
}

impl From<StillOnHost> for ApiError {
    fn from(error: StillOnHost) -> Self {
        let problem = ErrorBody::new(error.code(), error.to_string());
        problem.with("part", error.part).with("state", error.state).into()
    }
}

impl From<CsrError> for ApiError {
    fn from(error: CsrError) -> Self {
        Self::new(ErrorCode::Csr, error.to_string())
    }
}

impl From<IdentityError> for ApiError {
    fn from(error: IdentityError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<FormError> for ApiError {
    fn from(error: FormError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<EscrowError> for ApiError {
    fn from(error: EscrowError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<RestoreCertificateError> for ApiError {
    fn from(error: RestoreCertificateError) -> Self {
        match &error {
            RestoreCertificateError::Countersign(_) | RestoreCertificateError::Unwritable(_) => {
                Self::caused(ErrorCode::Internal, &error)
            }
            RestoreCertificateError::Identity(_) | RestoreCertificateError::Put(_) => {
                Self::new(error.code(), error.to_string())
            }
        }
    }
}

impl From<ReleaseError> for ApiError {
    fn from(error: ReleaseError) -> Self {
        match error {
            ReleaseError::Form(form) => form.into(),
            error @ (ReleaseError::Base64(_)
            | ReleaseError::Signatures(_)
            | ReleaseError::Files(_)
            | ReleaseError::NameTwice(_)
            | ReleaseError::FileSize { .. }
            | ReleaseError::Times { .. }) => Self::new(error.code(), error.to_string()),
        }
    }
}

impl From<ReleasePutError> for ApiError {
    fn from(error: ReleasePutError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<OfferError> for ApiError {
    fn from(error: OfferError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<LabelError> for ApiError {
    fn from(error: LabelError) -> Self {
        Self::new(ErrorCode::Range, format!("{error}; nothing was changed"))
    }
}

impl From<PlanRolloutError> for ApiError {
    fn from(error: PlanRolloutError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<ActionError> for ApiError {
    fn from(error: ActionError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<ArtifactError> for ApiError {
    fn from(error: ArtifactError) -> Self {
        match &error {
            ArtifactError::Disk { .. } => Self::caused(error.code(), &error),
            ArtifactError::Offset { received } => {
                let problem = ErrorBody::new(error.code(), error.to_string());
                problem.with("received", received.to_string()).into()
            }
            ArtifactError::Locked
            | ArtifactError::TooLong { .. }
            | ArtifactError::Wrong(_)
            | ArtifactError::Full { .. } => Self::new(error.code(), error.to_string()),
        }
    }
}

impl From<InviteError> for ApiError {
    fn from(error: InviteError) -> Self {
        let code = match error {
            InviteError::Unknown => ErrorCode::InviteUnknown,
            InviteError::Expired { .. } => ErrorCode::InviteExpired,
            InviteError::Used => ErrorCode::InviteUsed,
        };
        Self::new(code, error.to_string())
    }
}

impl From<RedeemError> for ApiError {
    fn from(error: RedeemError) -> Self {
        match error {
            RedeemError::Invite(invite) => invite.into(),
            RedeemError::Taken { .. } => Self::new(ErrorCode::NameTaken, error.to_string()),
            RedeemError::KeyTaken => Self::new(ErrorCode::Csr, error.to_string()),
            RedeemError::Issue(_) => Self::caused(ErrorCode::Internal, &error),
        }
    }
}

impl From<RenewError> for ApiError {
    fn from(error: RenewError) -> Self {
        match error {
            RenewError::Identity(identity) => identity.into(),
            RenewError::KeyTaken => Self::new(ErrorCode::Csr, error.to_string()),
            RenewError::Exhausted => Self::new(ErrorCode::Certificate, error.to_string()),
            RenewError::Issue(_) => Self::caused(ErrorCode::Internal, &error),
        }
    }
}

impl From<RestoreRequestError> for ApiError {
    fn from(error: RestoreRequestError) -> Self {
        let code = match error {
            RestoreRequestError::Other { .. } => ErrorCode::NotYours,
            RestoreRequestError::Revoked => ErrorCode::Revoked,
            RestoreRequestError::Time => ErrorCode::Unavailable,
        };
        Self::new(code, error.to_string())
    }
}

impl From<WithdrawError> for ApiError {
    fn from(error: WithdrawError) -> Self {
        let code = match error {
            WithdrawError::Other { .. } => ErrorCode::NotYours,
            WithdrawError::Unknown(_) => ErrorCode::NotFound,
        };
        Self::new(code, error.to_string())
    }
}

impl From<RestoreError> for ApiError {
    fn from(error: RestoreError) -> Self {
        match error {
            RestoreError::Invite(invite) => invite.into(),
            RestoreError::Revoked => Self::new(ErrorCode::Revoked, error.to_string()),
            RestoreError::KeyTaken => Self::new(ErrorCode::Csr, error.to_string()),
            RestoreError::OtherKey => Self::new(ErrorCode::NotYours, error.to_string()),
            RestoreError::Withdrawn => Self::new(ErrorCode::InviteWithdrawn, error.to_string()),
            RestoreError::Issue(_) | RestoreError::Exhausted => Self::caused(ErrorCode::Internal, &error),
        }
    }
}

impl From<OperatorError> for ApiError {
    fn from(error: OperatorError) -> Self {
        let code = match error {
            OperatorError::Taken { .. } | OperatorError::Machine { .. } => ErrorCode::NameTaken,
            OperatorError::LastAdmin { .. } => ErrorCode::PreconditionFailed,
            OperatorError::Unknown { .. } => ErrorCode::NotFound,
        };
        Self::new(code, error.to_string())
    }
}

impl From<OidcSignInError> for ApiError {
    fn from(error: OidcSignInError) -> Self {
        Self::new(ErrorCode::Unauthenticated, error.to_string())
    }
}

impl From<ProviderLinkError> for ApiError {
    fn from(error: ProviderLinkError) -> Self {
        let code = match error {
            ProviderLinkError::Unknown { .. } | ProviderLinkError::NoLink { .. } => ErrorCode::NotFound,
            ProviderLinkError::Taken { .. } => ErrorCode::NameTaken,
            ProviderLinkError::OfGroup { .. } => ErrorCode::PreconditionFailed,
        };
        Self::new(code, error.to_string())
    }
}

impl From<SignInError> for ApiError {
    fn from(error: SignInError) -> Self {
        let code = match error {
            SignInError::Refused | SignInError::Link => ErrorCode::Unauthenticated,
            SignInError::Unknown { .. } => ErrorCode::NotFound,
            SignInError::NothingPending => ErrorCode::PreconditionFailed,
        };
        Self::new(code, error.to_string())
    }
}

impl From<AcknowledgeError> for ApiError {
    fn from(error: AcknowledgeError) -> Self {
        match error {
            AcknowledgeError::Over => Self::new(ErrorCode::IncidentOver, error.to_string()),
        }
    }
}

impl From<SilenceRequestError> for ApiError {
    fn from(error: SilenceRequestError) -> Self {
        let code = match error {
            SilenceRequestError::Silence(SilenceError::Everything) => ErrorCode::SilenceEverything,
            SilenceRequestError::Silence(SilenceError::Matchers | SilenceError::Ends) => ErrorCode::Range,
            SilenceRequestError::TooMany => ErrorCode::Quota,
        };
        Self::new(code, error.to_string())
    }
}

impl From<TestError> for ApiError {
    fn from(error: TestError) -> Self {
        match error {
            TestError::Waiting => Self::new(ErrorCode::UnderWay, error.to_string()),
        }
    }
}

impl From<SampleError> for ApiError {
    fn from(error: SampleError) -> Self {
        let code = match error {
            SampleError::OfHub(_) | SampleError::NotOfGuests(_) | SampleError::NoHost => ErrorCode::Range,
            SampleError::NoGuest(_) => ErrorCode::NotFound,
            SampleError::NoExample(_) => ErrorCode::Internal,
        };
        Self::new(code, error.to_string())
    }
}

impl From<InviteRequestError> for ApiError {
    fn from(error: InviteRequestError) -> Self {
        let code = match error {
            InviteRequestError::Taken { .. } => ErrorCode::NameTaken,
            InviteRequestError::Time => ErrorCode::Unavailable,
        };
        Self::new(code, error.to_string())
    }
}

impl From<PutError> for ApiError {
    fn from(error: PutError) -> Self {
        let mut problem = ErrorBody::new(error.code(), error.to_string());
        if let PutError::Moved { current, .. } = &error {
            problem = problem.with("current", current.to_string());
        }
        if let Some(path) = error.path() {
            problem = problem.with("path", path);
        }
        problem.into()
    }
}

impl From<GrantError> for ApiError {
    fn from(error: GrantError) -> Self {
        match error {
            GrantError::CustomerMissing => Self::new(ErrorCode::Range, error.to_string()),
        }
    }
}

impl From<CustomerError> for ApiError {
    fn from(error: CustomerError) -> Self {
        let code = match error {
            CustomerError::Taken { .. } => ErrorCode::NameTaken,
            CustomerError::TooMany => ErrorCode::Quota,
            CustomerError::Unknown { .. } | CustomerError::OnlyNamed { .. } => ErrorCode::NotFound,
            CustomerError::Moved { .. } => ErrorCode::PreconditionFailed,
            CustomerError::Labels(_) => ErrorCode::Range,
            CustomerError::InUse { .. } => ErrorCode::InUse,
        };
        Self::new(code, error.to_string())
    }
}

impl From<ObjectionError> for ApiError {
    fn from(error: ObjectionError) -> Self {
        let code = match error {
            ObjectionError::Late { .. } => ErrorCode::UnderWay,
            ObjectionError::TooMany => ErrorCode::Quota,
        };
        Self::new(code, error.to_string())
    }
}

impl From<MachineTokenError> for ApiError {
    fn from(error: MachineTokenError) -> Self {
        let code = match error {
            MachineTokenError::Taken { .. } => ErrorCode::NameTaken,
            MachineTokenError::TooMany { .. } | MachineTokenError::TooManySecrets { .. } => ErrorCode::Quota,
            MachineTokenError::Unknown { .. } => ErrorCode::NotFound,
        };
        Self::new(code, error.to_string())
    }
}

impl From<ImageApprovalError> for ApiError {
    fn from(error: ImageApprovalError) -> Self {
        Self::new(error.code(), chain(&error))
    }
}

impl From<JobQueueError> for ApiError {
    fn from(error: JobQueueError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<WorkOrderError> for ApiError {
    fn from(error: WorkOrderError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<EnrollmentRequestError> for ApiError {
    fn from(error: EnrollmentRequestError) -> Self {
        let code = match error {
            EnrollmentRequestError::Unknown => ErrorCode::NotFound,
            EnrollmentRequestError::Refused | EnrollmentRequestError::Spent => ErrorCode::Refused,
            EnrollmentRequestError::Readmit(ReadmitError::Unknown(_)) => ErrorCode::NotFound,
            EnrollmentRequestError::Readmit(ReadmitError::Taken { .. }) => ErrorCode::NameTaken,
            EnrollmentRequestError::Readmit(
                ReadmitError::NotRevoked { .. } | ReadmitError::OtherName { .. } | ReadmitError::Exhausted,
            ) => ErrorCode::PreconditionFailed,
            EnrollmentRequestError::Decided => ErrorCode::PreconditionFailed,
            EnrollmentRequestError::Fingerprint { .. } => ErrorCode::PreconditionFailed,
            EnrollmentRequestError::Taken { .. } => ErrorCode::NameTaken,
            EnrollmentRequestError::Holder { .. } => ErrorCode::PreconditionFailed,
            EnrollmentRequestError::KeyTaken => ErrorCode::Csr,
            EnrollmentRequestError::Key(_) | EnrollmentRequestError::Issue(_) => {
                return Self::caused(ErrorCode::Internal, &error);
            }
        };
        Self::new(code, error.to_string())
    }
}
