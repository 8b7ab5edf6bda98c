//! Pages by which a host comes in: its invite, and its request.

use askama::Template;
use holdfast_protocol::operator::{EnrollmentRequestState, EnrollmentRequestView, InviteCreated};

use crate::RenderError;
use crate::edit::ProblemLine;
use crate::frame::{Frame, When};

#[derive(Template)]
#[template(path = "invite.html")]
struct InvitePage<'a> {
    frame: &'a Frame,
    name: &'a str,
    problems: Vec<ProblemLine>,
}

fn problem(field: &str, label: &str, message: Option<&str>) -> Vec<ProblemLine> {
    let line = |message: &str| ProblemLine {
        target: Some(format!("field-{field}")),
        label: label.to_owned(),
        message: message.to_owned(),
    };
    message.map(line).into_iter().collect()
}

/// The form of an invite, with why the last one was refused.
///
/// # Errors
/// [`RenderError`].
pub fn invite(frame: &Frame, name: &str, message: Option<&str>) -> Result<String, RenderError> {
    InvitePage { frame, name, problems: problem("host_name", "Name", message) }.render()
}

#[derive(Template)]
#[template(path = "invited.html")]
struct InvitedPage<'a> {
    frame: &'a Frame,
    name: &'a str,
    code: &'a str,
    ends: String,
}

/// An invite that was made. Its line is shown this once.
///
/// # Errors
/// [`RenderError`].
pub fn invited(frame: &Frame, name: &str, made: &InviteCreated) -> Result<String, RenderError> {
    let ends = holdfast_protocol::time_text::stamp(made.expires_at);
    InvitedPage { frame, name, code: made.code.expose(), ends }.render()
}

/// What a person compared and typed.
#[derive(Clone, Copy, Debug, Default)]
pub struct ApprovalFields<'a> {
    pub name: &'a str,
    pub fingerprint: &'a str,
}

#[derive(Template)]
#[template(path = "enrollment_request.html")]
struct RequestPage<'a> {
    frame: &'a Frame,
    id: String,
    claimed: String,
    first: When,
    typed: ApprovalFields<'a>,
    problems: Vec<ProblemLine>,
    is_pending: bool,
    state: &'static str,
    returns: bool,
}

/// A request, with the form by which it is decided. The hub's own fingerprint of it is not shown: it is read on the host.
///
/// # Errors
/// [`RenderError`].
pub fn request(
    frame: &Frame,
    request: &EnrollmentRequestView,
    typed: ApprovalFields<'_>,
    message: Option<&str>,
) -> Result<String, RenderError> {
    let claimed = request.claimed_name.to_string();
    let page = RequestPage {
        frame,
        id: request.id.to_string(),
        first: frame.when(request.first_at),
        typed: ApprovalFields { name: if typed.name.is_empty() { &claimed } else { typed.name }, ..typed },
        claimed: claimed.clone(),
        problems: problem("fingerprint", "Fingerprint", message),
        is_pending: request.state == EnrollmentRequestState::Pending,
        state: match request.state {
            EnrollmentRequestState::Pending => "undecided",
            EnrollmentRequestState::Approved => "approved",
            EnrollmentRequestState::Refused => "refused",
        },
        returns: request.holder.is_some() || !request.revoked.is_empty(),
    };
    page.render()
}
