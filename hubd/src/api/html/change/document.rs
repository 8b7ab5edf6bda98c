//! The whole document by its parts, as text, and its editor.

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::{DOCUMENT_BYTES_MAX, Desired, DesiredDocument, Reason};
use holdfast_protocol::generation::Generation;
use holdfast_protocol::json;
use holdfast_protocol::operator::DesiredVersion;
use hub_page::conflict::{self, Conflict};
use hub_page::document::{self, Editor, EditorProblem, MayChange, Newest};
use hub_page::form::problem::REASON;
use hub_page::frame::{Frame, Section};
use hub_page::json_text::line_of;
use hub_page::review::{self, Review, WayBack};
use net::server::Ids;
use uuid::Uuid;

use super::collision::{NewerVersions, own_diff};
use super::part::{carried, newest};
use super::submission::{Step, Submission, frame_of, or_problem};
use crate::api::Hub;
use crate::api::authorize::may_call;
use crate::api::document_change::{Basis, Mode, Outcome, parsed, put_or_judge};
use crate::api::hosts::host_ref;
use crate::api::html::answer::{page, problem, status, to_address};
use crate::api::html::person::{Person, stranger};
use crate::api::problem::ApiError;
use crate::domain::desired::IfMatch;
use crate::domain::host::HostRef;
use crate::store::Put;

/// A text of JSON has many quotes and line ends, which take three bytes each in a form.
const TEXT_FORM_MAX: usize = 3 * DOCUMENT_BYTES_MAX + 64 * 1024;

/// A page about the whole document of a host.
pub(super) struct DocumentOfHost {
    pub hub: Arc<Hub>,
    pub person: Person,
    /// The host as the path names it.
    pub name: String,
    pub host: HostRef,
    pub frame: Frame,
}

impl FromRequestParts<Arc<Hub>> for DocumentOfHost {
    type Rejection = Response;
    async fn from_request_parts(parts: &mut Parts, hub: &Arc<Hub>) -> Result<Self, Response> {
        let refuse = |error| problem(&stranger(hub, Section::Other), error);
        let person = Person::from_request_parts(parts, hub).await.map_err(refuse)?;
        let frame = frame_of(hub, &person);
        let named = Path::<HashMap<String, String>>::from_request_parts(parts, hub).await;
        let name = named.ok().and_then(|Path(mut named)| named.remove("host")).unwrap_or_default();
        let host = host_ref(&name).map_err(|error| problem(&frame, error))?;
        Ok(Self { hub: Arc::clone(hub), person, name, host, frame })
    }
}

impl DocumentOfHost {
    pub(super) fn may_change(&self) -> MayChange {
        match may_call(&self.person.operator, &Method::PUT, "/v1/hosts/{host}/desired") {
            true => MayChange::Yes,
            false => MayChange::No,
        }
    }

    /// Judges or puts the next document, and goes on from there.
    pub(super) async fn finish(
        &self,
        ids: Ids,
        sent: &Submission,
        change: Change<'_>,
    ) -> Result<Response, ApiError> {
        let call = (change.verb, format!("/v1/hosts/{}/desired{}", self.name, change.end));
        let head = sent.head(&self.person, ids, call)?;
        let mode = if sent.step == Step::Apply { Mode::Apply } else { Mode::DryRun };
        // What a repeat is compared by: the values without the order in which a browser sent them.
        let body: String = sent.values.iter().map(|(name, value)| format!("{name} {value}\n")).collect();
        match put_or_judge(&self.hub, (head, body.as_bytes()), change.put, mode).await? {
            Outcome::Put(done) => {
                to_address(&format!("/hosts/{}/desired/history/{}", self.name, done.version.generation))
            }
            Outcome::Judged(preview) => {
                let shown = Review {
                    name: change.name,
                    host: &self.name,
                    action: change.action,
                    preview: &preview,
                    fields: &carried(sent),
                    key: &Uuid::new_v4().to_string(),
                    way_back: change.way_back,
                };
                Ok(page(StatusCode::OK, review::render(&self.frame, &shown)))
            }
        }
    }
}

/// A change of the whole document.
pub(super) struct Change<'a> {
    pub verb: Method,
    /// The end of the call's path.
    pub end: &'static str,
    pub name: &'a str,
    pub action: &'a str,
    pub put: Put,
    pub way_back: WayBack,
}

pub(super) async fn show(one: DocumentOfHost) -> Response {
    let shown = async {
        let missing = || ApiError::not_found("host");
        let version = one.hub.store.desired(one.host.clone()).await?.ok_or_else(missing)?;
        let detail = one.hub.store.host(one.host.clone(), one.hub.clock.now()).await?.ok_or_else(missing)?;
        // One that this hub cannot read any more is shown as its text alone.
        let desired = version.as_ref().and_then(|version| parsed(version).ok());
        let newest = version
            .as_ref()
            .map(|version| Newest { version, document: desired.as_ref().map(Desired::document) });
        let standing = (detail.host.held, one.may_change());
        Ok(page(StatusCode::OK, document::render(&one.frame, &one.name, newest.as_ref(), standing)))
    };
    or_problem(&one.frame, shown.await)
}

/// A text that a person can edit: as it was put, or with line ends where it has none.
fn text_of(version: &DesiredVersion) -> String {
    let is_spaced = version.document.trim_end().contains('\n');
    let written = parsed(version).ok().filter(|_| !is_spaced);
    let written = written.and_then(|desired| serde_json::to_string_pretty(desired.document()).ok());
    written.unwrap_or_else(|| version.document.clone())
}

fn editor(
    one: &DocumentOfHost,
    seen: Generation,
    (text, reason): (&str, &str),
    refused: Option<(StatusCode, EditorProblem)>,
) -> Response {
    let (code, problem) = refused.map_or((StatusCode::OK, None), |(code, problem)| (code, Some(problem)));
    page(code, document::editor(&one.frame, &Editor { host: &one.name, seen, text, reason, problem }))
}

pub(super) async fn form(one: DocumentOfHost) -> Response {
    let opened = async {
        let seen = newest(&one.hub, &one.host).await?;
        let text = match one.hub.store.desired(one.host.clone()).await?.flatten() {
            Some(version) => text_of(&version),
            None => {
                let basis = Basis::read(&one.hub, one.host.clone(), IfMatch(seen)).await?;
                serde_json::to_string_pretty(&basis.document).map_err(|error| {
                    ApiError::internal(format!("an empty document cannot be written: {error}"))
                })?
            }
        };
        Ok(editor(&one, seen, (&text, ""), None))
    };
    or_problem(&one.frame, opened.await)
}

pub(super) async fn submit(one: DocumentOfHost, ids: Ids, body: Body) -> Response {
    or_problem(&one.frame, handle(&one, ids, body).await)
}

async fn handle(one: &DocumentOfHost, ids: Ids, body: Body) -> Result<Response, ApiError> {
    let sent = Submission::read(&one.hub, &one.person, body, TEXT_FORM_MAX).await?;
    let (text, reason) = (sent.values.get("text"), sent.values.get(REASON));
    if sent.step == Step::Edit {
        return Ok(editor(one, sent.seen.0, (text, reason), None));
    }
    let basis = Basis::read(&one.hub, one.host.clone(), sent.seen).await?;
    let why = match Reason::try_from(reason.to_owned()) {
        Ok(why) => why,
        Err(error) => {
            let problem = EditorProblem { message: error.to_string(), line: None, is_of_reason: true };
            return Ok(editor(one, sent.seen.0, (text, reason), Some((StatusCode::BAD_REQUEST, problem))));
        }
    };
    let next = json::parse::<DesiredDocument>("the desired document", text.as_bytes(), DOCUMENT_BYTES_MAX);
    let put = next.map_err(ApiError::from).and_then(|next| basis.put(why, next));
    let finished = match put {
        Ok(put) => {
            let own = put.desired.document().clone();
            let change = Change {
                verb: Method::PUT,
                end: "",
                name: &format!("document of {}", one.name),
                action: &format!("/hosts/{}/desired/edit", one.name),
                put,
                way_back: WayBack::Form,
            };
            match one.finish(ids, &sent, change).await {
                Err(error) if error.code() == ErrorCode::PreconditionFailed => {
                    return collision(one, &basis, &sent, own).await;
                }
                finished => finished,
            }
        }
        Err(error) => Err(error),
    };
    finished.or_else(|error| {
        let code = status(error.code());
        if code.is_server_error() || code == StatusCode::TOO_MANY_REQUESTS {
            return Err(error);
        }
        let problem = refusal(text, error);
        Ok(editor(one, sent.seen.0, (text, reason), Some((code, problem))))
    })
}

/// The refusal of a text, with the line that it is about.
fn refusal(text: &str, error: ApiError) -> EditorProblem {
    let path = error.path().map(str::to_owned);
    let message = error.shown().1;
    // A path says more than the parser's own place, which may be later than the mistake.
    let place = |(_, rest): (&str, &str)| rest.split(' ').next().and_then(|number| number.parse().ok());
    let line = match path {
        Some(path) => line_of(text, &path),
        None => message.rsplit_once(" at line ").and_then(place),
    };
    let end = message.rfind(" at line ").filter(|_| line.is_some());
    let message = end.and_then(|end| message.get(..end)).unwrap_or(&message).to_owned();
    EditorProblem { message, line, is_of_reason: false }
}

/// Both changes, and the way on with one's own text over the newest version.
async fn collision(
    one: &DocumentOfHost,
    basis: &Basis,
    sent: &Submission,
    own: DesiredDocument,
) -> Result<Response, ApiError> {
    let newer = NewerVersions::read(&one.hub, one.host.clone(), &basis.document).await?;
    let own = own_diff(&basis.document, own);
    let mut next = sent.values.clone();
    next.set("generation", &newer.generation().to_string());
    let shown = Conflict {
        name: "the text",
        host: &one.name,
        action: &format!("/hosts/{}/desired/edit", one.name),
        seen: sent.seen.0,
        newest: newer.generation(),
        between: &newer.between,
        theirs: &newer.theirs,
        own: own.as_ref(),
        collisions: &[],
        next: Some(&next),
    };
    Ok(page(StatusCode::PRECONDITION_FAILED, conflict::render(&one.frame, &shown)))
}
