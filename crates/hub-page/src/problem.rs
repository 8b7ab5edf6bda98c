//! The page that says why another one cannot be shown.

use askama::Template;

use crate::RenderError;
use crate::frame::Frame;

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage<'a> {
    frame: &'a Frame,
    title: &'a str,
    message: &'a str,
    request: &'a str,
}

/// # Errors
/// [`RenderError`].
pub fn render(frame: &Frame, title: &str, message: &str, request: &str) -> Result<String, RenderError> {
    ProblemPage { frame, title, message, request }.render()
}
