//! The desired document of the story: three guests of two customers.

use serde_json::{Value, json};

/// Where guests live and from what they are made.
#[derive(Clone, Debug)]
pub struct Ground {
    /// First three numbers of the guests' addresses, such as `10.66.0`.
    pub network: String,
    /// Bits of the network.
    pub prefix: u8,
    /// Their way out.
    pub gateway: Option<String>,
    /// The approved golden's version.
    pub golden: String,
}

/// One guest. The uid is fixed, so that a repeated story has the same guests.
#[must_use]
pub fn guest(ground: &Ground, number: u8, name: &str, customer: &str) -> Value {
    let mut network = json!({ "bridge": "vmbr0", "address": format!("{}.{}/{}", ground.network, 100 + number, ground.prefix) });
    if let (Some(gateway), Value::Object(map)) = (&ground.gateway, &mut network) {
        map.insert("gateway".to_owned(), json!(gateway));
    }
    json!({
        "uid": format!("0193a000-0000-7000-8000-{number:012x}"),
        "name": name, "customer": customer, "run": "running", "golden": ground.golden,
        "size": { "cores": 1, "memory_mib": 256 + 128 * u32::from(number % 3), "swap_mib": 0, "rootfs_gib": 2 },
        "network": network, "volumes": [],
    })
}

/// A nightly backup of each guest that is tried every week, `hour` being the hour of the night in UTC.
#[must_use]
pub fn protected(mut document: Value, hour: u64) -> Value {
    let schedule =
        json!({ "at": [format!("{hour:02}:30")], "zone": "UTC", "jitter_min": 0, "window_min": 60 });
    let local = json!({
        "target": "backup2", "schedule": schedule, "retention": { "keep": { "last": 9 } },
        "consistency": "application", "restore_test_days": 7
    });
    let policies = json!([{ "name": "nightly", "tiers": { "local": local } }]);
    put(&mut document, "policies", policies);
    for guest in guests(&mut document).into_iter().flatten() {
        put(guest, "policy", json!("nightly"));
    }
    document
}

/// The document without one guest.
#[must_use]
pub fn without(mut document: Value, name: &str) -> Value {
    if let Some(guests) = guests(&mut document) {
        guests.retain(|guest| guest.get("name").is_none_or(|is| is != name));
    }
    document
}

fn guests(document: &mut Value) -> Option<&mut Vec<Value>> {
    document.get_mut("guests").and_then(Value::as_array_mut)
}

fn put(object: &mut Value, key: &str, value: Value) {
    if let Value::Object(map) = object {
        map.insert(key.to_owned(), value);
    }
}

/// The document; the command fills in schema and generation.
#[must_use]
pub fn story(ground: &Ground) -> Value {
    let mut web = guest(ground, 1, "web", "acme");
    let volumes = json!([
        { "name": "db", "mount": "/srv/db", "size_gib": 1, "kind": "hot" },
        { "name": "media", "mount": "/srv/media", "size_gib": 2, "kind": { "bulk": { "none": "can be fetched again from the origin" } } },
    ]);
    if let Value::Object(map) = &mut web {
        map.insert("volumes".to_owned(), volumes);
    }
    json!({ "poll_interval_s": 5, "guests": [web, guest(ground, 2, "mail", "acme"), guest(ground, 3, "wiki", "umbrella")] })
}
