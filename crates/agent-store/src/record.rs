//! Records that follow from the events of operations.
//!
//! Input: an operation, the finding of a step or an undo, and how it ended. Output: rows of guests, copies, backups,
//! snapshots and windows, in the transaction of the event. A finding that its operation cannot have is an error: the
//! event is not written, and the operation stops.

use holdfast_protocol::id::Vmid;
use jiff::Timestamp;
use rusqlite::Transaction;

use super::{StoreError, backup, controller, copies, guest, release, restore_test, snapshot, window};
use agent_core::model::records::ControllerOutcome;
use agent_core::operation::log::{Finding, Status};
use agent_core::operation::progress::OperationState;
use agent_core::operation::update_controller::Came;
use agent_core::operation::window::Window;
use agent_core::operation::{Makes, Operation, RebaseGuest, Source};

/// Applies a finding to our records.
pub(super) fn learn(
    transaction: &Transaction<'_>,
    after: &OperationState,
    fact: &Finding,
    at: Timestamp,
) -> Result<(), StoreError> {
    let operation = &after.operation;
    match fact {
        Finding::Vmid(vmid) => reserved(transaction, after, *vmid),
        Finding::Volume(volume) => match operation {
            // From its making on it is ours to know, whatever becomes of the steps that follow.
            Operation::AttachVolume(attach) => guest::add_volume(transaction, attach.target.uid, volume),
            // Both guests' records change with the outcome of the step, or neither.
            Operation::ReassignVolume(hand) => {
                guest::take_volume(transaction, hand.from().uid, hand.volume())?;
                guest::add_volume(transaction, hand.to().uid, volume)
            }
            // The guest or copy is recorded at the end of its operation.
            making if !matches!(making.makes(), Makes::Nothing) => Ok(()),
            other => misplaced(other),
        },
        Finding::SnapshotTaken { at } => match operation {
            Operation::Snapshot(spec) => snapshot::taken(transaction, spec, after.id, *at),
            Operation::UpdateController(update) => {
                snapshot::taken(transaction, &update.snapshot, after.id, *at)
            }
            other => misplaced(other),
        },
        Finding::Tested { verdict, why } => match operation {
            Operation::RestoreTest(spec) => restore_test::seen(transaction, spec, after, (*verdict, why), at),
            other => misplaced(other),
        },
        // Guest and copy change places with the outcome of the step, or neither does.
        Finding::TookPlace => match operation {
            Operation::SwapGuest(swap) => copies::swapped(transaction, swap, after.id),
            Operation::RebaseGuest(rebase) => copies::rebased(transaction, rebase, after),
            other => misplaced(other),
        },
        // While it is under way the journal says where its volumes are. Our records change with its end.
        Finding::Moved { .. } | Finding::MovedBack { .. } => match operation {
            Operation::RebaseGuest(_) => Ok(()),
            other => misplaced(other),
        },
        Finding::WindowGranted(granted) => match operation {
            Operation::QuiescedBackup(spec) => {
                window::granted(transaction, after, &Window::granted(spec.bound, granted.clone()), at)
            }
            other => misplaced(other),
        },
        Finding::Controller { came, why } => match operation {
            Operation::UpdateController(update) => {
                let outcome = match came {
                    Came::Up => return Ok(()),
                    Came::Bad => ControllerOutcome::Bad,
                    Came::Silent => ControllerOutcome::Silent,
                };
                controller::did_not_come_up(transaction, update, after.id, (outcome, why), at)
            }
            other => misplaced(other),
        },
        Finding::SnapshotGone => match operation {
            Operation::ExpireSnapshot(spec) => snapshot::gone(transaction, spec.made_by),
            other => misplaced(other),
        },
        Finding::BackupGone => match operation {
            Operation::PruneBackup(spec) => backup::gone(transaction, spec),
            other => misplaced(other),
        },
        Finding::BackupFound { archive, bytes, at, sealed, mounts, hardware, disks } => {
            let (sealed, mounts, hardware) = (sealed.as_ref(), mounts.as_ref(), *hardware);
            let disks = disks.as_deref();
            let found =
                backup::ListedBackup { archive, bytes: *bytes, at: *at, sealed, mounts, hardware, disks };
            backup::found(transaction, after, &found)
        }
        // Findings that only the rest of the operation needs.
        Finding::RestoredBy(_)
        | Finding::Backup(_)
        | Finding::Found(_)
        | Finding::FoundMarked { .. }
        | Finding::FoundIdentities(_)
        | Finding::FoundToken { .. }
        | Finding::Condition(_) => Ok(()),
    }
}

/// Records the chosen VMID for the guest or copy that is made under it.
fn reserved(transaction: &Transaction<'_>, after: &OperationState, vmid: Vmid) -> Result<(), StoreError> {
    match after.operation.makes() {
        Makes::Guest(provision) => guest::set_vmid(transaction, provision.guest.uid, vmid),
        Makes::Copy(spec) => {
            let archive = spec.archive().map_err(StoreError::unreadable("what a copy is restored from"))?;
            let guest = spec.guest();
            copies::begin(transaction, (guest.uid, &guest.name, archive), after.id, vmid)
        }
        Makes::Successor(spec) => {
            let guest = spec.guest();
            copies::begin(transaction, (guest.uid, &guest.name, &spec.image().archive), after.id, vmid)
        }
        Makes::Scratch(spec) => {
            copies::begin(transaction, (spec.guest, &spec.name, &spec.backup.archive), after.id, vmid)
        }
        Makes::Adopted(_) | Makes::Nothing => Ok(()),
    }
}

/// Applies a finding of an undo to our records.
pub(super) fn unlearn(
    transaction: &Transaction<'_>,
    after: &OperationState,
    fact: &Finding,
) -> Result<(), StoreError> {
    let (Finding::Volume(back), Operation::ReassignVolume(hand)) = (fact, &after.operation) else {
        return Ok(());
    };
    for handed in after.volumes() {
        guest::take_volume(transaction, hand.to().uid, &handed)?;
    }
    guest::take_volume(transaction, hand.from().uid, hand.volume())?;
    guest::add_volume(transaction, hand.from().uid, back)
}

fn misplaced(operation: &Operation) -> Result<(), StoreError> {
    let text = format!("a {} cannot find that", operation.kind().as_str());
    Err(StoreError::unreadable("what a step found")(text))
}

/// Records the guest that a successful operation made.
pub(super) fn made(
    transaction: &Transaction<'_>,
    after: &OperationState,
    at: Timestamp,
) -> Result<(), StoreError> {
    let uid = after.operation.uid();
    match after.operation.makes() {
        Makes::Guest(provision) => {
            guest::set_made(transaction, uid, &after.volumes())?;
            let Source::Image(image) = &provision.source else { return Ok(()) };
            release::came_with(transaction, uid, (&provision.guest.golden, &image.sha256), at)
        }
        Makes::Successor(rebase) => {
            let version = rebase.version().map_err(StoreError::unreadable("an image's version"))?;
            release::came_with(transaction, uid, (version, &rebase.image().sha256), at)
        }
        Makes::Adopted(_) => guest::set_made(transaction, uid, &after.volumes()),
        Makes::Copy(_) => copies::made(transaction, after.id, &after.volumes()),
        Makes::Scratch(_) | Makes::Nothing => Ok(()),
    }
}

/// What happens to the guest that an operation made, when that operation was undone or ended by a person. Its remains
/// on the node are left alone.
pub(super) fn taken_back(transaction: &Transaction<'_>, after: &OperationState) -> Result<(), StoreError> {
    match after.operation.makes() {
        Makes::Guest(provision) => guest::set_back(transaction, provision),
        Makes::Adopted(_) => guest::set_nowhere(transaction, after.operation.uid()),
        Makes::Copy(_) => copies::gone(transaction, after.id),
        Makes::Successor(rebase) => {
            came_back(transaction, after, rebase)?;
            copies::gone_making(transaction, after.id)
        }
        Makes::Scratch(_) | Makes::Nothing => Ok(()),
    }
}

/// The volumes of a guest whose exchange was taken back whole: each under the name that it came back with. One by one they
/// cannot be noted, since one may have the name that another had before. Of an exchange that a person ended nothing is
/// noted: a volume may still be with the other container.
fn came_back(
    transaction: &Transaction<'_>,
    after: &OperationState,
    rebase: &RebaseGuest,
) -> Result<(), StoreError> {
    let back = after.moved_back();
    if after.status() != Status::Undone || back.is_empty() {
        return Ok(());
    }
    let moves = rebase.volumes().iter().map(|one| back.get(&one.volume).unwrap_or(&one.volume).clone());
    let volumes = rebase.stays().into_iter().chain(moves).collect();
    guest::set_made(transaction, rebase.guest().uid, &volumes)
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::generation::Generation;
    use holdfast_protocol::id::OperationId;

    use super::*;
    use crate::journal::NewOperation;
    use crate::tests::{at, open, uid, vmid};
    use agent_core::operation::log::Event;
    use agent_core::operation::{Start, Target};

    #[tokio::test]
    async fn a_finding_that_an_operation_cannot_have_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path()).await;
        let id = OperationId::new(uuid::Uuid::from_u128(9));
        let target = Target { uid: uid(1), name: "web-1".parse().unwrap(), vmid: vmid(300) };
        let new = NewOperation {
            id,
            operation: Operation::Start(Start(target)),
            generation: Generation::new(1),
            reason: "test".to_owned(),
            at: at(1),
        };
        let mut progress = store.open_operation(new).await.unwrap();
        for event in [Event::Begun, Event::Intended { step: 0 }] {
            progress = store.append(&progress, event, at(2)).await.unwrap();
        }
        for wrong in [Finding::SnapshotGone, Finding::BackupGone, Finding::TookPlace] {
            let event = Event::Succeeded { step: 0, facts: vec![wrong], note: None };
            assert!(store.append(&progress, event, at(3)).await.is_err());
        }
        let now = store.operation(id).await.unwrap().unwrap();
        assert_eq!(now.status(), Status::During(0));
        let right = Event::Succeeded { step: 0, facts: Vec::new(), note: None };
        store.append(&now, right, at(4)).await.unwrap();
    }
}
