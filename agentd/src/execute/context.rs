//! The context of a step, and its results.
//!
//! In: the operation as its journal has it, and the ports. Out: types that every step and the engine share, so that neither
//! imports the other for them.

use super::Ports;
use crate::model::records::VolumeId;
use crate::model::view::ProgressLine;
use crate::operation::log::Finding;
use crate::operation::progress::OperationState;
use crate::operation::step::Step;
use crate::port::pve::Upid;

/// What a step learnt when it had happened.
#[derive(Debug, Default)]
pub(super) struct StepOutput {
    pub facts: Vec<Finding>,
    pub note: Option<String>,
}

impl StepOutput {
    pub(super) fn nothing() -> Self {
        Self::default()
    }

    pub(super) fn note(text: impl Into<String>) -> Self {
        Self { facts: Vec::new(), note: Some(text.into()) }
    }

    pub(super) fn fact(fact: Finding) -> Self {
        Self { facts: vec![fact], note: None }
    }
}

/// What the world says of a step.
#[derive(Debug)]
pub(super) enum Checked {
    /// It has happened.
    Happened(StepOutput),
    /// It has not.
    Not,
}

impl From<Option<StepOutput>> for Checked {
    fn from(happened: Option<StepOutput>) -> Self {
        happened.map_or(Self::Not, Self::Happened)
    }
}

/// What an effect began.
#[derive(Debug)]
pub(super) enum Started {
    /// It is done; next the actual state is checked.
    Done,
    /// Proxmox works on it.
    Task(Upid),
    /// Looking was the step, and this is what was seen.
    Learnt(StepOutput),
}

/// How a step is entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// Its intent was just written.
    Fresh,
    /// Its intent was found in the journal: an earlier run may have acted.
    Resumed,
}

/// What a step needs to see of its operation.
pub(super) struct Context<'a> {
    pub ports: &'a Ports,
    pub progress: &'a OperationState,
    pub place: u16,
    pub step: Step,
}

impl Context<'_> {
    /// Shows a progress line to people who watch.
    pub(super) fn say(&self, line: impl Into<String>) {
        let line = ProgressLine { step: self.step.name(), line: line.into() };
        self.ports.lines.send_modify(|lines| {
            lines.insert(self.progress.id, line);
        });
    }
}

/// What is left to do of an undo.
pub(super) enum UndoState {
    Nothing(Option<String>),
    /// The volume is back, under this name.
    Back(VolumeId),
    /// A volume that was signed for under the one name is back under the other.
    MovedBack {
        was: VolumeId,
        volume: VolumeId,
    },
    Task(Upid),
}

/// The value in the environment until the claim is minted: the archive's own claim must not become valid again.
pub(super) const PENDING: &str = "pending";
