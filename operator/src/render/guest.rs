//! Tables and pages of guests.

use holdfast_protocol::desired::{GuestSize, RunState, UseLevels};
use holdfast_protocol::id::HostName;
use holdfast_protocol::report::{
    ControllerReport, FieldState, GuestReport, GuestStatus, Health, InForce, Running, SilenceKind,
    SilenceReport,
};
use holdfast_protocol::root_disk::Knowledge;
use holdfast_protocol::usage::UsageSeries;
use jiff::Timestamp;

use super::sparkline;
use super::table::{Field, NOTHING, Tone, clean, list, plain, table};
use super::time::{ago, span, stamp, when};
use crate::progress::status_word;
use crate::screen::Style;

pub const HEADER: [&str; 10] =
    ["NAME", "HOST", "VMID", "STATUS", "RUN", "WANTED", "ADDRESS", "CONTROLLER", "PROTECTED", "NOTES"];

/// Where the image stands among them, on a screen that has room for it.
const IMAGE_AT: usize = 9;
const IMAGE_FROM_COLUMNS: u16 = 140;

/// Guests, those that need a person first.
pub fn guests(guests: &[(&HostName, &GuestReport)], style: Style) -> String {
    if guests.is_empty() {
        return "No guest is reported. `holdfast desired apply` says what a host should carry.\n".to_owned();
    }
    let mut sorted = guests.to_vec();
    sorted.sort_by_key(|(host, guest)| {
        (urgency(guest.status), super::protection::rank(guest), *host, &guest.name, guest.vmid)
    });
    if style.columns.is_some_and(|columns| columns < IMAGE_FROM_COLUMNS) {
        return table(&HEADER, sorted.iter().map(|(host, guest)| row(host, guest)), style);
    }
    let mut header = HEADER.to_vec();
    header.insert(IMAGE_AT, "IMAGE");
    let rows = sorted.iter().map(|(host, guest)| {
        let mut row = row(host, guest);
        row.insert(IMAGE_AT, plain(guest.golden.as_ref().map_or(NOTHING, |golden| golden.as_str())));
        row
    });
    table(&header, rows, style)
}

const fn urgency(status: GuestStatus) -> u8 {
    match status {
        GuestStatus::Broken | GuestStatus::Parked | GuestStatus::Missing => 0,
        GuestStatus::Absent => 1,
        GuestStatus::Managed | GuestStatus::Unmanaged | GuestStatus::RestoredCopy => 2,
        GuestStatus::Foreign => 3,
    }
}

/// One line of the list.
pub fn row(host: &HostName, guest: &GuestReport) -> Vec<Field> {
    let notes: Vec<&str> = guest.conditions.iter().map(|condition| condition.message.as_str()).collect();
    let or_nothing = |text: Option<String>| plain(text.unwrap_or_else(|| NOTHING.to_owned()));
    vec![
        plain(&guest.name),
        plain(host),
        or_nothing(guest.vmid.map(|vmid| vmid.to_string())),
        status(guest),
        run(guest),
        or_nothing(guest.wanted.map(|wanted| run_word(wanted).to_owned())),
        or_nothing(guest.address.map(|address| address.to_string())),
        controller(guest.controller.as_ref()),
        super::protection::posture(guest),
        plain(if notes.is_empty() { NOTHING.to_owned() } else { notes.join("; ") }),
    ]
}

fn status(guest: &GuestReport) -> Field {
    let tone = match guest.status {
        GuestStatus::Managed => Tone::Good,
        GuestStatus::Absent | GuestStatus::Unmanaged | GuestStatus::RestoredCopy => Tone::Look,
        GuestStatus::Foreign => Tone::Plain,
        GuestStatus::Missing | GuestStatus::Broken | GuestStatus::Parked => Tone::Bad,
    };
    (status_words(guest).to_owned(), tone)
}

/// A guest that is not there and has a number is being made.
fn status_words(guest: &GuestReport) -> &'static str {
    match guest.status {
        GuestStatus::Absent if guest.vmid.is_some() => "being made",
        status => status_word(status),
    }
}

fn run(guest: &GuestReport) -> Field {
    let word = match (guest.run, guest.unknown_since) {
        (Running::Running, _) => found("running", guest.run_as_of),
        (Running::Stopped, _) => found("stopped", guest.run_as_of),
        (Running::Unknown, None) => "unknown".to_owned(),
        (Running::Unknown, Some(since)) => format!("unknown since {}", stamp(since)),
    };
    let tone = match (guest.run, guest.wanted) {
        (Running::Unknown, _) => Tone::Look,
        (Running::Stopped, Some(RunState::Running)) | (Running::Running, Some(RunState::Stopped)) => {
            Tone::Bad
        }
        (Running::Running | Running::Stopped, None) => Tone::Plain,
        _ => Tone::Good,
    };
    (word, tone)
}

/// A state, and whether it is older than usual.
fn found(word: &str, as_of: Option<Timestamp>) -> String {
    let age = if as_of.is_some() { ", old" } else { "" };
    format!("{word}{age}")
}

const fn run_word(run: RunState) -> &'static str {
    match run {
        RunState::Running => "running",
        RunState::Stopped => "stopped",
    }
}

fn controller(controller: Option<&ControllerReport>) -> Field {
    let Some(controller) = controller else { return plain(NOTHING) };
    match controller.silence {
        Some(SilenceReport { is: SilenceKind::Silent, since }) => {
            (format!("silent since {}", stamp(since)), Tone::Bad)
        }
        Some(SilenceReport { is: SilenceKind::Late, since }) => {
            (format!("late since {}", stamp(since)), Tone::Look)
        }
        None => {
            let (word, tone) = health(controller.health);
            (format!("{word} {}", controller.version), tone)
        }
    }
}

const fn health(health: Health) -> (&'static str, Tone) {
    match health {
        Health::Well => ("well", Tone::Good),
        Health::Starting => ("starting", Tone::Look),
        Health::Unwell => ("unwell", Tone::Bad),
    }
}

pub fn guest(host: &HostName, guest: &GuestReport, now: Timestamp) -> String {
    let unknown = || "not known".to_owned();
    let mut pairs = vec![
        ("Guest", guest.name.clone()),
        ("Host", host.to_string()),
        ("Uid", guest.uid.map_or_else(|| "none: it is not ours".to_owned(), |uid| uid.to_string())),
        ("VMID", guest.vmid.map_or_else(|| "none yet".to_owned(), |vmid| vmid.to_string())),
        ("Status", status_sentence(guest)),
        ("Runs", run(guest).0),
        (
            "Wanted",
            guest.wanted.map_or_else(|| "not named by the document".to_owned(), |w| run_word(w).to_owned()),
        ),
        ("Size", guest.size.map_or_else(unknown, size)),
        ("Address", guest.address.map_or_else(unknown, |address| address.to_string())),
    ];
    let seen = |at| ("Seen", format!("whether it runs is of {}", when(at, now)));
    pairs.extend(guest.run_as_of.map(seen));
    let read = |at| ("Read", format!("size, address and fields are of {}", when(at, now)));
    pairs.extend(guest.configuration_as_of.map(read));
    let lock = guest.lock.as_ref();
    pairs.extend(lock.map(|lock| ("Lock", format!("{}, seen since {}", lock.kind, when(lock.since, now)))));
    pairs.extend(image(guest, now).map(|image| ("Image", image)));
    pairs.extend(guest.limits.as_ref().map(|limits| ("Limits", clean(&limits.words()))));
    pairs.extend(guest.levels.map(|levels| ("Levels", level_words(levels))));
    pairs.extend(guest.address_filter.map(|state| ("Firewall", state.words().to_owned())));
    pairs.push(match &guest.controller {
        Some(seen) => {
            let (version, word) = (&seen.version, health(seen.health).0);
            ("Controller", format!("guestd {version}, {word}, last hello {}", when(seen.hello_at, now)))
        }
        None => ("Controller", "has not said hello".to_owned()),
    });
    if guest.status == GuestStatus::Managed {
        let known = Knowledge::of(guest.root_disk_data.as_ref(), now);
        let lines = super::root_disk::lines(known, now).into_iter().enumerate();
        pairs.extend(lines.map(|(index, line)| (if index == 0 { "Root disk" } else { "" }, line)));
    }
    if guest.uid.is_some() {
        pairs.extend(super::protection::pairs(guest.protection.as_deref(), now));
    }
    pairs.extend(guest.conditions.iter().map(|note| ("Note", format!("{} [{}]", note.message, note.code))));
    pairs.extend(guest.fields.iter().map(|state| ("Field", field(state, now))));
    list(&pairs)
}

/// The golden image, and how old it is, where the host knows that.
fn image(guest: &GuestReport, now: Timestamp) -> Option<String> {
    let golden = guest.golden.as_ref()?;
    let built =
        guest.golden_built_at.map(|at| format!(", built {} ({})", at.strftime("%Y-%m-%d"), ago(at, now)));
    Some(format!("{golden}{}", built.unwrap_or_default()))
}

/// From how much use on there is a condition.
pub fn level_words(levels: UseLevels) -> String {
    let named = [
        ("CPU", levels.cpu_percent),
        ("memory", levels.memory_percent),
        ("root disk", levels.root_disk_percent),
    ];
    let words = named.into_iter().filter_map(|(name, level)| Some(format!("{name} from {}", level?)));
    words.collect::<Vec<_>>().join(", ")
}

/// A guest, and below it what it used.
pub fn guest_with_use(
    (host, shown): (&HostName, &GuestReport),
    usage: Option<&UsageSeries>,
    now: Timestamp,
) -> String {
    let page = guest(host, shown, now);
    let Some(series) = usage else { return page };
    let lines = sparkline::lines(series, now);
    if lines.is_empty() {
        return format!("{page}\nNo use was measured in the last {}.\n", span(series.span.kept_s().into()));
    }
    format!("{page}\n{}\n{}\n", sparkline::heading(series), lines.join("\n"))
}

/// A field of which document, Proxmox and what was last carried out are not one. As old as the host's last report.
fn field(state: &FieldState, now: Timestamp) -> String {
    let or_nothing = |text: Option<&String>| text.cloned().unwrap_or_else(|| NOTHING.to_owned());
    let last = match &state.applied {
        Some(applied) => format!("{}, {}", applied.value, when(applied.at, now)),
        None => NOTHING.to_owned(),
    };
    let next = match state.in_force {
        InForce::Now => "",
        InForce::NextStart => " from its next start",
    };
    format!(
        "{}: document {}; Proxmox {}{next}; last carried out {last}",
        state.field.path(),
        or_nothing(state.desired.as_ref()),
        or_nothing(state.observed.as_ref()),
    )
}

fn status_sentence(guest: &GuestReport) -> String {
    let means = match guest.status {
        GuestStatus::Managed => "ours, and named by the document",
        GuestStatus::Unmanaged => {
            "ours, but the document no longer names it; it runs on until a signed decommission"
        }
        GuestStatus::Absent if guest.vmid.is_some() => "named by the document; an operation makes it",
        GuestStatus::Absent => "named by the document, not there yet",
        GuestStatus::Missing => "managed, but not found in Proxmox; check on the host",
        GuestStatus::Foreign => "not managed; never changed",
        GuestStatus::Broken => "it did not stay up; needs attention",
        GuestStatus::Parked => "an operation on it was parked; needs attention",
        GuestStatus::RestoredCopy => "a restored copy of a managed guest; never started by the agent",
    };
    format!("{} ({means})", status_words(guest))
}

fn size(size: GuestSize) -> String {
    format!(
        "{}, {} memory, {} swap, {} root disk",
        size.cores, size.memory_mib, size.swap_mib, size.rootfs_gib
    )
}
