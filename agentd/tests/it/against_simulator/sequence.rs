//! Tests of the sequence proved on a real node.

use agent_admin::doctor::{State, examine};
use agentd::gate::archive::Lines;
use agentd::model::disks::{Content, Disks, MountDisk, RootDisk};
use agentd::model::observed::BackupFlag;
use agentd::port::pve::error::PveError;
use agentd::port::pve::read::Power;
use agentd::port::pve::restore::Placing;
use agentd::port::pve::undo::NotOurs;
use agentd::port::pve::visibility::{NeededPrivilege, Sight};
use agentd::port::pve::volume::{Disk, InBackup};
use agentd::port::pve::{
    AclPath, ConfigChange, ConfigUpdate, ContentKind, DiskSlot, LiftProof, Pve, PveClient, RestoreRequest,
    Role, TaskKind, TaskOutcome, TaskQuery, UndoProof, VmidUse, VolumeId, prove_sight,
};

use super::lab::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn setup_makes_what_doctor_wants_and_repeats_safely() {
    let lab = Lab::start().await;
    lab.setup(&["--dry-run"]).await.unwrap();
    assert!(!lab.config().exists(), "a dry run writes nothing");
    lab.setup(&[]).await.unwrap();
    let (client, settings) = lab.client();
    let checks = examine(&client, &settings).await;
    assert!(checks.iter().all(|check| check.state == State::Good), "{checks:#?}");
    let secret = std::fs::read_to_string(lab.dir.path().join("state/secrets/proxmox-operate")).unwrap();
    lab.setup(&[]).await.unwrap();
    let again = std::fs::read_to_string(lab.dir.path().join("state/secrets/proxmox-operate")).unwrap();
    assert_eq!(secret, again, "a token whose secret is at hand is kept");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_secret_is_replaced_and_removal_takes_it_all_away() {
    let lab = Lab::start().await;
    lab.setup(&[]).await.unwrap();
    std::fs::remove_file(lab.dir.path().join("state/secrets/proxmox-allocate")).unwrap();
    lab.setup(&[]).await.unwrap();
    let (client, settings) = lab.client();
    let checks = examine(&client, &settings).await;
    assert!(checks.iter().all(|check| check.state == State::Good), "{checks:#?}");
    lab.setup(&["--remove"]).await.unwrap();
    assert!(!lab.config().exists());
    let refused = client.version().await.unwrap_err();
    assert!(matches!(refused, PveError::Unauthorised { role: Role::Observe }), "{refused:?}");
    lab.setup(&["--remove"]).await.unwrap();
    lab.setup(&[]).await.unwrap();
    let (client, settings) = lab.client();
    assert!(examine(&client, &settings).await.iter().all(|check| check.state == State::Good));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_proved_sequence_and_its_undo() {
    let lab = Lab::start().await;
    lab.setup(&[]).await.unwrap();
    let (client, _) = lab.client();
    let archive: VolumeId = format!("backup2:backup/{GOLDEN}").parse().unwrap();
    assert_eq!(client.vmid_use(vmid(300)).await.unwrap(), VmidUse::Free);
    let inside = client.archive_config(Role::Allocate, &archive).await.unwrap();
    let inside = Lines::read(inside.expose()).unwrap();
    assert_eq!(inside.get("features").unwrap().value, "nesting=1,keyctl=1");
    let listed = client
        .storage_content(Role::Allocate, &"backup2".parse().unwrap(), ContentKind::Backup, Some(vmid(155)))
        .await
        .unwrap();
    assert!(listed.iter().any(|volume| volume.volid == archive.as_str()), "{listed:?}");

    let upid = client.restore(&request(300, archive.as_str())).await.unwrap();
    let (outcome, lines) = followed(&client, &upid).await;
    assert_eq!(outcome, TaskOutcome::Ok, "{lines:?}");
    assert_eq!(lines.last().map(String::as_str), Some("TASK OK"));
    assert_eq!(client.vmid_use(vmid(300)).await.unwrap(), VmidUse::Taken);
    let query = TaskQuery {
        vmid: vmid(300),
        kind: TaskKind::Restore,
        role: Role::Allocate,
        since_epoch_s: upid.start_epoch_s(),
    };
    assert_eq!(client.find_tasks(query).await.unwrap().first().map(|row| row.upid.clone()), Some(upid));

    let config = client.guest_config(vmid(300)).await.unwrap();
    assert_eq!(config.features.as_deref(), Some("nesting=1,keyctl=1"));
    assert_eq!((config.memory_mib, config.cores, config.hostname.as_deref()), (256, Some(1), Some("web-1")));
    assert!(config.nets.get(&0).unwrap().contains("hwaddr="), "a fresh MAC: {:?}", config.nets);
    assert_eq!(config.env.unwrap().expose(), "HOLDFAST_BOOTSTRAP=eyJjbGFpbSI6MX0");

    change(&client, 300, mark()).await.unwrap();
    let config = client.guest_config(vmid(300)).await.unwrap();
    assert_eq!(config.description, "holdfast 018f3c1e\nsecond line");
    let stale =
        ConfigUpdate::new(config.digest.clone(), vec![ConfigChange::Cores(2.try_into().unwrap())]).unwrap();
    done(&client, client.resize(vmid(300), DiskSlot::Rootfs, 3.try_into().unwrap(), &config.digest).await)
        .await;
    let refused = client.configure(vmid(300), &stale).await.unwrap_err();
    assert!(matches!(refused, PveError::DigestChanged), "{refused:?}");
    change(&client, 300, vec![volume(0)]).await.unwrap();
    change(&client, 300, vec![ConfigChange::Protect]).await.unwrap();
    let refused = change(&client, 300, vec![volume(1)]).await.unwrap_err();
    assert!(matches!(refused, PveError::Protected { vmid: v } if v == vmid(300)), "{refused:?}");
    let config = client.guest_config(vmid(300)).await.unwrap();
    assert_eq!(config.rootfs.as_ref().unwrap().size, Some(3 << 30));
    assert_eq!(config.volumes().len(), 2);

    done(&client, client.start(vmid(300)).await).await;
    assert_eq!(client.guest_status(vmid(300)).await.unwrap().power, Power::Running);
    let refused = client.start(vmid(300)).await.unwrap_err();
    assert!(matches!(refused, PveError::AlreadyRunning { .. }), "{refused:?}");
    change(&client, 300, vec![ConfigChange::ClearEnv]).await.unwrap();
    assert!(client.guest_config(vmid(300)).await.unwrap().env.is_none());

    undo(&client).await;
}

/// Stop, prove, unprotect, destroy, and see that it is gone.
async fn undo(client: &PveClient) {
    done(client, client.stop(vmid(300)).await).await;
    let config = client.guest_config(vmid(300)).await.unwrap();
    let mine = made(300, &config);
    let refused = client.destroy(UndoProof::establish(&mine, &config).unwrap()).await.unwrap_err();
    assert!(matches!(refused, PveError::Protected { .. }), "{refused:?}");
    let mut less = mine.clone();
    less.volumes.pop_last();
    assert!(matches!(UndoProof::establish(&less, &config), Err(NotOurs::Volume { .. })));
    let proof = UndoProof::establish(&mine, &config).unwrap();
    client.unprotect(&LiftProof::of_undo(&proof), &config.digest).await.unwrap();
    let wanted = [NeededPrivilege { path: AclPath::guest(vmid(300)), sight: Sight::Guest }];
    assert!(prove_sight(client, Role::Operate, &wanted).await.unwrap().is_ok());
    done(client, client.destroy(proof).await).await;
    assert_eq!(client.vmid_use(vmid(300)).await.unwrap(), VmidUse::Free);
    assert!(!client.resources().await.unwrap().guests.iter().any(|guest| guest.vmid == vmid(300)));
    let rest = client
        .storage_content(Role::Operate, &"labdir".parse().unwrap(), ContentKind::Rootdir, None)
        .await
        .unwrap();
    assert!(!rest.iter().any(|volume| volume.vmid == Some(vmid(300))), "{rest:?}");
    // A destroyed guest leaves its pool, and we lose our right to look there: absence alone proves nothing.
    assert!(prove_sight(client, Role::Operate, &wanted).await.unwrap().is_err());
}

/// The form of `09-restore`, *rootfs + mps given*, with the tokens that setup makes: each disk on the storage that it names, and
/// none that it does not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_that_writes_its_disks_out_makes_each_where_it_says() {
    let lab = Lab::start().await;
    lab.setup(&[]).await.unwrap();
    let (client, _) = lab.client();
    let mount = |slot: u8, path: &str, storage: &str, backup, content| MountDisk {
        slot,
        path: path.parse().unwrap(),
        storage: storage.parse().unwrap(),
        size: 1.try_into().unwrap(),
        backup,
        content,
    };
    let disks = Disks {
        rootfs: RootDisk { storage: "labbtrfs".parse().unwrap(), size: 2.try_into().unwrap() },
        mounts: vec![
            mount(0, "/data", "labdir", BackupFlag::Off, Content::Empty),
            mount(1, "/inc", "labdir", BackupFlag::On, Content::Held),
        ],
    };
    let archive = format!("backup2:backup/{GOLDEN}");
    let each = |disks| RestoreRequest { disks: Placing::Each(disks), ..request(300, &archive) };
    done(&client, client.restore(&each(disks.clone())).await).await;
    let config = client.guest_config(vmid(300)).await.unwrap();
    let lies =
        |disk: &Disk| (disk.volume().unwrap().storage().to_owned(), disk.in_backup, disk.size.unwrap() >> 30);
    assert_eq!(lies(config.rootfs.as_ref().unwrap()), ("labbtrfs".to_owned(), InBackup::Yes, 2));
    assert_eq!(lies(&config.mounts[&0]), ("labdir".to_owned(), InBackup::No, 1));
    assert_eq!(lies(&config.mounts[&1]), ("labdir".to_owned(), InBackup::Yes, 1));
    assert_eq!(config.mounts.len(), 2);

    let mut strange = disks;
    strange.mounts[0].storage = "backup2".parse().unwrap();
    let refused = client.restore(&RestoreRequest { vmid: vmid(301), ..each(strange) }).await.unwrap_err();
    assert!(matches!(refused, PveError::Parameters { .. }), "a storage of no disks: {refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_tokens_must_not_do() {
    let lab = Lab::start().await;
    lab.setup(&[]).await.unwrap();
    let (client, _) = lab.client();
    let other = "vzdump-lxc-140-2026_11_21-04_00_56.tar.zst";
    let looked =
        client.archive_config(Role::Allocate, &format!("backup2:backup/{other}").parse().unwrap()).await;
    let restored = client.restore(&request(301, &format!("labdir:backup/{other}"))).await;
    for (what, refused) in [
        ("a look into the archive of a guest outside the pool", looked.map(|_| ()).unwrap_err()),
        ("an archive on a storage that holds none of our backups", restored.map(|_| ()).unwrap_err()),
    ] {
        assert!(
            matches!(&refused, PveError::Permission { path: Some(path), privileges, .. } if path == "/vms/140" && privileges == &["VM.Backup"]),
            "{what}: {refused:?}"
        );
    }
    let taken = client.restore(&request(200, &format!("backup2:backup/{GOLDEN}"))).await.unwrap_err();
    assert!(matches!(taken, PveError::AlreadyExists { vmid: v } if v == vmid(200)), "{taken:?}");
    for refused in [
        client.guest_config(vmid(200)).await.map(|_| ()).unwrap_err(),
        client.start(vmid(200)).await.map(|_| ()).unwrap_err(),
        client.guest_status(vmid(200)).await.map(|_| ()).unwrap_err(),
    ] {
        assert!(matches!(refused, PveError::Permission { .. }), "a guest outside the pool: {refused:?}");
    }
    assert!(
        client.resources().await.unwrap().guests.is_empty(),
        "empty, and yet guests 100 and 200 are there"
    );
    let wanted = [NeededPrivilege { path: AclPath::guest(vmid(200)), sight: Sight::Guest }];
    assert!(prove_sight(&client, Role::Observe, &wanted).await.unwrap().is_err());
    let gone =
        client.restore(&request(301, "backup2:backup/vzdump-lxc-155-2020_01_01-00_00_00.tar.zst")).await;
    let (outcome, lines) = followed(&client, &gone.unwrap()).await;
    assert!(
        matches!(&outcome, TaskOutcome::Failed(text) if text.contains("does not exist")),
        "{outcome:?} {lines:?}"
    );
    assert_eq!(client.vmid_use(vmid(301)).await.unwrap(), VmidUse::Free);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn doctor_names_what_is_missing() {
    let lab = Lab::start().await;
    lab.setup(&[]).await.unwrap();
    lab.setup(&["--remove"]).await.unwrap();
    // A pool alone: nothing else is left.
    let refused = lab.setup(&["--pin", &format!("spki/sha256:{}", "ab".repeat(32))]).await;
    assert!(refused.is_ok(), "any pin of the set may match");
    let (client, mut settings) = lab.client();
    settings.proxmox.storage = "offline".parse().unwrap();
    let checks = examine(&client, &settings).await;
    let failed: Vec<String> = checks
        .iter()
        .filter(|check| check.state == State::Failed)
        .map(|check| format!("{}: {}", check.name, check.detail))
        .collect();
    assert!(
        failed.iter().any(|line| line.starts_with("observe on /storage/offline: Datastore.Audit is missing")),
        "{failed:#?}"
    );
    assert!(
        failed.iter().any(|line| line.starts_with("storage offline for rootdir: not visible")),
        "{failed:#?}"
    );
    assert!(checks.iter().any(|check| check.mend.iter().any(|line| {
        line == "pveum acl modify /storage/offline --users holdfast@pve --tokens 'holdfast@pve!observe' --roles HfStAudit --propagate 0"
    })));
}
