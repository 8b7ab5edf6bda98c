//! A settled guest as Proxmox shows it.

use super::*;
use crate::model::net::{NetLine, ResolverText};

/// The first network of a guest as the document has it.
pub(super) fn net_line(n: u32) -> NetLine {
    let network = guest(n).network;
    let line = format!(
        "name=eth0,bridge={},hwaddr=BC:24:11:00:00:01,ip={},type=veth",
        network.bridge, network.address
    );
    line.parse().unwrap()
}

/// A settled guest, as it is seen.
pub(super) fn facts(n: u32, number: u32) -> GuestFacts {
    let mount = MountFacts {
        volume: volumes(number).last().cloned(),
        path: "/srv/db".to_owned(),
        bytes: Some(4 << 30),
        backup: BackupFlag::On,
    };
    GuestFacts {
        mark: mark::Mark::Of(uid(n)),
        cores: Some(2),
        memory_mib: 512,
        swap_mib: 0,
        cpu: crate::model::cpu::CpuFacts::default(),
        rootfs_bytes: Some(8 << 30),
        rootfs_storage: Some("fast".to_owned()),
        mounts: BTreeMap::from([(0, mount)]),
        volumes: volumes(number),
        detached: BTreeSet::new(),
        protection: Protection::On,
        name: Some(format!("web-{n}")),
        net: Some(net_line(n)),
        resolver: ResolverText::default(),
        more_nets: BTreeSet::new(),
        template: Template::No,
        address: None,
        hardware: BTreeSet::new(),
        bridges: BTreeSet::new(),
        filter: crate::model::filter::FilterSeen::NotUsed,
        alien: None,
    }
}
