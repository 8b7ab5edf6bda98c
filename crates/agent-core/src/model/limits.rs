//! Every bound of the engine, with its arithmetic.

use holdfast_protocol::operation::OperationKind;
use holdfast_protocol::work_order::OrderAct;

/// Restores and backups at once on one host: each reads and writes a whole archive; two keep a disk busy without making
/// either much slower.
pub const HEAVY_AT_ONCE: usize = 2;

/// Of these backups, and of the open ones: Proxmox runs one backup job at a time on a node, and a second one waits for its
/// lock without having begun. Whose programs stood still for that one would stand still for the copy of the first; and a
/// backup that is not open yet can be given up, and keeps nothing else of its guest waiting.
pub const BACKUPS_AT_ONCE: usize = 1;

/// Operations under way at once. Light ones wait on Proxmox, which has three workers; more than this only queue there.
pub const OPERATIONS_AT_ONCE: usize = 16;

/// Heavy operations open at once, of all that may be: two work, ten have their disks and calls ready, and four places
/// stay for starts, stops and snapshots however many restores wait.
pub const HEAVY_OPEN_MAX: usize = 12;

/// Without a promise of local backups, a local one is restored before an off-site one that is up to a day newer: backups
/// are mostly a nightly matter, and the two of one night are the same state.
pub const LOCAL_FRESH: jiff::SignedDuration = jiff::SignedDuration::from_hours(24);

/// How many backups of a lost guest are considered: the retention of both tiers together, many times over.
pub const REMAINS_MAX: u32 = 1_000;

/// A guest whose only backup is the one that its making took is not tried before another may be there, in hours: nothing
/// ran in it then that could be checked. A denser interval of tests waits less.
pub const TEST_WAITS_FOR_MORE_H: i64 = 24;

/// Former VMIDs of a guest that are reported and handed over.
pub const FORMER_VMIDS_MAX: usize = 8;

/// Work on the host's storages at once.
pub const STORAGE_AT_ONCE: usize = 1;

/// Requests that wait in one guest's lane. A controller wants one thing at a time; eight is a day's worth of snapshots,
/// and at ten minutes each the last one begins within an hour and a half.
pub const LANE_WAITING_MAX: usize = 8;

/// Requests that wait on a whole host: two for each of a hundred guests, and as much again of head-room; 512 rows of
/// about 300 bytes are read at once in a millisecond.
pub const HOST_WAITING_MAX: usize = 512;

/// A request that could not begin for so long ends refused: a day, in which the longest night of backups is over.
pub const REQUEST_WAIT_MAX_S: i64 = 24 * 3_600;

/// Backups that a guest may ask for within a day, with a window or without, in addition to those that are due: one
/// before each thing that may go wrong on a busy day, and no way to fill a shared storage, or to hold the one place for
/// backups, without end.
pub const ASKED_BACKUPS_PER_DAY: u32 = 12;

/// For so long they count.
pub const ASKED_BACKUPS_S: i64 = 24 * 3_600;

/// How often a guest may ask for one kind of work within a day, whatever becomes of it. A snapshot each half hour, and its
/// end; a rollback is a person's or a bad update's; a window is asked for once for each backup that is due, of which a policy has
/// one an hour at the densest, and once more for each that was tried again. All together cost the records less than a mebibyte
/// a day.
#[must_use]
pub const fn asked_per_day(kind: OperationKind) -> u32 {
    match kind {
        OperationKind::RollBack => 24,
        OperationKind::Backup | OperationKind::QuiescedBackup => 96,
        OperationKind::Snapshot | OperationKind::ExpireSnapshot => 48,
        // No guest asks for these.
        OperationKind::AdoptGuest
        | OperationKind::AttachVolume
        | OperationKind::Destroy
        | OperationKind::DiscardCopy
        | OperationKind::Grow
        | OperationKind::ReassignVolume
        | OperationKind::RebaseGuest
        | OperationKind::Provision
        | OperationKind::PruneBackup
        | OperationKind::Reconfigure
        | OperationKind::RestoreCopy
        | OperationKind::RestartGuest
        | OperationKind::RestoreTest
        | OperationKind::Start
        | OperationKind::Stop
        | OperationKind::SwapGuest
        | OperationKind::UpdateController => 0,
    }
}

/// Operations within a day by which guests grow without a signature: one for each part of a hundred guests, and as many again.
pub const GROWTHS_PER_DAY: usize = 1_024;

/// An ended operation keeps its events for so long: a person who comes back from a week away sees how it went.
pub const EVENTS_KEPT: jiff::SignedDuration = jiff::SignedDuration::from_hours(7 * 24);

/// How long an ended operation that nothing references is kept and reported: a quarter of a year.
pub const OPERATIONS_KEPT: jiff::SignedDuration = jiff::SignedDuration::from_hours(92 * 24);

/// Lines of the audit that are older than this lie in files: two months at most are in the database.
pub const AUDIT_IN_DATABASE: jiff::SignedDuration = jiff::SignedDuration::from_hours(31 * 24);

/// A part of the audit has at most so many lines: some five mebibytes.
pub const AUDIT_SEGMENT_LINES: i64 = 16_384;

/// Records larger than this are reported: a host of a hundred guests with few requests has a twentieth of it.
pub const RECORDS_REPORTED_BYTES: u64 = 512 * 1024 * 1024;

/// Records up to this size are checked whole before the agent starts, which takes a few hundredths of a second; larger ones
/// while it runs.
pub const CHECKED_AT_START_BYTES: u64 = 16 * 1024 * 1024;

/// A controller that was granted a window says within this time that its programs are stopped. It hears of the grant at
/// once. The stacks of a shop stop within seconds, a large database within minutes. Meanwhile no other guest's backup
/// can begin.
pub const QUIESCED_WAIT_S: u64 = 300;

/// Ended requests that are kept per guest, so that the caller can read how it ended; the oldest is deleted first.
pub const ENDED_REQUESTS_PER_GUEST: u32 = 64;

/// A snapshot that a guest asks for is kept at least an hour: shorter ones are gone before a person could use them.
pub const SNAPSHOT_KEEP_MIN_S: u32 = 3_600;

/// A snapshot without a given time is kept for a day: long enough to see whether an update was good.
pub const SNAPSHOT_KEEP_S: u32 = 24 * 3_600;

/// A snapshot is transient: after a month it costs a whole copy of the guest.
pub const SNAPSHOT_KEEP_MAX_S: u32 = 30 * 24 * 3_600;

/// A full lane behind a light operation moves within seconds.
pub const BUSY_LIGHT_S: u32 = 10;

/// A full lane behind a backup or restore moves within minutes.
pub const BUSY_HEAVY_S: u32 = 60;

/// Proxmox's status daemon looks at guests, storages and the node every ten seconds; a round can take as long again.
pub const ROUND_S: u32 = 20;

/// No configuration that is shown is older than this and one interval of observation: a change by hand that no list
/// shows is found within it.
pub const CONFIGURATION_S: u32 = 120;

/// Which storages can be used is asked this often.
pub const STORAGE_S: u32 = 120;

/// What changes with an update of Proxmox, or by root's hand.
pub const VERSION_S: u32 = 3_600;

/// How long a controller may take to say hello: a first boot makes host keys and grows a file system, some 60 s on a
/// slow disk; five times that.
pub const HELLO_WAIT_S: u64 = 300;

/// A few guests say hello once a minute each. The more guests there are, the rarer the hellos, since every hello is a
/// handshake: twelve a minute altogether, until that would be so rare that a controller which fell silent goes
/// unnoticed.
const HELLO_AGAIN_S: std::ops::RangeInclusive<u32> = 60..=600;
const HELLO_EACH_S: u32 = 5;

/// When a guest's controller says hello again, in seconds, where there are so many guests.
#[must_use]
pub fn hello_again_s(guests: usize) -> u32 {
    let together = u32::try_from(guests).unwrap_or(u32::MAX).saturating_mul(HELLO_EACH_S);
    together.clamp(*HELLO_AGAIN_S.start(), *HELLO_AGAIN_S.end())
}

/// The longest slot of a guest to exchange its controller, and after it the time in which it puts its previous one back:
/// each three of the rarest hellos, and five minutes; and five more.
pub const UPDATE_TURN_MAX_S: u64 = 2 * (3 * 600 + 300) + 300;

/// A restored guest that stays up for so long has booted: a Debian with systemd is through its units in some ten seconds.
pub const TEST_STAYS_UP_S: u64 = 30;

/// A check of a booting guest takes no longer than this, Proxmox's own slowness included.
pub const TEST_BOOT_S: u64 = 300;

/// A scratch guest's controller starts the stacks one after another and asks each how it is. A shop with a large database
/// is up in a few minutes; what is not up after this does not come up.
pub const TEST_REPORT_S: u64 = 1_800;

/// A controller that has not said hello by then counts as silent. Then it is only known that the guest boots.
pub const TEST_HELLO_S: u64 = 300;

/// A backup that did not come back is tried again after this, unless a newer one is there before: a day, in which an
/// operator has read of it.
pub const TEST_FAILED_AGAIN_H: i64 = 24;

/// A test that could not be run, for want of room mostly, is tried again after this.
pub const TEST_NOT_RUN_AGAIN_H: i64 = 1;

/// A backup is tried again after so many hours for each day of the promised interval, seven eighths of it: the last
/// eighth is for the tests before it in the queue. Of a week that is 21 hours, of which a host that tries one after
/// another in twenty minutes needs 17 for fifty guests; of a day it is three.
pub const TEST_AGAIN_H_PER_DAY: i64 = 21;

/// A test is compared with so many before it: two months of weekly ones.
pub const TREND_TESTS: u32 = 8;

/// A test is compared with no fewer before it: of three one may have been an outlier.
pub const TREND_TESTS_MIN: u32 = 3;

/// A return takes markedly longer, or less long, where one of the two times is more than this many per cent of the other.
pub const TREND_BOUND_PERCENT: u64 = 150;

/// And where they are further apart than this: looks five seconds apart, a start on a busy host and a controller's next call
/// are most of a minute, which of a small guest is more than half of the whole.
pub const TREND_BOUND_S: u64 = 60;

/// Tests kept per guest, storage and verdict, in addition to those whose backup is still there: of weekly ones half a
/// year.
pub const TESTS_PER_VERDICT: u32 = 26;

/// A test leaves this share of the host's memory alone, as a divisor: a tenth.
pub const TEST_HEAD_ROOM_SHARE: u64 = 10;

/// Starts of a guest that does not stay up, before it is left for a person.
pub const START_TRIES: u32 = 5;

/// A guest that was seen running for so long is healthy: its starts no longer count against it. Longer than the waits
/// between five starts (15 + 30 + 60 + 120 s) by far, so that a guest which falls over every few minutes is caught.
pub const HEALTHY_S: u64 = 3_600;

/// A failed operation is tried again after this, doubled with each failure in a row.
pub const RETRY_FIRST_S: i64 = 15;

/// The longest wait between two tries: an hour, so that a host heals within one.
pub const RETRY_MAX_S: i64 = 3_600;

/// An operation that is under way for longer is reported. The limit is a night, in which 250 GB are transferred over a
/// line of 100 Mbit/s. The operation is not ended for that: a terabyte takes a day.
pub const LONG_S: u64 = 6 * 3_600;

/// A golden of a few gigabytes is read in minutes on any disk.
pub const JUDGE_MAX_S: u64 = 3_600;

/// A scheduled backup that failed is tried again after this at the earliest: what fails at once fails again at once.
pub const BACKUP_RETRY_MIN_S: i64 = 60;

/// Tries of one backup within its window, and as many after it. The waits between those within it are five minutes together,
/// between those after it an hour: a storage that was away for a while is back by then.
pub const BACKUP_TRIES: u32 = 5;

/// How long a scheduled backup waits for the guest's controller, which asks for a window. It asks whether one is due every
/// minute; ten are enough for a lane that is busy with something short.
pub const CONTROLLER_GRACE: jiff::SignedDuration = jiff::SignedDuration::from_mins(10);

/// From the beginning of one backup of a tier to that of the next: as long as a guest agent is waited for, so that each
/// backup can have a window.
pub const BACKUP_DISTANCE: jiff::SignedDuration = CONTROLLER_GRACE;

/// A schedule is not called overdue sooner than this: its tries may need so long.
pub const OVERDUE_MIN: jiff::SignedDuration = jiff::SignedDuration::from_hours(1);

/// A controller that was silent for so long is not waited for. It says hello every ten minutes at the rarest.
pub const CONTROLLER_SILENT: jiff::SignedDuration = jiff::SignedDuration::from_mins(25);

/// Clocks of this host and of Proxmox, which are one machine's, agree to this: a backup is listed with whole seconds.
pub const CLOCKS_APART: jiff::SignedDuration = jiff::SignedDuration::from_secs(120);

/// A copy that outlives its worker is watched for this long: what is left of a 50 GB upload at 30 MB/s.
pub const ORPHAN_WAIT_S: u64 = 1_800;

/// Snapshots of one maker that a guest may have at once. Each keeps every block that changed since; eight are a day of
/// three-hourly ones.
pub const SNAPSHOTS_PER_GUEST: usize = 8;

/// Snapshots that its policy may have a guest keep at once: those of a day by the hour, of a week by the day, and the
/// one that is taken before the oldest is removed.
pub const SCHEDULED_SNAPSHOTS_PER_GUEST: usize = 32;

/// How full a storage may be for a new snapshot. A thin pool that runs full stops every guest on it, and a guest can
/// write a tenth of a pool within minutes.
pub const SNAPSHOT_FILL_MAX_PERCENT: u64 = 85;

/// How full a lost guest may make a storage. It may fill it further than work that can wait, since the guest serves no
/// user until it is back. The limit still keeps the other guests running.
pub const RESTORE_FILL_MAX_PERCENT: u64 = 95;

/// Start, stop, resize, destroy: Proxmox itself waits 60 s for a start.
pub const SHORT_TASK_MAX_S: u64 = 300;

/// Freeing a thousand gigabytes of a file-backed disk takes minutes on a slow file system; an hour is ten times that.
pub const DESTROY_MAX_S: u64 = 3_600;

/// A guest asked to go down gets this long before the plug is pulled.
pub const SHUTDOWN_S: u32 = 60;

/// VMIDs asked about one by one before the range is called full: 64 round trips are some two seconds.
pub const VMID_CANDIDATES: usize = 64;

/// Ended operations that are kept for the report.
pub const ENDED_SHOWN: usize = 20;

/// Quiesce windows that are kept per guest, so that a controller which comes back late still finds its own; the oldest
/// is deleted first.
pub const WINDOWS_PER_GUEST: u32 = 32;

/// And of the last day all of them, of which a guest has no more: one each [`BACKUP_DISTANCE`] for two tiers, those that it may
/// ask for, and as many again that came to nothing.
pub const WINDOWS_PER_DAY: u32 = 640;

/// How long the time for which programs stood still is counted.
pub const STOOD_STILL: jiff::SignedDuration = jiff::SignedDuration::from_hours(24);

/// Idempotency keys kept per guest; the oldest is deleted first.
pub const IDEMPOTENCY_KEYS_PER_GUEST: u32 = 256;

/// Generations of the desired document that are kept in addition to the one in use.
pub const DOCUMENTS_KEPT: u32 = 8;

/// Tries of a step that only looks or changes a line of configuration, when Proxmox is busy or away.
pub const STEP_TRIES: u32 = 5;

/// Seconds from the failure of try `count` (from 1) to the next.
#[must_use]
pub fn retry_after_s(count: u32) -> i64 {
    let doublings = count.saturating_sub(1).min(16);
    RETRY_FIRST_S.saturating_mul(1_i64 << doublings).min(RETRY_MAX_S)
}

/// Restore tests left for a person at once before no more are begun: each left at most one copy on the storage of tests,
/// and three say that more than one guest's backup is the trouble.
pub const PARKED_TESTS: usize = 3;

/// How many audit lines another party may claim to know beyond our last. Of 256 bytes and more each these are 4 GiB: no
/// copy is so much older. A number that is believed is not heard again, so a wild one would hide every later older
/// copy.
pub const AUDIT_AHEAD: u64 = 1 << 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_guests_say_hello_rarely_and_none_too_rarely() {
        assert_eq!([0, 1, 12, 100, 10_000].map(hello_again_s), [60, 60, 60, 500, 600]);
    }

    #[test]
    fn waits_double_up_to_an_hour() {
        assert_eq!([1, 2, 3, 4].map(retry_after_s), [15, 30, 60, 120]);
        assert_eq!(retry_after_s(u32::MAX), RETRY_MAX_S);
    }
}

/// Work orders that have not ended, on a whole host and of one guest. The hub's own bounds are the same.
pub const ORDERS_OPEN_MAX: u32 = 64;
pub const ORDERS_OPEN_PER_GUEST: u32 = 4;

/// How long an order may wait, whatever the hub says.
pub const ORDER_LIFE_MAX: jiff::SignedDuration = jiff::SignedDuration::from_hours(24);

/// Work orders that ended and are kept. All budgets of a day together let fewer be taken.
pub const ORDERS_KEPT: u32 = 2_000;

/// Orders that were turned away and are kept for the report.
pub const ORDERS_REFUSED_KEPT: u32 = 64;

/// How often something may be ordered: the window in hours, how often for one guest, and for the whole host. A stolen hub
/// orders no more than this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderBudget {
    pub hours: i64,
    pub per_guest: u32,
    pub per_host: u32,
}

/// Backups as many as a guest may ask for itself; a restart costs each guest's users half a minute, so six an hour is
/// more than a person needs, and twenty an hour are not every guest of a large host; a test reads and writes a whole archive.
#[must_use]
pub const fn order_budget(act: &OrderAct) -> OrderBudget {
    match act {
        OrderAct::BackupNow { .. } => {
            OrderBudget { hours: 24, per_guest: ASKED_BACKUPS_PER_DAY, per_host: 120 }
        }
        OrderAct::Snapshot { .. } => OrderBudget { hours: 24, per_guest: 12, per_host: 120 },
        OrderAct::RestartGuest { .. } => OrderBudget { hours: 1, per_guest: 6, per_host: 20 },
        OrderAct::RestoreTestNow { .. } => OrderBudget { hours: 24, per_guest: 4, per_host: 24 },
        OrderAct::Refresh {} => OrderBudget { hours: 1, per_guest: 20, per_host: 20 },
        OrderAct::CollectDiagnostics { .. } => OrderBudget { hours: 1, per_guest: 20, per_host: 20 },
    }
}
