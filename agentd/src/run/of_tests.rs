//! Settings that only builds for tests read, from the environment.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Tasks;
use crate::model::usage::UsageMeter;
use crate::port::hardware::HardwareFiles;
use crate::task::stop::Stop;

const STALL_STEP: Duration = Duration::from_millis(10);

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

/// Holds the one thread of all loops while the file is there that `HOLDFAST_STALL` names, as a loop would that computes for
/// ever. A second file, `….held`, says that it does.
pub(super) fn stall(tasks: &mut Tasks, stop: &Stop) {
    let Some(file) = variable("HOLDFAST_STALL").map(PathBuf::from) else { return };
    let mut stop = stop.clone();
    tasks.spawn(async move {
        while !stop.is_requested() {
            while file.exists() {
                drop(std::fs::write(file.with_extension("held"), ""));
                std::thread::sleep(STALL_STEP);
            }
            tokio::select! {
                () = stop.requested() => {}
                () = tokio::time::sleep(STALL_STEP) => {}
            }
        }
        "stall"
    });
}

#[cfg(feature = "testing")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[cfg(not(feature = "testing"))]
const fn variable(_: &str) -> Option<String> {
    None
}
