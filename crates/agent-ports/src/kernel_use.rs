//! Figures of use that the kernel gives to every reader.
//!
//! In: files of the control groups, and `sysinfo(2)`. Out: load, swap and pressure. What cannot be read is not there: an older
//! kernel has no pressure, and a guest that ended has no files.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use holdfast_protocol::id::Vmid;
use holdfast_protocol::usage::{Readings, UsageMetric};

/// Where the control groups are.
const CONTROL_GROUPS: &str = "/sys/fs/cgroup";

/// A file of pressure has two lines of less than a hundred bytes. The kernel gives them in one read.
const PRESSURE_BYTES_MAX: usize = 512;

/// How a load is scaled by `sysinfo(2)`.
const LOAD_SHIFT: u32 = 16;

/// The kernel's figures.
#[derive(Clone, Debug)]
pub struct KernelUse {
    control_groups: PathBuf,
}

impl KernelUse {
    /// Those of this host.
    #[must_use]
    pub fn real() -> Self {
        Self::at(CONTROL_GROUPS)
    }

    /// Those of another tree of control groups.
    #[must_use]
    pub fn at(control_groups: impl Into<PathBuf>) -> Self {
        Self { control_groups: control_groups.into() }
    }

    /// Load, swap and pressure of the host.
    #[must_use]
    pub fn host(&self) -> Readings {
        let info = rustix::system::sysinfo();
        let bytes = |units: u64| units.saturating_mul(u64::from(info.mem_unit));
        let mut readings = pressure(&self.control_groups);
        let [load, ..] = info.loads;
        readings.insert(UsageMetric::Load, load.saturating_mul(100) >> LOAD_SHIFT);
        let total = bytes(info.totalswap);
        readings.insert(UsageMetric::SwapTotal, total);
        readings.insert(UsageMetric::SwapUsed, total.saturating_sub(bytes(info.freeswap)));
        readings
    }

    /// Pressure of a container.
    #[must_use]
    pub fn guest(&self, vmid: Vmid) -> Readings {
        pressure(&self.control_groups.join("lxc").join(vmid.to_string()))
    }
}

fn pressure(folder: &Path) -> Readings {
    let files = [
        (UsageMetric::CpuPressure, "cpu.pressure"),
        (UsageMetric::MemoryPressure, "memory.pressure"),
        (UsageMetric::IoPressure, "io.pressure"),
    ];
    let read = |name| {
        let mut bytes = [0; PRESSURE_BYTES_MAX];
        let length = File::open(folder.join(name)).ok()?.read(&mut bytes).ok()?;
        some_of_a_minute(std::str::from_utf8(bytes.get(..length)?).ok()?)
    };
    files.into_iter().filter_map(|(metric, name)| Some((metric, read(name)?))).collect()
}

/// `some … avg60=1.23 …` in thousandths.
fn some_of_a_minute(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let percent = line.split(' ').find_map(|field| field.strip_prefix("avg60="))?;
    let (whole, hundredths) = percent.split_once('.')?;
    let tenths = hundredths.chars().next()?.to_digit(10)?;
    let permille = whole.parse::<u64>().ok()?.checked_mul(10)?.checked_add(u64::from(tenths))?;
    (permille <= 1000).then_some(permille)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_is_read_in_thousandths() {
        let line = |avg: &str| {
            format!("some avg10=0.10 avg60={avg} avg300=3.00 total=5\nfull avg10=0.00 avg60=9.99\n")
        };
        let cases = [
            ("0.00", Some(0)),
            ("1.23", Some(12)),
            ("100.00", Some(1000)),
            ("100.10", None),
            ("x.1", None),
            ("7", None),
        ];
        for (avg, expected) in cases {
            assert_eq!(some_of_a_minute(&line(avg)), expected, "{avg}");
        }
        assert_eq!(some_of_a_minute("full avg10=0.00 avg60=1.00"), None);
    }

    #[test]
    fn what_cannot_be_read_is_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let guest = folder.path().join("lxc/301");
        std::fs::create_dir_all(&guest).unwrap();
        std::fs::write(guest.join("io.pressure"), "some avg10=0.00 avg60=2.50 avg300=0.00 total=1\n")
            .unwrap();
        std::fs::write(guest.join("cpu.pressure"), [0xff; 700]).unwrap();
        let kernel = KernelUse::at(folder.path());
        let read = |number: u32| kernel.guest(Vmid::try_from(number).unwrap());
        assert_eq!(read(301), Readings::from([(UsageMetric::IoPressure, 25)]));
        assert_eq!(read(302), Readings::new());
        let host = KernelUse::real().host();
        assert!(
            host.contains_key(&UsageMetric::Load)
                && host[&UsageMetric::SwapUsed] <= host[&UsageMetric::SwapTotal]
        );
    }
}
