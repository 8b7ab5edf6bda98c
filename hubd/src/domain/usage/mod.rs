//! Use of hosts and guests over time, thinned with age.
//!
//! ```text
//! sample of a minute ─► minute row (2 h) ─► five-minute row (7 d) ─► hour row (400 d)
//! ```
//! A row is rolled up into the next step when the first sample after that step arrives. What a host does not send is missing.

mod row;
mod series;
mod steps;

pub use row::{Figure, RowError, UsageRow};
pub use series::{POINTS_MAX, series};
pub use steps::{Accepted, StepRow, accept, rolled_up};
