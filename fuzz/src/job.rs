//! Fuzzed payloads, drafts and approvals for all hosts.

use holdfast_protocol::job::act::Verb;
use holdfast_protocol::job::all_hosts::APPROVAL_LIFE_MAX_S;
use holdfast_protocol::job::{Draft, HostEpoch, ImageApproval, LIFE_MAX_S, Order, Ordered, Payload, Target};
use serde_json::Value;

use crate::round::Unique;

/// One input.
///
/// # Panics
/// When a rule does not hold.
pub fn target(data: &[u8]) {
    draft(data);
    approval(data);
    let payload = match Payload::parse(data) {
        Ok(payload) => payload,
        Err(error) => return assert!(!error.code().as_str().is_empty() && !error.to_string().is_empty()),
    };
    assert!(serde_json::from_slice::<Unique>(data).is_ok(), "a key stands twice");
    let text = payload.to_json().expect("it can be written");
    assert_eq!(Payload::parse(text.as_bytes()).expect("it can be read"), payload);
    let value = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).expect("JSON");
    assert_eq!(value(data), value(text.as_bytes()), "it says more, or less, than was read");
    assert_eq!(payload.act.verb().target(), payload.target.kind());
    assert!((1..=LIFE_MAX_S).contains(&(payload.expires_at.second() - payload.not_before.second())));
    assert!(payload.nonce.as_str().len() >= 32);
    for tail in [&b"x"[..], b"{}", b"\0"] {
        assert!(Payload::parse(&[data, tail].concat()).is_err(), "it goes on");
    }
    let draft = Draft { target: payload.target.clone(), act: payload.act.clone() };
    let written = draft.to_json().expect("a draft can be written");
    assert_eq!(Draft::parse(written.as_bytes()).expect("and read"), draft);
    assert!(Payload::parse(written.as_bytes()).is_err(), "a draft is no job");
    let order = Order {
        job_id: payload.job_id,
        host_id: payload.host_id,
        host_epoch: payload.host_epoch,
        host: payload.host.clone(),
        not_before: payload.not_before,
        expires_at: payload.expires_at,
        nonce: payload.nonce.clone(),
        reason: payload.reason.clone(),
    };
    assert_eq!(draft.ordered(order), payload);
}

/// What names no host approves one image, and is nothing else.
fn approval(data: &[u8]) {
    let Ok(approval) = ImageApproval::parse(data) else {
        return assert!(!matches!(Ordered::parse(data), Ok(Ordered::AllHosts(_))), "read in two ways");
    };
    assert!(serde_json::from_slice::<Unique>(data).is_ok(), "a key stands twice");
    assert!(Payload::parse(data).is_err(), "for all hosts, and for one");
    assert_eq!(Ordered::parse(data).expect("it is one"), Ordered::AllHosts(approval.clone()));
    let text = approval.to_json().expect("it can be written");
    assert_eq!(ImageApproval::parse(text.as_bytes()).expect("it can be read"), approval);
    let life = approval.expires_at.second() - approval.not_before.second();
    assert!((1..=APPROVAL_LIFE_MAX_S).contains(&life));
    let host = "01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a02".parse().expect("an id");
    let payload = approval.for_host(host, HostEpoch::new(1)).expect("a job of a host");
    assert_eq!((payload.act.verb(), payload.target), (Verb::ApproveRelease, Target::Host {}));
}

fn draft(data: &[u8]) {
    let Ok(draft) = Draft::parse(data) else { return };
    assert!(serde_json::from_slice::<Unique>(data).is_ok(), "a key stands twice");
    assert_eq!(draft.act.verb().target(), draft.target.kind());
    let text = draft.to_json().expect("it can be written");
    assert_eq!(Draft::parse(text.as_bytes()).expect("it can be read"), draft);
}
