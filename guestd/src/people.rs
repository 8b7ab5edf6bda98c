//! Commands for people that have to do with stacks.

pub mod dry_run;
pub mod resume;
