//! The long-lived tasks of the agent.
//!
//! | module | loop |
//! | --- | --- |
//! | [`agent_update`] | fetches a release of the agent that the hub offers |
//! | [`break_glass`] | passes break-glass orders on to root's program |
//! | [`controller_fetch`] | fetches approved builds of the guest agent |
//! | [`diagnostics`] | carries out ordered readings of the host |
//! | `due` | not a loop: jobs whose delay is over |
//! | [`escrow`] | keeps the copies of wrapped keys as they should be |
//! | [`golden_fetch`] | fetches approved golden images that guests wait for |
//! | [`guest_audit`] | sends audit records about guests to the hub |
//! | [`hardware`] | reads the hardware |
//! | [`hub_alarm`] | announces by its own channel that the hub does not answer |
//! | [`hub_sync`] | reports to the hub and receives newer documents |
//! | [`local_api`] | accepts guests' connections |
//! | `measure` | not a loop: what the archives of goldens hash to |
//! | [`metrics`] | the page of metrics, at a port of the loopback |
//! | [`observe`] | observes the host |
//! | [`reconcile`] | plans, opens and performs operations |
//! | `refresh` | not a loop: orders to read the whole host anew |
//! | [`report`] | puts the report together |
//! | [`restore_certificates`] | issues restore certificates and sends them to the hub |
//! | [`admin_socket`] | answers at the admin socket |
//! | [`storage`] | keeps storage targets mounted, and detects when one is gone |
//! | [`stop`] | how all of them learn that the agent is to stop |
//! | [`token_exchange`] | not a loop: other tokens for Proxmox, while the agent runs |
//! | [`tunnels`] | looks after tunnels |
//! | [`usage`] | takes a sample of use each minute |
//! | [`upkeep`] | keeps the agent's own records small |
//! | [`watchdog`] | reports the agent's state to systemd |

pub mod admin_socket;
mod admission;
pub mod agent_update;
mod backup_inventory;
pub mod break_glass;
pub mod controller_fetch;
pub mod diagnostics;
#[cfg(test)]
#[path = "../../../tests/support/enrolled_agent.rs"]
mod enrolled_agent;
pub mod escrow;
pub mod golden_fetch;
pub mod guest_audit;
pub mod hardware;
pub mod hub_alarm;
pub mod hub_sync;
mod image_digests;
mod inherited_backups;
pub mod local_api;
mod loss_detector;
pub mod metrics;
pub mod observe;
pub mod reconcile;
mod refresh;
pub mod report;
pub mod restore_certificates;
mod signed_jobs;
pub mod stop;
pub mod storage;
pub mod token_exchange;
pub mod tunnels;
pub mod upkeep;
pub mod usage;
pub mod watchdog;
