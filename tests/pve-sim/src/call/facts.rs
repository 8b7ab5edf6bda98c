//! Facts of the node: services, packages, disks and figures.
//!
//! In: a call. Out: the recorded node's answers: one node without a cluster, a time service or a firewall daemon, on a virtual disk.
use serde_json::{Value, json};

use super::{Call, Handler, Reply, data};
use crate::die;
use crate::fail::Refusal;

/// Service, description, and what becomes of it.
const SERVICES: &[(&str, &str, Unit)] = &[
    ("chrony", "", Unit::NotThere),
    ("corosync", "", Unit::Masked),
    ("cron", "Regular background program processing daemon", Unit::Runs),
    ("ksmtuned", "", Unit::NotThere),
    ("lxcfs", "FUSE filesystem for LXC", Unit::Runs),
    ("postfix", "", Unit::NotThere),
    ("proxmox-firewall", "", Unit::Masked),
    ("pve-cluster", "The Proxmox VE cluster filesystem", Unit::Runs),
    ("pve-firewall", "", Unit::Masked),
    ("pve-ha-crm", "", Unit::Masked),
    ("pve-ha-lrm", "", Unit::Masked),
    ("pve-lxc-syscalld", "", Unit::NotThere),
    ("pvedaemon", "PVE API Daemon", Unit::Runs),
    ("pvefw-logger", "", Unit::NotThere),
    ("pveproxy", "PVE API Proxy Server", Unit::Runs),
    ("pvescheduler", "Proxmox VE scheduler", Unit::Runs),
    ("pvestatd", "PVE Status Daemon", Unit::Runs),
    ("qmeventd", "PVE Qemu Event Daemon", Unit::Disabled),
    ("spiceproxy", "PVE SPICE Proxy Server", Unit::Runs),
    ("sshd", "OpenBSD Secure Shell server", Unit::Runs),
    ("syslog", "", Unit::NotThere),
    ("systemd-journald", "Journal Service", Unit::Static),
    ("systemd-timesyncd", "", Unit::Masked),
];

/// The state of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Runs,
    Static,
    Disabled,
    Masked,
    NotThere,
}

impl Unit {
    /// Its state, whether it is active, and what its file says.
    const fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Runs => ("running", "active", "enabled"),
            Self::Static => ("running", "active", "static"),
            Self::Disabled => ("dead", "inactive", "disabled"),
            Self::Masked => ("dead", "inactive", "masked"),
            Self::NotThere => ("dead", "inactive", "not-found"),
        }
    }
}

/// The code of a call of this group.
#[must_use]
pub fn handler(at: &str) -> Option<Handler> {
    Some(match at {
        "GET /nodes/{node}/services" => |_| data(SERVICES.iter().map(service).collect::<Vec<_>>()),
        "GET /nodes/{node}/services/{service}/state" => |call| {
            let name = call.need("service")?;
            let found = SERVICES.iter().find(|(held, ..)| *held == name);
            found.map_or_else(
                || Err(Refusal::die(format!("no such service '{name}'"))),
                |row| data(service(row)),
            )
        },
        "GET /nodes/{node}/apt/update" | "GET /nodes/{node}/disks/directory" | "GET /cluster/replication" => {
            |_| data(Vec::<Value>::new())
        }
        "GET /nodes/{node}/disks/lvm" => |_| data(json!({"children": [], "leaf": 0})),
        "GET /nodes/{node}/disks/zfs" => |_| die!("zfsutils-linux not installed"),
        "GET /nodes/{node}/disks/smart" => smart,
        "GET /nodes/{node}/rrddata" => rrddata,
        "GET /access/domains" => |_| {
            data(vec![
                json!({"realm": "pam", "type": "pam", "comment": "Linux PAM standard authentication"}),
                json!({"realm": "pve", "type": "pve", "comment": "Proxmox VE authentication server"}),
            ])
        },
        "GET /cluster/ha/status/current" => |call| {
            let node = &call.node.name;
            data(vec![
                json!({"id": "quorum", "type": "quorum", "node": node, "quorate": 1, "status": "OK"}),
                json!({
                    "id": "fencing", "type": "fencing", "node": node, "armed-state": "standby",
                    "status": "standby (CRM watchdog standby)",
                }),
            ])
        },
        "GET /cluster/notifications/targets" => |_| {
            data(vec![json!({"name": TARGET, "type": "sendmail", "origin": "builtin", "comment": TO_ROOT})])
        },
        "GET /cluster/notifications/matchers" => |_| {
            data(vec![json!({
                "name": "default-matcher", "mode": "all", "origin": "builtin", "target": [TARGET],
                "comment": "Route all notifications to mail-to-root",
            })])
        },
        "GET /cluster/notifications/endpoints/sendmail" => |_| {
            data(vec![
                json!({"name": TARGET, "mailto-user": ["root@pam"], "origin": "builtin", "comment": TO_ROOT}),
            ])
        },
        _ => return None,
    })
}

/// The default target of notifications.
const TARGET: &str = "mail-to-root";
const TO_ROOT: &str = "Send mails to root@pam's email address";

fn service((name, description, unit): &(&str, &str, Unit)) -> Value {
    let (state, active, file) = unit.words();
    let unnamed = format!("{name}.service");
    let description = if description.is_empty() { unnamed.as_str() } else { description };
    json!({
        "service": name, "name": name, "desc": description, "state": state, "active-state": active, "unit-state": file,
    })
}

/// A virtual disk reports no health. A loop device is still a block device.
fn smart(call: &Call<'_>) -> Reply {
    if call.need("disk")?.starts_with("/dev/loop") {
        return data(json!({"health": "UNKNOWN"}));
    }
    die!("not a valid block device")
}

/// The node is measured all along: every point of the last hour is known.
fn rrddata(call: &Call<'_>) -> Reply {
    let now = super::node::figures(super::node::uptime_s(call.node.settable.even_s()));
    let figure = |key: &str| now.get(key).cloned().unwrap_or_default();
    let mut row = vec![
        ("cpu", figure("cpu")),
        ("maxcpu", figure("maxcpu")),
        ("memused", figure("mem")),
        ("memtotal", figure("maxmem")),
        ("memavailable", figure("maxmem")),
        ("rootused", figure("disk")),
        ("roottotal", figure("maxdisk")),
    ];
    let unmeasured = [
        "arcsize",
        "iowait",
        "loadavg",
        "netin",
        "netout",
        "pressurecpusome",
        "pressureiofull",
        "pressureiosome",
        "pressurememoryfull",
        "pressurememorysome",
        "swaptotal",
        "swapused",
    ];
    row.extend(unmeasured.map(|key| (key, json!(0))));
    data(super::rrd::points(call, &row, super::rrd::Measured::Hour))
}
