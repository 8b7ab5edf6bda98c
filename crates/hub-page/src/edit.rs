//! The form of one part of a document.

use askama::Template;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::resource::PartKind;

use crate::RenderError;
use crate::form::merge::Collision;
use crate::form::name_choices::KnownNames;
use crate::form::parts::{form_of, name_of};
use crate::form::problem::{Problem, REASON};
use crate::form::values::Values;
use crate::form::view::{FilledForm, GroupView, id};
use crate::frame::Frame;

/// Whether the part is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Novelty {
    New,
    Existing,
}

/// A volume of the guest that is changed.
pub struct VolumeLink {
    pub name: String,
    pub words: String,
}

/// What the form is made of.
pub struct Edit<'a> {
    pub kind: PartKind,
    pub novelty: Novelty,
    /// What is changed, such as `guest web-1`.
    pub name: &'a str,
    pub host: &'a str,
    /// Where the form is sent, which is also the address of the page.
    pub action: &'a str,
    /// The address of the part itself.
    pub base: &'a str,
    pub values: &'a Values,
    /// The generation of the document that was seen.
    pub seen: Generation,
    pub known: &'a KnownNames,
    pub problems: &'a [Problem],
    /// What somebody else changed and this form took over.
    pub taken_over: &'a [Collision],
    /// Volumes of a guest, which have forms of their own.
    pub volumes: &'a [VolumeLink],
}

/// A line of the summary of mistakes.
pub(crate) struct ProblemLine {
    pub target: Option<String>,
    pub label: String,
    pub message: String,
}

#[derive(Template)]
#[template(path = "edit.html")]
struct EditPage<'a> {
    frame: &'a Frame,
    title: String,
    edit: &'a Edit<'a>,
    groups: Vec<GroupView>,
    problems: Vec<ProblemLine>,
    reason: &'a str,
    reason_problem: Option<&'a str>,
    uid: &'a str,
    is_new: bool,
    has_volumes: bool,
}

/// # Errors
/// [`RenderError`].
pub fn render(frame: &Frame, edit: &Edit<'_>) -> Result<String, RenderError> {
    let is_new = edit.novelty == Novelty::New;
    let filled = FilledForm {
        kind: edit.kind,
        form: form_of(edit.kind),
        values: edit.values,
        known: edit.known,
        problems: edit.problems,
        fixed: name_of(edit.kind).filter(|_| !is_new),
    };
    let reason_problem = edit.problems.iter().find(|problem| problem.field == Some(REASON));
    let title = if is_new { format!("New {}", edit.kind.as_str()) } else { format!("Change {}", edit.name) };
    let page = EditPage {
        frame,
        title,
        edit,
        groups: filled.groups(),
        problems: lines(edit.kind, edit.problems),
        reason: edit.values.get(REASON),
        reason_problem: reason_problem.map(|problem| problem.message.as_str()),
        uid: edit.values.get("uid"),
        is_new,
        has_volumes: edit.kind == PartKind::Guest && !is_new,
    };
    page.render()
}

/// The summary, with a link to each field.
pub(crate) fn lines(kind: PartKind, problems: &[Problem]) -> Vec<ProblemLine> {
    let label = |path: &str| {
        let fields = form_of(kind).iter().flat_map(|group| group.fields);
        let label = fields.filter(|field| field.path == path).map(|field| field.label).next();
        label.unwrap_or("Reason").to_owned()
    };
    let line = |problem: &Problem| ProblemLine {
        target: problem.field.map(id),
        label: problem.field.map(label).unwrap_or_default(),
        message: problem.message.clone(),
    };
    problems.iter().map(line).collect()
}
