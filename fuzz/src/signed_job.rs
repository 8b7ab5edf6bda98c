//! Fuzzed envelopes of signed jobs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdfast_protocol::job::SignedJob;
use holdfast_protocol::job::envelope::SIGNATURES_MAX;

use crate::round::Unique;

/// One input: read as an envelope, and put into one as a payload.
///
/// # Panics
/// When a rule does not hold.
pub fn target(data: &[u8]) {
    let carried = SignedJob {
        payload: data.to_vec(),
        signatures: vec!["one".to_owned()],
        consents: vec!["two".to_owned()],
    };
    let text = carried.to_json().expect("it can be written");
    match SignedJob::parse(text.as_bytes()) {
        Ok(again) => assert_eq!(again, carried),
        Err(error) => assert!(data.len() > holdfast_protocol::job::BYTES_MAX, "{error}"),
    }
    let job = match SignedJob::parse(data) {
        Ok(job) => job,
        Err(error) => return assert!(!error.code().as_str().is_empty() && !error.to_string().is_empty()),
    };
    assert!(serde_json::from_slice::<Unique>(data).is_ok(), "a key stands twice");
    assert!((1..=SIGNATURES_MAX).contains(&job.signatures.len()));
    let value: serde_json::Value = serde_json::from_slice(data).expect("JSON");
    assert_eq!(
        value.get("payload").and_then(|text| text.as_str()),
        Some(STANDARD.encode(&job.payload).as_str())
    );
    let again = SignedJob::parse(job.to_json().expect("it can be written").as_bytes()).expect("and read");
    assert_eq!(again, job);
}
