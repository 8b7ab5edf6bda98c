//! Tests of mounting and unmounting real file systems.

use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags};
use serde_json::Value;

use crate::disks::LoopDisk;
use crate::test_host::{Host, PROGRAM, command, mount_request, mounted_at, on_a_host, run, wait_until};

const AT: &str = "/mnt/holdfast/usb1";

#[test]
fn a_disk_is_mounted_seen_by_the_host_and_unmounted() {
    on_a_host("mounts::a_disk_is_mounted_seen_by_the_host_and_unmounted", |host| {
        for filesystem in ["ext4", "xfs", "btrfs"] {
            let disk = LoopDisk::new(filesystem, filesystem);
            host.policy(&disk.target("usb1", filesystem));
            let reply = host.done(filesystem, host.mount("usb1", &disk.uuid));
            assert_eq!(
                (&reply["how"], &reply["device"], &reply["at"]),
                (&"mounted".into(), &disk.device.clone().into(), &AT.into())
            );
            let listed = mounted_at(AT);
            assert_eq!(listed.len(), 1, "PID 1 sees it once: {listed:?}");
            assert!(
                listed[0].starts_with("rw,nosuid,nodev,noexec,") && listed[0].contains(filesystem),
                "{listed:?}"
            );
            mounted_files_cannot_be_executed();
            let again = host.done("again", host.mount("usb1", &disk.uuid));
            assert_eq!(again["how"], "already");
            assert_eq!(mounted_at(AT).len(), 1);
            let status = host.status();
            assert_eq!(
                (&status["targets"][0]["mounted"], &status["foreign"]),
                (&Value::Bool(true), &Value::Array(Vec::new()))
            );
            host.done("unmount", host.unmount("usb1"));
            assert_eq!(mounted_at(AT), Vec::<String>::new());
            assert_eq!(host.status()["targets"][0]["mounted"], false);
            host.refused("E_NOT_MOUNTED", "a second unmount", || host.unmount("usb1"));
        }
    });
}

/// Neither a program nor a device node on the disk is worth anything.
fn mounted_files_cannot_be_executed() {
    run("install", &["-m", "4755", "/bin/true", "/mnt/holdfast/usb1/program"]);
    let error = command("/mnt/holdfast/usb1/program").status().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
    run("mknod", &["/mnt/holdfast/usb1/zero", "c", "1", "5"]);
    let error = File::open("/mnt/holdfast/usb1/zero").unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
}

#[test]
fn options_never_remove_mandatory_flags() {
    on_a_host("mounts::options_never_remove_mandatory_flags", |host| {
        let disk = LoopDisk::new("disk", "ext4");
        host.policy(&disk.target("usb1", "ext4"));
        let uuid = &disk.uuid;
        let request =
            format!(r#"{{"verb":"mount","target":"usb1","uuid":"{uuid}","options":["ro","noatime"]}}"#);
        host.done("read only", host.ask(&request));
        assert!(mounted_at(AT)[0].starts_with("ro,nosuid,nodev,noexec,noatime "), "{:?}", mounted_at(AT));
        assert!(File::create("/mnt/holdfast/usb1/x").is_err());
        host.done("unmount", host.unmount("usb1"));
    });
}

#[test]
fn a_busy_mount_stays() {
    on_a_host("mounts::a_busy_mount_stays", |host| {
        let disk = LoopDisk::new("disk", "ext4");
        host.policy(&disk.target("usb1", "ext4"));
        host.done("mount", host.mount("usb1", &disk.uuid));
        let open = File::create("/mnt/holdfast/usb1/backup").unwrap();
        host.refused("E_BUSY", "unmount with an open file", || host.unmount("usb1"));
        drop(open);
        host.done("unmount", host.unmount("usb1"));
        run("install", &["-d", "/run/elsewhere"]);
        run("mount", &[&disk.device, "/run/elsewhere"]);
        host.refused("E_BUSY", "mounted somewhere else", || host.mount("usb1", &disk.uuid));
        run("umount", &["/run/elsewhere"]);
        host.done("free again", host.mount("usb1", &disk.uuid));
    });
}

#[test]
fn only_its_own_mounts_are_unmounted() {
    on_a_host("mounts::only_its_own_mounts_are_unmounted", |host| {
        let disk = LoopDisk::new("disk", "ext4");
        host.policy(&disk.target("usb1", "ext4"));
        run("install", &["-d", "-m", "700", AT]);
        run("mount", &["-o", "nosuid,nodev,noexec", &disk.device, AT]);
        host.refused("E_NOT_MOUNTED", "mounted by hand", || host.unmount("usb1"));
        host.refused("E_PATH", "mounted by hand", || host.mount("usb1", &disk.uuid));
        let status = host.status();
        assert_eq!(
            (&status["targets"][0]["mounted"], &status["foreign"][0]),
            (&Value::Bool(false), &AT.into())
        );
        run("umount", &[AT]);
        host.done("mount", host.mount("usb1", &disk.uuid));
        run("mount", &["-t", "tmpfs", "tmpfs", AT]);
        host.refused("E_NOT_MOUNTED", "another on top of ours", || host.unmount("usb1"));
        run("umount", &[AT]);
        // By hand, and mounted again by hand: the same disk at the same place, and yet not ours.
        run("umount", &[AT]);
        run("mount", &["-o", "nosuid,nodev,noexec", &disk.device, AT]);
        host.refused("E_NOT_MOUNTED", "exchanged for another mount", || host.unmount("usb1"));
        run("umount", &[AT]);
        host.done("mount", host.mount("usb1", &disk.uuid));
        host.policy("");
        host.done("a target that left the policy", host.unmount("usb1"));
    });
}

#[test]
fn a_private_mount_namespace_is_refused() {
    on_a_host("mounts::a_private_mount_namespace_is_refused", |host| {
        let disk = LoopDisk::new("disk", "ext4");
        host.policy(&disk.target("usb1", "ext4"));
        let request = mount_request("usb1", &disk.uuid);
        for (what, words) in [
            ("a mount namespace", &["unshare", "--mount", "--propagation", "unchanged", PROGRAM][..]),
            ("what sandboxing makes", &["unshare", "--mount", "--propagation", "slave", PROGRAM]),
            ("another root folder", &["chroot", "/run/root", PROGRAM]),
        ] {
            if words[0] == "chroot" {
                run("install", &["-d", "/run/root"]);
                run("mount", &["--rbind", "/", "/run/root"]);
            }
            host.refused("E_ENV", what, || {
                host.answer(
                    command(words[0]).args(&words[1..]).env_clear().env("PATH", "/usr/sbin:/usr/bin"),
                    request.as_bytes(),
                )
            });
        }
    });
}

/// Killed at any moment: the disk is mounted and recorded as ours, or it is not mounted; the next call continues from
/// there.
#[test]
fn a_kill_leaves_nothing_that_the_next_call_cannot_handle() {
    on_a_host("mounts::a_kill_leaves_nothing_that_the_next_call_cannot_handle", |host| {
        let disk = LoopDisk::new("disk", "ext4");
        host.policy(&disk.target("usb1", "ext4"));
        let (mut before, mut after) = (0, 0);
        for turn in 0..150_u64 {
            let mut child = command(PROGRAM)
                .env_clear()
                .stdin(std::process::Stdio::piped())
                .stdout(std::process::Stdio::null())
                .stderr(std::process::Stdio::null())
                .spawn()
                .unwrap();
            std::io::Write::write_all(
                &mut child.stdin.take().unwrap(),
                mount_request("usb1", &disk.uuid).as_bytes(),
            )
            .unwrap();
            let moment = Instant::now() + Duration::from_micros(turn * 100);
            while Instant::now() < moment {
                std::hint::spin_loop();
            }
            child.kill().unwrap();
            child.wait().unwrap();
            // A killed call may still hold the device for a moment inside the kernel.
            wait_until("the turn is free", || host.ask(r#"{"verb":"status"}"#).exit == Some(0));
            let mounted = !mounted_at(AT).is_empty();
            assert_eq!(host.status()["targets"][0]["mounted"], mounted, "turn {turn}");
            if mounted {
                after += 1;
            } else {
                before += 1;
                wait_until("it can be mounted", || host.mount("usb1", &disk.uuid).exit == Some(0));
            }
            host.lines();
            host.done("unmount", host.unmount("usb1"));
            assert!(mounted_at(AT).is_empty());
        }
        println!("killed before the mount {before} times, after it {after} times");
        assert!(before > 0, "some kills came early");
    });
}

/// A process with root's rights swaps the target's folder for a symlink out of `/mnt/holdfast` as fast as the kernel
/// can, while the helper mounts and unmounts: nothing is ever mounted outside. (The kernel may still be renaming that
/// folder while it is mounted on; then the mount is beneath `/mnt/holdfast` under the folder's new name.)
#[test]
fn a_swapping_symlink_never_moves_a_mount() {
    on_a_host("mounts::a_swapping_symlink_never_moves_a_mount", |host| {
        const LINK: &str = "/mnt/holdfast/link";
        let disk = LoopDisk::new("disk", "ext4");
        host.policy(&disk.target("usb1", "ext4"));
        run("install", &["-d", "-m", "700", "/run/victim", AT]);
        std::os::unix::fs::symlink("/run/victim", LINK).unwrap();
        let (stop, swaps) = (AtomicBool::new(false), AtomicU64::new(0));
        let (mut mounted, mut refused, mut renamed) = (0, 0, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    // Refused by the kernel while the folder is a mount point.
                    let swap = rustix::fs::renameat_with(CWD, AT, CWD, LINK, RenameFlags::EXCHANGE);
                    swaps.fetch_add(u64::from(swap.is_ok()), Ordering::Relaxed);
                }
            });
            let _stopped_however_it_ends = Stop(&stop);
            let deadline = Instant::now() + Duration::from_secs(8);
            while Instant::now() < deadline {
                let answer = host.mount("usb1", &disk.uuid);
                let code = answer.reply["code"].as_str().unwrap_or("done").to_owned();
                assert!(["done", "E_PATH", "E_FAILED"].contains(&code.as_str()), "{answer:?}");
                let points = points_of(&disk);
                let outside = points.iter().find(|point| ![AT, LINK].contains(&point.as_str()));
                assert_eq!(outside, None, "an escape: {answer:?}");
                assert_eq!(points.len(), usize::from(code == "done"), "{answer:?} {points:?}");
                if code != "done" {
                    refused += 1;
                } else {
                    let taken = host.unmount("usb1");
                    if taken.exit == Some(0) {
                        mounted += 1;
                    } else {
                        renamed += 1;
                        println!("{} {:?}", taken.reply, points_of(&disk));
                        wait_until("it is unmounted by hand", || {
                            points_of(&disk)
                                .iter()
                                .all(|point| command("umount").arg(point).status().unwrap().success())
                        });
                    }
                }
                assert_eq!(points_of(&disk), Vec::<String>::new());
            }
        });
        let swaps = swaps.load(Ordering::Relaxed);
        println!(
            "{mounted} mounted, {renamed} renamed under the mount, {refused} refused, {swaps} swaps, no escape"
        );
        assert!(mounted > 0 && refused > 0, "both sides of the race were seen");
    });
}

struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Where the disk is mounted.
fn points_of(disk: &LoopDisk) -> Vec<String> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let ours = table.lines().filter(|line| line.contains(&format!(" {} ", disk.device)));
    ours.map(|line| line.split(' ').nth(4).unwrap().to_owned()).collect()
}

/// Without a journal no change is made.
#[test]
fn nothing_is_changed_without_a_journal() {
    on_a_host("mounts::nothing_is_changed_without_a_journal", |host: &Host| {
        let disk = LoopDisk::new("disk", "ext4");
        host.policy(&disk.target("usb1", "ext4"));
        std::fs::remove_file("/run/systemd/journal/socket").unwrap();
        if std::path::Path::new("/dev/log").exists() {
            return;
        }
        let answer = host.mount("usb1", &disk.uuid);
        assert_eq!((answer.exit, &answer.reply["code"]), (Some(2), &"E_ENV".into()), "{answer:?}");
        assert!(answer.stderr.contains("E_ENV"), "told where somebody may read it: {answer:?}");
        assert!(mounted_at(AT).is_empty());
        let looked = host.ask(r#"{"verb":"status"}"#);
        assert_eq!(looked.exit, Some(0), "looking is still free: {looked:?}");
    });
}
