//! A change that another one came before.

use askama::Template;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::operator::DesiredVersion;

use crate::RenderError;
use crate::form::merge::Collision;
use crate::form::values::Values;
use crate::frame::{Frame, When};
use crate::review::{ChangeRow, rows};

/// What the page is made of.
pub struct Conflict<'a> {
    pub name: &'a str,
    pub host: &'a str,
    pub action: &'a str,
    pub seen: Generation,
    pub newest: Generation,
    /// The versions that came between, the newest first.
    pub between: &'a [DesiredVersion],
    /// What they changed in the whole document.
    pub theirs: &'a holdfast_protocol::resource::DocumentDiff,
    /// What this change would have made of the document that was seen; none where it has no fields.
    pub own: Option<&'a holdfast_protocol::resource::DocumentDiff>,
    /// Fields of the part that they changed.
    pub collisions: &'a [Collision],
    /// What the form goes on with; none where the part is gone.
    pub next: Option<&'a Values>,
}

struct VersionRow {
    number: String,
    at: When,
    author: String,
    reason: String,
}

#[derive(Template)]
#[template(path = "conflict.html")]
struct ConflictPage<'a> {
    frame: &'a Frame,
    conflict: &'a Conflict<'a>,
    versions: Vec<VersionRow>,
    rows: Vec<ChangeRow>,
    own: Vec<ChangeRow>,
}

/// # Errors
/// [`RenderError`].
pub fn render(frame: &Frame, conflict: &Conflict<'_>) -> Result<String, RenderError> {
    let version = |version: &DesiredVersion| VersionRow {
        number: version.generation.to_string(),
        at: frame.when(version.put_at),
        author: version.author.to_string(),
        reason: version.reason.as_str().to_owned(),
    };
    let page = ConflictPage {
        frame,
        conflict,
        versions: conflict.between.iter().map(version).collect(),
        rows: rows(conflict.theirs),
        own: conflict.own.map(rows).unwrap_or_default(),
    };
    page.render()
}
