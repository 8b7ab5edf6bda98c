//! Pure decisions and data of the hub.
//!
//! | module | decides |
//! | --- | --- |
//! | [`alerting`] | what the alert engine is given, and how its notices read |
//! | [`audit_heads`] | which ends of audit chains are kept, and which are evidence |
//! | [`byte_range`] | which part of a file is asked for |
//! | [`deadman`] | whether a silent host is late or offline |
//! | [`desired`] | checks of desired documents, and their delivery |
//! | [`enrollment`] | checks of invites and enrollment requests |
//! | [`escrow`] | which versions of a wrapped key are kept, and how often a host may call |
//! | [`event`] | kinds of events |
//! | [`known_origins`] | addresses from which peers were served lately |
//! | [`host`] | references to hosts by id or name |
//! | [`identity`] | checks of client certificates |
//! | [`merge`] | whether a report replaces, changes or misses the stored one |
//! | [`job_queue`] | whether a signed job is accepted, and how its reports are logged |
//! | [`escrow_notice`] | recipients of notices |
//! | [`oidc`] | sign-ins by a provider of identities |
//! | [`part_view`] | parts of a document as desired, reported and last applied |
//! | [`presence`] | since when some hub hears hosts |
//! | [`readmission`] | the decision to readmit a revoked host |
//! | [`release`] | whether a signed release is kept |
//! | [`release_offer`] | whether a release may be offered to a host |
//! | [`retry`] | when a failed delivery is tried again |
//! | [`rollout`] | which hosts of a rollout are offered a release, and when the next wave opens |
//! | [`state_retention`] | which kept snapshots of state stay |
//! | [`state_snapshot`] | one host of a snapshot of state |
//! | [`sign_in`] | passwords, one-time codes, and how long sessions live |
//! | [`summary`] | the part of a report that the host list shows |
//! | [`usage`] | what is kept of the use of hosts and guests |
//! | [`work_order`] | the states of work orders, and their bounds |

pub mod alerting;
pub mod audit_claim;
pub mod audit_heads;
pub mod byte_range;
pub mod deadman;
pub mod desired;
pub mod enrollment;
pub mod escrow;
pub mod escrow_notice;
pub mod event;
pub mod host;
pub mod identity;
pub mod image_approval;
pub mod job_notice;
pub mod job_queue;
pub mod known_origins;
pub mod merge;
pub mod oidc;
pub mod part_view;
pub mod presence;
pub mod readmission;
pub mod release;
pub mod release_offer;
pub mod restore_certificate;
pub mod retry;
pub mod rollout;
pub mod sign_in;
pub mod state_retention;
pub mod state_snapshot;
pub mod summary;
pub mod usage;
pub mod work_order;
