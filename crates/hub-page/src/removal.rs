//! Confirmation page for removing a part of a document.

use askama::Template;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::resource::users::PartUser;

use crate::RenderError;
use crate::edit::ProblemLine;
use crate::frame::Frame;

/// What the page is made of.
pub struct Removal<'a> {
    pub name: &'a str,
    pub host: &'a str,
    pub action: &'a str,
    pub seen: Generation,
    /// What else in the document names it.
    pub users: &'a [PartUser],
    /// What the host still has of it, and the commands that let it go.
    pub on_host: Option<&'a str>,
    pub reason: &'a str,
    /// Why the last attempt was refused.
    pub problem: Option<RemovalProblem<'a>>,
}

/// A refusal, and what it is about.
#[derive(Clone, Copy, Debug)]
pub struct RemovalProblem<'a> {
    pub about: RemovalField,
    pub message: &'a str,
}

/// The fields of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemovalField {
    Reason,
    OnHost,
}

#[derive(Template)]
#[template(path = "removal.html")]
struct RemovalPage<'a> {
    frame: &'a Frame,
    removal: &'a Removal<'a>,
    problems: Vec<ProblemLine>,
    is_reason_bad: bool,
}

/// # Errors
/// [`RenderError`].
pub fn render(frame: &Frame, removal: &Removal<'_>) -> Result<String, RenderError> {
    let line = |problem: RemovalProblem<'_>| {
        // The box is there only while the host has the part.
        let (target, label) = match problem.about {
            RemovalField::OnHost if removal.on_host.is_some() => ("field-on_host", "On the host"),
            RemovalField::OnHost | RemovalField::Reason => ("field-reason", "Reason"),
        };
        let (target, label) = (Some(target.to_owned()), label.to_owned());
        ProblemLine { target, label, message: problem.message.to_owned() }
    };
    let about = removal.problem.map(|problem| problem.about);
    let problems = removal.problem.map(line).into_iter().collect();
    let is_reason_bad = about == Some(RemovalField::Reason);
    RemovalPage { frame, removal, problems, is_reason_bad }.render()
}
