//! The outside world, each part behind a narrow door.
//!
//! | module | door to |
//! | --- | --- |
//! | [`privilege`] | what this process may do |
//! | [`pve`] | Proxmox VE |

pub mod privilege;
pub mod pve;
