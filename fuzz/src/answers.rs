//! Fuzzed answers of Proxmox.

use std::collections::BTreeSet;
use std::fmt::Debug;

use holdfast_protocol::id::Vmid;
use serde_json::{Map, Value};

use crate::proxmox::read::Version;
use crate::proxmox::reader;
use crate::proxmox::resources::TemplateFlag;
use crate::proxmox::task_result::{TaskEnd, TaskStatus};
use crate::proxmox::visibility::AclPath;

/// One input: the contents of an answer's `data` field.
///
/// # Panics
/// When a rule does not hold.
pub fn target(data: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(data) else { return };
    spelled(&value);
    version(&value);
    resources(&value);
    guest(&value);
    storages(&value);
    entries(&value);
    volumes(&value);
    tasks(&value);
    snapshots(&value);
    permissions(&value);
}

/// Every reader reads an answer, and refuses it, the same in each of its spellings.
fn spelled(value: &Value) {
    for (what, other) in [("numbers in texts", &in_texts(value)), ("more keys", &grown(value))] {
        same(what, value, other, reader::VERSION);
        same(what, value, other, reader::RESOURCES);
        same(what, value, other, reader::GUEST);
        same(what, value, other, reader::NODE);
        same(what, value, other, reader::STORAGES);
        same(what, value, other, reader::ENTRIES);
        same(what, value, other, reader::VOLUMES);
        same(what, value, other, reader::INTERFACES);
        same(what, value, other, reader::TASKS);
        same(what, value, other, reader::TASK);
        same(what, value, other, reader::SNAPSHOTS);
        same(what, value, other, reader::CAN_SNAPSHOT);
        same(what, value, other, reader::log);
    }
    same("numbers in texts", value, &in_texts(value), reader::PERMISSIONS);
}

fn same<T: Debug, E: Debug>(what: &str, one: &Value, other: &Value, read: impl Fn(&Value) -> Result<T, E>) {
    // A NaN is not equal to itself, so the debug texts are compared.
    assert_eq!(format!("{:?}", read(one)), format!("{:?}", read(other)), "{what}");
}

/// `1` as `"1"`, throughout.
fn in_texts(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.is_u64() => Value::String(number.to_string()),
        Value::Array(items) => items.iter().map(in_texts).collect(),
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), in_texts(value))).collect(),
        other => other.clone(),
    }
}

/// With a key in each object that no release has so far.
fn grown(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(grown).collect(),
        Value::Object(fields) => {
            let mut fields: Map<String, Value> =
                fields.iter().map(|(key, value)| (key.clone(), grown(value))).collect();
            fields.insert("~of tomorrow".to_owned(), serde_json::json!({ "name": ["x", null], "vmid": -1 }));
            Value::Object(fields)
        }
        other => other.clone(),
    }
}

/// A scalar under a key, as a text.
fn text(row: &Value, key: &str) -> Option<String> {
    match row.get(key)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(true) => Some("1".to_owned()),
        Value::Bool(false) => Some("0".to_owned()),
        _ => None,
    }
}

/// A number under a key, where it is written as one.
fn number(row: &Value, key: &str) -> Option<u64> {
    row.get(key)?.as_u64()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn version(value: &Value) {
    let Ok(version) = (reader::VERSION)(value) else { return };
    assert_eq!(text(value, "version").as_deref(), Some(version.text.as_str()));
    let mut numbers = version.text.split(['.', '-']);
    let mut next = || numbers.next().and_then(|part| part.parse::<u32>().ok());
    assert_eq!((next(), next()), (Some(version.major), Some(version.minor)));
    let new = version.major > 9 || version.major == 9 && version.minor >= 1;
    assert_eq!(version.is_supported(), new, "{version:?}");
    assert_eq!(Version::parse(&version.text).as_ref(), Some(&version));
}

fn resources(value: &Value) {
    let Ok(all) = (reader::RESOURCES)(value) else { return };
    let of = |kinds: &[&str]| {
        let is = |row: &&Value| text(row, "type").is_some_and(|kind| kinds.contains(&kind.as_str()));
        list(value).iter().filter(is).collect::<Vec<_>>()
    };
    let rows = of(&["lxc", "qemu"]);
    assert_eq!(all.guests.len(), rows.len(), "a guest is lost, or made up");
    for (guest, row) in all.guests.iter().zip(rows) {
        assert_eq!(text(row, "vmid"), Some(guest.vmid.to_string()));
        assert_eq!(text(row, "node"), Some(guest.node.clone()));
        if guest.unreadable.is_some() {
            continue;
        }
        assert_eq!(text(row, "pool"), guest.pool);
        assert_eq!(text(row, "lock"), guest.lock);
        let flag = matches!(text(row, "template").as_deref(), Some("1"));
        assert_eq!(guest.template == TemplateFlag::Set, flag);
    }
    let named = |kind| of(&[kind]).iter().filter_map(|row| text(row, kind)).collect::<Vec<String>>();
    assert_eq!(all.pools, named("pool"));
    let nodes: Vec<String> = all.nodes.iter().map(|node| node.name.clone()).collect();
    assert_eq!(nodes, named("node"));
    let storages = named("storage");
    assert!(all.storages.iter().all(|row| storages.iter().any(|name| name == row.storage.as_str())));
}

fn guest(value: &Value) {
    let Ok(guest) = (reader::GUEST)(value) else { return };
    assert_eq!(text(value, "vmid"), Some(guest.vmid.to_string()));
    for (key, read) in [
        ("uptime", guest.uptime_s),
        ("mem", guest.memory_used),
        ("maxmem", guest.memory_max),
        ("maxswap", guest.swap_max),
        ("maxdisk", guest.disk_max),
        ("disk", guest.disk_used),
    ] {
        assert!(number(value, key).is_none_or(|number| number == read), "{key} is {read}");
    }
}

fn storages(value: &Value) {
    let Ok(all) = (reader::STORAGES)(value) else { return };
    assert_eq!(all.len(), list(value).len());
    for (storage, row) in all.iter().zip(list(value)) {
        assert_eq!(text(row, "storage").as_deref(), Some(storage.storage.as_str()));
        assert_eq!(reader::storage(&storage.storage, row).as_ref(), Ok(storage), "alone it is another");
        assert_eq!(storage.active, matches!(text(row, "active").as_deref(), Some("1")));
        assert_eq!(storage.enabled, matches!(text(row, "enabled").as_deref(), Some("1")));
        for (key, read) in [("avail", storage.available), ("total", storage.total), ("used", storage.used)] {
            assert!(number(row, key).is_none_or(|number| number == read), "{key} is {read}");
        }
    }
}

fn entries(value: &Value) {
    let Ok(all) = (reader::ENTRIES)(value) else { return };
    let named: BTreeSet<String> = list(value).iter().filter_map(|row| text(row, "storage")).collect();
    assert!(all.keys().eq(&named), "an entry is lost, or made up");
}

fn volumes(value: &Value) {
    let Ok(all) = (reader::VOLUMES)(value) else { return };
    assert_eq!(all.len(), list(value).len());
    for (volume, row) in all.iter().zip(list(value)) {
        assert_eq!(text(row, "volid").as_deref(), Some(volume.volid.as_str()));
        assert_eq!(text(row, "vmid"), volume.vmid.map(|vmid| vmid.to_string()));
        assert_eq!(volume.protected, matches!(text(row, "protected").as_deref(), Some("1")));
    }
}

fn tasks(value: &Value) {
    if let Ok(all) = (reader::TASKS)(value) {
        assert_eq!(all.len(), list(value).len());
        for (task, row) in all.iter().zip(list(value)) {
            assert_eq!(text(row, "upid"), Some(task.upid.to_string()));
            ended(task.end.as_ref(), text(row, "status").filter(|status| status != "RUNNING").as_deref());
        }
    }
    if let Ok(status) = (reader::TASK)(value) {
        let exit = text(value, "exitstatus");
        match (&status, text(value, "status").as_deref()) {
            (TaskStatus::Running, Some("running")) => {}
            (TaskStatus::StoppedSilently, Some("stopped")) => assert_eq!(exit, None),
            (TaskStatus::Ended(end), Some("stopped")) => ended(Some(end), exit.as_deref()),
            other => panic!("{other:?}"),
        }
    }
    if let Ok(lines) = reader::log(value) {
        assert_eq!(lines.len(), list(value).len(), "a line is lost");
    }
}

/// A task is done exactly when Proxmox reports it as done, and no status is read as better than it is.
fn ended(end: Option<&TaskEnd>, said: Option<&str>) {
    let warnings = said.and_then(|said| said.strip_prefix("WARNINGS: ")).and_then(|count| count.parse().ok());
    match (end, said) {
        (None, None) | (Some(TaskEnd::Ok), Some("OK")) => {}
        (Some(TaskEnd::Unexpected), Some("" | "unexpected status")) => {}
        (Some(TaskEnd::Warnings(count)), Some(_)) => assert_eq!(Some(*count), warnings),
        (Some(TaskEnd::Failed(why)), Some(said)) => {
            assert!(why == said && said != "OK" && warnings.is_none(), "{said:?} failed by {why:?}");
        }
        other => panic!("{other:?}"),
    }
}

fn snapshots(value: &Value) {
    let Ok(all) = (reader::SNAPSHOTS)(value) else { return };
    let named = list(value).iter().filter_map(|row| text(row, "name")).filter(|name| name != "current");
    assert!(all.iter().map(|snapshot| snapshot.name.clone()).eq(named), "a snapshot is lost, or made up");
}

fn permissions(value: &Value) {
    let Ok(all) = (reader::PERMISSIONS)(value) else { return };
    let pairs = || all.iter().flat_map(|(path, set)| set.iter().map(move |privilege| (path, privilege)));
    let said = value.as_object().into_iter().flatten().filter_map(|(_, set)| set.as_object());
    assert_eq!(pairs().count(), said.map(Map::len).sum::<usize>(), "a privilege is lost, or made up");
    for (path, privilege) in pairs() {
        assert!(value.get(path).and_then(|set| set.get(privilege)).is_some(), "{privilege} on {path}");
    }
    let guest = AclPath::guest(Vmid::try_from(100).expect("a VMID"));
    let said = value.get("/vms/100").and_then(|set| set.get("VM.Audit")).is_some();
    assert_eq!(all.holds(&guest, "VM.Audit"), said);
}
