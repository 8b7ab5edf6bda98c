//! Integration tests of the agent.
//!
//! | module | shows |
//! | --- | --- |
//! | `against_simulator` | `setup`, `doctor` and the Proxmox client against the simulator |
//! | `break_glass` | the task that passes break-glass orders on |
//! | `conditions` | the conditions of the report, over a restart too |
//! | `daemon` | the real program as a daemon |
//! | `engine` | operations from the plan to Proxmox, on a simulated node |
//! | `escrow` | `agentd escrow` at a terminal |
//! | `full_disk` | a store on a disk that is full |
//! | `local_api` | the local API over real TLS |
//! | `private_files` | who may read the database |
//! | `pbs_wire` | the client for backup servers against recorded answers |
//! | `pve_wire` | the Proxmox client against a server that misbehaves |
//! | `recover` | `agentd recover` at a terminal |
//! | `setup_box` | `agentd setup` with stand-ins for Proxmox's commands |
//! | `setup_links` | what root runs, where the agent's user has put links |
//! | `tunnel_script` | the script that restarts a tunnel |
//! | `tunnel_traffic` | a tunnel's traffic while the agent is dead |
//! | `tunnels` | the task that looks after tunnels |
//! | `unit_file` | the shipped units against the program |
//! | `wedged` | the real program stopped, stalled, without records, Proxmox or disk |

mod against_simulator;
#[expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]
mod break_glass;
mod conditions;
mod daemon;
mod disk_script;
mod engine;
#[expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]
#[path = "../../../tests/support/enrolled_agent.rs"]
mod enrolled_agent;
mod escrow;
mod full_disk;
mod local_api;
#[expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]
#[path = "../../../tests/support/paper.rs"]
mod paper;
mod pbs_wire;
mod private_files;
#[expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]
mod pve_peer;
mod pve_wire;
mod recover;
mod rescue_cli;
#[expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]
#[path = "../../../tests/support/rows.rs"]
mod rows;
mod setup_box;
mod setup_links;
#[expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]
#[path = "../../../tests/support/ssh_signer.rs"]
mod ssh_signer;
#[expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]
#[path = "../../../tests/support/terminal.rs"]
mod terminal;
mod tunnel_script;
mod tunnel_traffic;
#[expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]
mod tunnels;
mod unit_file;
mod updates_script;
mod wedged;
