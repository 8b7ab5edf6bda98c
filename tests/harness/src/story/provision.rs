//! Stories of new and remade guests.

use agentd::model::disks::Disks;
use agentd::operation::log::Status;
use agentd::operation::{MissingGuest, Operation, Provision, Source, VmidRequest, Whence};
use holdfast_protocol::id::OperationId;
use serde_json::json;

use super::Story;
use crate::controllers::Speech;
use crate::fixtures::{Kit, vmid};
use crate::ground::Ground;
use crate::world_template::{archive, volumes};

/// But for the judgement afterwards the steps of a guest that was lost are those of a new one, which is killed twice
/// everywhere.
const SECONDS_OF_LOST: usize = 5;

pub(super) fn stories() -> Vec<Story> {
    vec![
        Story::done("provision", Ground::Empty, |kit| wrap(kit.provision(1))),
        // The second volume's storage does not exist, so what was made by then is taken back. After that the agent may
        // not see what is left: unclear ends are for an operator.
        Story {
            unclear: Status::Parked,
            ..Story::undone("provision, no storage", Ground::Empty, |kit| {
                wrap(Provision { bulk_storage: Some("nosuch".parse().unwrap()), ..kit.provision(1) })
            })
        },
        // A guest that runs, protected and with its claim handed over, is taken back: its controller never spoke.
        Story {
            speech: Speech::Silence,
            unclear: Status::Parked,
            ..Story::undone("provision, silent", Ground::Empty, |kit| wrap(kit.provision(1)))
        },
        Story {
            second_one_in: SECONDS_OF_LOST,
            ..Story::done("provision, lost", Ground::Lost, |kit| again(kit, Whence::ThisBox))
        },
        // It came back and never spoke: it is kept, for it serves. Nothing takes it back from its start on.
        Story {
            speech: Speech::Silence,
            second_one_in: SECONDS_OF_LOST,
            ..Story::done("provision, lost and silent", Ground::Lost, |kit| again(kit, Whence::ThisBox))
        },
        // Its token is another host's: it comes back with a claim of this one.
        Story {
            second_one_in: SECONDS_OF_LOST,
            ..Story::done("provision, of a lost box", Ground::Lost, |kit| again(kit, Whence::LostBox))
        },
    ]
}

/// From its first backup, with the rights that setup grants and no other.
fn again(kit: &Kit, whence: Whence) -> Operation {
    let by = OperationId::new(uuid::Uuid::from_u128(u128::from(Ground::GuestRuns.number())));
    let hardware = (whence == Whence::ThisBox).then(|| "BC:24:11:00:03:00".parse().expect("an address"));
    // A lost host's backups come without data about disks.
    let disks = (whence == Whence::ThisBox).then(disks);
    let lost =
        MissingGuest { backup: archive(), vmid: vmid(300), volumes: volumes(), by, whence, hardware, disks };
    let number = VmidRequest::AnyOf { range: kit.policy().range, except: vec![vmid(300)] };
    wrap(Provision { number, source: Source::Backup(Box::new(lost)), ..kit.provision(1) })
}

/// Each disk on its own storage: the bulk volume, of which the backup holds nothing, has one of its own.
fn disks() -> Disks {
    serde_json::from_value(json!({
        "rootfs": { "storage": "tank", "size": 2 },
        "mounts": [
            { "slot": 0, "path": "/srv/db", "storage": "tank", "size": 1, "backup": "on", "content": "held" },
            { "slot": 1, "path": "/srv/media", "storage": "shed", "size": 1, "backup": "off", "content": "empty" }
        ]
    }))
    .expect("disks")
}

fn wrap(provision: Provision) -> Operation {
    Operation::Provision(Box::new(provision))
}
