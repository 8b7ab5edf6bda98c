//! Tests with handmade signatures, each part wrong by itself.

mod ecdsa;
mod edges;
mod release;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signer as _, SigningKey};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::job::{SeenHost, SignedJob};
use jiff::Timestamp;
use sha2::{Digest, Sha256, Sha512};

use crate::operators::{LineError, Operators, OperatorsError};
use crate::policy::{Policy, PolicyError};
use crate::roster::{Refused, Roster};
use crate::scope::{Here, meant_for, timely};
use crate::signature::{self, Namespace, SignatureError};

const PAYLOAD: &str = r#"{"schema":"holdfast.job/v1","job_id":"01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a01","host_id":"01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a02","host_epoch":1,"target":{"kind":"guest","uid":"01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a03","vmid":300,"fingerprint":{"name":"web-1","volumes":["tank:300/vm-300-disk-0.raw"]}},"verb":"destroy_guest","args":{},"not_before":"2026-11-21T14:00:00Z","expires_at":"2026-11-21T15:00:00Z","nonce":"00112233445566778899aabbccddeeff","reason":"the customer left"}"#;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn now() -> Timestamp {
    at("2026-11-21T14:30:00Z")
}

/// Someone who signs.
struct Hand {
    key: SigningKey,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Plain,
    Token { flags: u8 },
}

/// What may be wrong about one signature.
struct Shape {
    namespace: &'static str,
    signed_for: &'static str,
    hash: &'static str,
    touch: fn(&mut Vec<u8>),
}

const RIGHT: Shape =
    Shape { namespace: "holdfast-job", signed_for: "holdfast-job", hash: "sha512", touch: |_| {} };

fn string(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(u32::try_from(bytes.len()).unwrap().to_be_bytes());
    out.extend(bytes);
}

impl Hand {
    fn plain(seed: u8) -> Self {
        Self { key: SigningKey::from_bytes(&[seed; 32]), kind: Kind::Plain }
    }

    fn token(seed: u8, flags: u8) -> Self {
        Self { kind: Kind::Token { flags }, ..Self::plain(seed) }
    }

    fn algorithm(&self) -> &'static str {
        if self.kind == Kind::Plain { "ssh-ed25519" } else { "sk-ssh-ed25519@openssh.com" }
    }

    fn blob(&self) -> Vec<u8> {
        let mut blob = Vec::new();
        string(&mut blob, self.algorithm().as_bytes());
        string(&mut blob, self.key.verifying_key().as_bytes());
        if self.kind != Kind::Plain {
            string(&mut blob, b"ssh:");
        }
        blob
    }

    fn line(&self, name: &str) -> String {
        format!("{name} {} {}", self.algorithm(), STANDARD.encode(self.blob()))
    }

    fn sign(&self, bytes: &[u8]) -> String {
        self.shaped(bytes, &RIGHT)
    }

    fn shaped(&self, bytes: &[u8], shape: &Shape) -> String {
        let digest = if shape.hash == "sha256" {
            Sha256::digest(bytes).to_vec()
        } else {
            Sha512::digest(bytes).to_vec()
        };
        let mut signed = b"SSHSIG".to_vec();
        for part in [shape.signed_for.as_bytes(), b"", shape.hash.as_bytes(), &digest] {
            string(&mut signed, part);
        }
        let mut inner = Vec::new();
        match self.kind {
            Kind::Plain => inner.extend(self.key.sign(&signed).to_bytes()),
            Kind::Token { flags } => {
                let trailer = [flags, 0, 0, 0, 7];
                let message = [&Sha256::digest("ssh:")[..], &trailer, &Sha256::digest(&signed)].concat();
                inner.extend(self.key.sign(&message).to_bytes());
            }
        }
        (shape.touch)(&mut inner);
        let mut signature = Vec::new();
        string(&mut signature, self.algorithm().as_bytes());
        string(&mut signature, &inner);
        if let Kind::Token { flags } = self.kind {
            signature.extend([flags, 0, 0, 0, 7]);
        }
        let mut all = b"SSHSIG".to_vec();
        all.extend(1_u32.to_be_bytes());
        for part in [&self.blob()[..], shape.namespace.as_bytes(), b"", shape.hash.as_bytes(), &signature] {
            string(&mut all, part);
        }
        armoured(&all)
    }
}

fn armoured(bytes: &[u8]) -> String {
    let text = STANDARD.encode(bytes);
    let lines: Vec<&str> =
        text.as_bytes().chunks(70).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN SSH SIGNATURE-----\n{}\n-----END SSH SIGNATURE-----\n", lines.join("\n"))
}

fn roster(lines: &[String], policy: &str) -> Roster {
    let operators = Operators::parse(&lines.join("\n")).unwrap();
    let policy = Policy::parse(policy, &operators).unwrap();
    Roster { operators, policy }
}

fn job(payload: &str, hands: &[&Hand]) -> SignedJob {
    let payload = payload.as_bytes().to_vec();
    let signatures = hands.iter().map(|hand| hand.sign(&payload)).collect();
    SignedJob { payload, signatures, consents: Vec::new() }
}

fn code(result: Result<crate::Accepted, Refused>) -> ErrorCode {
    result.map(|accepted| accepted.signers().clone()).unwrap_err().code()
}

#[test]
fn what_was_signed_is_what_is_read() {
    let alice = Hand::plain(1);
    let accepted =
        roster(&[alice.line("alice")], "version = 1").accept(&job(PAYLOAD, &[&alice]), now()).unwrap();
    assert_eq!(accepted.payload().to_json().unwrap(), PAYLOAD);
    assert_eq!(accepted.signers().iter().map(|name| name.as_str()).collect::<Vec<_>>(), ["alice"]);
    assert_eq!(accepted.rule().delay_s, 600, "what destroys waits");
    // One byte more, one less, one other, written anew: nothing of it carries the signature.
    let pretty = PAYLOAD.replace(",\"", ", \"");
    for bytes in [
        format!("{PAYLOAD} "),
        PAYLOAD[..PAYLOAD.len() - 1].to_owned(),
        PAYLOAD.replace("300", "301"),
        pretty,
    ] {
        let forged = SignedJob { payload: bytes.into_bytes(), ..job(PAYLOAD, &[&alice]) };
        assert_eq!(
            code(roster(&[alice.line("alice")], "version = 1").accept(&forged, now())),
            ErrorCode::Signature
        );
    }
}

#[test]
fn a_hardware_key_signs_when_it_was_touched() {
    for (flags, fine) in [(1, true), (5, true), (0, false), (4, false)] {
        let alice = Hand::token(1, flags);
        let result = roster(&[alice.line("alice")], "version = 1").accept(&job(PAYLOAD, &[&alice]), now());
        match result {
            Ok(_) => assert!(fine, "{flags}"),
            Err(Refused::Signature { source: SignatureError::Untouched, .. }) => assert!(!fine, "{flags}"),
            Err(other) => panic!("{flags}: {other}"),
        }
    }
    // The flags are part of what was signed: raising them afterwards does not help.
    let alice = Hand::token(1, 0);
    let raised = {
        let text: String =
            alice.sign(PAYLOAD.as_bytes()).lines().filter(|line| !line.starts_with('-')).collect();
        let mut bytes = STANDARD.decode(text).unwrap();
        let flags = bytes.len() - 5;
        bytes[flags] = 1;
        armoured(&bytes)
    };
    let result = signature::check(PAYLOAD.as_bytes(), &raised, Namespace::Job);
    assert!(matches!(result, Err(SignatureError::Mismatch)), "{result:?}");
}

#[test]
fn signatures_that_are_none() {
    let alice = Hand::plain(1);
    let bytes = PAYLOAD.as_bytes();
    let shapes = [
        Shape { namespace: "file", signed_for: "file", ..RIGHT },
        Shape { signed_for: "holdfast-release", ..RIGHT },
        Shape { namespace: "holdfast-job2", signed_for: "holdfast-job2", ..RIGHT },
        Shape { touch: |inner| inner.fill(0), ..RIGHT },
        Shape { touch: |inner| inner.truncate(63), ..RIGHT },
        Shape { touch: |inner| inner.push(0), ..RIGHT },
        Shape { touch: |inner| inner[0] ^= 1, ..RIGHT },
        Shape { touch: |inner| inner[63] |= 0x80, ..RIGHT },
        Shape { touch: |inner| inner[32..].fill(0xff), ..RIGHT },
    ];
    for (number, shape) in shapes.iter().enumerate() {
        assert!(
            signature::check(bytes, &alice.shaped(bytes, shape), Namespace::Job).is_err(),
            "shape {number}"
        );
    }
    assert!(
        signature::check(bytes, &alice.shaped(bytes, &Shape { hash: "sha256", ..RIGHT }), Namespace::Job)
            .is_ok()
    );
    let good = alice.sign(bytes);
    let texts = [
        String::new(),
        good.replace("SSH SIGNATURE", "SSH SIGNATUR"),
        good.replace('\n', ""),
        good.replace("-----END", "----END"),
        format!("{good}{good}"),
        good.replace('A', "-"),
        "x".repeat(3_000),
    ];
    for text in &texts {
        assert!(signature::check(bytes, text, Namespace::Job).is_err(), "{text}");
    }
}

/// S and S + L are the same number to a careless reader.
#[test]
fn a_signature_has_one_spelling() {
    let order: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];
    let alice = Hand::plain(1);
    let text: String = alice.sign(PAYLOAD.as_bytes()).lines().filter(|line| !line.starts_with('-')).collect();
    let mut bytes = STANDARD.decode(text).unwrap();
    let start = bytes.len() - 32;
    let mut carry = 0_u16;
    for (byte, add) in bytes[start..].iter_mut().zip(order) {
        carry += u16::from(*byte) + u16::from(add);
        *byte = carry.to_le_bytes()[0];
        carry >>= 8;
    }
    let result = signature::check(PAYLOAD.as_bytes(), &armoured(&bytes), Namespace::Job);
    assert!(matches!(result, Err(SignatureError::Mismatch)), "{result:?}");
}

#[test]
fn operators_count_and_not_keys() {
    let (alice, token, bob, eve) = (Hand::plain(1), Hand::token(2, 1), Hand::plain(3), Hand::plain(4));
    let lines = [alice.line("alice"), token.line("alice"), bob.line("bob")];
    let two = roster(&lines, "version = 1\n[verbs.destroy_guest]\nsignatures = 2");
    assert!(two.accept(&job(PAYLOAD, &[&alice, &bob]), now()).is_ok());
    assert!(two.accept(&job(PAYLOAD, &[&bob, &token]), now()).is_ok());
    for few in [&[&alice][..], &[&alice, &alice], &[&alice, &token], &[&token, &token, &alice]] {
        assert_eq!(code(two.accept(&job(PAYLOAD, few), now())), ErrorCode::SignaturesMissing);
    }
    assert_eq!(code(two.accept(&job(PAYLOAD, &[&alice, &bob, &eve]), now())), ErrorCode::KeyUnknown);
    let bobs = roster(&lines, "version = 1\n[verbs.destroy_guest]\nsigners = [\"bob\"]");
    assert!(bobs.accept(&job(PAYLOAD, &[&bob]), now()).is_ok());
    assert_eq!(code(bobs.accept(&job(PAYLOAD, &[&alice]), now())), ErrorCode::KeyRevoked);
}

#[test]
fn a_key_signs_within_its_time_and_for_its_purpose() {
    let alice = Hand::plain(1);
    let line = |options: &str| alice.line(&format!("alice {options}"));
    let cases = [
        (r#"namespaces="holdfast-job""#, true),
        (r#"namespaces="git,holdfast-job""#, true),
        (r#"namespaces="git""#, false),
        (r#"valid-after="20261121Z""#, true),
        (r#"valid-after="20261122Z""#, false),
        (r#"valid-after="202611211430Z",valid-before="20261121143001Z""#, true),
        (r#"valid-before="202611211430Z""#, false),
        (r#"namespaces="holdfast-job",valid-before="20271121Z""#, true),
    ];
    for (options, fine) in cases {
        let result = roster(&[line(options)], "version = 1").accept(&job(PAYLOAD, &[&alice]), now());
        assert_eq!(result.is_ok(), fine, "{options}");
        if let Err(error) = result {
            assert_eq!(error.code(), ErrorCode::KeyRevoked, "{options}");
        }
    }
}

#[test]
fn an_operators_file_means_what_openssh_would_make_of_it_or_is_refused() {
    let alice = Hand::plain(1);
    let plain = alice.line("alice");
    let (_, key) = plain.split_once(' ').unwrap();
    let rsa = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAQQCo9+BpMRYQ/dL3DS2CyJxRF+j6ctbT3/Qp84+KeFhnii7NT7fELilKUSnxS30WAvQCCo2yU1orfgqr41mM70MB";
    let zero = format!("ssh-ed25519 {}", {
        let mut blob = Vec::new();
        string(&mut blob, b"ssh-ed25519");
        string(&mut blob, &[0; 32]);
        STANDARD.encode(blob)
    });
    let refused = [
        "alice".to_owned(),
        "alice ssh-ed25519".to_owned(),
        format!("* {key}"),
        format!("alice,bob {key}"),
        format!("!alice {key}"),
        format!("alice cert-authority {key}"),
        format!("alice no-touch-required {key}"),
        format!("alice from=\"10.0.0.1\" {key}"),
        format!("alice namespaces=holdfast-job {key}"),
        format!("alice namespaces=\"a\",namespaces=\"b\" {key}"),
        format!("alice valid-after=\"20261121\" {key}"),
        format!("alice valid-after=\"20261321Z\" {key}"),
        format!("alice {rsa}"),
        format!("alice {zero}"),
        format!("{plain}\n{}", alice.line("bob")),
    ];
    for text in &refused {
        let error = Operators::parse(text).unwrap_err();
        assert!(matches!(error, OperatorsError::Line { .. }), "{text}: {error}");
    }
    assert!(matches!(Operators::parse("# nobody\n\n"), Err(OperatorsError::Empty)));
    assert!(matches!(Operators::parse(&"#".repeat(65 * 1024)), Err(OperatorsError::Size(_))));
    let twice = Operators::parse(&format!("# us\n\n{plain}\n{plain}")).unwrap_err();
    assert!(matches!(twice, OperatorsError::Line { line: 4, source: LineError::Twice }), "{twice}");
    assert_eq!(Operators::parse(&format!("{plain} laptop of alice\r\n")).unwrap().operators(), 1);
}

#[test]
fn a_policy_that_nothing_could_pass_or_anything_could_is_refused() {
    let operators = Operators::parse(&Hand::plain(1).line("alice")).unwrap();
    let refused = |text: &str| Policy::parse(text, &operators).unwrap_err();
    assert!(matches!(refused(""), PolicyError::Form(_)));
    assert!(matches!(refused("version = 1\n[verbs.explode]"), PolicyError::Form(_)));
    assert!(matches!(refused("version = 1\n[verbs.cancel]\nnobody = 1"), PolicyError::Form(_)));
    assert!(matches!(refused("version = 1\n[verbs.cancel]\nsignatures = 0"), PolicyError::NoSignature(_)));
    assert!(matches!(refused("version = 1\n[verbs.cancel]\nsignatures = 2"), PolicyError::OutOfReach { .. }));
    assert!(matches!(
        refused("version = 1\n[verbs.cancel]\nsigners = [\"bob\"]"),
        PolicyError::Stranger { .. }
    ));
    assert!(matches!(refused("version = 1\n[restore]\nunused_ends_h = 8761"), PolicyError::UnusedEnds(8761)));
    assert!(matches!(refused("version = 1\n[restore]\nnever = true"), PolicyError::Form(_)));
    let long = format!("version = 1 #{}", "x".repeat(17 * 1024));
    assert!(matches!(refused(&long), PolicyError::Size(_)));
}

#[test]
fn a_job_is_for_one_host_one_life_and_its_hour() {
    let alice = Hand::plain(1);
    let accepted =
        roster(&[alice.line("alice")], "version = 1").accept(&job(PAYLOAD, &[&alice]), now()).unwrap();
    let payload = accepted.payload();
    let here = Here { host: payload.host_id, epoch: payload.host_epoch, now: now(), latest: now() };
    let code = |here: Here| timely(payload, &here).map_err(|error| error.code());
    assert_eq!(code(here), Ok(()));
    let other = "01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7aff".parse().unwrap();
    assert_eq!(code(Here { host: other, ..here }), Err(ErrorCode::NotYours));
    let later = holdfast_protocol::job::HostEpoch::new(2);
    assert_eq!(code(Here { epoch: later, ..here }), Err(ErrorCode::JobEpoch));
    for (time, wanted) in [
        ("2026-11-21T13:59:59.999Z", Err(ErrorCode::JobNotYet)),
        ("2026-11-21T14:00:00Z", Ok(())),
        ("2026-11-21T14:59:59.999Z", Ok(())),
        ("2026-11-21T15:00:00Z", Err(ErrorCode::JobExpired)),
        ("2076-11-21T15:00:00Z", Err(ErrorCode::JobExpired)),
        ("1976-11-21T15:00:00Z", Err(ErrorCode::JobNotYet)),
    ] {
        assert_eq!(code(Here { now: at(time), latest: at(time), ..here }), wanted, "{time}");
    }
    assert_eq!(code(Here { latest: at("2026-11-21T14:32:00Z"), ..here }), Ok(()), "a small skew");
    assert_eq!(code(Here { latest: at("2026-11-21T14:32:01Z"), ..here }), Err(ErrorCode::ClockBehind));
}

/// A stolen hub shows one host's id under another host's name: the signer meant the name, and so does the host.
#[test]
fn a_job_is_for_the_host_that_its_signers_know() {
    let own =
        SeenHost { name: "box7".parse().unwrap(), fingerprint: "4f2a-9c01-77de-b3a8-0c11".parse().unwrap() };
    let code = |text: &str| {
        let payload = holdfast_protocol::job::Payload::parse(text.as_bytes()).unwrap();
        meant_for(&payload, &own).map_err(|error| error.code())
    };
    let with = |host: &str| PAYLOAD.replacen("\"target\"", &format!("{host},\"target\""), 1);
    let host = |name: &str, fingerprint: &str| {
        with(&format!("\"host\":{{\"name\":\"{name}\",\"fingerprint\":\"{fingerprint}\"}}"))
    };
    assert_eq!(code(&host("box7", "4f2a-9c01-77de-b3a8-0c11")), Ok(()));
    assert_eq!(code(&host("box8", "4f2a-9c01-77de-b3a8-0c11")), Err(ErrorCode::NotYours));
    assert_eq!(code(&host("box7", "4f2a-9c01-77de-b3a8-0c12")), Err(ErrorCode::HostKeyChanged));
    assert_eq!(code(PAYLOAD), Err(ErrorCode::JobUnbound), "as older commands signed it");
    let free = |text: String| text.replacen("\"destroy_guest\"", "\"backup_now\"", 1);
    assert_eq!(code(&free(PAYLOAD.to_owned())), Ok(()), "takes nothing away");
    assert_eq!(code(&free(host("box8", "4f2a-9c01-77de-b3a8-0c11"))), Err(ErrorCode::NotYours));
}

/// Each bit of a signature counts: none of its bytes can be another one and the whole still hold. A listed key, which is
/// not judged anew, is checked as any other.
#[test]
fn each_bit_of_a_signature_counts() {
    for hand in [Hand::plain(1), Hand::token(1, 1)] {
        let operators = Operators::parse(&hand.line("alice")).unwrap();
        let text: String =
            hand.sign(PAYLOAD.as_bytes()).lines().filter(|line| !line.starts_with('-')).collect();
        let bytes = STANDARD.decode(text).unwrap();
        let checked = |bytes: &[u8]| {
            let (signed, armoured) = (PAYLOAD.as_bytes(), armoured(bytes));
            let alone = format!("{:?}", signature::check(signed, &armoured, Namespace::Job));
            let listed =
                signature::check_known(signed, &armoured, Namespace::Job, |data| operators.key(data));
            assert_eq!(format!("{listed:?}"), alone);
            listed.is_ok()
        };
        assert!(checked(&bytes));
        let flips = (0..bytes.len()).flat_map(|at| (0..8).map(move |bit| (at, bit)));
        let holds = flips.filter(|(at, bit)| {
            let mut flipped = bytes.clone();
            flipped[*at] ^= 1 << bit;
            checked(&flipped)
        });
        assert_eq!(holds.collect::<Vec<_>>(), Vec::new());
    }
}

const APPROVAL: &str = r#"{"schema":"holdfast.image-approval/v1","job_id":"01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a01","version":"2026.11.1","sha256":"abababababababababababababababababababababababababababababababab","not_before":"2026-11-01T00:00:00Z","expires_at":"2026-11-22T00:00:00Z","nonce":"00112233445566778899aabbccddeeff","reason":"the image of November"}"#;

/// The same operators, rule and quorum as for the approval on one host.
#[test]
fn an_approval_for_all_hosts_is_a_job_of_each() {
    let (alice, bob, eve) = (Hand::plain(1), Hand::plain(2), Hand::plain(3));
    let lines = [alice.line("alice"), bob.line("bob")];
    let two = roster(&lines, "version = 1\n[verbs.approve_release]\nsignatures = 2");
    let only_bob = roster(&lines, "version = 1\n[verbs.approve_release]\nsigners = [\"bob\"]");
    let here = |n: u8, now| Here {
        host: format!("01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a{n:02}").parse().unwrap(),
        epoch: holdfast_protocol::job::HostEpoch::new(u32::from(n)),
        now,
        latest: now,
    };
    for n in [2, 3] {
        let here = here(n, now());
        let accepted = two.accept_here(&job(APPROVAL, &[&alice, &bob]), &here).unwrap();
        let payload = accepted.payload();
        assert_eq!((accepted.reach(), payload.host_id), (crate::Reach::AllHosts, here.host));
        assert_eq!(payload.act.verb(), holdfast_protocol::job::Verb::ApproveRelease);
        assert_eq!(accepted.rule().signatures, 2);
        assert!(timely(payload, &here).is_ok());
        for time in ["2026-10-31T23:59:59Z", "2026-11-22T00:00:00Z"] {
            assert!(timely(payload, &Here { now: at(time), latest: at(time), ..here }).is_err(), "{time}");
        }
    }
    let code = |roster: &Roster, hands: &[&Hand]| {
        roster.accept_here(&job(APPROVAL, hands), &here(2, now())).map(|_| ()).map_err(|error| error.code())
    };
    assert_eq!(code(&two, &[&alice]), Err(ErrorCode::SignaturesMissing));
    assert_eq!(code(&two, &[&alice, &alice]), Err(ErrorCode::SignaturesMissing), "one person");
    assert_eq!(code(&two, &[&alice, &eve]), Err(ErrorCode::KeyUnknown));
    assert_eq!(code(&only_bob, &[&alice]), Err(ErrorCode::KeyRevoked));
    assert_eq!(code(&only_bob, &[&bob]), Ok(()));
    // Bytes that were changed after the signature, and one for another purpose.
    let mut forged = job(APPROVAL, &[&bob]);
    forged.payload = APPROVAL.replacen("2026.11.1", "2026.11.2", 1).into_bytes();
    assert_eq!(only_bob.accept_here(&forged, &here(2, now())).unwrap_err().code(), ErrorCode::Signature);
    let release = Shape { namespace: "holdfast-release", signed_for: "holdfast-release", ..RIGHT };
    let signatures = vec![bob.shaped(APPROVAL.as_bytes(), &release)];
    let other = SignedJob { payload: APPROVAL.as_bytes().to_vec(), signatures, consents: Vec::new() };
    assert!(only_bob.accept_here(&other, &here(2, now())).is_err());
    // Where one host is meant, it is no job: root's programs take none.
    assert!(only_bob.accept(&job(APPROVAL, &[&bob]), now()).is_err());
    // A job of one host goes the one way that it always went.
    let destroys = two.accept_here(&job(PAYLOAD, &[&alice]), &here(2, now())).unwrap();
    assert_eq!(destroys.reach(), crate::Reach::OneHost);
}
