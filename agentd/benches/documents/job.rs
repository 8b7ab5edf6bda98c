//! A signed job, from its text to the judgement.

use std::hint::black_box;

use agentd::gate::job_validation::judge;
use anyhow::{Result, anyhow};
use ed25519_dalek::{Signer as _, SigningKey};
use holdfast_protocol::id::{HostId, JobId};
use holdfast_protocol::job::{HostEpoch, Payload, SeenHost};
use holdfast_trust::scope::Here;
use holdfast_trust::{Operators, Policy, Roster};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::signer::{self, Hand};
use crate::{Figure, Row, compare};

const HOST: &str = "01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a02";
const JOB: &str = "01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a01";

/// As long as what `ssh-keygen -Y sign` signs: a short header and a SHA-512.
const SIGNED_BYTES: usize = 111;

pub fn admitted() -> Result<Figure> {
    let hand = Hand::new(1);
    let text = signer::job(written()?.as_bytes(), &[&hand]);
    let operators = Operators::parse(&hand.line("alice"))?;
    let policy = Policy::parse("version = 1\n[verbs.destroy_guest]\ndelay_s = 1\n", &operators)?;
    let roster = Roster { operators, policy };
    let now: Timestamp = "2026-11-21T14:30:00Z".parse()?;
    let latest = now.checked_sub(SignedDuration::from_secs(1))?;
    let host: HostId = HOST.parse()?;
    let here = Here { host, epoch: HostEpoch::new(1), now, latest };
    let own = SeenHost {
        name: "box7".parse()?,
        fingerprint: "4f2a-9c01-77de-b3a8-0c11".parse().map_err(|error| anyhow!("{error}"))?,
    };
    let left: JobId = JOB.parse()?;
    let ours = || {
        black_box(judge(black_box(&text), left, Some(&roster), (&here, &own))?);
        Ok(())
    };
    let key = SigningKey::from_bytes(&[1; 32]);
    let message = [7; SIGNED_BYTES];
    let (public, signature) = (key.verifying_key(), key.sign(&message));
    let bare = || Ok(public.verify_strict(black_box(&message), black_box(&signature))?);
    let note = format!(
        "an order to destroy a guest with one signature, {} bytes as it travels: parsed, its signature and signer checked, \
         the signed bytes parsed, judged by host, time and policy, in memory; baseline: ed25519-dalek's `verify_strict` of \
         one message with a key that was read before",
        text.len()
    );
    compare(Row { name: "signed job judged", note }, ours, bare)
}

/// As `holdfast sign` writes it.
fn written() -> Result<String> {
    Ok(Payload::parse(payload().to_string().as_bytes())?.to_json()?)
}

fn payload() -> serde_json::Value {
    json!({
        "schema": "holdfast.job/v1", "job_id": JOB, "host_id": HOST, "host_epoch": 1,
        "host": { "name": "box7", "fingerprint": "4f2a-9c01-77de-b3a8-0c11" },
        "target": { "kind": "guest", "uid": "01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a03", "vmid": 300,
            "fingerprint": { "name": "web-1", "customer": "acme", "volumes": ["tank:300/vm-300-disk-0.raw"] } },
        "verb": "destroy_guest", "args": {}, "not_before": "2026-11-21T14:00:00Z", "expires_at": "2026-11-21T15:00:00Z",
        "nonce": "00112233445566778899aabbccddeeff", "reason": "the customer left"
    })
}
