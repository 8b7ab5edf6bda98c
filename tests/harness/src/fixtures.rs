//! Policy, guests and operations common to all worlds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use agentd::model::policy::{BrakeRule, Golden, Policy, TestBridge, TestPlace, VmidRange};
use agentd::model::records::VolumeId;
use agentd::operation::{Image, Provision, Source, Target, VmidRequest};
use holdfast_protocol::desired::DesiredGuest;
use holdfast_protocol::id::{GuestUid, Vmid};
use serde_json::json;

/// The golden archive on the simulator's backup storage.
pub const ARCHIVE: &str = "backup2:backup/vzdump-lxc-160-2026_11_21-04_02_15.tar.zst";

/// Foreign guests: one in our range of numbers, one in our pool.
pub const FOREIGN: [u32; 2] = [302, 400];

/// The identity of guest `n`.
#[must_use]
pub fn uid(n: u8) -> GuestUid {
    format!("018f3c{n:02x}-6b1f-7c1d-9d0a-2f6d1c0b7a55").parse().unwrap()
}

#[must_use]
pub fn vmid(number: u32) -> Vmid {
    Vmid::try_from(number).unwrap()
}

/// Guest `n`, which gets the number `299 + n`.
#[must_use]
pub fn guest(n: u8) -> DesiredGuest {
    serde_json::from_value(json!({
        "uid": uid(n), "name": format!("web-{n}"), "customer": "acme", "run": "running", "golden": "2026.11.1",
        "size": { "cores": 2, "memory_mib": 256, "swap_mib": 64, "rootfs_gib": 2 },
        "network": { "bridge": "vmbr0", "address": format!("10.66.0.{n}/24"), "gateway": "10.66.0.254" },
        "volumes": [
            { "name": "db", "mount": "/srv/db", "size_gib": 1, "kind": "hot" },
            { "name": "media", "mount": "/srv/media", "size_gib": 1, "kind": { "bulk": { "none": "rebuilt from the origin" } } }
        ]
    }))
    .unwrap()
}

/// The guest under the name of a made one.
#[must_use]
pub fn target(n: u8) -> Target {
    Target { uid: uid(n), name: guest(n).name, vmid: vmid(299 + u32::from(n)) }
}

/// The golden archive's bytes, outside every world, so that they are hashed once.
#[derive(Clone, Debug)]
pub struct Kit {
    file: PathBuf,
    sha256: String,
}

impl Kit {
    /// Of a file.
    #[must_use]
    pub fn of(file: &Path) -> Self {
        let sha256 = agentd::execute::DigestCache::default().sha256(file).unwrap();
        Self { file: file.to_owned(), sha256 }
    }

    /// The policy that root wrote on this host.
    #[must_use]
    pub fn policy(&self) -> Policy {
        let golden = Golden {
            archive: VolumeId::new(ARCHIVE),
            sha256: Some(self.sha256.clone().try_into().unwrap()),
            file: self.file.clone(),
            build: None,
        };
        Policy {
            range: VmidRange::try_from([vmid(300), vmid(309)]).unwrap(),
            pool: "holdfast".parse().unwrap(),
            storage: "tank".parse().unwrap(),
            bulk_storage: Some("tank".parse().unwrap()),
            guest_storages: BTreeSet::new(),
            backup_storage: Some("backup2".parse().unwrap()),
            bridge: "vmbr0".parse().unwrap(),
            kept: agentd::model::addresses::ReservedAddresses::default(),
            goldens: BTreeMap::from([("2026.11.1".parse().unwrap(), golden)]),
            golden_dump: None,
            scratch: Some(TestPlace {
                range: VmidRange::try_from([vmid(900), vmid(902)]).unwrap(),
                pool: "holdfast-scratch".parse().unwrap(),
                storage: "tank".parse().unwrap(),
                bridge: "vmbr0".parse().unwrap(),
                memory: 128.try_into().unwrap(),
                speech: None,
                twins: BTreeMap::new(),
                cores: 1.try_into().unwrap(),
            }),
            brake: BrakeRule::usual(),
        }
    }

    /// The bridge on which scratch guests are heard.
    #[must_use]
    pub fn test_bridge(&self) -> TestBridge {
        TestBridge {
            bridge: "hftest0".parse().unwrap(),
            guest: "10.254.254.2/30".parse().unwrap(),
            listener: "10.254.254.1:8443".parse().unwrap(),
        }
    }

    /// Making guest `n`.
    #[must_use]
    pub fn provision(&self, n: u8) -> Provision {
        let policy = self.policy();
        let golden = policy.goldens.values().next().unwrap();
        Provision {
            volume_storages: Vec::new(),
            guest: guest(n),
            number: VmidRequest::AnyOf { range: policy.range, except: Vec::new() },
            source: Source::Image(Image {
                archive: golden.archive.clone(),
                sha256: golden.sha256.clone().expect("the kit names its digest"),
                file: golden.file.clone(),
            }),
            pool: policy.pool,
            storage: policy.storage,
            bulk_storage: policy.bulk_storage,
            backup_storage: policy.backup_storage,
        }
    }
}
