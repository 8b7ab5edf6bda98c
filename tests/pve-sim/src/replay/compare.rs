//! Compares a recorded answer with ours.
//!
//! Exact: status, reason phrase, content type, connection, error keys and texts, names and types of all fields, and every value that does not
//! change from run to run. By shape: figures of the machine, times, digests, secrets. Lists are compared by identity of their rows; where
//! the recorded node had been lived in before, rows that only it has are left out, because a fresh instance cannot have them.
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::lines::Lines;
use super::recording::Answer;
use crate::wire::Response;

/// Fields whose values are compared by type only.
const VOLATILE: &[&str] = &[
    "upid",
    "pid",
    "pstart",
    "starttime",
    "endtime",
    "ctime",
    "digest",
    "mem",
    "maxmem-node",
    "cpu",
    "disk",
    "diskread",
    "diskwrite",
    "netin",
    "netout",
    "uptime",
    "used",
    "used_fraction",
    "avail",
    "total",
    "free",
    "available",
    "ssl_fingerprint",
    "ticket",
    "CSRFPreventionToken",
    "snaptime",
    "time",
    "localtime",
    "wait",
    "idle",
    "loadavg",
    "kversion",
    "release-kernel",
    "value-secret",
    "memhost",
    "fingerprint",
    "pem",
    "notbefore",
    "notafter",
    "dns1",
    "maxcpu",
    "cpus",
    "hwaddr",
    "hardware-address",
    "clustername",
];
/// Whole objects that describe the machine.
const MACHINE: &[&str] =
    &["cpuinfo", "current-kernel", "memory", "rootfs-node", "swap-node", "boot-info", "ksm", "performance"];
/// The keys that identify a row of a list, best first.
const IDENTITY: &[&str] = &[
    "volid", "upid", "vmid", "roleid", "key", "id", "name", "storage", "subdir", "iface", "poolid", "node",
    "cmd", "n", "userid", "tokenid",
];

#[derive(Debug)]
pub struct Comparer<'a> {
    /// Stand-ins for the parts that change.
    pub lines: &'a Lines,
    /// The call, as `GET /nodes/{node}/lxc`.
    pub call: &'a str,
}

impl Comparer<'_> {
    /// All differences; `recorded` has its names mapped already.
    #[must_use]
    pub fn answers(&self, recorded: &Answer, ours: &Response) -> Vec<String> {
        let mut found = Vec::new();
        if recorded.status != ours.status {
            let body = String::from_utf8_lossy(&ours.body).chars().take(300).collect::<String>();
            found.push(format!(
                "status {} {:?}, recorded {} {:?}; body {body}",
                ours.status, ours.reason, recorded.status, recorded.reason
            ));
            return found;
        }
        self.texts("reason", &recorded.reason, &ours.reason, &mut found);
        if recorded.content_type.as_deref() != ours.content_type {
            found.push(format!("content type {:?}, recorded {:?}", ours.content_type, recorded.content_type));
        }
        let connection = if ours.status >= 400 { "close" } else { "Keep-Alive" };
        if recorded.connection.as_deref().is_some_and(|held| held != connection) {
            found.push(format!("connection {connection:?}, recorded {:?}", recorded.connection));
        }
        match &recorded.body {
            Some(body) => match serde_json::from_slice::<Value>(&ours.body) {
                Ok(value) => self.values("", body, &value, &mut found),
                Err(_) => found.push("body is not JSON".to_owned()),
            },
            None => {
                let text = String::from_utf8_lossy(&ours.body);
                let log = |text: &str| self.lines.log(&text.lines().map(str::to_owned).collect::<Vec<_>>());
                if log(&recorded.body_raw) != log(&text) {
                    found.push(format!("body {text:?}, recorded {:?}", recorded.body_raw));
                }
            }
        }
        found
    }

    /// Compares two values.
    pub fn values(&self, at: &str, recorded: &Value, ours: &Value, found: &mut Vec<String>) {
        match (recorded, ours) {
            (Value::Object(recorded), Value::Object(ours)) => self.objects(at, recorded, ours, found),
            (Value::Array(recorded), Value::Array(ours)) => self.lists(at, recorded, ours, found),
            (Value::String(recorded), Value::String(ours)) => self.texts(at, recorded, ours, found),
            (Value::Number(recorded), Value::Number(ours)) if recorded.as_f64() == ours.as_f64() => {}
            (recorded, ours) if recorded == ours => {}
            (recorded, ours) => found.push(format!("{at} is {ours}, recorded {recorded}")),
        }
    }

    fn texts(&self, at: &str, recorded: &str, ours: &str, found: &mut Vec<String>) {
        let (recorded, ours) = (self.lines.lasting(recorded), self.lines.lasting(ours));
        let set = |text: &str| text.split(',').map(str::to_owned).collect::<BTreeSet<_>>();
        let same = if at.ends_with("content") || at.ends_with("privs") {
            set(&recorded) == set(&ours)
        } else {
            recorded == ours
        };
        if !same {
            found.push(format!("{at} is {ours:?}, recorded {recorded:?}"));
        }
    }

    fn objects(
        &self,
        at: &str,
        recorded: &Map<String, Value>,
        ours: &Map<String, Value>,
        found: &mut Vec<String>,
    ) {
        for (key, value) in recorded {
            let inner = format!("{at}/{key}");
            match ours.get(key) {
                None if self.may_lack(key, value) => {}
                None => found.push(format!("{inner} is missing, recorded {}", short(value))),
                Some(other) if self.is_volatile(key, recorded) => {
                    if kind(value) != kind(other) {
                        found.push(format!("{inner} is {}, recorded {}", kind(other), kind(value)));
                    }
                }
                Some(other) => self.values(&inner, value, other, found),
            }
        }
        for (key, value) in ours.iter().filter(|(key, _)| !recorded.contains_key(*key)) {
            if !self.may_lack(key, value) {
                found.push(format!("{at}/{key} is {}, not recorded", short(value)));
            }
        }
    }

    /// Absent or null is one: pressure figures come and go with the kernel.
    fn may_lack(&self, key: &str, value: &Value) -> bool {
        key.starts_with("pressure") || (value.is_null() && key != "data")
    }

    fn is_volatile(&self, key: &str, row: &Map<String, Value>) -> bool {
        let running = row.get("status").and_then(Value::as_str) == Some("running");
        let backup = row.get("content").and_then(Value::as_str) == Some("backup") || row.contains_key("path");
        let node =
            row.get("type").and_then(Value::as_str).is_some_and(|kind| matches!(kind, "node" | "storage"));
        match key {
            "uptime" => row.get("status").and_then(Value::as_str) != Some("stopped"),
            "maxdisk" => running || node,
            "size" => backup,
            "maxmem" => node,
            "data" if self.call.ends_with("/interfaces") => true,
            "value" if row.get("key").and_then(Value::as_str) == Some("digest") => true,
            "value" if self.call.contains("/token/") => true,
            "rootfs" | "swap" => self.call.ends_with("{node}/status"),
            "total" => true,
            _ => VOLATILE.contains(&key) || MACHINE.contains(&key),
        }
    }

    fn lists(&self, at: &str, recorded: &[Value], ours: &[Value], found: &mut Vec<String>) {
        if self.call.ends_with("/rrddata") {
            return self.same_shape(at, recorded, ours, found);
        }
        let name = |row: &Value| -> Option<String> {
            let map = row.as_object()?;
            if map.contains_key("ugid") {
                return Some(
                    ["path", "ugid", "roleid"]
                        .iter()
                        .filter_map(|key| map.get(*key).map(ToString::to_string))
                        .collect::<Vec<_>>()
                        .join(" "),
                );
            }
            if let Some(volid) = map.get("volid") {
                return Some(volid.to_string());
            }
            IDENTITY.iter().find_map(|key| map.get(*key).map(|value| self.lines.lasting(&value.to_string())))
        };
        if recorded.iter().chain(ours).any(|row| name(row).is_none()) {
            if recorded.len() != ours.len() {
                found.push(format!("{at} has {} entries, recorded {}", ours.len(), recorded.len()));
            }
            recorded
                .iter()
                .zip(ours)
                .enumerate()
                .for_each(|(n, (recorded, ours))| self.values(&format!("{at}/{n}"), recorded, ours, found));
            return;
        }
        for (at_ours, row) in ours.iter().enumerate() {
            let own = name(row).unwrap_or_default();
            // Of several rows of one name the first is the first.
            let nth = ours.iter().take(at_ours).filter(|other| name(other).as_ref() == Some(&own)).count();
            match recorded.iter().filter(|other| name(other).as_ref() == Some(&own)).nth(nth) {
                Some(other) => self.values(&format!("{at}/{own}"), other, row, found),
                None => found.push(format!("{at} lists {own}, not recorded")),
            }
        }
        // The replay creates the content of a backup server unless a recorded call made it, so no row may be missing.
        let away = |row: &Value| row.get("format").and_then(Value::as_str) == Some("pbs-ct");
        let lived_in = self.is_lived_in() && !recorded.iter().any(away);
        for row in recorded.iter().filter(|_| !lived_in) {
            let own = name(row).unwrap_or_default();
            if !ours.iter().any(|other| name(other).as_ref() == Some(&own)) {
                found.push(format!("{at} does not list {own}, recorded {}", short(row)));
            }
        }
    }

    /// Lists in which a node shows what earlier work left on it.
    fn is_lived_in(&self) -> bool {
        matches!(
            self.call,
            "GET /nodes/{node}/lxc"
                | "GET /cluster/resources"
                | "GET /nodes/{node}/storage/{storage}/content"
                | "GET /pools/{poolid}"
                | "GET /pools"
                | "GET /access/acl"
                | "GET /access/roles"
                | "GET /access/users"
                | "GET /storage"
                | "GET /nodes/{node}/storage"
                | "GET /cluster/backup-info/not-backed-up"
                | "GET /nodes/{node}/storage/{storage}/prunebackups"
        )
    }

    /// As many points, but for one that a border cuts off, with the same fields in the oldest.
    fn same_shape(&self, at: &str, recorded: &[Value], ours: &[Value], found: &mut Vec<String>) {
        if recorded.len().abs_diff(ours.len()) > 1 {
            found.push(format!("{at} has {} points, recorded {}", ours.len(), recorded.len()));
        }
        let fields = |rows: &[Value]| {
            rows.first()
                .and_then(Value::as_object)
                .map(|map| map.keys().filter(|key| *key != "tokenid").cloned().collect::<BTreeSet<_>>())
        };
        if let (Some(recorded), Some(ours)) = (fields(recorded), fields(ours))
            && recorded != ours
        {
            found.push(format!("{at} rows have {ours:?}, recorded {recorded:?}"));
        }
    }
}

/// The kind of a value; a figure may be whole or not.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    }
}

fn short(value: &Value) -> String {
    value.to_string().chars().take(120).collect()
}
