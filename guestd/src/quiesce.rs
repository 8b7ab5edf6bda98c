//! Quiescing: stacks are stopped for a backup and resumed after every failure.
//!
//! ```text
//! lock ─ find ─ program laid by ─ marker written ─ timer armed ─┬─ hook, stop, stop … ─ still
//!                 (nothing is stopped before this) ─────────────┘                         │
//!                                                                                          ▼
//!                        lock, timer and marker let go ─ hooks ─ all run ─ start, start …  (again and again)
//! ```
//!
//! What comes in: stacks, and how long they may stay stopped. What goes out: the marker, which is the only record of
//! what was stopped and how it starts again. These resume: the process that stopped the stacks; the systemd timer, when
//! that process is dead or asleep; the next start of `guestd`, when it was killed; the boot, when the guest went down.
//! Each does the same, and a second resume does no harm. Starting needs no free disk space: the start is recorded for
//! the agent, and goes on where it cannot be recorded.

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
