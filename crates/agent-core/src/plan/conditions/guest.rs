//! Conditions of guests.
//!
//! In: the guests of the last observation. While Proxmox is away these are the last that were seen, so a guest that was well
//! raises nothing, and one that was not is not well again.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::condition::{ConditionCode, Subject};
use holdfast_protocol::desired::RunState;
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::report::{GuestReport, GuestStatus, Running, SilenceKind};
use jiff::Timestamp;

use super::facts::is_proved_missing;
use super::{Finding, HostKnowledge, Names};

pub(super) fn all(known: &HostKnowledge<'_>) -> Vec<Finding> {
    let facts = &known.view.facts;
    let mut found: Vec<Finding> =
        known.view.guests.iter().filter_map(|guest| Some(of(known, guest, guest.uid?))).flatten().collect();
    let names = Names::of(known.view);
    found.extend(facts.frozen.iter().map(|uid| {
        let message =
            format!("{}: two used its claim or its token, so its access is closed", names.name(*uid));
        Finding::new(ConditionCode::GuestFrozen, Subject::Guest { uid: *uid }, message)
    }));
    found.extend(facts.parked.iter().map(|(uid, texts)| {
        let message = format!("{}: {}", names.name(*uid), texts.join("; "));
        Finding::new(ConditionCode::GuestParked, Subject::Guest { uid: *uid }, message)
    }));
    found
}

fn of(known: &HostKnowledge<'_>, guest: &GuestReport, uid: GuestUid) -> Vec<Finding> {
    let raise = |code, text: String| {
        let message = format!("{}: {text}", guest.name);
        Finding::new(code, Subject::Guest { uid }, message)
    };
    let mut found = Vec::new();
    let facts = &known.view.facts;
    if is_crashed(guest) && !facts.power_unclear.contains(&uid) {
        found.push(raise(ConditionCode::GuestCrashed, crashed(guest)));
    }
    let stated = match guest.status {
        GuestStatus::Broken => Some((ConditionCode::GuestBroken, ErrorCode::Broken)),
        GuestStatus::Parked => Some((ConditionCode::GuestParked, ErrorCode::Parked)),
        GuestStatus::Managed
        | GuestStatus::Unmanaged
        | GuestStatus::Absent
        | GuestStatus::Missing
        | GuestStatus::Foreign
        | GuestStatus::RestoredCopy => None,
    };
    found.extend(stated.map(|(code, why)| {
        raise(code, texts(guest, why).unwrap_or_else(|| "it is left for an operator".to_owned()))
    }));
    let away = guest.status == GuestStatus::Missing && is_proved_missing(&guest.conditions);
    if away || facts.lost.contains(&uid) {
        found.push(raise(ConditionCode::GuestMissing, missing(guest)));
    }
    found.extend(silent(guest).map(|(text, since)| {
        let finding = raise(ConditionCode::ControllerSilent, text);
        Finding { since, ..finding }
    }));
    for (why, code) in BY_CODE {
        found.extend(texts(guest, *why).map(|text| raise(*code, text)));
    }
    // A build that is bad in other guests does not run here, nor did it.
    let went_back = facts.went_back.get(&uid).copied();
    let code = if went_back.is_some() { ConditionCode::UpdateRolledBack } else { ConditionCode::UpdateHeld };
    found.extend(texts(guest, ErrorCode::ControllerBad).map(|text| {
        let finding = raise(code, text);
        Finding { since: went_back, ..finding }
    }));
    found
}

/// Facts that a guest's report has only as a code with a sentence.
const BY_CODE: &[(ErrorCode, ConditionCode)] = &[
    (ErrorCode::ControllerUnapproved, ConditionCode::ControllerUnapproved),
    (ErrorCode::ControllerWaits, ConditionCode::UpdateHeld),
];

/// A guest without a VMID is not made yet, so it has not stopped.
fn is_crashed(guest: &GuestReport) -> bool {
    guest.wanted == Some(RunState::Running) && guest.run == Running::Stopped && guest.vmid.is_some()
}

fn crashed(guest: &GuestReport) -> String {
    match texts(guest, ErrorCode::Locked) {
        Some(locked) => format!("it stopped although it should run; {locked}"),
        None => "it stopped although it should run".to_owned(),
    }
}

fn missing(guest: &GuestReport) -> String {
    let all: Vec<&str> = guest.conditions.iter().map(|condition| condition.message.as_str()).collect();
    if all.is_empty() { "it is gone from its host".to_owned() } else { all.join("; ") }
}

/// Its last hello is known where the silence was measured. A guest that came back and was not heard since has no such time.
fn silent(guest: &GuestReport) -> Option<(String, Option<Timestamp>)> {
    let silence = guest.controller.as_ref().and_then(|controller| controller.silence);
    let since = silence.filter(|silence| silence.is == SilenceKind::Silent).map(|silence| silence.since);
    let text = texts(guest, ErrorCode::ControllerSilent);
    match (text, since) {
        (Some(text), since) => Some((text, since)),
        (None, Some(since)) => {
            Some((format!("its guest agent has been silent since {since:.0}"), Some(since)))
        }
        (None, None) => None,
    }
}

/// All sentences of a code.
pub(super) fn texts(guest: &GuestReport, code: ErrorCode) -> Option<String> {
    let of_code = guest.conditions.iter().filter(|condition| condition.code == code);
    let all: Vec<&str> = of_code.map(|condition| condition.message.as_str()).collect();
    (!all.is_empty()).then(|| all.join("; "))
}
