//! Tests of the search for data on the root disk.

use std::fs;
use std::os::unix::fs::symlink;

use holdfast_protocol::root_disk::RootDiskKind;

use super::*;

struct Guest(tempfile::TempDir);

impl Guest {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn mounted(&self, points: &[&str]) {
        let line = |point: &&str| format!("36 35 98:0 / {point} rw,noatime master:1 - ext4 /dev/x rw\n");
        let lines: String = points.iter().map(line).collect();
        self.write("proc/self/mountinfo", &lines);
    }

    fn search(&self, limits: Limits) -> RootDiskData {
        search(&Paths::new(self.0.path()), limits)
    }

    fn found(&self) -> Vec<(RootDiskKind, String, u64)> {
        let data = self.search(Limits::USUAL);
        assert_eq!(data.coverage, Coverage::Whole, "{data:?}");
        let item = |item: RootDiskItem| (item.kind, item.path.as_str().to_owned(), item.bytes);
        data.items.into_iter().map(item).collect()
    }
}

#[test]
fn a_fresh_guest_has_no_data() {
    let guest = Guest::new();
    assert_eq!(guest.found(), []);
    for folder in ["home", "srv", "opt/containerd", "var/lib/mysql", "var/lib/docker/volumes", "root/.cache"]
    {
        fs::create_dir_all(guest.0.path().join(folder)).unwrap();
    }
    guest.write("root/.bashrc", "alias ll='ls -l'");
    guest.write("root/.cache/motd", "x");
    guest.write("etc/motd", "x");
    guest.write("opt/tool/run", "of a package");
    guest.write("var/lib/dpkg/info/tool.list", "/.\n/opt\n/opt/tool\n/opt/tool/run\n");
    assert_eq!(guest.found(), []);
}

#[test]
fn each_kind_of_data_is_found_with_its_size_the_largest_first() {
    use RootDiskKind::{Database, DockerBind, DockerVolume, Files, Home};
    let guest = Guest::new();
    guest.write("var/lib/postgresql/15/main/base/1", &"x".repeat(900));
    guest.write("var/lib/docker/volumes/shop_db/_data/ibdata1", &"x".repeat(800));
    guest.write("srv/wiki/pages", &"x".repeat(700));
    guest.write("var/www/index.html", &"x".repeat(30));
    guest.write("opt/tool/run", "of a package");
    guest.write("opt/tool/own.conf", &"x".repeat(500));
    guest.write("var/lib/dpkg/info/tool.list", "/opt/tool\n/opt/tool/run\n");
    guest.write("home/ann/notes", &"x".repeat(400));
    guest.write("root/.bash_history", "ls");
    guest.write("root/.ssh/authorized_keys", &"x".repeat(60));
    let mounts = r#"{"MountPoints":{
        "/data":{"Type":"bind","Source":"/data/app","RW":true},
        "/wiki":{"Type":"bind","Source":"/srv/wiki/pages","RW":true},
        "/read":{"Type":"bind","Source":"/data/read","RW":false},
        "/sock":{"Type":"bind","Source":"/var/run/docker.sock","RW":true},
        "/out":{"Type":"bind","Source":"/data/../../out","RW":true},
        "/db":{"Type":"volume","Name":"shop_db","Source":"/var/lib/docker/volumes/shop_db/_data","RW":true}}}"#;
    guest.write("var/lib/docker/containers/abc/config.v2.json", mounts);
    guest.write("data/app/state", &"x".repeat(600));
    guest.write("data/read/x", "x");
    let expected = [
        (Database, "/var/lib/postgresql", 900),
        (DockerVolume, "/var/lib/docker/volumes/shop_db", 800),
        (Files, "/srv/wiki", 700),
        (DockerBind, "/data/app", 600),
        (Files, "/opt/tool", 500),
        (Home, "/home/ann", 400),
        (Home, "/root", 60),
        (Files, "/var/www", 30),
    ];
    let expected: Vec<_> = expected.map(|(kind, path, bytes)| (kind, path.to_owned(), bytes)).into();
    assert_eq!(guest.found(), expected);
}

#[test]
fn what_is_mounted_or_behind_a_link_is_not_on_the_root_disk() {
    let guest = Guest::new();
    for path in ["srv/db/state", "var/lib/mysql/ibdata1", "home/ann/x", "opt/with blank/x", "opt/app/data/x"]
    {
        guest.write(path, "data");
    }
    guest.mounted(&["/", "/srv/db", "/var/lib/mysql", "/home", r"/opt/with\040blank", "/opt/app/data"]);
    assert_eq!(guest.found(), []);
    // A link to a volume, one to the whole disk, and one in a circle.
    symlink("../srv/db", guest.0.path().join("var/lib/redis")).unwrap();
    symlink("/", guest.0.path().join("opt/app/all")).unwrap();
    symlink("../app", guest.0.path().join("opt/app/round")).unwrap();
    assert_eq!(guest.found(), []);
    // The kernel's own files are another device.
    symlink("/proc", guest.0.path().join("var/www")).unwrap();
    assert_eq!(guest.found(), []);
}

#[test]
fn a_limit_ends_the_search_and_is_said() {
    let guest = Guest::new();
    for n in 0..40 {
        guest.write(&format!("srv/many/{n}"), "x");
    }
    let few = Limits { entries: 10, ..Limits::USUAL };
    let data = guest.search(few);
    assert_eq!(data.coverage, Coverage::Partial);
    assert!(data.items.iter().all(|item| item.bytes <= 10), "{data:?}");
    let late = Limits { time: Duration::ZERO, ..Limits::USUAL };
    assert_eq!(guest.search(late).coverage, Coverage::Partial);
    assert_eq!(guest.search(Limits::USUAL).coverage, Coverage::Whole);
}

#[test]
fn the_list_is_bounded_and_its_paths_are_plain() {
    let guest = Guest::new();
    guest.write("srv/\u{1b}[2J\"ä/data", &"x".repeat(99));
    guest.write("srv/a/data", "x");
    assert_eq!(guest.found()[0], (RootDiskKind::Files, "/srv/?[2J??".to_owned(), 99));
    // Many places are one folder with their sum.
    for n in 0..30 {
        guest.write(&format!("srv/stack{n:02}/data"), &"x".repeat(10));
        guest.write(&format!("var/lib/docker/volumes/v{n:02}/_data/x"), "x");
    }
    guest.write("root/notes", "xx");
    let folders = [
        (RootDiskKind::Files, "/srv".to_owned(), 400),
        (RootDiskKind::DockerVolume, "/var/lib/docker/volumes".to_owned(), 30),
        (RootDiskKind::Home, "/root".to_owned(), 2),
    ];
    assert_eq!(guest.found(), folders);
    // Mounts of containers may be anywhere.
    let mount = |n: u32| format!(r#""/{n}":{{"Type":"bind","Source":"/data{n}/x","RW":true}}"#);
    let mounts: Vec<String> = (0..12).map(mount).collect();
    let text = format!(r#"{{"MountPoints":{{{}}}}}"#, mounts.join(","));
    guest.write("var/lib/docker/containers/abc/config.v2.json", &text);
    (0..12).for_each(|n| guest.write(&format!("data{n}/x/state"), "1234567890"));
    let data = guest.search(Limits::USUAL);
    assert_eq!((data.items.len(), data.coverage), (ITEMS_MAX, Coverage::Partial));
}

#[test]
fn a_broken_file_of_docker_leaves_the_search_incomplete() {
    let guest = Guest::new();
    guest.write("var/lib/docker/containers/abc/config.v2.json", "{");
    assert_eq!(guest.search(Limits::USUAL).coverage, Coverage::Partial);
    guest.write("var/lib/docker/containers/abc/config.v2.json", "{}");
    guest.write("etc/docker/daemon.json", r#"{"data-root":"/docker"}"#);
    guest.write("docker/volumes/x/_data/x", "12345");
    assert_eq!(guest.found(), [(RootDiskKind::DockerVolume, "/docker/volumes/x".to_owned(), 5)]);
}

#[test]
fn a_search_runs_apart_from_the_hello_and_its_result_comes_later() {
    let guest = Guest::new();
    guest.write("srv/wiki/pages", "data");
    let (mut watch, paths) = (Watch::default(), Paths::new(guest.0.path()));
    // Only the first call begins one: another is not due for an hour.
    let found = std::iter::repeat_with(|| watch.latest(&paths)).inspect(|_| std::thread::yield_now());
    assert_eq!(found.flatten().next().unwrap().items.len(), 1);
}
