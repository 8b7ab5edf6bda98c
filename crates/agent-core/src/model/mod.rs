//! The host as data: what is seen of it, what we wrote down about it, what we were told about it, and the bounds.
//!
//! What comes in: values that others read. What goes out: types that plan, gate and report decide by. Deliberately
//! absent: reading anything, and deciding anything.

pub mod addresses;
pub mod boot;
pub mod disks;
pub mod escrow;
pub mod field;
pub mod filter;
pub mod growth;
pub mod hardware;
pub mod holder;
pub mod left;
pub mod limits;
pub mod mark;
pub mod net;
pub mod observed;
pub mod offsite;
pub mod parked;
pub mod planted;
pub mod policy;
pub mod record;
pub mod report_size;
pub mod request;
pub mod silence;
pub mod storage;
pub mod timekeeper;
pub mod view;
pub mod volume_id;
pub mod warrant;
