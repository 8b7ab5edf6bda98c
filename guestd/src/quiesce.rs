//! Stacks stand still for a backup, and come back, whatever dies.
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

pub mod act;
pub mod boot;
pub mod canary;
pub mod marker;
pub mod mounts;
pub mod removed;
pub mod resume;
pub mod stop;
pub mod timer;
pub mod turn;
pub mod untold;
pub mod wanted;
