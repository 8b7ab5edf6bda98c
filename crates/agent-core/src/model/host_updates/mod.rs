//! Pending upgrades of the host, from the file that root's service writes.
//!
//! ```text
//! holdfast-updates 1 1795791828             form, version, seconds since 1970
//! kernel 6.8.12-4-pve                       the kernel that runs
//! installed-kernel 6.8.12-9-pve             one line for each in /boot
//! lists-changed 1795790000                  when package lists last changed
//! lists-tried 1795791000                    when it was last tried to fetch them
//! restart-announced                         there is /run/reboot-required
//! restart-package linux-image-amd64         a package that asked for it
//! Inst sed [4.9-1] (4.9-1+deb12u1 Debian:12.14/oldstable [amd64])
//! Remv tk-dev [8.6.13]
//! E: a sentence of apt
//! status 0                                  the exit status of apt
//! ```
//! In: its bytes, and the time. Out: the section of the report. A line of another kind is ignored. Without `status 0` nothing
//! is known of pending upgrades. Deliberately absent: what is wrong with it, which `plan::conditions` derives.

mod apt_line;
mod kernel_version;

use holdfast_protocol::report::{
    PACKAGES_MAX, PackageOrigin, PackageText, PendingPackage, PendingPackages, RESTART_PACKAGES_MAX,
    RestartReason, UpdatesSection, UpgradeKind,
};
use jiff::Timestamp;

/// The whole file, in bytes: four thousand lines of apt.
pub const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Why a file is unusable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpdatesFileError {
    #[error("its first line is not `holdfast-updates 1 SECONDS`: another version of the package wrote it")]
    Header,
}

/// Reads it. Times in the future are as if they were now.
///
/// # Errors
/// [`UpdatesFileError`]; then nothing of it is used.
pub fn read(bytes: &[u8], now: Timestamp) -> Result<UpdatesSection, UpdatesFileError> {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.split('\n');
    let header = lines.next().and_then(|line| line.strip_prefix("holdfast-updates 1 "));
    let read_at = header.and_then(|text| time(text, now)).ok_or(UpdatesFileError::Header)?;
    let mut found = Lines::default();
    lines.for_each(|line| found.take(line, now));
    Ok(found.section(read_at))
}

fn time(text: &str, now: Timestamp) -> Option<Timestamp> {
    text.trim().parse().ok().and_then(|seconds| Timestamp::from_second(seconds).ok()).map(|at| at.min(now))
}

/// What the lines say, before it is known whether apt succeeded.
#[derive(Default)]
struct Lines {
    running: Option<PackageText>,
    installed: Vec<PackageText>,
    lists_changed_at: Option<Timestamp>,
    lists_tried_at: Option<Timestamp>,
    is_announced: bool,
    restart_packages: Vec<PackageText>,
    pending: PendingPackages,
    complaint: Option<PackageText>,
    status: Option<u32>,
}

/// More kernels than any host has in /boot.
const KERNELS_MAX: usize = 64;

impl Lines {
    fn take(&mut self, line: &str, now: Timestamp) {
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        match kind {
            "kernel" => self.running = PackageText::clipped(rest),
            "installed-kernel" if self.installed.len() < KERNELS_MAX => {
                self.installed.extend(PackageText::clipped(rest));
            }
            "lists-changed" => self.lists_changed_at = time(rest, now),
            "lists-tried" => self.lists_tried_at = time(rest, now),
            "restart-announced" => self.is_announced = true,
            "restart-package" if self.restart_packages.len() < RESTART_PACKAGES_MAX => {
                self.restart_packages.extend(PackageText::clipped(rest));
            }
            "Inst" => self.install(rest),
            "Remv" => self.pending.removals = self.pending.removals.saturating_add(1),
            "E:" => self.complaint = self.complaint.take().or_else(|| PackageText::clipped(rest)),
            "status" => self.status = rest.trim().parse().ok(),
            _ => {}
        }
    }

    fn install(&mut self, rest: &str) {
        let parsed = apt_line::install(rest);
        // A line that apt writes in another form still counts.
        let origin = parsed.as_ref().map_or(PackageOrigin::Other, |package| package.origin);
        let count = match origin {
            PackageOrigin::Debian => &mut self.pending.debian,
            PackageOrigin::Proxmox => &mut self.pending.proxmox,
            PackageOrigin::Other => &mut self.pending.other,
        };
        *count = count.saturating_add(1);
        let Some(package) = parsed else { return };
        if package.kind == UpgradeKind::Security {
            self.pending.security = self.pending.security.saturating_add(1);
        }
        self.pending.packages.push(package);
    }

    fn section(mut self, read_at: Timestamp) -> UpdatesSection {
        // The sort is stable: within a rank the order is apt's.
        self.pending.packages.sort_by_key(rank);
        self.pending.packages.truncate(PACKAGES_MAX);
        let (pending, failure) = match self.status {
            Some(0) => (Some(self.pending), None),
            status => (None, failure(self.complaint, status)),
        };
        let running = self.running.as_ref().map(PackageText::as_str);
        let newest = running.and_then(|running| kernel_version::newest(running, &self.installed));
        let is_newer = running
            .zip(newest)
            .is_some_and(|(running, newest)| kernel_version::is_newer(newest.as_str(), running));
        let mut restart = Vec::new();
        restart.extend(is_newer.then_some(RestartReason::NewerKernel));
        restart.extend(self.is_announced.then_some(RestartReason::Announced));
        UpdatesSection {
            read_at,
            lists_changed_at: self.lists_changed_at,
            lists_tried_at: self.lists_tried_at,
            pending,
            failure,
            newest_kernel: newest.cloned(),
            running_kernel: self.running,
            restart,
            restart_packages: self.restart_packages,
        }
    }
}

/// What is left out of a long report last comes first.
const fn rank(package: &PendingPackage) -> (UpgradeKind, u8) {
    let origin = match package.origin {
        PackageOrigin::Proxmox => 0,
        PackageOrigin::Debian => 1,
        PackageOrigin::Other => 2,
    };
    (package.kind, origin)
}

fn failure(complaint: Option<PackageText>, status: Option<u32>) -> Option<PackageText> {
    complaint.or_else(|| {
        let text = match status {
            Some(124 | 137) => "apt-get did not end in time".to_owned(),
            Some(status) => format!("apt-get ended with exit status {status}"),
            None => "the reading was cut off".to_owned(),
        };
        PackageText::clipped(&text)
    })
}

#[cfg(test)]
mod tests;
