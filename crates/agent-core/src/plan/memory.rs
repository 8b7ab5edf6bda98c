//! Findings of one plan that the next one uses.

use super::agreed::AgreedGuests;
use super::schedule::memory::KeptJudgements;

/// What a plan leaves for the next one. It may be dropped at any time: the next plan then judges everything.
#[derive(Debug, Default)]
pub struct Memory {
    /// Which guests' promises the document asks for as they are.
    pub(super) agreed: AgreedGuests,
    /// What was judged of promises.
    pub(super) judged: KeptJudgements,
}
