//! A disk image that can be detached and replaced.

use std::path::{Path, PathBuf};
use std::time::Duration;

use e2e::wait;

use super::machine::{command, run};

/// A loop device for a file.
pub struct Disk {
    image: PathBuf,
    /// Such as `/dev/loop7`.
    pub device: String,
    /// Of its file system.
    pub uuid: String,
}

impl Disk {
    /// Makes an ext4 and puts it in.
    pub fn new(folder: &Path) -> Self {
        let uuid = std::fs::read_to_string("/proc/sys/kernel/random/uuid").unwrap().trim().to_owned();
        let image = Self::image(folder, "disk", &uuid);
        // Not the first free device: every other program on this machine requests that one.
        let taken = run(command("losetup").args(["--list", "--noheadings", "--output", "NAME"]));
        let free =
            |device: &String| Path::new(device).exists() && !taken.lines().any(|line| line.trim() == device);
        let mut devices = (0..64).rev().map(|number| format!("/dev/loop{number}")).filter(free);
        // Another machine of these tests may take the same one at this moment.
        let takes = |device: &String| {
            command("losetup").arg(device).arg(&image).status().is_ok_and(|status| status.success())
        };
        let device = devices.find(takes).expect("no loop device is free");
        Self { image, device, uuid }
    }

    fn image(folder: &Path, name: &str, uuid: &str) -> PathBuf {
        let image = folder.join(format!("{name}.img"));
        run(command("truncate").args(["--size", "64M"]).arg(&image));
        run(command("mkfs.ext4").args(["-q", "-F", "-U", uuid]).arg(&image));
        image
    }

    /// As the kernel calls it.
    pub fn name(&self) -> &str {
        self.device.trim_start_matches("/dev/")
    }

    /// Puts it in.
    pub fn put_in(&self) {
        run(command("losetup").arg(&self.device).arg(&self.image));
    }

    /// Pulls it out. The kernel releases it when the last mount is gone and no process reads it any more.
    pub fn pull_out(&self) {
        run(command("losetup").args(["--detach", &self.device]));
    }

    /// Waits until the kernel has released it; meanwhile it calls `again`.
    pub fn until_out(&self, again: impl Fn()) {
        let backing = format!("/sys/block/{}/loop/backing_file", self.name());
        let out = wait::until("the end of the disk", Duration::from_secs(30), || {
            again();
            Ok((!Path::new(&backing).exists()).then_some(()))
        });
        out.unwrap();
    }

    /// The same drive and the same UUID, with nothing on it. The old contents are kept in another file.
    pub fn empty(&self) {
        std::fs::rename(&self.image, self.image.with_extension("kept")).unwrap();
        Self::image(self.image.parent().unwrap(), "disk", &self.uuid);
    }

    /// Its earlier contents are on it again.
    pub fn fill_again(&self) {
        std::fs::rename(self.image.with_extension("kept"), &self.image).unwrap();
    }

    /// Puts another disk into its place: the same UUID, another drive.
    pub fn put_in_another(&self, folder: &Path) {
        let other = Self::image(folder, "another", &self.uuid);
        run(command("losetup").arg(&self.device).arg(other));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // It may be out already, which is intended.
        let _out = command("losetup").args(["--detach", &self.device]).output();
    }
}
