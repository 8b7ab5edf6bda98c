//! Secrets sealed for one host.
//!
//! ```text
//! operator's machine:  password, key ─▶ Creds ─▶ seal ─▶ text in the document (the hub stores what it cannot read)
//! host:                text, after the signature was checked ─▶ open ─▶ Creds ─▶ Proxmox
//! ```
//! The file is `age` for one X25519 key, so `age -d` opens it as well. Its content names the target and the backend
//! that it is for, since nothing outside is bound to it: another target's secret is refused. What comes in is bounded
//! before anything is done with it. Deliberately absent: where the host's key is stored (the agent's `port/host_key`),
//! passphrases, and more than one reader.
//!
//! | module | what |
//! | --- | --- |
//! | [`backup_key`] | the encryption key of off-site backups |
//! | [`creds`] | sealed credentials of a storage target |
//! | [`file`] | the sealed file itself |
//! | [`key`] | the host's key |
//! | [`tunnel_token`] | a sealed token of a tunnel |
//! | [`token`] | a sealed Proxmox token |
#![forbid(unsafe_code)]

pub mod backup_key;
pub mod creds;
pub mod file;
pub mod key;
pub mod token;
pub mod tunnel_token;

pub use creds::{Creds, SealContext};
pub use file::{OpenError, SealError, refused_to_encrypt};
pub use key::{HostKey, NoKey};
pub use tunnel_token::TunnelToken;
