//! Settings of the renewal of tokens, and the files of their secrets.

use std::path::Path;

use jiff::Timestamp;
use serde::Deserialize;

use super::{Role, Settings, TokenSettings};
use crate::model::token_age::TokenAge;

/// How often the tokens for Proxmox are renewed.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TokenRenewalSettings {
    /// After so many days a token is made anew.
    pub proxmox_days: u16,
}

impl Default for TokenRenewalSettings {
    fn default() -> Self {
        Self { proxmox_days: TokenAge::RENEWED_AFTER_DAYS }
    }
}

impl TokenRenewalSettings {
    pub(super) fn mistake(self) -> Option<(String, &'static str)> {
        let possible = (1..=365).contains(&self.proxmox_days);
        (!possible).then(|| ("token_renewal.proxmox_days".to_owned(), "1 to 365 days"))
    }
}

impl Settings {
    /// The tokens that lie in plain files, by role.
    #[must_use]
    pub fn plain_tokens(&self) -> Vec<(Role, &TokenSettings)> {
        let tokens = &self.proxmox.tokens;
        let mut all = vec![
            (Role::Observe, &tokens.observe),
            (Role::Operate, &tokens.operate),
            (Role::Allocate, &tokens.allocate),
        ];
        all.extend(self.scratch.as_ref().map(|scratch| (Role::Scratch, &scratch.token)));
        all
    }

    /// The file of each token's secret, by role.
    #[must_use]
    pub fn token_files(&self) -> Vec<(Role, &Path)> {
        let plain = self.plain_tokens().into_iter().map(|(role, token)| (role, token.secret_file.as_path()));
        let sealed =
            self.storage_entries.as_ref().map(|entries| (Role::Storage, entries.sealed_token.as_path()));
        plain.chain(sealed).collect()
    }

    /// When each token was made: its secret is written once, right after. A file that cannot be read has no age.
    #[must_use]
    pub fn token_ages(&self) -> Vec<TokenAge> {
        let age = |(role, path): (Role, &Path)| {
            let made = std::fs::symlink_metadata(path).and_then(|about| about.modified()).ok()?;
            let made_at = Timestamp::try_from(made).ok()?;
            Some(TokenAge {
                role: role.text().to_owned(),
                made_at,
                renewed_after_days: self.token_renewal.proxmox_days,
            })
        };
        self.token_files().into_iter().filter_map(age).collect()
    }
}
