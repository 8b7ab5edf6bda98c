//! Stories of guests that are put on a newer image.

use agentd::gate::warrant::{Allows, SignedState, Warrant};
use agentd::model::net::ResolverText;
use agentd::model::records::{BackupWhy, VolumeId};
use agentd::operation::log::Status;
use agentd::operation::rebase_guest::{DataVolume, GuestSizes, Successor};
use agentd::operation::{Backup, Image, Operation, RebaseGuest, VmidRequest};
use holdfast_protocol::id::JobId;

use super::Story;
use crate::controllers::Speech;
use crate::fixtures::{Kit, guest, target};
use crate::ground::Ground;
use crate::world_template::volumes;

/// The guest and the container that takes its place.
const PAIR: [u32; 2] = [300, 301];

/// The image is restored as that of a new guest, which is killed twice everywhere, and so is a backup.
const SECONDS: usize = 5;

pub(super) fn stories() -> Vec<Story> {
    // What moves is renamed on its way, there and back.
    let moves = |holding: &str| {
        ["tank:300/vm-300-disk-1", "tank:300/vm-300-disk-2"].iter().any(|moved| holding.starts_with(moved))
    };
    let apart =
        |story: Story| Story { never_both: Some(PAIR), second_one_in: SECONDS, may_rename: moves, ..story };
    vec![
        apart(Story::done("rebase_guest", Ground::GuestRuns, rebase)),
        apart(Story::done("rebase_guest, stopped", Ground::GuestStands, rebase)),
        // Everything was exchanged, the volumes moved and the claim handed over, and its controller never spoke.
        apart(Story {
            speech: Speech::Silence,
            unclear: Status::Parked,
            ..Story::undone("rebase_guest, silent", Ground::GuestRuns, rebase)
        }),
        apart(Story {
            refused: Some("promote_copy"),
            unclear: Status::Parked,
            ..Story::undone("rebase_guest, not plugged in", Ground::GuestRuns, rebase)
        }),
    ]
}

fn rebase(kit: &Kit) -> Operation {
    let (target, policy) = (target(1), kit.policy());
    let seen =
        SignedState { uid: target.uid, vmid: target.vmid, name: target.name.clone(), volumes: volumes() };
    let golden = policy.goldens.values().next().expect("the kit has an image");
    let sha256 = golden.sha256.clone().expect("the kit names its digest");
    let version = "2026.12.1".parse().expect("a version");
    let allows = Allows::RebaseGuest { version, sha256: sha256.clone() };
    let warrant = Warrant::for_tests(JobId::new(uuid::Uuid::from_u128(8)), allows, seen);
    let image = Image { archive: golden.archive.clone(), sha256, file: golden.file.clone() };
    let size = guest(1).size;
    let successor = Successor {
        number: VmidRequest::AnyOf { range: policy.range, except: vec![target.vmid] },
        pool: policy.pool,
        storage: policy.storage,
        bridge: policy.bridge,
        sizes: GuestSizes {
            memory: size.memory_mib,
            swap: size.swap_mib,
            cores: Some(size.cores),
            rootfs: size.rootfs_gib,
        },
        resolver: ResolverText::default(),
    };
    let volume = |slot: u8, path: &str, disk: u32| DataVolume {
        slot,
        path: path.parse().expect("a path"),
        volume: VolumeId::new(format!("tank:300/vm-300-disk-{disk}.raw")),
    };
    let moves = vec![volume(0, "/srv/db", 1), volume(1, "/srv/media", 2)];
    let backup = Backup {
        target,
        storage: "backup2".parse().expect("a plain name"),
        why: BackupWhy::First,
        due: None,
        key: None,
        leaves_out: Vec::new(),
    };
    let rebase = RebaseGuest::new(warrant, image, successor, moves, Some(backup));
    Operation::RebaseGuest(Box::new(rebase.expect("it was signed for this")))
}
