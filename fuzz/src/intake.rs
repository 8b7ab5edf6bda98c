//! Fuzzed intake of signed jobs, against a second reading.

use holdfast_protocol::id::JobId;
use holdfast_protocol::job::{HostEpoch, Payload, SeenHost, UtcSecond, Verb};
use holdfast_trust::policy::Rule;
use holdfast_trust::scope::Here;
use holdfast_trust::{Operators, Policy, Roster};
use jiff::Timestamp;

use crate::gate::job_validation;
use crate::signer::{PAYLOAD, Signer};

/// One byte for each choice; the remaining bytes are the text of a job.
///
/// # Panics
/// When a job is accepted that must be rejected, or the other way round.
pub fn target(data: &[u8]) {
    let Some((choices, text)) = data.split_first_chunk::<8>() else { return };
    let &[verb, start, life, now, latest, epoch, left, who] = choices;
    let alice = Signer::new(1);
    let operators = Operators::parse(&alice.line("alice")).expect("a file");
    let roster = Roster { operators, policy: Policy::first() };
    let base = 1_800_000_000_i64;
    // Quarters of an hour, so that each side of each edge is near.
    let at = |quarters: u8| Timestamp::from_second(base + i64::from(quarters) * 900).expect("a time");
    // One that waits out a delay, and one that does not.
    let verb = if verb % 2 == 0 { Verb::DestroyGuest } else { Verb::BackupNow };
    let written = PAYLOAD.replace("destroy_guest", verb.as_str());
    let mut payload = Payload::parse(written.as_bytes()).expect("a payload");
    payload.not_before = UtcSecond::new(at(start)).expect("a second");
    let seconds = i64::from(life.max(1)) * 400;
    payload.expires_at =
        UtcSecond::new(at(start).checked_add(jiff::SignedDuration::from_secs(seconds)).expect("a time"))
            .expect("a second");
    payload.host_epoch = HostEpoch::new(u32::from(epoch % 3));
    let signer = Signer::new(if who % 8 == 0 { 2 } else { 1 });
    let signed = payload.to_json().expect("it can be written");
    let blob = signer.job(signed.as_bytes()).to_json().expect("it can be written");
    let other: JobId = "01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7aff".parse().expect("an id");
    let left_as = if left % 4 == 0 { other } else { payload.job_id };
    let here = Here { host: payload.host_id, epoch: HostEpoch::new(1), now: at(now), latest: at(latest) };
    let own = payload.host.clone().expect("it names its host");
    // The signer was shown this host's id under another host's name.
    let renamed = SeenHost { name: "box8".parse().expect("a name"), ..own.clone() };
    assert!(
        job_validation::judge(&blob, left_as, Some(&roster), (&here, &renamed)).is_err(),
        "another host's"
    );
    let rule = Rule::first(verb);
    let due = base + i64::from(now) * 900 + i64::from(rule.delay_s);
    let lawful = who % 8 != 0
        && left % 4 != 0
        && epoch % 3 == 1
        && latest <= now
        && now >= start
        && due < payload.expires_at.second()
        && seconds <= holdfast_protocol::job::LIFE_MAX_S;
    let taken = job_validation::judge(&blob, left_as, Some(&roster), (&here, &own));
    assert_eq!(taken.is_ok(), lawful, "{taken:?} for {signed}");
    assert!(job_validation::judge(&blob, left_as, None, (&here, &own)).is_err(), "nobody may sign here");
    // Text without a valid signature is never accepted.
    if let Ok(text) = std::str::from_utf8(text) {
        assert!(job_validation::judge(text, payload.job_id, Some(&roster), (&here, &own)).is_err());
        if text != signed {
            let mut forged = alice.job(signed.as_bytes());
            forged.payload = text.as_bytes().to_vec();
            let forged = forged.to_json().expect("it can be written");
            assert!(
                job_validation::judge(&forged, payload.job_id, Some(&roster), (&here, &own)).is_err(),
                "forged"
            );
        }
        let _ = job_validation::new_roster(text, "version = 2", 1);
        let _ = job_validation::new_roster(&alice.line("alice"), text, 1)
            .map(|roster| assert!(roster.policy.version > 1));
    }
}
