//! Points at which tests end this program, as a power cut would.
//!
//! In: the name of a point, in a file that only root can write. Out: nothing, or the end of this process, once. Absent
//! from builds that are shipped (`debug_assertions` are off there).

use crate::settings::Settings;

/// Each point lies between two effects on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    Accepted,
    FillingStored,
    BuildCopied,
    TrialStored,
    StartCounted,
    LinkMade,
    WatchStarted,
    VerdictStored,
}

impl Point {
    const fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::FillingStored => "filling_stored",
            Self::BuildCopied => "build_copied",
            Self::TrialStored => "trial_stored",
            Self::StartCounted => "start_counted",
            Self::LinkMade => "link_made",
            Self::WatchStarted => "watch_started",
            Self::VerdictStored => "verdict_stored",
        }
    }
}

/// Ends the process where a test asked for it.
pub fn at(settings: &Settings, point: Point) {
    if !cfg!(debug_assertions) {
        return;
    }
    let Some(folder) = settings.paths.link.parent() else { return };
    let file = folder.join("end-at");
    if std::fs::read_to_string(&file).is_ok_and(|name| name.trim() == point.name()) {
        drop(std::fs::remove_file(&file));
        let own = rustix::process::getpid();
        if let Err(error) = rustix::process::kill_process(own, rustix::process::Signal::KILL) {
            eprintln!("the process cannot end itself: {error}");
        }
    }
}
