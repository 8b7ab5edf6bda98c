//! The plan of `setup`, as a value.
//!
//! Input: the operator's choices. Output: the wanted state in Proxmox, and the files, in the order in which they must
//! come to be. Pure: nothing is read or written here. Deliberately absent: guests. Setting up and removing never touch
//! one.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;

use holdfast_protocol::id::{BridgeName, GoldenVersion, NodeName, PoolName, StorageName, TargetName, Vmid};
use holdfast_protocol::pin::PinSet;
use holdfast_protocol::size::{Cores, MemoryMib, VlanTag};

use super::privilege::{PLACES, Place, pve_role, pve_roles};
use super::signer_files::{ReleaseKeysFile, Trust};
use crate::model::addresses::AddressRange;
use crate::model::policy::{GoldenDump, TestBridge};
use crate::model::tunnel::Tunnel;
use crate::port::pve::{AclPath, Role, VolumeId};

/// A golden archive that root approves here and now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Golden {
    pub version: GoldenVersion,
    pub archive: VolumeId,
    /// The number in its name.
    pub vmid: Vmid,
    /// SHA-256 of the archive, hex.
    pub sha256: String,
    /// The archive as a file.
    pub file: PathBuf,
}

/// The operator's choices.
#[derive(Clone, Debug)]
pub struct Choices {
    /// The user of Proxmox, `holdfast@pve`.
    pub user: String,
    /// Where Proxmox is reached.
    pub url: String,
    pub node: NodeName,
    pub pins: PinSet,
    /// The pool of our guests.
    pub pool: PoolName,
    /// Where backups are tried, when that is wanted.
    pub scratch: Option<Scratch>,
    pub storage: StorageName,
    pub bulk_storage: Option<StorageName>,
    /// Further storages on which documents may place disks.
    pub guest_storages: BTreeSet<StorageName>,
    pub backup_storage: Option<StorageName>,
    /// Storage targets that the agent may make entries for.
    pub targets: BTreeSet<TargetName>,
    pub bridge: BridgeName,
    /// Addresses on it that others have.
    pub reserved_addresses: Vec<AddressRange>,
    /// VLANs on it that guests may use.
    pub vlans: Vec<VlanTag>,
    /// The VMIDs that the agent may pick from.
    pub vmid_range: [Vmid; 2],
    pub goldens: Vec<Golden>,
    /// Where goldens are built on this host.
    pub golden_dump: Option<GoldenDump>,
    /// The tunnels that the installed settings name: they stay.
    pub tunnels: Vec<Tunnel>,
    /// Who may sign, where those files are installed now.
    pub trust: Option<Trust>,
    /// Who may sign releases, where that file is installed now.
    pub release_keys: Option<ReleaseKeysFile>,
    /// Where guests reach the agent.
    pub listen: Vec<SocketAddr>,
    /// The state folder.
    pub state_dir: PathBuf,
    /// The configuration file.
    pub config: PathBuf,
    /// The Debian user that the agent runs as. None when the files belong to the user who runs this.
    pub system_user: Option<String>,
}

impl Choices {
    /// The tokens that are made.
    #[must_use]
    pub fn roles(&self) -> Vec<Role> {
        let mut roles = vec![Role::Observe, Role::Operate, Role::Allocate];
        roles.extend(self.scratch.as_ref().map(|_| Role::Scratch));
        roles.extend((!self.targets.is_empty()).then_some(Role::Storage));
        roles
    }

    /// The parts of Proxmox that the table names.
    #[must_use]
    pub fn places(&self) -> Places {
        // The name before the colon is a storage's: VolumeId saw to its form.
        let of_goldens = self.goldens.iter().filter_map(|golden| golden.archive.storage().parse().ok());
        let built_on = self.golden_dump.iter().map(|dump| dump.storage.clone());
        let built_as = self.golden_dump.iter().filter_map(|_| GoldenDump::vmid());
        // The agent uses the targets that it may make entries for: it stores backups there, restores from there, and
        // tests them.
        let targets = self.targets.iter().filter_map(|target| target.as_str().parse().ok());
        Places {
            node: self.node.clone(),
            pool: self.pool.clone(),
            scratch: self.scratch.as_ref().map(|scratch| ScratchPlaces {
                pool: scratch.pool.clone(),
                storage: scratch.storage.clone(),
                bridge: scratch.speech.as_ref().map(|speech| speech.bridge.clone()),
                twins: scratch.twins.clone(),
            }),
            guest_storages: std::iter::once(&self.storage)
                .chain(&self.bulk_storage)
                .chain(&self.guest_storages)
                .cloned()
                .collect(),
            backup_storages: self.backup_storage.iter().cloned().chain(targets).collect(),
            archive_storages: of_goldens.chain(built_on).collect(),
            golden_vmids: self.goldens.iter().map(|golden| golden.vmid).chain(built_as).collect(),
            targets: self.targets.clone(),
            bridge: self.bridge.clone(),
            vlans: self.vlans.clone(),
        }
    }

    /// The name of a role's token.
    #[must_use]
    pub fn token_id(&self, role: Role) -> String {
        format!("{}!{role}", self.user)
    }

    /// Where a role's secret is stored.
    #[must_use]
    pub fn secret_file(&self, role: Role) -> PathBuf {
        self.state_dir.join("secrets").join(secret_name(role))
    }
}

/// Where backups are tried.
#[derive(Clone, Debug)]
pub struct Scratch {
    /// The pool of scratch guests.
    pub pool: PoolName,
    pub vmid_range: [Vmid; 2],
    /// Where their disks go.
    pub storage: StorageName,
    /// How much memory one gets.
    pub memory: MemoryMib,
    /// How many cores.
    pub cores: Cores,
    /// Where they may speak to the agent.
    pub speech: Option<TestBridge>,
    /// The entries through which their backups are read, where that is not the storage's own entry.
    pub twins: BTreeMap<StorageName, StorageName>,
}

/// The parts of Proxmox for scratch guests.
#[derive(Clone, Debug)]
pub struct ScratchPlaces {
    pub pool: PoolName,
    /// Where their disks go.
    pub storage: StorageName,
    /// The bridge on which they speak, where they may.
    pub bridge: Option<BridgeName>,
    /// The read-only twins of storages of backups.
    pub twins: BTreeMap<StorageName, StorageName>,
}

/// The parts of Proxmox that the table of privileges names.
#[derive(Clone, Debug)]
pub struct Places {
    pub node: NodeName,
    /// The pool of our guests.
    pub pool: PoolName,
    /// Where backups are tried.
    pub scratch: Option<ScratchPlaces>,
    /// Where disks are stored.
    pub guest_storages: Vec<StorageName>,
    /// Where our guests' backups are stored.
    pub backup_storages: Vec<StorageName>,
    /// Where other archives are stored.
    pub archive_storages: Vec<StorageName>,
    /// Storage targets that the agent may make entries for.
    pub targets: BTreeSet<TargetName>,
    /// The numbers in the names of goldens.
    pub golden_vmids: Vec<Vmid>,
    pub bridge: BridgeName,
    /// VLANs on it.
    pub vlans: Vec<VlanTag>,
}

impl Places {
    /// The paths behind a place.
    #[must_use]
    pub fn paths(&self, place: Place) -> Vec<AclPath> {
        match place {
            Place::Pool => vec![AclPath::pool(&self.pool)],
            Place::ScratchPool => self.scratch.iter().map(|scratch| AclPath::pool(&scratch.pool)).collect(),
            Place::ScratchStorage => {
                self.scratch.iter().map(|scratch| AclPath::storage(&scratch.storage)).collect()
            }
            Place::BackupStorage => unique(self.backup_storages.iter().map(AclPath::storage)),
            Place::TriedStorage => {
                let tried = |scratch: &ScratchPlaces| {
                    let alone = self.backup_storages.iter().filter(|of| !scratch.twins.contains_key(of));
                    unique(alone.map(AclPath::storage))
                };
                self.scratch.as_ref().map(tried).unwrap_or_default()
            }
            Place::Counterpart => {
                let twins = self.scratch.iter().flat_map(|scratch| scratch.twins.values());
                unique(twins.map(AclPath::storage))
            }
            Place::Node => vec![AclPath::node(&self.node)],
            Place::GuestStorage => unique(self.guest_storages.iter().map(AclPath::storage)),
            Place::ArchiveStorage => {
                unique(self.backup_storages.iter().chain(&self.archive_storages).map(AclPath::storage))
            }
            Place::Storages if self.targets.is_empty() => Vec::new(),
            Place::Storages => vec![AclPath::storages()],
            Place::Target => {
                // Every target's name is a storage's as well.
                let names = self.targets.iter().filter_map(|target| target.as_str().parse().ok());
                unique(names.map(|name: StorageName| AclPath::storage(&name)))
            }
            Place::GoldenVmid => unique(self.golden_vmids.iter().copied().map(AclPath::guest)),
            Place::ScratchBridge => {
                let own =
                    |scratch: &ScratchPlaces| scratch.bridge.clone().unwrap_or_else(|| self.bridge.clone());
                self.scratch.iter().map(|scratch| AclPath::bridge(&own(scratch))).collect()
            }
            Place::Bridge => {
                let tagged = self.vlans.iter().map(|vlan| AclPath::vlan(&self.bridge, *vlan));
                std::iter::once(AclPath::bridge(&self.bridge)).chain(tagged).collect()
            }
        }
    }

    /// The grants by which the token of scratch guests read archives before their storage had a twin.
    fn no_longer(&self) -> Vec<Grant> {
        let twinned = self.scratch.iter().flat_map(|scratch| scratch.twins.keys());
        let read = |pve_role| {
            move |of: &StorageName| Grant { path: AclPath::storage(of), pve_role, role: Role::Scratch }
        };
        let roles = pve_role(Role::Scratch, Place::TriedStorage);
        twinned.flat_map(|of| roles.map(read).map(|grant| grant(of))).collect()
    }

    /// The grants that these tokens need.
    #[must_use]
    pub fn grants(&self, tokens: &[Role]) -> BTreeSet<Grant> {
        let mut grants = BTreeSet::new();
        for role in tokens {
            for place in PLACES {
                if let Some(pve_role) = pve_role(*role, place) {
                    let on = |path| Grant { path, pve_role, role: *role };
                    grants.extend(self.paths(place).into_iter().map(on));
                }
            }
        }
        grants
    }
}

fn unique(paths: impl Iterator<Item = AclPath>) -> Vec<AclPath> {
    paths.collect::<BTreeSet<_>>().into_iter().collect()
}

/// One grant: a Proxmox role for the user and for its token on one path, not propagated.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grant {
    pub path: AclPath,
    /// Which role of Proxmox.
    pub pve_role: &'static str,
    pub role: Role,
}

/// All that is wanted in Proxmox.
#[derive(Clone, Debug)]
pub struct DesiredSetup {
    pub pools: Vec<PoolName>,
    /// Roles with their privileges.
    pub pve_roles: Vec<(&'static str, BTreeSet<&'static str>)>,
    pub user: String,
    pub tokens: Vec<Role>,
    pub grants: Vec<Grant>,
    /// Grants that a token no longer needs, and must not keep, once something narrower is named.
    pub no_longer: Vec<Grant>,
}

impl DesiredSetup {
    /// Derives it from the choices and the table.
    #[must_use]
    pub fn of(choices: &Choices) -> Self {
        let tokens = choices.roles();
        let grants = choices.places().grants(&tokens);
        Self {
            pools: std::iter::once(&choices.pool)
                .chain(choices.scratch.iter().map(|scratch| &scratch.pool))
                .cloned()
                .collect(),
            pve_roles: pve_roles(&tokens).into_iter().collect(),
            user: choices.user.clone(),
            tokens,
            no_longer: choices.places().no_longer(),
            grants: grants.into_iter().collect(),
        }
    }
}

/// The file of a role's secret. That of `storage` is stored sealed.
#[must_use]
pub fn secret_name(role: Role) -> String {
    let end = if role == Role::Storage { ".sealed" } else { "" };
    format!("proxmox-{role}{end}")
}

/// The VMID in the name of an archive: `vzdump-lxc-900001-…` on file storages, `backup/ct/900001/…` on backup servers.
#[must_use]
pub fn archive_vmid(archive: &VolumeId) -> Option<Vmid> {
    let text = archive.as_str();
    let (_, rest) = text.split_once("vzdump-lxc-").or_else(|| text.split_once("backup/ct/"))?;
    rest.split(['-', '/']).next()?.parse().ok()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub fn choices() -> Choices {
        Choices {
            user: "holdfast@pve".to_owned(),
            url: "https://127.0.0.1:8006".to_owned(),
            node: "pve1".parse().unwrap(),
            pins: PinSet::from(
                format!("spki/sha256:{}", "ab".repeat(32)).parse::<holdfast_protocol::pin::Pin>().unwrap(),
            ),
            pool: "holdfast".parse().unwrap(),
            scratch: None,
            storage: "labbtrfs".parse().unwrap(),
            bulk_storage: Some("labdir".parse().unwrap()),
            guest_storages: BTreeSet::new(),
            backup_storage: Some("backup2".parse().unwrap()),
            targets: BTreeSet::new(),
            bridge: "vmbr0".parse().unwrap(),
            reserved_addresses: Vec::new(),
            vlans: Vec::new(),
            vmid_range: [Vmid::try_from(300).unwrap(), Vmid::try_from(399).unwrap()],
            goldens: vec![Golden {
                version: "2026.11.1".parse().unwrap(),
                archive: "backup2:backup/vzdump-lxc-900001-2026_11_21-05_00_00.tar.zst".parse().unwrap(),
                vmid: Vmid::try_from(900_001).unwrap(),
                sha256: "cd".repeat(32),
                file: "/mnt/backup2/dump/vzdump-lxc-900001-2026_11_21-05_00_00.tar.zst".into(),
            }],
            golden_dump: None,
            tunnels: Vec::new(),
            trust: Some(Trust {
                operators: "alice ssh-ed25519 AAAA\n".to_owned(),
                policy: Some("version = 1\n".to_owned()),
                names: vec!["alice".to_owned()],
            }),
            release_keys: Some(ReleaseKeysFile {
                text: "ada ssh-ed25519 AAAA\n".to_owned(),
                names: vec!["ada".to_owned()],
            }),
            listen: vec!["10.66.0.1:8443".parse().unwrap()],
            state_dir: "/var/lib/holdfast".into(),
            config: "/etc/holdfast/agent.toml".into(),
            system_user: Some("holdfast".to_owned()),
        }
    }

    /// The same on a host that tries its backups, and those of one server through a twin.
    pub fn tried() -> Choices {
        let mut wide = choices();
        wide.targets = BTreeSet::from(["off1".parse().unwrap()]);
        wide.scratch = Some(Scratch {
            pool: "holdfast-scratch".parse().unwrap(),
            vmid_range: [Vmid::try_from(900).unwrap(), Vmid::try_from(909).unwrap()],
            storage: "labdir".parse().unwrap(),
            memory: 2048.try_into().unwrap(),
            cores: 2.try_into().unwrap(),
            speech: None,
            twins: BTreeMap::from([("off1".parse().unwrap(), "off1-read".parse().unwrap())]),
        });
        wide
    }

    #[test]
    fn a_further_storage_of_guests_gets_what_the_first_has() {
        let mut wide = choices();
        wide.guest_storages = BTreeSet::from(["ssd2".parse().unwrap()]);
        let grants = DesiredSetup::of(&wide).grants;
        let on = |storage: &str| -> Vec<_> {
            let path = AclPath::storage(&storage.parse().unwrap());
            grants
                .iter()
                .filter(|grant| grant.path == path)
                .map(|grant| (grant.pve_role, grant.role))
                .collect()
        };
        assert_eq!(on("ssd2"), on("labbtrfs"));
        assert!(on("ssd2").contains(&("HfStDisks", Role::Operate)), "{:?}", on("ssd2"));
        assert!(
            !DesiredSetup::of(&choices())
                .grants
                .iter()
                .any(|grant| grant.path == AclPath::storage(&"ssd2".parse().unwrap()))
        );
    }

    #[test]
    fn grants_are_the_proved_ones_path_by_path() {
        let lines: Vec<String> = DesiredSetup::of(&choices())
            .grants
            .iter()
            .map(|g| format!("{} {} {}", g.path, g.role, g.pve_role))
            .collect();
        assert_eq!(
            lines,
            [
                "/nodes/pve1 observe HfNode",
                "/pool/holdfast allocate HfAllocate",
                "/pool/holdfast observe HfObserve",
                "/pool/holdfast operate HfOperate",
                "/sdn/zones/localnetwork/vmbr0 operate HfSdn",
                "/sdn/zones/localnetwork/vmbr0 allocate HfSdn",
                "/storage/backup2 observe HfStAudit",
                "/storage/backup2 allocate HfStRead",
                "/storage/backup2 operate HfStSpace",
                "/storage/backup2 allocate HfStSpace",
                "/storage/labbtrfs observe HfStAudit",
                "/storage/labbtrfs operate HfStDisks",
                "/storage/labbtrfs allocate HfStSpace",
                "/storage/labdir observe HfStAudit",
                "/storage/labdir operate HfStDisks",
                "/storage/labdir allocate HfStSpace",
                "/vms/900001 allocate HfGolden",
            ]
        );
    }

    #[test]
    fn scratch_guests_have_their_own_pool_and_token_only_when_wanted() {
        assert!(!DesiredSetup::of(&choices()).tokens.contains(&Role::Scratch));
        let wanted = DesiredSetup::of(&tried());
        assert_eq!(wanted.pools.len(), 2);
        let scratch: Vec<&Grant> = wanted.grants.iter().filter(|grant| grant.role == Role::Scratch).collect();
        assert!(scratch.iter().all(|grant| grant.path.as_str() != "/pool/holdfast"), "{scratch:?}");
        let lines: Vec<String> =
            scratch.iter().map(|grant| format!("{} {}", grant.path, grant.pve_role)).collect();
        assert_eq!(
            lines,
            [
                "/pool/holdfast-scratch HfScratch",
                "/sdn/zones/localnetwork/vmbr0 HfSdn",
                "/storage/backup2 HfStRead",
                "/storage/labdir HfStDisks",
                "/storage/off1-read HfStRead",
            ]
        );
        let others = wanted.grants.iter().filter(|grant| grant.path.as_str() == "/storage/off1-read");
        assert_eq!(others.map(|grant| grant.role).collect::<Vec<_>>(), [Role::Observe, Role::Scratch]);
    }

    #[test]
    fn entries_are_made_by_a_token_of_their_own_and_only_where_root_named_a_target() {
        let mut wide = choices();
        assert!(!DesiredSetup::of(&wide).tokens.contains(&Role::Storage));
        wide.targets = BTreeSet::from(["nas1".parse().unwrap()]);
        let more: Vec<String> = DesiredSetup::of(&wide)
            .grants
            .iter()
            .filter(|grant| !DesiredSetup::of(&choices()).grants.contains(grant))
            .map(|g| format!("{} {} {}", g.path, g.role, g.pve_role))
            .collect();
        assert_eq!(
            more,
            [
                "/storage storage HfStMake",
                "/storage/nas1 observe HfStAudit",
                "/storage/nas1 allocate HfStRead",
                "/storage/nas1 operate HfStSpace",
                "/storage/nas1 allocate HfStSpace",
            ]
        );
        assert!(wide.secret_file(Role::Storage).ends_with("secrets/proxmox-storage.sealed"));
    }

    #[test]
    fn the_number_in_an_archives_name() {
        let of = |text: &str| archive_vmid(&text.parse().unwrap()).map(Vmid::number);
        assert_eq!(of("backup2:backup/vzdump-lxc-900001-2026_11_21-05_00_00.tar.zst"), Some(900_001));
        assert_eq!(of("pbsauto:backup/ct/300/2026-11-21T04:36:17Z"), Some(300));
        assert_eq!(of("backup2:backup/vzdump-qemu-300-2026_11_21-05_00_00.vma.zst"), None);
    }
}
