//! Use and metrics, as operators and a scraper get them.

use std::collections::BTreeMap;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::report::Sections;
use holdfast_protocol::usage::{Readings, UsageMetric, UsageSample, UsageSeries};
use reqwest::StatusCode;
use serde_json::json;

use crate::world::{Client, Host, World, until};

/// A guest as its host reports it.
fn guests() -> serde_json::Value {
    json!([{ "uid": GUEST, "name": "web", "customer": "acme", "vmid": 120, "lock": { "kind": "backup", "since": "2026-11-21T02:00:00Z" }, "status": "managed", "run": "running",
        "protection": { "posture": { "is": "attention", "why": ["no test"] },
            "newest": [{ "tier": "local", "taken_at": "2027-01-01T00:00:00Z", "bytes": 5000, "took_ms": 12500 }] } }])
}

const GUEST: &str = "018f3c1e-6b1f-7c1d-9d0a-000000000001";

/// A host that reported a guest, with one sample of use.
pub async fn reporting_host(world: &World) -> Host {
    let host = world.enrol("box7").await;
    let sections = Sections { guests: serde_json::from_value(guests()).unwrap(), ..host.full(1, 0).sections };
    let sample = UsageSample {
        at: world.clock.advance(0),
        host: Readings::from([(UsageMetric::Cpu, 125), (UsageMetric::Load, 250)]),
        guests: BTreeMap::from([(
            GUEST.parse().unwrap(),
            Readings::from([(UsageMetric::MemoryUsed, 7 << 20)]),
        )]),
    };
    let request =
        holdfast_protocol::checkin::CheckinRequest { sections, usage: vec![sample], ..host.full(1, 0) };
    host.check_in(&request, "0s").await.data(StatusCode::OK);
    host
}

/// The page as a scraper gets it.
pub async fn page(client: &Client, path: &str) -> String {
    client.text(path).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_host_reports_is_on_the_page_and_in_the_series() {
    let world = World::start().await;
    reporting_host(&world).await;
    let admin = world.admin();
    // The sample is written by a task of its own.
    until("the sample is kept", || async {
        let series: UsageSeries = admin.get("/v1/hosts/box7/usage").await.data(StatusCode::OK);
        !series.metrics.is_empty()
    })
    .await;
    let path = format!("/v1/hosts/box7/usage?span=2h&guest={GUEST}");
    let series: UsageSeries = admin.get(&path).await.data(StatusCode::OK);
    assert_eq!(series.metrics[&UsageMetric::MemoryUsed][0].mean, 7 << 20);
    let all = page(&admin, "/metrics").await;
    for line in [
        "holdfast_hub_hosts{state=\"online\"} 1",
        "holdfast_hub_checkin_duration_seconds_count 1",
        "holdfast_hub_checkin_duration_seconds_bucket{le=\"+Inf\"} 1",
        "holdfast_host_cpu_ratio{host=\"box7\"} 0.125",
        "holdfast_host_load1{host=\"box7\"} 2.500",
        "holdfast_guest_memory_used_bytes{host=\"box7\",guest=\"web\"} 7340032",
        "holdfast_guest_running{host=\"box7\",guest=\"web\"} 1",
        "holdfast_guest_posture{host=\"box7\",guest=\"web\",posture=\"attention\"} 1",
        "holdfast_guest_lock_timestamp_seconds{host=\"box7\",guest=\"web\",kind=\"backup\"} 1795226400",
        "holdfast_guest_backup_size_bytes{host=\"box7\",guest=\"web\",tier=\"local\"} 5000",
        "holdfast_guest_backup_duration_seconds{host=\"box7\",guest=\"web\",tier=\"local\"} 12.500",
        "holdfast_hub_metrics_hosts_left_out 0",
    ] {
        assert!(all.lines().any(|found| found == line), "{line}\n{all}");
    }
    let took =
        all.lines().find_map(|line| line.strip_prefix("holdfast_hub_checkin_duration_seconds_sum ")).unwrap();
    assert!(took.parse::<f64>().unwrap() > 0.0, "a check-in takes time: {took}");
    let one = page(&admin, "/metrics?host=box7").await;
    assert!(one.contains("holdfast_guest_info{host=\"box7\"") && !one.contains("holdfast_hub_"), "{one}");
    // What was measured minutes ago is not shown as of now.
    world.clock.advance(600);
    let later = page(&admin, "/metrics?host=box7").await;
    assert!(!later.contains("holdfast_host_cpu_ratio"), "{later}");
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_and_odd_questions_get_no_page() {
    let world = World::start().await;
    assert_eq!(world.anyone().get::<()>("/metrics").await.code(), ErrorCode::Unauthenticated);
    let admin = world.admin();
    assert_eq!(admin.get::<()>("/metrics?host=box8").await.code(), ErrorCode::NotFound);
    assert_eq!(admin.get::<()>("/v1/hosts/box8/usage").await.code(), ErrorCode::NotFound);
    reporting_host(&world).await;
    assert_eq!(admin.get::<()>("/v1/hosts/box7/usage?span=1h").await.code(), ErrorCode::Range);
    assert_eq!(admin.get::<()>("/v1/hosts/box7/usage?guest=x").await.code(), ErrorCode::NotFound);
}
