//! `vzdump` archives of containers: the real form, on real files.
//!
//! In: an archive on disk, or the directories of a guest's volumes. Out: directories filled from an archive, or an
//! archive packed from directories, and the configuration that travels inside (`./etc/vzdump/pct.conf`).
//! Every archive is judged as hostile: an entry can only land beneath the directory it belongs to.
//! Deliberately absent: POSIX ACLs, and any knowledge of tasks, storages or Proxmox's own messages.

mod compression;
mod embedded;
mod entry_writer;
mod exclude;
mod extract;
mod list;
mod lzop;
mod metadata;
mod pack;
mod place;
mod read_error;
mod stream;
pub(crate) mod tree;
mod walk;

#[cfg(test)]
mod tests;

pub use compression::Compression;
pub use embedded::{EmbeddedConfig, read_config};
pub use exclude::{ExcludePattern, ExcludePatterns};
pub use extract::{ExtractError, Extracted, extract};
pub use list::{EntryKind, ListedEntry, list};
pub use pack::{Owner, PackError, PackPlan, PackWarning, Packed, pack};
pub use place::{EscapeReason, GuestPath, GuestPathError, MountDir, Volumes};
pub use read_error::ReadArchiveError;
