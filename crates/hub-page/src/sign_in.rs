//! The page on which a person signs in.

use askama::Template;

use crate::RenderError;
use crate::frame::Frame;

/// What is offered.
#[derive(Clone, Copy, Debug, Default)]
pub struct SignInWays<'a> {
    /// What the provider is called, where there is one.
    pub provider: Option<&'a str>,
    /// Why the last attempt failed.
    pub problem: Option<&'a str>,
}

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage<'a> {
    frame: &'a Frame,
    ways: &'a SignInWays<'a>,
}

#[derive(Template)]
#[template(path = "entered.html")]
struct EnteredPage<'a> {
    frame: &'a Frame,
}

/// The form, and the button of a provider.
///
/// # Errors
/// [`RenderError`].
pub fn render(frame: &Frame, ways: &SignInWays<'_>) -> Result<String, RenderError> {
    SignInPage { frame, ways }.render()
}

/// The step between a provider and the first page: the browser goes on by itself.
///
/// # Errors
/// [`RenderError`].
pub fn entered(frame: &Frame) -> Result<String, RenderError> {
    EnteredPage { frame }.render()
}
