//! The restore of a backup as a copy.
//!
//! Input: typed values. Output: parameters for `POST /nodes/{node}/lxc`. What the archive would bring along and must
//! not live twice is written out: description, host name, environment, start with the node, every network (without a
//! hardware address, unplugged but for the one by which a scratch guest speaks) and every disk. A `rootfs` that is
//! passed makes Proxmox take no disk from the archive's configuration, and so make none that the backup does not hold.
//! Sizes of CPU and memory are named for a copy that will be started. Deliberately absent: what [`super::restore`]
//! names.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_protocol::id::{BridgeName, GuestName, MountPath, PoolName, StorageName, Vmid};
use holdfast_protocol::net::Ipv4Cidr;
use holdfast_protocol::size::{Cores, DiskGib, MemoryMib, SwapMib};

use super::change::Description;
use super::params::{Params, Value};
use super::restore::BootstrapEnv;
use super::volume::VolumeId;
use agent_core::model::net::ResolverText;

#[derive(Clone, Debug)]
pub struct RestoreCopyRequest {
    /// The fresh VMID. When it is taken, Proxmox refuses: the call never asks to replace a guest.
    pub vmid: Vmid,
    pub archive: VolumeId,
    /// Where its disks are made.
    pub storage: StorageName,
    /// Volumes that are made elsewhere, by the number of their mount.
    pub elsewhere: BTreeMap<u8, StorageName>,
    /// The pool whose rights are used. The copy becomes its member at the very end of the task.
    pub pool: PoolName,
    /// The numbers of its networks.
    pub nets: BTreeSet<u8>,
    /// Where they would be plugged in.
    pub bridge: BridgeName,
    /// The address with which the first of them is plugged in. None for a copy that is not started, or that must not
    /// reach the network.
    pub plugged: Option<Ipv4Cidr>,
    /// The environment entry that replaces an old bootstrap token.
    pub env: BootstrapEnv,
    pub hostname: GuestName,
    /// The description, with the line by which the copy is known.
    pub description: Description,
    /// The size of its root disk.
    pub rootfs: DiskGib,
    /// Its volumes by the number of their mount: path and size.
    pub mounts: BTreeMap<u8, (MountPath, DiskGib)>,
    /// The resources that it may use, where it is started; a stopped copy uses none.
    pub caps: Option<Caps>,
    /// Its name servers and search domain. Values that are not set come from the archive.
    pub resolver: ResolverText,
}

/// The resources that a started copy may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    pub memory: MemoryMib,
    /// None is none at all.
    pub swap: Option<SwapMib>,
    /// None is all of the host.
    pub cores: Option<Cores>,
}

impl RestoreCopyRequest {
    pub(super) fn params(&self) -> Params {
        let storage = &self.storage;
        let mut params: Params = vec![
            ("vmid".into(), self.vmid.into()),
            ("restore".into(), Value::On),
            ("unprivileged".into(), Value::On),
            ("ostemplate".into(), self.archive.as_str().into()),
            ("storage".into(), storage.as_str().into()),
            ("pool".into(), self.pool.as_str().into()),
            ("env".into(), Value::Secret(self.env.property())),
            ("hostname".into(), self.hostname.as_str().into()),
            ("description".into(), self.description.as_str().into()),
            // Not sent, it would be the archive's.
            ("onboot".into(), Value::Text("0".to_owned())),
            ("rootfs".into(), format!("{storage}:{}", self.rootfs.get()).into()),
        ];
        params.extend(self.networks());
        params.extend(self.mounts.iter().map(|(slot, (path, size))| {
            let storage = self.elsewhere.get(slot).unwrap_or(storage);
            (format!("mp{slot}").into(), format!("{storage}:{},mp={path},backup=1", size.get()).into())
        }));
        if let Some(Caps { memory, swap, cores }) = self.caps {
            let swap = swap.map_or_else(|| Value::Text("0".to_owned()), |swap| swap.get().into());
            params.extend([("memory".into(), memory.get().into()), ("swap".into(), swap)]);
            params.extend(cores.map(|cores| ("cores".into(), cores.get().into())));
        }
        let ResolverText { servers, search } = &self.resolver;
        let names = [("nameserver", servers), ("searchdomain", search)];
        params
            .extend(names.into_iter().filter_map(|(key, text)| Some((key.into(), text.as_deref()?.into()))));
        params
    }

    /// All unplugged but the first, where that has an address. It gets no gateway: there is no network behind its
    /// bridge.
    fn networks(&self) -> Params {
        let first = self.nets.first().copied().unwrap_or(0);
        let plugged = self.plugged.map(|cidr| (first, format!("ip={cidr}")));
        let unplugged = self.nets.iter().map(|&n| (n, "ip=manual,link_down=1".to_owned()));
        let rest = unplugged.filter(|(n, _)| plugged.as_ref().is_none_or(|(first, _)| n != first));
        let net = |n: u8, how: &str| format!("name=eth{n},bridge={},{how}", self.bridge);
        let all = plugged.iter().cloned().chain(rest);
        all.map(|(n, how)| (format!("net{n}").into(), net(n, &how).into())).collect()
    }
}
