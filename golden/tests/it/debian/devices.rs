//! Device rules of the shipped unit, in a version 1 cgroup.
//!
//! systemd enforces `DevicePolicy=` by a program in the kernel, which a container may not load. A group of the old `devices`
//! controller does the same: it is made here, by the unit's own lines, and the builder enters it before its first act.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::tools::run;

/// What `DevicePolicy=closed` allows by itself, as systemd.resource-control(5) names them.
const CLOSED: [&str; 5] = ["null", "zero", "full", "random", "urandom"];

/// The program that enters the group and then becomes the shipped one.
const ENTERS: &str = "#!/bin/sh\necho 0 >/check/devices/cgroup.procs || exit 70\nexec /usr/lib/holdfast/holdfast-helper.shipped \"$@\"\n";

/// A group of the `devices` controller, gone with this value.
pub struct Devices {
    hierarchy: PathBuf,
    group: PathBuf,
}

impl Devices {
    /// Makes it below `home`, with what the unit allows.
    pub fn of(unit: &str, home: &Path) -> Self {
        let hierarchy = home.join("devices");
        std::fs::create_dir_all(&hierarchy).unwrap();
        run("mount", &["-t", "cgroup", "-o", "devices", "holdfast-devices", hierarchy.to_str().unwrap()]);
        let group = hierarchy.join(format!("holdfast-golden-{}", std::process::id()));
        let made = Self { hierarchy, group };
        std::fs::create_dir(&made.group).unwrap();
        assert!(unit.contains("\nDevicePolicy=closed\n"), "the unit names its policy");
        made.say("devices.deny", "a");
        for name in CLOSED {
            made.say("devices.allow", &format!("c {} rwm", number(&format!("/dev/{name}"))));
        }
        for line in unit.lines().filter_map(|line| line.strip_prefix("DeviceAllow=")) {
            let (path, may) = line.split_once(' ').unwrap();
            made.say("devices.allow", &format!("c {} {may}", number(path)));
        }
        made
    }

    fn say(&self, file: &str, rule: &str) {
        std::fs::write(self.group.join(file), rule).unwrap_or_else(|error| panic!("{file} {rule}: {error}"));
    }

    /// What the container needs of it.
    pub fn bind(&self) -> String {
        format!("--bind={}:/check/devices", self.group.display())
    }

    /// Puts the program that enters the group in the helper's place.
    pub fn lay_out(helper: &str) {
        std::fs::rename(helper, format!("{helper}.shipped")).unwrap();
        std::fs::write(helper, ENTERS).unwrap();
        std::fs::set_permissions(helper, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
}

impl Drop for Devices {
    fn drop(&mut self) {
        // It is empty once the container is gone.
        drop(std::fs::remove_dir(&self.group));
        run("umount", &["-l", self.hierarchy.to_str().unwrap()]);
    }
}

/// `5:1` of a device.
fn number(path: &str) -> String {
    let device = std::fs::metadata(path).unwrap_or_else(|error| panic!("{path}: {error}")).rdev();
    format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device))
}
