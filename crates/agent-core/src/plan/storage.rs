//! The plan for each storage target.
//!
//! What comes in: the document's request, what was approved on this host, what the kernel lists, what is remembered
//! since the agent started, what disks and servers did when they were tried, and what Proxmox reports of the storage.
//! What goes out: the status of the target, in words, and at most one action. What is in force is the approval; a
//! request that differs from it waits for a signature and changes nothing meanwhile. Nothing is let go because a
//! document leaves it out. Pure. Deliberately absent: when an action that was refused is tried again (`task/storage`),
//! and what the helper's policy says about devices.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::TargetName;
use holdfast_protocol::job::act::{Act, LetGo, args};
use holdfast_protocol::job::{Draft, Target};
use holdfast_protocol::report::{StorageState, WaitingForSignature};
use holdfast_protocol::storage::backend::Backend;
use holdfast_protocol::storage::report::TargetStatus;
use holdfast_protocol::storage::{Approval, StorageClass, StorageTarget, TargetState};

use crate::gate::{Approved, Effect, Provenance, Verdict, gate};
use crate::model::storage::{
    DeviceSeen, LastStorageState, MarkerSeen, MountSeen, ServerSeen, TargetMemory, TargetRecord,
};

/// Durable writes in a second that a target for hot volumes should do: a spinning disk does about a hundred.
pub const FAST_IOPS_MIN: u32 = 400;

/// What is known of one target.
#[derive(Clone, Copy, Debug)]
pub struct TargetFacts<'a> {
    /// What the document asks for, where it names it.
    pub wanted: Option<&'a StorageTarget>,
    /// What was approved, where anything was.
    pub record: Option<&'a TargetRecord>,
    /// What the kernel lists at its folder.
    pub mount: Option<&'a MountSeen>,
    /// What is remembered.
    pub memory: &'a TargetMemory,
    /// What Proxmox says of the storage of that name, since it is as it is now.
    pub proxmox: StorageState,
}

/// The status of a target, and what is done about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// Its status.
    pub status: TargetStatus,
    /// Why, and who must do what; empty where all is well.
    pub reason: String,
    /// What is done.
    pub action: Option<TargetAction>,
    /// What waits for a signature.
    pub held: Option<Draft>,
}

/// What is done about a target, by the helper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetAction {
    /// It is mounted, or the mount that is there is vouched for, and its marker is checked.
    Mount,
    /// It is unmounted, because of this.
    Unmount(&'static str),
}

/// Judges one target.
#[must_use]
pub fn judge(known: &TargetFacts<'_>) -> Judged {
    let held = held(known.wanted, known.record);
    let (status, reason, action) = match known.record {
        Some(record) if record.status == TargetState::Attached => in_force(known, record),
        other => not_in_force(known, other, held.is_some()),
    };
    Judged { status, reason, action, held }
}

/// What would have to be signed for the request to be in force.
fn held(wanted: Option<&StorageTarget>, record: Option<&TargetRecord>) -> Option<Draft> {
    let wanted = wanted?;
    let let_go = |record: Option<&TargetRecord>, to| {
        let record = record.filter(|record| record.status != wanted.state)?;
        Some(Act::DetachStorage(args::DetachStorage { from: Box::new(record.approval.clone()), to }))
    };
    let act = match wanted.state {
        TargetState::Attached => {
            let to = Approval::of(wanted);
            let same =
                |record: &TargetRecord| record.status == TargetState::Attached && record.approval == to;
            let from = record.map(|record| Box::new(record.approval.clone()));
            (!record.is_some_and(same))
                .then(|| Act::AttachStorage(args::AttachStorage { from, to: Box::new(to) }))
        }
        TargetState::Disconnected => let_go(record, LetGo::Disconnected),
        TargetState::Decommissioned => let_go(record, LetGo::Decommissioned),
    };
    act.map(|act| Draft { target: Target::Host {}, act })
}

type TargetRow = (TargetStatus, String, Option<TargetAction>);

fn not_in_force(known: &TargetFacts<'_>, record: Option<&TargetRecord>, waits: bool) -> TargetRow {
    // Only what was approved once is unmounted: the helper would not take away another's mount either.
    let action = match (record, known.mount) {
        (Some(_), Some(_)) => Some(TargetAction::Unmount("an operator let it go")),
        _ => None,
    };
    if waits && known.wanted.is_some_and(|wanted| wanted.state == TargetState::Attached) {
        return (TargetStatus::Held, "it is used once an operator signs for it".to_owned(), action);
    }
    let reason = match (action, &known.memory.refusal) {
        (Some(_), Some((code, says))) => format!("it is still mounted ({code}: {says})"),
        (Some(_), None) => "it is being unmounted".to_owned(),
        (None, _) => String::new(),
    };
    (TargetStatus::Detached, reason, action)
}

fn in_force(known: &TargetFacts<'_>, record: &TargetRecord) -> TargetRow {
    let memory = known.memory;
    match &record.approval.backend {
        Backend::LocalDir { .. } | Backend::Usb { .. } => {}
        Backend::Nfs { .. } | Backend::Cifs { .. } => return by_proxmox(known),
        // It is asked by itself (`plan/offsite`).
        Backend::Pbs { .. } => return (TargetStatus::ByProxmox, String::new(), None),
    }
    match known.mount {
        Some(mount) if mount.device == DeviceSeen::Gone => {
            let reason = format!(
                "its device {} went away; plug it in again, and it is mounted by itself",
                mount.source
            );
            (
                TargetStatus::Dropped,
                still_there(reason, memory),
                Some(TargetAction::Unmount("its device went away")),
            )
        }
        Some(mount) => match memory.confirmed.as_ref().filter(|(id, _)| *id == mount.id) {
            Some((_, MarkerSeen::Ours)) if known.proxmox == StorageState::Inactive => {
                (TargetStatus::Wrong, format!("it is mounted, and {INACTIVE}"), None)
            }
            Some((_, marker)) => mounted(marker, memory),
            None => unconfirmed(memory),
        },
        None => unmounted(memory),
    }
}

const INACTIVE: &str = "Proxmox says that it is not active (`pvesm status`)";

/// A share that Proxmox mounts: as its server and Proxmox say.
fn by_proxmox(known: &TargetFacts<'_>) -> TargetRow {
    match (&known.memory.server, word(known)) {
        (ServerSeen::Silent(says), _) => {
            let says = format!("{says}; nothing is put on it until it is back, which is seen by itself");
            (TargetStatus::Dropped, says, None)
        }
        (ServerSeen::Answers | ServerSeen::NotTried, LastStorageState::Inactive) => {
            let says = format!("its server answers, but {INACTIVE}: look at the share and its rights there");
            (TargetStatus::Dropped, says, None)
        }
        (
            ServerSeen::Answers | ServerSeen::NotTried,
            LastStorageState::Active | LastStorageState::Nothing,
        ) => (TargetStatus::ByProxmox, String::new(), None),
    }
}

/// What Proxmox says, or said last: a share that was not active is not back just because Proxmox reports nothing any
/// more.
fn word(known: &TargetFacts<'_>) -> LastStorageState {
    said(known.proxmox).unwrap_or(known.memory.said)
}

/// What Proxmox reports, as it is remembered; none where it reports nothing.
#[must_use]
pub const fn said(state: StorageState) -> Option<LastStorageState> {
    match state {
        StorageState::Active => Some(LastStorageState::Active),
        StorageState::Inactive => Some(LastStorageState::Inactive),
        StorageState::Unknown => None,
    }
}

/// Why a mount that should go is still there.
fn still_there(reason: String, memory: &TargetMemory) -> String {
    match &memory.refusal {
        Some((code, says)) => format!("{reason}; it cannot be unmounted yet ({code}: {says})"),
        None => reason,
    }
}

/// Something is mounted there, and the helper has not said that it is its own.
fn unconfirmed(memory: &TargetMemory) -> TargetRow {
    match &memory.refusal {
        // What was said while nothing was mounted is over.
        Some((code, says)) if !code.starts_with("E_DEVICE_") => {
            (TargetStatus::Wrong, format!("{code}: {says}"), Some(TargetAction::Mount))
        }
        _ => {
            let status = if memory.was_mounted { TargetStatus::Dropped } else { TargetStatus::Absent };
            (status, "it is being looked at".to_owned(), Some(TargetAction::Mount))
        }
    }
}

fn mounted(marker: &MarkerSeen, memory: &TargetMemory) -> TargetRow {
    let wrong = |reason: String| {
        let action = Some(TargetAction::Unmount("it is not the disk that was attached"));
        (TargetStatus::Wrong, still_there(reason, memory), action)
    };
    match marker {
        MarkerSeen::Ours => (TargetStatus::Mounted, String::new(), None),
        // Root may have made its folder meanwhile.
        MarkerSeen::Unwritable(why) => (TargetStatus::Unmarked, why.clone(), Some(TargetAction::Mount)),
        MarkerSeen::Missing => wrong(missing()),
        MarkerSeen::Other(what) => wrong(other(what)),
        MarkerSeen::Unread(why) => {
            (TargetStatus::Wrong, format!("its marker cannot be read: {why}"), Some(TargetAction::Mount))
        }
        // The data on it may be in use: a person looks before anything is taken away.
        MarkerSeen::Failing(why) => (TargetStatus::Wrong, failing(why), None),
    }
}

fn failing(why: &str) -> String {
    format!(
        "the disk works no more: {why}; what is written to it may be lost, and no backup on it counts; look at its cable and at \
         `dmesg`, then unplug it and plug it in again"
    )
}

fn missing() -> String {
    "the disk has lost its marker: it was emptied, or is another one; a person looks, and attaches it anew if it is to be used"
        .to_owned()
}

fn other(what: &str) -> String {
    format!(
        "the disk is not the one that was attached here: {what}; plug in the right one, or a person removes the marker"
    )
}

fn unmounted(memory: &TargetMemory) -> TargetRow {
    // What was found on the disk is valid until the disks change.
    match &memory.wrong {
        Some(MarkerSeen::Missing) => return (TargetStatus::Wrong, missing(), None),
        Some(MarkerSeen::Other(what)) => return (TargetStatus::Wrong, other(what), None),
        Some(
            MarkerSeen::Ours | MarkerSeen::Unwritable(_) | MarkerSeen::Unread(_) | MarkerSeen::Failing(_),
        )
        | None => {}
    }
    let (status, reason) = match &memory.refusal {
        None if memory.was_mounted => (TargetStatus::Dropped, "it is no longer mounted".to_owned()),
        None => (TargetStatus::Absent, "it is not mounted yet".to_owned()),
        Some((code, says)) => (refused(code, memory), format!("{code}: {says}")),
    };
    (status, reason, Some(TargetAction::Mount))
}

/// The helper's codes are stable.
fn refused(code: &str, memory: &TargetMemory) -> TargetStatus {
    match code {
        "E_DEVICE_ABSENT" if memory.was_mounted => TargetStatus::Dropped,
        "E_DEVICE_ABSENT" => TargetStatus::Absent,
        "E_DEVICE_AMBIGUOUS" | "E_DEVICE_CLASS" => TargetStatus::Wrong,
        _ => TargetStatus::Refused,
    }
}

/// What is shown to the operator who signs.
#[must_use]
pub fn waiting(draft: &Draft) -> Option<WaitingForSignature> {
    let (effect, words) = match &draft.act {
        Act::AttachStorage(args) => {
            let Approval { name, backend, class, role, .. } = args.to.as_ref();
            let how = match &args.from {
                Some(from) if from.backend != *backend => format!(" in place of {}", from.backend),
                Some(_) => " anew".to_owned(),
                None => String::new(),
            };
            (
                Effect::AttachUnapprovedTarget,
                format!("attach storage {name}{how}: {backend}, {class}, for {role}"),
            )
        }
        Act::DetachStorage(args) => {
            (Effect::LoseTarget, format!("let storage {} go: {}", args.from.name, args.to.as_str()))
        }
        _ => return None,
    };
    let reason = match gate(&effect, Provenance::Document, &Approved::default()) {
        Verdict::NeedsSignature(why) | Verdict::Forbidden(why) => why.to_owned(),
        Verdict::Free => return None,
    };
    // JSON can represent every value of these types. If it could not, no operator could sign the empty text.
    let payload = draft.to_json().unwrap_or_default();
    Some(WaitingForSignature {
        guest: None,
        effect: words,
        reason,
        payload,
        last_backup: None,
        last_proof: None,
    })
}

/// What of a target a person should see to.
#[must_use]
pub fn problem(name: &TargetName, judged: &Judged, record: Option<&TargetRecord>) -> Option<ErrorBody> {
    let (status, reason) = (judged.status, &judged.reason);
    let reported =
        |code| Some(ErrorBody::new(code, format!("storage {name} is {}: {reason}", status.as_str())));
    match status {
        TargetStatus::Wrong | TargetStatus::Unmarked => reported(ErrorCode::StorageWrong),
        TargetStatus::Absent | TargetStatus::Dropped | TargetStatus::Refused => {
            reported(ErrorCode::StorageGone)
        }
        TargetStatus::Mounted => {
            let record = record.filter(|record| record.approval.class == StorageClass::Fast)?;
            let iops = record.marked?.iops.filter(|iops| *iops < FAST_IOPS_MIN)?;
            let text = format!(
                "storage {name} was attached as fast and does {iops} durable writes a second, less than {FAST_IOPS_MIN}: attach it as slow"
            );
            Some(ErrorBody::new(ErrorCode::StorageWrong, text))
        }
        TargetStatus::ByProxmox | TargetStatus::Held | TargetStatus::Detached => None,
    }
}

#[cfg(test)]
mod tests;
