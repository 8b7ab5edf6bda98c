//! A table of the Proxmox privileges each operation needs.
//!
//! Input: none; the table is fixed, each line proved on a real node. Output: for each token and place the privileges it
//! needs, and the Proxmox role that carries them. Every grant is made for the user *and* its privilege-separated token,
//! on exactly that path, not propagated. `Datastore.Allocate` on `/storage` allows making a storage of any path. Only
//! the `storage` token has it, and that token is stored sealed (`docs/adr/0023`). On a single storage the privilege
//! reads the archives of every owner, deletes none by name, and may prune them all. The `scratch` token reaches
//! archives this way (through a read-only twin storage, where root named one: `docs/adr/0045`). The `allocate` token
//! reaches this way the archives of a destroyed guest, over which no token has `VM.Backup` any more (`docs/adr/0034`).
//! Deliberately absent: `Sys.Modify`, `Permissions.Modify`.

use std::collections::{BTreeMap, BTreeSet};

use crate::port::pve::Role;

/// Where a privilege is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// The pool of our guests; it reaches its members.
    Pool,
    /// The pool of scratch guests.
    ScratchPool,
    Node,
    /// Each storage that holds guests' disks.
    GuestStorage,
    /// Each storage that holds archives: goldens and backups.
    ArchiveStorage,
    /// Each storage that holds our guests' backups.
    BackupStorage,
    /// The same, where backups are tried and no twin was named.
    TriedStorage,
    /// Each read-only twin by which backups are tried.
    Counterpart,
    /// The storage that holds scratch guests' disks.
    ScratchStorage,
    /// All storages: where making an entry is checked.
    Storages,
    /// Each storage target that the agent may make an entry for.
    Target,
    /// The number in a golden archive's name. No such guest need exist.
    GoldenVmid,
    /// The bridge of our guests, and each VLAN on it.
    Bridge,
    /// The bridge that scratch guests' networks name.
    ScratchBridge,
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    /// A description of its purpose.
    pub operation: &'static str,
    pub role: Role,
    pub place: Place,
    /// All of these.
    pub privileges: &'static [&'static str],
}

const fn need(
    operation: &'static str,
    role: Role,
    place: Place,
    privileges: &'static [&'static str],
) -> Need {
    Need { operation, role, place, privileges }
}

/// The table.
pub const NEEDS: &[Need] = &[
    need("see guests and their state", Role::Observe, Place::Pool, &["VM.Audit"]),
    need("see the pool", Role::Observe, Place::Pool, &["Pool.Audit"]),
    need("see scratch guests", Role::Observe, Place::ScratchPool, &["VM.Audit", "Pool.Audit"]),
    need("see the node and its tasks", Role::Observe, Place::Node, &["Sys.Audit"]),
    need("see storages", Role::Observe, Place::GuestStorage, &["Datastore.Audit"]),
    need("see storages", Role::Observe, Place::ArchiveStorage, &["Datastore.Audit"]),
    need("see the entries it made", Role::Observe, Place::Target, &["Datastore.Audit"]),
    need("hold a twin to its original", Role::Observe, Place::Counterpart, &["Datastore.Audit"]),
    need("start, stop and shut down", Role::Operate, Place::Pool, &["VM.PowerMgmt"]),
    need(
        "read a configuration with a bootstrap in it",
        Role::Operate,
        Place::Pool,
        &["VM.Audit", "VM.Config.Options"],
    ),
    need(
        "mark, describe, protect, and lift protection to attach a volume",
        Role::Operate,
        Place::Pool,
        &["VM.Config.Options"],
    ),
    need("change memory and swap", Role::Operate, Place::Pool, &["VM.Config.Memory"]),
    need("change cores and limits of CPU time", Role::Operate, Place::Pool, &["VM.Config.CPU"]),
    need("change networks", Role::Operate, Place::Pool, &["VM.Config.Network"]),
    need("change networks", Role::Operate, Place::Bridge, &["SDN.Use"]),
    need("make volumes and grow disks", Role::Operate, Place::Pool, &["VM.Config.Disk", "VM.Config.Options"]),
    need("make volumes and grow disks", Role::Operate, Place::GuestStorage, &["Datastore.AllocateSpace"]),
    need("hand a volume to another guest", Role::Operate, Place::Pool, &["VM.Config.Disk"]),
    need("hand a volume to another guest", Role::Operate, Place::GuestStorage, &["Datastore.AllocateSpace"]),
    need("see which volumes a guest has left", Role::Operate, Place::GuestStorage, &["Datastore.Audit"]),
    need("make and expire snapshots, roll back", Role::Operate, Place::Pool, &["VM.Snapshot"]),
    need("back up, list backups", Role::Operate, Place::Pool, &["VM.Backup"]),
    need("back up, list backups", Role::Operate, Place::ArchiveStorage, &["Datastore.AllocateSpace"]),
    need("remove backups that are not kept any longer", Role::Operate, Place::Pool, &["VM.Backup"]),
    need(
        "remove backups that are not kept any longer",
        Role::Operate,
        Place::ArchiveStorage,
        &["Datastore.AllocateSpace"],
    ),
    need(
        "restore into the pool, undo a half-made guest",
        Role::Allocate,
        Place::Pool,
        &["VM.Allocate", "VM.Audit"],
    ),
    need("read a guest's own archive for a restore", Role::Allocate, Place::Pool, &["VM.Backup"]),
    need(
        "pass bootstrap, size, name, network and disks in the restore itself",
        Role::Allocate,
        Place::Pool,
        &["VM.Config.Options", "VM.Config.Memory", "VM.Config.CPU", "VM.Config.Network", "VM.Config.Disk"],
    ),
    need(
        "pass mark, networks and disks of a copy beside its guest",
        Role::Allocate,
        Place::Pool,
        &["VM.Config.Options", "VM.Config.Network", "VM.Config.Disk"],
    ),
    need("restore a golden archive", Role::Allocate, Place::GoldenVmid, &["VM.Backup"]),
    need("restore a golden archive", Role::Allocate, Place::ArchiveStorage, &["Datastore.AllocateSpace"]),
    need(
        "read the backups of a guest that is gone",
        Role::Allocate,
        Place::BackupStorage,
        &["Datastore.Allocate", "Datastore.Audit"],
    ),
    need("place a restored guest's disks", Role::Allocate, Place::GuestStorage, &["Datastore.AllocateSpace"]),
    need("put a restored guest on the bridge", Role::Allocate, Place::Bridge, &["SDN.Use"]),
    need(
        "restore, isolate, start and destroy scratch guests",
        Role::Scratch,
        Place::ScratchPool,
        &["VM.Allocate", "VM.Audit", "VM.Config.Network", "VM.PowerMgmt"],
    ),
    need(
        "write a scratch guest out anew in the restore itself",
        Role::Scratch,
        Place::ScratchPool,
        &["VM.Config.Options", "VM.Config.Memory", "VM.Config.CPU", "VM.Config.Network", "VM.Config.Disk"],
    ),
    need(
        "read archives; Proxmox lets who may do that prune every backup there as well",
        Role::Scratch,
        Place::TriedStorage,
        &["Datastore.Allocate", "Datastore.Audit"],
    ),
    need(
        "read archives, and no more: the account of the entry is the server's to bound",
        Role::Scratch,
        Place::Counterpart,
        &["Datastore.Allocate", "Datastore.Audit"],
    ),
    need(
        "place a scratch guest's disks, see what is left of them",
        Role::Scratch,
        Place::ScratchStorage,
        &["Datastore.AllocateSpace", "Datastore.Audit"],
    ),
    need("write a scratch guest's network out", Role::Scratch, Place::ScratchBridge, &["SDN.Use"]),
    need(
        "make entries of storages, switch them on and off",
        Role::Storage,
        Place::Storages,
        &["Datastore.Allocate"],
    ),
];

/// All privileges of a token in a place.
#[must_use]
pub fn privileges(role: Role, place: Place) -> BTreeSet<&'static str> {
    let lines = NEEDS.iter().filter(|need| need.role == role && need.place == place);
    lines.flat_map(|need| need.privileges.iter().copied()).collect()
}

/// The purposes of a privilege, as text.
#[must_use]
pub fn operations(role: Role, place: Place, privilege: &str) -> Vec<&'static str> {
    let lines = NEEDS.iter().filter(|need| need.role == role && need.place == place);
    lines.filter(|need| need.privileges.contains(&privilege)).map(|need| need.operation).collect()
}

/// The Proxmox role that carries the privileges of a token in a place, or none when it needs none there.
#[must_use]
pub fn pve_role(role: Role, place: Place) -> Option<&'static str> {
    if privileges(role, place).is_empty() {
        return None;
    }
    Some(match (role, place) {
        (Role::Observe, Place::Pool | Place::ScratchPool) => "HfObserve",
        (Role::Operate, Place::Pool | Place::ScratchPool) => "HfOperate",
        (Role::Allocate, Place::Pool | Place::ScratchPool) => "HfAllocate",
        (Role::Scratch, Place::Pool | Place::ScratchPool) => "HfScratch",
        (Role::Storage, Place::Pool | Place::ScratchPool) => return None,
        (_, Place::Node) => "HfNode",
        (Role::Observe, Place::GuestStorage | Place::ArchiveStorage)
        | (_, Place::Target)
        | (Role::Observe, Place::Counterpart) => "HfStAudit",
        (_, Place::Storages) => "HfStMake",
        (Role::Operate, Place::GuestStorage) | (_, Place::ScratchStorage) => "HfStDisks",
        (_, Place::BackupStorage | Place::TriedStorage | Place::Counterpart) => "HfStRead",
        (_, Place::GuestStorage | Place::ArchiveStorage) => "HfStSpace",
        (_, Place::GoldenVmid) => "HfGolden",
        (_, Place::Bridge | Place::ScratchBridge) => "HfSdn",
    })
}

/// All places.
pub const PLACES: [Place; 14] = [
    Place::Pool,
    Place::ScratchPool,
    Place::Node,
    Place::GuestStorage,
    Place::ArchiveStorage,
    Place::BackupStorage,
    Place::TriedStorage,
    Place::Counterpart,
    Place::ScratchStorage,
    Place::Storages,
    Place::Target,
    Place::GoldenVmid,
    Place::Bridge,
    Place::ScratchBridge,
];

/// The Proxmox roles that these tokens need, with their privileges.
#[must_use]
pub fn pve_roles(roles: &[Role]) -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let mut all: BTreeMap<&'static str, BTreeSet<&'static str>> = BTreeMap::new();
    for role in roles {
        for place in PLACES {
            if let Some(name) = pve_role(*role, place) {
                all.entry(name).or_default().extend(privileges(*role, place));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(set: &BTreeSet<&'static str>) -> String {
        set.iter().copied().collect::<Vec<_>>().join(" ")
    }

    /// `docs/privileges.md`, for an operator who wants to grant by hand or to check the grants.
    fn page() -> String {
        let mut page = String::from(
            "# What the agent may do in Proxmox\n\n\
             Made from the table in `crates/agent-admin/src/setup/privilege.rs`; a test holds the two together. `agentd setup` \
             grants exactly this, to the user and to its privilege-separated token, on exactly these paths, not \
             propagated. `agentd doctor` names what is missing and what is too much.\n\n\
             | token | where | privileges | Proxmox role | for |\n| --- | --- | --- | --- | --- |\n",
        );
        for need in NEEDS {
            let place = match need.place {
                Place::Pool => "`/pool/{pool}`",
                Place::ScratchPool => "`/pool/{scratch pool}`, with `--scratch-pool` only",
                Place::Node => "`/nodes/{node}`",
                Place::GuestStorage => "`/storage/{each storage of disks}`",
                Place::ArchiveStorage => "`/storage/{each storage of archives}`",
                Place::BackupStorage => "`/storage/{each storage of backups}`",
                Place::TriedStorage => {
                    "`/storage/{each storage of backups without a twin}`, with `--scratch-pool` only"
                }
                Place::Counterpart => "`/storage/{each twin}`, with `--scratch-twin` only",
                Place::ScratchStorage => "`/storage/{scratch storage}`, with `--scratch-pool` only",
                Place::Storages => "`/storage` itself, with `--target` only",
                Place::Target => "`/storage/{each --target}`",
                Place::GoldenVmid => "`/vms/{number in the golden archive's name}`",
                Place::ScratchBridge => {
                    "`/sdn/zones/localnetwork/{bridge of tests}`, with `--scratch-pool` only; without `--test-network` `{bridge}`"
                }
                Place::Bridge => "`/sdn/zones/localnetwork/{bridge}`, and `/{vlan}` below it",
            };
            let role = pve_role(need.role, need.place).unwrap();
            let privileges = need.privileges.join(" ");
            page.push_str(&format!(
                "| {} | {place} | {privileges} | {role} | {} |\n",
                need.role, need.operation
            ));
        }
        page
    }

    #[test]
    fn the_page_about_privileges_says_what_the_table_says() {
        assert_eq!(
            include_str!("../../../../docs/privileges.md"),
            page(),
            "the page is not what the table says"
        );
    }

    /// The sets that were proved on a real node (notes on narrow tokens, section C, and the proved provisioning).
    #[test]
    fn the_roles_are_those_that_were_proved() {
        let roles: Vec<String> =
            pve_roles(&Role::ALL).iter().map(|(name, set)| format!("{name}: {}", text(set))).collect();
        assert_eq!(
            roles,
            [
                "HfAllocate: VM.Allocate VM.Audit VM.Backup VM.Config.CPU VM.Config.Disk VM.Config.Memory VM.Config.Network VM.Config.Options",
                "HfGolden: VM.Backup",
                "HfNode: Sys.Audit",
                "HfObserve: Pool.Audit VM.Audit",
                "HfOperate: VM.Audit VM.Backup VM.Config.CPU VM.Config.Disk VM.Config.Memory VM.Config.Network VM.Config.Options VM.PowerMgmt VM.Snapshot",
                "HfScratch: VM.Allocate VM.Audit VM.Config.CPU VM.Config.Disk VM.Config.Memory VM.Config.Network VM.Config.Options VM.PowerMgmt",
                "HfSdn: SDN.Use",
                "HfStAudit: Datastore.Audit",
                "HfStDisks: Datastore.AllocateSpace Datastore.Audit",
                "HfStMake: Datastore.Allocate",
                "HfStRead: Datastore.Allocate Datastore.Audit",
                "HfStSpace: Datastore.AllocateSpace",
            ]
        );
    }

    #[test]
    fn a_shared_role_carries_the_same_privileges_wherever_it_is_used() {
        for role in Role::ALL {
            for place in PLACES {
                let Some(name) = pve_role(role, place) else { continue };
                assert_eq!(pve_roles(&Role::ALL)[name], privileges(role, place), "{role} {place:?}");
            }
        }
    }

    #[test]
    fn no_token_may_change_rights_and_only_the_sealed_one_make_storages() {
        let reads = |need: &&Need| {
            let reader = [
                (Role::Scratch, Place::TriedStorage),
                (Role::Scratch, Place::Counterpart),
                (Role::Allocate, Place::BackupStorage),
            ];
            reader.contains(&(need.role, need.place))
        };
        let open = NEEDS.iter().filter(|need| need.role != Role::Storage && !reads(need));
        let all: BTreeSet<_> = open.flat_map(|need| need.privileges).collect();
        let sealed: Vec<_> = NEEDS.iter().filter(|need| need.role == Role::Storage).collect();
        assert!(sealed.iter().all(|need| need.place == Place::Storages), "{sealed:?}");
        assert_eq!(privileges(Role::Storage, Place::Storages), BTreeSet::from(["Datastore.Allocate"]));
        for never in
            ["Datastore.Allocate", "Permissions.Modify", "Sys.Modify", "Realm.AllocateUser", "VM.Migrate"]
        {
            assert!(!all.contains(&never), "{never}");
        }
        for place in PLACES {
            let has = privileges(Role::Scratch, place);
            let both = has.contains("Datastore.Allocate") && has.contains("Datastore.AllocateSpace");
            assert!(!both, "with both on one storage archives can be deleted there: {place:?}");
        }
        let may_destroy = |role| privileges(role, Place::Pool).contains("VM.Allocate");
        assert!(may_destroy(Role::Allocate) && !may_destroy(Role::Operate) && !may_destroy(Role::Observe));
    }
}
