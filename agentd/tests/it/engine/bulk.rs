//! Tests of bulk volumes in backups and restores.

use agentd::model::records::HeldMounts;
use agentd::operation::log::Status;
use agentd::operation::{Backup, Operation};
use holdfast_protocol::desired::{BulkBackup, VolumeKind};
use holdfast_protocol::id::MountPath;

use super::restore_copy::copy_of;
use super::world::{Controllers, World, asked_backup, end, find, reported, vmid};

fn backup(leaves_out: &[&str]) -> Operation {
    let leaves_out = leaves_out.iter().map(|path| path.parse::<MountPath>().unwrap()).collect();
    Operation::Backup(Backup { leaves_out, ..asked_backup() })
}

fn mounts(holds: &[&str], left_out: &[&str]) -> Option<HeldMounts> {
    let own = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
    Some(HeldMounts { holds: own(holds), left_out: own(left_out) })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_volume_is_in_the_archives_that_go_to_its_target_and_in_no_others() {
    let world = World::start().await;
    let ports = world.sound().await;
    let controllers = Controllers::start(&ports);
    let Operation::Provision(mut provision) = world.provision(1) else { panic!("a provision") };
    provision.guest.volumes[1].kind = VolumeKind::Bulk(BulkBackup::BackupTo("shelf".parse().unwrap()));
    let done = end(&ports, 0, Operation::Provision(provision)).await;
    assert_eq!(done.status(), Status::Done, "{}", reported(&done));
    drop(controllers);
    let first = ports.store.backup_of(done.id).await.unwrap().unwrap();
    assert_eq!(first.mounts, mounts(&["/srv/db"], &["/srv/media"]));

    let state = world.dir.path().join("pve");
    let tree = |disk: &str| find(&state, disk).join("tree");
    std::fs::write(tree("vm-300-disk-1").join("rows"), "of the database").unwrap();
    std::fs::write(tree("vm-300-disk-2").join("picture"), "of a cat").unwrap();
    let cases: [(&[&str], &[&str], &[&str]); 3] = [
        (&["/srv/media"], &["/srv/db"], &["/srv/media"]),
        (&[], &["/srv/db", "/srv/media"], &[]),
        // No volume is mounted there, and others are below it: it is included rather than lost.
        (&["/srv"], &["/srv/db", "/srv/media"], &[]),
    ];
    for (n, (leaves_out, holds, left_out)) in (1..).zip(cases) {
        let taken = end(&ports, 10 * n, backup(leaves_out)).await;
        assert_eq!(taken.status(), Status::Done, "{}", reported(&taken));
        let record = ports.store.backup_of(taken.id).await.unwrap().unwrap();
        assert_eq!(record.mounts, mounts(holds, left_out));
        let copy = Operation::RestoreCopy(Box::new(copy_of(&world, &record.archive)));
        let copied = end(&ports, 10 * n + 1, copy).await;
        assert_eq!(copied.status(), Status::Done, "{}", reported(&copied));
        let number = copied.view().vmid.unwrap();
        let config = ports.pve.guest_config(number).await.unwrap();
        let paths: Vec<_> = config.mounts.values().map(|disk| disk.mount.as_deref().unwrap()).collect();
        assert_eq!(paths, holds, "nothing that is not in it is made empty");
        assert!(number > vmid(300));
        let read = |disk: u8, file: &str| {
            let volume = tree(&format!("vm-{}-disk-{disk}", number.number()));
            std::fs::read_to_string(volume.join(file)).unwrap()
        };
        assert_eq!(read(1, "rows"), "of the database");
        if holds.contains(&"/srv/media") {
            assert_eq!(read(2, "picture"), "of a cat");
        }
    }
}
