//! Pages of a real hub in a real browser.
//!
//! In: `hubd` as a process, filled by its API with a fleet; headless Chromium, driven through its own pipe. Out: whether
//! each page loads cleanly, fits the screen, is accessible and can be used by keyboard, and pictures of it where a folder
//! is named. Pages are found by following links, so a new page is tested when a link leads to it. Deliberately absent: what
//! a page says, which `it/pages.rs` asks over HTTP.
#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod chromium;
mod entrance;
mod fleet;
mod keyboard;
mod live;
mod look;
mod site;
mod tab;
mod views;
mod walls;
#[expect(dead_code, reason = "the other test program uses the rest of it")]
#[path = "../it/world.rs"]
mod world;
