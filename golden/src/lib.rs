//! Builder of golden images: reproducible archives from a recipe.
//!
//! ```text
//! recipe ─▶ base (mmdebstrap; or busybox) ─▶ image (+ guestd, units; - identity, traces) ─▶ archive ─▶ scan
//!                                                                              manifest, bill of materials ─┘
//! ```
//! In: a recipe, a controller, Debian's signed archives. Out: three files in one folder, written whole or not at all.
//! And an image that another host built: a signed release, two files that the agent fetched ─▶ the same files here.
//! Deliberately absent: anything that needs a Proxmox, the network beyond what mmdebstrap does, and any secret.
#![forbid(unsafe_code)]

mod archive;
mod as_of;
mod base;
mod build;
mod elf;
mod image;
mod intake;
mod overlay;
mod packed_program;
mod policy;
mod program;
mod publish;
mod recipe;
mod sbom;
mod scan;
mod tiny;
mod version;

pub use archive::Packing;
pub use as_of::AsOf;
pub use base::BaseCache;
pub use build::{Build, BuildOutcome, Built, Stage, build, fetch};
pub use intake::{Intake, IntakeError, Published, PublishedHow};
pub use policy::{PolicyError, dump_folder};
pub use publish::OnConflict;
pub use recipe::Recipe;
pub use scan::{Finding, scan};
pub use version::VersionChoice;

#[cfg(test)]
mod tests;
