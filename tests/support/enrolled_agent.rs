//! The identity of an enrolled agent, and answers in a hub's envelope.

use std::path::Path;

use net::client::Answer;
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};

/// Writes an identity with a new key into an agent's folder, of which `IdentityFolder::open` has made the parts.
pub fn enrol(state: &Path) -> KeyPair {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(Vec::new()).unwrap().self_signed(&key).unwrap().pem();
    let identity = json!({
        "schema": "holdfast.identity/v1", "hub": "https://127.0.0.1:1", "key_pem": key.serialize_pem(),
        "enrolled": {"host_id": "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55", "host_name": "box7",
            "certificate_pem": certificate, "ca_pem": certificate, "certificate_generation": 1,
            "not_before": "2026-01-01T00:00:00Z", "not_after": "2126-01-01T00:00:00Z"}
    });
    std::fs::write(state.join("identity/identity.json"), identity.to_string()).unwrap();
    key
}

/// A hub's answer: its status, and data or an error.
pub fn answer((status, data, error): (u16, Value, Value)) -> Answer {
    let id = "01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a01";
    let frame = json!({ "schema_version": "holdfast.envelope/v1", "request_id": id, "correlation_id": id,
        "data": data, "error": error, "metadata": { "timestamp": "2026-11-21T12:00:00Z" } });
    Answer::new(status, frame.to_string().into_bytes())
}
