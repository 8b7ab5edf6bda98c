//! Tests of device selection with real disks.

use std::os::unix::fs::FileExt;

use crate::disks::{LoopDisk, empty_file, fresh_uuid};
use crate::test_host::{mounted_at, on_a_host, run};

#[test]
fn a_uuid_alone_is_not_enough() {
    on_a_host("devices::a_uuid_alone_is_not_enough", |host| {
        let disk = LoopDisk::new("disk", "ext4");
        let other = fresh_uuid();
        host.policy(&disk.target("usb1", "ext4"));
        host.refused("E_AUTHZ", "another UUID than the policy's", || host.mount("usb1", &other));
        host.policy(&disk.target_by("usb1", "ext4", "serial = \"/run/other.img\""));
        host.refused("E_DEVICE_AMBIGUOUS", "another drive wears the UUID", || host.mount("usb1", &disk.uuid));
        host.policy(&disk.target_by("usb1", "ext4", "part_uuid = \"1234abcd-01\""));
        host.refused("E_DEVICE_AMBIGUOUS", "a whole disk where a partition was approved", || {
            host.mount("usb1", &disk.uuid)
        });
        host.policy(&disk.target("usb1", "xfs"));
        host.refused("E_DEVICE_CLASS", "another file system than approved", || {
            host.mount("usb1", &disk.uuid)
        });
        host.policy(&disk.target("usb1", "ext4"));
        let twin = LoopDisk::with_uuid("twin", "ext4", &disk.uuid);
        host.refused("E_DEVICE_AMBIGUOUS", "two disks with one UUID", || host.mount("usb1", &disk.uuid));
        drop(twin);
        host.done("the twin is gone", host.mount("usb1", &disk.uuid));
    });
}

#[test]
fn a_partition_is_identified_by_its_table() {
    on_a_host("devices::a_partition_is_identified_by_its_table", |host| {
        for label in ["gpt", "dos"] {
            let (disk, part_uuid) = LoopDisk::partitioned(label, label);
            let identity = format!("part_uuid = \"{part_uuid}\"");
            host.policy(&disk.target_by("usb1", "ext4", &identity));
            let reply = host.done(label, host.mount("usb1", &disk.uuid));
            assert_eq!(reply["device"], disk.node(), "{label}");
            assert_eq!(mounted_at("/mnt/holdfast/usb1").len(), 1);
            host.done("unmount", host.unmount("usb1"));
            let both = format!("{identity}\nserial = \"{}\"", disk.file);
            host.policy(&disk.target_by("usb1", "ext4", &both));
            host.done("both", host.mount("usb1", &disk.uuid));
            host.done("unmount", host.unmount("usb1"));
            let other = if label == "gpt" { fresh_uuid() } else { "1234abcd-01".to_owned() };
            host.policy(&disk.target_by("usb1", "ext4", &format!("part_uuid = \"{other}\"")));
            host.refused("E_DEVICE_AMBIGUOUS", label, || host.mount("usb1", &disk.uuid));
        }
    });
}

#[test]
fn a_superblock_with_an_external_device_is_not_mounted() {
    on_a_host("devices::a_superblock_with_an_external_device_is_not_mounted", |host| {
        let disk = LoopDisk::new("disk", "ext4");
        host.policy(&disk.target("usb1", "ext4"));
        run("tune2fs", &["-E", "mount_opts=errors=panic", &disk.device]);
        host.refused("E_DEVICE_CLASS", "mount options of its own", || host.mount("usb1", &disk.uuid));
        run("tune2fs", &["-E", "mount_opts=", &disk.device]);
        run("tune2fs", &["-e", "panic", &disk.device]);
        host.done("a request to panic is overruled", host.mount("usb1", &disk.uuid));
        // The kernel names what differs from the superblock's request.
        assert!(
            mounted_at("/mnt/holdfast/usb1")[0].contains("errors=remount-ro"),
            "{:?}",
            mounted_at("/mnt/holdfast/usb1")
        );
        host.done("unmount", host.unmount("usb1"));

        let file = std::fs::OpenOptions::new().write(true).open(&disk.file).unwrap();
        file.write_all_at(b"_BHRfS_M", 65536 + 0x40).unwrap();
        file.write_all_at(&[7; 16], 65536 + 0x20).unwrap();
        run("blockdev", &["--flushbufs", &disk.device]);
        host.refused("E_DEVICE_CLASS", "two file systems in one", || host.mount("usb1", &disk.uuid));
    });
}

#[test]
fn unsupported_file_systems_are_not_found() {
    on_a_host("devices::unsupported_file_systems_are_not_found", |host| {
        let uuid = fresh_uuid();
        for (what, make) in [
            ("nothing", "true"),
            ("swap", "mkswap -q --uuid $U $F"),
            ("a cut-off superblock", "mkfs.ext4 -q -F -U $U $F; truncate --size 1536 $F"),
            ("a nil UUID", "mkfs.ext4 -q -F $F; tune2fs -U clear $F >/dev/null"),
        ] {
            let file = empty_file("odd");
            run("env", &[&format!("U={uuid}"), &format!("F={file}"), "sh", "-ec", make]);
            let disk = LoopDisk::attached(file, &uuid);
            host.policy(&disk.target("usb1", "ext4"));
            host.refused("E_DEVICE_ABSENT", what, || host.mount("usb1", &uuid));
            assert_eq!(host.status()["targets"][0]["refusal"]["code"], "E_DEVICE_ABSENT");
        }
    });
}

/// A disk whose structure is nonsense behind a good superblock: the kernel refuses, nothing is left.
#[test]
fn a_failed_mount_leaves_nothing() {
    on_a_host("devices::a_failed_mount_leaves_nothing", |host| {
        let disk = LoopDisk::new("disk", "ext4");
        host.policy(&disk.target("usb1", "ext4"));
        let file = std::fs::OpenOptions::new().write(true).open(&disk.file).unwrap();
        // More blocks than the device has.
        file.write_all_at(&[0xff; 4], 1024 + 4).unwrap();
        run("blockdev", &["--flushbufs", &disk.device]);
        let before = crate::test_host::world();
        let answer = host.mount("usb1", &disk.uuid);
        assert_eq!((answer.exit, &answer.reply["code"]), (Some(1), &"E_FAILED".into()), "{answer:?}");
        assert_eq!(crate::test_host::world(), before);
    });
}

/// `/` itself is on a disk of ours, on which another partition has everything that the policy names.
#[test]
fn the_root_disk_is_never_mounted() {
    on_a_host("devices::the_root_disk_is_never_mounted", |host| {
        let (disk, _) = LoopDisk::partitioned("root", "gpt");
        let uuid = disk.second_partition();
        let policy = disk.target("usb1", "ext4").replace(&disk.uuid, &uuid);
        host.policy(&policy);
        host.done("while / is elsewhere", host.mount("usb1", &uuid));
        host.done("unmount", host.unmount("usb1"));
        let root = "/run/newroot";
        run("install", &["-d", root]);
        run("mount", &[&disk.node(), root]);
        for folder in ["dev", "etc", "mnt", "proc", "run", "sys", "usr", "old"] {
            run("install", &["-d", &format!("{root}/{folder}")]);
        }
        for link in ["bin", "lib", "lib64", "sbin"] {
            std::os::unix::fs::symlink(format!("usr/{link}"), format!("{root}/{link}")).unwrap();
        }
        for folder in ["dev", "etc", "mnt", "proc", "run", "sys", "usr"] {
            run("mount", &["--rbind", &format!("/{folder}"), &format!("{root}/{folder}")]);
        }
        rustix::process::pivot_root(root, format!("{root}/old")).unwrap();
        rustix::process::chdir("/").unwrap();
        run("umount", &["--lazy", "/old"]);
        host.refused("E_DEVICE_CLASS", "another partition of the root disk", || host.mount("usb1", &uuid));
        let other = LoopDisk::new("other", "ext4");
        host.policy(&other.target("usb1", "ext4"));
        host.done("another disk", host.mount("usb1", &other.uuid));
        host.done("unmount", host.unmount("usb1"));
    });
}
