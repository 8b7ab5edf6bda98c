//! Tests of wrapped keys against the real hub's routes.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of a test")]

use agentd::port::hub::{Hub as Asked, HubError};
use harness::clock::Timeline;
use harness::hub::Hub;
use harness::virtual_time;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::escrow::{
    EscrowBytes, EscrowNumber, EscrowOpened, EscrowPut, EscrowPutSchema, form, proof,
};
use holdfast_protocol::job::{HostEpoch, Nonce, UtcSecond};
use jiff::Timestamp;

/// A file in the form that hub and agent check. No test opens it.
fn file(salt: u8, factor: u8) -> EscrowBytes {
    let plain =
        format!("age-encryption.org/v1\n-> scrypt c2FsdHNhbHRzYWx0c2FsdA {factor}\nbody\n--- mac\n{salt}");
    EscrowBytes::try_from(form::to_text(plain.as_bytes()).into_bytes()).unwrap()
}

fn put(number: u32, file: EscrowBytes, at: Timestamp) -> EscrowPut {
    EscrowPut {
        schema: EscrowPutSchema::V1,
        number: EscrowNumber::try_from(number).unwrap(),
        sha256: file.sha256(),
        file,
        customer: "acme".parse().unwrap(),
        epoch: HostEpoch::new(1),
        code: 1.try_into().unwrap(),
        fingerprint: ["ab"; 32].join(":").parse().unwrap(),
        made_at: UtcSecond::new(at).unwrap(),
    }
}

fn refused(error: &HubError) -> ErrorCode {
    match error {
        HubError::Refused { problem, .. } => problem.code,
        other => panic!("{other:?}"),
    }
}

#[test]
fn agent_and_hub_mean_the_same_by_a_wrapped_key() {
    virtual_time(async || {
        let timeline = Timeline::starting_at("2026-11-22T12:00:00Z".parse().unwrap());
        let hub = Hub::open(timeline).await;
        let agent = Asked::over(hub.line(), "https://hub.example:8443");
        assert!(agent.list_escrow().await.unwrap().versions.is_empty());
        let (first, at) = (file(1, 16), timeline.now());
        let kept = agent.put_escrow(&put(1, first.clone(), at)).await.unwrap();
        assert_eq!(kept.version.sha256, first.sha256());
        // After a lost reply the same request comes again.
        assert_eq!(agent.put_escrow(&put(1, first.clone(), at)).await.unwrap(), kept);
        let nonce = Nonce::try_from("5a".repeat(16)).unwrap();
        let said = agent.prove_escrow(kept.version.number, &nonce).await.unwrap();
        assert_eq!(said.proof, proof(&nonce, &first));
        let opened = EscrowOpened { at: UtcSecond::new(at).unwrap() };
        let reported = agent.report_escrow_opened(kept.version.number, &opened).await.unwrap();
        assert_eq!(reported.version.opened_at, Some(opened.at));
        agent.put_escrow(&put(2, file(2, 16), at)).await.unwrap();
        let listed = agent.list_escrow().await.unwrap();
        let numbers: Vec<u32> = listed.versions.iter().map(|view| view.number.number()).collect();
        assert_eq!(numbers, [2, 1]);

        let taken = agent.put_escrow(&put(1, file(3, 16), at)).await.unwrap_err();
        assert_eq!(refused(&taken), ErrorCode::EscrowTaken);
        let far = agent.put_escrow(&put(103, file(3, 16), at)).await.unwrap_err();
        assert_eq!(refused(&far), ErrorCode::EscrowNumber);
        let weak = agent.put_escrow(&put(3, file(3, 15), at)).await.unwrap_err();
        assert_eq!(refused(&weak), ErrorCode::EscrowWork);
        let gone = agent.prove_escrow(9.try_into().unwrap(), &nonce).await.unwrap_err();
        assert_eq!(refused(&gone), ErrorCode::NotFound);
    });
}
