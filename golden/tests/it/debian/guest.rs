//! Guest from the archive: unpacked, booted by `systemd-nspawn`, inspected.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::tools::{contained, run};

/// Waits until each unit has settled, and records the result; then the guest shuts down.
const CHECK: &str = r#"exec >/check/log 2>/check/errors
settled() { for i in $(seq 100); do s=$(systemctl is-active $1); case $s in active|failed) break;; esac; sleep 0.3; done; echo "$2 $s"; }
settled ssh.service ssh
settled docker.service docker
echo "grow $(systemctl show -P ConditionResult holdfast-grow-root.service | sed 's/no/skipped/')"
for i in $(seq 100); do p=$(systemctl show -P ExecMainStartTimestampMonotonic guestd.service); [ "$p" != 0 ] && break; sleep 0.1; done
echo "guestd $(journalctl -u guestd.service -o cat --no-pager | grep -v systemd | tail -n 1 | sed 's/^$/none/;s/^/says: /' | grep . || echo none)"
echo "upgrades $(systemctl is-active holdfast-upgrade.timer)"
echo "watchdog $(systemctl show -P WatchdogUSec guestd.service)"
mkdir -p /run/systemd/system/guestd.service.d
printf '[Service]\nWatchdogSec=2s\n' >/run/systemd/system/guestd.service.d/check.conf
systemctl daemon-reload
systemctl restart guestd.service
before=$(systemctl show -P MainPID guestd.service)
kill -STOP $before
for i in $(seq 100); do now=$(systemctl show -P MainPID guestd.service); case $now in 0|$before) ;; *) break;; esac; sleep 0.3; done
echo "stopped $(case $now in 0|$before) echo stays;; *) echo restarted;; esac)"
echo "storage $(docker info --format '{{.Driver}} on cgroups {{.CgroupVersion}}' 2>&1 | tail -n 1)"
echo "compose $(docker compose version --short 2>&1 | tail -n 1)"
tar -C / -c usr/bin/tini-static | docker import - small:1 >/dev/null
echo "container $(docker run --rm --network none small:1 /usr/bin/tini-static --version 2>&1 | tail -n 1)"
echo "bridged $(docker run --rm small:1 /usr/bin/tini-static --version 2>&1 | tail -n 1)"
echo "trouble $(journalctl -u docker.service -p warning -o cat --no-pager | tail -n 1)"
systemctl --no-block poweroff
"#;
const UNIT: &str = "[Unit]\nAfter=network.target\n[Service]\nExecStart=/bin/bash /check/check.sh\n";

/// A guest's files.
pub struct Guest {
    place: PathBuf,
}

/// What it said of itself, a name and a value in each line.
pub struct Report {
    pub text: String,
    lines: BTreeMap<String, String>,
}

impl Guest {
    /// Unpacks the archive.
    pub fn unpack(archive: &Path, place: &Path) -> Self {
        let root = place.join("root");
        std::fs::create_dir_all(&root).unwrap();
        std::fs::create_dir_all(place.join("check")).unwrap();
        let plain = zstd::Decoder::new(std::fs::File::open(archive).unwrap()).unwrap();
        let mut tar = tar::Archive::new(plain);
        tar.set_preserve_permissions(true);
        tar.set_preserve_ownerships(true);
        tar.set_unpack_xattrs(true);
        tar.unpack(&root).unwrap();
        std::fs::remove_dir_all(root.join("etc/vzdump")).unwrap();
        let guest = Self { place: place.to_owned() };
        std::fs::write(place.join("check/check.sh"), CHECK).unwrap();
        std::fs::write(root.join("etc/systemd/system/check.service"), UNIT).unwrap();
        let wish = root.join("etc/systemd/system/multi-user.target.wants/check.service");
        std::os::unix::fs::symlink("/etc/systemd/system/check.service", wish).unwrap();
        guest
    }

    pub fn file(&self, path: &str) -> String {
        std::fs::read_to_string(self.place.join("root").join(path)).unwrap()
    }

    /// Its SSH host keys' public halves.
    pub fn ssh_keys(&self) -> Vec<String> {
        let folder = self.place.join("root/etc/ssh");
        let names =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut keys: Vec<String> =
            names.filter(|name| name.starts_with("ssh_host_") && name.ends_with(".pub")).collect();
        keys.sort();
        keys.iter().map(|name| self.file(&format!("etc/ssh/{name}"))).collect()
    }

    /// Boots it, and waits until it went out by itself. It may nest and have keyrings, as `pct.conf` says.
    pub fn boot(&self) -> Report {
        let (root, check) = (self.place.join("root"), self.place.join("check"));
        let said = contained(
            "180",
            &[
                "--quiet",
                "--boot",
                "--settings=no",
                "--keep-unit",
                "--register=no",
                "--console=pipe",
                "--resolv-conf=off",
                "--timezone=off",
                "--link-journal=no",
                "--private-network",
                "--capability=all",
                "--system-call-filter=add_key keyctl request_key bpf",
                &format!("--directory={}", root.display()),
                &format!("--bind={}:/check", check.display()),
            ],
        );
        let read = |name: &str| std::fs::read_to_string(check.join(name)).unwrap_or_default();
        let text = read("log");
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        let lines: BTreeMap<_, _> = lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        assert!(lines.contains_key("trouble"), "it told to the end: {text}{}{said}", read("errors"));
        Report { text, lines }
    }
}

impl Report {
    pub fn of(&self, name: &str) -> &str {
        self.lines.get(name).unwrap_or_else(|| panic!("{name} is missing: {}", self.text))
    }

    /// Docker must run where the kernel has what it needs; otherwise the missing feature is printed.
    pub fn docker(&self) {
        if !kernel_has_what_docker_asks() {
            println!("docker {}: this kernel lacks something: {}", self.of("docker"), self.of("trouble"));
            return;
        }
        assert_eq!(self.of("docker"), "active", "{}", self.text);
        assert!(self.of("compose").starts_with("2."), "{}", self.text);
        assert!(self.of("container").starts_with("tini version"), "{}", self.text);
    }
}

/// Overlays and bridges; what more Docker wants is in every kernel that has these two.
fn kernel_has_what_docker_asks() -> bool {
    let filesystems = std::fs::read_to_string("/proc/filesystems").unwrap();
    let bridge = "unshare --net ip link add hfprobe type bridge >/dev/null 2>&1 && echo yes || echo no";
    filesystems.lines().any(|line| line.ends_with("overlay")) && run("sh", &["-c", bridge]).trim() == "yes"
}
