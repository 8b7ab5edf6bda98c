//! Text of what a change would do.

use holdfast_protocol::id::TargetName;
use holdfast_protocol::resource::diff::NamedGuest;
use holdfast_protocol::resource::effects::ChangeEffect;
use holdfast_protocol::resource::requests::ChangePreview;
use holdfast_protocol::resource::signatures::{Certainty, SignatureNeed};
use holdfast_protocol::resource::view::{PartDifference, PartState, PartView};
use jiff::Timestamp;

use super::desired::diff;
use super::table::{Field, NOTHING, Tone, clean, plain, table};
use super::time::ago;
use crate::screen::Style;

/// The differences, then what the host does, then what waits.
pub fn preview(preview: &ChangePreview, now: Timestamp, style: Style) -> String {
    let host = preview.host.as_str();
    let mut text = diff(host, &preview.diff, style);
    if preview.diff.is_empty() {
        return text;
    }
    text.push_str("\nWhat the host does:\n");
    if preview.effects.is_empty() {
        text.push_str("  nothing to any guest or storage\n");
    }
    for effect in &preview.effects {
        text.push_str(&clean(&format!("  {} {}", subject(effect), effect.effect.words())));
        text.push('\n');
        text.extend(effect.because.iter().map(|because| format!("      {}\n", clean(because))));
    }
    if !preview.signatures.is_empty() {
        text.push_str("\nWaits for a signature:\n");
        text.extend(preview.signatures.iter().map(|need| signature(host, need)));
    }
    if !preview.not_judged.is_empty() {
        text.push_str("\nNot judged here:\n");
        text.extend(preview.not_judged.iter().map(|line| format!("  {}\n", clean(line))));
    }
    text.push_str(&match preview.reported_at {
        Some(at) => format!("\nJudged by the document and the host's last report ({}).\n", ago(at, now)),
        None => "\nThe host has never reported, so this is judged by the document alone.\n".to_owned(),
    });
    text
}

fn named(guest: Option<&NamedGuest>, storage: Option<&TargetName>) -> Option<String> {
    guest.map(|guest| guest.name.to_string()).or_else(|| storage.map(ToString::to_string))
}

fn subject(effect: &ChangeEffect) -> String {
    match (&effect.guest, &effect.storage) {
        (Some(guest), _) => format!("guest {}", guest.name),
        (None, Some(storage)) => format!("storage {storage}"),
        (None, None) => "each guest under a changed policy".to_owned(),
    }
}

fn signature(host: &str, need: &SignatureNeed) -> String {
    let name = named(need.guest.as_ref(), need.storage.as_ref()).unwrap_or_default();
    let maybe = match need.certainty {
        Certainty::Certain => "",
        Certainty::Possible => " (perhaps)",
    };
    let line = format!("  {name}  {}{maybe}: {}", need.verb.as_str(), need.why);
    format!("{}\n      holdfast sign {host} {name}\n", clean(&line))
}

/// Parts as desired, reported and last applied: those that differ first.
pub fn states(parts: &[PartView], now: Timestamp, style: Style) -> String {
    if parts.is_empty() {
        return "The document names nothing of the kind.\n".to_owned();
    }
    let mut sorted: Vec<&PartView> = parts.iter().collect();
    sorted.sort_by_key(|part| (rank(part.state), part.kind, part.name.clone()));
    let rows = sorted.iter().map(|part| {
        let generation = part.desired.as_ref().map(|desired| desired.generation.to_string());
        let held = part.last_applied.as_ref().map(|applied| applied.generation.to_string());
        let heard = part.current.as_ref().map(|current| ago(current.reported_at, now));
        let or_nothing = |text: Option<String>| plain(text.unwrap_or_else(|| NOTHING.to_owned()));
        vec![
            plain(part.kind.as_str()),
            plain(&part.name),
            state(part.state),
            or_nothing(generation),
            or_nothing(held),
            or_nothing(heard),
            plain(differences(part)),
        ]
    });
    table(&["KIND", "NAME", "STATE", "DESIRED", "HELD", "REPORTED", "DIFFERS IN"], rows, style)
}

const fn rank(state: PartState) -> u8 {
    match state {
        PartState::Differs => 0,
        PartState::Unreported => 1,
        PartState::Unnamed => 2,
        PartState::Settled => 3,
    }
}

fn state(state: PartState) -> Field {
    match state {
        PartState::Settled => ("settled".to_owned(), Tone::Good),
        PartState::Differs => ("differs".to_owned(), Tone::Look),
        PartState::Unreported => ("not reported".to_owned(), Tone::Plain),
        PartState::Unnamed => ("unnamed".to_owned(), Tone::Look),
    }
}

/// As many as a line holds.
const DIFFERENCES_SHOWN: usize = 3;

fn differences(part: &PartView) -> String {
    let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "(none)".to_owned());
    // The columns before it have the generations.
    let differences: Vec<&PartDifference> =
        part.differences.iter().filter(|one| one.path != "generation").collect();
    let mut words: Vec<String> = differences
        .iter()
        .take(DIFFERENCES_SHOWN)
        .map(|one| format!("{}: {} now, {} desired", one.path, side(&one.current), side(&one.desired)))
        .collect();
    let more = differences.len().saturating_sub(DIFFERENCES_SHOWN);
    if more > 0 {
        words.push(format!("{more} more"));
    }
    if words.is_empty() && part.state == PartState::Differs {
        words.push("the host has not taken the newest document".to_owned());
    }
    if words.is_empty() { NOTHING.to_owned() } else { words.join("; ") }
}
