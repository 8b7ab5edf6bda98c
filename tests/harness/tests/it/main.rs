//! Integration tests of hub, agent and simulator in one process.

mod document;
mod escrow;
mod hostile;
mod matrix;
mod nights;
mod observe;
mod same_twice;
mod schedules;
mod upgrade;
