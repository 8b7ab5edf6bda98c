//! A guest's backup under way.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use super::options::{DumpDir, Options, Repository};
use crate::clock::stamp;
use crate::fail::{Fallible, host};
use crate::guest::config::GuestConfig;
use crate::storage::server_names::snapshot_stamp;
use crate::task::Task;

/// A guest's backup under way.
pub(super) struct Backup<'a> {
    pub task: &'a Task,
    pub options: &'a Options,
    pub dump: &'a DumpDir,
    pub vmid: u32,
    /// As it was when it was locked.
    pub config: GuestConfig,
    /// `vzdump-lxc-140-2026_11_21-04_00_56`
    pub name: String,
    /// The second in its name.
    pub named_s: i64,
    pub started_s: i64,
    pub(super) lines: Mutex<Vec<String>>,
}

impl Backup<'_> {
    /// A line in the task's log and in the log file next to the archive.
    pub(super) fn log(&self, text: &str) {
        self.task.log(format!("INFO: {text}"));
        self.note(text);
    }

    /// A line only in the log file next to the archive.
    pub(super) fn note(&self, text: &str) {
        let line = format!("{} INFO: {text}\n", stamp(self.task.node.clock.now_s()));
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    /// The archive's file name.
    pub(super) fn file_name(&self) -> String {
        format!("{}{}", self.name, self.options.compression.suffix())
    }

    /// Where the archive will be.
    pub(super) fn place(&self) -> PathBuf {
        match &self.dump.server {
            Some(server) => snapshot_place(server, self.vmid, self.named_s),
            None => self.dump.real.join(self.file_name()),
        }
    }

    /// The folder of a copy in suspend mode.
    pub(super) fn temporary(&self) -> PathBuf {
        self.dump.real.join(self.temporary_name())
    }

    /// The same as messages show it.
    pub(super) fn temporary_shown(&self) -> String {
        format!("{}/{}", self.dump.shown, self.temporary_name())
    }

    fn temporary_name(&self) -> String {
        match &self.dump.server {
            Some(_) => format!("vzdumptmp{}_{}", self.task.upid.pid, self.vmid),
            None => format!("{}.tmp", self.name),
        }
    }

    pub(super) fn write_log(&self) -> Fallible<()> {
        if self.dump.server.is_some() {
            // On a real node this log is sent to the server. Nothing here reads it from there.
            return Ok(());
        }
        let text = self.lines.lock().unwrap_or_else(PoisonError::into_inner).concat();
        std::fs::write(self.dump.real.join(format!("{}.log", self.name)), text)
            .map_err(|error| host("write of backup log", &error))
    }
}

pub(super) fn snapshot_place(server: &Repository, vmid: u32, seconds: i64) -> PathBuf {
    server.folder.join(format!("ct/{vmid}/{}.tar", snapshot_stamp(seconds)))
}
