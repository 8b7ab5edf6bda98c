//! Quiescing: stacks are stopped for a backup and resumed after every failure.
//!
//! ```text
//! turn ─ look ─ program laid by ─ marker written ─ timer armed ─┬─ hook, stop, stop … ─ still
//!                 (nothing is stopped before this) ─────────────┘                         │
//!                                                                                          ▼
//!                        turn, timer and marker let go ─ hooks ─ all run ─ start, start …  (again and again)
//! ```
//!
//! What comes in: stacks, and how long they may stand still. What goes out: the marker, which alone says what was stopped
//! and how it starts again. Who resumes: the process that stopped them; the timer of systemd, when that is dead or asleep;
//! the next start of `guestd`, when it was killed; the boot, when the guest went down. Each does the same, and twice is
//! no harm. Starting needs no room on the
//! disk: that it began is written down for the agent, and goes on where it cannot be.

pub mod boot;
pub mod canary;
pub mod lock;
pub mod marker;
pub mod missing_units;
pub mod mounts;
pub mod release_outbox;
pub mod resume;
pub mod stack;
pub mod start_enabled;
pub mod stop;
pub mod timer;
