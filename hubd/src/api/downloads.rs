//! How many files hosts fetch at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdfast_protocol::id::HostId;

/// One that goes on while another one's connection is not yet known to be lost.
const PER_HOST_AT_ONCE: u32 = 2;

/// Of all hosts. Each holds an open file and 64 KiB.
const OF_ALL_AT_ONCE: u32 = 256;

/// The files that are fetched now, by host.
#[derive(Default)]
pub struct Downloads(Mutex<HashMap<HostId, u32>>);

/// One of them. Dropped, its slot is free.
pub(super) struct DownloadSlot {
    downloads: Arc<Downloads>,
    host: HostId,
}

impl Downloads {
    /// A slot for a host; none where it has as many as it may, or all have.
    pub(super) fn take(self: &Arc<Self>, host: HostId) -> Option<DownloadSlot> {
        let mut hosts = self.lock();
        let all: u32 = hosts.values().sum();
        let of_host = hosts.get(&host).copied().unwrap_or_default();
        if of_host >= PER_HOST_AT_ONCE || all >= OF_ALL_AT_ONCE {
            return None;
        }
        hosts.insert(host, of_host + 1);
        Some(DownloadSlot { downloads: Arc::clone(self), host })
    }

    /// No method stops half-way, so what is behind a poisoned lock is whole.
    fn lock(&self) -> MutexGuard<'_, HashMap<HostId, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for DownloadSlot {
    fn drop(&mut self) {
        let mut hosts = self.downloads.lock();
        match hosts.get_mut(&self.host) {
            Some(count) if *count > 1 => *count -= 1,
            Some(_) | None => drop(hosts.remove(&self.host)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_host_has_two_slots_and_gets_them_back() {
        let downloads = Arc::new(Downloads::default());
        let host = |number| HostId::new(Uuid::from_u128(number));
        let first = downloads.take(host(1)).unwrap();
        let _second = downloads.take(host(1)).unwrap();
        assert!(downloads.take(host(1)).is_none());
        let other = downloads.take(host(2)).unwrap();
        drop(first);
        assert!(downloads.take(host(1)).is_some());
        drop(other);
        let all: Vec<_> = (10..).map_while(|number| downloads.take(host(number))).collect();
        assert_eq!(all.len(), OF_ALL_AT_ONCE as usize - 1);
        drop(all);
        assert_eq!(downloads.lock().len(), 1, "hosts without a download are forgotten");
    }
}
