//! What a hub states of a restore certificate.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::envelope::PublicKeyText;
use crate::id::{HostId, HostName};
use crate::job::UtcSecond;
use crate::job::act::Sha256Text;

/// The version of a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum StatementSchema {
    /// The only one so far.
    #[default]
    #[serde(rename = "holdfast.restore_countersign/v1")]
    V1,
}

/// That a key was enrolled as that of a host, and that the hub received what it signed. Nothing about the content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// The version of the statement.
    pub schema: StatementSchema,
    /// SHA-256 of the document's bytes.
    pub document_sha256: Sha256Text,
    /// SHA-256 of the host's signature in its armour.
    pub host_signature_sha256: Sha256Text,
    /// The host that the key was enrolled as.
    pub host: HostId,
    /// The host's name then.
    pub host_name: HostName,
    /// The host's public key, as OpenSSH writes it.
    pub host_key: PublicKeyText,
    /// Which of the host's certificates had that key.
    pub certificate_generation: u32,
    /// When the hub received the certificate.
    pub received_at: UtcSecond,
}
