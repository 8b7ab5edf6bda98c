//! The hourly search for data on the root disk.
//!
//! In: the guest's files. Out: places with data that no volume holds, for the hello. It stays behind when the guest is put on
//! a newer image. The search runs on a thread of its own with the least priority, and ends at limits of entries and time.
//! Deliberately absent: `/etc` and installed packages, which nobody can tell apart from what the image brought.

mod docker;
mod places;
mod walk;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use holdfast_protocol::root_disk::{
    Coverage, ITEMS_MAX, RootDiskData, RootDiskItem, RootDiskKind, RootDiskPath,
};
use tokio::time::Instant;
use tracing::warn;

use crate::clock;
use crate::paths::Paths;
use walk::{Limits, Walk};

/// Between two searches.
const EACH: Duration = Duration::from_secs(3_600);

/// Niceness of the thread. The kernel's schedulers of disks derive their priority from it.
const NICEST: i32 = 19;

/// The last result, and the search that is under way.
#[derive(Debug, Default)]
pub struct Watch {
    begun: Option<Instant>,
    found: Arc<Mutex<Option<RootDiskData>>>,
}

impl Watch {
    /// What the last search found. Begins another one where that is due; its result is there later.
    pub fn latest(&mut self, paths: &Paths) -> Option<RootDiskData> {
        if self.begun.is_none_or(|begun| begun.elapsed() >= EACH) {
            self.begun = Some(Instant::now());
            let (paths, found) = (paths.clone(), Arc::clone(&self.found));
            let search = move || {
                yield_to_others();
                let data = search(&paths, Limits::USUAL);
                *found.lock().unwrap_or_else(PoisonError::into_inner) = Some(data);
            };
            // Its limit of time ends it; a process that ends meanwhile ends it too.
            let started = std::thread::Builder::new().name("root-disk".to_owned()).spawn(search);
            if let Err(error) = started {
                warn!(%error, "cannot look at the root disk");
            }
        }
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The guest's own programs come first.
fn yield_to_others() {
    let thread = rustix::thread::gettid();
    if let Err(error) = rustix::process::setpriority_process(Some(thread), NICEST) {
        warn!(%error, "looking at the root disk with the usual priority");
    }
}

/// One search.
fn search(paths: &Paths, limits: Limits) -> RootDiskData {
    let mut walk = Walk::begin(paths, limits);
    let found = places::find(paths, &mut walk);
    let coverage = if walk.is_whole() { Coverage::Whole } else { Coverage::Partial };
    list(found, coverage)
}

/// The largest first. What a container has mounted from another place is part of that.
fn list(mut found: Vec<RootDiskItem>, coverage: Coverage) -> RootDiskData {
    let below = |item: &RootDiskItem, other: &RootDiskItem| {
        let rest = item.path.as_str().strip_prefix(other.path.as_str());
        item.kind == RootDiskKind::DockerBind && rest.is_some_and(|rest| rest.starts_with('/'))
    };
    let all = found.clone();
    found.retain(|item| !all.iter().any(|other| below(item, other)));
    if found.len() > ITEMS_MAX {
        found = by_folder(found);
    }
    found.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.path.cmp(&b.path)));
    found.dedup_by(|a, b| a.path == b.path);
    let coverage = if found.len() > ITEMS_MAX { Coverage::Partial } else { coverage };
    found.truncate(ITEMS_MAX);
    RootDiskData { at: clock::now(), coverage, items: found }
}

/// Too many places, by the folders that they are in. What containers have mounted may be anywhere.
fn by_folder(found: Vec<RootDiskItem>) -> Vec<RootDiskItem> {
    let mut folders: BTreeMap<(RootDiskKind, RootDiskPath), u64> = BTreeMap::new();
    for item in found {
        let above = item.path.as_str().rsplit_once('/').map(|(above, _)| above.to_owned());
        let above = above.filter(|_| item.kind != RootDiskKind::DockerBind);
        // What is directly below / stays as it is.
        let path = above.and_then(|above| above.try_into().ok()).unwrap_or(item.path);
        let bytes = folders.entry((item.kind, path)).or_default();
        *bytes = bytes.saturating_add(item.bytes);
    }
    folders.into_iter().map(|((kind, path), bytes)| RootDiskItem { kind, path, bytes }).collect()
}

/// A path of the guest as it can be reported.
fn reportable(path: &std::path::Path) -> Option<RootDiskPath> {
    let plain = |c: char| if (' '..='~').contains(&c) && c != '"' && c != '\\' { c } else { '?' };
    let text: String = path.to_string_lossy().chars().map(plain).take(96).collect();
    text.try_into().ok()
}

#[cfg(test)]
mod tests;
