//! Guest agents of a rollout in the guests of one host.
//!
//! In: the host's document and its last report. Out: the document that asks for the guest agent, and the progress of the
//! host. Deliberately absent: the exchange itself, which each agent does by its own rules, and the way back of a guest.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::condition::{ConditionCode, ReportedCondition, Severity};
use holdfast_protocol::desired::{DesiredController, DesiredDocument, RunState};
use holdfast_protocol::generation::Generation;
use holdfast_protocol::release::VersionNumber;
use holdfast_protocol::report::{GuestReport, GuestStatus};
use jiff::Timestamp;

use super::progress::{Contact, Progress};

/// What became of asking for it in the document of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentRequest {
    pub at: Option<Timestamp>,
    /// The generation that asks for it; none where the document names no guest that needs it.
    pub generation: Option<Generation>,
    /// Why the document could not be changed.
    pub refused: Option<String>,
}

/// What a host reported last of its guests.
#[derive(Clone, Debug)]
pub struct GuestsReport {
    pub contact: Contact,
    /// The generation that it holds.
    pub held: Generation,
    pub guests: Vec<GuestReport>,
    pub conditions: Vec<ReportedCondition>,
}

/// The document with the guest agent for each of its guests, as the next generation; none where nothing changes. A guest
/// for which a newer one is asked for keeps that.
#[must_use]
pub fn asking_for(document: &DesiredDocument, controller: &DesiredController) -> Option<DesiredDocument> {
    let wanted = number(controller.version.as_str());
    let mut next = document.clone();
    for guest in &mut next.guests {
        let asked = guest.controller.as_ref().and_then(|asked| number(asked.version.as_str()));
        if asked.is_none_or(|asked| wanted.is_some_and(|wanted| asked <= wanted)) {
            guest.controller = Some(controller.clone());
        }
    }
    if next == *document {
        return None;
    }
    next.generation = Generation::new(document.generation.number().saturating_add(1));
    Some(next)
}

/// Other versions than three numbers have no order.
fn number(version: &str) -> Option<VersionNumber> {
    version.parse().ok()
}

/// Judges a host by its guests that should run.
#[must_use]
pub fn progress(version: VersionNumber, asked: &DocumentRequest, report: &GuestsReport) -> Progress {
    if report.contact == Contact::Revoked {
        return Progress::Gone;
    }
    if let Some(why) = &asked.refused {
        return Progress::Failed(format!("its document could not be changed: {why}"));
    }
    if asked.at.is_none() {
        return contact(report.contact, Progress::Waiting);
    }
    // A document that names no guest which needs it was not changed.
    let Some(generation) = asked.generation else { return contact(report.contact, Progress::Done) };
    if report.held < generation {
        return contact(report.contact, Progress::Waiting);
    }
    if let Some(why) = failure(asked, report) {
        return Progress::Failed(why);
    }
    let runs = report
        .guests
        .iter()
        .filter(|guest| guest.status == GuestStatus::Managed && guest.wanted == Some(RunState::Running));
    let has_it = |guest: &GuestReport| {
        let reported = guest.controller.as_ref().and_then(|controller| number(&controller.version));
        reported.is_some_and(|reported| reported >= version)
    };
    let all_have_it = runs.into_iter().all(has_it);
    contact(report.contact, if all_have_it { Progress::Done } else { Progress::Waiting })
}

fn contact(contact: Contact, heard: Progress) -> Progress {
    match contact {
        Contact::Heard => heard,
        Contact::Silent => Progress::Silent,
        Contact::Revoked => Progress::Gone,
    }
}

/// Why the guest agent counts as bad on this host: it did not come up in a guest, a guest agent fell silent since it was
/// asked for, or something critical began since.
fn failure(asked: &DocumentRequest, report: &GuestsReport) -> Option<String> {
    let bad = report.guests.iter().find_map(|guest| {
        let bad = guest.conditions.iter().find(|condition| condition.code == ErrorCode::ControllerBad)?;
        Some(format!("{}: {}", bad.code, bad.message))
    });
    let since = |one: &&ReportedCondition| asked.at.is_some_and(|at| one.since >= at);
    let counts = |one: &&ReportedCondition| {
        one.code == ConditionCode::ControllerSilent || one.severity == Severity::Critical
    };
    let new = || {
        let first = report.conditions.iter().filter(since).filter(counts).min_by_key(|one| one.since)?;
        Some(format!("{} since it was asked for: {}", first.code, first.message.as_str()))
    };
    bad.or_else(new)
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::condition::Subject;
    use holdfast_protocol::id::GuestUid;
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::*;

    const VERSION: VersionNumber = VersionNumber::new(2026, 12, 0);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    fn controller(version: &str) -> DesiredController {
        let sha256 = holdfast_protocol::job::act::Sha256Text::of(version.as_bytes());
        DesiredController { version: version.to_owned().try_into().unwrap(), sha256 }
    }

    fn guest(number: u128, controller: Option<&str>) -> Value {
        let mut guest = json!({
            "uid": Uuid::from_u128(number), "name": format!("web-{number}"), "customer": "acme", "run": "running",
            "golden": "2026.11.1", "size": { "cores": 1, "memory_mib": 512, "swap_mib": 0, "rootfs_gib": 8 },
            "network": { "bridge": "vmbr0", "address": format!("10.0.0.{}/24", number + 10) }
        });
        if let Some(version) = controller {
            guest["controller"] = serde_json::to_value(self::controller(version)).unwrap();
        }
        guest
    }

    fn document(guests: &[Value]) -> DesiredDocument {
        let document = json!({ "schema": "holdfast.desired/v1", "generation": 7, "poll_interval_s": 30, "guests": guests });
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn it_is_asked_for_in_each_guest_that_wants_no_newer_one() {
        let wanted = controller("2026.12.0");
        let guests = [
            guest(1, None),
            guest(2, Some("2026.11.0")),
            guest(3, Some("2027.1.0")),
            guest(4, Some("a-build")),
        ];
        let next = asking_for(&document(&guests), &wanted).unwrap();
        assert_eq!(next.generation, Generation::new(8));
        let versions: Vec<_> =
            next.guests.iter().map(|guest| guest.controller.as_ref().unwrap().version.as_str()).collect();
        assert_eq!(versions, ["2026.12.0", "2026.12.0", "2027.1.0", "2026.12.0"]);
        assert_eq!(asking_for(&next, &wanted), None, "it is asked for already");
        assert_eq!(asking_for(&document(&[]), &wanted), None);
        assert_eq!(asking_for(&document(&[guest(3, Some("2027.1.0"))]), &wanted), None);
    }

    fn reported(number: u128, version: Option<&str>, wanted: &str, bad: Option<&str>) -> GuestReport {
        let mut guest = json!({ "uid": Uuid::from_u128(number), "name": format!("web-{number}"), "status": "managed",
            "run": "running", "wanted": wanted });
        if let Some(version) = version {
            guest["controller"] = json!({ "version": version, "hello_at": at(50), "health": "well" });
        }
        if let Some(message) = bad {
            guest["conditions"] = json!([{ "code": "CONTROLLER_BAD", "message": message }]);
        }
        serde_json::from_value(guest).unwrap()
    }

    #[test]
    fn a_host_is_done_when_all_its_guests_that_should_run_have_it() {
        let asked = DocumentRequest { at: Some(at(0)), generation: Some(Generation::new(8)), refused: None };
        let report = |held, guests: Vec<GuestReport>| GuestsReport {
            contact: Contact::Heard,
            held: Generation::new(held),
            guests,
            conditions: Vec::new(),
        };
        let has = || reported(1, Some("2026.12.0"), "running", None);
        let off = || reported(2, None, "stopped", None);
        let old = || reported(3, Some("2026.11.0"), "running", None);
        let judge = |asked: &DocumentRequest, report: &GuestsReport| progress(VERSION, asked, report);
        assert_eq!(judge(&asked, &report(8, vec![has(), off()])), Progress::Done);
        assert_eq!(judge(&asked, &report(9, vec![has(), old()])), Progress::Waiting);
        assert_eq!(judge(&asked, &report(7, vec![has()])), Progress::Waiting, "it has not read the document");
        assert_eq!(
            judge(&DocumentRequest::default(), &report(8, vec![has()])),
            Progress::Waiting,
            "it is not its turn"
        );
        let nothing = DocumentRequest { generation: None, ..asked.clone() };
        assert_eq!(judge(&nothing, &report(7, Vec::new())), Progress::Done, "no guest needs it");
        let refused = DocumentRequest { refused: Some("why".to_owned()), ..asked.clone() };
        let why = "its document could not be changed: why".to_owned();
        assert_eq!(judge(&refused, &report(8, Vec::new())), Progress::Failed(why));

        let bad = || reported(4, Some("2026.11.0"), "running", Some("it did not come up"));
        let why = "CONTROLLER_BAD: it did not come up".to_owned();
        assert_eq!(judge(&asked, &report(8, vec![has(), bad()])), Progress::Failed(why));
        assert_eq!(judge(&asked, &report(7, vec![bad()])), Progress::Waiting, "that was an earlier one");
        let subject = Subject::Guest { uid: GuestUid::new(Uuid::from_u128(1)) };
        let silent = |second| GuestsReport {
            conditions: vec![ReportedCondition::new(
                ConditionCode::ControllerSilent,
                subject.clone(),
                at(second),
                "not heard",
            )],
            ..report(8, vec![has()])
        };
        assert_eq!(judge(&asked, &silent(-1)), Progress::Done, "it was silent before");
        let why = "CONTROLLER_SILENT since it was asked for: not heard".to_owned();
        assert_eq!(judge(&asked, &silent(1)), Progress::Failed(why));
        let quiet = GuestsReport { contact: Contact::Silent, ..report(8, vec![has()]) };
        assert_eq!(judge(&asked, &quiet), Progress::Silent);
        let gone = GuestsReport { contact: Contact::Revoked, ..report(8, vec![has()]) };
        assert_eq!(judge(&asked, &gone), Progress::Gone);
    }
}
