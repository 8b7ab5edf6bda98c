//! Settings that only builds for tests read, from the environment.

use std::path::Path;
use std::time::Duration;

use crate::model::usage::UsageMeter;
use crate::port::hardware::HardwareFiles;

/// Disks, sensors and memory: those of the host, or of the folder that `HOLDFAST_HARDWARE` names.
pub(super) fn hardware() -> HardwareFiles {
    match variable("HOLDFAST_HARDWARE") {
        Some(folder) => HardwareFiles::at(Path::new(&folder)),
        None => HardwareFiles::of_the_host(),
    }
}

/// What gathers samples of use: for a minute, or for as many seconds as `HOLDFAST_USAGE_S` says.
pub(super) fn usage_meter() -> UsageMeter {
    let seconds = variable("HOLDFAST_USAGE_S").and_then(|text| text.parse().ok());
    seconds.map_or_else(UsageMeter::default, |seconds| UsageMeter::every(Duration::from_secs(seconds)))
}

#[cfg(feature = "testing")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[cfg(not(feature = "testing"))]
const fn variable(_: &str) -> Option<String> {
    None
}
