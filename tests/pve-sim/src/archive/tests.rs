//! Tests with genuine, hostile and broken archives.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::*;

const NO_BOUND: u64 = u64::MAX;
const GO_ON: fn() -> bool = || false;
const STOP: fn() -> bool = || true;

fn genuine(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("lab/archives").join(name)
}

fn archive_140() -> PathBuf {
    genuine("vzdump-lxc-140-2026_11_21-04_00_56.tar.zst")
}

fn guest_path(text: &str) -> GuestPath {
    GuestPath::parse(text).expect("a mount point")
}

/// Fresh directories for a root file system and for mount points.
fn volumes(folder: &TempDir, mounts: &[&str]) -> Volumes {
    let make = |name: &str| {
        let path = folder.path().join(name);
        fs::create_dir(&path).expect("a fresh directory");
        path
    };
    let rootfs = make("rootfs");
    let mounts = mounts
        .iter()
        .enumerate()
        .map(|(index, at)| MountDir { at: guest_path(at), directory: make(&format!("mp{index}")) })
        .collect();
    Volumes { rootfs, mounts }
}

/// An archive with the given entries: name, kind, link target, content.
fn handmade(folder: &TempDir, entries: &[(&str, tar::EntryType, &str, &[u8])]) -> PathBuf {
    let path = folder.path().join("handmade.tar");
    let mut builder = tar::Builder::new(fs::File::create(&path).expect("a file"));
    for (name, kind, link, content) in entries {
        let mut header = tar::Header::new_ustar();
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.as_old_mut().linkname[..link.len()].copy_from_slice(link.as_bytes());
        header.set_entry_type(*kind);
        header.set_mode(0o755);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(1_000);
        header.set_size(content.len() as u64);
        header.set_cksum();
        builder.append(&header, *content).expect("written");
    }
    builder.into_inner().expect("finished");
    path
}

#[test]
fn the_config_of_each_genuine_archive_is_read() {
    let inside = read_config(&archive_140()).expect("readable");
    assert!(inside.config.contains("mp0: labbtrfs:140/vm-140-disk-1.raw,mp=/data,backup=0,size=1G\n"));
    assert_eq!(inside.firewall.as_deref(), Some(""));
    let keyctl = read_config(&genuine("vzdump-lxc-155-2026_11_21-04_02_15.tar.zst")).expect("readable");
    assert!(keyctl.config.contains("features: nesting=1,keyctl=1\n"));
    let hostile = read_config(&genuine("vzdump-lxc-159-2026_11_21-04_02_21.tar.zst")).expect("readable");
    assert!(hostile.config.ends_with("lxc.environment: FOO=bar\n"));
}

#[test]
fn a_genuine_archive_is_listed() {
    let listed = list(&archive_140()).expect("readable");
    let busybox = listed.iter().find(|entry| entry.path == Path::new("./bin/busybox")).expect("busybox");
    assert_eq!((busybox.size_bytes, busybox.mode, busybox.kind.clone()), (2_024_544, 0o755, EntryKind::File));
    let shell = listed.iter().find(|entry| entry.path == Path::new("./bin/sh")).expect("a shell");
    assert_eq!(shell.kind, EntryKind::Symlink("busybox".into()));
}

#[test]
fn a_genuine_archive_fills_the_volumes_and_the_bytes_are_counted_as_tar_counts() {
    let folder = TempDir::new().expect("a folder");
    let volumes = volumes(&folder, &["/data", "/inc"]);
    let extracted = extract(&archive_140(), &volumes, NO_BOUND, &GO_ON).expect("extracted");
    // The restore of this very archive was logged by Proxmox with "Total bytes read: 2129920".
    assert_eq!(extracted.total_bytes_read, 2_129_920);
    assert_eq!(fs::read_to_string(volumes.rootfs.join("etc/hostname")).expect("read"), "ct140\n");
    let shadow = fs::metadata(volumes.rootfs.join("etc/shadow")).expect("there");
    assert_eq!(shadow.permissions().mode() & 0o7777, 0o640);
    assert_eq!(
        fs::metadata(volumes.rootfs.join("tmp")).expect("there").permissions().mode() & 0o7777,
        0o1777
    );
    assert!(volumes.rootfs.join("data").is_dir(), "the mount point itself is there");
    assert!(!volumes.rootfs.join("etc/vzdump").exists(), "the travelling config is no file of the guest");
}

#[test]
fn files_below_a_mount_point_go_to_its_volume_and_the_deepest_wins() {
    let folder = TempDir::new().expect("a folder");
    let archive = handmade(
        &folder,
        &[
            ("./srv/", tar::EntryType::Directory, "", b""),
            ("./srv/a", tar::EntryType::Regular, "", b"outer"),
            ("./srv/deep/b", tar::EntryType::Regular, "", b"inner"),
            ("./srvx", tar::EntryType::Regular, "", b"root"),
        ],
    );
    let volumes = volumes(&folder, &["/srv", "/srv/deep"]);
    extract(&archive, &volumes, NO_BOUND, &GO_ON).expect("extracted");
    let read = |path: PathBuf| fs::read_to_string(path).expect("read");
    assert_eq!(read(volumes.mounts[0].directory.join("a")), "outer");
    assert_eq!(read(volumes.mounts[1].directory.join("b")), "inner");
    assert_eq!(read(volumes.rootfs.join("srvx")), "root");
    assert!(!volumes.rootfs.join("srv/a").exists());
}

#[test]
fn no_entry_leaves_its_volume() {
    use tar::EntryType::{Directory, Link, Regular, Symlink};
    type Entries = &'static [(&'static str, tar::EntryType, &'static str, &'static [u8])];
    let table: &[(&str, Entries, EscapeReason)] = &[
        ("climbing", &[("./../evil", Regular, "", b"x")], EscapeReason::Climbs),
        ("climbing in the middle", &[("./a/../../evil", Regular, "", b"x")], EscapeReason::Climbs),
        ("absolute", &[("/evil", Regular, "", b"x")], EscapeReason::Absolute),
        (
            "through a link",
            &[("./out", Symlink, "..", b""), ("./out/evil", Regular, "", b"x")],
            EscapeReason::ThroughLink,
        ),
        (
            "directory through a link",
            &[("./out", Symlink, "..", b""), ("./out/evil/", Directory, "", b"")],
            EscapeReason::ThroughLink,
        ),
        ("hard link out", &[("./evil", Link, "../outside", b"")], EscapeReason::Climbs),
        ("hard link to the host", &[("./evil", Link, "/etc/passwd", b"")], EscapeReason::Absolute),
        (
            "hard link to a symbolic link",
            &[("./s", Symlink, "/etc/passwd", b""), ("./evil", Link, "./s", b"")],
            EscapeReason::LinkElsewhere,
        ),
        (
            "hard link into another volume",
            &[("./mp/f", Regular, "", b"x"), ("./evil", Link, "./mp/f", b"")],
            EscapeReason::LinkElsewhere,
        ),
    ];
    for (case, entries, expected) in table {
        let folder = TempDir::new().expect("a folder");
        fs::write(folder.path().join("outside"), b"x").expect("written");
        let archive = handmade(&folder, entries);
        let volumes = volumes(&folder, &["/mp"]);
        let error = extract(&archive, &volumes, NO_BOUND, &GO_ON).expect_err(case);
        assert!(
            matches!(error, ExtractError::Escapes { reason, .. } if reason == *expected),
            "{case}: {error:?}"
        );
        assert!(!folder.path().join("evil").exists(), "{case}");
        assert!(!volumes.rootfs.join("evil").exists(), "{case}");
    }
}

#[test]
fn a_file_in_place_of_a_link_of_the_same_name_is_not_written_through_it() {
    use tar::EntryType::{Regular, Symlink};
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("outside"), b"kept").expect("written");
    let archive = handmade(&folder, &[("./f", Symlink, "../outside", b""), ("./f", Regular, "", b"evil")]);
    let volumes = volumes(&folder, &[]);
    extract(&archive, &volumes, NO_BOUND, &GO_ON).expect("the second is skipped as an old file");
    assert_eq!(fs::read(folder.path().join("outside")).expect("read"), b"kept");
}

/// As the real node shows and unpacks them: `tar --skip-old-files` writes nothing twice, and only the full spelling is shown.
#[test]
fn the_first_configuration_is_merged_and_the_first_of_full_spelling_shown() {
    use tar::EntryType::Regular;
    let own = ("./etc/vzdump/pct.conf", Regular, "", b"hostname: own\n".as_slice());
    let guests = ("./etc/vzdump/pct.conf", Regular, "", b"hostname: guests\n".as_slice());
    let bare = ("etc/vzdump/pct.conf", Regular, "", b"hostname: bare\n".as_slice());
    let between = ("./f", Regular, "", b"x".as_slice());
    for (entries, shown, merged) in [
        (vec![own, guests], "own", "own"),
        (vec![own, between, guests], "own", "own"),
        (vec![bare, own], "own", "bare"),
    ] {
        let folder = TempDir::new().expect("a folder");
        let archive = handmade(&folder, &entries);
        let read = read_config(&archive).expect("read").config;
        assert_eq!(read, format!("hostname: {shown}\n"));
        let extracted = extract(&archive, &volumes(&folder, &[]), NO_BOUND, &GO_ON).expect("extracted");
        assert_eq!(extracted.config, Some(format!("hostname: {merged}\n")));
    }
}

#[test]
fn devices_are_skipped() {
    use tar::EntryType::{Block, Char, Regular};
    let folder = TempDir::new().expect("a folder");
    let archive = handmade(
        &folder,
        &[
            ("./dev/null", Char, "", b""),
            ("./dev/note", Regular, "", b"x"),
            ("./srv/sda", Block, "", b""),
            ("./srv/ok", Regular, "", b"x"),
        ],
    );
    let volumes = volumes(&folder, &[]);
    let extracted = extract(&archive, &volumes, NO_BOUND, &GO_ON).expect("extracted");
    assert_eq!((extracted.devices_skipped, extracted.entries), (3, 1));
    assert!(!volumes.rootfs.join("dev/note").exists());
    assert!(volumes.rootfs.join("srv/ok").exists());
}

#[test]
fn truncated_and_damaged_archives_differ() {
    let folder = TempDir::new().expect("a folder");
    let whole = fs::read(archive_140()).expect("read");
    let cut = folder.path().join("cut.tar.zst");
    fs::write(&cut, &whole[..whole.len() / 2]).expect("written");
    let damaged = folder.path().join("damaged.tar.zst");
    let mut bytes = whole.clone();
    let middle = bytes.len() / 2;
    for byte in &mut bytes[middle..middle + 64] {
        *byte ^= 0xff;
    }
    fs::write(&damaged, bytes).expect("written");
    let volumes = volumes(&folder, &[]);
    let error = extract(&cut, &volumes, NO_BOUND, &GO_ON).expect_err("cut");
    assert!(matches!(error, ExtractError::Read(ReadArchiveError::Truncated { .. })), "{error:?}");
    let error = list(&damaged).expect_err("damaged");
    assert!(matches!(error, ReadArchiveError::Corrupt { .. }), "{error:?}");
    let plain = folder.path().join("plain.tar");
    let tar_bytes = zstd::decode_all(whole.as_slice()).expect("decoded");
    fs::write(&plain, &tar_bytes[..1_000_000]).expect("written");
    let error = list(&plain).expect_err("cut");
    assert!(matches!(error, ReadArchiveError::Truncated { bytes_read: 1_000_000, .. }), "{error:?}");
    // The configuration comes first, so a cut archive still shows it, as with Proxmox.
    assert!(read_config(&plain).is_ok());
}

#[test]
fn what_is_no_archive_is_refused() {
    let folder = TempDir::new().expect("a folder");
    let noise = folder.path().join("noise.tar.gz");
    fs::write(&noise, b"this is no gzip at all").expect("written");
    assert!(matches!(list(&noise), Err(ReadArchiveError::Corrupt { .. })));
    assert!(matches!(list(Path::new("/nowhere/a.tar")), Err(ReadArchiveError::Open { .. })));
    assert!(matches!(list(&folder.path().join("a.zip")), Err(ReadArchiveError::UnknownForm { .. })));
    let bare = handmade(&folder, &[("./a", tar::EntryType::Regular, "", b"x")]);
    assert!(matches!(read_config(&bare), Err(ReadArchiveError::NoConfig { .. })));
}

#[test]
fn content_is_bounded_and_reading_can_be_stopped() {
    let folder = TempDir::new().expect("a folder");
    let volumes = volumes(&folder, &[]);
    let error = extract(&archive_140(), &volumes, 1_000_000, &GO_ON).expect_err("too large");
    assert!(matches!(error, ExtractError::TooLarge { bytes_max: 1_000_000 }), "{error:?}");
    let error = extract(&archive_140(), &volumes, NO_BOUND, &STOP).expect_err("cancelled");
    assert!(matches!(error, ExtractError::Cancelled), "{error:?}");
}

/// A small guest: long names, a hard link, set-id bits, a link, a mount point, and things that a backup leaves out.
fn small_guest(folder: &TempDir) -> Volumes {
    let volumes = volumes(folder, &["/data"]);
    let rootfs = &volumes.rootfs;
    let long = "n".repeat(150);
    for directory in ["etc", "tmp", "proc/1", "data/hidden", &format!("srv/{long}")] {
        fs::create_dir_all(rootfs.join(directory)).expect("made");
    }
    fs::write(rootfs.join("etc/hostname"), b"small\n").expect("written");
    fs::write(rootfs.join("tmp/scratch"), b"x").expect("written");
    fs::write(rootfs.join("proc/1/environ"), b"SECRET=1\0").expect("written");
    fs::write(rootfs.join(format!("srv/{long}/{long}")), vec![7_u8; 100_000]).expect("written");
    fs::hard_link(rootfs.join("etc/hostname"), rootfs.join("etc/name2")).expect("linked");
    std::os::unix::fs::symlink("hostname", rootfs.join("etc/name3")).expect("linked");
    fs::set_permissions(rootfs.join("srv"), fs::Permissions::from_mode(0o2751)).expect("set");
    let mut data = fs::File::create(volumes.mounts[0].directory.join("inside")).expect("made");
    data.write_all(b"kept").expect("written");
    volumes
}

#[test]
fn what_is_packed_comes_out_again_in_every_form() {
    for form in [Compression::Plain, Compression::Gzip, Compression::Zstd, Compression::Lzo] {
        let folder = TempDir::new().expect("a folder");
        let source = small_guest(&folder);
        let target = folder.path().join(format!("vzdump-lxc-7-2026_01_01-00_00_00{}", form.suffix()));
        let packed = pack(&plan(&target, &source), &GO_ON).expect("packed");
        assert_eq!(packed.total_bytes_written % 10_240, 0);
        assert_eq!(packed.archive_bytes, fs::metadata(&target).expect("there").len());
        let names: Vec<_> = list(&target).expect("readable").into_iter().map(|entry| entry.path).collect();
        let first: Vec<_> = names.iter().take(3).filter_map(|name| name.to_str()).collect();
        assert_eq!(first, ["./etc/vzdump/pct.conf", "./etc/vzdump/pct.fw", "./"]);
        assert_eq!(read_config(&target).expect("read").config, "hostname: small\n");
        for left_out in ["./tmp/scratch", "./proc/1/environ", "./data/hidden/"] {
            assert!(!names.iter().any(|name| name == Path::new(left_out)), "{left_out}");
        }

        let again = TempDir::new().expect("a folder");
        let restored = volumes(&again, &["/data"]);
        let extracted = extract(&target, &restored, NO_BOUND, &GO_ON).expect("extracted");
        assert_eq!(extracted.total_bytes_read, packed.total_bytes_written);
        let long = "n".repeat(150);
        let original = source.rootfs.join(format!("srv/{long}/{long}"));
        let copy = restored.rootfs.join(format!("srv/{long}/{long}"));
        assert_eq!(fs::read(&copy).expect("read"), vec![7_u8; 100_000]);
        let (old, new) = (fs::metadata(original).expect("there"), fs::metadata(copy).expect("there"));
        assert_eq!((old.mtime(), old.uid(), old.gid()), (new.mtime(), new.uid(), new.gid()));
        assert_eq!(fs::metadata(restored.rootfs.join("srv")).expect("there").mode() & 0o7777, 0o2751);
        let inode = |name: &str| fs::metadata(restored.rootfs.join(name)).expect("there").ino();
        assert_eq!(inode("etc/hostname"), inode("etc/name2"));
        assert_eq!(fs::read_link(restored.rootfs.join("etc/name3")).expect("a link"), Path::new("hostname"));
        assert_eq!(fs::read(restored.mounts[0].directory.join("inside")).expect("read"), b"kept");
    }
}

#[test]
fn the_same_guest_gives_the_same_bytes() {
    let folder = TempDir::new().expect("a folder");
    let source = small_guest(&folder);
    let [one, two] = ["one.tar.zst", "two.tar.zst"].map(|name| folder.path().join(name));
    pack(&plan(&one, &source), &GO_ON).expect("packed");
    pack(&plan(&two, &source), &GO_ON).expect("packed");
    assert_eq!(fs::read(one).expect("read"), fs::read(two).expect("read"));
}

#[test]
fn a_backup_that_fails_leaves_nothing_and_one_that_exists_is_kept() {
    let folder = TempDir::new().expect("a folder");
    let source = small_guest(&folder);
    let target = folder.path().join("a.tar.zst");
    let error = pack(&plan(&target, &source), &STOP).expect_err("cancelled");
    assert!(matches!(error, PackError::Cancelled), "{error:?}");
    let gone = Volumes { rootfs: folder.path().join("gone"), mounts: Vec::new() };
    let error = pack(&plan(&target, &gone), &GO_ON).expect_err("no rootfs");
    assert!(matches!(error, PackError::Source { .. }), "{error:?}");
    assert!(!target.exists() && !folder.path().join("a.tar.dat").exists());
    fs::write(&target, b"an older backup").expect("written");
    let error = pack(&plan(&target, &source), &GO_ON).expect_err("exists");
    assert!(matches!(error, PackError::Exists { .. }), "{error:?}");
    assert_eq!(fs::read(&target).expect("read"), b"an older backup");
}

fn plan<'a>(target: &'a Path, volumes: &'a Volumes) -> PackPlan<'a> {
    static STANDARD: std::sync::LazyLock<ExcludePatterns> =
        std::sync::LazyLock::new(ExcludePatterns::standard);
    PackPlan {
        target,
        config: "hostname: small\n",
        firewall: "",
        config_owner: Owner::NoOne,
        volumes,
        exclude: &STANDARD,
        made_at_s: 1_795_233_656,
    }
}
