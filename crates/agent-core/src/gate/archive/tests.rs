//! Tests of hostile configurations, each next to an accepted one.

use super::*;

/// What the golden's recipe writes, and a real node's backup.
const GOLDEN: &str = "arch: amd64\ncores: 1\nfeatures: nesting=1,keyctl=1\nhostname: golden\nmemory: 512\n\
    net0: name=eth0,bridge=vmbr0,ip=dhcp\nostype: debian\n\
    rootfs: local:900001/vm-900001-disk-0.raw,size=2G\nswap: 0\nunprivileged: 1\n";

const OWN: &str = "#holdfast guest 018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55\n#Kept by holdfast%3A caf%C3%A9\n\
    arch: amd64\nhostname: web-1\nmemory: 512\n\
    mp0: tank:300/vm-300-disk-1.raw,mp=/srv/db,backup=1,size=1G\n\
    mp1: zfs:basevol-9-disk-0/subvol-300-disk-2,mp=/srv/media files,acl=1,mountoptions=noatime;nodev,size=512M\n\
    net0: name=eth0,bridge=vmbr0,hwaddr=BC:24:11:EE:25:8E,ip=10.66.0.140/24,type=veth\nonboot: 1\nostype: debian\n\
    protection: 1\nrootfs: tank:300/vm-300-disk-0.raw,size=2G\nswap: 0\ntags: hf-018f3c1e;holdfast\n\
    unprivileged: 1\nunused0: local-lvm:vm-300-disk-7\nlxc.environment.runtime: HOLDFAST_BOOTSTRAP=an-old-ticket\n";

/// Refused at any place and in any guest's archive.
const HOSTILE: &[&str] = &[
    // Not the one form in which Proxmox writes.
    "cores : 2",
    "cores:2",
    "cores=2",
    "cores",
    " cores: 2",
    "cores:  2",
    "cores: 2 ",
    "cores: ",
    ": 2",
    "Cores: 2",
    "cores: 2\r",
    "cores: 2\0",
    "co\u{8}res: 2",
    "cores: 2\t",
    "#a\u{feff}",
    "cpulimit: ２",
    "cores: \u{fffd}",
    "timezone: Europe/Zürich",
    "cores0x: 1",
    "=: 1",
    "description: of itself",
    // What Proxmox reads on past, or reads as a section.
    "[",
    "[before]",
    "[pve:pending]",
    "[1x",
    "[a b]",
    " [x]",
    "[x] #",
    // Root outside.
    "unprivileged: 0",
    // Raw lines, in whatever spelling.
    "lxc.idmap: u 0 0 65536",
    "lxc.idmap = u 0 0 65536",
    "lxc.cap.drop:",
    "lxc.mount.entry: /etc etc none bind 0 0",
    "LXC.idmap: x",
    " lxc.idmap: x",
    "lxc.apparmor.profile: unconfined",
    "lxc.environment: A=b",
    "lxc.environment.runtime = A=b",
    "lxc.environment.runtime: no variable",
    "lxc.environment.runtime: no name=b",
    "lxc.environment.runtime: =b",
    "lxc.environment.runtime.x: A=b",
    // Devices.
    "dev0: /dev/kvm",
    "dev1: path=/dev/sda,mode=0666",
    "dev00: /dev/kvm",
    "dev255: /dev/mem",
    "dev256: /dev/kvm",
    // Scripts and inits of others.
    "hookscript: local:snippets/x.pl",
    "entrypoint: /bin/sh",
    // Bind and device mounts, paths that lead elsewhere, and requests for what was never made.
    "mp9: /etc,mp=/host",
    "mp9: /dev/sdb1,mp=/host",
    "mp9: volume=/etc,mp=/host",
    "mp9: mp=/host,/etc",
    "mp9: mp=/host,volume=/etc",
    "mp9: tank:../../etc,mp=/host",
    "mp9: tank:a/./b,mp=/host",
    "mp9: tank:/etc,mp=/host",
    "mp9: tank:a//b,mp=/host",
    "mp9: tank:8,mp=/host",
    "mp9: tank:,mp=/host",
    "mp9: 1tank:a,mp=/host",
    "mp9: tank:vm-1-disk-1,mp=/../etc",
    "mp9: tank:vm-1-disk-1,mp=etc",
    "mp9: tank:vm-1-disk-1,mp=/a//b",
    "mp9: tank:vm-1-disk-1,mp=/",
    "mp9: tank:vm-1-disk-1,mp=/a,mp=/b",
    "mp9: tank:vm-1-disk-1,mp=/a,backup=yes",
    "mp9: tank:vm-1-disk-1,mp=/a,idmap=passthrough",
    "mp9: tank:vm-1-disk-1,mp=/a,mountoptions=suid",
    "mp9: tank:vm-1-disk-1,mp=/a,mountoptions=nodev;exec",
    "mp9: tank:vm-1-disk-1,mp=/a,size=1X",
    "mp9: tank:vm-1-disk-1,mp=/a,size=+1G",
    "mp9: tank:vm-1-disk-1,mp=/a,size=99999999999T",
    "mp256: tank:a,mp=/a",
    "mp00: tank:a,mp=/a",
    "unused9: /dev/sdb",
    "unused01: tank:vm-1-disk-1",
    "unused9: volume=/etc",
    // Features beyond the two.
    "features: mount=nfs",
    "features: nesting=1,mount=nfs",
    "features: fuse=1",
    "features: mknod=1",
    "features: nesting",
    "features: nesting=1, keyctl=1",
    "features: force_rw_sys=1",
    // A guest that is not at rest, and keys that are unknown here.
    "lock: backup",
    "template: 1",
    "parent: before",
    "snapstate: delete",
    "snaptime: 1",
    "env: A=b",
    "quantum: 1",
    "args: -device x",
    "net32: name=eth1,bridge=vmbr0",
    "net01: name=eth1,bridge=vmbr0",
];

fn gib(n: u32) -> DiskGib {
    DiskGib::try_from(n).unwrap()
}

fn uid() -> GuestUid {
    "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55".parse().unwrap()
}

fn golden(text: &str) -> Result<(), ArchiveRefused> {
    Lines::read(text).and_then(|lines| judge_golden(&lines, gib(2)))
}

fn backup(text: &str, nets: Nets) -> Result<(), ArchiveRefused> {
    Lines::read(text).and_then(|lines| judge_backup(&lines, uid(), nets))
}

/// `text` with a line put in as number `at`, in place of the line with its key if there is one.
fn with(text: &str, at: usize, line: &str) -> String {
    let key = line.split(':').next().unwrap_or_default();
    let mut lines: Vec<&str> = text.lines().filter(|old| !old.starts_with(&format!("{key}: "))).collect();
    lines.insert(at - 1, line);
    lines.join("\n")
}

/// Held to the very line, and named by it.
fn names(result: Result<(), ArchiveRefused>, number: usize, line: &str) {
    match result {
        Err(ArchiveRefused::Line { number: at, line: shown, .. }) => {
            assert_eq!((at, shown.as_str()), (number, line))
        }
        other => panic!("{line:?}: {other:?}"),
    }
}

#[test]
fn each_hostile_line_is_named_with_its_number_and_its_counterpart_passes() {
    assert_eq!(golden(GOLDEN), Ok(()));
    assert_eq!(backup(OWN, Nets::First), Ok(()));
    assert_eq!(backup(OWN, Nets::Rewritten), Ok(()));
    for line in HOSTILE {
        for at in [1, 4] {
            names(golden(&with(GOLDEN, at, line)), at, line);
            names(backup(&with(OWN, at, line), Nets::First), at, line);
            names(backup(&with(OWN, at, line), Nets::Rewritten), at, line);
        }
    }
    let rootfs = [
        "/srv/root",
        "/dev/sda1",
        "volume=/srv/root",
        "size=2G,/srv/root",
        "local:8",
        "local:../x,size=2G",
        "local:900001/vm-900001-disk-0.raw,mp=/a,size=2G",
        "local:900001/vm-900001-disk-0.raw,backup=1,size=2G",
    ];
    for value in rootfs {
        let line = format!("rootfs: {value}");
        names(golden(&with(GOLDEN, 8, &line)), 8, &line);
        names(backup(&with(OWN, 8, &line), Nets::First), 8, &line);
    }
}

/// The reason for the refusal says who must make the archive again.
#[test]
fn each_kind_of_line_is_refused_by_its_own_reason() {
    let scripts = "no script of the host runs for a guest";
    let rest = "it is no archive of a guest at rest";
    let outside = "a guest never sees a path or a device of the host";
    let written = "it is not written as Proxmox writes it, `key: value`";
    for (line, wanted) in [
        ("hookscript: local:snippets/x.pl", scripts),
        ("entrypoint: /bin/sh", "the golden starts by its own init"),
        ("lock: backup", rest),
        ("template: 1", rest),
        ("parent: before", rest),
        ("snapstate: delete", rest),
        ("dev0: /dev/kvm", "a guest never sees a device of the host"),
        ("dev255: /dev/kvm", "a guest never sees a device of the host"),
        ("dev256: /dev/kvm", "this agent does not know it"),
        ("net1: name=eth1,bridge=vmbr0", "a guest has the one network that the document gives it"),
        ("net32: name=eth1,bridge=vmbr0", "this agent does not know it"),
        ("mp255: tank:a,mp=/a", "a golden has no volume but its root disk"),
        ("mp256: tank:a,mp=/a", "this agent does not know it"),
        ("unused0: tank:a", "a golden has no volume but its root disk"),
        ("features: mount=nfs", "only nesting and keyctl are known to be safe"),
        ("unprivileged: 0", PRIVILEGED),
        ("quantum: 1", "this agent does not know it"),
        ("rootfs: /srv/root", outside),
        ("rootfs: volume=/srv/root", outside),
        ("rootfs: tank", "it names no volume of a storage"),
        ("quantum_leap1: 1", "this agent does not know it"),
        ("Quantum: 1", written),
        ("_quantum: 1", written),
        ("quantum-leap: 1", written),
        ("1: 1", written),
    ] {
        match golden(&with(GOLDEN, 1, line)) {
            Err(ArchiveRefused::Line { why, .. }) => assert_eq!(why, wanted, "{line}"),
            other => panic!("{line}: {other:?}"),
        }
    }
}

/// A second line of a key is another guest than the first: Proxmox takes the last.
#[test]
fn no_key_stands_twice() {
    for line in ["unprivileged: 1", "cores: 1", "rootfs: local:900001/vm-900001-disk-0.raw,size=2G"] {
        names(golden(&format!("{GOLDEN}{line}")), 11, line);
    }
}

/// What a golden may not bring, and a guest's own backup may.
#[test]
fn a_golden_is_one_root_disk_on_one_network() {
    for line in [
        "mp0: local:900001/vm-900001-disk-1.raw,mp=/data,size=1G",
        "unused0: local:900001/vm-900001-disk-1.raw",
        "net1: name=eth1,bridge=vmbr9",
        "net31: name=eth1,bridge=vmbr0",
    ] {
        names(golden(&with(GOLDEN, 5, line)), 5, line);
    }
    let second = with(OWN, 5, "net1: name=eth1,bridge=vmbr9");
    names(backup(&second, Nets::First), 5, "net1: name=eth1,bridge=vmbr9");
    assert_eq!(backup(&second, Nets::Rewritten), Ok(()), "each network of a copy is written anew");
    let small = "rootfs: local:900001/vm-900001-disk-0.raw";
    names(golden(&with(GOLDEN, 8, small)), 8, small);
}

#[test]
fn what_is_missing_is_refused_too() {
    let without = |text: &str, key: &str| {
        text.lines().filter(|line| !line.starts_with(key)).map(|line| format!("{line}\n")).collect::<String>()
    };
    assert_eq!(golden(&without(GOLDEN, "unprivileged")), Err(ArchiveRefused::Privileged));
    assert_eq!(backup(&without(OWN, "unprivileged"), Nets::First), Err(ArchiveRefused::Privileged));
    assert_eq!(golden(&without(GOLDEN, "rootfs")), Err(ArchiveRefused::NoRootfs));
    assert_eq!(golden(""), Err(ArchiveRefused::Privileged));
    let too_large = ArchiveRefused::TooLarge { archive_bytes: 2 << 30, wanted: gib(1) };
    assert_eq!(Lines::read(GOLDEN).and_then(|lines| judge_golden(&lines, gib(1))), Err(too_large));
    for (size, fine) in
        [("2097152K", true), ("2048M", true), ("2147483648", true), ("2147483649", false), ("1T", false)]
    {
        assert_eq!(golden(&GOLDEN.replace("size=2G", &format!("size={size}"))).is_ok(), fine, "{size}");
    }
}

#[test]
fn a_backup_is_its_own_guests() {
    let other: GuestUid = "018f3c1f-6b1f-7c1d-9d0a-2f6d1c0b7a55".parse().unwrap();
    let lines = Lines::read(OWN).unwrap();
    assert_eq!(judge_backup(&lines, other, Nets::First), Err(ArchiveRefused::Anothers(other)));
    assert!(lines.description().ends_with("\nKept by holdfast: café\n"), "{:?}", lines.description());
    for (from, to) in [
        ("#holdfast guest ", "#another's guest "),
        ("#holdfast guest ", "#\n#holdfast guest "),
        ("tags: hf-018f3c1e;holdfast\n", ""),
        ("tags: hf-018f3c1e;holdfast", "tags: holdfast"),
    ] {
        assert_eq!(
            backup(&OWN.replace(from, to), Nets::First),
            Err(ArchiveRefused::Anothers(uid())),
            "{to:?}"
        );
    }
    assert_eq!(backup(&OWN.replace("hf-018f3c1e;holdfast", "holdfast,web hf-018f3c1e"), Nets::First), Ok(()));
}

/// An old bootstrap token is neither kept nor shown.
#[test]
fn the_environment_is_left_out() {
    let lines = Lines::read(OWN).unwrap();
    assert!(!format!("{lines:?}").contains("ticket"));
    assert_eq!(lines.get("lxc.environment.runtime"), None);
    assert_eq!(lines.iter().count(), 14);
    assert_eq!(lines.get("swap").map(|line| (line.number, line.value.as_str())), Some((13, "0")));
}

#[test]
fn size_is_bounded_and_a_long_line_is_shown_in_part() {
    let long = format!("{GOLDEN}#{}", "x".repeat(BYTES_MAX));
    assert_eq!(golden(&long), Err(ArchiveRefused::Size(long.len())));
    let full = format!("{GOLDEN}#{}", "x".repeat(BYTES_MAX - GOLDEN.len() - 1));
    assert_eq!(golden(&full), Ok(()));
    let deep = format!("{GOLDEN}[{}", "[".repeat(60_000));
    names(golden(&deep), 11, &"[".repeat(120));
}

fn made(change: impl FnOnce(&mut BTreeMap<String, String>)) -> Result<(), MadeRefused> {
    let lines = Lines::read(OWN).unwrap();
    let mut keys: BTreeMap<String, String> =
        lines.iter().map(|line| (line.key.clone(), line.value.clone())).collect();
    change(&mut keys);
    judge_made(&keys, &[], &"vmbr0".parse().unwrap())
}

/// What Proxmox made is held to the same rules, whatever the archive had shown.
#[test]
fn what_was_made_is_judged_again() {
    assert_eq!(made(|_| {}), Ok(()));
    for (key, value) in [
        ("dev0", "/dev/sda"),
        ("hookscript", "local:snippets/x.pl"),
        ("features", "nesting=1,mount=nfs"),
        ("mp3", "/etc,mp=/host"),
        ("unprivileged", "0"),
        ("template", "1"),
        ("net0", "name=eth0,bridge=vmbr9"),
        ("net0", "name=eth0"),
        ("net1", "name=eth1,bridge=vmbr0,bridge=vmbr9"),
        ("quantum", "1"),
    ] {
        let refused = made(|keys| drop(keys.insert(key.to_owned(), value.to_owned()))).unwrap_err();
        assert_eq!(refused.line, format!("{key}: {value}"));
    }
    assert_eq!(made(|keys| drop(keys.remove("unprivileged"))).unwrap_err().line, "unprivileged: 0");
    let raw = ["lxc.idmap: u 0 0 65536".to_owned()];
    let refused = judge_made(&BTreeMap::new(), &raw, &"vmbr0".parse().unwrap()).unwrap_err();
    assert_eq!(refused.line, raw[0]);
}

/// The archive of a lost guest was not inspected: what was restored from it is that guest, or is taken back.
#[test]
fn what_came_back_is_the_guest_that_was_lost_and_has_its_one_network() {
    let uid: GuestUid = "018f3c01-6b1f-7c1d-9d0a-2f6d1c0b7a55".parse().unwrap();
    let other: GuestUid = "018f3c02-6b1f-7c1d-9d0a-2f6d1c0b7a55".parse().unwrap();
    let judged = |mark, more: Option<(&str, &str)>| {
        let mut keys: BTreeMap<String, String> = [
            ("unprivileged", "1"),
            ("rootfs", "tank:301/vm-301-disk-0.raw,size=2G"),
            ("net0", "name=eth0,bridge=vmbr0"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
        keys.extend(more.map(|(key, value)| (key.to_owned(), value.to_owned())));
        judge_made_again(&keys, &[], &"vmbr0".parse().unwrap(), (uid, mark)).map_err(|refused| refused.line)
    };
    assert_eq!(judged(Mark::Of(uid), None), Ok(()));
    let second = ("net1", "name=eth1,bridge=vmbr0");
    assert_eq!(judged(Mark::Of(uid), Some(second)), Err("net1: name=eth1,bridge=vmbr0".to_owned()));
    assert_eq!(judged(Mark::Of(uid), Some(("dev0", "/dev/sda"))), Err("dev0: /dev/sda".to_owned()));
    for mark in [Mark::Of(other), Mark::None, Mark::Broken] {
        assert_eq!(judged(mark, None), Err(format!("{mark:?}")));
    }
}

#[test]
fn the_root_disks_size_is_read_where_it_is_said() {
    let size = |text: &str| rootfs_bytes(&Lines::read(text).unwrap());
    assert_eq!(size(GOLDEN), Some(2 << 30));
    assert_eq!(size("arch: amd64\nrootfs: local:900001/vm-900001-disk-0.raw\n"), None, "without a size");
    assert_eq!(size("arch: amd64\n"), None, "without a root disk");
}
