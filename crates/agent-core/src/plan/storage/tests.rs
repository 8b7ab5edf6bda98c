//! Tests of every status of a target, as a table.

use holdfast_protocol::job::Verb;
use serde_json::json;

use super::*;
use crate::model::storage::Marked;

fn wanted(state: &str, last: u8) -> StorageTarget {
    serde_json::from_value(json!({ "name": "usb1", "class": "slow", "role": "local-backup", "state": state,
        "backend": { "usb": { "uuid": format!("0b5f1f3c-9d0e-4a6b-8f51-1c2d3e4f5a{last:02x}") } },
        "label": "blue", "default": false, "schedulable": true }))
    .unwrap()
}

fn record(status: TargetState) -> TargetRecord {
    let approval = Approval::of(&wanted("attached", 1));
    let mark = "01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a01".parse().unwrap();
    TargetRecord { approval, status, mark, marked: Some(Marked { iops: Some(90) }), entry: None }
}

fn mount(id: u64, device: DeviceSeen) -> MountSeen {
    MountSeen { id, source: "/dev/sdb1".to_owned(), device }
}

fn memory(confirmed: Option<(u64, MarkerSeen)>, refusal: Option<&str>, was_mounted: bool) -> TargetMemory {
    let refusal = refusal.map(|code| (code.to_owned(), "no".to_owned()));
    TargetMemory {
        confirmed,
        refusal,
        wrong: None,
        was_mounted,
        server: ServerSeen::NotTried,
        said: LastStorageState::Nothing,
    }
}

#[test]
fn a_disk_in_force_stands_as_kernel_helper_and_marker_say() {
    use DeviceSeen::{Gone, There};
    let record = record(TargetState::Attached);
    let wanted = wanted("attached", 1);
    let (away, wrong) = ("its device went away", "it is not the disk that was attached");
    let other = MarkerSeen::Other("x".to_owned());
    let deep = |memory: TargetMemory, marker: MarkerSeen| TargetMemory { wrong: Some(marker), ..memory };
    for (mount, memory, status, action) in [
        (None, memory(None, None, false), TargetStatus::Absent, Some(TargetAction::Mount)),
        (None, memory(None, Some("E_DEVICE_ABSENT"), false), TargetStatus::Absent, Some(TargetAction::Mount)),
        (None, memory(None, Some("E_DEVICE_ABSENT"), true), TargetStatus::Dropped, Some(TargetAction::Mount)),
        (None, memory(None, None, true), TargetStatus::Dropped, Some(TargetAction::Mount)),
        (
            None,
            memory(None, Some("E_DEVICE_AMBIGUOUS"), true),
            TargetStatus::Wrong,
            Some(TargetAction::Mount),
        ),
        (None, memory(None, Some("E_DEVICE_CLASS"), true), TargetStatus::Wrong, Some(TargetAction::Mount)),
        (None, memory(None, Some("E_AUTHZ"), false), TargetStatus::Refused, Some(TargetAction::Mount)),
        (None, deep(memory(None, None, true), other.clone()), TargetStatus::Wrong, None),
        (None, deep(memory(None, None, true), MarkerSeen::Missing), TargetStatus::Wrong, None),
        (Some(mount(7, There)), memory(None, None, false), TargetStatus::Absent, Some(TargetAction::Mount)),
        (
            Some(mount(7, There)),
            memory(None, Some("E_PATH"), false),
            TargetStatus::Wrong,
            Some(TargetAction::Mount),
        ),
        (
            Some(mount(7, There)),
            memory(None, Some("E_DEVICE_ABSENT"), true),
            TargetStatus::Dropped,
            Some(TargetAction::Mount),
        ),
        // What was vouched for was another mount.
        (
            Some(mount(8, There)),
            memory(Some((7, MarkerSeen::Ours)), None, true),
            TargetStatus::Dropped,
            Some(TargetAction::Mount),
        ),
        (Some(mount(7, There)), memory(Some((7, MarkerSeen::Ours)), None, true), TargetStatus::Mounted, None),
        (
            Some(mount(7, There)),
            memory(Some((7, MarkerSeen::Unwritable(String::new()))), None, true),
            TargetStatus::Unmarked,
            Some(TargetAction::Mount),
        ),
        (
            Some(mount(7, There)),
            memory(Some((7, MarkerSeen::Unread(String::new()))), None, true),
            TargetStatus::Wrong,
            Some(TargetAction::Mount),
        ),
        (
            Some(mount(7, There)),
            memory(Some((7, MarkerSeen::Failing(String::new()))), None, true),
            TargetStatus::Wrong,
            None,
        ),
        (
            Some(mount(7, There)),
            memory(Some((7, other)), None, true),
            TargetStatus::Wrong,
            Some(TargetAction::Unmount(wrong)),
        ),
        (
            Some(mount(7, There)),
            memory(Some((7, MarkerSeen::Missing)), None, true),
            TargetStatus::Wrong,
            Some(TargetAction::Unmount(wrong)),
        ),
        (
            Some(mount(7, Gone)),
            memory(Some((7, MarkerSeen::Ours)), None, true),
            TargetStatus::Dropped,
            Some(TargetAction::Unmount(away)),
        ),
        (
            Some(mount(7, Gone)),
            memory(None, Some("E_BUSY"), true),
            TargetStatus::Dropped,
            Some(TargetAction::Unmount(away)),
        ),
    ] {
        let known = TargetFacts {
            wanted: Some(&wanted),
            record: Some(&record),
            mount: mount.as_ref(),
            memory: &memory,
            proxmox: StorageState::Unknown,
        };
        let judged = judge(&known);
        assert_eq!(
            (judged.status, judged.action),
            (status, action),
            "{mount:?} {memory:?}: {}",
            judged.reason
        );
        assert_eq!(judged.held, None);
        let problem = problem(&wanted.name, &judged, Some(&record));
        assert_eq!(problem.is_some(), status != TargetStatus::Mounted, "{status:?}");
        // A document that no longer names it lets nothing go.
        assert_eq!(judge(&TargetFacts { wanted: None, ..known }), judged);
    }
}

#[test]
fn only_a_signature_makes_or_ends_a_use() {
    let nothing = TargetMemory::default();
    let there = mount(7, DeviceSeen::There);
    let vouched = memory(Some((7, MarkerSeen::Ours)), None, true);
    let verb = |judged: &Judged| judged.held.as_ref().map(|draft| draft.act.verb());
    for goal in ["attached", "disconnected", "decommissioned"] {
        let wanted = wanted(goal, 1);
        // Never approved: nothing is mounted, and nothing that is mounted there is touched.
        for mount in [None, Some(&there)] {
            let judged = judge(&TargetFacts {
                wanted: Some(&wanted),
                record: None,
                mount,
                memory: &nothing,
                proxmox: StorageState::Unknown,
            });
            assert_eq!(judged.action, None, "{goal}");
            assert_eq!(verb(&judged), (goal == "attached").then_some(Verb::AttachStorage));
        }
        // In force: it stays in use until it is signed for.
        let record = record(TargetState::Attached);
        let known = TargetFacts {
            wanted: Some(&wanted),
            record: Some(&record),
            mount: Some(&there),
            memory: &vouched,
            proxmox: StorageState::Unknown,
        };
        let judged = judge(&known);
        assert_eq!((judged.status, judged.action), (TargetStatus::Mounted, None), "{goal}");
        assert_eq!(verb(&judged), (goal != "attached").then_some(Verb::DetachStorage));
    }
    // Another disk under the name: the old one stays in use.
    let (other, attached) = (wanted("attached", 2), record(TargetState::Attached));
    let judged = judge(&TargetFacts {
        wanted: Some(&other),
        record: Some(&attached),
        mount: Some(&there),
        memory: &vouched,
        proxmox: StorageState::Unknown,
    });
    assert_eq!((judged.status, judged.action), (TargetStatus::Mounted, None));
    let reported = waiting(judged.held.as_ref().unwrap()).unwrap();
    assert!(reported.effect.contains("in place of disk 0b5f1f3c"), "{}", reported.effect);
    assert_eq!(Draft::parse(reported.payload.as_bytes()).unwrap(), judged.held.unwrap());
    // Let go by a signature: unmounted, whatever the document asks for or leaves out.
    for status in [TargetState::Disconnected, TargetState::Decommissioned] {
        let record = record(status);
        for wanted in [None, Some(&other)] {
            let judged = judge(&TargetFacts {
                wanted,
                record: Some(&record),
                mount: Some(&there),
                memory: &vouched,
                proxmox: StorageState::Unknown,
            });
            assert_eq!(judged.action, Some(TargetAction::Unmount("an operator let it go")));
            let judged = judge(&TargetFacts {
                wanted,
                record: Some(&record),
                mount: None,
                memory: &nothing,
                proxmox: StorageState::Unknown,
            });
            assert_eq!(judged.action, None);
        }
    }
}

#[test]
fn a_fast_disk_that_is_slow_is_reported() {
    let mut record = record(TargetState::Attached);
    record.approval.class = StorageClass::Fast;
    let judged = Judged { status: TargetStatus::Mounted, reason: String::new(), action: None, held: None };
    let name = "usb1".parse().unwrap();
    assert!(problem(&name, &judged, Some(&record)).unwrap().to_string().contains("90 durable writes"));
    for iops in [Some(FAST_IOPS_MIN), None] {
        record.marked = Some(Marked { iops });
        assert_eq!(problem(&name, &judged, Some(&record)), None);
    }
}

#[test]
fn a_mounted_disk_of_which_proxmox_says_that_it_is_not_there_is_not_well() {
    let (record, wanted) = (record(TargetState::Attached), wanted("attached", 1));
    let (there, vouched) = (mount(7, DeviceSeen::There), memory(Some((7, MarkerSeen::Ours)), None, true));
    let status = |proxmox| {
        let (wanted, record, mount) = (Some(&wanted), Some(&record), Some(&there));
        let judged = judge(&TargetFacts { wanted, record, mount, memory: &vouched, proxmox });
        (judged.status, judged.action)
    };
    assert_eq!(status(StorageState::Active), (TargetStatus::Mounted, None));
    assert_eq!(status(StorageState::Unknown), (TargetStatus::Mounted, None));
    assert_eq!(status(StorageState::Inactive), (TargetStatus::Wrong, None));
}

#[test]
fn a_share_stands_as_its_server_and_proxmox_say() {
    let mut record = record(TargetState::Attached);
    record.approval.backend =
        serde_json::from_value(json!({ "nfs": { "server": "nas.example", "export": "/export/a" } })).unwrap();
    let silent = ServerSeen::Silent("nas.example does not answer on port 2049".to_owned());
    for (server, proxmox, status) in [
        (ServerSeen::NotTried, StorageState::Unknown, TargetStatus::ByProxmox),
        (ServerSeen::Answers, StorageState::Active, TargetStatus::ByProxmox),
        (ServerSeen::Answers, StorageState::Inactive, TargetStatus::Dropped),
        (ServerSeen::NotTried, StorageState::Inactive, TargetStatus::Dropped),
        (silent.clone(), StorageState::Active, TargetStatus::Dropped),
        (silent, StorageState::Inactive, TargetStatus::Dropped),
    ] {
        let memory = TargetMemory { server, ..TargetMemory::default() };
        let judged = judge(&TargetFacts {
            wanted: None,
            record: Some(&record),
            mount: None,
            memory: &memory,
            proxmox,
        });
        assert_eq!((judged.status, judged.action), (status, None), "{memory:?}");
        let reported = problem(&record.approval.name, &judged, Some(&record));
        let is_gone = status == TargetStatus::Dropped;
        assert_eq!(reported.is_some_and(|reported| reported.code == ErrorCode::StorageGone), is_gone);
    }
    // A Proxmox that is silent brings no share back.
    for (said, status) in [
        (LastStorageState::Inactive, TargetStatus::Dropped),
        (LastStorageState::Active, TargetStatus::ByProxmox),
    ] {
        let memory = TargetMemory { server: ServerSeen::Answers, said, ..TargetMemory::default() };
        let proxmox = StorageState::Unknown;
        let judged = judge(&TargetFacts {
            wanted: None,
            record: Some(&record),
            mount: None,
            memory: &memory,
            proxmox,
        });
        assert_eq!(judged.status, status, "{said:?}");
    }
}
