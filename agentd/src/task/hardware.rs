//! The task that reads the hardware.
//!
//! In: the files of root's services, and what the kernel shows. Out: a view, which the report has; listeners hear of it only
//! when its section is another. Files are read on a thread of their own, since a chip may answer late. Deliberately absent:
//! what is wrong with it, which `plan::conditions` derives.

use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::json::chain;
use jiff::Timestamp;
use tokio::sync::watch;

use super::stop::Stop;
use crate::model::hardware_health::{HardwareView, RawHardware};
use crate::port::clock::Clock;
use crate::port::hardware::HardwareFiles;

/// The interval. Disks are read by root's service once an hour; a fan that stops is noticed within minutes.
const EVERY: Duration = Duration::from_secs(120);

pub struct HardwareTask {
    pub files: HardwareFiles,
    /// Where the view is published.
    pub view: watch::Sender<Arc<HardwareView>>,
    pub clock: Arc<dyn Clock>,
}

impl HardwareTask {
    /// Reads until the agent stops.
    pub async fn run(self, mut stop: Stop) {
        loop {
            tokio::select! {
                () = stop.requested() => return,
                () = self.turn() => {}
            }
            tokio::select! {
                () = stop.requested() => return,
                () = self.clock.sleep(EVERY) => {}
            }
        }
    }

    async fn turn(&self) {
        let files = self.files.clone();
        let at = self.clock.now();
        let raw = match tokio::task::spawn_blocking(move || read(&files, at)).await {
            Ok(raw) => raw,
            Err(error) => return tracing::error!(%error, "reading the hardware panicked"),
        };
        let now = self.clock.now();
        self.view.send_if_modified(|kept| {
            let next = kept.next(raw, now);
            let is_news = (&kept.section, &kept.updates) != (&next.section, &next.updates);
            *kept = Arc::new(next);
            is_news
        });
    }
}

fn read(files: &HardwareFiles, now: Timestamp) -> RawHardware {
    let disks = files.disks().unwrap_or_else(|error| {
        tracing::warn!(error = chain(&error), "the reading of the disks is not used");
        None
    });
    let updates = files.updates(now).unwrap_or_else(|error| {
        tracing::warn!(error = chain(&error), "the reading of the packages is not used");
        None
    });
    RawHardware { disks, sensors: files.sensors(), memory: files.memory(), updates }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::clock::RealClock;
    use crate::task::stop;

    #[tokio::test]
    async fn what_the_files_say_is_published() {
        let folder = tempfile::tempdir().unwrap();
        let write = |text: &str| std::fs::write(folder.path().join("disks"), text).unwrap();
        write("holdfast-disks 1 1700000000\ndisk /dev/sda\n");
        let (view, mut published) = watch::channel(Arc::new(HardwareView::default()));
        let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
        let task = HardwareTask { files: HardwareFiles::at(folder.path()), view, clock };
        task.turn().await;
        let section = published.borrow_and_update().section.clone().unwrap();
        assert_eq!((section.disks.len(), section.sensors.len(), section.memory_errors), (1, 0, None));
        write("of another version");
        task.turn().await;
        assert!(!published.has_changed().unwrap(), "an unusable file says nothing");
        let updates = "holdfast-updates 1 1700000000\nkernel 6.8.12-4-pve\nstatus 0\n";
        std::fs::write(folder.path().join("updates"), updates).unwrap();
        task.turn().await;
        assert!(published.borrow_and_update().updates.as_ref().unwrap().pending.is_some());
        task.turn().await;
        assert!(!published.has_changed().unwrap(), "the same file says nothing new");
        let (stopper, stop) = stop::pair();
        stopper.stop();
        task.run(stop).await;
    }
}
