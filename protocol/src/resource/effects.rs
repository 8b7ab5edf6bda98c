//! What a change of a document would cause on its host.
//!
//! In: two documents, their difference, the last report. Out: one effect for each guest or storage target and kind, in words.
//! The agent decides by what it observes then; here it is what document and last report can say. Deliberately absent: what
//! waits for a signature ([`super::signatures`]).

mod field;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::diff::{ChangedGuest, DocumentDiff, FieldChange, NamedGuest};
use crate::desired::{DesiredDocument, DesiredGuest, RunState};
use crate::id::{GuestUid, TargetName};
use crate::report::{GuestReport, GuestStatus, Running, Sections};
use crate::storage::{StorageTarget, TargetState};

pub use field::effect_of_field;

/// What would be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EffectKind {
    /// A guest is made.
    Provision,
    /// A guest that is not made yet is made otherwise.
    ProvisionChanged,
    /// A guest that is on the host is managed again.
    Manage,
    /// A guest is started.
    Start,
    /// A guest is stopped.
    Stop,
    /// Its configuration is changed while it runs.
    Reconfigure,
    /// A disk is made larger.
    Grow,
    /// A volume is made and mounted.
    AttachVolume,
    /// The guest agent in it is exchanged.
    UpdateController,
    /// Its backups follow another promise.
    ChangeProtection,
    /// Only the agent's own schedule or levels change.
    Schedule,
    /// Written to the configuration, in force from the next start on.
    AtNextStart,
    /// It is no longer named, and stays on the host as it is.
    Unmanage,
    /// It was not made, and is not made any more.
    NotMade,
    /// A storage target is put to use.
    UseStorage,
    /// A storage target is released.
    ReleaseStorage,
    /// Nothing carries it out; the guest's status says so.
    NotCarriedOut,
}

impl EffectKind {
    /// For people.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Provision => "is created",
            Self::ProvisionChanged => "is not made yet, and is created with this",
            Self::Manage => "is managed again",
            Self::Start => "is started",
            Self::Stop => "is stopped",
            Self::Reconfigure => "is reconfigured without a restart",
            Self::Grow => "gets a larger disk",
            Self::AttachVolume => "gets a new volume",
            Self::UpdateController => "gets another guest agent",
            Self::ChangeProtection => "is protected otherwise",
            Self::Schedule => "is handled otherwise by the agent",
            Self::AtNextStart => "has it from its next start on",
            Self::Unmanage => "is no longer named: it stays as it is, unmanaged",
            Self::NotMade => "is not made",
            Self::UseStorage => "is put to use",
            Self::ReleaseStorage => "is released",
            Self::NotCarriedOut => "stays as it is: nothing carries this out",
        }
    }
}

/// One effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeEffect {
    /// On which guest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<NamedGuest>,
    /// On which storage target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<TargetName>,
    /// What would be done.
    pub effect: EffectKind,
    /// Because of which fields; empty where the whole part is meant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub because: Vec<String>,
}

/// Whether the last report shows the guest as one that was made.
#[must_use]
pub fn is_made(report: Option<&GuestReport>) -> bool {
    report.is_some_and(|report| match report.status {
        GuestStatus::Absent | GuestStatus::RestoredCopy => false,
        GuestStatus::Managed
        | GuestStatus::Unmanaged
        | GuestStatus::Missing
        | GuestStatus::Foreign
        | GuestStatus::Broken
        | GuestStatus::Parked => true,
    })
}

/// The report of a guest.
#[must_use]
pub fn report_of(sections: &Sections, uid: GuestUid) -> Option<&GuestReport> {
    sections.guests.iter().flatten().find(|report| report.uid == Some(uid))
}

/// All effects: guests in the order of the difference, then storage targets.
#[must_use]
pub fn effects(
    before: Option<&DesiredDocument>,
    after: &DesiredDocument,
    diff: &DocumentDiff,
    sections: &Sections,
) -> Vec<ChangeEffect> {
    let mut all: Vec<ChangeEffect> = Vec::new();
    all.extend(diff.added.iter().map(|guest| added(guest, report_of(sections, guest.uid))));
    for changed in &diff.changed {
        all.extend(of_changed(changed, report_of(sections, changed.guest.uid)));
    }
    all.extend(protection(diff));
    for guest in &diff.unnamed {
        let made = is_made(report_of(sections, guest.uid));
        let effect = if made { EffectKind::Unmanage } else { EffectKind::NotMade };
        all.push(of_guest(guest.clone(), effect, Vec::new()));
    }
    let old: &[StorageTarget] = before.map_or(&[], |before| &before.storage);
    all.extend(storage(old, &after.storage));
    all
}

fn of_guest(guest: NamedGuest, effect: EffectKind, because: Vec<String>) -> ChangeEffect {
    ChangeEffect { guest: Some(guest), storage: None, effect, because }
}

fn added(guest: &DesiredGuest, report: Option<&GuestReport>) -> ChangeEffect {
    let effect = if is_made(report) { EffectKind::Manage } else { EffectKind::Provision };
    let run = match guest.run {
        RunState::Running => "it is started then".to_owned(),
        RunState::Stopped => "it stays stopped".to_owned(),
    };
    of_guest(NamedGuest { name: guest.name.clone(), uid: guest.uid }, effect, vec![run])
}

/// Of a guest that is not made yet, every change goes into its making.
fn of_changed(changed: &ChangedGuest, report: Option<&GuestReport>) -> Vec<ChangeEffect> {
    let mut kinds: BTreeMap<EffectKind, Vec<String>> = BTreeMap::new();
    for change in &changed.changes {
        let kind = if is_made(report) { effect_of_field(change) } else { EffectKind::ProvisionChanged };
        kinds.entry(at_last(kind, report)).or_default().push(text(change));
    }
    let one = |(effect, because)| of_guest(changed.guest.clone(), effect, because);
    kinds.into_iter().map(one).collect()
}

/// What waits for a start is simply written where the guest does not run.
fn at_last(kind: EffectKind, report: Option<&GuestReport>) -> EffectKind {
    let is_stopped = report.is_some_and(|report| report.run == Running::Stopped);
    if kind == EffectKind::AtNextStart && is_stopped { EffectKind::Reconfigure } else { kind }
}

fn text(change: &FieldChange) -> String {
    let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "(none)".to_owned());
    format!("{}: {} -> {}", change.field, side(&change.before), side(&change.after))
}

/// A changed policy changes no field of the guests under it; those that would be less protected are in the difference.
fn protection(diff: &DocumentDiff) -> Option<ChangeEffect> {
    let names = diff.settings.iter().filter_map(|change| change.field.strip_prefix("policies."));
    let names: BTreeSet<&str> = names.filter_map(|rest| rest.split('.').next()).collect();
    let because: Vec<String> = names.iter().map(|name| format!("policy {name}")).collect();
    let effect = EffectKind::ChangeProtection;
    (!because.is_empty()).then_some(ChangeEffect { guest: None, storage: None, effect, because })
}

fn storage(old: &[StorageTarget], new: &[StorageTarget]) -> Vec<ChangeEffect> {
    let one = |name: &TargetName, effect, because: String| ChangeEffect {
        guest: None,
        storage: Some(name.clone()),
        effect,
        because: vec![because],
    };
    let mut all = Vec::new();
    for target in new {
        let was = old.iter().find(|was| was.name == target.name);
        let is_used = target.state == TargetState::Attached;
        match was {
            None if is_used => {
                all.push(one(&target.name, EffectKind::UseStorage, target.backend.to_string()))
            }
            Some(was) if was.state != target.state => {
                let because = format!("state: {} -> {}", was.state, target.state);
                let effect = if is_used { EffectKind::UseStorage } else { EffectKind::ReleaseStorage };
                all.push(one(&target.name, effect, because));
            }
            Some(was) if was.backend != target.backend && is_used => {
                let because = format!("backend: {} -> {}", was.backend, target.backend);
                all.push(one(&target.name, EffectKind::UseStorage, because));
            }
            None | Some(_) => {}
        }
    }
    for was in old.iter().filter(|was| !new.iter().any(|target| target.name == was.name)) {
        let because = "left out of the document, which does not detach it".to_owned();
        all.push(one(&was.name, EffectKind::Unmanage, because));
    }
    all
}
