//! Tests of the tiny image with Proxmox's network configuration.
//!
//! Proxmox gives a container its interfaces and writes `/etc/network/interfaces`; no address is set from outside. It
//! needs root for the namespaces.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use holdfast_golden::OnConflict;

use super::debian::tools::command;
use super::tiny::tiny;

/// Far longer than a boot; reached only when something is broken.
const DEADLINE: Duration = Duration::from_secs(60);

/// A program in place of the controller: it reports the network that it finds, once, and keeps running.
const CONTROLLER: &str = "#!/bin/sh\n\
    { ip -4 addr show; ip -6 addr show; ip route show; } >/check.new 2>&1\n\
    mv /check.new /check\n\
    exec sleep 600\n";

/// Interfaces as a container gets them, each the end of a cable; a server of addresses behind the last one. The kernel names the
/// other ends `veth0` and so on.
const CABLES: &str = "for n in 0 1 2; do ip link add eth$n type veth; ip link set veth$n up; done\n\
    ip addr add 192.0.2.1/24 dev veth2\n\
    udhcpd -S /udhcpd.conf\n\
    exec /sbin/init\n";
const LEASES: &str = "start 192.0.2.20\nend 192.0.2.20\ninterface veth2\nlease_file /leases\npidfile /udhcpd.pid\n\
    option subnet 255.255.255.0\noption router 192.0.2.1\n";

/// A boot; its init ends with this.
struct Boot(Child);

impl Drop for Boot {
    fn drop(&mut self) {
        // Gone already is as good.
        let _ = self.0.kill();
        self.0.wait().unwrap();
    }
}

/// Boots the image with this file; gives what its controller found.
fn boot(interfaces: &str) -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        assert!(std::env::var_os("HOLDFAST_CI").is_none(), "CI runs this as root");
        eprintln!("skipped: namespaces need root");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let built = tiny(folder.path(), OnConflict::Replace)?.unwrap();
    let root = folder.path().join("root");
    let plain = zstd::Decoder::new(fs::File::open(&built.archive).unwrap()).unwrap();
    let mut archive = tar::Archive::new(plain);
    archive.set_preserve_permissions(true);
    archive.unpack(&root).unwrap();
    for (path, text) in [
        ("etc/network/interfaces", interfaces),
        ("usr/bin/guestd", CONTROLLER),
        ("cables", CABLES),
        ("udhcpd.conf", LEASES),
        ("leases", ""),
    ] {
        fs::write(root.join(path), text).unwrap();
    }
    fs::set_permissions(root.join("usr/bin/guestd"), fs::Permissions::from_mode(0o755)).unwrap();
    // A container has these.
    for device in ["null", "console"] {
        fs::write(root.join("dev").join(device), "").unwrap();
    }
    Some(run(&root))
}

fn run(root: &Path) -> String {
    let words = ["--net", "--pid", "--fork", "--kill-child", "--mount", "--uts", "--ipc", "--"];
    let mut child = command("unshare");
    child.args(words).arg("chroot").arg(root).args(["/bin/sh", "/cables"]).env_clear();
    child.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").stdin(Stdio::null()).stdout(Stdio::null());
    let mut boot = Boot(child.spawn().unwrap());
    let begin = Instant::now();
    loop {
        if let Ok(found) = fs::read_to_string(root.join("check")) {
            return found;
        }
        assert_eq!(boot.0.try_wait().unwrap(), None, "it went down");
        assert!(begin.elapsed() < DEADLINE, "its controller was not started");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn has(found: &str, words: &str) {
    assert!(found.lines().any(|line| line.contains(words)), "{words:?} is missing:\n{found}");
}

#[test]
fn static_addresses_are_up_before_the_controller() {
    let Some(found) = boot(
        "auto lo\niface lo inet loopback\n\n\
         auto eth0\niface eth0 inet static\n\taddress 10.66.0.91/24\n\tgateway 10.66.0.1\n\n\
         auto eth1\niface eth1 inet static\n\taddress 10.77.3.4/16\n\n\
         iface eth1 inet6 static\n\taddress fd00:77::4/64\n\n\
         auto eth2\niface eth2 inet manual\n\niface eth2 inet6 auto\n",
    ) else {
        return;
    };
    for words in [
        "inet 127.0.0.1/8",
        "inet 10.66.0.91/24",
        "inet 10.77.3.4/16",
        "inet6 fd00:77::4/64",
        "default via 10.66.0.1 dev eth0",
    ] {
        has(&found, words);
    }
}

/// A gateway outside the address's own network needs routes of its own; the address of a lease is in no file.
#[test]
fn routes_and_leases_are_applied_and_unknown_settings_ignored() {
    let Some(found) = boot(
        "auto lo\niface lo inet loopback\n\n\
         auto eth0\niface eth0 inet static\n\taddress 10.66.0.91/24\n# --- BEGIN PVE ---\n\
         \tpost-up ip route add 198.51.100.1 dev eth0\n\
         \tpost-up ip route add 203.0.113.0/24 via 198.51.100.1 dev eth0\n\
         \tpre-down ip route del 198.51.100.1 dev eth0\n# --- END PVE ---\n\n\
         iface eth0 inet6 dhcp\n\n\
         auto eth9\niface eth9 inet static\n\taddress 10.88.0.1/24\n\n\
         auto eth2\niface eth2 inet dhcp\n",
    ) else {
        return;
    };
    for words in [
        "inet 10.66.0.91/24",
        "198.51.100.1 dev eth0",
        "203.0.113.0/24 via 198.51.100.1",
        "inet 192.0.2.20/24",
        "default via 192.0.2.1 dev eth2",
    ] {
        has(&found, words);
    }
}
