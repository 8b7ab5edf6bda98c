//! The host agent of one Proxmox host.
//!
//! ```text
//! hub ──▶ intent (durable, by generation) ─┐
//! local API ──▶ request (durable) ─────────┼──▶ plan ──▶ gate ──▶ operations ──▶ steps ──▶ Proxmox
//! schedule ────────────────────────────────┘      ▲                                  │
//!                                                 └── observed ◀── observe ◀─────────┘ (always re-read)
//! ```
//! The ring closes only through the disk and the outside world, never through imports. A module imports only from a
//! lower layer:
//!
//! | layer | modules |
//! | --- | --- |
//! | 5 | [`run`] (composition root), [`cli`]; what a person can run is in crate `agent-admin` |
//! | 4 | [`task`]: one loop per file, the only place that starts tasks |
//! | 3 | [`execute`]: performs operations; [`api`]: what guests may call |
//! | 2 | crate `agent-ports`: [`port`], the outside world, and [`settings`] |
//! | 1, 0 | crate `agent-core`: [`plan`], [`gate`], [`operation`], [`model`]; pure |
//!
//! Deliberately absent: anything that needs root or a capability. The daemon refuses to start with either.
#![forbid(unsafe_code)]

pub use agent_core::{gate, model, operation, plan};
pub use agent_ports as port;
pub use agent_ports::settings;

pub mod api;
pub mod cli;
pub mod execute;
pub mod run;
pub mod task;
