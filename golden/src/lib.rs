//! Builds the archive that guests are restored from, after `golden/recipe.toml`: the same bytes from the same packages.
//!
//! ```text
//! recipe ─▶ base (mmdebstrap; or busybox) ─▶ image (+ guestd, units; - identity, traces) ─▶ archive ─▶ scan
//!                                                                              manifest, bill of materials ─┘
//! ```
//! In: a recipe, a controller, Debian's signed archives. Out: three files in one folder, written whole or not at all.
//! Deliberately absent: anything that needs a Proxmox, the network beyond what mmdebstrap does, and any secret.
#![forbid(unsafe_code)]

mod archive;
mod base;
mod build;
mod elf;
mod image;
mod overlay;
mod program;
mod publish;
mod recipe;
mod sbom;
mod scan;
mod tiny;
mod version;

pub use archive::Packing;
pub use base::Kept;
pub use build::{Build, Built, How, Stage, build, fetch};
pub use publish::Existing;
pub use recipe::Recipe;
pub use scan::{Finding, scan};
pub use version::Wanted;

#[cfg(test)]
mod tests;
