//! What people read. Every table is pure: data, the time and a style in; text out; a golden file for each.

pub mod audit;
pub mod desired;
pub mod escrow;
pub mod event;
pub mod golden;
pub mod guest;
pub mod host;
pub mod job;
pub mod login;
pub mod operator;
pub mod protection;
#[cfg(test)]
pub mod samples;
pub mod storage;
mod table;
mod time;

pub use table::clean;

#[cfg(test)]
mod tests;
