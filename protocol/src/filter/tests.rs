//! Filters: what is read, what is selected, what is refused.

use serde_json::json;

use super::{FILTER_BYTES_MAX, FilterError, GuestFilter, HostFilter};
use crate::operator::HostView;
use crate::report::GuestReport;

fn host() -> HostView {
    let view = json!({
        "id": "018f3c1e-6b1f-7c1d-9d0a-000000000007", "name": "box7", "state": "online", "wanted": 3, "held": 3,
        "agent_version": "0.1.0", "guests_running": 1, "guests": 2, "attention": 1,
        "certificate_ends_at": "2027-01-01T00:00:00Z", "labels": { "tier": "canary", "site": "vienna" },
    });
    serde_json::from_value(view).unwrap()
}

fn guest(change: serde_json::Value) -> GuestReport {
    let mut report = json!({
        "uid": "018f3c1e-6b1f-7c1d-9d0a-000000000001", "name": "wiki", "customer": "acme", "vmid": 5001,
        "status": "managed", "run": "running", "golden": "2026.11.1",
    });
    for (key, value) in change.as_object().unwrap() {
        report[key] = value.clone();
    }
    serde_json::from_value(report).unwrap()
}

#[track_caller]
fn selects(filter: &str, guest: &GuestReport, expected: &str) {
    let read: GuestFilter = filter.parse().unwrap();
    let selected = if read.selects(&host(), guest) { "in" } else { "out" };
    assert_eq!(selected, expected, "{filter}");
    assert_eq!(read.to_string().parse::<GuestFilter>().unwrap(), read, "{filter} survives being written");
}

#[test]
fn each_part_selects_what_it_says() {
    let wiki = guest(json!({}));
    for yes in [
        "@all",
        "wiki",
        "%ik%",
        "wi%",
        "%ki",
        "018f3c1e-6b1f-7c1d-9d0a-000000000001",
        "5001",
        "5000:5001",
        "@host-box7",
        "@host-box%",
        "@label-tier",
        "@label-tier=canary",
        "@state-online",
        "@customer-acme",
        "@status-managed",
        "@run-running",
        "@image-2026.11.1",
        "@attention-none",
    ] {
        selects(yes, &wiki, "in");
        selects(&format!("-{yes}"), &wiki, "out");
    }
    for no in [
        "wik",
        "%wiki-%",
        "iki%",
        "%wik",
        "5002",
        "5002:5999",
        "@host-box",
        "@label-zone",
        "@label-tier=prod",
        "@state-offline",
        "@customer-beta",
        "@status-parked",
        "@run-stopped",
        "@image-2026.11.2",
        "@protection-protected",
        "@condition-FROZEN",
        "@attention-some",
    ] {
        selects(no, &wiki, "out");
        selects(&format!("-{no}"), &wiki, "in");
    }
}

#[test]
fn conditions_and_posture_are_those_of_the_guest() {
    let frozen = guest(json!({
        "conditions": [{ "code": "FROZEN", "message": "two held its token" }],
        "protection": { "posture": { "is": "unprotected", "why": ["no backup"] } },
    }));
    for yes in ["@condition-FROZEN", "@attention-some", "@protection-unprotected"] {
        selects(yes, &frozen, "in");
    }
    selects("@protection-protected,@condition-LOCKED", &frozen, "out");
}

#[test]
fn terms_add_parts_narrow_and_exclusions_win() {
    let wiki = guest(json!({}));
    let shop = guest(json!({ "name": "shop", "vmid": 5002, "run": "stopped" }));
    selects("@customer-acme+@run-stopped", &wiki, "out");
    selects("@customer-acme+@run-stopped", &shop, "in");
    selects("wiki,@run-stopped", &wiki, "in");
    selects("wiki , @run-stopped", &shop, "in");
    selects("@all,-shop", &shop, "out");
    selects("-@run-stopped+5002", &shop, "out");
    selects("-@run-stopped+5001", &shop, "in");
    selects("@label-tier=canary,-@customer-acme,%wiki%", &wiki, "out");
}

#[test]
fn hosts_are_selected_by_what_hosts_have() {
    let host = host();
    for yes in [
        "box7",
        "%ox%",
        "@label-site=vienna+@attention-some",
        "@version-0.1.0",
        "@state-offline,@state-online",
    ] {
        let filter: HostFilter = yes.parse().unwrap();
        assert!(filter.selects(&host), "{yes}");
        assert_eq!(filter.to_string().parse::<HostFilter>().unwrap(), filter);
    }
    for no in ["box", "-@label-site", "@version-0.2.0", "@attention-none", "@state-frozen"] {
        assert!(!no.parse::<HostFilter>().unwrap().selects(&host), "{no}");
    }
}

#[test]
fn what_is_no_filter_is_refused_with_what_there_is() {
    let refused = |text: &str| text.parse::<GuestFilter>().unwrap_err().to_string();
    for (text, says) in [
        ("", "empty part"),
        ("wiki,", "empty part"),
        ("wiki++shop", "empty part"),
        ("-", "empty part"),
        ("--wiki", "a name has letters"),
        ("wi%ki", "'%' at its ends alone"),
        ("%", "a name has letters"),
        ("wi ki", "a name has letters"),
        ("@pool-x", "@customer-ID"),
        ("@status-gone", "expected one of `managed`"),
        ("@condition-NEVER", "no such code"),
        ("@label-Tier", "lower-case"),
        ("@label-tier=", "the value of a label"),
        ("@customer-", "@customer-"),
        ("5002:5001", "the larger one"),
        ("12", "12"),
    ] {
        let error = refused(text);
        assert!(error.contains(says), "{text}: {error}");
    }
    assert!(matches!("x".repeat(FILTER_BYTES_MAX + 1).parse::<GuestFilter>(), Err(FilterError::Long(513))));
    assert!(matches!(["x"; 65].join(",").parse::<GuestFilter>(), Err(FilterError::Many(65))));
    assert!("5000".parse::<HostFilter>().unwrap_err().to_string().contains("no VMID"));
    assert!("@customer-acme".parse::<HostFilter>().unwrap_err().to_string().contains("hosts have"));
}
