//! Tests of every request against Proxmox's schema.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use holdfast_protocol::secret::Secret;

use super::super::change::{ConfigChange, Description, MountSlot, NetSlot, NewVolume};
use super::super::config::{GuestConfig, Switch};
use super::super::restore::{Address, BootstrapEnv, NetSpec, Placing};
use super::super::snapshot::{Snapshot, SnapshotListing};
use super::super::task::TaskKind;
use super::super::undo::{Evidence, Made};
use super::super::volume::InBackup;
use super::*;
use agent_core::gate::warrant::{Allows, SignedState, Warrant};
use agent_core::model::disks::{Content, Disks, MountDisk, RootDisk};
use agent_core::model::mark;
use agent_core::model::net::ResolverText;
use agent_core::model::observed::BackupFlag;
use holdfast_protocol::id::{GuestUid, JobId};
use serde_json::{Value as Json, json};

const DIGEST: &str = "0efe9d8b6dd8ab19dfd1c70300537ee86bad8bf0";

fn vmid() -> Vmid {
    Vmid::try_from(300).unwrap()
}

fn own_backup() -> OwnBackup {
    let row = |name: &str| super::super::read::StoredVolume {
        volid: format!("backup2:backup/{name}"),
        content: "backup".to_owned(),
        vmid: Some(vmid()),
        format: "tar.zst".to_owned(),
        size: 9,
        made_epoch_s: Some(1),
        protected: false,
        sealed: None,
        verification: None,
    };
    let [old, new] =
        ["backup2:backup/old", "backup2:backup/new"].map(agent_core::model::records::VolumeId::new);
    let found = OwnBackup::find(vmid(), &"backup2".parse().unwrap(), (&old, &new), &[row("old"), row("new")]);
    let super::super::prune::ListedArchive::Listed(own) = found else { panic!("it is listed") };
    own
}

fn restore() -> RestoreRequest {
    RestoreRequest {
        vmid: vmid(),
        archive: "backup2:backup/vzdump-lxc-900001-2026_11_21-05_00_00.tar.zst".parse().unwrap(),
        disks: Placing::AllOn("labbtrfs".parse().unwrap()),
        pool: "holdfast".parse().unwrap(),
        net0: NetSpec {
            bridge: "vmbr0".parse().unwrap(),
            address: Address::Static { cidr: "10.66.0.91/24".parse().unwrap(), gateway: None },
            vlan: None,
            hardware: None,
            mtu: None,
            rate: None,
            firewall: None,
        },
        resolver: ResolverText::default(),
        env: BootstrapEnv::new(Secret::new("c2VjcmV0".to_owned())).unwrap(),
        hostname: "web-1".parse().unwrap(),
        memory: 512.try_into().unwrap(),
        swap: 0.try_into().unwrap(),
        cores: 2.try_into().unwrap(),
    }
}

fn restore_each() -> RestoreRequest {
    let size = 1.try_into().unwrap();
    let mount = MountDisk {
        slot: 4,
        path: "/srv/media".parse().unwrap(),
        storage: "labdir".parse().unwrap(),
        size,
        backup: BackupFlag::Off,
        content: Content::Empty,
    };
    let rootfs = RootDisk { storage: "labbtrfs".parse().unwrap(), size };
    RestoreRequest { disks: Placing::Each(Disks { rootfs, mounts: vec![mount] }), ..restore() }
}

fn restore_copy() -> RestoreCopyRequest {
    RestoreCopyRequest {
        vmid: vmid(),
        archive: "backup2:backup/vzdump-lxc-300-2026_11_21-05_00_00.tar.zst".parse().unwrap(),
        storage: "labbtrfs".parse().unwrap(),
        elsewhere: BTreeMap::from([(4, "slow".parse().unwrap())]),
        pool: "holdfast".parse().unwrap(),
        nets: [0, 3].into(),
        bridge: "vmbr0".parse().unwrap(),
        plugged: None,
        env: BootstrapEnv::new(Secret::new("pending".to_owned())).unwrap(),
        hostname: "web-1-copy".parse().unwrap(),
        description: Description::try_from("one\ntwo".to_owned()).unwrap(),
        rootfs: 2.try_into().unwrap(),
        mounts: [(4, ("/srv/db".parse().unwrap(), 1.try_into().unwrap()))].into(),
        caps: None,
        resolver: ResolverText::default(),
    }
}

fn update() -> ConfigUpdate {
    let volume = NewVolume {
        slot: MountSlot(0),
        storage: "labbtrfs".parse().unwrap(),
        size: 1.try_into().unwrap(),
        mount: "/mnt/bulk".parse().unwrap(),
        in_backup: InBackup::No,
    };
    let changes = vec![
        ConfigChange::Memory(512.try_into().unwrap()),
        ConfigChange::Swap(0.try_into().unwrap()),
        ConfigChange::Cores(2.try_into().unwrap()),
        ConfigChange::Tags(vec!["holdfast".parse().unwrap(), "hf-1a2b3c4d".parse().unwrap()]),
        ConfigChange::Description(Description::try_from("one\ntwo".to_owned()).unwrap()),
        ConfigChange::Protect,
        ConfigChange::ClearEnv,
        ConfigChange::AddVolume(volume),
        ConfigChange::Hostname("web-1".parse().unwrap()),
        ConfigChange::AtBoot(Switch::Off),
        ConfigChange::Net(
            NetSlot(3),
            "name=eth3,bridge=vmbr0,hwaddr=BC:24:11:00:00:01,ip=10.66.0.20/24,link_down=1,type=veth"
                .parse()
                .unwrap(),
        ),
    ];
    ConfigUpdate::new(Digest::parse(DIGEST).unwrap(), changes).unwrap()
}

fn token() -> ConfigUpdate {
    ConfigUpdate::new(Digest::parse(DIGEST).unwrap(), vec![ConfigChange::SetEnv(restore().env)]).unwrap()
}

fn withdrawal() -> ConfigUpdate {
    let changes = vec![ConfigChange::WithdrawRequest(MountSlot(3))];
    ConfigUpdate::new(Digest::parse(DIGEST).unwrap(), changes).unwrap()
}

fn reassignment() -> ReassignRequest {
    let digest = || Digest::parse(DIGEST).unwrap();
    let to = Vmid::try_from(301).unwrap();
    let (slot, to_slot) = (MountSlot(1), MountSlot(2));
    ReassignRequest { from: vmid(), slot, digest: digest(), to, to_slot, to_digest: digest() }
}

fn proof() -> UndoProof {
    let tags: BTreeSet<String> = ["hf-1a2b3c4d".to_owned()].into();
    let seen = json!({"digest": DIGEST, "tags": "hf-1a2b3c4d", "description": "mine\n"});
    let evidence = Evidence::Mark { tags, first_line: "mine".to_owned() };
    let made = Made { vmid: vmid(), evidence, volumes: BTreeSet::new() };
    UndoProof::establish(&made, &GuestConfig::read(&seen).unwrap()).unwrap()
}

fn new_snapshot() -> NewSnapshot {
    NewSnapshot { name: "s1".parse().unwrap(), line: Description::try_from("ours".to_owned()).unwrap() }
}

fn own_snapshot() -> OwnSnapshot {
    let row = Snapshot {
        name: "s1".to_owned(),
        parent: None,
        made_epoch_s: Some(1),
        description: "ours".to_owned(),
        half: None,
    };
    match OwnSnapshot::find(vmid(), &"s1".parse().unwrap(), "ours", &[row]) {
        SnapshotListing::Whole(own) => own,
        other => panic!("{other:?}"),
    }
}

fn signed() -> DestroyProof {
    let uid: GuestUid = "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55".parse().unwrap();
    let seen = json!({
        "digest": DIGEST, "hostname": "web-1",
        "tags": mark::tags(uid).join(";"), "description": mark::description(uid)
    });
    let target = SignedState { uid, vmid: vmid(), name: "web-1".parse().unwrap(), volumes: BTreeSet::new() };
    let warrant = Warrant::for_tests(JobId::new(uuid::Uuid::nil()), Allows::DestroyGuest, target);
    DestroyProof::establish(&warrant, &GuestConfig::read(&seen).unwrap()).unwrap()
}

/// Every request with every parameter it can have.
fn all() -> Vec<Call> {
    let node: NodeName = "pve1".parse().unwrap();
    let storage: StorageName = "backup2".parse().unwrap();
    let upid: Upid = "UPID:pve1:00000CEA:000654F7:6B0117B2:vzrestore:300:hf@pve!allocate:".parse().unwrap();
    let digest = Digest::parse(DIGEST).unwrap();
    let archive = restore().archive;
    let query = TaskQuery { vmid: vmid(), kind: TaskKind::Restore, role: Role::Allocate, since_epoch_s: 1 };
    vec![
        Call::version(),
        Call::permissions(Role::Observe, Some(&AclPath::guest(vmid()))),
        Call::resources(),
        Call::vmid_free(vmid()),
        Call::node_status(&node),
        Call::restore(&node, &restore()),
        Call::restore(&node, &restore_each()),
        Call::restore_copy(&node, &restore_copy()),
        Call::guest_config(&node, vmid()),
        Call::configure(&node, vmid(), &update()),
        Call::configure(&node, vmid(), &token()),
        Call::configure(&node, vmid(), &withdrawal()),
        Call::firewall_options(&node, vmid()),
        Call::address_sets(&node, vmid()),
        Call::address_set(&node, vmid()),
        Call::change_filter(&node, vmid(), FilterChange::MakeSet),
        Call::change_filter(&node, vmid(), FilterChange::Allow([10, 66, 0, 91].into())),
        Call::change_filter(&node, vmid(), FilterChange::SwitchOn),
        Call::change_filter(&node, vmid(), FilterChange::Forbid([10, 66, 0, 91].into())),
        Call::unprotect(&node, &LiftProof::of_undo(&proof()), &digest),
        Call::resize(&node, vmid(), DiskSlot::Rootfs, 3.try_into().unwrap(), &digest),
        Call::reassign(&node, &reassignment()),
        Call::guest_status(&node, vmid()),
        Call::start(&node, vmid()),
        Call::stop(&node, vmid()),
        Call::shutdown(&node, vmid(), 60),
        Call::interfaces(&node, vmid()),
        Call::snapshots(&node, vmid()),
        Call::snapshot_config(&node, vmid(), &"s1".parse().unwrap()),
        Call::can_snapshot(&node, vmid()),
        Call::snapshot(&node, vmid(), &new_snapshot()),
        Call::remove_snapshot(&node, &own_snapshot()),
        Call::roll_back(&node, &own_snapshot()),
        Call::backup(&node, vmid(), &storage, &["/srv/media".parse().unwrap()]),
        Call::remove_backup(&node, &own_backup()),
        Call::archive_config(&node, Role::Allocate, &archive),
        Call::storage_entries(),
        Call::storages(&node),
        Call::storage_status(&node, &storage),
        Call::storage_content(&node, Role::Operate, &storage, ContentKind::Backup, Some(vmid())),
        Call::tasks(&node, &query),
        Call::running_backups(&node),
        Call::running_tasks(&node),
        Call::task_status(&node, Role::Allocate, &upid),
        Call::task_log(&node, Role::Allocate, &upid, LogWindow { start: 0, limit: 500 }),
        Call::task_stop(&node, Role::Allocate, &upid),
        Call::destroy(&node, &proof()),
        Call::destroy_signed(&node, &signed()),
    ]
}

#[test]
fn the_walk_leaves_no_endpoint_out() {
    let walked: HashSet<Endpoint> = all().iter().map(Call::endpoint).collect();
    for endpoint in Endpoint::ALL {
        assert!(walked.contains(endpoint), "{} is not walked", endpoint.text());
    }
}

#[test]
fn what_must_never_be_sent_cannot_be_said() {
    const NEVER: [&str; 14] = [
        "force",
        "forceStop",
        "skiplock",
        "destroy-unreferenced-disks",
        "purge",
        "unique",
        "features",
        "start",
        "lock",
        "hookscript",
        "script",
        "dumpdir",
        "stop",
        "template",
    ];
    for call in all() {
        let text = call.endpoint().text();
        for (key, value) in call.params() {
            let reading_from = key == "start" && call.endpoint() == Endpoint::TaskLog;
            assert!(reading_from || !NEVER.contains(&key.as_ref()), "{text} says {key}");
            let restoring = call.endpoint() == Endpoint::Restore;
            assert!(!(restoring && key == "tags"), "a restore passes tags");
            assert!(
                key != "delete" || ["env", "protection"].contains(&value.expose().as_ref()),
                "{text} deletes"
            );
            // An existing guest already has one, which its changed network repeats.
            let fixes = key.starts_with("net") && value.expose().contains("hwaddr");
            assert!(!fixes || call.endpoint() == Endpoint::Configure, "{text} fixes a MAC");
        }
    }
    let node: NodeName = "pve1".parse().unwrap();
    for bare in [Call::destroy(&node, &proof()), Call::destroy_signed(&node, &signed())] {
        assert!(bare.params().is_empty());
    }
    let node = "pve1".parse().unwrap();
    for call in [Call::remove_snapshot(&node, &own_snapshot()), Call::roll_back(&node, &own_snapshot())] {
        assert!(call.params().is_empty(), "{}", call.endpoint().text());
    }
}

#[test]
fn a_restore_says_what_was_proved_and_nothing_more() {
    let call = Call::restore(&"pve1".parse().unwrap(), &restore());
    let said: Vec<String> =
        call.params().iter().map(|(key, value)| format!("{key}={}", value.expose())).collect();
    assert_eq!(
        said,
        [
            "vmid=300",
            "restore=1",
            "unprivileged=1",
            "ostemplate=backup2:backup/vzdump-lxc-900001-2026_11_21-05_00_00.tar.zst",
            "storage=labbtrfs",
            "pool=holdfast",
            "net0=name=eth0,bridge=vmbr0,ip=10.66.0.91/24",
            "env=HOLDFAST_BOOTSTRAP=c2VjcmV0",
            "hostname=web-1",
            "memory=512",
            "swap=0",
            "cores=2",
        ]
    );
    let handed = Call::configure(&"pve1".parse().unwrap(), vmid(), &token());
    for call in [call, handed] {
        assert!(!format!("{call:?}").contains("c2VjcmV0"), "a trace of the call shows the claim");
    }
}

/// The call overrides everything in the archive that must not exist twice.
#[test]
fn a_copy_brings_nothing_of_its_guest_along() {
    let call = Call::restore_copy(&"pve1".parse().unwrap(), &restore_copy());
    let said: Vec<String> =
        call.params().iter().map(|(key, value)| format!("{key}={}", value.expose())).collect();
    assert_eq!(
        said,
        [
            "vmid=300",
            "restore=1",
            "unprivileged=1",
            "ostemplate=backup2:backup/vzdump-lxc-300-2026_11_21-05_00_00.tar.zst",
            "storage=labbtrfs",
            "pool=holdfast",
            "env=HOLDFAST_BOOTSTRAP=pending",
            "hostname=web-1-copy",
            "description=one\ntwo",
            "onboot=0",
            "rootfs=labbtrfs:2",
            "net0=name=eth0,bridge=vmbr0,ip=manual,link_down=1",
            "net3=name=eth3,bridge=vmbr0,ip=manual,link_down=1",
            "mp4=slow:1,mp=/srv/db,backup=1",
        ]
    );
}

#[test]
fn writes_that_change_or_destroy_use_their_own_token() {
    for call in all() {
        let wanted = match call.endpoint() {
            Endpoint::Restore | Endpoint::Destroy => Role::Allocate,
            Endpoint::Configure
            | Endpoint::SetFirewallOptions
            | Endpoint::MakeAddressSet
            | Endpoint::AllowAddress
            | Endpoint::ForbidAddress
            | Endpoint::Backup
            | Endpoint::Snapshot
            | Endpoint::RemoveSnapshot
            | Endpoint::RollBack
            | Endpoint::Resize
            | Endpoint::MoveVolume
            | Endpoint::RemoveBackup
            | Endpoint::Start
            | Endpoint::Stop
            | Endpoint::Shutdown => Role::Operate,
            _ => continue,
        };
        assert_eq!(call.role(), wanted, "{}", call.endpoint().text());
    }
}

#[test]
fn a_task_name_cannot_leave_its_path_segment() {
    let upid: Upid = "UPID:pve1:00000CEA:000654F7:6B0117B2:vzdump:a?b#c%d>e:hf@pve!operate:".parse().unwrap();
    let call = Call::task_status(&"pve1".parse().unwrap(), Role::Operate, &upid);
    assert_eq!(
        call.path(),
        "/nodes/pve1/tasks/UPID%3Apve1%3A00000CEA%3A000654F7%3A6B0117B2%3Avzdump%3Aa%3Fb%23c%25d%3Ee%3Ahf%40pve%21operate%3A/status"
    );
}

/// The methods we use, taken from Proxmox's own schema (9.2.11): every parameter must be known there.
#[test]
fn every_parameter_stands_in_the_schema_of_proxmox() {
    let schema: Vec<Json> = include_str!("../../tests/data/pve-schema.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for call in all() {
        let (verb, path) = call.endpoint().text().split_once(' ').unwrap();
        let method = schema.iter().find(|m| m["method"] == verb && m["path"] == path);
        let known = method.unwrap_or_else(|| panic!("{verb} {path} is not in the schema"));
        for (key, _) in call.params() {
            let stem = key.trim_end_matches(|c: char| c.is_ascii_digit());
            let listed = &known["parameters"];
            let found = listed.get(key.as_ref()).or_else(|| listed.get(format!("{stem}[n]")));
            assert!(found.is_some(), "{verb} {path} does not know {key}");
        }
    }
}
