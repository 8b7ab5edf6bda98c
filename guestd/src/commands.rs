//! Commands that involve stacks.

pub mod apt;
pub mod backup;
pub mod dry_run;
pub mod health;
pub mod resume;
pub mod try_command;
pub mod try_lock;
pub mod upgrade;
pub mod volumes;
