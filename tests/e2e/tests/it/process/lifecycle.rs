//! Tests of guests after they are made.

use std::process::Command;

use e2e::document;
use serde_json::{Value, json};

use super::stand::{self, well};

fn by_name<'a>(guests: &'a [Value], name: &str) -> &'a Value {
    guests
        .iter()
        .find(|guest| guest["name"] == name)
        .unwrap_or_else(|| panic!("no guest {name} in {guests:#?}"))
}

#[test]
fn a_guest_the_document_no_longer_names_runs_on_as_unmanaged() {
    let stand = stand::running();
    let ground = stand.stage.ground();
    let (one, two) = (document::guest(&ground, 1, "one", "acme"), document::guest(&ground, 2, "two", "acme"));
    stand.stage.apply(&json!({ "poll_interval_s": 5, "guests": [one, two] }), "two guests").unwrap();
    stand.stage.guests_until("two guests", |guests| guests.len() == 2 && guests.iter().all(well)).unwrap();
    let before = stand.stage.configurations().unwrap();

    stand.stage.apply(&json!({ "poll_interval_s": 5, "guests": [one] }), "a thief forgets a guest").unwrap();
    let guests = stand
        .stage
        .guests_until("the second is unmanaged", |guests| {
            guests.iter().any(|guest| guest["status"] == "unmanaged")
        })
        .unwrap();
    let forgotten = by_name(&guests, "two");
    assert_eq!(
        (&forgotten["status"], &forgotten["run"]),
        (&json!("unmanaged"), &json!("running")),
        "{forgotten:#}"
    );
    assert_eq!(stand.stage.configurations().unwrap(), before, "nothing in Proxmox changed");

    // An empty document is the same request in its strongest form.
    stand.stage.apply(&json!({ "poll_interval_s": 5, "guests": [] }), "a thief forgets all").unwrap();
    let all = |guests: &[Value]| {
        guests.iter().filter(|guest| guest["status"] == "unmanaged" && guest["run"] == "running").count() == 2
    };
    stand.stage.guests_until("both are unmanaged and run", all).unwrap();
    assert_eq!(stand.stage.configurations().unwrap(), before, "nothing in Proxmox changed");
}

#[test]
fn sizes_follow_the_document_and_a_shrink_is_held() {
    let stand = stand::running();
    let ground = stand.stage.ground();
    let mut guest = document::guest(&ground, 1, "one", "acme");
    let goal = |guest: &Value| json!({ "poll_interval_s": 5, "guests": [guest] });
    stand.stage.apply(&goal(&guest), "one guest").unwrap();
    stand.stage.guests_until("one guest", |guests| guests.len() == 1 && guests.iter().all(well)).unwrap();

    guest["size"] = json!({ "cores": 2, "memory_mib": 640, "swap_mib": 64, "rootfs_gib": 3 });
    stand.stage.apply(&goal(&guest), "larger").unwrap();
    let size = guest["size"].clone();
    stand.stage.guests_until("the new size", |guests| by_name(guests, "one")["size"] == size).unwrap();

    guest["size"]["rootfs_gib"] = json!(2);
    stand.stage.apply(&goal(&guest), "smaller, which would cost data").unwrap();
    let held = e2e::wait::until("the held request", std::time::Duration::from_secs(60), || {
        let host = stand.stage.holdfast(&["host", "show", e2e::stage::HOST])?;
        let waiting = host["sections"]["waiting"].as_array().cloned().unwrap_or_default();
        Ok((!waiting.is_empty()).then_some(waiting))
    });
    let held = held.unwrap();
    // No signature makes a disk smaller in place: the reason says what to do instead.
    assert_eq!(held[0]["payload"], "", "{held:#?}");
    assert!(held[0]["reason"].as_str().unwrap().contains("restore beside"), "{held:#?}");
    let now = stand.stage.guests().unwrap();
    assert_eq!(by_name(&now, "one")["size"]["rootfs_gib"], json!(3), "nothing was shrunk");

    guest["size"]["rootfs_gib"] = json!(3);
    guest["run"] = json!("stopped");
    stand.stage.apply(&goal(&guest), "rest").unwrap();
    stand.stage.guests_until("the guest rests", |guests| by_name(guests, "one")["run"] == "stopped").unwrap();
    guest["run"] = json!("running");
    stand.stage.apply(&goal(&guest), "work").unwrap();
    stand.stage.guests_until("the guest works", |guests| by_name(guests, "one")["run"] == "running").unwrap();
}

#[test]
fn the_agent_refuses_root_and_capabilities() {
    if !rustix::process::geteuid().is_root() {
        assert!(std::env::var_os("HOLDFAST_CI").is_none(), "CI runs as root");
        println!("left out: only root can try to run the agent as root");
        return;
    }
    let stand = stand::enrolled();
    let agentd = std::env::var_os("HOLDFAST_E2E_PROGRAMS")
        .map(|folder| std::path::Path::new(&folder).join("agentd"))
        .unwrap();
    let config = stand.stage.folder().join("agent/agent.toml");
    #[expect(clippy::disallowed_methods, reason = "the wrong way to start it is what is tested")]
    let as_root = Command::new(&agentd).args(["run", "--config"]).arg(&config).output().unwrap();
    let words = String::from_utf8_lossy(&as_root.stderr).into_owned();
    assert!(!as_root.status.success() && words.contains("root"), "{words}");

    #[expect(clippy::disallowed_methods, reason = "the wrong way to start it is what is tested")]
    let with_capability = Command::new("setpriv")
        .args([
            "--reuid=64999",
            "--regid=64999",
            "--clear-groups",
            "--inh-caps=+net_admin",
            "--ambient-caps=+net_admin",
        ])
        .arg(&agentd)
        .args(["run", "--config"])
        .arg(&config)
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&with_capability.stderr).into_owned();
    assert!(!with_capability.status.success() && words.to_lowercase().contains("capabilit"), "{words}");
}
