//! Faults of the disk that a test plants in this crate's writes.
//!
//! Without the feature `testing` the answer is a constant `false` and each hook is compiled away.

/// One careless write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A small file takes its place before its bytes are on disk.
    FileNotSynced,
    /// A small file's name is not brought onto the disk.
    FolderNotSynced,
}

#[cfg(feature = "testing")]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Fault>> = const { std::cell::Cell::new(None) };
}

/// Whether this fault is planted on this thread.
#[cfg(feature = "testing")]
pub(crate) fn planted(fault: Fault) -> bool {
    PLANTED.get() == Some(fault)
}

/// Nothing is planted in this build.
#[cfg(not(feature = "testing"))]
pub(crate) const fn planted(_: Fault) -> bool {
    false
}

/// Plants a fault on this thread, or takes it away.
#[cfg(feature = "testing")]
pub fn plant(fault: Option<Fault>) {
    PLANTED.set(fault);
}
