//! Settings of a webhook: its address, and the files of its secrets.

use std::path::PathBuf;

use holdfast_protocol::secret::Secret;
use reqwest::Url;
use serde::Deserialize;

use super::{SettingsError, read};
use crate::task::http_post::WebhookSettings;

/// A webhook's secret shorter than this can be guessed.
pub(super) const SECRET_CHARS_MIN: usize = 32;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WebhookFile {
    pub url: String,
    pub secret_file: PathBuf,
    /// The secret before, while it is replaced.
    pub former_secret_file: Option<PathBuf>,
}

pub(super) fn webhook(file: WebhookFile) -> Result<WebhookSettings, SettingsError> {
    let refused = || SettingsError::WebhookUrl { url: file.url.clone() };
    let url = Url::parse(&file.url).map_err(|_| refused())?;
    let here = url.host_str().is_some_and(|host| ["127.0.0.1", "[::1]", "localhost"].contains(&host));
    if url.scheme() != "https" && !(url.scheme() == "http" && here) {
        return Err(refused());
    }
    let secret = webhook_secret(file.secret_file)?;
    let former_secret = file.former_secret_file.map(webhook_secret).transpose()?;
    Ok(WebhookSettings { url, secret, former_secret })
}

fn webhook_secret(path: PathBuf) -> Result<Secret, SettingsError> {
    let secret = Secret::new(read(&path)?.trim().to_owned());
    if secret.expose().len() < SECRET_CHARS_MIN {
        return Err(SettingsError::WebhookSecret { path });
    }
    Ok(secret)
}
