//! Tests of the wire guard.
#![forbid(unsafe_code)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    dead_code,
    reason = "the helpers of a test fail the test, and not every test uses every helper"
)]

use crate::client::{Client, builder, open};
use pve_sim::guard::read_book;

const ARCHIVE: &str = "ostemplate=backup2:backup/vzdump-lxc-140-2026_11_21-04_00_56.tar.zst";

/// Method, path, form; then the parameter that is to be caught.
const NEVER: &[(&str, &str, &str, &str)] = &[
    ("POST", "/nodes/pve1/lxc", "vmid=100&restore=1&unprivileged=1&{A}&force=1", "force"),
    ("POST", "/nodes/pve1/lxc", "vmid=100&restore=1&unprivileged=1&{A}&force=0", "force"),
    ("POST", "/nodes/pve1/lxc", "vmid=150&restore=1&unprivileged=1&{A}&unique=1", "unique"),
    ("POST", "/nodes/pve1/lxc", "vmid=150&restore=1&unprivileged=1&{A}&features=nesting%3D1", "features"),
    ("POST", "/nodes/pve1/lxc", "vmid=150&restore=1&unprivileged=1&{A}&tags=a", "tags"),
    ("POST", "/nodes/pve1/lxc", "vmid=150&restore=1&unprivileged=1&{A}&start=1", "start"),
    ("POST", "/nodes/pve1/lxc", "vmid=150&restore=1&unprivileged=1&{A}&password=letmein", "password"),
    (
        "POST",
        "/nodes/pve1/lxc",
        "vmid=150&restore=1&unprivileged=1&{A}&ignore-unpack-errors=1",
        "ignore-unpack-errors",
    ),
    ("POST", "/nodes/pve1/lxc", "vmid=150&restore=1&unprivileged=1&{A}&mp0=/etc,mp%3D/x", "mp0"),
    ("POST", "/nodes/pve1/lxc", "vmid=150&restore=1&{A}", "unprivileged"),
    ("POST", "/nodes/pve1/lxc", "vmid=150&unprivileged=1&{A}", "restore"),
    ("DELETE", "/nodes/pve1/lxc/100?force=1", "", "force"),
    ("DELETE", "/nodes/pve1/lxc/100?purge=1", "", "purge"),
    ("DELETE", "/nodes/pve1/lxc/100?destroy-unreferenced-disks=1", "", "destroy-unreferenced-disks"),
    ("DELETE", "/nodes/pve1/lxc/100?anything=1", "", "anything"),
    ("DELETE", "/nodes/pve1/lxc/100/snapshot/a?force=1", "", "force"),
    ("POST", "/nodes/pve1/lxc/100/status/stop", "skiplock=1", "skiplock"),
    ("POST", "/nodes/pve1/lxc/100/status/stop", "overrule-shutdown=1", "overrule-shutdown"),
    ("POST", "/nodes/pve1/lxc/100/status/start", "skiplock=1", "skiplock"),
    ("POST", "/nodes/pve1/lxc/100/status/shutdown", "forceStop=1", "forceStop"),
    ("POST", "/nodes/pve1/vzdump", "vmid=100&remove=0&stop=1", "stop"),
    ("POST", "/nodes/pve1/vzdump", "vmid=100&remove=0&script=/bin/true", "script"),
    ("POST", "/nodes/pve1/vzdump", "vmid=100&remove=0&dumpdir=/tmp", "dumpdir"),
    ("POST", "/nodes/pve1/vzdump", "vmid=100&remove=0&tmpdir=/tmp", "tmpdir"),
    ("POST", "/nodes/pve1/vzdump", "remove=0&all=1", "all"),
    ("POST", "/nodes/pve1/vzdump", "vmid=100&remove=0&prune-backups=keep-last%3D1", "prune-backups"),
    ("DELETE", "/nodes/pve1/storage/backup2/prunebackups", "", "prunebackups"),
    ("DELETE", "/nodes/pve1/storage/backup2/prunebackups?prune-backups=keep-last%3D1", "", "prunebackups"),
    ("POST", "/nodes/pve1/vzdump", "vmid=100&remove=0&exclude-path=/srv/*", "exclude-path"),
    ("POST", "/nodes/pve1/vzdump", "vmid=100&remove=0&exclude-path=/?*", "exclude-path"),
    (
        "POST",
        "/nodes/pve1/vzdump",
        "vmid=100&remove=0&exclude-path=/srv/media/?*&exclude-path=core",
        "exclude-path",
    ),
    ("POST", "/nodes/pve1/vzdump", "vmid=100", "remove"),
    ("POST", "/nodes/pve1/lxc/100/move_volume", "volume=mp0&storage=labdir&delete=1", "delete"),
    ("PUT", "/nodes/pve1/lxc/100/config", "features=keyctl%3D1", "features"),
    ("PUT", "/nodes/pve1/lxc/100/config", "hookscript=local:snippets/a", "hookscript"),
    ("PUT", "/nodes/pve1/lxc/100/config", "mp3=/srv,mp%3D/x", "mp3"),
    ("PUT", "/nodes/pve1/lxc/100/config", "dev0=/dev/sda", "dev0"),
    ("PUT", "/nodes/pve1/lxc/100/config", "lock=backup", "lock"),
    ("PUT", "/nodes/pve1/lxc/100/config", "revert=memory", "revert"),
    ("PUT", "/nodes/pve1/lxc/100/config", "revert=nameserver,mp0", "revert"),
];

#[test]
fn each_is_caught_and_none_is_done() {
    let state = tempfile::tempdir().expect("folder");
    let opened = builder(state.path()).guard().open().expect("an instance");
    let client = Client::of(&opened);
    let before = opened.node.world().guests.all().clone();
    for (n, (method, path, form, parameter)) in NEVER.iter().enumerate() {
        let response = client.send(method, path, &form.replace("{A}", ARCHIVE));
        assert_eq!(response.status, 500, "{method} {path} {form}");
        assert_eq!(response.reason, "wire guard: this must never be sent", "{method} {path} {form}");
        let found = opened.node.guard.offences();
        assert_eq!(found.len(), n + 1, "{method} {path} {form}: {found:#?}");
        let last = found.last().expect("an offence");
        assert_eq!(last.parameter, *parameter);
        assert!(
            !last.path.contains('?') && !last.to_string().contains("letmein"),
            "no value is kept: {last}"
        );
    }
    assert_eq!(opened.node.world().guests.all(), &before, "nothing was done");
    assert!(opened.node.tasks.all().0.is_empty() && opened.node.tasks.all().1.is_empty());
    // The book outlives the instance, and the next instance continues it.
    let kept = opened.node.guard.offences();
    drop((client, opened));
    assert_eq!(read_book(&state.path().join("run")).expect("the book"), kept);
    assert_eq!(builder(state.path()).guard().open().expect("again").node.guard.offences(), kept);
}

#[test]
fn a_parameter_in_json_is_caught_too() {
    let state = tempfile::tempdir().expect("folder");
    let opened = builder(state.path()).guard().open().expect("an instance");
    let request = pve_sim::wire::Request {
        method: "POST".into(),
        target: "/api2/json/nodes/pve1/lxc/100/status/stop".into(),
        headers: vec![("content-type".into(), "application/json".into())],
        body: br#"{"skiplock":1}"#.to_vec(),
    };
    assert_eq!(pve_sim::http::entry::serve(&opened.node, &request).status, 500);
    assert_eq!(opened.node.guard.offences().len(), 1);
}

#[test]
fn what_we_send_passes_and_an_instance_without_guard_is_only_proxmox() {
    let state = tempfile::tempdir().expect("folder");
    let opened = builder(state.path()).guard().open().expect("an instance");
    let client = Client::of(&opened);
    let form = format!("vmid=150&restore=1&unprivileged=1&{ARCHIVE}&storage=labbtrfs&pool=labpool");
    assert_eq!(client.task("POST", "/nodes/pve1/lxc", &form), "OK");
    assert_eq!(client.ask("PUT", "/nodes/pve1/lxc/150/config", "mp5=labbtrfs:1,mp%3D/x").0, 200);
    assert_eq!(client.ask("PUT", "/nodes/pve1/lxc/150/config", "delete=mp5").0, 200);
    assert_eq!(client.ask("PUT", "/nodes/pve1/lxc/150/config", "revert=nameserver,searchdomain").0, 200);
    assert_eq!(client.task("POST", "/nodes/pve1/vzdump", "vmid=150&storage=backup2&remove=0"), "OK");
    assert_eq!(client.task("DELETE", "/nodes/pve1/lxc/150", ""), "OK");
    assert_eq!(opened.node.guard.offences(), Vec::new());

    let state = tempfile::tempdir().expect("folder");
    let plain = open(state.path());
    assert_eq!(Client::of(&plain).ask("DELETE", "/nodes/pve1/lxc/100?purge=1", "").0, 200);
    assert_eq!(plain.node.guard.offences(), Vec::new());
    assert!(read_book(&state.path().join("run")).is_err(), "nobody watched, and that is said");
}
