//! Tests of the shipped script that reads the disks.
//!
//! A program of ours is in the place of smartctl.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]
#![expect(clippy::disallowed_methods, reason = "the script is run as its unit runs it")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use agentd::port::hardware::HardwareFiles;
use holdfast_protocol::report::{DiskHealth, DiskReading};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging/agent/read-disks");

/// Lists four disks. One answers, one sleeps, one prints nonsense, and one is behind a controller and fails.
const SMARTCTL: &str = r##"#!/bin/sh
case "$*" in
    --scan)
        echo "/dev/sda -d scsi # /dev/sda, SCSI device"
        echo "/dev/sdb -d scsi # /dev/sdb, SCSI device"
        echo "/dev/nvme0 -d nvme # /dev/nvme0, NVMe device"
        echo "/dev/bus/0 -d megaraid,4 # /dev/bus/0 [megaraid_disk_04], SCSI device"
        echo "# a line that is no device" ;;
    *"--device=auto /dev/sda")
        printf '{"smartctl":{"exit_status":0},\n"serial_number":"S1","smart_status":{"passed":true}}' ;;
    *"--device=auto /dev/sdb") printf '{"smartctl":{"exit_status":3}}'; exit 3 ;;
    *"--device=nvme /dev/nvme0") echo "disk /dev/forged"; exit 1 ;;
    *"--device=megaraid,4 /dev/bus/0") exit 2 ;;
esac
"##;

fn run(folder: &Path, smartctl: &str) -> std::process::Output {
    let program = folder.join("smartctl");
    std::fs::write(&program, smartctl).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::process::Command::new("sh").arg(SCRIPT).arg(&program).arg(folder).output().unwrap()
}

#[test]
fn each_listed_disk_is_a_row_whatever_it_answers() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), SMARTCTL);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read = HardwareFiles::at(folder.path()).disks().unwrap().unwrap();
    let rows: Vec<_> =
        read.disks.iter().map(|disk| (disk.device.as_str(), disk.reading, disk.health)).collect();
    let unknown = DiskHealth::Unknown;
    assert_eq!(
        rows,
        [
            ("/dev/sda", DiskReading::Read, DiskHealth::Passed),
            ("/dev/sdb", DiskReading::Asleep, unknown),
            ("/dev/nvme0", DiskReading::Unreadable, unknown),
            // What it printed made no other row.
            ("/dev/bus/0 megaraid,4", DiskReading::Unreadable, unknown),
        ]
    );
    assert!(!folder.path().join("disks.new").exists());
}

#[test]
fn the_last_reading_stays_where_the_folder_takes_no_other() {
    let folder = tempfile::tempdir().unwrap();
    assert!(run(folder.path(), SMARTCTL).status.success());
    let before = std::fs::read(folder.path().join("disks")).unwrap();
    std::fs::create_dir(folder.path().join("disks.new")).unwrap();
    assert!(!run(folder.path(), SMARTCTL).status.success());
    assert_eq!(std::fs::read(folder.path().join("disks")).unwrap(), before);
}
