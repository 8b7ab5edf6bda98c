//! Tokens of machines: their list, a new one, its secret.

use holdfast_protocol::machine_token::{TokenMade, TokenView};

use crate::RenderError;
use crate::frame::Frame;
use crate::operators::{TypedGrant, grant_fields};
use crate::settings::{SettingsPage, tabs, up};
use crate::sheet::{Form, Notice, Part, Sheet, ShownOnce};
use crate::table::{Button, Cell, Table};
use crate::words::{Tone, Word};

/// # Errors
/// [`RenderError`].
pub fn render(
    frame: &Frame,
    open: &[SettingsPage],
    tokens: &[TokenView],
    typed: &TypedGrant,
    notice: Notice<'_>,
) -> Result<String, RenderError> {
    let rows = tokens.iter().map(|one| {
        let button =
            |path: &str, text| Button::new(frame, format!("/tokens/{}/{path}", one.name), text, &one.name);
        let is_over = one.revoked_at.is_some() || one.expires_at.is_none_or(|at| at <= frame.now);
        let buttons = match one.revoked_at {
            Some(_) => Vec::new(),
            None => vec![button("rotate", "New secret"), button("revoke", "Revoke")],
        };
        let word = match one.revoked_at {
            Some(_) => Word::new("revoked", Tone::Plain),
            None if is_over => Word::new("ended", Tone::Warning),
            None => Word::new("in force", Tone::Good),
        };
        [
            Cell::text(&one.name),
            Cell::state(word),
            Cell::text(one.role.as_str()),
            Cell::text(&one.scope),
            Cell::text(&one.maker),
            Cell::when_or(one.used_at.map(|at| frame.when(at)), "never"),
            Cell::text(one.expires_at.map(|at| frame.when(at).exact).unwrap_or_default()),
            Cell::buttons(buttons),
        ]
    });
    let heads = ["Token", "State", "Role", "Scope", "Made by", "Used", "Ends", "Action"];
    let table = Table::new("Tokens of machines", heads, rows);
    let mut sheet = Sheet::new("Tokens of machines");
    sheet = sheet.with_tabs(tabs(open), SettingsPage::Tokens.path()).with_notice(notice);
    sheet.parts.push(Part::of_table("list", "", table, "No token was made."));
    let mut part = Part::new("new", "A new token");
    part.note = Some("It is at most what you are yourself, and it ends with you.".to_owned());
    let form = Form::new("new", "/tokens", "Make", grant_fields(typed)).with_hidden("key", &typed.key);
    part.forms.push(form);
    sheet.parts.push(part);
    sheet.render(frame)
}

/// The secret of a token, which is shown this once.
///
/// # Errors
/// [`RenderError`].
pub fn made(frame: &Frame, made: &TokenMade) -> Result<String, RenderError> {
    let mut sheet = Sheet::new(format!("Token {}", made.name));
    sheet.up = Some(up());
    let ends = frame.when(made.expires_at).exact;
    let earlier = made.earlier_until.map_or_else(String::new, |at| {
        format!(" The secrets before it go on until {}.", frame.when(at).exact)
    });
    sheet.shown_once = Some(ShownOnce {
        heading: "Its secret".to_owned(),
        secret: made.token.expose().to_owned(),
        says: format!("It ends at {ends}.{earlier}"),
    });
    sheet.render(frame)
}
