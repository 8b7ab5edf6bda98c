//! Tests of the settings file and each mistake in it.

use std::path::Path;

use super::*;

pub const GOOD: &str = r#"
[proxmox]
url = "https://127.0.0.1:8006"
node = "pve1"
pins = ["spki/sha256:0000000000000000000000000000000000000000000000000000000000000000"]
pool = "holdfast"
storage = "local-lvm"
bridge = "vmbr1"
vmid_range = [10000, 10999]
[proxmox.tokens.observe]
id = "holdfast@pve!observe"
secret_file = "/etc/holdfast/tokens/observe"
[proxmox.tokens.operate]
id = "holdfast@pve!operate"
secret_file = "/etc/holdfast/tokens/operate"
[proxmox.tokens.allocate]
id = "holdfast@pve!allocate"
secret_file = "/etc/holdfast/tokens/allocate"

[[golden]]
version = "2026.11.1"
archive = "local:backup/vzdump-lxc-9000-2026_11_01-00_00_00.tar.zst"
sha256 = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
file = "/var/lib/vz/dump/golden.tar.zst"

[local_api]
listen = ["10.66.0.1:8443"]
"#;

fn refused_at(text: &str) -> String {
    match Settings::parse(text, Path::new("agent.toml")) {
        Err(SettingsError::Form { at, .. } | SettingsError::Value { at, .. }) => at,
        Err(other) => panic!("{other}"),
        Ok(_) => "accepted".to_owned(),
    }
}

#[test]
fn a_good_configuration_is_read() {
    let settings = Settings::parse(GOOD, Path::new("agent.toml")).unwrap();
    assert_eq!(settings.proxmox.vmid_range.map(Vmid::number), [10_000, 10_999]);
    assert_eq!(settings.state.dir, Path::new("/var/lib/holdfast"));
    assert_eq!(settings.golden.len(), 1);
}

#[test]
fn every_mistake_is_refused_at_its_place() {
    let brake = |lines: &str| format!("[brake]\n{lines}\n[local_api]");
    let cases: [(&str, &str, &str); 22] = [
        ("url = \"https://127.0.0.1:8006\"", "url = \"http://127.0.0.1:8006\"", "proxmox.url"),
        ("url = \"https://127.0.0.1:8006\"", "url = \"https://h/api2/json\"", "proxmox.url"),
        ("node = \"pve1\"", "node = \"pve 1\"", "proxmox.node"),
        ("node = \"pve1\"", "node = \"pve1\"\nforce = true", "proxmox.force"),
        ("pins = [\"spki/sha256:0", "pins = [\"sha256:0", "proxmox.pins[0]"),
        ("[10000, 10999]", "[10999, 10000]", "proxmox.vmid_range"),
        ("[10000, 10999]", "[10000]", "proxmox.vmid_range"),
        ("[10000, 10999]", "[99, 10000]", "proxmox.vmid_range[0]"),
        ("holdfast@pve!operate", "holdfast@pve", "proxmox.tokens.operate.id"),
        ("/etc/holdfast/tokens/allocate", "allocate", "proxmox.tokens.allocate.secret_file"),
        ("local:backup/", "local:vztmpl/", "golden[0].archive"),
        ("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "aa", "golden[0].sha256"),
        ("10.66.0.1:8443", "0.0.0.0:8443", "local_api.listen[0]"),
        ("10.66.0.1:8443", "[::]:8443", "local_api.listen[0]"),
        ("[\"10.66.0.1:8443\"]", "[]", "local_api.listen"),
        ("[local_api]", "[state]\ndir = \"state\"\n[local_api]", "state.dir"),
        ("[local_api]", "[[[local_api]", "."),
        ("[local_api]", "[brake]\nshare_percent = 20\n[local_api]", "brake"),
        (
            "[local_api]",
            &brake("at_least = 2\nshare_percent = 101\nwindow_hours = 24"),
            "brake.share_percent",
        ),
        ("[local_api]", &brake("at_least = 2\nshare_percent = 20\nwindow_hours = 0"), "brake.window_hours"),
        ("[local_api]", &brake("at_least = 2\nshare_percent = 20\nwindow_hours = 169"), "brake.window_hours"),
        ("[local_api]", &brake("at_least = -1\nshare_percent = 20\nwindow_hours = 24"), "brake.at_least"),
    ];
    for (from, to, at) in cases {
        let text = GOOD.replacen(from, to, 1);
        assert_ne!(text, GOOD, "{from} is not in the sample");
        assert_eq!(refused_at(&text), at, "{to}");
    }
    assert_eq!(
        refused_at(&GOOD.replace(
            "pins = [\"spki/sha256:0000000000000000000000000000000000000000000000000000000000000000\"]",
            "pins = []"
        )),
        "proxmox.pins"
    );
}

/// A twin that is used for anything else would be granted what its use there must not have.
#[test]
fn a_counterpart_is_a_storages_own_and_nothing_else() {
    let with = |twins: &str| {
        let scratch = "[scratch]\npool = \"try\"\nvmid_range = [900, 909]\nstorage = \"slow\"\nmemory_mib = 512\ncores = 1\n\
             [scratch.token]\nid = \"holdfast@pve!scratch\"\nsecret_file = \"/s\"\n[scratch.twins]\n";
        let entries = "[storage_entries]\nsealed_token = \"/t\"\ntargets = [\"off1\", \"off2\"]\n";
        let backups = GOOD.replacen("bridge =", "backup_storage = \"back\"\nbridge =", 1);
        refused_at(&format!("{backups}{scratch}{twins}\n{entries}"))
    };
    assert_eq!(with("off1 = \"off1-read\"\nback = \"back-read\""), "accepted");
    for counterpart in ["off1", "off2", "back", "slow", "local-lvm", "local"] {
        assert_eq!(with(&format!("off1 = \"{counterpart}\"")), "scratch.twins.off1", "{counterpart}");
    }
    assert_eq!(with("elsewhere = \"off1-read\""), "scratch.twins.elsewhere");
    assert_eq!(with("off1 = \"read\"\noff2 = \"read\""), "scratch.twins.off1");
    assert_eq!(with("off1 = \"\""), "scratch.twins.off1");
}

#[test]
fn a_missing_file_says_what_to_do() {
    let error = Settings::load(&ConfigPath { config: "/nonexistent/agent.toml".into() }).unwrap_err();
    assert!(error.to_string().contains("agentd setup"), "{error}");
}
