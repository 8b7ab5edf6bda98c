//! Text of documents, their history and differences.

use holdfast_protocol::desired::{
    CpuLimit, CustomerLimits, Desired, DesiredGuest, GuestLimits, OvercommitLevels, RunState, UseLevels,
};
use holdfast_protocol::generation::Generation;
use holdfast_protocol::operator::DesiredVersion;
use holdfast_protocol::protection::Protection;
use holdfast_protocol::resource::DocumentDiff;
use holdfast_protocol::resource::diff::{FieldChange, volume_words};
use jiff::Timestamp;

use super::guest::level_words;
use super::table::{NOTHING, clean, plain, table};
use super::time::{ago, when};
use crate::screen::{Colour, Style};

/// The document that the hub holds, with who put it.
pub fn document(version: &DesiredVersion, desired: &Desired, now: Timestamp, style: Style) -> String {
    let mut text = clean(&format!(
        "Generation {} by {}, {}: {}",
        version.generation,
        version.author,
        when(version.put_at, now),
        version.reason.as_str()
    ));
    let document = desired.document();
    let observes = document.observe_interval_s.map_or_else(|| "10 s".to_owned(), |every| every.to_string());
    let alarm =
        document.alarm_after_s.map_or_else(String::new, |after| format!("; alarm after {after} of silence"));
    text.push_str(&format!(
        "\nThe agent polls the hub every {} and observes its host every {observes}{alarm}.\n",
        document.poll_interval_s
    ));
    if let Some(levels) = document.levels {
        let words = level_words(levels.over(UseLevels::USUAL));
        text.push_str(&format!("Use is too high: {words}; guests can have levels of their own.\n"));
    }
    if let Some(levels) = document.overcommit {
        text.push_str(&format!("The host is over-committed: {}.\n", overcommit_words(levels.in_force())));
    }
    for limits in &document.customer_limits {
        text.push_str(&format!(
            "Guests of {} may have {} here.\n",
            clean(limits.customer.as_str()),
            total_words(limits)
        ));
    }
    if desired.guests().is_empty() {
        text.push_str("It names no guest.\n");
        return text;
    }
    text.push('\n');
    let header = [
        "NAME", "CUSTOMER", "VMID", "RUN", "GOLDEN", "CORES", "MEMORY", "ROOT", "ADDRESS", "POLICY",
        "VOLUMES",
    ];
    let rows = desired.guests().iter().map(|guest| {
        let volumes: Vec<String> =
            guest.volumes.iter().map(|v| format!("{} {}", v.name, v.size_gib)).collect();
        vec![
            plain(&guest.name),
            plain(&guest.customer),
            plain(guest.vmid.map_or_else(|| NOTHING.to_owned(), |vmid| vmid.to_string())),
            plain(run(guest.run)),
            plain(&guest.golden),
            plain(guest.size.cores.get()),
            plain(guest.size.memory_mib),
            plain(guest.size.rootfs_gib),
            plain(guest.network.address),
            plain(guest.policy.as_ref().map_or(NOTHING, |policy| policy.as_str())),
            plain(if volumes.is_empty() { NOTHING.to_owned() } else { volumes.join(", ") }),
        ]
    });
    text.push_str(&table(&header, rows, style));
    let limited = desired
        .guests()
        .iter()
        .filter_map(|guest| Some((guest, guest.limits.filter(|limits| !limits.is_empty())?)));
    let limited: String =
        limited.map(|(guest, limits)| format!("  {}: {}\n", guest.name, limit_words(&limits))).collect();
    if !limited.is_empty() {
        text.push_str(&format!("\nLimits\n{limited}"));
    }
    for policy in desired.policies() {
        let promise = Protection { tiers: policy.tiers.clone(), volumes: Vec::new() };
        text.push_str(&format!("\nPolicy {}\n", policy.name));
        text.extend(promise.lines().iter().map(|line| format!("  {}\n", clean(line))));
    }
    text
}

/// Ratios of promises, in words.
fn overcommit_words(levels: OvercommitLevels) -> String {
    let named = [
        ("cores", levels.cores_percent),
        ("memory", levels.memory_percent),
        ("a storage", levels.disk_percent),
    ];
    let words = named.into_iter().filter_map(|(name, level)| Some(format!("{name} above {}", level?)));
    words.collect::<Vec<_>>().join(", ")
}

fn total_words(limits: &CustomerLimits) -> String {
    let cores = limits.cores.map(|cores| cores.to_string());
    let memory = limits.memory_mib.map(|memory| format!("{memory} of memory"));
    let disk = limits.disk_gib.map(|disk| format!("{disk} of disk"));
    let words: Vec<String> = [cores, memory, disk].into_iter().flatten().collect();
    if words.is_empty() { "what they ask for".to_owned() } else { format!("{} together", words.join(", ")) }
}

fn limit_words(limits: &GuestLimits) -> String {
    let cpu = limits.cpu.map(|limit| match limit {
        CpuLimit::Unlimited => "CPU time unlimited".to_owned(),
        CpuLimit::CorePercent(percent) => format!("CPU time at most {percent}"),
    });
    let weight = limits.cpu_weight.map(|weight| format!("CPU weight {}", weight.get()));
    [cpu, weight].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

const fn run(run: RunState) -> &'static str {
    match run {
        RunState::Running => "running",
        RunState::Stopped => "stopped",
    }
}

/// Who put what, when and why, newest first.
pub fn history(versions: &[DesiredVersion], now: Timestamp, style: Style) -> String {
    if versions.is_empty() {
        return "No document was put yet.\n".to_owned();
    }
    let mut sorted: Vec<&DesiredVersion> = versions.iter().collect();
    sorted.sort_by_key(|version| std::cmp::Reverse(version.generation));
    let rows = sorted.iter().map(|version| {
        let content: String = version.content.chars().take(12).collect();
        vec![
            plain(version.generation),
            plain(ago(version.put_at, now)),
            plain(&version.author),
            plain(content),
            plain(version.reason.as_str()),
        ]
    });
    table(&["GENERATION", "PUT", "BY", "CONTENT", "REASON"], rows, style)
}

/// What a change would do: `+` new, `~` changed, `-` no longer named.
pub fn diff(host: &str, diff: &DocumentDiff, style: Style) -> String {
    if diff.is_empty() {
        return format!(
            "{host}: nothing changes over generation {} ({} guests).\n",
            diff.from, diff.unchanged
        );
    }
    let mut lines = vec![Line::Head(heading(host, diff))];
    lines.extend(diff.settings.iter().map(|change| Line::Changed(format!("~ {}", change_text(change)))));
    for guest in &diff.added {
        lines.push(Line::Added(format!("+ guest {}  {}", guest.name, about(guest))));
        lines.extend(volumes(guest).map(|text| Line::Added(format!("    {text}"))));
        lines.push(Line::Plain(format!("    uid {}", guest.uid)));
    }
    for changed in &diff.changed {
        lines.push(Line::Changed(format!("~ guest {}", changed.guest.name)));
        lines.extend(
            changed.changes.iter().map(|change| Line::Changed(format!("    {}", change_text(change)))),
        );
    }
    for weaker in &diff.weaker {
        lines.push(Line::Unnamed(format!(
            "! guest {}  would be less protected: the agent keeps what is in force until an operator signs",
            weaker.guest.name
        )));
        lines.extend(weaker.what.iter().map(|what| Line::Plain(format!("    {what}"))));
    }
    for guest in &diff.unnamed {
        let text = format!(
            "- guest {}  is no longer named: where it was made it becomes unmanaged and keeps running (uid {})",
            guest.name, guest.uid
        );
        lines.push(Line::Unnamed(text));
    }
    if diff.unchanged > 0 {
        let guests = if diff.unchanged == 1 { "guest stays as it is" } else { "guests stay as they are" };
        lines.push(Line::Plain(format!("  {} {guests}", diff.unchanged)));
    }
    lines.iter().map(|line| line.text(style.colour) + "\n").collect()
}

fn heading(host: &str, diff: &DocumentDiff) -> String {
    if diff.from == Generation::NONE {
        format!("{host}: its first document, generation {}", diff.to)
    } else {
        format!("{host}: generation {} -> {}", diff.from, diff.to)
    }
}

enum Line {
    Head(String),
    Added(String),
    Changed(String),
    Unnamed(String),
    Plain(String),
}

impl Line {
    fn text(&self, colour: Colour) -> String {
        let (text, code) = match self {
            Self::Head(text) => (text, "1"),
            Self::Added(text) => (text, "32"),
            Self::Changed(text) => (text, "33"),
            Self::Unnamed(text) => (text, "31"),
            Self::Plain(text) => (text, "0"),
        };
        match colour {
            Colour::On => format!("\u{1b}[{code}m{}\u{1b}[0m", clean(text)),
            Colour::Off => clean(text),
        }
    }
}

fn about(guest: &DesiredGuest) -> String {
    let size = &guest.size;
    let vmid = guest.vmid.map(|vmid| format!(", VMID {vmid}")).unwrap_or_default();
    format!(
        "{}, {}, golden {}, {} {}, {} memory, {} root disk, {} on {}{vmid}",
        guest.customer,
        run(guest.run),
        guest.golden,
        size.cores.get(),
        if size.cores.get() == 1 { "core" } else { "cores" },
        size.memory_mib,
        size.rootfs_gib,
        guest.network.address,
        guest.network.bridge,
    )
}

fn volumes(guest: &DesiredGuest) -> impl Iterator<Item = String> {
    guest.volumes.iter().map(|volume| format!("volume {}: {}", volume.name, volume_words(volume)))
}

fn change_text(change: &FieldChange) -> String {
    let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "(none)".to_owned());
    let remark = change.remark.as_ref().map(|remark| format!("   ! {remark}")).unwrap_or_default();
    format!("{}: {} -> {}{remark}", change.field, side(&change.before), side(&change.after))
}
