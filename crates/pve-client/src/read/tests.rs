//! Lists as a genuine node gave them while guests started and stopped.

use serde_json::json;

use super::*;

#[test]
fn one_odd_line_blinds_one_guest() {
    let list = json!([
        { "vmid": 300, "status": "running", "uptime": -1, "cpu": -0.0007, "mem": 0, "maxmem": 268_435_456 },
        { "vmid": "301", "status": "running", "uptime": "x", "cpu": null },
        { "vmid": 302, "status": ["running"], "name": "web" },
        { "vmid": 303, "name": "db" },
    ]);
    let seen = LxcStatus::read_list(&list).unwrap();
    let power: Vec<&Power> = seen.iter().map(|one| &one.power).collect();
    let unknown = Power::Unknown(String::new());
    assert_eq!(power, [&Power::Running, &Power::Running, &unknown, &unknown]);
    assert_eq!((seen[0].uptime_s, seen[0].cpu_share, seen[0].memory_max), (0, Some(0.0), 268_435_456));
    assert_eq!((seen[1].uptime_s, seen[1].cpu_share, &seen[1].unreadable), (0, None, &None));
    assert_eq!(seen[2].unreadable.as_deref(), Some("status: a text is expected"));
    assert_eq!((seen[2].name.as_deref(), seen[3].unreadable.as_deref()), (None, Some("status: missing")));
}

/// It is unknown which guest the line belongs to, so this list proves no guest missing.
#[test]
fn a_line_without_its_vmid_makes_the_list_none() {
    let list = json!([{ "vmid": 300, "status": "running" }, { "status": "running" }]);
    assert_eq!(LxcStatus::read_list(&list), Err(Unreadable("vmid: missing".to_owned())));
}
