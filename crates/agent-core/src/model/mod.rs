//! The host as data: observations, records, settings and bounds.
//!
//! What comes in: values that others read. What goes out: types that plan, gate and report decide by. Deliberately
//! absent: reading anything, and deciding anything.

pub mod addresses;
pub mod applied;
pub mod backup_flag;
pub mod boot;
pub mod clock_trust;
pub mod condition_facts;
pub mod cpu;
pub mod disks;
pub mod escrow;
pub mod field;
pub mod fill_history;
pub mod filter;
pub mod growth;
pub mod hardware;
pub mod hardware_health;
pub mod host_maintenance;
pub mod host_updates;
pub mod hub_alarm;
pub mod inherited;
pub mod level_rules;
pub mod limits;
pub mod mark;
pub mod neighbours;
pub mod net;
pub mod observed;
pub mod offsite;
pub mod parked;
pub mod policy;
pub mod records;
pub mod report_size;
pub mod request;
pub mod silence;
pub mod storage;
pub mod tested_guest;
pub mod tier_fault;
pub mod token_age;
pub mod token_reuse;
pub mod tunnel;
pub mod usage;
pub mod usage_levels;
pub mod view;
pub mod volume_id;
pub mod warrant;
