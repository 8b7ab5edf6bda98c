//! Settings: operators, tokens of machines, channels, certificates.

use holdfast_protocol::alert::{DeliveryOutcome, DeliveryView, ReceiverView};
use holdfast_protocol::operator::HostView;

use crate::RenderError;
use crate::frame::Frame;
use crate::sheet::{Link, Notice, Part, Sheet};
use crate::table::{Button, Cell, Table};
use crate::words::{Tone, Word};

/// A page of the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingsPage {
    Operators,
    Tokens,
    Receivers,
    Deliveries,
    Certificates,
}

impl SettingsPage {
    pub const ALL: [Self; 5] =
        [Self::Operators, Self::Tokens, Self::Receivers, Self::Deliveries, Self::Certificates];

    /// Its address. The call of the same path behind `/v1` says who may open it; [`Self::Certificates`] is of hosts.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Self::Operators => "/operators",
            Self::Tokens => "/tokens",
            Self::Receivers => "/receivers",
            Self::Deliveries => "/deliveries",
            Self::Certificates => "/certificates",
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::Operators => "People",
            Self::Tokens => "Tokens of machines",
            Self::Receivers => "Channels",
            Self::Deliveries => "Deliveries",
            Self::Certificates => "Certificates",
        }
    }

    const fn says(self) -> &'static str {
        match self {
            Self::Operators => "Who may sign in, and what they may do.",
            Self::Tokens => "What programs call the hub with.",
            Self::Receivers => "Who is sent alerts, and whether it works.",
            Self::Deliveries => "What became of each notice.",
            Self::Certificates => "The hub's authority, and when certificates of hosts end.",
        }
    }
}

/// The tabs that lead somewhere for this person.
pub(crate) fn tabs(open: &[SettingsPage]) -> Vec<(&'static str, &'static str)> {
    open.iter().map(|page| (page.path(), page.text())).collect()
}

/// The pages of the section that the person may open.
///
/// # Errors
/// [`RenderError`].
pub fn index(frame: &Frame, open: &[SettingsPage]) -> Result<String, RenderError> {
    let rows = open.iter().map(|page| [Cell::link(page.path(), page.text()), Cell::note(page.says())]);
    let own =
        [Cell::link("/account", "Your sign-in"), Cell::note("Password, authenticator and open sessions.")];
    let mut sheet = Sheet::new("Settings");
    let table = Table::new("Settings", ["Settings", "What they are"], rows.chain([own]));
    sheet.parts.push(Part::of_table("list", "", table, ""));
    sheet.render(frame)
}

/// Channels of alerts.
///
/// # Errors
/// [`RenderError`].
pub fn receivers(
    frame: &Frame,
    open: &[SettingsPage],
    receivers: &[ReceiverView],
    notice: Notice<'_>,
) -> Result<String, RenderError> {
    let may_change = frame.may_change();
    let rows = receivers.iter().map(|one| {
        let test = Button::new(frame, format!("/receivers/{}/test", one.name), "Test", &one.name);
        let last = one.last.as_ref();
        [
            Cell::text(&one.name),
            Cell::text(one.kind.as_str()),
            Cell::state(health(one)),
            Cell::number(one.waiting),
            Cell::when_or(last.map(|last| frame.when(last.at)), "never"),
            Cell::note(
                one.failure.clone().or_else(|| last.and_then(|last| last.remark.clone())).unwrap_or_default(),
            ),
            Cell::buttons(if may_change { vec![test] } else { Vec::new() }),
        ]
    });
    let heads = ["Channel", "Kind", "State", "Waiting", "Last notice", "What it answered", "Action"];
    let table = Table::new("Channels", heads, rows);
    let mut sheet =
        Sheet::new("Channels").with_tabs(tabs(open), SettingsPage::Receivers.path()).with_notice(notice);
    if let Some(settings) = receivers.iter().find_map(|one| one.settings) {
        let since = frame.when(settings.since).exact;
        sheet.lead = Some(match settings.changed_at {
            Some(at) => format!(
                "The settings of {since} are in force. hub.toml was written at {} and is not: systemctl reload hubd.",
                frame.when(at).exact
            ),
            None => {
                format!("The settings of {since} are in force. They are in hub.toml, on the hub's machine.")
            }
        });
    }
    sheet.parts.push(Part::of_table(
        "list",
        "",
        table,
        "hub.toml names no channel: alerts are only shown here.",
    ));
    sheet.render(frame)
}

fn health(one: &ReceiverView) -> Word {
    if one.failure.is_some() {
        return Word::new("fails", Tone::Bad);
    }
    match one.last.as_ref().map(|last| last.outcome) {
        Some(DeliveryOutcome::Refused | DeliveryOutcome::GivenUp) => Word::new("refused the last", Tone::Bad),
        Some(DeliveryOutcome::Delivered | DeliveryOutcome::Combined | DeliveryOutcome::Cancelled) => {
            Word::new("works", Tone::Good)
        }
        None => Word::new("never tried", Tone::Warning),
    }
}

/// What became of notices.
///
/// # Errors
/// [`RenderError`].
pub fn deliveries(
    frame: &Frame,
    open: &[SettingsPage],
    deliveries: &[DeliveryView],
    next: Option<&str>,
) -> Result<String, RenderError> {
    let rows = deliveries.iter().map(|one| {
        let tone = match one.outcome {
            DeliveryOutcome::Delivered | DeliveryOutcome::Combined => Tone::Good,
            DeliveryOutcome::Cancelled => Tone::Plain,
            DeliveryOutcome::Refused | DeliveryOutcome::GivenUp => Tone::Bad,
        };
        [
            Cell::number(one.number),
            Cell::when(frame.when(one.at)),
            Cell::text(&one.receiver),
            Cell::state(Word::new(one.outcome.as_str().replace('_', " "), tone)),
            Cell::number(one.tries),
            Cell::note(&one.title).with_small(one.remark.clone()),
        ]
    });
    let heads = ["Number", "Ended", "Channel", "Outcome", "Tries", "Notice"];
    let table = Table::new("Deliveries", heads, rows);
    let mut sheet = Sheet::new("Deliveries").with_tabs(tabs(open), SettingsPage::Deliveries.path());
    sheet = sheet.with_next(next, &[]);
    sheet.parts.push(Part::of_table("list", "", table, "Nothing was sent yet."));
    sheet.render(frame)
}

/// The hub's authority, as it is public.
pub struct AuthorityFacts {
    /// The pin of the CA that the hub serves with.
    pub serving: String,
    /// The CA that follows it or that it goes back from, where its change is under way.
    pub change: Option<String>,
    /// The CA before it.
    pub former: Option<String>,
}

/// Authority and certificates of hosts, those that end first.
///
/// # Errors
/// [`RenderError`].
pub fn certificates(
    frame: &Frame,
    open: &[SettingsPage],
    authority: &AuthorityFacts,
    hosts: &[HostView],
    next: Option<&str>,
) -> Result<String, RenderError> {
    let mut hosts: Vec<&HostView> = hosts.iter().collect();
    hosts.sort_by_key(|host| host.certificate_ends_at);
    let rows = hosts.into_iter().map(|host| {
        let ends = host.certificate_ends_at;
        let days = ends.duration_since(frame.now).as_hours() / 24;
        let word = match days {
            _ if ends <= frame.now => Word::new("ended", Tone::Bad),
            ..=2 => Word::new("ends soon", Tone::Warning),
            _ => Word::new("good", Tone::Good),
        };
        [
            Cell::link(format!("/hosts/{}", host.name), &host.name),
            Cell::state(word),
            Cell::text(frame.when(ends).exact),
            Cell::number(days.max(0)),
        ]
    });
    let table = Table::new("Certificates of hosts", ["Host", "State", "Ends", "Days left"], rows);
    let mut sheet = Sheet::new("Certificates").with_tabs(tabs(open), SettingsPage::Certificates.path());
    sheet = sheet.with_next(next, &[]);
    sheet.facts = vec![("Authority", Cell::code(&authority.serving))];
    sheet.facts.extend(authority.change.as_ref().map(|pin| ("Change under way, with", Cell::code(pin))));
    sheet.facts.extend(authority.former.as_ref().map(|pin| ("Authority before it", Cell::code(pin))));
    let part = Part::of_table("hosts", "Certificates of hosts", table, "No host yet.");
    sheet.parts.push(part.with_note("A host renews its certificate by itself in good time."));
    sheet.parts.push(authority_lines());
    sheet.render(frame)
}

fn authority_lines() -> Part {
    let mut part = Part::new("change", "Change the authority");
    part.note = Some("On the hub's machine. docs/certificates.md has each step.".to_owned());
    part.commands.push(crate::sheet::Command::plain("hubd ca rotate status".to_owned()));
    part
}

/// The way back to the settings.
pub(crate) fn up() -> Link {
    Link::new("/settings", "Settings")
}
