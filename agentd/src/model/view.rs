//! What the reconcile loop last saw and decided, for those who only tell it on: the hub report, the local API, `status`.

use holdfast_protocol::envelope::Problem;
use holdfast_protocol::report::{GuestReport, HostSection, WaitingForSignature};
use jiff::Timestamp;

/// The latest cycle's picture.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    /// When the host was last seen whole.
    pub seen_at: Option<Timestamp>,
    /// The box, when Proxmox told.
    pub host: Option<HostSection>,
    /// The guests.
    pub guests: Vec<GuestReport>,
    /// What waits for an operator's signature.
    pub waiting: Vec<WaitingForSignature>,
    /// What keeps the agent from its work.
    pub problems: Vec<Problem>,
}

/// The latest line of each operation under way.
pub type ProgressLines = std::collections::BTreeMap<holdfast_protocol::id::OperationId, ProgressLine>;

/// One line of an operation's progress, for people who watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgressLine {
    /// The step.
    pub step: &'static str,
    /// The last line of its task, or what it waits for.
    pub line: String,
}
