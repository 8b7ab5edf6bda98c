//! Instances of the simulator on one machine, and their leftovers.
//!
//! ```text
//! /run/pve-sim/turn          lock file, held while the register is read
//! /run/pve-sim/ID/owner      the process that runs the instance
//! /run/pve-sim/ID/VMID.pid   a guest it booted
//! /run/netns/hfsim-ID…       its network namespaces
//! ```
//! An instance whose owner is gone is left over: its guests are ended and its namespaces removed. Nothing without an ID
//! from this directory is ever touched.

use std::fmt::Write;
use std::fs::File;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::{cgroup, namespace};
use crate::runtime::error::RuntimeError;
use crate::runtime::leftover::{ProcessMark, end_all_on_record, guests_on_record};

const REGISTER: &str = "/run/pve-sim";

/// This simulator's names.
pub(super) struct Instance {
    id: String,
}

impl Instance {
    /// Takes the names that belong to a state directory, after removing everything that killed simulators left over.
    pub(super) fn claim(directory: &Path) -> Result<Self, RuntimeError> {
        let directory = directory.canonicalize().map_err(RuntimeError::system("finding", directory))?;
        let instance = Self { id: id_of(&directory) };
        let _turn = take_turn()?;
        let own = instance.folder();
        if let Some(owner) = living_owner(&own)? {
            return Err(RuntimeError::InUse { pid: owner.pid.unsigned_abs(), directory });
        }
        sweep()?;
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&own)
            .and_then(|()| ProcessMark::of(std::process::id()))
            .and_then(|mark| mark.write(&own.join("owner")))
            .map_err(RuntimeError::system("claiming", own))?;
        Ok(instance)
    }

    /// Gives the names back. The guests must have ended.
    pub(super) fn release(&self) -> Result<(), RuntimeError> {
        let _turn = take_turn()?;
        clear(&self.id)
    }

    /// The node's network namespace.
    pub(super) fn namespace(&self) -> String {
        format!("hfsim-{}", self.id)
    }

    /// A guest's network namespace.
    pub(super) fn guest_namespace(&self, vmid: u32) -> String {
        format!("hfsim-{}-{vmid}", self.id)
    }

    /// A guest's control group.
    pub(super) fn cgroup(&self, vmid: u32) -> String {
        guest_cgroup(&self.id, vmid)
    }

    /// Where a guest's process is on record.
    pub(super) fn record(&self, vmid: u32) -> PathBuf {
        self.folder().join(format!("{vmid}.pid"))
    }

    fn folder(&self) -> PathBuf {
        Path::new(REGISTER).join(&self.id)
    }
}

fn guest_cgroup(id: &str, vmid: u32) -> String {
    format!("hfsim-{id}-{vmid}")
}

/// Eight hexadecimal digits: short enough for every name, and enough for the simulators of one machine.
fn id_of(directory: &Path) -> String {
    let digest = Sha256::digest(directory.as_os_str().as_encoded_bytes());
    digest.iter().take(4).fold(String::new(), |mut text, byte| {
        // Writing into a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn is_id(name: &str) -> bool {
    name.len() == 8 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Only one simulator at a time may read the register: a half-claimed instance looks like a leftover one. The lock is
/// released when the file is closed, however its holder ends.
fn take_turn() -> Result<File, RuntimeError> {
    let path = Path::new(REGISTER).join("turn");
    let failed = || RuntimeError::system("locking", &path);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(REGISTER).map_err(failed())?;
    let file = File::options().create(true).append(true).open(&path).map_err(failed())?;
    file.lock().map_err(failed())?;
    Ok(file)
}

fn living_owner(folder: &Path) -> Result<Option<ProcessMark>, RuntimeError> {
    let owner = ProcessMark::read(&folder.join("owner")).map_err(RuntimeError::system("reading", folder))?;
    Ok(owner.filter(|owner| owner.is_alive()))
}

/// Removes every instance whose owner is gone.
fn sweep() -> Result<(), RuntimeError> {
    let failed = || RuntimeError::system("listing", REGISTER);
    for entry in std::fs::read_dir(REGISTER).map_err(failed())? {
        let entry = entry.map_err(failed())?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_id(&name) && living_owner(&entry.path())?.is_none() {
            clear(&name)?;
        }
    }
    Ok(())
}

/// Ends an instance's guests and removes its namespaces, groups and records.
fn clear(id: &str) -> Result<(), RuntimeError> {
    let folder = Path::new(REGISTER).join(id);
    let failed = || RuntimeError::system("removing what a simulator left over", &folder);
    let guests = guests_on_record(&folder).map_err(failed())?;
    end_all_on_record(&folder).map_err(failed())?;
    for vmid in guests {
        cgroup::end_and_remove(&guest_cgroup(id, vmid))?;
    }
    for name in namespace::with_prefix(&format!("hfsim-{id}"))? {
        namespace::remove(&name)?;
    }
    std::fs::remove_dir_all(&folder).map_err(failed())
}
