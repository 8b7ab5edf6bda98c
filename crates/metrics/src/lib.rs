//! Metrics of hosts and guests in Prometheus' text format.
//!
//! In: reports and samples of use. Out: a page for a scraper. Agent and hub show the same metrics; the hub adds the host to each.
//! Only what was observed has a line. Deliberately absent: serving, and metrics of the programs themselves.
//!
//! | module | has |
//! | --- | --- |
//! | [`catalogue`] | the table of all metrics, with the sentence that explains each |
//! | [`exposition`] | the text format |
//! | [`histogram`] | counts of durations by their size |
//! | [`host`] | what a host's report and sample say |

#![forbid(unsafe_code)]

pub mod catalogue;
pub mod exposition;
pub mod histogram;
pub mod host;

pub use catalogue::{Kind, Metric};
pub use exposition::{Exposition, Labels, Value};
pub use histogram::Histogram;
