//! The hardware of this host, as files show it.
//!
//! Input: the files that root's services write of disks and of packages, `/sys/class/hwmon` and `/sys/devices/system/edac`,
//! which every process may read. Output: raw values. Reading may block for as long as a chip takes to answer. Deliberately absent:
//! disks themselves, which only root may ask.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use held_files::atomic_file::{self, FileError};
use holdfast_protocol::report::UpdatesSection;
use jiff::Timestamp;

use crate::model::hardware_health::disks_file::{self, DiskReadings, DisksFileError, FILE_BYTES_MAX};
use crate::model::hardware_health::sensors::{RawController, RawSensor};
use crate::model::host_updates::{self, UpdatesFileError};

/// Where `holdfast-hardware.service` writes.
const DISKS: &str = "/run/holdfast-hardware/disks";

/// Where `holdfast-updates.service` writes.
const UPDATES: &str = "/run/holdfast-updates/updates";

/// Chips with sensors that are read. A large server has twenty.
const CHIPS_MAX: usize = 64;

/// Temperatures of one chip that are read. A processor has one for each core.
const SENSORS_MAX: usize = 64;

/// Memory controllers that are read. A machine of four sockets has sixteen.
const CONTROLLERS_MAX: usize = 64;

/// A value of the kernel is far shorter.
const VALUE_BYTES_MAX: u64 = 256;

/// The files.
#[derive(Clone, Debug)]
pub struct HardwareFiles {
    disks: PathBuf,
    sensors: PathBuf,
    memory: PathBuf,
    updates: PathBuf,
}

/// Why the file of the disks is not used.
#[derive(Debug, thiserror::Error)]
pub enum DisksError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("the file of `holdfast-hardware.service` is not used")]
    Form(#[from] DisksFileError),
}

/// Why the file of the packages is not used.
#[derive(Debug, thiserror::Error)]
pub enum UpdatesError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("the file of `holdfast-updates.service` is not used")]
    Form(#[from] UpdatesFileError),
}

impl HardwareFiles {
    /// Those of this host.
    #[must_use]
    pub fn of_the_host() -> Self {
        Self {
            disks: DISKS.into(),
            sensors: "/sys/class/hwmon".into(),
            memory: "/sys/devices/system/edac/mc".into(),
            updates: UPDATES.into(),
        }
    }

    /// Files of the same form in a folder: `disks`, `hwmon`, `edac` and `updates`.
    #[must_use]
    pub fn at(root: &Path) -> Self {
        Self {
            disks: root.join("disks"),
            sensors: root.join("hwmon"),
            memory: root.join("edac"),
            updates: root.join("updates"),
        }
    }

    /// The last reading of the disks; none where root's service wrote none.
    ///
    /// # Errors
    /// [`DisksError`].
    pub fn disks(&self) -> Result<Option<DiskReadings>, DisksError> {
        let Some(bytes) = atomic_file::read(&self.disks, FILE_BYTES_MAX)? else { return Ok(None) };
        Ok(Some(disks_file::read(&bytes)?))
    }

    /// The last reading of packages; none where root's service wrote none.
    ///
    /// # Errors
    /// [`UpdatesError`].
    pub fn updates(&self, now: Timestamp) -> Result<Option<UpdatesSection>, UpdatesError> {
        let Some(bytes) = atomic_file::read(&self.updates, host_updates::FILE_BYTES_MAX)? else {
            return Ok(None);
        };
        Ok(Some(host_updates::read(&bytes, now)?))
    }

    /// The temperatures, in the order of their chips.
    #[must_use]
    pub fn sensors(&self) -> Vec<RawSensor> {
        let chips = names(&self.sensors, "hwmon", CHIPS_MAX);
        chips.into_iter().flat_map(|chip| chip_sensors(&self.sensors.join(chip))).collect()
    }

    /// The counters of memory controllers.
    #[must_use]
    pub fn memory(&self) -> Vec<RawController> {
        let controllers = names(&self.memory, "mc", CONTROLLERS_MAX);
        let read = |name: String| {
            let folder = self.memory.join(name);
            let corrected = value(&folder.join("ce_count")).unwrap_or_default();
            RawController { corrected, uncorrected: value(&folder.join("ue_count")).unwrap_or_default() }
        };
        controllers.into_iter().map(read).collect()
    }
}

fn chip_sensors(folder: &Path) -> Vec<RawSensor> {
    let Some(chip) = value(&folder.join("name")) else { return Vec::new() };
    let inputs = names(folder, "temp", 4 * SENSORS_MAX);
    let sensors = inputs.iter().filter_map(|name| name.strip_suffix("_input")).take(SENSORS_MAX);
    let read = |sensor: &str| {
        let field = |field: &str| value(&folder.join(format!("{sensor}_{field}")));
        let label = field("label").unwrap_or_else(|| sensor.to_owned());
        Some(RawSensor { chip: chip.clone(), label, input: field("input")?, critical: field("crit") })
    };
    sensors.filter_map(read).collect()
}

/// The first names in a folder that begin so, sorted; none where there is no such folder.
fn names(folder: &Path, start: &str, most: usize) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().take(16 * most);
    let all = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = all.filter(|name| name.starts_with(start)).collect();
    names.sort();
    names.truncate(most);
    names
}

/// The text of a file of the kernel. A sensor that fails has none.
fn value(path: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(path).ok()?.take(VALUE_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn a_host_without_any_of_it_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let files = HardwareFiles::at(folder.path());
        assert!(files.disks().unwrap().is_none());
        assert!(HardwareFiles::at(&folder.path().join("none")).disks().unwrap().is_none());
        assert_eq!((files.sensors(), files.memory()), (Vec::new(), Vec::new()));
    }

    #[test]
    fn the_file_of_the_packages_is_plain_bounded_and_of_one_form() {
        let folder = tempfile::tempdir().unwrap();
        let (files, now) = (HardwareFiles::at(folder.path()), Timestamp::from_second(1_800_000_600).unwrap());
        assert!(files.updates(now).unwrap().is_none());
        write(folder.path(), &[("updates", "holdfast-updates 1 1800000000\nstatus 0\n")]);
        assert!(files.updates(now).unwrap().unwrap().pending.is_some());
        write(folder.path(), &[("updates", "{}")]);
        assert!(matches!(files.updates(now), Err(UpdatesError::Form(_))));
        write(folder.path(), &[("updates", &"\n".repeat(10 * 1024 * 1024))]);
        assert!(matches!(files.updates(now), Err(UpdatesError::File(_))));
    }

    #[test]
    fn sensors_and_counters_are_read_as_the_kernel_lays_them_out() {
        let folder = tempfile::tempdir().unwrap();
        write(
            folder.path(),
            &[
                ("hwmon/hwmon1/name", "coretemp\n"),
                ("hwmon/hwmon1/temp2_input", "41000\n"),
                ("hwmon/hwmon1/temp2_label", "Core 0\n"),
                ("hwmon/hwmon1/temp2_crit", "100000\n"),
                ("hwmon/hwmon1/temp3_label", "no input\n"),
                ("hwmon/hwmon1/fan1_input", "900\n"),
                ("hwmon/hwmon2/name", "acpitz\n"),
                ("hwmon/hwmon2/temp1_input", "27800\n"),
                ("hwmon/hwmon3/temp1_input", "1\n"),
                ("edac/mc0/ce_count", "3\n"),
                ("edac/mc0/ue_count", "0\n"),
                ("edac/mc1/ce_count", "1\n"),
                ("edac/power/control", "auto\n"),
            ],
        );
        let files = HardwareFiles::at(folder.path());
        let sensors: Vec<_> = files
            .sensors()
            .into_iter()
            .map(|one| format!("{} {} {} {:?}", one.chip, one.label, one.input, one.critical))
            .collect();
        assert_eq!(sensors, ["coretemp Core 0 41000 Some(\"100000\")", "acpitz temp1 27800 None"]);
        let counts: Vec<_> =
            files.memory().into_iter().map(|one| format!("{}/{}", one.corrected, one.uncorrected)).collect();
        assert_eq!(counts, ["3/0", "1/"]);
    }

    #[test]
    fn the_file_of_the_disks_is_plain_bounded_and_of_one_form() {
        let folder = tempfile::tempdir().unwrap();
        let (files, path) = (HardwareFiles::at(folder.path()), folder.path().join("disks"));
        write(folder.path(), &[("disks", "holdfast-disks 1 1800000000\ndisk /dev/sda\n")]);
        assert_eq!(files.disks().unwrap().unwrap().disks.len(), 1);
        write(folder.path(), &[("disks", "{}")]);
        assert!(matches!(files.disks(), Err(DisksError::Form(_))));
        write(folder.path(), &[("disks", &"\n".repeat(usize::try_from(FILE_BYTES_MAX).unwrap() + 1))]);
        assert!(matches!(files.disks(), Err(DisksError::File(_))));
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
        assert!(matches!(files.disks(), Err(DisksError::File(_))));
    }
}
