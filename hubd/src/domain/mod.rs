//! What the hub decides: pure functions and plain data, no input, no output, no clock.
//!
//! | module | decides |
//! | --- | --- |
//! | [`deadman`] | whether a silent host is late or gone |
//! | [`desired`] | whether an offered document is taken, and whether a host is told of it now |
//! | [`enrolment`] | what a presented invite is worth |
//! | [`escrow`] | which versions of a wrapped key are kept, and how often a host may ask |
//! | [`event`] | what things that happen are called |
//! | [`familiar`] | from where hosts and operators were served lately |
//! | [`host`] | how an operator names a host |
//! | [`identity`] | what a presented certificate is worth |
//! | [`intake`] | whether a report begins anew, is laid over, or is late |
//! | [`mail`] | whether a signed job is taken in, and what the host says of it |
//! | [`notice`] | whom a notice would reach |
//! | [`readmission`] | the decision to readmit a revoked host |
//! | [`retry`] | when a failed delivery is tried again |
//! | [`summary`] | what of a report the host list shows |

pub mod audit_claim;
pub mod deadman;
pub mod desired;
pub mod enrolment;
pub mod escrow;
pub mod event;
pub mod familiar;
pub mod host;
pub mod identity;
pub mod intake;
pub mod mail;
pub mod notice;
pub mod readmission;
pub mod retry;
pub mod summary;
