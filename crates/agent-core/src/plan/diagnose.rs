//! Texts of named readings, bounded and without secrets.
//!
//! What comes in: the agent's own report, and Proxmox's running tasks. What goes out: lines for people, of at most 64 KiB,
//! with what looks like a secret blacked out. The report has no secrets; messages of other programs in it may. Deliberately
//! absent: any command, and any name that is not in the list.

use std::fmt::Write as _;

use holdfast_protocol::id::GuestUid;
use holdfast_protocol::operation::OperationView;
use holdfast_protocol::report::{GuestReport, Sections};
use holdfast_protocol::work_order::{DIAGNOSTIC_BYTES_MAX, DiagnosticName};
use jiff::Timestamp;
use serde::Serialize;

/// The last line of a text that was cut.
const CUT: &str = "\n(cut: there is more than 64 KiB of it)\n";

/// A task that Proxmox runs now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningTask {
    pub upid: String,
    pub kind: String,
    /// The guest or volume it works on, as Proxmox names it.
    pub subject: String,
    /// `user@realm`, or `user@realm!token`.
    pub owner: String,
    pub since: Option<Timestamp>,
}

/// What a reading is made from.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'a> {
    pub sections: &'a Sections,
    /// The running tasks, or why they are not known.
    pub tasks: Result<&'a [RunningTask], &'a str>,
    pub now: Timestamp,
}

/// The text of one reading.
#[must_use]
pub fn text(name: DiagnosticName, guest: Option<GuestUid>, sources: Sources<'_>) -> String {
    let mut page = Page::default();
    page.line(format_args!("{} at {:.0}", name.as_str(), sources.now));
    match name {
        DiagnosticName::Doctor => doctor(&mut page, sources.sections),
        DiagnosticName::Storage => storage(&mut page, sources.sections),
        DiagnosticName::Network => network(&mut page, sources.sections, guest),
        DiagnosticName::Locks => locks(&mut page, sources, guest),
        DiagnosticName::Journal => journal(&mut page, sources.sections, guest),
        DiagnosticName::GuestAgent => guest_agents(&mut page, sources.sections, guest),
    }
    bounded(redacted(&page.0))
}

#[derive(Default)]
struct Page(String);

impl Page {
    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing into a String cannot fail.
        let _infallible = writeln!(self.0, "{text}");
    }

    /// One value of the report on one line, as the hub gets it.
    fn value(&mut self, label: &str, value: &impl Serialize) {
        match serde_json::to_string(value) {
            Ok(text) => self.line(format_args!("{label} {text}")),
            Err(error) => self.line(format_args!("{label} cannot be written: {error}")),
        }
    }
}

fn doctor(page: &mut Page, sections: &Sections) {
    if let Some(agent) = &sections.agent {
        page.line(format_args!("agent {} since {:.0}", agent.version, agent.started_at));
        for problem in &agent.problems {
            page.line(format_args!("problem {problem}"));
        }
    }
    if let Some(host) = &sections.host {
        page.line(format_args!("node {} proxmox {}", host.node, host.proxmox_version));
    }
    if let Some(conditions) = &sections.conditions {
        page.value("conditions", conditions);
    }
    if let Some(desired) = &sections.desired {
        page.value("document", desired);
    }
    if let Some(updates) = &sections.updates {
        page.value("updates", updates);
    }
}

fn storage(page: &mut Page, sections: &Sections) {
    for storage in sections.host.iter().flat_map(|host| &host.storages) {
        page.value("storage", storage);
    }
    for target in sections.storage.iter().flatten() {
        page.value("target", target);
    }
    if let Some(hardware) = &sections.hardware {
        page.value("hardware", hardware);
    }
}

fn chosen(sections: &Sections, guest: Option<GuestUid>) -> impl Iterator<Item = &GuestReport> {
    let is_meant = move |one: &&GuestReport| guest.is_none_or(|guest| one.uid == Some(guest));
    sections.guests.iter().flatten().filter(is_meant)
}

fn network(page: &mut Page, sections: &Sections, guest: Option<GuestUid>) {
    for one in chosen(sections, guest) {
        let vmid = one.vmid.map_or_else(|| "-".to_owned(), |vmid| vmid.to_string());
        page.line(format_args!("guest {} vmid {vmid} run {:?}", one.name, one.run));
        page.value("  address", &one.address);
        page.value("  filter", &one.address_filter);
        for condition in &one.conditions {
            page.value("  condition", condition);
        }
    }
    for tunnel in sections.agent.iter().flat_map(|agent| &agent.tunnels) {
        page.value("tunnel", tunnel);
    }
}

fn locks(page: &mut Page, sources: Sources<'_>, guest: Option<GuestUid>) {
    let vmids: Vec<String> =
        chosen(sources.sections, guest).filter_map(|one| one.vmid).map(|vmid| vmid.to_string()).collect();
    for one in chosen(sources.sections, guest) {
        let Some(lock) = &one.lock else { continue };
        let vmid = one.vmid.map(|vmid| vmid.to_string()).unwrap_or_default();
        page.line(format_args!("lock {} on {} ({vmid}) seen since {:.0}", lock.kind, one.name, lock.since));
        let holders = sources.tasks.unwrap_or_default().iter().filter(|task| works_on(task, &vmid));
        let mut is_held = false;
        for task in holders {
            is_held = true;
            held(page, "  held by", task);
        }
        if !is_held {
            page.line(format_args!(
                "  no running task works on it: it may be left over (`pct unlock {vmid}`)"
            ));
        }
    }
    for operation in sources.sections.operations.iter().flatten().filter(|one| !one.status.is_end()) {
        if guest.is_none_or(|guest| operation.guest == guest) {
            under_way(page, operation);
        }
    }
    match sources.tasks {
        Ok(tasks) => {
            for task in tasks {
                if guest.is_none() || vmids.iter().any(|vmid| works_on(task, vmid)) {
                    held(page, "task", task);
                }
            }
        }
        Err(why) => page.line(format_args!("the running tasks are not known: {why}")),
    }
}

/// `141`, but also `141@backup2` and `210-mp0>213-mp0`.
fn works_on(task: &RunningTask, vmid: &str) -> bool {
    let mut numbers = task.subject.split(|c: char| !c.is_ascii_digit());
    !vmid.is_empty() && numbers.any(|number| number == vmid)
}

fn held(page: &mut Page, label: &str, task: &RunningTask) {
    let since = task.since.map_or_else(|| "?".to_owned(), |since| format!("{since:.0}"));
    page.line(format_args!(
        "{label} {} {} by {} since {since}: {}",
        task.kind, task.subject, task.owner, task.upid
    ));
}

fn under_way(page: &mut Page, operation: &OperationView) {
    page.line(format_args!(
        "operation {} of {} {} since {:.0}: {}",
        operation.kind.as_str(),
        operation.name,
        operation.status.as_str(),
        operation.opened_at,
        operation.id
    ));
    for step in &operation.steps {
        page.value("  step", step);
    }
}

fn journal(page: &mut Page, sections: &Sections, guest: Option<GuestUid>) {
    for operation in sections.operations.iter().flatten() {
        if guest.is_some_and(|guest| operation.guest != guest) {
            continue;
        }
        under_way(page, operation);
        if let Some(problem) = &operation.problem {
            page.line(format_args!("  problem {problem}"));
        }
    }
}

fn guest_agents(page: &mut Page, sections: &Sections, guest: Option<GuestUid>) {
    for one in chosen(sections, guest) {
        page.value(&format!("guest {}", one.name), &one.controller);
    }
}

/// Names after which a value is blacked out, where `=` or `:` comes between.
const SECRET_NAMES: [&str; 8] =
    ["token", "secret", "password", "passphrase", "authorization", "cookie", "ticket", "private_key"];

/// What begins a value that is blacked out, wherever it is: ours, Proxmox's, and that of HTTP.
const SECRET_BEGINS: [&str; 3] = ["hf1_", "pveapitoken=", "bearer "];

/// Words between a name and its value.
const SCHEMES: [&str; 2] = ["bearer ", "basic "];

/// Blacks out what follows a name that speaks of a secret, and what has the form of one.
fn redacted(text: &str) -> String {
    text.split_inclusive('\n').map(redacted_line).collect()
}

fn redacted_line(line: &str) -> String {
    // Of the same length, so that places in it are places in the line.
    let lower = line.to_ascii_lowercase();
    let (mut out, mut at) = (String::with_capacity(line.len()), 0);
    while let Some((begins, ends)) = next_secret(&lower, at) {
        out.push_str(line.get(at..begins).unwrap_or_default());
        out.push_str("***");
        at = ends;
    }
    out.push_str(line.get(at..).unwrap_or_default());
    out
}

/// The next value that is blacked out, from this place on.
fn next_secret(lower: &str, from: usize) -> Option<(usize, usize)> {
    let named =
        SECRET_NAMES.iter().flat_map(|name| places(lower, from, name).filter_map(|at| named(lower, at)));
    let bare =
        SECRET_BEGINS.iter().flat_map(|begin| places(lower, from, begin).filter_map(|at| value(lower, at)));
    named.chain(bare).min()
}

/// The ends of all places of a word.
fn places<'a>(lower: &'a str, from: usize, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let rest = lower.get(from..).unwrap_or_default();
    rest.match_indices(word).map(move |(at, _)| from + at + word.len())
}

/// The value after a name that ends here.
fn named(lower: &str, at: usize) -> Option<(usize, usize)> {
    let tail = lower.get(at..)?;
    let between = tail.find(|c: char| !" \t\"'=:".contains(c))?;
    tail.get(..between).filter(|text| text.contains(['=', ':']))?;
    let value_at = at + between;
    let scheme =
        SCHEMES.iter().find(|scheme| lower.get(value_at..).is_some_and(|rest| rest.starts_with(**scheme)));
    value(lower, value_at + scheme.map_or(0, |scheme| scheme.len()))
}

/// From here to the end of the word.
fn value(lower: &str, at: usize) -> Option<(usize, usize)> {
    let tail = lower.get(at..)?;
    let length = tail.find(|c: char| c.is_whitespace() || "\"',;{}[]".contains(c)).unwrap_or(tail.len());
    (length > 0).then_some((at, at + length))
}

fn bounded(mut text: String) -> String {
    if text.len() > DIAGNOSTIC_BYTES_MAX {
        let most = DIAGNOSTIC_BYTES_MAX - CUT.len();
        let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push_str(CUT);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap()
    }

    #[test]
    fn what_looks_like_a_secret_is_blacked_out() {
        for (line, gone) in [
            ("Authorization: Bearer abc123def\n", "abc123def"),
            ("authorization: PVEAPIToken=holdfast@pve!ops=0a1b2c3d\n", "0a1b2c3d"),
            ("password=hunter2 next\n", "hunter2"),
            ("\"password\":\"hunter2\",\"user\":\"root\"\n", "hunter2"),
            ("invite hf1_abcdefghijkl was used\n", "abcdefghijkl"),
            ("the token: s3cr3t is refused\n", "s3cr3t"),
            ("private_key = zzz999\n", "zzz999"),
        ] {
            let text = redacted(line);
            assert!(!text.contains(gone) && text.contains("***"), "{line:?} became {text:?}");
            assert!(text.ends_with('\n'));
        }
        let plain =
            "guest web-1 lock backup since 2027-01-15T08:00:00Z: UPID:pve:00:00:00:vzdump:141:root@pam:\n";
        assert_eq!(redacted(plain), plain);
    }

    #[test]
    fn a_text_is_cut_at_its_bound() {
        let text = bounded("ä".repeat(DIAGNOSTIC_BYTES_MAX));
        assert!(text.len() <= DIAGNOSTIC_BYTES_MAX && text.ends_with(CUT));
        assert_eq!(bounded("short".to_owned()), "short");
    }

    #[test]
    fn every_reading_of_an_empty_report_is_a_text() {
        let sections = Sections::default();
        for name in DiagnosticName::ALL {
            let sources = Sources { sections: &sections, tasks: Err("no answer"), now: now() };
            assert!(text(name, None, sources).starts_with(name.as_str()));
        }
    }

    #[test]
    fn a_task_is_shown_with_its_user_and_beginning() {
        let task = RunningTask {
            upid: "UPID:pve:0001:0002:6B49D200:vzdump:141:root@pam:".to_owned(),
            kind: "vzdump".to_owned(),
            subject: "141@backup2".to_owned(),
            owner: "root@pam".to_owned(),
            since: Some(now()),
        };
        assert!(works_on(&task, "141") && !works_on(&task, "14") && !works_on(&task, ""));
        let sections = Sections::default();
        let tasks = [task];
        let sources = Sources { sections: &sections, tasks: Ok(&tasks), now: now() };
        let text = text(DiagnosticName::Locks, None, sources);
        assert!(text.contains("vzdump 141@backup2 by root@pam since 2027-01-15T08:00:00Z"), "{text}");
    }
}
