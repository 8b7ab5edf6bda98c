//! End-to-end tests of the real programs.
//!
//! | module | shows |
//! | --- | --- |
//! | `process` | the real binaries, run, fed badly and killed; `cargo xtask e2e` |
//! | `host` | a host from its first day to its last on a booted Debian; `cargo xtask host` |
//! | `stacks` | PostgreSQL and Docker Compose in a booted guest; `cargo xtask stacks` |

mod host;
#[expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]
#[path = "../../../support/paper.rs"]
mod paper;
mod process;
mod stacks;
#[expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]
#[path = "../../../support/terminal.rs"]
mod terminal;
