//! Parts of desired documents over HTTP.

mod changes;
mod dry_run;
mod removal;
mod states;
mod versions;

use holdfast_protocol::operator::DesiredVersion;
use holdfast_protocol::report::Sections;
use holdfast_protocol::resource::requests::{ChangeAnswer, PartChanged};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::world::{Answered, Client, Host, World};

pub fn uid(n: u32) -> String {
    format!("018f3c1e-6b1f-7c1d-9d0a-{n:012}")
}

pub fn guest(n: u32) -> Value {
    json!({
        "uid": uid(n), "name": format!("web-{n}"), "customer": "acme", "run": "running", "golden": "2026.11.1",
        "size": { "cores": 2, "memory_mib": 512, "swap_mib": 0, "rootfs_gib": 8 },
        "network": { "bridge": "vmbr0", "address": format!("10.66.0.{}/24", 10 + n) },
        "volumes": [{ "name": "db", "mount": "/srv/db", "size_gib": 4, "kind": "hot" }]
    })
}

pub fn policy(name: &str, keep: u32) -> Value {
    let schedule = json!({ "at": ["02:30"], "zone": "UTC", "jitter_min": 0, "window_min": 60 });
    json!({ "name": name, "tiers": { "local": { "target": "usb1", "schedule": schedule, "consistency": "crash",
        "retention": { "keep": { "last": keep } } } } })
}

pub fn target(name: &str, n: u32) -> Value {
    json!({ "name": name, "class": "slow", "role": "local-backup", "state": "attached", "label": name, "default": false,
        "schedulable": true, "backend": { "usb": { "uuid": format!("c2f1a8b0-4a1e-4a53-9b7e-{n:012}") } } })
}

/// Guest 1 is under the policy, which goes to the target.
pub fn document(generation: u64) -> Value {
    let mut first = guest(1);
    first["policy"] = json!("usual");
    json!({ "schema": "holdfast.desired/v1", "generation": generation, "poll_interval_s": 30, "guests": [first, guest(2)],
        "policies": [policy("usual", 7)], "storage": [target("usb1", 1), target("usb2", 2)] })
}

pub struct Box7 {
    pub world: World,
    pub host: Host,
    pub admin: Client,
}

impl Box7 {
    /// A host with the document as generation 1, which reported nothing.
    pub async fn start() -> Self {
        let world = World::start().await;
        let host = world.enrol("box7").await;
        let admin = world.admin();
        admin
            .put_desired::<DesiredVersion>("box7", Some("\"0\""), document(1).to_string())
            .await
            .data(StatusCode::OK);
        Self { world, host, admin }
    }

    /// The host holds generation 1 and made guest 1; it uses one target.
    pub async fn reported() -> Self {
        let box7 = Self::start().await;
        box7.host.check_in(&box7.host.full(1, 0), "0s").await.data(StatusCode::OK);
        let guests = json!([
            { "uid": uid(1), "name": "web-1", "vmid": 301, "status": "managed", "run": "running", "golden": "2026.11.1",
              "size": { "cores": 2, "memory_mib": 512, "swap_mib": 0, "rootfs_gib": 8 },
              "address": "10.66.0.11/24" },
            { "uid": uid(2), "name": "web-2", "status": "absent", "run": "unknown" },
            { "uid": uid(8), "name": "old", "vmid": 308, "status": "unmanaged", "run": "running" }
        ]);
        let usb1 = json!([{ "name": "usb1", "backend": "usb", "role": "local-backup", "class": "slow", "status": "mounted",
            "since": "2026-11-21T02:00:00Z", "reason": "" }]);
        let sections = Sections {
            guests: serde_json::from_value(guests).unwrap(),
            storage: serde_json::from_value(usb1).unwrap(),
            ..Sections::default()
        };
        box7.host.check_in(&box7.host.changed(2, 1, sections), "0s").await.data(StatusCode::OK);
        box7
    }

    pub async fn ask<T: serde::de::DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        seen: u64,
        body: &Value,
    ) -> Answered<T> {
        let client = self.admin.with("if-match", &format!("\"{seen}\""));
        let path = format!("/v1/hosts/box7/{path}");
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        client.send_bytes(method, &path, bytes).await
    }

    /// A change that is made.
    #[track_caller]
    pub fn made(answer: Answered<ChangeAnswer<PartChanged>>, status: StatusCode) -> PartChanged {
        match answer.data(status) {
            ChangeAnswer::Made(changed) => changed,
            ChangeAnswer::Preview(preview) => panic!("only judged: {preview:?}"),
        }
    }

    pub async fn newest(&self) -> DesiredVersion {
        self.admin.get("/v1/hosts/box7/desired").await.data(StatusCode::OK)
    }

    pub async fn newest_document(&self) -> Value {
        serde_json::from_str(&self.newest().await.document).unwrap()
    }
}
