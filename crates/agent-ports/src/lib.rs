//! Adapters of the host agent to the outside world, and its settings.
//!
//! | module | what it reaches |
//! | --- | --- |
//! | [`artifacts`] | the controllers' bytes that guests fetch |
//! | [`atomic_file`] | small files that exist whole or not at all |
//! | [`backoff`] | how long to wait before asking again |
//! | [`break_glass`] | root's break-glass program, by two files |
//! | [`bridge`] | ports plugged into a bridge of this host |
//! | [`bridge_net`] | addresses on the guests' bridge |
//! | [`clock`] | time |
//! | [`escrow_copy`] | copies of wrapped keys on backup disks |
//! | [`golden_dump`] | the folder that golden images are built into |
//! | [`guest_address`] | the address that Proxmox gives a guest |
//! | [`hardware`] | disks, temperatures and memory errors of this host |
//! | [`host_replacement`] | the records that a lost host left |
//! | [`held_folder`] | folders held by descriptor, for root's commands |
//! | [`helper`] | the root helper |
//! | [`host_key`] | the host's own key, which secrets are sealed to |
//! | [`hub`] | the hub |
//! | [`hub_alarm_file`] | what was announced of the hub |
//! | [`identity`] | who this agent is to the hub |
//! | [`local_tls`] | the certificate that guests pin |
//! | [`disk_marker`] | the marker that identifies a disk |
//! | [`mounts`] | the state of mounts and disks, from the kernel |
//! | [`part_file`] | a download that comes in parts |
//! | [`pbs`] | a backup server's own API |
//! | [`privilege`] | what this process may do |
//! | [`pve`] | Proxmox VE |
//! | [`sealed_token`] | a token that is stored sealed |
//! | [`admin_socket`] | an operator on the host who asks for the state of the agent |
//! | [`settings`] | the settings that root wrote for the agent |
//! | [`store`] | data that must last: one SQLite file |
//! | [`ntp`] | whether a time service keeps the clock right |
//! | [`target_probe`] | disks and servers of storage targets, tried |
//! | [`slots_file`] | the state of the agent's builds, as root's gate stores it |
//! | [`trust_files`] | who may sign, as root installed it |
//! | [`tunnels`] | services, metrics, probes and files of tunnels |
//! | [`update_folder`] | a fetched release that waits for root's gate |

#![forbid(unsafe_code)]

// Tests that are shared with other crates name this one from outside.
#[cfg(test)]
extern crate self as agent_ports;

pub use agent_core::{gate, model, operation, plan};
pub use agent_store as store;
pub use held_files::{atomic_file, held_folder};
pub use pve_client as pve;

pub mod admin_socket;
pub mod artifacts;
pub mod backoff;
pub mod break_glass;
pub mod bridge;
pub mod bridge_net;
pub mod clock;
pub mod disk_marker;
pub mod escrow_copy;
pub mod golden_dump;
pub mod golden_folder;
pub mod guest_address;
pub mod hardware;
pub mod helper;
pub mod host_key;
pub mod host_replacement;
pub mod hub;
pub mod hub_alarm_file;
pub mod hub_ca;
pub mod identity;
pub mod kernel_use;
pub mod local_tls;
pub mod mounts;
pub mod ntp;
pub mod part_file;
pub mod pbs;
pub mod privilege;
pub mod sealed_token;
pub mod settings;
pub mod slots_file;
pub mod target_probe;
pub mod trust_files;
pub mod tunnels;
pub mod update_folder;
