//! The daily bound on stopped stacks.
//!
//! The operators' policy gives each guest a budget. A window is granted for no longer than what is left of it; where too
//! little is left none is granted, and backups are taken crash-consistent, without a wait, until it is more again. So no
//! promise, signed or not, keeps programs standing still nearly always. Deliberately absent: counting one window
//! (`operation::window`).

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::protection::Consistency;
use holdfast_protocol::report::Condition;
use holdfast_trust::limits::BackupLimits;
use jiff::SignedDuration;

use super::Promised;
use crate::model::policy::QuiesceBound;
use crate::model::records::Records;

/// What a guest used of its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Still {
    stood: SignedDuration,
    most: SignedDuration,
}

impl Still {
    /// Of a guest whose programs stood still for so long.
    #[must_use]
    pub fn new(stood: SignedDuration, limits: &BackupLimits) -> Self {
        Self { stood, most: SignedDuration::from_mins(limits.still_min_per_day.into()) }
    }

    pub(in crate::plan) fn of(records: &Records, guest: GuestUid) -> Self {
        Self::new(records.stood_still.get(&guest).copied().unwrap_or_default(), &records.backup_limits)
    }

    fn left_s(self) -> u32 {
        u32::try_from((self.most - self.stood).as_secs().max(0)).unwrap_or(u32::MAX)
    }

    /// Whether no window is granted now.
    #[must_use]
    pub fn is_spent(self) -> bool {
        self.left_s() < QuiesceBound::MIN_S
    }

    /// For how long a window may be granted that should be this long.
    ///
    /// # Errors
    /// When none may be granted to any caller.
    pub fn bound(self, wanted: QuiesceBound) -> Result<QuiesceBound, ErrorBody> {
        let bound = QuiesceBound::try_from(wanted.seconds().min(self.left_s()));
        bound.map_err(|_| ErrorBody::new(ErrorCode::Quota, format!("no window is granted: {self}")))
    }
}

impl std::fmt::Display for Still {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let minutes = |time: SignedDuration| time.as_secs().max(0).unsigned_abs().div_ceil(60);
        write!(
            f,
            "its programs stood still for backups for {} minutes within 24 hours, of {} that the operators' policy lets them",
            minutes(self.stood),
            minutes(self.most)
        )
    }
}

/// What is reported of a budget that is spent, where a tier should have windows.
pub(super) fn reported<'a>(
    still: Still,
    mut tiers: impl Iterator<Item = &'a Promised<'a>>,
) -> Option<Condition> {
    let wanted = tiers.any(|tier| tier.consistency == Consistency::Application);
    (wanted && still.is_spent()).then(|| {
        let message = format!(
            "{still}: its backups are crash-consistent until that is less; an operator signs `loosen_policy` for fewer backups, or \
             gives more minutes in the policy"
        );
        Condition { code: ErrorCode::Quota, message }
    })
}
