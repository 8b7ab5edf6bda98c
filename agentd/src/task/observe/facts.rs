//! Facts of a guest, out of its configuration.

use holdfast_protocol::net::Ipv4Cidr;

use crate::gate::adoption;
use crate::model::filter::FilterSeen;
use crate::model::hardware::HardwareAddress;
use crate::model::mark;
use crate::model::observed::{GuestFacts, MountFacts, Protection, Template};
use crate::model::records::VolumeId;
use crate::port::pve::GuestConfig;
use crate::port::pve::config::Switch;

/// What of a configuration we decide by.
pub(super) fn facts(config: &GuestConfig) -> GuestFacts {
    let mounts = config.mounts.iter().map(|(slot, disk)| {
        let volume = disk.volume().map(|id| VolumeId::new(id.as_str()));
        let backup = disk.in_backup.flag();
        let path = disk.mount.clone().unwrap_or_default();
        (*slot, MountFacts { volume, path, bytes: disk.size, backup })
    });
    GuestFacts {
        mark: mark::read(&config.tags, &config.description),
        cores: config.cores,
        memory_mib: config.memory_mib,
        swap_mib: config.swap_mib,
        cpu: config.cpu(),
        rootfs_bytes: config.rootfs.as_ref().and_then(|disk| disk.size),
        rootfs_storage: config
            .rootfs
            .as_ref()
            .and_then(|disk| VolumeId::new(disk.volume()?.as_str()).storage().map(str::to_owned)),
        mounts: mounts.collect(),
        volumes: config.volumes().iter().map(|id| VolumeId::new(id.as_str())).collect(),
        detached: config.unused.iter().map(|id| VolumeId::new(id.as_str())).collect(),
        protection: match config.protection {
            Switch::On => Protection::On,
            Switch::Off => Protection::Off,
        },
        name: config.hostname.clone(),
        net: config.nets.get(&0).and_then(|line| line.parse().ok()),
        resolver: config.resolver(),
        more_nets: config.nets.keys().copied().filter(|number| *number != 0).collect(),
        template: match config.template {
            Switch::On => Template::Yes,
            Switch::Off => Template::No,
        },
        address: config.nets.get(&0).and_then(|net| address(net)),
        hardware: config.nets.values().filter_map(|net| HardwareAddress::of(net)).collect(),
        bridges: config.bridges(),
        filter: FilterSeen::default(),
        alien: adoption::judge(&config.lines(), &config.raw_lxc).err().map(|why| why.to_string()),
    }
}

/// The fixed address in `name=eth0,bridge=vmbr0,ip=10.66.0.91/24`.
fn address(net: &str) -> Option<Ipv4Cidr> {
    net.split(',').find_map(|part| part.strip_prefix("ip="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_where_it_is_fixed() {
        let fixed = address("name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:01,ip=10.66.0.91/24,type=veth");
        assert_eq!(fixed.unwrap().to_string(), "10.66.0.91/24");
        assert_eq!(address("name=eth0,bridge=vmbr0,ip=dhcp"), None);
        assert_eq!(address("name=eth0,bridge=vmbr0"), None);
    }
}
