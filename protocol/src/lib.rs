//! Wire types of hub, agent, guest agent and operator.
//!
//! What comes in: bytes from the other side. What goes out: types that cannot be wrong, or one typed error that says
//! who must do what. Deliberately absent: input and output, a clock, randomness, tokio. Ids and times are made by the
//! callers.
//!
//! | module | contents |
//! | --- | --- |
//! | [`id`] | one alphabetical list of ids and names |
//! | [`size`] | sizes with their ranges |
//! | [`measure`] | how large a guest is, as it is signed for |
//! | [`net`] | addresses of guests |
//! | [`generation`] | the rules of numbered documents |
//! | [`desired`] | what a host should be |
//! | [`golden`] | an image that guests are made from |
//! | [`image_approval`] | approvals of images for all hosts, as the hub holds them |
//! | [`report`] | what a host says of itself |
//! | [`job`] | signed one-shot acts |
//! | [`api`] | the form of a table of calls, and its OpenAPI document |
//! | [`audit`] | the chain of what a host did |
//! | [`operation`] | how far a piece of work is |
//! | [`checkin`] | the exchange between agent and hub |
//! | [`enrol`] | invites, enrollment requests, certificates |
//! | [`escrow`] | wrapped backup keys at the hub, and the outer form of their files |
//! | [`envelope`], [`code`] | the frame of every answer, and the closed list of error codes |
//! | [`condition`] | the closed table of what can be wrong with a host, its guests or the hub |
//! | [`break_glass`] | opening one way into a host for a bounded time, and what became of it |
//! | [`bootstrap`], [`local`] | how a guest finds its agent, and what it may request from it |
//! | [`maintenance`] | when a guest may be upgraded and restarted |
//! | [`protection`] | backup policies, schedules, retention, and which of two promises is the weaker |
//! | [`state`] | snapshots of what all hosts should be, and are |
//! | [`storage`] | disks, shares and backup servers: wanted, approved, reported |
//! | [`release`] | the files of a release, and who signed them |
//! | [`resource`] | the named parts of what a host should be, and what changes to them would do |
//! | [`restore`] | a new machine in the place of a lost one |
//! | [`restore_certificate`] | what a restore test of a guest showed, signed |
//! | [`hub`] | the calls of the hub |
//! | [`alert`] | alerts, as operators see them |
//! | [`listening`] | since when a program has been able to hear another |
//! | [`filter`] | which hosts or guests a list has |
//! | [`operator`] | what the operator's command requests from the hub |
//! | [`oidc`] | who operators are at a provider of identities |
//! | [`sign_in`] | how people sign in at the hub |
//! | [`pin`], [`secret`], [`json`] | pinned keys, secrets that do not leak, strict JSON |
//! | [`time_text`] | times, durations and amounts as text for people |
//! | [`version`] | which of two versions is the newer one |
//! | [`root_disk`] | data on the root disk of a guest, and what was signed about it |
//! | [`work_order`] | what the hub may order from a host without a signature |
//! | [`schema`] | the JSON Schemas of all of these, for export |
//!
//! A new wire version is a new module next to the old one, never a changed meaning.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod access;
pub mod alert;
pub mod api;
pub mod audit;
pub mod bootstrap;
pub mod break_glass;
pub mod checkin;
pub mod code;
pub mod condition;
pub mod customer;
pub mod desired;
pub mod enrol;
pub mod envelope;
pub mod escrow;
pub mod filter;
pub mod generation;
pub mod golden;
pub mod golden_builds;
pub mod grant_change;
pub mod guest_audit;
pub mod host_label;
pub mod host_maintenance;
pub mod hub;
pub mod id;
pub mod image_approval;
pub mod job;
pub mod json;
pub mod listening;
pub mod local;
pub mod machine_token;
pub mod maintenance;
pub mod measure;
pub mod net;
pub mod objection;
pub mod oidc;
pub mod operation;
pub mod operation_tries;
pub mod operator;
pub mod pin;
pub mod protection;
pub mod release;
pub mod report;
pub mod resource;
pub mod restore;
pub mod restore_certificate;
pub mod root_disk;
pub mod schema;
pub mod secret;
pub mod sign_in;
pub mod size;
pub mod state;
pub mod storage;
mod text;
pub mod time_text;
pub mod usage;
pub mod version;
pub mod work_order;

#[cfg(test)]
mod boundary_tests;
