//! Power states as a genuine node showed them during starts.

use serde_json::json;

use super::*;

#[test]
fn figures_of_a_starting_guest_are_read_and_its_status_is_needed() {
    let seen = LxcStatus::read_one(
        &json!({ "vmid": 300, "status": "running", "uptime": -1, "cpu": -0.0007, "mem": 0, "maxmem": 268_435_456 }),
    );
    let seen = seen.unwrap();
    assert_eq!(seen.power, Power::Running);
    assert_eq!((seen.uptime_s, seen.cpu_share, seen.memory_max), (0, Some(0.0), 268_435_456));
    let odd = LxcStatus::read_one(&json!({ "vmid": "301", "status": "running", "uptime": "x", "cpu": null }));
    assert_eq!(odd.map(|odd| (odd.uptime_s, odd.cpu_share)), Ok((0, None)));
    for (row, why) in [
        (json!({ "vmid": 302, "status": ["running"], "name": "web" }), "status: a text is expected"),
        (json!({ "vmid": 303, "name": "db" }), "status: missing"),
        (json!({ "status": "running" }), "vmid: missing"),
    ] {
        assert_eq!(LxcStatus::read_one(&row), Err(Unreadable(why.to_owned())));
    }
}
