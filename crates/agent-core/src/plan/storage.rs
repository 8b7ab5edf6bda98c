//! What becomes of each storage target: mounted, let go, held for a signature, or told why not.
//!
//! What comes in: the document's wish, what was approved on this box, what the kernel lists, what is remembered since
//! the agent started, what disks and servers did when they were tried, and Proxmox's word of the storage. What goes out: how the target stands, in words, and at most one deed. What is in force is the
//! approval; a wish that differs from it waits for a signature and changes nothing meanwhile. Nothing is let go because a
//! document leaves it out. Pure. Deliberately absent: when a deed that was refused is tried again (`task/storage`), and what
//! the helper's policy says about devices.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::Problem;
use holdfast_protocol::id::TargetName;
use holdfast_protocol::job::act::{Act, LetGo, args};
use holdfast_protocol::job::{Draft, Target};
use holdfast_protocol::report::{StorageState, WaitingForSignature};
use holdfast_protocol::storage::medium::Medium;
use holdfast_protocol::storage::report::TargetStanding;
use holdfast_protocol::storage::{Approval, StorageClass, StorageTarget, TargetState};

use crate::gate::{Approved, Effect, Provenance, Verdict, gate};
use crate::model::storage::{
    DeviceSeen, MarkerSeen, MountSeen, Said, ServerSeen, TargetMemory, TargetRecord,
};

/// Durable writes in a second that a target for hot volumes should do: a spinning disk does about a hundred.
pub const FAST_IOPS_MIN: u32 = 400;

/// What is known of one target.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// What the document wishes, where it names it.
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

/// How a target stands, and what is done about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// How it stands.
    pub standing: TargetStanding,
    /// Why, and who must do what; empty where all is well.
    pub reason: String,
    /// What is done.
    pub deed: Option<Deed>,
    /// What waits for a signature.
    pub held: Option<Draft>,
}

/// What is done about a target, by the helper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// It is mounted, or the mount that is there is vouched for, and its marker is looked at.
    Mount,
    /// It is unmounted, because of this.
    Unmount(&'static str),
}

/// Judges one target.
#[must_use]
pub fn judge(known: &Known<'_>) -> Judged {
    let held = held(known.wanted, known.record);
    let (standing, reason, deed) = match known.record {
        Some(record) if record.standing == TargetState::Attached => in_force(known, record),
        other => not_in_force(known, other, held.is_some()),
    };
    Judged { standing, reason, deed, held }
}

/// What would have to be signed for the wish to be in force.
fn held(wanted: Option<&StorageTarget>, record: Option<&TargetRecord>) -> Option<Draft> {
    let wanted = wanted?;
    let let_go = |record: Option<&TargetRecord>, to| {
        let record = record.filter(|record| record.standing != wanted.state)?;
        Some(Act::DetachStorage(args::DetachStorage { from: Box::new(record.approval.clone()), to }))
    };
    let act = match wanted.state {
        TargetState::Attached => {
            let to = Approval::of(wanted);
            let same =
                |record: &TargetRecord| record.standing == TargetState::Attached && record.approval == to;
            let from = record.map(|record| Box::new(record.approval.clone()));
            (!record.is_some_and(same))
                .then(|| Act::AttachStorage(args::AttachStorage { from, to: Box::new(to) }))
        }
        TargetState::Disconnected => let_go(record, LetGo::Disconnected),
        TargetState::Decommissioned => let_go(record, LetGo::Decommissioned),
    };
    act.map(|act| Draft { target: Target::Host {}, act })
}

type Standing = (TargetStanding, String, Option<Deed>);

fn not_in_force(known: &Known<'_>, record: Option<&TargetRecord>, waits: bool) -> Standing {
    // Only what was approved once is unmounted: the helper would not take away another's mount either.
    let deed = match (record, known.mount) {
        (Some(_), Some(_)) => Some(Deed::Unmount("an operator let it go")),
        _ => None,
    };
    if waits && known.wanted.is_some_and(|wanted| wanted.state == TargetState::Attached) {
        return (TargetStanding::Held, "it is used once an operator signs for it".to_owned(), deed);
    }
    let reason = match (deed, &known.memory.refusal) {
        (Some(_), Some((code, says))) => format!("it is still mounted ({code}: {says})"),
        (Some(_), None) => "it is being unmounted".to_owned(),
        (None, _) => String::new(),
    };
    (TargetStanding::Detached, reason, deed)
}

fn in_force(known: &Known<'_>, record: &TargetRecord) -> Standing {
    let memory = known.memory;
    match &record.approval.medium {
        Medium::LocalDir { .. } | Medium::Usb { .. } => {}
        Medium::Nfs { .. } | Medium::Cifs { .. } => return by_proxmox(known),
        // It is asked by itself (`plan/offsite`).
        Medium::Pbs { .. } => return (TargetStanding::ByProxmox, String::new(), None),
    }
    match known.mount {
        Some(mount) if mount.device == DeviceSeen::Gone => {
            let reason = format!(
                "its device {} went away; plug it in again, and it is mounted by itself",
                mount.source
            );
            (
                TargetStanding::Dropped,
                still_there(reason, memory),
                Some(Deed::Unmount("its device went away")),
            )
        }
        Some(mount) => match memory.confirmed.as_ref().filter(|(id, _)| *id == mount.id) {
            Some((_, MarkerSeen::Ours)) if known.proxmox == StorageState::Inactive => {
                (TargetStanding::Wrong, format!("it is mounted, and {INACTIVE}"), None)
            }
            Some((_, marker)) => mounted(marker, memory),
            None => unconfirmed(memory),
        },
        None => unmounted(memory),
    }
}

const INACTIVE: &str = "Proxmox says that it is not active (`pvesm status`)";

/// A share that Proxmox mounts: as its server and Proxmox say.
fn by_proxmox(known: &Known<'_>) -> Standing {
    match (&known.memory.server, word(known)) {
        (ServerSeen::Silent(says), _) => {
            let says = format!("{says}; nothing is put on it until it is back, which is seen by itself");
            (TargetStanding::Dropped, says, None)
        }
        (ServerSeen::Answers | ServerSeen::NotTried, Said::Inactive) => {
            let says = format!("its server answers, but {INACTIVE}: look at the share and its rights there");
            (TargetStanding::Dropped, says, None)
        }
        (ServerSeen::Answers | ServerSeen::NotTried, Said::Active | Said::Nothing) => {
            (TargetStanding::ByProxmox, String::new(), None)
        }
    }
}

/// What Proxmox says, or said last: a share that was not active is not back because nobody says so any more.
fn word(known: &Known<'_>) -> Said {
    said(known.proxmox).unwrap_or(known.memory.said)
}

/// Proxmox's word as it is remembered; none where it says nothing.
#[must_use]
pub const fn said(state: StorageState) -> Option<Said> {
    match state {
        StorageState::Active => Some(Said::Active),
        StorageState::Inactive => Some(Said::Inactive),
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
fn unconfirmed(memory: &TargetMemory) -> Standing {
    match &memory.refusal {
        // What was said while nothing was mounted is over.
        Some((code, says)) if !code.starts_with("E_DEVICE_") => {
            (TargetStanding::Wrong, format!("{code}: {says}"), Some(Deed::Mount))
        }
        _ => {
            let standing = if memory.was_mounted { TargetStanding::Dropped } else { TargetStanding::Absent };
            (standing, "it is being looked at".to_owned(), Some(Deed::Mount))
        }
    }
}

fn mounted(marker: &MarkerSeen, memory: &TargetMemory) -> Standing {
    let wrong = |reason: String| {
        let deed = Some(Deed::Unmount("it is not the disk that was attached"));
        (TargetStanding::Wrong, still_there(reason, memory), deed)
    };
    match marker {
        MarkerSeen::Ours => (TargetStanding::Mounted, String::new(), None),
        // Root may have made its folder meanwhile.
        MarkerSeen::Unwritable(why) => (TargetStanding::Unmarked, why.clone(), Some(Deed::Mount)),
        MarkerSeen::Missing => wrong(missing()),
        MarkerSeen::Other(what) => wrong(other(what)),
        MarkerSeen::Unread(why) => {
            (TargetStanding::Wrong, format!("its marker cannot be read: {why}"), Some(Deed::Mount))
        }
        // What lies on it may be in use: a person looks before anything is taken away.
        MarkerSeen::Failing(why) => (TargetStanding::Wrong, failing(why), None),
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

fn unmounted(memory: &TargetMemory) -> Standing {
    // What was found on the disk stands until the disks change.
    match &memory.wrong {
        Some(MarkerSeen::Missing) => return (TargetStanding::Wrong, missing(), None),
        Some(MarkerSeen::Other(what)) => return (TargetStanding::Wrong, other(what), None),
        Some(
            MarkerSeen::Ours | MarkerSeen::Unwritable(_) | MarkerSeen::Unread(_) | MarkerSeen::Failing(_),
        )
        | None => {}
    }
    let (standing, reason) = match &memory.refusal {
        None if memory.was_mounted => (TargetStanding::Dropped, "it is no longer mounted".to_owned()),
        None => (TargetStanding::Absent, "it is not mounted yet".to_owned()),
        Some((code, says)) => (refused(code, memory), format!("{code}: {says}")),
    };
    (standing, reason, Some(Deed::Mount))
}

/// The helper's codes are stable.
fn refused(code: &str, memory: &TargetMemory) -> TargetStanding {
    match code {
        "E_DEVICE_ABSENT" if memory.was_mounted => TargetStanding::Dropped,
        "E_DEVICE_ABSENT" => TargetStanding::Absent,
        "E_DEVICE_AMBIGUOUS" | "E_DEVICE_CLASS" => TargetStanding::Wrong,
        _ => TargetStanding::Refused,
    }
}

/// What is told to whoever signs.
#[must_use]
pub fn waiting(draft: &Draft) -> Option<WaitingForSignature> {
    let (effect, words) = match &draft.act {
        Act::AttachStorage(args) => {
            let Approval { name, medium, class, role, .. } = args.to.as_ref();
            let how = match &args.from {
                Some(from) if from.medium != *medium => format!(" in place of {}", from.medium),
                Some(_) => " anew".to_owned(),
                None => String::new(),
            };
            (
                Effect::AttachUnapprovedTarget,
                format!("attach storage {name}{how}: {medium}, {class}, for {role}"),
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
    // These types hold nothing that JSON cannot say; were it otherwise, an empty text can be signed by nobody.
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
pub fn problem(name: &TargetName, judged: &Judged, record: Option<&TargetRecord>) -> Option<Problem> {
    let (standing, reason) = (judged.standing, &judged.reason);
    let told = |code| Some(Problem::new(code, format!("storage {name} is {}: {reason}", standing.as_str())));
    match standing {
        TargetStanding::Wrong | TargetStanding::Unmarked => told(ErrorCode::StorageWrong),
        TargetStanding::Absent | TargetStanding::Dropped | TargetStanding::Refused => {
            told(ErrorCode::StorageGone)
        }
        TargetStanding::Mounted => {
            let record = record.filter(|record| record.approval.class == StorageClass::Fast)?;
            let iops = record.marked?.iops.filter(|iops| *iops < FAST_IOPS_MIN)?;
            let text = format!(
                "storage {name} was attached as fast and does {iops} durable writes a second, less than {FAST_IOPS_MIN}: attach it as slow"
            );
            Some(Problem::new(ErrorCode::StorageWrong, text))
        }
        TargetStanding::ByProxmox | TargetStanding::Held | TargetStanding::Detached => None,
    }
}

#[cfg(test)]
mod tests;
