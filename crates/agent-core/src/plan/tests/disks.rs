//! Tests of where a missing guest's disks are made again.

use std::sync::Arc;

use holdfast_protocol::protection::Protection as Promise;

use super::*;
use crate::model::disks::{Content, Disks, MountDisk, RootDisk};
use crate::model::records::HeldMounts;

fn gib(size: u32) -> DiskGib {
    DiskGib::try_from(size).unwrap()
}

fn mount(slot: u8, name: &str, storage: &str, backup: BackupFlag, content: Content) -> MountDisk {
    let (path, storage) = (format!("/srv/{name}").parse().unwrap(), storage.parse().unwrap());
    MountDisk { slot, path, storage, size: gib(6), backup, content }
}

/// As its backup was taken: all on a storage that this host no longer knows, except those on the bulk storage.
fn then() -> Disks {
    Disks {
        rootfs: RootDisk { storage: "old".parse().unwrap(), size: gib(16) },
        mounts: vec![
            mount(0, "db", "old", BackupFlag::On, Content::Held),
            mount(1, "media", "old", BackupFlag::Off, Content::Empty),
            mount(2, "files", "fast", BackupFlag::On, Content::Held),
            mount(5, "cache", "slow", BackupFlag::Off, Content::Empty),
            mount(7, "byhand", "old", BackupFlag::On, Content::Held),
        ],
    }
}

/// A lost guest with hot and bulk volumes, of which the document knows three.
fn lost(disks: Option<Disks>) -> World {
    let mut world = world(1);
    world.policy.bulk_storage = Some("slow".parse().unwrap());
    world.desired[0].volumes.push(volume("media", json!({ "bulk": { "none": "made anew" } })));
    world.desired[0].volumes.push(volume("files", json!({ "bulk": { "backup_to": "shelf" } })));
    world.observed.guests.remove(&vmid(300));
    let mut loss = remains("backup2:backup/vzdump-lxc-300-1.tar.zst");
    let holds = ["/srv/db", "/srv/files", "/srv/byhand"].map(str::to_owned).into();
    loss.remains[0].backup.mounts = Some(HeldMounts { holds, left_out: Vec::new() });
    loss.remains[0].backup.disks = disks;
    world.observed.lost.insert(uid(1), loss);
    world
}

fn made(world: &World) -> (Option<Disks>, String) {
    let plan = world.plan();
    match plan.actions.as_slice() {
        [Action { operation: Operation::Provision(made), reason, .. }] => {
            (made.lost().unwrap().disks.clone(), reason.clone())
        }
        _ => panic!("{plan}"),
    }
}

#[test]
fn each_goes_where_it_would_be_made_new_or_was() {
    let (disks, said) = made(&lost(Some(then())));
    let disks = disks.unwrap();
    assert_eq!(disks.rootfs, RootDisk { storage: "fast".parse().unwrap(), size: gib(16) });
    let (on, off) = (BackupFlag::On, BackupFlag::Off);
    assert_eq!(
        disks.mounts,
        [
            mount(0, "db", "fast", on, Content::Held),
            mount(1, "media", "slow", off, Content::Empty),
            mount(2, "files", "slow", on, Content::Held),
            mount(5, "cache", "slow", off, Content::Empty),
            mount(7, "byhand", "fast", on, Content::Held),
        ],
        "none is smaller than it was"
    );
    for words in [
        "its disks are made on fast, but /srv/media on slow, /srv/files on slow, /srv/cache on slow;",
        "empty when it is back, since this backup does not hold them: /srv/cache, /srv/media;",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[test]
fn one_that_the_document_wants_larger_is_made_so_at_once() {
    let mut world = lost(Some(then()));
    world.desired[0].size.rootfs_gib = gib(32);
    world.desired[0].volumes[1].size_gib = gib(64);
    let disks = made(&world).0.unwrap();
    assert_eq!((disks.rootfs.size, disks.mounts[0].size, disks.mounts[1].size), (gib(32), gib(6), gib(64)));
}

/// What this backup holds stays in backups, whatever the document says now; for an empty volume the promise decides.
#[test]
fn no_restore_takes_a_volume_out_of_the_backups() {
    let flags = |world: &World| {
        let disks = made(world).0.unwrap();
        [&disks.mounts[1], &disks.mounts[2]].map(|mount| (mount.path.to_string(), mount.backup))
    };
    let (media, files) = ("/srv/media".to_owned(), "/srv/files".to_owned());
    let mut world = lost(Some(then()));
    world.desired[0].volumes[2].kind =
        serde_json::from_value(json!({ "bulk": { "none": "why not" } })).unwrap();
    assert_eq!(flags(&world), [(media.clone(), BackupFlag::Off), (files.clone(), BackupFlag::On)]);

    // Promised to a target by a signature, made when it was not to be backed up.
    let mut promise = Promise::of_volumes(&world.desired[0]);
    promise.volumes.iter_mut().find(|kept| kept.name.as_str() == "media").unwrap().kind =
        serde_json::from_value(json!({ "bulk": { "backup_to": "shelf" } })).unwrap();
    world.records.protections.insert(uid(1), Arc::new(promise));
    assert_eq!(flags(&world), [(media, BackupFlag::On), (files, BackupFlag::On)]);
}

/// The sizes of the disks of an older backup are not known: all come back on one storage. The report says so where a
/// bulk one is among them.
#[test]
fn of_an_older_backup_all_go_to_one_storage_and_it_is_said() {
    let mut world = lost(None);
    let (disks, said) = made(&world);
    assert_eq!(disks, None);
    let words =
        "all of them are made on fast, /srv/media, /srv/files as well, and stay there until root moves them;";
    assert!(said.contains(words), "{said}");
    world.policy.bulk_storage = Some("fast".parse().unwrap());
    assert!(!made(&world).1.contains("until root moves them"), "there is no other storage");
}
