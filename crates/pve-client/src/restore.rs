//! Making a guest: the one form of restore we ever send.
//!
//! Input: typed values. Output: parameters for `POST /nodes/{node}/lxc`. It can only say *restore this archive to a
//! fresh VMID, unprivileged, in this pool*, and where the disks are placed. Given one storage, Proxmox makes all disks
//! of the archive's configuration there. Given a root disk, it makes the disks that the call lists and no other.
//! Deliberately absent, and not to be added: `force` (it destroys every volume of the guest that has the VMID),
//! `unique` (with it Proxmox silently ignores `net0`), `features` (kept from the archive; a token may not pass it),
//! `tags` (checked on a path the token lacks; set afterwards), `start`.

use std::net::Ipv4Addr;

use holdfast_protocol::desired::{FirewallFlag, Mtu, Rate};
use holdfast_protocol::id::{BridgeName, GuestName, PoolName, StorageName, Vmid};
use holdfast_protocol::net::Ipv4Cidr;
use holdfast_protocol::secret::Secret;
use holdfast_protocol::size::{Cores, MemoryMib, SwapMib, VlanTag};

use super::params::{Params, Value};
use super::volume::VolumeId;
use agent_core::model::disks::{Disks, MountDisk};
use agent_core::model::hardware::HardwareAddress;
use agent_core::model::net::ResolverText;
use agent_core::model::observed::BackupFlag;

/// The name under which a guest finds its bootstrap.
pub const BOOTSTRAP_ENV: &str = "HOLDFAST_BOOTSTRAP";

/// How a guest gets its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// The address is set in the call.
    Static {
        /// Address and prefix length.
        cidr: Ipv4Cidr,
        /// The gateway.
        gateway: Option<Ipv4Addr>,
    },
    Dhcp,
    /// It sees to that itself.
    Manual,
}

/// The first network of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetSpec {
    /// The bridge on the host.
    pub bridge: BridgeName,
    /// The address inside.
    pub address: Address,
    /// A VLAN on the bridge.
    pub vlan: Option<VlanTag>,
    /// The hardware address of a guest that is made again. Without one Proxmox makes a fresh one.
    pub hardware: Option<HardwareAddress>,
    /// The largest packet; none is as its bridge has it.
    pub mtu: Option<Mtu>,
    /// The limit; none is without one.
    pub rate: Option<Rate>,
    /// The firewall's flag; none is off.
    pub firewall: Option<FirewallFlag>,
}

impl NetSpec {
    /// In the form that Proxmox takes for `net0`.
    #[must_use]
    pub fn property(&self) -> String {
        let mut text = format!("name=eth0,bridge={}", self.bridge);
        if let Some(hardware) = &self.hardware {
            text.push_str(&format!(",hwaddr={hardware}"));
        }
        match &self.address {
            Address::Static { cidr, gateway } => {
                text.push_str(&format!(",ip={cidr}"));
                if let Some(gateway) = gateway {
                    text.push_str(&format!(",gw={gateway}"));
                }
            }
            Address::Dhcp => text.push_str(",ip=dhcp"),
            Address::Manual => text.push_str(",ip=manual"),
        }
        if let Some(vlan) = self.vlan {
            text.push_str(&format!(",tag={}", vlan.get()));
        }
        if let Some(Mtu::Bytes(mtu)) = self.mtu {
            text.push_str(&format!(",mtu={}", mtu.get()));
        }
        if let Some(Rate::MibPerS(rate)) = self.rate {
            text.push_str(&format!(",rate={}", rate.get()));
        }
        if self.firewall == Some(FirewallFlag::On) {
            text.push_str(",firewall=1");
        }
        text
    }
}

/// The value that the guest finds in [`BOOTSTRAP_ENV`]. It may hold a claim, so it is kept as a secret.
#[derive(Clone, Debug)]
pub struct BootstrapEnv(Secret);

/// Compared by hash, so that the duration reveals nothing.
impl PartialEq for BootstrapEnv {
    fn eq(&self, other: &Self) -> bool {
        self.0.hash() == other.0.hash()
    }
}

impl Eq for BootstrapEnv {}

/// A bootstrap that Proxmox would mangle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a bootstrap is 1 to 16384 characters of base64url: anything else Proxmox may cut or re-encode")]
pub struct BootstrapEnvError;

impl BootstrapEnv {
    /// Takes base64url text.
    ///
    /// # Errors
    /// When it is empty, too long, or holds other characters.
    pub fn new(text: Secret) -> Result<Self, BootstrapEnvError> {
        let ok = |b: u8| b.is_ascii_alphanumeric() || b"-_=".contains(&b);
        let fits = (1..=16_384).contains(&text.expose().len());
        if fits && text.expose().bytes().all(ok) { Ok(Self(text)) } else { Err(BootstrapEnvError) }
    }

    pub(super) fn property(&self) -> Secret {
        Secret::new(format!("{BOOTSTRAP_ENV}={}", self.0.expose()))
    }
}

/// Where the disks of a restore are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placing {
    /// All disks that the archive's configuration names are made here, with the size given there. Those whose content
    /// the archive does not hold are made empty.
    AllOn(StorageName),
    /// These are made, and no other.
    Each(Disks),
}

impl Placing {
    fn params(&self) -> Params {
        match self {
            Self::AllOn(storage) => vec![("storage".into(), storage.as_str().into())],
            Self::Each(Disks { rootfs, mounts }) => {
                let root = format!("{}:{}", rootfs.storage, rootfs.size.get());
                let mount = |mount: &MountDisk| (format!("mp{}", mount.slot).into(), property(mount).into());
                mounts.iter().map(mount).chain([("rootfs".into(), root.into())]).collect()
            }
        }
    }
}

fn property(mount: &MountDisk) -> String {
    let MountDisk { storage, size, path, backup, .. } = mount;
    let backup = match backup {
        BackupFlag::On => 1,
        BackupFlag::Off => 0,
    };
    format!("{storage}:{},mp={path},backup={backup}", size.get())
}

/// One restore to a fresh VMID.
#[derive(Clone, Debug)]
pub struct RestoreRequest {
    /// The fresh VMID. When it is taken, Proxmox refuses: the call never asks to replace a guest.
    pub vmid: Vmid,
    pub archive: VolumeId,
    /// Where the disks are made.
    pub disks: Placing,
    /// The pool whose rights are used. The guest becomes its member at the very end of the task.
    pub pool: PoolName,
    /// The first network.
    pub net0: NetSpec,
    /// Its name servers and search domain. Values that are not set come from the archive, and a golden sets none.
    pub resolver: ResolverText,
    /// The bootstrap. Always passed: an old token in the archive must not become valid again.
    pub env: BootstrapEnv,
    pub hostname: GuestName,
    pub memory: MemoryMib,
    pub swap: SwapMib,
    pub cores: Cores,
}

impl RestoreRequest {
    pub(super) fn params(&self) -> Params {
        let mut params: Params = vec![
            ("vmid".into(), self.vmid.into()),
            ("restore".into(), Value::On),
            ("unprivileged".into(), Value::On),
            ("ostemplate".into(), self.archive.as_str().into()),
        ];
        params.extend(self.disks.params());
        params.extend([
            ("pool".into(), self.pool.as_str().into()),
            ("net0".into(), self.net0.property().into()),
            ("env".into(), Value::Secret(self.env.property())),
            ("hostname".into(), self.hostname.as_str().into()),
            ("memory".into(), self.memory.get().into()),
            ("swap".into(), self.swap.get().into()),
            ("cores".into(), self.cores.get().into()),
        ]);
        let ResolverText { servers, search } = &self.resolver;
        let names = [("nameserver", servers), ("searchdomain", search)];
        let named = names.into_iter().filter_map(|(key, text)| Some((key.into(), text.as_deref()?.into())));
        params.extend(named);
        params
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_core::model::disks::{Content, RootDisk};

    #[test]
    fn a_network_is_written_out_and_has_a_hardware_address_only_where_it_keeps_one() {
        let mut net = NetSpec {
            bridge: "vmbr0".parse().unwrap(),
            address: Address::Static {
                cidr: "10.66.0.91/24".parse().unwrap(),
                gateway: Some(Ipv4Addr::new(10, 66, 0, 1)),
            },
            vlan: Some(VlanTag::try_from(5).unwrap()),
            hardware: None,
            mtu: None,
            rate: None,
            firewall: None,
        };
        assert_eq!(net.property(), "name=eth0,bridge=vmbr0,ip=10.66.0.91/24,gw=10.66.0.1,tag=5");
        net.address = Address::Dhcp;
        net.vlan = None;
        assert_eq!(net.property(), "name=eth0,bridge=vmbr0,ip=dhcp");
        net.mtu = Some(Mtu::Bytes(1400.try_into().unwrap()));
        net.rate = Some(Rate::MibPerS(5.try_into().unwrap()));
        net.firewall = Some(FirewallFlag::On);
        assert_eq!(net.property(), "name=eth0,bridge=vmbr0,ip=dhcp,mtu=1400,rate=5,firewall=1");
        (net.mtu, net.rate, net.firewall) =
            (Some(Mtu::Bridge), Some(Rate::Unlimited), Some(FirewallFlag::Off));
        net.hardware = Some("BC:24:11:EE:25:8E".parse().unwrap());
        assert_eq!(net.property(), "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:EE:25:8E,ip=dhcp");
    }

    /// The form that was recorded (`09-restore`, *rootfs + mps given*): no `storage` parameter, and each mount with its
    /// flag.
    #[test]
    fn each_disk_is_written_out_or_all_go_to_one_storage() {
        let text = |placing: Placing| {
            let params = placing.params().into_iter();
            params.map(|(key, value)| format!("{key}={}", value.expose())).collect::<Vec<_>>()
        };
        assert_eq!(text(Placing::AllOn("labbtrfs".parse().unwrap())), ["storage=labbtrfs"]);
        let mount = |slot, path: &str, backup, content| MountDisk {
            slot,
            path: path.parse().unwrap(),
            storage: "labdir".parse().unwrap(),
            size: 1.try_into().unwrap(),
            backup,
            content,
        };
        let disks = Disks {
            rootfs: RootDisk { storage: "labbtrfs".parse().unwrap(), size: 2.try_into().unwrap() },
            mounts: vec![
                mount(0, "/data", BackupFlag::Off, Content::Empty),
                mount(1, "/inc", BackupFlag::On, Content::Held),
            ],
        };
        assert_eq!(
            text(Placing::Each(disks)),
            ["mp0=labdir:1,mp=/data,backup=0", "mp1=labdir:1,mp=/inc,backup=1", "rootfs=labbtrfs:2"]
        );
    }

    #[test]
    fn a_bootstrap_that_proxmox_would_cut_is_refused() {
        for bad in ["", "a b", "trailing ", "line\n", "nul\0", "ümlaut", &"a".repeat(16_385)] {
            assert!(BootstrapEnv::new(Secret::new(bad.to_owned())).is_err(), "{bad:?}");
        }
        assert!(BootstrapEnv::new(Secret::new("eyJhIjoxfQ==".to_owned())).is_ok());
    }
}
