//! The pages of an export: README and summary.

use std::fmt::Write as _;

use super::folder::Manifest;
use super::states::Picture;
use crate::state::summary::StateSummary;

/// A field and what it means, with its unit.
type FieldText = (&'static str, &'static str);

/// What each file is, and its fields.
const FILES: &[(&str, &str, &[FieldText])] = &[
    (
        "state-start.jsonl",
        "The state at the begin: the newest kept snapshot before it, or the first one after it. The first line is the head, then one line for each host, last the tail with two digests.",
        STATE,
    ),
    ("state-end.jsonl", "The state at the end, in the same form.", STATE),
    (
        "documents.jsonl",
        "What each version of a host's desired document changed. Newest first for each host.",
        &[
            ("host, host_id", "which host"),
            ("generation, before_generation", "number of the version, and of the one it is compared with"),
            ("put_at", "when it was put, UTC"),
            ("is_readable", "whether this command can read it; where not, its changes are not known"),
            ("by, reason", "who put it, and why"),
            ("settings", "fields outside the guests: field, before, after"),
            (
                "credentials_changed",
                "targets whose sealed credentials are others; the credentials are not here",
            ),
            (
                "guests_added, guests_changed, guests_no_longer_named",
                "guests by name and uid, with their changed fields",
            ),
            ("guests_less_protected", "guests that are promised less, in words"),
        ],
    ),
    (
        "events.jsonl",
        "The hub's event log. Newest first.",
        &[
            ("number", "counts all events of the hub"),
            ("at", "UTC"),
            ("kind", "what happened"),
            ("host, host_id", "to which host"),
            ("actor", "who did it, where a person did"),
            ("message", "in words"),
            ("correlation_id", "joins what one click or call caused"),
        ],
    ),
    (
        "alerts.jsonl",
        "Alerts that are open now, or were resolved within the hour.",
        &[
            ("id", "the alert"),
            ("host, subject, guest, customer", "what it is about"),
            ("code, severity", "what is wrong, and how urgent it is"),
            (
                "phase, phase_since, since",
                "pending, firing or resolved, since when by the hub's clock, and since when by the host's",
            ),
            ("message, remedy", "what is wrong, and what to do"),
        ],
    ),
    (
        "alert-log.jsonl",
        "What happened to alerts, and what was not sent. Newest first.",
        &[
            ("number", "counts all entries"),
            ("at", "UTC"),
            ("alert", "which alert"),
            ("kind", "what happened"),
            ("receiver", "to whom"),
            ("text", "in words"),
        ],
    ),
    (
        "operations.jsonl",
        "Operations of hosts that opened or ended in the period.",
        &[
            ("id, kind, status", "which, what, and how far"),
            ("guest, guest_name", "on which guest"),
            ("opened_at, ended_at", "UTC, by the host's clock"),
            ("duration_s", "seconds from opening to end"),
            ("problem_code, problem", "why it failed"),
            ("steps", "each with name, status, note"),
            ("alike", "how many like it are in this row"),
        ],
    ),
    (
        "work-orders.jsonl",
        "What operators ordered in the period.",
        &[
            ("id, act, state", "which, what, and how far"),
            ("guest", "on which guest"),
            ("created_at, ended_at", "UTC"),
            ("duration_s", "seconds from order to end"),
            ("problem_code, problem", "why it failed"),
        ],
    ),
    (
        "certificates.jsonl",
        "The newest restore certificate of each guest that has one, also from before the period.",
        &[
            ("guest, guest_name, customer, host", "whose it is"),
            ("tier", "which kind of backup"),
            ("backup_taken_at, tested_at", "UTC"),
            ("backup_bytes", "bytes"),
            ("return_s", "seconds that a return takes"),
            ("checks, reason", "what was checked"),
            ("is_countersigned", "whether the hub signed it too"),
        ],
    ),
    (
        "usage.jsonl",
        "Use in the period, one row for each host or guest and metric.",
        &[
            ("metric, unit", "what was measured, in which unit"),
            ("step_s", "seconds that a point stands for"),
            ("points", "how many points"),
            ("mean, max, max_at", "in the unit; when the highest was"),
            ("first_at, last_at", "UTC"),
        ],
    ),
];

const STATE: &[FieldText] = &[
    ("head", "schema, time in UTC, hub's version, scope"),
    (
        "host",
        "desired, held, versions, storages, targets, conditions, waiting; guests with desired, current, last_applied, protection, conditions",
    ),
    ("observed", "at any place: when it was so, and in which words; not part of the content digest"),
    ("last_applied", "only fields whose values in document, Proxmox and as carried out differ"),
    ("*_mib, *_gib, *_s, *_percent", "MiB, GiB, seconds, percent"),
    ("tail", "counts, content digest (equal where nothing changed), digest of the document"),
];

/// What each file and field is.
pub fn readme(manifest: &Manifest) -> String {
    let mut text = String::from("# Export of Holdfast for analysis\n\n");
    let period = &manifest.period;
    let _ =
        writeln!(text, "Of {} to {}, made at {} (all times are UTC).", period.from, period.to, period.now);
    if let Some(customer) = &manifest.scope.customer {
        let _ = writeln!(text, "Only what concerns the guests of customer `{customer}`.");
    }
    if let Some(filter) = &manifest.scope.filter {
        let _ = writeln!(text, "Only what concerns the guests that `{filter}` selects now.");
    }
    text.push_str(
        "\nRead `summary.md` first. The other files are JSON Lines: one object a line, members by name. `manifest.json` has \
         the size and SHA-256 of each. A member that is absent is not known or not there.\n\n\
         No credential, token, key or wrapped key is in here; what looked like one in a text is `[redacted]`. The hub's own \
         log is not in here either: no call gives it (`journalctl -u hubd` on the hub's machine).\n",
    );
    for file in &manifest.files {
        let known = FILES.iter().find(|(name, _, _)| *name == file.name);
        let Some((name, says, fields)) = known else { continue };
        let _ = write!(text, "\n## {name}\n\n{says} {} rows, {} bytes", file.rows, file.bytes);
        if file.left_out > 0 {
            let _ = write!(text, "; {} left out", file.left_out);
        }
        if file.redacted > 0 {
            let _ = write!(text, "; {} texts redacted", file.redacted);
        }
        text.push_str(".\n");
        for remark in &file.remarks {
            let _ = writeln!(text, "Note: {remark}.");
        }
        text.push_str("\n| field | meaning |\n| --- | --- |\n");
        for (field, meaning) in *fields {
            let _ = writeln!(text, "| {field} | {meaning} |");
        }
    }
    text
}

/// The worst first.
pub fn summary(manifest: &Manifest, picture: &Picture) -> String {
    let mut text = String::from("# Summary\n\n");
    let _ = writeln!(text, "{} to {}.\n", manifest.period.from, manifest.period.to);
    match &picture.end {
        Some(end) => end_lines(end, &mut text),
        None => text.push_str("The state at the end is not known: the hub keeps no snapshot of that time.\n"),
    }
    if let (Some(start), Some(end)) = (&picture.start, &picture.end) {
        two_ends(start, end, &mut text);
    }
    text.push_str("\n## Rows\n\n| file | rows | left out |\n| --- | --- | --- |\n");
    for file in &manifest.files {
        let _ = writeln!(text, "| {} | {} | {} |", file.name, file.rows, file.left_out);
    }
    text
}

fn end_lines(end: &StateSummary, text: &mut String) {
    let worst = end.worst.len() + end.worst_left_out;
    let _ = writeln!(text, "## What is worst at the end\n\n{worst} critical conditions.");
    for one in &end.worst {
        let guest = one.guest.as_ref().map(|guest| format!("/{guest}")).unwrap_or_default();
        let _ = writeln!(text, "- {}{guest}: {} since {}: {}", one.host, one.code, one.since, one.message);
    }
    if end.worst_left_out > 0 {
        let _ = writeln!(text, "- and {} more in state-end.jsonl", end.worst_left_out);
    }
    let unheard: Vec<String> = end
        .hosts
        .iter()
        .filter(|host| host.state != holdfast_protocol::operator::HostState::Online)
        .map(|host| format!("{} ({})", host.host, word(host.state)))
        .collect();
    let _ = writeln!(
        text,
        "\n{} of {} hosts are not online: {}",
        unheard.len(),
        end.hosts.len(),
        listed(&unheard)
    );
    let _ = writeln!(text, "\nGuests by protection: {}", postures(end));
}

fn word(state: holdfast_protocol::operator::HostState) -> String {
    let value = serde_json::to_value(state).ok();
    value.and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// As many names as a page has room for.
fn listed(names: &[String]) -> String {
    const NAMES_MAX: usize = 50;
    if names.is_empty() {
        return "none.".to_owned();
    }
    let shown = names.iter().take(NAMES_MAX).cloned().collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(NAMES_MAX);
    if more > 0 { format!("{shown}, and {more} more.") } else { format!("{shown}.") }
}

fn postures(summary: &StateSummary) -> String {
    let mut all = std::collections::BTreeMap::<&str, u64>::new();
    for (word, count) in summary.hosts.iter().flat_map(|host| &host.postures) {
        *all.entry(word).or_default() += u64::from(*count);
    }
    let parts: Vec<String> = all.iter().map(|(word, count)| format!("{count} {word}")).collect();
    if parts.is_empty() { "none.".to_owned() } else { parts.join(", ") + "." }
}

fn two_ends(start: &StateSummary, end: &StateSummary, text: &mut String) {
    let (Some(old), Some(new)) = (&start.tail, &end.tail) else { return };
    let _ = writeln!(text, "\n## From begin to end\n");
    let _ = writeln!(text, "| | begin | end |\n| --- | --- | --- |");
    let _ = writeln!(text, "| hosts | {} | {} |", old.hosts, new.hosts);
    let _ = writeln!(text, "| guests | {} | {} |", old.guests, new.guests);
    let critical = |summary: &StateSummary| summary.worst.len() + summary.worst_left_out;
    let _ = writeln!(text, "| critical conditions | {} | {} |", critical(start), critical(end));
    let _ = writeln!(text, "| protection | {} | {} |", postures(start), postures(end));
    let same = if old.content == new.content { "nothing changed" } else { "it changed" };
    let _ = writeln!(
        text,
        "| content | {same} | `holdfast state compare state-start.jsonl state-end.jsonl` says what |"
    );
}
