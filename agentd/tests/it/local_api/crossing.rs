//! Tests of calls about another guest.
//!
//! The rows come from the protocol's own table, so a call that is added is tested too. Every call to Proxmox is sent
//! for a row of the database, by a task that this listener does not have. So a case that changes no row except the
//! audit's and the frozen guest's has sent nothing.

use std::net::IpAddr;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::Envelope;
use holdfast_protocol::local::calls::{CALLS, Call, Caller, Method};
use holdfast_protocol::local::work::Accepted;
use serde_json::{Value, json};

use crate::local_api::world::{DB, DB_AT, Expect, WEB, WEB_AT, World};

/// What a guest has that a path can name.
struct Owned {
    work: String,
    backup: String,
    window: String,
    snapshot: &'static str,
}

impl Owned {
    /// Requests one of each.
    async fn of(world: &World, (from, token): (IpAddr, &str), snapshot: &'static str) -> Self {
        let ask = async |path: &str, body: Value| {
            let request = world.request("POST", path, Some(token), &body.to_string());
            let answer = world.ask(from, &request).await.unwrap();
            let taken: Envelope<Accepted> = serde_json::from_slice(&answer.body).unwrap();
            taken.data.unwrap().operation.to_string()
        };
        Self {
            work: ask("/v1/snapshots", json!({ "name": snapshot })).await,
            backup: ask("/v1/backups", json!({})).await,
            window: ask("/v1/quiesce-windows", json!({})).await,
            snapshot,
        }
    }

    /// The path of this call, with what belongs to this guest.
    fn path(&self, call: &Call) -> String {
        let id = match call.path {
            path if path.starts_with("/v1/quiesce-windows") => &self.window,
            path if path.starts_with("/v1/backups") => &self.backup,
            _ => &self.work,
        };
        let path = call.path.replace("{id}", id).replace("{name}", self.snapshot);
        path.replace("{sha256}", &"ab".repeat(32))
    }
}

/// A body that is valid except for the guest that it is about.
fn body(call: &Call, about: Option<&str>, snapshot: &str) -> String {
    let mut body = match call.path {
        _ if call.body.is_none() || call.method == Method::Delete => return String::new(),
        "/v1/hello" => json!({ "version": "1", "health": "well", "boot_id": "b" }),
        "/v1/rollback" => json!({ "snapshot": snapshot }),
        "/v1/restore-tests/report" | "/v1/quiesce-windows/{id}/quiesced" => json!({ "stacks": [] }),
        _ => json!({}),
    };
    if let Some(guest) = about {
        body["guest"] = json!(guest);
    }
    body.to_string()
}

/// Another guest's id in the path. Ids of work are known to belong to another; names and digests are each guest's own.
fn in_path(call: &Call) -> Option<ErrorCode> {
    match call.path {
        path if path.contains("{id}") => Some(ErrorCode::NotYours),
        path if path.contains("{name}") => Some(ErrorCode::NotFound),
        _ => None,
    }
}

/// Another guest's uid in the body. A hello has no field for a guest, and a report belongs to another listener.
fn in_body(call: &Call) -> Option<ErrorCode> {
    match call.path {
        _ if call.body.is_none() || call.method == Method::Delete => None,
        "/v1/hello" => Some(ErrorCode::UnknownField),
        "/v1/restore-tests/report" => Some(ErrorCode::Forbidden),
        _ => Some(ErrorCode::NotYours),
    }
}

/// All cells; how many they were.
pub async fn all(world: &World) -> usize {
    let web = Owned::of(world, (WEB_AT, &world.web), "of-web").await;
    let db = Owned::of(world, (DB_AT, &world.db), "of-db").await;
    let old = world.db.clone();
    let anew = world.claim(DB, DB_AT).await;
    world.serves(DB_AT, &anew).await;
    let mut cells = 0;
    for call in CALLS.iter().filter(|call| call.caller == Caller::Guest) {
        let verb = call.method.verb();
        let named = |what: &str| format!("{what}: {verb} {}", call.path);
        let (own_path, own_body) = (web.path(call), body(call, Some(WEB), web.snapshot));
        let crossings = [
            ("another's id in the path", in_path(call), db.path(call), body(call, None, web.snapshot)),
            ("another's id in the body", in_body(call), own_path.clone(), body(call, Some(DB), web.snapshot)),
        ];
        for (what, code, path, body) in crossings {
            let Some(code) = code else { continue };
            let request = world.request(verb, &path, Some(&world.web), &body);
            world.refuses(&named(what), WEB_AT, request.as_bytes(), Expect::Code(code)).await;
            cells += 1;
        }
        let no_one = world.request(verb, &own_path, None, &own_body);
        let expect = Expect::Code(ErrorCode::Unauthenticated);
        let nothing = world.refuses(&named("no token"), WEB_AT, no_one.as_bytes(), expect).await.unwrap();
        cells += 1 + frozen(world, call, (&db, &nothing), &[(DB_AT, &old), (WEB_AT, &anew)], &anew).await;
    }
    cells
}

/// A token of an earlier generation, and its own from elsewhere: refused as without a token, but the guest is frozen,
/// and nothing else changes.
async fn frozen(
    world: &World,
    call: &Call,
    (db, nothing): (&Owned, &crate::local_api::wire::Answer),
    shown: &[(IpAddr, &String)],
    anew: &str,
) -> usize {
    for (from, token) in shown {
        let name = format!("{from}: {} {}", call.method.verb(), call.path);
        let before = world.state();
        let request =
            world.request(call.method.verb(), &db.path(call), Some(token), &body(call, None, db.snapshot));
        let reported = world.ask(*from, &request).await.unwrap();
        assert_eq!(reported, *nothing, "{name}");
        let after = world.state();
        let tables: Vec<&str> =
            after.iter().filter(|row| !before.contains(row)).map(|(table, _)| table.as_str()).collect();
        assert_eq!(tables, ["audit", "guest"], "{name}");
        world.thaw(DB).await;
        world.serves(DB_AT, anew).await;
    }
    shown.len()
}
