//! A state as a word, a sign and a tone.
//!
//! The sign carries the meaning where colours do not: in print, on a bad screen, for eyes that do not tell them apart.

use holdfast_protocol::condition::Severity;
use holdfast_protocol::desired::RunState;
use holdfast_protocol::operation::OperationStatus;
use holdfast_protocol::operator::HostState;
use holdfast_protocol::protection::Posture;
use holdfast_protocol::report::{
    ControllerReport, GuestReport, GuestStatus, Health, Running, SilenceKind, StorageState,
};

/// How much a state needs a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Good,
    Plain,
    Warning,
    Bad,
}

impl Tone {
    const fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Plain => "plain",
            Self::Warning => "warning",
            Self::Bad => "bad",
        }
    }

    const fn sign(self) -> &'static str {
        match self {
            Self::Good => "✓",
            Self::Plain => "·",
            Self::Warning => "▲",
            Self::Bad => "✕",
        }
    }
}

/// A state as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    pub text: String,
    pub class: &'static str,
    pub sign: &'static str,
}

impl Word {
    /// A word in a tone.
    #[must_use]
    pub fn new(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: text.into(), class: tone.class(), sign: tone.sign() }
    }
}

pub(crate) fn host(state: HostState) -> Word {
    let (text, tone) = match state {
        HostState::New => ("new", Tone::Warning),
        HostState::NeverSeen => ("never seen", Tone::Bad),
        HostState::Online => ("online", Tone::Good),
        HostState::Degraded => ("degraded", Tone::Bad),
        HostState::Late => ("late", Tone::Warning),
        HostState::Offline => ("offline", Tone::Bad),
        HostState::Frozen => ("frozen", Tone::Bad),
        HostState::Revoked => ("revoked", Tone::Plain),
    };
    Word::new(text, tone)
}

pub(crate) fn severity(severity: Severity) -> Word {
    let tone = match severity {
        Severity::Critical => Tone::Bad,
        Severity::Warning => Tone::Warning,
        Severity::Info => Tone::Plain,
    };
    Word::new(severity.as_str(), tone)
}

pub(crate) fn guest_status(guest: &GuestReport) -> Word {
    let (text, tone) = match guest.status {
        GuestStatus::Managed => ("managed", Tone::Good),
        GuestStatus::Absent if guest.vmid.is_some() => ("being made", Tone::Warning),
        GuestStatus::Absent => ("not there yet", Tone::Warning),
        GuestStatus::Unmanaged => ("unmanaged", Tone::Warning),
        GuestStatus::RestoredCopy => ("restored copy", Tone::Warning),
        GuestStatus::Foreign => ("not ours", Tone::Plain),
        GuestStatus::Missing => ("missing", Tone::Bad),
        GuestStatus::Broken => ("broken", Tone::Bad),
        GuestStatus::Parked => ("parked", Tone::Bad),
    };
    Word::new(text, tone)
}

pub(crate) fn run(guest: &GuestReport) -> Word {
    let text = match guest.run {
        Running::Running => "running",
        Running::Stopped => "stopped",
        Running::Unknown => "unknown",
    };
    let tone = match (guest.run, guest.wanted) {
        (Running::Unknown, _) => Tone::Warning,
        (Running::Stopped, Some(RunState::Running)) | (Running::Running, Some(RunState::Stopped)) => {
            Tone::Bad
        }
        (Running::Running | Running::Stopped, None) => Tone::Plain,
        (Running::Running, Some(RunState::Running)) | (Running::Stopped, Some(RunState::Stopped)) => {
            Tone::Good
        }
    };
    Word::new(text, tone)
}

/// How well a guest is protected. Without a promise it is not.
pub(crate) fn protection(guest: &GuestReport) -> Word {
    if guest.uid.is_none() {
        return Word::new("not ours", Tone::Plain);
    }
    match guest.protection.as_ref().and_then(|report| report.posture.as_ref()) {
        None => Word::new("nothing promised", Tone::Bad),
        Some(posture) => {
            let tone = match posture.is {
                Posture::Unprotected => Tone::Bad,
                Posture::Unknown | Posture::Attention => Tone::Warning,
                Posture::Protected => Tone::Good,
            };
            Word::new(posture.is.as_str(), tone)
        }
    }
}

pub(crate) fn controller(controller: Option<&ControllerReport>) -> Word {
    let Some(controller) = controller else { return Word::new("no hello yet", Tone::Plain) };
    match controller.silence.map(|silence| silence.is) {
        Some(SilenceKind::Silent) => Word::new("silent", Tone::Bad),
        Some(SilenceKind::Late) => Word::new("late", Tone::Warning),
        None => match controller.health {
            Health::Well => Word::new("well", Tone::Good),
            Health::Starting => Word::new("starting", Tone::Warning),
            Health::Unwell => Word::new("unwell", Tone::Bad),
        },
    }
}

pub(crate) fn operation(status: OperationStatus) -> Word {
    let tone = match status {
        OperationStatus::Queued | OperationStatus::Running | OperationStatus::Forgotten => Tone::Plain,
        OperationStatus::Undoing => Tone::Warning,
        OperationStatus::Done => Tone::Good,
        OperationStatus::Undone => Tone::Warning,
        OperationStatus::Parked => Tone::Bad,
    };
    Word::new(status.as_str(), tone)
}

pub(crate) fn storage(state: StorageState) -> Word {
    match state {
        StorageState::Active => Word::new("active", Tone::Good),
        StorageState::Inactive => Word::new("inactive", Tone::Bad),
        StorageState::Unknown => Word::new("does not answer", Tone::Warning),
    }
}
