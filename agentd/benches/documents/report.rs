//! A report of 30 guests, from its bytes to the typed document.

use std::hint::black_box;

use anyhow::{Result, ensure};
use holdfast_protocol::checkin::CheckinRequest;
use holdfast_protocol::json;
use holdfast_protocol::report::REPORT_BYTES_MAX;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json as value};
use uuid::Uuid;

use crate::{Figure, Row, compare};

const GUESTS: u32 = 30;

/// The same fields in the types of the libraries: no bounds, and unknown fields are passed over.
#[derive(Deserialize)]
#[expect(dead_code, reason = "only their reading is measured")]
struct Plain {
    schema: String,
    sequence: u64,
    held: u64,
    coverage: String,
    sections: PlainSections,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only their reading is measured")]
struct PlainSections {
    guests: Option<Vec<PlainGuest>>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only their reading is measured")]
struct PlainGuest {
    uid: Option<Uuid>,
    name: String,
    customer: Option<String>,
    vmid: Option<u32>,
    status: String,
    run: String,
    wanted: Option<String>,
    size: Option<PlainSize>,
    address: Option<String>,
    address_filter: Option<String>,
    volumes: Vec<String>,
    golden: Option<String>,
    controller: Option<PlainController>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only their reading is measured")]
struct PlainSize {
    cores: u16,
    memory_mib: u32,
    swap_mib: u32,
    rootfs_gib: u32,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only their reading is measured")]
struct PlainController {
    version: String,
    hello_at: Timestamp,
    health: String,
}

/// Against types without bounds.
pub fn plain() -> Result<Figure> {
    let bytes = report();
    let note = format!(
        "{} bytes, as the hub reads a check-in; baseline: `serde_json::from_slice` into the same fields as strings, numbers, \
         UUIDs and timestamps, without bounds, unknown fields passed over",
        bytes.len()
    );
    let bare = || {
        let read: Plain = serde_json::from_slice(black_box(&bytes))?;
        black_box(&read);
        Ok(())
    };
    compare(Row { name: "report of 30 guests parsed", note }, || ours(&bytes), bare)
}

/// Against the same types, without the checks of the document.
pub fn same_types() -> Result<Figure> {
    let bytes = report();
    let note = "baseline: `serde_json::from_slice` into the same types".to_owned();
    let bare = || {
        black_box(serde_json::from_slice::<CheckinRequest>(black_box(&bytes))?);
        Ok(())
    };
    compare(Row { name: "report of 30 guests parsed, to its own types", note }, || ours(&bytes), bare)
}

fn ours(bytes: &[u8]) -> Result<()> {
    let read: CheckinRequest = json::parse("the report", black_box(bytes), REPORT_BYTES_MAX)?;
    let guests = read.sections.guests.as_ref().map_or(0, Vec::len);
    ensure!(guests == GUESTS as usize, "all guests are read");
    black_box(read);
    Ok(())
}

fn report() -> Vec<u8> {
    let guests: Vec<Value> = (0..GUESTS).map(guest).collect();
    let report = value!({ "schema": "holdfast.report/v1", "sequence": 7, "held": 3, "coverage": "changed",
        "sections": { "guests": guests } });
    report.to_string().into_bytes()
}

fn guest(number: u32) -> Value {
    let vmid = 5_000 + number;
    value!({
        "uid": Uuid::from_u128(u128::from(number + 1) << 64), "name": format!("guest-{number}"), "customer": "acme",
        "vmid": vmid, "status": "managed", "run": "running", "wanted": "running",
        "size": { "cores": 2, "memory_mib": 512, "swap_mib": 0, "rootfs_gib": 8 },
        "address": format!("10.66.0.{}/24", number + 1), "address_filter": "set",
        "volumes": [format!("tank:{vmid}/vm-{vmid}-disk-0.raw"), format!("tank:{vmid}/vm-{vmid}-disk-1.raw")],
        "golden": "2026.11.1",
        "controller": { "version": "0.1.0", "hello_at": "2026-11-21T14:00:00Z", "health": "well" }
    })
}
