//! The backup that a document asks for before an exchange of controllers.
//!
//! In: what the document asks of one guest, and the backups on record. Out: whether the exchange may begin, the backup
//! that comes first, or what is waited for. The backup goes the way of each backup that is asked for: the target of the
//! guest's policy, else the host's storage for backups, the room there, and the one place for backups. Deliberately
//! absent: a judgement whether a snapshot could be taken. That is known only when it is tried, and no operation rolls
//! back to one.

use holdfast_protocol::desired::DesiredGuest;
use holdfast_protocol::operation::OperationKind;
use holdfast_protocol::size::BackupAgeHours;
use jiff::SignedDuration;

use super::Context;
use super::schedule::backups_of;
use super::schedule::early_backups::{self, FirstBackup};
use crate::model::records::{BackupRecord, BackupWhy};
use crate::operation::{Backup, Target};

/// What becomes of the exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ExchangeBackup {
    /// Nothing is asked for, or it is there.
    There,
    /// This comes first.
    First(Box<Backup>),
    /// It cannot begin yet, and why.
    Waits(String),
}

pub(super) fn judge(context: &Context<'_>, guest: &DesiredGuest, target: &Target) -> ExchangeBackup {
    let inputs = context.inputs;
    let Some(age) = guest.backup_before_exchange_h else { return ExchangeBackup::There };
    let since = inputs.time.at.checked_sub(hours(age)).unwrap_or(jiff::Timestamp::MIN);
    // A time in the future was written by a clock that was wrong. The backup of its making holds nothing of the customer's.
    let counts = |backup: &BackupRecord| {
        let lately = backup.taken_at >= since && backup.taken_at <= inputs.time.at;
        lately && backup.missing_since.is_none() && backup.why != BackupWhy::First
    };
    if backups_of(inputs.records, guest.uid).iter().any(counts) {
        return ExchangeBackup::There;
    }
    let asked = format!("a backup of at most {age} must be there first (backup_before_exchange_h)");
    if let Some((tried, until)) = context.waits(guest.uid, OperationKind::Backup) {
        return ExchangeBackup::Waits(format!(
            "{asked}, and one failed {} times ({}): tried again at {until:.0}",
            tried.failed, tried.message
        ));
    }
    match early_backups::first(context, guest.uid, target.clone()) {
        Ok(FirstBackup::Now(backup)) => ExchangeBackup::First(Box::new(backup)),
        Ok(FirstBackup::Due) => {
            ExchangeBackup::Waits(format!("{asked}; the one that is due by its policy is waited for"))
        }
        Err(why) => ExchangeBackup::Waits(format!("{asked}, and none can be taken: {}", why.message)),
    }
}

fn hours(age: BackupAgeHours) -> SignedDuration {
    SignedDuration::from_hours(i64::from(age.get()))
}
