//! Rollouts of releases: their list, and one with its waves.

use holdfast_protocol::release::rollout::{
    HostWait, OnFailure, RolloutHostState, RolloutHostView, RolloutState, RolloutSubject, RolloutView,
    WaitReason, WaveView,
};
use holdfast_protocol::time_text::span;

use crate::RenderError;
use crate::frame::Frame;
use crate::sheet::{Form, Link, Notice, Part, Sheet};
use crate::table::{Cell, Table};
use crate::words::{Tone, Word};

/// The pages of the section.
pub(crate) const TABS: [(&str, &str); 2] = [("/releases", "Releases"), ("/rollouts", "Rollouts")];

/// # Errors
/// [`RenderError`].
pub fn render(frame: &Frame, rollouts: &[RolloutView]) -> Result<String, RenderError> {
    let mut sheet = Sheet::new("Rollouts").with_tabs(TABS.to_vec(), "/rollouts");
    let empty = "No rollout was planned: holdfast rollout plan --help.";
    sheet.parts.push(Part::of_table("rollouts", "", table(frame, rollouts), empty));
    sheet.render(frame)
}

pub(crate) fn table(frame: &Frame, rollouts: &[RolloutView]) -> Table {
    let rows = rollouts.iter().map(|one| {
        let hosts = one.waves.iter().flat_map(|wave| &wave.hosts);
        let done = hosts.clone().filter(|host| host.state == RolloutHostState::Done).count();
        let wave = one.open.map_or(0, |open| open.number);
        [
            Cell::link(format!("/rollouts/{}", one.number), one.number),
            Cell::state(state(one.state)).with_small(one.reason.clone()),
            Cell::text(one.version),
            Cell::text(subject(one.subject)),
            Cell::number(format!("{wave}/{}", one.waves.len())),
            Cell::number(format!("{done}/{}", hosts.count())),
            Cell::text(&one.by),
            Cell::when(frame.when(one.at)),
        ]
    });
    let heads = ["Rollout", "State", "Release", "Brings", "Wave", "Hosts done", "By", "Planned"];
    Table::new("Rollouts", heads, rows)
}

/// One rollout.
///
/// # Errors
/// [`RenderError`].
pub fn one(frame: &Frame, rollout: &RolloutView, notice: Notice<'_>) -> Result<String, RenderError> {
    let title = format!("Rollout {} of {}", rollout.number, rollout.version);
    let mut sheet = Sheet::new(title).with_notice(notice);
    sheet.up = Some(Link::new("/rollouts", "Rollouts"));
    sheet.state = Some(state(rollout.state));
    sheet.lead = rollout.reason.clone();
    sheet.facts = facts(frame, rollout);
    let actions = actions(rollout.state);
    if frame.may_change() && !actions.is_empty() {
        let mut part = Part::new("actions", "Go on, or stop");
        part.forms = actions
            .iter()
            .map(|(path, text)| {
                Form::new(path, format!("/rollouts/{}/{path}", rollout.number), text, Vec::new())
            })
            .collect();
        sheet.parts.push(part);
    }
    let open = rollout.open.map_or(0, |open| open.number);
    sheet
        .parts
        .extend(rollout.waves.iter().zip(1_u32..).map(|(wave, number)| wave_part(frame, wave, number, open)));
    sheet.render(frame)
}

fn facts(frame: &Frame, rollout: &RolloutView) -> Vec<(&'static str, Cell)> {
    let mut facts = vec![
        ("Brings", Cell::text(subject(rollout.subject))),
        ("Planned by", Cell::text(&rollout.by)),
        ("Planned", Cell::when(frame.when(rollout.at))),
        (
            "When too many fail",
            Cell::text(match rollout.on_failure {
                OnFailure::Hold => "nothing more is offered".to_owned(),
                OnFailure::RollBack(to) => format!("{to} is offered"),
            }),
        ),
    ];
    if !rollout.times.windows.is_empty() {
        facts.push(("Only in", Cell::text(&rollout.times.windows)));
    }
    if !rollout.times.not.is_empty() {
        facts.push(("Not on", Cell::text(&rollout.times.not)));
    }
    facts.extend(
        rollout.times.per_hour.map(|hosts| ("At most", Cell::text(format!("{hosts} hosts an hour")))),
    );
    facts.extend(rollout.next_wave_at.map(|at| ("Next wave", Cell::text(frame.when(at).exact))));
    facts
}

/// What an operator may do to it now, as the call and as its button.
const fn actions(state: RolloutState) -> &'static [(&'static str, &'static str)] {
    match state {
        RolloutState::Planned => &[("start", "Start"), ("abort", "Abort")],
        RolloutState::Running => &[("pause", "Pause"), ("abort", "Abort")],
        RolloutState::Paused => &[("resume", "Resume"), ("abort", "Abort")],
        RolloutState::Held => &[("resume", "Resume"), ("take-back", "Take back"), ("abort", "Abort")],
        RolloutState::RollingBack => &[("abort", "Abort")],
        RolloutState::Aborted | RolloutState::Finished => &[],
    }
}

fn wave_part(frame: &Frame, wave: &WaveView, number: u32, open: u32) -> Part {
    let rows = wave.hosts.iter().map(|host| {
        [
            Cell::link(format!("/hosts/{}", host.host), &host.host),
            Cell::state(host_state(host.state)),
            Cell::when_or(host.offered_at.map(|at| frame.when(at)), "not yet"),
            Cell::note(host_note(frame, host)),
        ]
    });
    let table = Table::new("Hosts of a wave", ["Host", "State", "Offered", "Why"], rows);
    let is_open = if number == open { ", open" } else { "" };
    let note = format!(
        "{} may fail; watched for {}; a host has {}.",
        wave.max_failures,
        span(wave.soak_s.into()),
        span(wave.timeout_s.into())
    );
    // Ids of parts are fixed words. Few rollouts have more waves than these; a later one has its name in the note.
    const IDS: [&str; 5] = ["wave-1", "wave-2", "wave-3", "wave-4", "wave-5"];
    let id = usize::try_from(number).ok().and_then(|number| IDS.get(number.saturating_sub(1)));
    match id {
        Some(id) => Part::of_table(id, format!("Wave {number}{is_open}"), table, "No host.").with_note(note),
        None => {
            Part::of_table("", "", table, "No host.").with_note(format!("Wave {number}{is_open}: {note}"))
        }
    }
}

fn host_note(frame: &Frame, host: &RolloutHostView) -> String {
    let wait = host.wait.as_ref().map(|wait| waits(frame, wait));
    host.why.clone().into_iter().chain(wait).collect::<Vec<_>>().join("; ")
}

fn waits(frame: &Frame, wait: &HostWait) -> String {
    let why = match wait.why {
        WaitReason::Wave => "its wave is not open",
        WaitReason::RolloutWindow => "no window of the rollout is open",
        WaitReason::HostWindow => "none of its own windows is open",
        WaitReason::Blackout => "nothing is offered on this date",
        WaitReason::Rate => "others come first",
        WaitReason::Host => "it is offered the release",
        WaitReason::Back => "it is offered the release to go back to",
    };
    match wait.until {
        Some(at) => format!("{why}, until {}", frame.when(at).exact),
        None => why.to_owned(),
    }
}

const fn subject(subject: RolloutSubject) -> &'static str {
    match subject {
        RolloutSubject::Agent => "the agent",
        RolloutSubject::GuestAgent => "the guest agent",
        RolloutSubject::Golden => "a golden image",
    }
}

fn state(state: RolloutState) -> Word {
    let (text, tone) = match state {
        RolloutState::Planned => ("planned", Tone::Plain),
        RolloutState::Running => ("running", Tone::Good),
        RolloutState::Paused => ("paused", Tone::Warning),
        RolloutState::Held => ("held", Tone::Bad),
        RolloutState::RollingBack => ("rolling back", Tone::Bad),
        RolloutState::Aborted => ("aborted", Tone::Plain),
        RolloutState::Finished => ("finished", Tone::Good),
    };
    Word::new(text, tone)
}

fn host_state(state: RolloutHostState) -> Word {
    let (text, tone) = match state {
        RolloutHostState::Waiting => ("waiting", Tone::Plain),
        RolloutHostState::Done => ("done", Tone::Good),
        RolloutHostState::Failed => ("failed", Tone::Bad),
        RolloutHostState::Accepted => ("failed, accepted", Tone::Warning),
        RolloutHostState::Withdrawn => ("withdrawn", Tone::Plain),
        RolloutHostState::Back => ("went back", Tone::Warning),
        RolloutHostState::Gone => ("revoked", Tone::Plain),
    };
    Word::new(text, tone)
}
