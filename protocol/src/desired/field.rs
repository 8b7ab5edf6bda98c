//! Fields of a guest, and what a change to each does.
//!
//! In: a field by its path in [`super::DesiredGuest`]. Out: its [`Fate`]; and, of two documents, the first change that nothing
//! carries out. A field that the schema has and this table has not is a failing test, so none is silently ignored.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DesiredGuest, DesiredVolume};

/// What becomes of a change to a field of a guest that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It says which guest is meant: another value is another guest.
    Identity,
    /// It is carried out; until then the guest's status says why not.
    CarriedOut,
    /// One direction is carried out. The other waits for a signature or a person, and the guest's status says for whom.
    OneWay,
    /// Nothing carries it out. The hub refuses it with its path; an agent that receives it all the same reports it.
    Refused,
}

/// Every field of a guest. List places are left out of the paths.
pub const FIELDS: &[(&str, Fate)] = &[
    ("uid", Fate::Identity),
    ("name", Fate::CarriedOut),
    ("customer", Fate::Refused),
    ("vmid", Fate::Refused),
    ("run", Fate::CarriedOut),
    ("golden", Fate::Refused),
    ("size.cores", Fate::CarriedOut),
    ("size.memory_mib", Fate::CarriedOut),
    ("size.swap_mib", Fate::CarriedOut),
    // No disk is made smaller.
    ("size.rootfs_gib", Fate::OneWay),
    ("limits.cpu", Fate::CarriedOut),
    ("limits.cpu_weight", Fate::CarriedOut),
    ("storage", Fate::Refused),
    // To the bridge that root gave the agent.
    ("network.bridge", Fate::OneWay),
    // Not away from where its guest agent is heard, while backups are promised that need it.
    ("network.address", Fate::OneWay),
    ("network.gateway", Fate::CarriedOut),
    ("network.vlan", Fate::OneWay),
    // Up to what the bridge carries.
    ("network.mtu", Fate::OneWay),
    ("network.rate", Fate::CarriedOut),
    // On; who takes a guest from behind a firewall is no document.
    ("network.firewall", Fate::OneWay),
    // What was switched on is not switched off by it.
    ("network.address_filter", Fate::OneWay),
    ("network.resolver", Fate::CarriedOut),
    // Documents raise a promise, and signatures lower it.
    ("policy", Fate::OneWay),
    // Bytes that an operator approved.
    ("controller.version", Fate::OneWay),
    ("controller.sha256", Fate::OneWay),
    ("backup_before_exchange_h", Fate::CarriedOut),
    ("maintenance.security_upgrades", Fate::CarriedOut),
    ("maintenance.windows.at", Fate::CarriedOut),
    ("maintenance.windows.zone", Fate::CarriedOut),
    ("maintenance.windows.jitter_min", Fate::CarriedOut),
    ("maintenance.windows.window_min", Fate::CarriedOut),
    ("maintenance.restart", Fate::CarriedOut),
    ("levels.cpu_percent", Fate::CarriedOut),
    ("levels.memory_percent", Fate::CarriedOut),
    ("levels.root_disk_percent", Fate::CarriedOut),
    // A volume is known by its name and its mount together.
    ("volumes.name", Fate::Refused),
    ("volumes.mount", Fate::Refused),
    ("volumes.size_gib", Fate::OneWay),
    ("volumes.kind", Fate::OneWay),
    ("volumes.storage", Fate::Refused),
];

/// A field of the guest's configuration that is held to the document, and can be shown next to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum GuestField {
    /// Its name.
    #[serde(rename = "name")]
    Name,
    /// Whether it runs.
    #[serde(rename = "run")]
    Run,
    /// CPU cores.
    #[serde(rename = "size.cores")]
    Cores,
    /// Memory.
    #[serde(rename = "size.memory_mib")]
    Memory,
    /// Swap.
    #[serde(rename = "size.swap_mib")]
    Swap,
    /// Root disk.
    #[serde(rename = "size.rootfs_gib")]
    Rootfs,
    /// CPU time at most.
    #[serde(rename = "limits.cpu")]
    CpuLimit,
    /// Its weight where CPU time is short.
    #[serde(rename = "limits.cpu_weight")]
    CpuWeight,
    /// The bridge.
    #[serde(rename = "network.bridge")]
    Bridge,
    /// Its address.
    #[serde(rename = "network.address")]
    Address,
    /// Its way out.
    #[serde(rename = "network.gateway")]
    Gateway,
    /// Its VLAN.
    #[serde(rename = "network.vlan")]
    Vlan,
    /// Its largest packet.
    #[serde(rename = "network.mtu")]
    Mtu,
    /// Its limit.
    #[serde(rename = "network.rate")]
    Rate,
    /// The firewall's flag.
    #[serde(rename = "network.firewall")]
    Firewall,
    /// The name servers that it uses.
    #[serde(rename = "network.resolver")]
    Resolver,
}

impl GuestField {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 16] = [
        Self::Name,
        Self::Run,
        Self::Cores,
        Self::Memory,
        Self::Swap,
        Self::Rootfs,
        Self::CpuLimit,
        Self::CpuWeight,
        Self::Bridge,
        Self::Address,
        Self::Gateway,
        Self::Vlan,
        Self::Mtu,
        Self::Rate,
        Self::Firewall,
        Self::Resolver,
    ];

    /// Its path in a guest of the document.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Run => "run",
            Self::Cores => "size.cores",
            Self::Memory => "size.memory_mib",
            Self::Swap => "size.swap_mib",
            Self::Rootfs => "size.rootfs_gib",
            Self::CpuLimit => "limits.cpu",
            Self::CpuWeight => "limits.cpu_weight",
            Self::Bridge => "network.bridge",
            Self::Address => "network.address",
            Self::Gateway => "network.gateway",
            Self::Vlan => "network.vlan",
            Self::Mtu => "network.mtu",
            Self::Rate => "network.rate",
            Self::Firewall => "network.firewall",
            Self::Resolver => "network.resolver",
        }
    }
}

/// What its host's last report says of a guest that was made.
#[derive(Clone, Debug)]
pub struct MadeGuest<'a> {
    /// Its number.
    pub vmid: crate::id::Vmid,
    /// The golden that it was made from.
    pub golden: Option<&'a crate::id::GoldenVersion>,
    /// Its volumes, as Proxmox names them.
    pub volumes: &'a [String],
}

/// A change that nothing carries out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unchangeable {
    /// Its path in the guest, list places with it.
    pub path: String,
    /// What a person does instead.
    pub instead: &'static str,
}

const ANOTHER: &str = "it stays as it was made; put the old value back, or name a new guest with a new uid";
const NUMBER: &str = "no guest changes its number; put the old value back, or leave the field out";
const STORAGE: &str = "nothing moves a disk to another storage; put the old value back";
const VOLUME: &str = "a volume keeps its name and its mount; put the old value back, or give a new volume a name and a mount of its own";

/// The first change from one document's guest to the next one's that nothing carries out, for a guest that was made.
#[must_use]
pub fn unchangeable(was: &DesiredGuest, next: &DesiredGuest, made: &MadeGuest<'_>) -> Option<Unchangeable> {
    let refuse = |path: &str, instead| Some(Unchangeable { path: path.to_owned(), instead });
    if was.customer != next.customer {
        return refuse("customer", ANOTHER);
    }
    if was.vmid != next.vmid && next.vmid.is_some_and(|vmid| vmid != made.vmid) {
        return refuse("vmid", NUMBER);
    }
    if was.golden != next.golden && made.golden.is_none_or(|golden| *golden != next.golden) {
        return refuse("golden", ANOTHER);
    }
    // Proxmox names a volume by its storage first, whose entry is called as the target is.
    let lies = |storage: &str| {
        made.volumes.iter().any(|volume| volume.split_once(':').is_some_and(|(on, _)| on == storage))
    };
    let moved = |was: &Option<crate::id::TargetName>, next: &Option<crate::id::TargetName>| {
        was != next && next.as_ref().is_some_and(|name| !lies(name.as_str()))
    };
    if moved(&was.storage, &next.storage) {
        return refuse("storage", STORAGE);
    }
    next.volumes.iter().enumerate().find_map(|(at, volume)| {
        let path = |field: &str| format!("volumes[{at}].{field}");
        let same_name = was.volumes.iter().find(|old| old.name == volume.name);
        let same_mount = was.volumes.iter().find(|old| old.mount == volume.mount);
        let of_another = |old: Option<&DesiredVolume>, other: Option<&DesiredVolume>| {
            old.is_some_and(|old| other.is_none_or(|other| old.name != other.name))
        };
        if of_another(same_name, same_mount) {
            return refuse(&path("mount"), VOLUME);
        }
        if of_another(same_mount, same_name) {
            return refuse(&path("name"), VOLUME);
        }
        let moved = same_name.is_some_and(|old| moved(&old.storage, &volume.storage));
        if moved { refuse(&path("storage"), STORAGE) } else { None }
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;

    /// The fields beneath a schema: an object's own, each followed to where it is no object with fields any more.
    fn leaves(root: &Value, at: &Value, path: &str, found: &mut BTreeSet<String>) {
        let parts = |key: &str| at[key].as_array().cloned().unwrap_or_default();
        let objects: Vec<Value> =
            parts("anyOf").into_iter().filter(|part| part.get("$ref").is_some()).collect();
        if let Some(name) = at["$ref"].as_str() {
            leaves(root, &root["$defs"][name.trim_start_matches("#/$defs/")], path, found);
        } else if let [one] = objects.as_slice() {
            leaves(root, one, path, found);
        } else if at["type"] == json!("array") && !path.is_empty() && at["items"].get("$ref").is_some() {
            leaves(root, &at["items"], path, found);
        } else if let Some(fields) = at["properties"].as_object() {
            for (name, field) in fields {
                let deeper = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                leaves(root, field, &deeper, found);
            }
        } else {
            found.insert(path.to_owned());
        }
    }

    #[test]
    fn every_field_of_the_schema_has_its_fate() {
        let schema = serde_json::to_value(schemars::schema_for!(DesiredGuest)).unwrap();
        let mut found = BTreeSet::new();
        leaves(&schema, &schema, "", &mut found);
        let decided: BTreeSet<String> = FIELDS.iter().map(|(path, _)| (*path).to_owned()).collect();
        assert_eq!(decided, found, "a field of a guest and what becomes of it go together");
        assert_eq!(decided.len(), FIELDS.len(), "each once");
    }

    #[test]
    fn a_field_that_is_shown_is_one_that_is_carried_out() {
        for field in GuestField::ALL {
            let fate = FIELDS.iter().find(|(path, _)| *path == field.path()).map(|(_, fate)| *fate);
            assert!(matches!(fate, Some(Fate::CarriedOut | Fate::OneWay)), "{field:?}: {fate:?}");
            assert_eq!(serde_json::to_value(field).unwrap(), json!(field.path()));
        }
        assert_eq!(GuestField::ALL.iter().collect::<BTreeSet<_>>().len(), GuestField::ALL.len());
    }

    fn guest() -> Value {
        json!({
            "uid": "018f3c1e-6b1f-7c1d-9d0a-000000000001", "name": "web-1", "customer": "acme", "vmid": 300,
            "run": "running", "golden": "2026.11.1", "storage": "fast",
            "size": { "cores": 2, "memory_mib": 512, "swap_mib": 0, "rootfs_gib": 8 },
            "network": { "bridge": "vmbr0", "address": "10.66.0.1/24" },
            "volumes": [
                { "name": "db", "mount": "/srv/db", "size_gib": 4, "kind": "hot" },
                { "name": "media", "mount": "/srv/media", "size_gib": 4, "kind": "hot", "storage": "fast" }
            ]
        })
    }

    fn judged(change: impl FnOnce(&mut Value)) -> Option<String> {
        let mut next = guest();
        change(&mut next);
        let read = |value: Value| serde_json::from_value::<DesiredGuest>(value).unwrap();
        let golden = "2026.11.1".parse().unwrap();
        let volumes = ["fast:300/a.raw".to_owned(), "tank:300/b.raw".to_owned()];
        let made = MadeGuest { vmid: 300.try_into().unwrap(), golden: Some(&golden), volumes: &volumes };
        unchangeable(&read(guest()), &read(next), &made).map(|found| found.path)
    }

    #[test]
    fn what_nothing_carries_out_is_found_with_its_path() {
        let refused: [(&str, Value, &str); 7] = [
            ("/customer", json!("umbrella"), "customer"),
            ("/vmid", json!(301), "vmid"),
            ("/golden", json!("2026.12.1"), "golden"),
            ("/storage", json!("slow"), "storage"),
            ("/volumes/0/mount", json!("/srv/data"), "volumes[0].mount"),
            ("/volumes/0/name", json!("data"), "volumes[0].name"),
            ("/volumes/1/storage", json!("slow"), "volumes[1].storage"),
        ];
        let named: BTreeSet<&str> = refused.iter().map(|(pointer, ..)| *pointer).collect();
        for (pointer, value, path) in &refused {
            let said = judged(|next| *next.pointer_mut(pointer).unwrap() = value.clone());
            assert_eq!(said.as_deref(), Some(*path), "{pointer}");
        }
        let fated = FIELDS.iter().filter(|(_, fate)| *fate == Fate::Refused).count();
        assert_eq!(fated, named.len(), "each field of that fate is tried here");
    }

    #[test]
    fn what_is_carried_out_or_so_already_is_not_refused() {
        let free: [(&str, Value); 6] = [
            ("/name", json!("web-2")),
            ("/vmid", json!(null)),
            ("/storage", json!("tank")),
            ("/storage", json!(null)),
            ("/size/rootfs_gib", json!(4)),
            ("/volumes/0/kind", json!({ "bulk": { "none": "rebuilt from the origin" } })),
        ];
        for (pointer, value) in free {
            assert_eq!(judged(|next| *next.pointer_mut(pointer).unwrap() = value), None, "{pointer}");
        }
        assert_eq!(judged(|next| drop(next["volumes"].as_array_mut().unwrap().remove(0))), None, "left out");
        let new = json!({ "name": "new", "mount": "/srv/new", "size_gib": 1, "kind": "hot" });
        assert_eq!(judged(|next| next["volumes"].as_array_mut().unwrap().push(new)), None);
        assert_eq!(judged(|next| next["volumes"].as_array_mut().unwrap().reverse()), None, "in any order");
    }
}
