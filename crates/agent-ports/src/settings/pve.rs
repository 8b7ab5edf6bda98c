//! The settings of the Proxmox client.

use std::collections::BTreeMap;

use net::tls::Trust;

use super::secret_file::SecretFileError;
use super::{Settings, TokenSettings};
use crate::pve::{PveSettings, Role};

/// The settings of the Proxmox client, read from the settings and the files that they name.
///
/// # Errors
/// When a secret cannot be read.
pub fn pve_settings(settings: &Settings) -> Result<PveSettings, SecretFileError> {
    let proxmox = &settings.proxmox;
    let token = |token: &TokenSettings| token.read_token();
    let mut tokens = BTreeMap::from([
        (Role::Observe, token(&proxmox.tokens.observe)?),
        (Role::Operate, token(&proxmox.tokens.operate)?),
        (Role::Allocate, token(&proxmox.tokens.allocate)?),
    ]);
    if let Some(scratch) = &settings.scratch {
        tokens.insert(Role::Scratch, token(&scratch.token)?);
    }
    Ok(PveSettings {
        url: proxmox.url.clone(),
        node: proxmox.node.clone(),
        trust: Trust::Pins(proxmox.pins.clone()),
        tokens,
    })
}
