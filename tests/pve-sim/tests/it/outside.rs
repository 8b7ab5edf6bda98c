//! Tests of storages outside of the node.
#![forbid(unsafe_code)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    dead_code,
    reason = "the helpers of a test fail the test, and not every test uses every helper"
)]

use std::path::Path;

use crate::client::{Client, open};
use serde_json::json;

const SECRET: &str = "11111111-2222-3333-4444-555555555555";

fn fingerprint(byte: &str) -> String {
    vec![byte; 32].join(":")
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// A backup server that answers, with one datastore.
fn server(state: &Path) {
    let place = state.join("run/outside/10.66.0.1");
    std::fs::create_dir_all(place.join("pvestore")).expect("datastore");
    std::fs::write(place.join("fingerprint"), fingerprint("86")).expect("fingerprint");
    std::fs::write(place.join("secret"), SECRET).expect("secret");
}

fn form(changed: &[(&str, &str)]) -> String {
    let key = json!({ "kdf": null, "data": "AAAA", "fingerprint": fingerprint("6e") }).to_string();
    let print = fingerprint("86");
    let mut fields = vec![
        ("storage", "off1"),
        ("type", "pbs"),
        ("server", "10.66.0.1"),
        ("datastore", "pvestore"),
        ("namespace", "hf"),
        ("username", "pve@pbs!bk"),
        ("password", SECRET),
        ("fingerprint", &print),
        ("content", "backup"),
        ("encryption-key", &key),
    ];
    for (name, value) in changed {
        fields.retain(|(known, _)| known != name);
        if !value.is_empty() {
            fields.push((name, value));
        }
    }
    fields.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect::<Vec<_>>().join("&")
}

#[test]
fn a_backup_server_is_looked_at_once_and_its_namespace_never() {
    let state = tempfile::tempdir().expect("folder");
    server(state.path());
    let opened = open(state.path());
    let client = Client::of(&opened);
    let shown = fingerprint("86").to_uppercase();
    for (changed, says) in [
        (
            ("fingerprint", fingerprint("00")),
            format!("off1: error fetching datastores - fingerprint '{shown}' not verified, abort!"),
        ),
        (
            ("fingerprint", String::new()),
            format!("off1: error fetching datastores - fingerprint '{shown}' not verified, abort!"),
        ),
        (("password", "no".to_owned()), "off1: error fetching datastores - 401 Unauthorized".to_owned()),
        (("password", String::new()), "off1: error fetching datastores - 401 Unauthorized".to_owned()),
        (
            ("datastore", "nosuch".to_owned()),
            "off1: Cannot find datastore 'nosuch', check permissions and existence!".to_owned(),
        ),
        (
            ("server", "10.66.0.9".to_owned()),
            "off1: error fetching datastores - 500 Can't connect to 10.66.0.9:8007 (Connection refused)"
                .to_owned(),
        ),
        (
            ("encryption-key", "hello".to_owned()),
            "Value does not seems like a valid, JSON formatted encryption key!".to_owned(),
        ),
        (
            ("encryption-key", "{\"kdf\":null}".to_owned()),
            "Value does not seems like a valid, JSON formatted encryption key!".to_owned(),
        ),
    ] {
        let (status, body) = client.ask("POST", "/storage", &form(&[(changed.0, &changed.1)]));
        let said = body["message"].as_str().map(str::trim_end).map(str::to_owned);
        assert_eq!((status, said), (500, Some(format!("create storage failed: {says}"))), "{changed:?}");
        assert!(client.ask("GET", "/storage/off1", "").0 >= 400);
    }
    let (status, body) = client.ask("POST", "/storage", &form(&[("namespace", "nosuchns")]));
    assert_eq!((status, &body["data"]["storage"]), (200, &json!("off1")));
    assert!(body["data"]["config"]["encryption-key"].as_str().expect("the key, once").contains("AAAA"));
    let (_, list) = client.ask("GET", "/storage?type=pbs", "");
    let entry = &list["data"][0];
    assert_eq!(
        (&entry["namespace"], &entry["encryption-key"]),
        (&json!("nosuchns"), &json!(fingerprint("6e")))
    );
    assert!(!list.to_string().contains(SECRET) && !list.to_string().contains("AAAA"));
    let (status, body) = client.ask("POST", "/storage", &form(&[]));
    assert_eq!(
        (status, body["message"].as_str()),
        (500, Some("create storage failed: storage ID 'off1' already defined\n"))
    );
    let (status, body) = client.ask("PUT", "/storage/off1", "server=10.66.0.2");
    assert_eq!(status, 500);
    assert_eq!(body["message"], "update storage failed: can't change value of fixed parameter 'server'\n");
    let (status, body) = client.ask("PUT", "/storage/off1", "disable=1");
    assert_eq!((status, body), (200, json!({ "data": { "storage": "off1", "type": "pbs", "config": {} } })));
    assert_eq!(client.ask("GET", "/storage?type=pbs", "").1["data"][0]["disable"], 1);
}

#[test]
fn shares_need_their_server_and_a_mount_point_its_disk() {
    let state = tempfile::tempdir().expect("folder");
    let opened = open(state.path());
    let client = Client::of(&opened);
    let nfs = "storage=nas1&type=nfs&server=nas&export=/srv/bk&content=backup";
    let (status, body) = client.ask("POST", "/storage", nfs);
    assert_eq!(
        (status, body["message"].as_str()),
        (500, Some("create storage failed: storage 'nas1' is not online\n"))
    );
    std::fs::create_dir_all(state.path().join("run/outside/nas")).expect("server");
    assert_eq!(client.ask("POST", "/storage", nfs).0, 200);
    let (status, body) = client.ask("POST", "/storage", "storage=cifs1&type=cifs&server=nas&content=backup");
    assert_eq!(
        (status, body["message"].as_str()),
        (500, Some("missing value for required option 'share'\n"))
    );
    let dir = "storage=usb1&type=dir&path=/mnt/holdfast/usb1&is_mountpoint=1&content=backup";
    let (status, body) = client.ask("POST", "/storage", dir);
    assert_eq!(status, 500);
    assert!(body["message"].as_str().expect("a sentence").contains("is not mounted: '/mnt/holdfast/usb1'"));
    std::fs::create_dir_all(state.path().join("run/mounted")).expect("marks");
    std::fs::write(state.path().join("run/mounted/usb1"), "").expect("mark");
    assert_eq!(client.ask("POST", "/storage", dir).0, 200);
}
