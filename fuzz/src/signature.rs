//! Fuzzed signatures.

use holdfast_protocol::job::SignedJob;
use holdfast_trust::signature::{Namespace, check};
use holdfast_trust::{Operators, Policy, Roster};
use jiff::Timestamp;

use crate::signer::{PAYLOAD, Signer, armoured, changed};

/// One input. Its first byte says what the rest is: an armour, a signature, changes of a signature, or changes of the
/// signed text.
///
/// # Panics
/// When something is accepted that no signer signed.
pub fn target(data: &[u8]) {
    let Some((how, rest)) = data.split_first() else { return };
    let alice = Signer::new(1);
    let good = alice.blob(PAYLOAD.as_bytes());
    match how % 4 {
        0 => {
            let Ok(text) = std::str::from_utf8(rest) else { return };
            let plain = |text: &str| text.replace("\r\n", "\n").trim_end().to_owned();
            if check(PAYLOAD.as_bytes(), text, Namespace::Job).is_ok() {
                assert_eq!(plain(text), plain(&armoured(&good)));
            }
        }
        1 => only(rest, &good),
        2 => only(&changed(&good, rest), &good),
        _ => {
            let payload = changed(PAYLOAD.as_bytes(), rest);
            let job = SignedJob { payload, signatures: vec![armoured(&good)], consents: Vec::new() };
            let operators = Operators::parse(&alice.line("alice")).expect("a file");
            let policy = Policy::parse("version = 1", &operators).expect("a policy");
            let at: Timestamp = "2026-11-21T14:30:00Z".parse().expect("a time");
            let accepted = Roster { operators, policy }.accept(&job, at);
            assert_eq!(accepted.is_ok(), job.payload == PAYLOAD.as_bytes());
        }
    }
}

fn only(blob: &[u8], good: &[u8]) {
    let accepted = check(PAYLOAD.as_bytes(), &armoured(blob), Namespace::Job).is_ok();
    assert_eq!(accepted, blob == good);
}
