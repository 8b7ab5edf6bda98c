//! Text of snapshots of state and of what changed between them.

use std::fmt::Write as _;
use std::path::Path;

use holdfast_protocol::state::{StateSnapshotView, StateTail};
use jiff::Timestamp;
use state_diff::{Change, Comparison, GuestChanges, HostChanges, Presence, Side};

use super::table::{Field, Tone, clean, plain, table};
use super::time::{ago, bytes, stamp};
use crate::screen::Style;
use crate::state::summary::{HostSummary, StateSummary};

/// As many characters of a digest as a person compares.
const DIGEST_SHOWN: usize = 16;

fn short(tail: &StateTail) -> &str {
    tail.content.as_str().get(..DIGEST_SHOWN).unwrap_or_default()
}

/// Snapshots that the hub keeps.
pub fn kept(kept: &[StateSnapshotView], style: Style) -> String {
    if kept.is_empty() {
        return "The hub keeps no snapshot of state yet: it takes one each day.\n".to_owned();
    }
    let mut rows: Vec<Vec<Field>> = Vec::new();
    for (place, view) in kept.iter().enumerate() {
        // The one before it in time comes after it in the list.
        let before = kept.get(place + 1).map(|before| before.content == view.content);
        let same = match before {
            Some(true) => "no",
            Some(false) => "yes",
            None => "-",
        };
        rows.push(vec![
            plain(view.number),
            plain(view.day),
            plain(stamp(view.taken_at)),
            plain(view.hosts),
            plain(view.guests),
            plain(same),
            plain(view.content.as_str().get(..DIGEST_SHOWN).unwrap_or_default()),
            plain(bytes(view.stored_bytes)),
        ]);
    }
    let header = ["NUMBER", "DAY", "TAKEN", "HOSTS", "GUESTS", "CHANGED", "CONTENT", "SIZE"];
    table(&header, rows, style)
}

/// What was written.
pub fn written(summary: &StateSummary, path: Option<&Path>) -> String {
    let (Some(head), Some(tail)) = (&summary.head, &summary.tail) else { return String::new() };
    let place = path.map(|path| format!("\nfile      {}", path.display())).unwrap_or_default();
    format!(
        "state of {}: {} hosts, {} guests\ncontent   {}\ndocument  {}{place}\n",
        stamp(head.taken_at),
        tail.hosts,
        tail.guests,
        tail.content.as_str(),
        tail.document.as_str()
    )
}

/// A snapshot in figures.
pub fn summary(summary: &StateSummary, now: Timestamp, style: Style) -> String {
    let (Some(head), Some(tail)) = (&summary.head, &summary.tail) else { return String::new() };
    let of = head.scope.customer.as_ref().map(|customer| format!(" of customer {customer}"));
    let mut text = format!(
        "State{} at {} ({}): {} hosts, {} guests, content {}\n\n",
        of.unwrap_or_default(),
        stamp(head.taken_at),
        ago(head.taken_at, now),
        tail.hosts,
        tail.guests,
        short(tail)
    );
    let header = [
        "HOST",
        "STATE",
        "SEEN BEFORE",
        "GUESTS",
        "RUN",
        "PROTECTION",
        "CRITICAL",
        "WARNING",
        "HELD",
        "AGENT",
    ];
    text.push_str(&table(&header, summary.hosts.iter().map(|host| row(host, head.taken_at)), style));
    if !summary.worst.is_empty() {
        text.push_str("\nCritical, the oldest first:\n");
    }
    for one in &summary.worst {
        let guest = one.guest.as_ref().map(|guest| format!("/{guest}")).unwrap_or_default();
        let line = format!("  {}{guest} {} since {}: {}", one.host, one.code, stamp(one.since), one.message);
        let _ = writeln!(text, "{}", clean(&line));
    }
    if summary.worst_left_out > 0 {
        let _ = writeln!(text, "  and {} more", summary.worst_left_out);
    }
    text
}

fn row(host: &HostSummary, taken_at: Timestamp) -> Vec<Field> {
    let state = state_word(&host.state);
    let tone = if state == "online" { Tone::Good } else { Tone::Bad };
    let postures = host.postures.iter().map(|(word, count)| format!("{count} {word}"));
    let bad = |count: u32, tone: Tone| (count.to_string(), if count > 0 { tone } else { Tone::Plain });
    let held = if host.held == host.generation {
        plain(host.held)
    } else {
        (format!("{} of {}", host.held, host.generation), Tone::Look)
    };
    vec![
        plain(&host.host),
        (state, tone),
        plain(host.seen_at.map_or_else(|| "never".to_owned(), |seen| super::time::age(seen, taken_at))),
        plain(host.guests),
        plain(host.running),
        plain(postures.collect::<Vec<_>>().join(", ")),
        bad(host.critical, Tone::Bad),
        bad(host.warnings, Tone::Look),
        held,
        plain(host.agent.as_deref().unwrap_or("-")),
    ]
}

fn state_word(state: &holdfast_protocol::operator::HostState) -> String {
    serde_json::to_value(state).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// What changed between two snapshots.
pub fn comparison(comparison: &Comparison) -> String {
    let Comparison { before, after, totals, hosts } = comparison;
    let mut text = format!("{}\n{}\n", side("from", before), side("to", after));
    if comparison.is_empty() {
        let seen = "Nothing changed: only the times of observation differ.";
        let _ = writeln!(text, "{seen}");
        return text;
    }
    let _ = writeln!(
        text,
        "{} worse, {} better, {} changed; {} hosts are as they were.",
        totals.worse, totals.better, totals.different, totals.hosts_unchanged
    );
    for host in hosts {
        host_lines(host, &mut text);
    }
    if totals.hosts_left_out > 0 {
        let _ = writeln!(text, "\nand {} more hosts with changes", totals.hosts_left_out);
    }
    text
}

fn side(word: &str, side: &Side) -> String {
    let Side { head, tail } = side;
    let (hosts, guests) = (tail.hosts, tail.guests);
    let at = stamp(head.taken_at);
    format!("{word:<5} {at}  {hosts} hosts, {guests} guests, content {}", short(tail))
}

fn host_lines(host: &HostChanges, text: &mut String) {
    let _ = writeln!(text, "\n{}{}", clean(host.host.as_str()), presence(host.presence));
    for change in &host.changes {
        line(change, "  ", text);
    }
    for guest in &host.guests {
        guest_lines(guest, text);
    }
}

fn guest_lines(guest: &GuestChanges, text: &mut String) {
    let customer = guest.customer.as_ref().map(|customer| format!(" ({customer})")).unwrap_or_default();
    let _ = writeln!(text, "  guest {}{customer}{}", clean(&guest.name), presence(guest.presence));
    for change in &guest.changes {
        line(change, "    ", text);
    }
}

const fn presence(presence: Presence) -> &'static str {
    match presence {
        Presence::Both => "",
        Presence::New => ": new, not in the earlier one",
        Presence::Gone => ": gone, not in the later one",
    }
}

fn line(change: &Change, indent: &str, text: &mut String) {
    let (direction, area) = (change.direction.as_str(), change.area.as_str());
    let _ = writeln!(text, "{indent}{direction:<8} {area:<12}  {}", clean(&change.to_string()));
}
