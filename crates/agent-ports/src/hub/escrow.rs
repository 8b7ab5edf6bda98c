//! Calls to the hub about wrapped keys.

use holdfast_protocol::escrow::{EscrowKept, EscrowList, EscrowNumber, EscrowOpened, EscrowProof, EscrowPut};
use holdfast_protocol::job::Nonce;
use net::client::Method;

use super::{Hub, HubError};

impl Hub {
    /// Has a version kept. The same version again is the same answer.
    ///
    /// # Errors
    /// [`HubError`].
    pub async fn put_escrow(&self, put: &EscrowPut) -> Result<EscrowKept, HubError> {
        let body = serde_json::to_vec(put).map_err(HubError::Unwritable)?;
        self.send((Method::PUT, "/v1/agent/escrow"), body, 0).await
    }

    /// The versions that the hub keeps.
    ///
    /// # Errors
    /// [`HubError`].
    pub async fn list_escrow(&self) -> Result<EscrowList, HubError> {
        self.send((Method::GET, "/v1/agent/escrow/versions"), Vec::new(), 0).await
    }

    /// Has the hub prove that it holds a version as it was put.
    ///
    /// # Errors
    /// [`HubError`].
    pub async fn prove_escrow(&self, number: EscrowNumber, nonce: &Nonce) -> Result<EscrowProof, HubError> {
        let path = format!("/v1/agent/escrow/versions/{number}/proof?nonce={}", nonce.as_str());
        self.send((Method::GET, &path), Vec::new(), 0).await
    }

    /// Reports that its holder opened a version.
    ///
    /// # Errors
    /// [`HubError`].
    pub async fn report_escrow_opened(
        &self,
        number: EscrowNumber,
        opened: &EscrowOpened,
    ) -> Result<EscrowKept, HubError> {
        self.post(&format!("/v1/agent/escrow/versions/{number}/opened"), opened, 0).await
    }
}
