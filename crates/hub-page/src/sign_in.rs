//! The page on which a person signs in.

use askama::Template;

use crate::RenderError;
use crate::frame::Frame;

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage<'a> {
    frame: &'a Frame,
    problem: Option<&'a str>,
}

/// The form, and why the last attempt failed.
///
/// # Errors
/// [`RenderError`].
pub fn render(frame: &Frame, problem: Option<&str>) -> Result<String, RenderError> {
    SignInPage { frame, problem }.render()
}
