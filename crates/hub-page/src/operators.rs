//! Operators: who may sign in, and a new one.

use holdfast_protocol::operator::{OperatorMade, OperatorView};
use holdfast_protocol::sign_in::SignInLink;

use crate::RenderError;
use crate::frame::Frame;
use crate::settings::{SettingsPage, tabs, up};
use crate::sheet::{Field, Form, Notice, Part, Sheet, ShownOnce};
use crate::table::{Button, Cell, Table};
use crate::words::{Tone, Word};

/// A person or a token as it was typed.
#[derive(Clone, Debug, Default)]
pub struct TypedGrant {
    pub name: String,
    pub role: String,
    pub scope: String,
    pub days: String,
    /// Makes the same request twice one request.
    pub key: String,
}

const ROLES: [(&str, &str); 4] =
    [("viewer", "viewer"), ("operator", "operator"), ("admin", "admin"), ("customer", "customer")];

/// The fields of a role and a scope.
pub(crate) fn grant_fields(typed: &TypedGrant) -> Vec<Field> {
    vec![
        Field::text("name", "Name", &typed.name).required(),
        Field::choice("role", "Role", &ROLES, &typed.role),
        Field::text("scope", "Scope", &typed.scope)
            .with_hint("none for all; customer=NAME, or labels of hosts: site=north"),
        Field::number("days", "Token ends after days", &typed.days).required(),
    ]
}

/// # Errors
/// [`RenderError`].
pub fn render(
    frame: &Frame,
    open: &[SettingsPage],
    people: &[OperatorView],
    typed: &TypedGrant,
    notice: Notice<'_>,
) -> Result<String, RenderError> {
    let rows = people.iter().map(|one| {
        let button =
            |path: &str, text| Button::new(frame, format!("/operators/{}/{path}", one.name), text, &one.name);
        let buttons = match one.revoked_at {
            Some(_) => Vec::new(),
            None => vec![button("sign-in-link", "Sign-in link"), button("revoke", "Let go")],
        };
        [
            Cell::text(&one.name),
            Cell::text(one.role.as_str()),
            Cell::text(&one.scope),
            Cell::state(match one.revoked_at {
                Some(_) => Word::new("let go", Tone::Plain),
                None => Word::new("here", Tone::Good),
            }),
            Cell::when_or(one.expires_at.map(|at| frame.when(at)), "no token"),
            Cell::buttons(buttons),
        ]
    });
    let heads = ["Person", "Role", "Scope", "State", "Token ends", "Action"];
    let table = Table::new("People", heads, rows);
    let mut sheet =
        Sheet::new("People").with_tabs(tabs(open), SettingsPage::Operators.path()).with_notice(notice);
    sheet.parts.push(Part::of_table("list", "", table, "Nobody is below you."));
    let mut part = Part::new("new", "A new person");
    part.note = Some(
        "They get a token for holdfast login; a sign-in link lets them set a password for this page."
            .to_owned(),
    );
    let form = Form::new("new", "/operators", "Add", grant_fields(typed)).with_hidden("key", &typed.key);
    part.forms.push(form);
    sheet.parts.push(part);
    sheet.render(frame)
}

/// The token of a new person.
///
/// # Errors
/// [`RenderError`].
pub fn made(frame: &Frame, made: &OperatorMade) -> Result<String, RenderError> {
    let mut sheet = Sheet::new(format!("{} was added", made.name));
    sheet.up = Some(up());
    sheet.shown_once = Some(ShownOnce {
        heading: format!("Token of {}", made.name),
        secret: made.token.expose().to_owned(),
        says: format!("It ends at {}. It is for holdfast login.", frame.when(made.expires_at).exact),
    });
    sheet.render(frame)
}

/// The link of a person.
///
/// # Errors
/// [`RenderError`].
pub fn link(frame: &Frame, link: &SignInLink) -> Result<String, RenderError> {
    let mut sheet = Sheet::new(format!("Sign-in link for {}", link.name));
    sheet.up = Some(up());
    sheet.shown_once = Some(ShownOnce {
        heading: "The link".to_owned(),
        secret: link.url.expose().to_owned(),
        says: format!(
            "It works once, until {}. Who opens it sets a password.",
            frame.when(link.expires_at).exact
        ),
    });
    sheet.render(frame)
}

/// Asks before a person or a token ends.
///
/// # Errors
/// [`RenderError`].
pub fn confirm(frame: &Frame, title: &str, says: &str, action: &str) -> Result<String, RenderError> {
    let mut sheet = Sheet::new(title);
    sheet.up = Some(up());
    let mut part = Part::new("confirm", "");
    part.note = Some(says.to_owned());
    part.forms.push(Form::new("confirm", action, "Yes, do it", Vec::new()).with_hidden("confirmed", "yes"));
    sheet.parts.push(part);
    sheet.render(frame)
}
