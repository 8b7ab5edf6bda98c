//! The agent's readers of Proxmox's answers, taken in by path.

#[path = "../../agentd/src/port/pve/config.rs"]
pub mod config;
#[path = "../../agentd/src/port/pve/upid.rs"]
pub mod upid;
#[path = "../../agentd/src/port/pve/volume.rs"]
pub mod volume;
#[path = "../../agentd/src/port/pve/wire.rs"]
#[expect(dead_code, reason = "the agent's other readers use the rest of it")]
mod wire;
