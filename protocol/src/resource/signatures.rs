//! What of a change waits for an operator's signature.
//!
//! In: two documents, their difference, the last report. Out: the signed acts that the change needs before all of it is in
//! force, as far as document and last report can say. The gate of the agent decides. Deliberately absent: budgets of a host
//! (growth a day, changes at once), which only the host knows; [`not_judged`] names them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::diff::{DocumentDiff, NamedGuest};
use super::effects::{ChangeEffect, EffectKind, is_made, report_of};
use crate::desired::{DesiredController, DesiredDocument, DesiredGuest};
use crate::id::TargetName;
use crate::job::act::Verb;
use crate::report::{ImageStatus, Sections};
use crate::storage::report::TargetStatus;
use crate::storage::{StorageTarget, TargetState};

/// How sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// By the document and the last report.
    Certain,
    /// The last report does not say it.
    Possible,
}

/// A signature that a change waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignatureNeed {
    /// What is signed.
    pub verb: Verb,
    /// Of which guest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<NamedGuest>,
    /// Of which storage target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<TargetName>,
    /// How sure it is.
    pub certainty: Certainty,
    /// Why.
    pub why: String,
}

fn of_guest(verb: Verb, guest: NamedGuest, certainty: Certainty, why: String) -> SignatureNeed {
    SignatureNeed { verb, guest: Some(guest), storage: None, certainty, why }
}

/// All of them: guests first, then storage targets.
#[must_use]
pub fn signatures(
    before: Option<&DesiredDocument>,
    after: &DesiredDocument,
    diff: &DocumentDiff,
    sections: &Sections,
) -> Vec<SignatureNeed> {
    let weaker = diff.weaker.iter().map(|weaker| {
        let why = format!("it would be less protected: {}", weaker.what.join("; "));
        of_guest(Verb::LoosenPolicy, weaker.guest.clone(), Certainty::Certain, why)
    });
    let images = diff.added.iter().filter_map(|guest| image(guest, sections));
    let builds = after.guests.iter().filter_map(|guest| build(before, guest));
    let unnamed = diff.unnamed.iter().filter(|guest| is_made(report_of(sections, guest.uid))).map(|guest| {
        let why = "it stays on the host, unmanaged, until a signature destroys it".to_owned();
        of_guest(Verb::DestroyGuest, guest.clone(), Certainty::Certain, why)
    });
    let old: &[StorageTarget] = before.map_or(&[], |before| &before.storage);
    let targets = after.storage.iter().filter_map(|target| storage(old, target, sections));
    weaker.chain(images).chain(builds).chain(unnamed).chain(targets).collect()
}

fn named(guest: &DesiredGuest) -> NamedGuest {
    NamedGuest { name: guest.name.clone(), uid: guest.uid }
}

/// A guest is made from an image that was approved.
fn image(guest: &DesiredGuest, sections: &Sections) -> Option<SignatureNeed> {
    if is_made(report_of(sections, guest.uid)) {
        return None;
    }
    let goldens = sections.host.as_ref().map(|host| &host.goldens)?;
    let image = goldens.iter().find(|image| image.version == guest.golden);
    let (certainty, why) = match image.map(|image| image.status) {
        Some(ImageStatus::Approved) => return None,
        Some(ImageStatus::Waiting | ImageStatus::Unread) => {
            (Certainty::Certain, format!("golden {} is not approved on this host", guest.golden))
        }
        None => (Certainty::Possible, format!("golden {} is not on this host yet", guest.golden)),
    };
    Some(of_guest(Verb::ApproveRelease, named(guest), certainty, why))
}

/// Another guest agent runs when exactly its bytes were approved. The report does not have the approvals.
fn build(before: Option<&DesiredDocument>, guest: &DesiredGuest) -> Option<SignatureNeed> {
    let wanted = guest.controller.as_ref()?;
    let guests = before.map(|before| &before.guests);
    // A build that the document before has for some guest was asked for already.
    let is_new = |held: &DesiredController| held != wanted;
    if guests.into_iter().flatten().filter_map(|guest| guest.controller.as_ref()).all(is_new) {
        let why = format!("guest agent {} runs when its bytes are approved", wanted.version.as_str());
        return Some(of_guest(Verb::ApproveRelease, named(guest), Certainty::Possible, why));
    }
    None
}

fn storage(old: &[StorageTarget], target: &StorageTarget, sections: &Sections) -> Option<SignatureNeed> {
    let was = old.iter().find(|was| was.name == target.name);
    let reported = sections.storage.iter().flatten().find(|report| report.name == target.name);
    let need = |verb, certainty, why: &str| {
        let storage = Some(target.name.clone());
        Some(SignatureNeed { verb, guest: None, storage, certainty, why: why.to_owned() })
    };
    if target.state != TargetState::Attached {
        let is_let_go = reported.is_none_or(|report| report.status == TargetStatus::Detached);
        let is_new = was.is_some_and(|was| was.state != target.state);
        return if is_new && !is_let_go {
            need(Verb::DetachStorage, Certainty::Certain, "it is released when that is signed")
        } else {
            None
        };
    }
    if was == Some(target) {
        return None;
    }
    let same = was.is_some_and(|was| {
        was.backend == target.backend
            && was.role == target.role
            && was.class == target.class
            && was.state == target.state
    });
    if same {
        return None;
    }
    // What the host reports otherwise was approved once, perhaps as it is now.
    if reported.is_none_or(|report| report.status == TargetStatus::Held) {
        return need(Verb::AttachStorage, Certainty::Certain, "it is used when that is signed");
    }
    need(Verb::AttachStorage, Certainty::Possible, "it is used so when that is signed")
}

/// What is not judged here although it may hold the change up.
#[must_use]
pub fn not_judged(effects: &[ChangeEffect]) -> Vec<String> {
    let grows = |effect: &ChangeEffect| match effect.effect {
        EffectKind::Provision
        | EffectKind::ProvisionChanged
        | EffectKind::Grow
        | EffectKind::AttachVolume
        | EffectKind::Reconfigure => true,
        EffectKind::Manage
        | EffectKind::Start
        | EffectKind::Stop
        | EffectKind::UpdateController
        | EffectKind::ChangeProtection
        | EffectKind::Schedule
        | EffectKind::AtNextStart
        | EffectKind::Unmanage
        | EffectKind::NotMade
        | EffectKind::UseStorage
        | EffectKind::ReleaseStorage
        | EffectKind::NotCarriedOut => false,
    };
    let mut all = Vec::new();
    if effects.iter().any(grows) {
        all.push(
            "room on the host, and how much documents may let guests grow in a day, are judged by the host"
                .to_owned(),
        );
    }
    let touched = effects.iter().filter_map(|effect| effect.guest.as_ref().map(|guest| guest.uid));
    let touched: std::collections::BTreeSet<_> = touched.collect();
    if touched.len() > 1 {
        all.push(format!(
            "{} guests change: the host holds back what is more than its limit of changes at once",
            touched.len()
        ));
    }
    all
}
