//! Calls of the hub about releases and their bytes.

use std::time::Duration;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::release::VersionNumber;
use holdfast_protocol::release::stored::{ImageOffer, ReleaseOffer, ReleaseText};
use net::client::Method;
use serde::de::IgnoredAny;

use super::{ANSWER_BYTES_MAX, Hub, HubError};

/// How much one request brings. A slow line carries it within the time of one.
pub const PART_BYTES: u64 = 1024 * 1024;

/// The time limit of one part: a line of 32 KiB a second.
const PART_MAX: Duration = Duration::from_secs(45);

const PARTIAL_CONTENT: u16 = 206;

impl Hub {
    /// Asks which release this host should run.
    ///
    /// # Errors
    /// [`HubError`].
    pub async fn release_offer(&self) -> Result<ReleaseOffer, HubError> {
        self.send((Method::GET, "/v1/agent/release-offer"), Vec::new(), 0).await
    }

    /// Asks which golden image a rollout brings to this host.
    ///
    /// # Errors
    /// [`HubError`].
    pub async fn image_offer(&self) -> Result<ImageOffer, HubError> {
        self.send((Method::GET, "/v1/agent/image-offer"), Vec::new(), 0).await
    }

    /// Gets the signed release of a version.
    ///
    /// # Errors
    /// [`HubError`].
    pub async fn release(&self, version: VersionNumber) -> Result<ReleaseText, HubError> {
        self.send((Method::GET, &format!("/v1/agent/releases/{version}")), Vec::new(), 0).await
    }

    /// Gets the next bytes of a file of unknown size, [`PART_BYTES`] at most. Fewer than that are the last ones.
    ///
    /// # Errors
    /// [`HubError`].
    pub async fn next_part(&self, sha256: &Sha256Text, from: u64) -> Result<Vec<u8>, HubError> {
        match self.artifact_part(sha256, from, u64::MAX).await {
            // A file of whole parts ends right where the next one would begin.
            Err(HubError::Refused { problem, .. }) if problem.code == ErrorCode::Range && from > 0 => {
                Ok(Vec::new())
            }
            other => other,
        }
    }

    /// Gets the signed release that names a file.
    ///
    /// # Errors
    /// [`HubError`].
    pub async fn release_naming(&self, sha256: &Sha256Text) -> Result<ReleaseText, HubError> {
        let path = format!("/v1/agent/artifacts/{}/release", sha256.as_str());
        self.send((Method::GET, &path), Vec::new(), 0).await
    }

    /// Gets the next bytes of a file, [`PART_BYTES`] at most.
    ///
    /// # Errors
    /// [`HubError`].
    pub async fn artifact_part(
        &self,
        sha256: &Sha256Text,
        from: u64,
        size: u64,
    ) -> Result<Vec<u8>, HubError> {
        let to = size.min(from.saturating_add(PART_BYTES)).saturating_sub(1);
        let path = format!("/v1/agent/artifacts/{}", sha256.as_str());
        let answered = self.line.part(&path, format!("bytes={from}-{to}"), PART_MAX).await;
        let answer = answered.map_err(|error| HubError::of(&self.base, error))?;
        if answer.status() == PARTIAL_CONTENT {
            return Ok(answer.body().to_vec());
        }
        let status = answer.status();
        match answer.open::<IgnoredAny>(ANSWER_BYTES_MAX) {
            Ok(IgnoredAny) => Err(HubError::of(&self.base, net::client::CallError::Contradiction { status })),
            Err(error) => Err(HubError::of(&self.base, error)),
        }
    }
}
