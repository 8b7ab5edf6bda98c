//! Commands for people that have to do with stacks.

pub mod apt;
pub mod backup;
pub mod dry_run;
pub mod resume;
pub mod trial;
pub mod tried;
pub mod upgrade;
pub mod volumes;
pub mod well;
