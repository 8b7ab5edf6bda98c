//! The fields of a guest.

use super::{Field, field, number, text};
use crate::form::{Case, Group, Input, Names, Shape};

const RESOLVER: &[Case] = &[
    Case { path: "", label: "(as it is on the host)", shape: Shape::Absent },
    Case { path: "host", label: "those of the host", shape: Shape::Word },
    Case { path: "own", label: "its own, as below", shape: Shape::Content },
];

const GENERAL: &[Field] = &[
    text("name", "Name"),
    field("customer", "Customer", Input::Suggest(Names::Customers)),
    field("run", "Run", Input::Choice(&[("running", "running"), ("stopped", "stopped")])),
    field("golden", "Golden image", Input::Suggest(Names::Images)),
    number("vmid", "VMID"),
    field("policy", "Backup policy", Input::Pick(Names::Policies)),
];

const SIZE: &[Field] = &[
    number("size.cores", "Cores"),
    number("size.memory_mib", "Memory in MiB"),
    number("size.swap_mib", "Swap in MiB"),
    number("size.rootfs_gib", "Root disk in GiB"),
    field("storage", "Storage of the root disk", Input::Pick(Names::Primary)),
    field(
        "limits.cpu",
        "CPU time in percent of a core",
        Input::WordOrNumber { word: "unlimited", key: "core_percent" },
    ),
    number("limits.cpu_weight", "CPU weight"),
];

const NETWORK: &[Field] = &[
    text("network.bridge", "Bridge"),
    text("network.address", "Address with prefix"),
    text("network.gateway", "Gateway"),
    number("network.vlan", "VLAN"),
    field("network.mtu", "Largest packet in bytes", Input::WordOrNumber { word: "bridge", key: "bytes" }),
    field("network.rate", "Rate in MiB/s", Input::WordOrNumber { word: "unlimited", key: "mib_per_s" }),
    field("network.firewall", "Proxmox's firewall", Input::Choice(&[("on", "on"), ("off", "off")])),
    field(
        "network.address_filter",
        "Held to its addresses",
        Input::Choice(&[("own", "yes, to its own"), ("as_it_is", "as it is in Proxmox")]),
    ),
    field("network.resolver", "Name servers", Input::Variant(RESOLVER)),
    field("network.resolver.own.servers", "Its own name servers", Input::Lines),
    field("network.resolver.own.search", "Its search domains", Input::Lines),
];

const UPKEEP: &[Field] = &[
    field("maintenance", "Its maintenance is set here", Input::Presence),
    field(
        "maintenance.security_upgrades",
        "Security upgrades",
        Input::Choice(&[("on", "on"), ("off", "off")]),
    ),
    field(
        "maintenance.restart",
        "Restart for maintenance",
        Input::Choice(&[("in_window", "in a window"), ("by_hand", "by hand only")]),
    ),
    field("maintenance.windows", "It has windows of its own", Input::Presence),
    field("maintenance.windows.at", "Windows begin at", Input::Lines),
    text("maintenance.windows.zone", "Time zone of the windows"),
    number("maintenance.windows.jitter_min", "Put off by up to, in minutes"),
    number("maintenance.windows.window_min", "Length of a window in minutes"),
    text("controller.version", "Version of the guest agent"),
    text("controller.sha256", "SHA-256 of that guest agent"),
    number("backup_before_exchange_h", "Backup before its exchange, at most so many hours old"),
    number("levels.cpu_percent", "CPU counts as high from, in percent"),
    number("levels.memory_percent", "Memory counts as high from, in percent"),
    number("levels.root_disk_percent", "Root disk counts as full from, in percent"),
];

pub(super) const FORM: &[Group] = &[
    Group { legend: "Guest", fields: GENERAL },
    Group { legend: "Size and limits", fields: SIZE },
    Group { legend: "Network", fields: NETWORK },
    Group { legend: "Upkeep and levels", fields: UPKEEP },
];
