//! Threads of an engine.

use std::thread::JoinHandle;

/// The threads that write. They end when the last handle of the store is dropped and their queues are empty.
pub struct WriterThread {
    handles: Vec<JoinHandle<()>>,
}

impl WriterThread {
    pub(crate) const fn new(handles: Vec<JoinHandle<()>>) -> Self {
        Self { handles }
    }

    /// Waits for their end. Blocks.
    ///
    /// # Errors
    /// When one of them panicked.
    pub fn join(self) -> std::thread::Result<()> {
        self.handles.into_iter().try_for_each(JoinHandle::join)
    }
}
