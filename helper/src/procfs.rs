//! Short texts from `/proc` and `/sys`, after checking the file system.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rustix::fs::PROC_SUPER_MAGIC;

use crate::reply::{Refusal, refusal};

/// More than the kernel says in any file that is read here: a mount table of a few thousand lines.
const BYTES_MAX: u64 = 4 << 20;

/// Refuses a `/proc` that is not a proc file system.
pub fn require_kernel_procfs() -> Result<(), Refusal> {
    match rustix::fs::statfs("/proc") {
        Ok(fs) if fs.f_type == PROC_SUPER_MAGIC => Ok(()),
        _ => Err(refusal!(Env, "/proc is not a proc file system: run the helper on the host itself")),
    }
}

/// A file of `/proc` or `/sys` as text. Most are shorter than the first 4 KiB, and two calls read them.
pub fn read(path: impl AsRef<Path>) -> Result<String, Refusal> {
    let path = path.as_ref();
    let failed = |error: std::io::Error| refusal!(Env, "cannot read {}: {error}", path.display());
    let mut bytes = Vec::with_capacity(4096);
    File::open(path).map_err(failed)?.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(refusal!(Env, "{} is longer than expected", path.display(),));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The same without the line's end; nothing when there is no such file.
pub fn attribute(path: impl AsRef<Path>) -> Option<String> {
    read(path).ok().map(|text| text.trim().to_owned())
}
