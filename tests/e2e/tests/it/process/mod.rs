//! Tests of the real programs, run and killed.

#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say what they expect"
)]

mod alert_day;
mod alerts;
mod bad_input;
mod books;
mod correlation;
mod fire;
mod fire_drill;
mod hostile_guest;
mod jobs;
mod judges;
mod kill;
mod kill_intake;
mod lifecycle;
mod lost_box;
mod notices;
mod rebase;
mod scan;
mod stand;
mod tee;
mod test_bridge;
mod windows;
