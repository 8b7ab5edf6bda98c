//! Tests of mountpoints, the policy file and the program file.

use std::os::unix::fs::symlink;

use crate::disks::{LoopDisk, fresh_uuid};
use crate::test_host::{CALLER_UID, Host, POLICY, PROGRAM, on_a_host, run};

const AT: &str = "/mnt/holdfast/usb1";

#[test]
fn the_mountpoint_must_be_an_empty_root_owned_folder() {
    on_a_host("mountpoints::the_mountpoint_must_be_an_empty_root_owned_folder", |host| {
        let disk = LoopDisk::new("disk", "ext4");
        host.policy(&disk.target("usb1", "ext4"));
        run("install", &["-d", "/run/victim"]);
        let spoilt: [(&str, &dyn Fn()); 8] = [
            ("something in it", &|| {
                run("install", &["-d", &format!("{AT}/x")]);
            }),
            ("a hidden file in it", &|| {
                run("install", &["-D", "/dev/null", &format!("{AT}/.x")]);
            }),
            ("a file", &|| {
                run("touch", &[AT]);
            }),
            ("a symlink to a folder", &|| symlink("/run/victim", AT).unwrap()),
            ("a symlink within", &|| {
                run("install", &["-d", "-m", "700", "/mnt/holdfast/other"]);
                symlink("other", AT).unwrap();
            }),
            ("a magic link", &|| symlink("/proc/self/root", AT).unwrap()),
            ("another's folder", &|| {
                run("install", &["-d", "-o", "1000", AT]);
            }),
            ("a folder for everybody", &|| {
                run("install", &["-d", "-m", "777", AT]);
            }),
        ];
        for (what, spoil) in spoilt {
            spoil();
            host.refused("E_PATH", what, || host.mount("usb1", &disk.uuid));
            run("rm", &["-r", AT]);
        }
        for (what, spoil, mend) in [
            ("a parent for everybody", "chmod 777 /mnt/holdfast", "chmod 755 /mnt/holdfast"),
            ("another's parent", "chown 1000 /mnt/holdfast", "chown 0 /mnt/holdfast"),
            ("a grandparent for everybody", "chmod 1777 /mnt", "chmod 755 /mnt"),
            ("no parent", "mv /mnt/holdfast /mnt/x", "mv /mnt/x /mnt/holdfast"),
            (
                "a parent by symlink",
                "mv /mnt/holdfast /mnt/x; ln -s x /mnt/holdfast",
                "rm /mnt/holdfast; mv /mnt/x /mnt/holdfast",
            ),
        ] {
            run("sh", &["-ec", spoil]);
            host.refused("E_PATH", what, || host.mount("usb1", &disk.uuid));
            run("sh", &["-ec", mend]);
        }
        host.done("as it should be", host.mount("usb1", &disk.uuid));
    });
}

#[test]
fn hostile_target_names_are_refused_early() {
    on_a_host("mountpoints::hostile_target_names_are_refused_early", |host| {
        let uuid = fresh_uuid();
        let long = "a".repeat(300);
        for name in [
            "",
            ".",
            "..",
            "../x",
            "/etc",
            "a/b",
            "a/.",
            "//",
            "-rf",
            "--",
            "a b",
            "\\u0000",
            "\\n",
            "\\\\040",
            "/proc/self/cwd/..",
            "/dev/fd/3",
            &long,
        ] {
            host.refused("E_PATH", name, || host.mount(name, &uuid));
            host.refused("E_PATH", name, || host.unmount(name));
        }
        host.refused("E_AUTHZ", "not in the policy", || host.mount("usb1", &uuid));
    });
}

#[test]
fn the_policy_file_must_be_root_owned() {
    on_a_host("mountpoints::the_policy_file_must_be_root_owned", |host| {
        for (what, spoil, mend) in [
            ("written by a group", "chmod 664 $P", "chmod 644 $P"),
            ("written by everybody", "chmod 646 $P", "chmod 644 $P"),
            ("somebody else's", "chown 1000 $P", "chown 0 $P"),
            ("a folder for a group", "chmod 775 /etc/holdfast", "chmod 755 /etc/holdfast"),
            ("another's folder", "chown 1000 /etc/holdfast", "chown 0 /etc/holdfast"),
            ("/etc for everybody", "chmod 777 /etc", "chmod 755 /etc"),
            ("a symlink", "mv $P $P.x; ln -s $P.x $P", "mv $P.x $P"),
            ("a pipe", "mv $P $P.x; mkfifo $P; chmod 644 $P", "rm $P; mv $P.x $P"),
            ("none", "mv $P $P.x", "mv $P.x $P"),
            ("endless", "cp $P $P.x; yes '#' | head -c 70000 >> $P", "mv $P.x $P"),
            ("an unknown field", "cp $P $P.x; echo 'allow_all = true' >> $P", "mv $P.x $P"),
            ("no TOML", "cp $P $P.x; echo '[[' >> $P", "mv $P.x $P"),
        ] {
            run("env", &[&format!("P={POLICY}"), "sh", "-ec", spoil]);
            host.refused("E_ENV", what, || host.ask(r#"{"verb":"status"}"#));
            run("env", &[&format!("P={POLICY}"), "sh", "-ec", mend]);
            assert_eq!(host.status()["ok"], true, "{what}, mended");
        }
    });
}

#[test]
fn a_program_writable_by_others_refuses() {
    on_a_host("mountpoints::a_program_writable_by_others_refuses", |host: &Host| {
        let disk = LoopDisk::new("disk", "ext4");
        host.policy(&disk.target("usb1", "ext4"));
        for (what, spoil, mend) in [("by a group", "0775", "0755"), ("by everybody", "0757", "0755")] {
            run("chmod", &[spoil, PROGRAM]);
            host.refused("E_ENV", what, || host.mount("usb1", &disk.uuid));
            run("chmod", &[mend, PROGRAM]);
        }
        run("chown", &["1000", PROGRAM]);
        host.refused("E_ENV", "another's", || host.mount("usb1", &disk.uuid));
        run("chown", &["0", PROGRAM]);
        host.whole_policy(&format!("caller_uid = {CALLER_UID}\ntransports = [\"usb\", \"sata\", \"nvme\", \"scsi\", \"virtio\", \"mmc\"]\n{}", disk.target("usb1", "ext4")));
        host.refused("E_DEVICE_ABSENT", "a policy of a real box knows no files", || {
            host.mount("usb1", &disk.uuid)
        });
    });
}
