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

/// One guest. The uid is fixed, so that a story told twice tells of the same guests.
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
