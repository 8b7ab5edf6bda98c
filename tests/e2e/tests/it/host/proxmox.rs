//! The simulated Proxmox inside the booted machine.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use e2e::stage::Golden;

use super::machine::{Machine, command, run};

/// The folder with the archives of `backup2`.
pub const DUMP: &str = "/var/lib/pve-sim/root/mnt/backup2/dump";

/// Lays the simulator, its commands and the golden archive into a machine that is off.
pub fn lay(machine: &Machine, simulator: &Path, golden: &Golden) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/host/box");
    let seed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pve-sim/demo-seed");
    let copy = |mode: &str, from: &Path, inside: &str| {
        run(command("install").args(["-D", "-m", mode]).arg(from).arg(machine.path(inside)));
    };
    copy("755", simulator, "/opt/pve-sim/pve-sim");
    for name in ["interfaces", "storage.cfg", "user.cfg"] {
        copy("644", &seed.join(name), &format!("/opt/pve-sim/seed/{name}"));
    }
    for name in ["pveum", "pvesh"] {
        copy("755", &here.join("proxmox"), &format!("/usr/local/sbin/{name}"));
    }
    copy("644", &here.join("pveproxy.service"), "/etc/systemd/system/pveproxy.service");
    copy("644", &golden.file, &format!("{DUMP}/{}", golden.name().unwrap()));
    // A node has the name of its machine.
    std::fs::write(machine.path("/etc/hostname"), "pve1\n").unwrap();
    std::fs::write(machine.path("/etc/hosts"), "127.0.0.1 localhost\n127.0.1.1 pve1\n").unwrap();
    // The kernel beneath keeps the time. No service in the machine may set it, so the mark is made at each boot.
    let mark = "d /run/systemd/timesync 0755\nf /run/systemd/timesync/synchronized 0644\n";
    std::fs::write(machine.path("/etc/tmpfiles.d/clock.conf"), mark).unwrap();
    // Where a node has its certificate.
    std::fs::create_dir_all(machine.path("/etc/pve/local")).unwrap();
    symlink("/var/lib/pve-sim/etc/cert.pem", machine.path("/etc/pve/local/pve-ssl.pem")).unwrap();
    // The agent reads archives of a storage, and of nothing else of Proxmox's.
    for folder in Path::new(DUMP).ancestors().take_while(|folder| *folder != Path::new("/var/lib")) {
        let inside = machine.path(folder.to_str().unwrap());
        std::fs::set_permissions(inside, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    machine_wants(machine, "pveproxy.service");
}

fn machine_wants(machine: &Machine, unit: &str) {
    let wants = machine.path("/etc/systemd/system/multi-user.target.wants");
    std::fs::create_dir_all(&wants).unwrap();
    symlink(format!("/etc/systemd/system/{unit}"), wants.join(unit)).unwrap();
}
