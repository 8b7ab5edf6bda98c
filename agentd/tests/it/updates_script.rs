//! Tests of the shipped script that reads the packages.
//!
//! A program of ours is in the place of apt-get, and a folder in the place of the system.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]
#![expect(clippy::disallowed_methods, reason = "the script is run as its unit runs it")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use agentd::port::hardware::HardwareFiles;
use holdfast_protocol::report::{RestartReason, UpdatesSection};
use jiff::Timestamp;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging/agent/read-updates");

const APT: &str = r##"#!/bin/sh
[ "$*" = "--simulate --quiet --option Debug::NoLocking=1 dist-upgrade" ] || exit 3
echo "Reading package lists..."
echo "  base-files bash"
echo "Inst bash [5.2.15-2+b8] (5.2.15-2+b13 Debian:12.14/oldstable [amd64])"
echo "Conf bash (5.2.15-2+b13 Debian:12.14/oldstable [amd64])"
echo "Inst perl [5.36.0-7+deb12u2] (5.36.0-7+deb12u4 Debian-Security:12/oldstable-security [amd64]) []"
echo "N: a note" >&2
"##;

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A system with a newer kernel than the one that runs.
fn system(root: &Path) {
    write(&root.join("proc/sys/kernel/osrelease"), "6.8.12-4-pve\n");
    write(&root.join("boot/vmlinuz-6.8.12-4-pve"), "");
    write(&root.join("boot/vmlinuz-6.8.12-9-pve"), "");
    write(&root.join("boot/initrd.img-6.8.12-9-pve"), "");
    write(&root.join("var/lib/apt/lists/deb_dists_s_InRelease"), "");
    std::fs::create_dir_all(root.join("var/lib/apt/lists/partial")).unwrap();
}

fn run(folder: &Path, apt: &str) -> std::process::Output {
    let program = folder.join("apt-get");
    write(&program, apt);
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let root = folder.join("root");
    std::process::Command::new("sh").arg(SCRIPT).arg(&program).arg(folder).arg(root).output().unwrap()
}

fn reading(folder: &Path, apt: &str) -> UpdatesSection {
    let output = run(folder, apt);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    HardwareFiles::at(folder).updates(Timestamp::MAX).unwrap().unwrap()
}

#[test]
fn packages_kernels_and_the_age_of_the_lists_are_read() {
    let folder = tempfile::tempdir().unwrap();
    system(&folder.path().join("root"));
    let section = reading(folder.path(), APT);
    let pending = section.pending.unwrap();
    assert_eq!((pending.total(), pending.security), (2, 1));
    assert_eq!(section.restart, [RestartReason::NewerKernel]);
    // The lists are of this run, by the clock of the kernel that both were written by.
    let age = section.read_at.duration_since(section.lists_changed_at.unwrap());
    assert!(section.lists_tried_at.is_some() && age.as_hours() == 0, "{age}");
    assert!(!folder.path().join("updates.new").exists());
}

#[test]
fn an_announced_restart_is_read_with_its_packages() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    write(&root.join("proc/sys/kernel/osrelease"), "6.8.12-4-pve\n");
    write(&root.join("run/reboot-required"), "");
    write(&root.join("run/reboot-required.pkgs"), "linux-image-amd64\nlinux-base\nlinux-base\n");
    let section = reading(folder.path(), APT);
    assert_eq!(
        (section.restart.as_slice(), section.restart_packages.len()),
        ([RestartReason::Announced].as_slice(), 2)
    );
    assert_eq!((section.lists_changed_at, section.lists_tried_at), (None, None), "there are no lists");
}

#[test]
fn what_apt_refuses_is_no_reading_of_packages_and_not_the_end_of_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    system(&folder.path().join("root"));
    let section =
        reading(folder.path(), "#!/bin/sh\necho 'E: The package lists could not be parsed' >&2\nexit 100\n");
    assert_eq!(section.failure.unwrap().as_str(), "The package lists could not be parsed");
    assert_eq!((section.pending, section.restart.len()), (None, 1));
}

/// Ten megabytes, of which a part is one line and a part is no text.
#[test]
fn a_flood_is_cut_and_its_end_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    system(&folder.path().join("root"));
    let apt = "#!/bin/sh\nhead -c 5000000 /dev/zero | tr '\\0' 'I'\nhead -c 100000 /dev/zero\n\
               yes 'Inst sed [1] (2 Debian:12/s [amd64])' | head -n 200000\nprintf 'Inst \\033[2J\\001 (\\n'\n";
    let section = reading(folder.path(), apt);
    assert_eq!(section.pending.unwrap().total(), 4_095);
    assert!(std::fs::metadata(folder.path().join("updates")).unwrap().len() < 512 * 1024);
}

#[test]
fn the_last_reading_stays_where_the_folder_takes_no_other() {
    let folder = tempfile::tempdir().unwrap();
    system(&folder.path().join("root"));
    assert!(run(folder.path(), APT).status.success());
    let before = std::fs::read(folder.path().join("updates")).unwrap();
    std::fs::create_dir(folder.path().join("updates.new")).unwrap();
    assert!(!run(folder.path(), APT).status.success());
    assert_eq!(std::fs::read(folder.path().join("updates")).unwrap(), before);
}
