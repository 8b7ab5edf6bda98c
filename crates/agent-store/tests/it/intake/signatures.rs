//! Tests of invalid signatures, wrong keys and too few operators.

use std::path::Path;
use std::process::Command;

use agent_store::job_intake::Outcome;
use agent_store::roster::RosterTexts;
use holdfast_protocol::code::ErrorCode::{self, KeyRevoked, KeyUnknown, Signature, SignaturesMissing};
use holdfast_protocol::job::SignedJob;

use crate::intake::hand::{Hand, RIGHT, Shape, armoured, job};
use crate::intake::store_fixture::{StoreFixture, roster, target};

fn blob(payload: &str, signatures: Vec<String>) -> String {
    SignedJob { payload: payload.as_bytes().to_vec(), signatures, consents: Vec::new() }.to_json().unwrap()
}

/// The order of the curve's base point, little end first.
const ORDER: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

/// S and S + L are one number to a careless reader.
fn plus_order(inner: &mut [u8]) {
    let mut carry = 0_u16;
    for (byte, add) in inner[32..].iter_mut().zip(ORDER) {
        carry += u16::from(*byte) + u16::from(add);
        *byte = carry.to_le_bytes()[0];
        carry >>= 8;
    }
}

fn shapes() -> Vec<(&'static str, Shape)> {
    let touch = |touch| Shape { touch, ..RIGHT };
    let whole = |whole| Shape { whole, ..RIGHT };
    vec![
        ("all zero", touch(|inner| inner.fill(0))),
        ("R zero", touch(|inner| inner[..32].fill(0))),
        (
            "R the neutral point",
            touch(|inner| {
                inner[..32].fill(0);
                inner[0] = 1;
            }),
        ),
        ("R out of the field", touch(|inner| inner[..32].fill(0xff))),
        ("S zero", touch(|inner| inner[32..].fill(0))),
        ("S plus the order", touch(|inner| plus_order(inner))),
        ("S with its top bit", touch(|inner| inner[63] |= 0x80)),
        ("S all ones", touch(|inner| inner[32..].fill(0xff))),
        ("a byte short", touch(|inner| inner.truncate(63))),
        ("a byte long", touch(|inner| inner.push(0))),
        ("empty", touch(Vec::clear)),
        ("twice", touch(|inner| inner.extend_from_within(..))),
        ("for files", Shape { says: "file", made_for: "file", ..RIGHT }),
        ("for git", Shape { says: "git", made_for: "git", ..RIGHT }),
        ("for releases", Shape { says: "holdfast-release", made_for: "holdfast-release", ..RIGHT }),
        ("for a longer name", Shape { says: "holdfast-job2", made_for: "holdfast-job2", ..RIGHT }),
        ("for a shorter name", Shape { says: "holdfast-jo", made_for: "holdfast-jo", ..RIGHT }),
        ("for an upper-case name", Shape { says: "HOLDFAST-JOB", made_for: "HOLDFAST-JOB", ..RIGHT }),
        ("for no name", Shape { says: "", made_for: "", ..RIGHT }),
        ("says another purpose than it was made for", Shape { made_for: "file", ..RIGHT }),
        ("made for this and says another", Shape { says: "file", ..RIGHT }),
        ("another magic", whole(|all| all[0] = b'X')),
        ("another version", whole(|all| all[9] = 2)),
        ("a byte behind", whole(|all| all.push(0))),
        ("cut", whole(|all| all.truncate(100))),
        (
            "another hash",
            whole(|all| {
                let at = all.windows(6).rposition(|part| part == b"sha512").unwrap();
                all[at..at + 6].copy_from_slice(b"sha256");
            }),
        ),
        (
            "a hash nobody knows",
            whole(|all| {
                let at = all.windows(6).rposition(|part| part == b"sha512").unwrap();
                all[at..at + 6].copy_from_slice(b"md5md5");
            }),
        ),
        (
            "a key of zeroes",
            whole(|all| {
                let at = all.windows(11).position(|part| part == b"ssh-ed25519").unwrap() + 15;
                all[at..at + 32].fill(0);
            }),
        ),
        (
            "a key of small order",
            whole(|all| {
                let at = all.windows(11).position(|part| part == b"ssh-ed25519").unwrap() + 15;
                all[at..at + 32].fill(0);
                all[at] = 1;
            }),
        ),
        (
            "a key out of the field",
            whole(|all| {
                let at = all.windows(11).position(|part| part == b"ssh-ed25519").unwrap() + 15;
                all[at..at + 32].fill(0xff);
            }),
        ),
        (
            "an RSA key by its name",
            whole(|all| {
                let at = all.windows(11).position(|part| part == b"ssh-ed25519").unwrap();
                all[at..at + 11].copy_from_slice(b"ssh-rsa-512");
            }),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signatures_that_are_none() {
    let mut listener = StoreFixture::open().await;
    let mut vectors: Vec<(String, String)> = Vec::new();
    let (_, good) = listener.destroy().await;
    for (name, shape) in shapes() {
        vectors.push((name.to_owned(), blob(&good, vec![listener.alice.shaped(good.as_bytes(), shape)])));
    }
    let signature = listener.alice.sign(good.as_bytes());
    for (name, text) in [
        ("no text", String::new()),
        ("no armour", signature.lines().filter(|line| !line.starts_with('-')).collect()),
        ("one line", signature.replace('\n', "")),
        ("another armour", signature.replace("SSH SIGNATURE", "PGP SIGNATURE")),
        ("no end", signature.replace("-----END", "----END")),
        ("two of them", format!("{signature}{signature}")),
        ("a word before", format!("so: {signature}")),
        ("base64 for URLs", signature.replace('A', "-")),
        ("far too long", "x".repeat(4_000)),
        ("not ASCII", signature.replace('A', "А")),
    ] {
        vectors.push((format!("armour: {name}"), blob(&good, vec![text])));
    }
    // Each byte of the signed payload counts, at any position.
    for at in (0..good.len()).step_by(good.len() / 50) {
        let mut bytes = good.clone().into_bytes();
        bytes[at] ^= 1;
        let flipped = SignedJob { payload: bytes, signatures: vec![signature.clone()], consents: Vec::new() };
        vectors.push((format!("byte {at} of the payload flipped"), flipped.to_json().unwrap()));
    }
    // Each byte of the signature itself: key, purpose, hash, R and S.
    let raw = listener.alice.raw(good.as_bytes(), RIGHT);
    for at in (raw.len() - 64..raw.len()).step_by(2).chain([30, 40, 50, 60]) {
        let mut bytes = raw.clone();
        bytes[at] ^= 1;
        vectors.push((format!("byte {at} of the signature flipped"), blob(&good, vec![armoured(&bytes)])));
    }
    for (name, other) in [
        ("written with spaces", good.replace(",\"", ", \"")),
        ("written with a line end", format!("{good}\n")),
        ("written without its last byte", good[..good.len() - 1].to_owned()),
        (
            "written in another order",
            good.replacen(
                "\"verb\":\"destroy_guest\",\"args\":{}",
                "\"args\":{},\"verb\":\"destroy_guest\"",
                1,
            ),
        ),
        ("written with an escape", good.replacen("customer", "\\u0063ustomer", 1)),
    ] {
        vectors.push((format!("the same, {name}"), blob(&other, vec![signature.clone()])));
    }
    vectors.push((
        "a right one and a wrong one".to_owned(),
        blob(&good, vec![signature.clone(), listener.bob.sign(b"else")]),
    ));
    vectors.push((
        "a wrong one and a right one".to_owned(),
        blob(&good, vec![listener.bob.sign(b"else"), signature]),
    ));
    assert!(vectors.len() > 120, "{}", vectors.len());
    for (name, text) in vectors {
        let (id, _) = listener.fresh();
        let payload_key = name.contains("of the signature flipped");
        listener.pass(60);
        let outcome = listener.leave(id, &text).await;
        let Outcome::Away(why) = outcome else { panic!("{name}: {outcome:?}") };
        // A flipped key may be another valid key, one that no operator holds.
        let lawful = why.code() == Signature || payload_key && why.code() == KeyUnknown;
        assert!(lawful, "{name}: {why}");
        let (again, _) = listener.fresh();
        let code = why.code();
        listener.refuses_and_takes(&name, again, &text, code).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_that_may_not_and_operators_who_are_too_few() {
    let mut listener = StoreFixture::open().await;
    let hands: Vec<Hand> = (0..8).map(Hand::new).collect();
    let host = |verb: &str, args: &str| {
        format!("\"target\":{{\"kind\":\"host\"}},\"verb\":\"{verb}\",\"args\":{args}")
    };
    let guest =
        |verb: &str, args: &str| format!("\"target\":{},\"verb\":\"{verb}\",\"args\":{args}", target());
    let destroy = guest("destroy_guest", "{}");
    let document = "ab".repeat(32);
    let brake =
        host("release_brake", &format!("{{\"generation\":7,\"document\":\"{document}\",\"changes\":[]}}"));
    let back = guest("rollback", "{\"snapshot\":\"before\"}");
    let cases: [(&str, &str, &[usize], ErrorCode); 14] = [
        ("nobody's key", &destroy, &[7], KeyUnknown),
        ("nobody's key beside a good one", &destroy, &[1, 7], KeyUnknown),
        ("a key whose time is over", &destroy, &[3], KeyRevoked),
        ("a key for other things", &destroy, &[4], KeyRevoked),
        ("a good key and one whose time is over", &destroy, &[1, 3], KeyRevoked),
        ("somebody who may not sign this", &back, &[1], KeyRevoked),
        ("who may, and somebody who may not", &back, &[2, 1], KeyRevoked),
        ("one of two", &brake, &[1], SignaturesMissing),
        ("one of two, twice", &brake, &[1, 1], SignaturesMissing),
        ("one of two, with two keys", &brake, &[1, 6], SignaturesMissing),
        ("one of two, eight times", &brake, &[1, 6, 1, 6, 1, 6, 1, 6], SignaturesMissing),
        ("the other of two", &brake, &[2], SignaturesMissing),
        ("two, one of them a stranger", &brake, &[1, 2, 7], KeyUnknown),
        ("two, one of them of the past", &brake, &[1, 3], KeyRevoked),
    ];
    for (name, order, signers, code) in cases {
        let (id, payload) = listener.payload(order).await;
        let signers: Vec<&Hand> = signers.iter().map(|n| &hands[*n]).collect();
        listener.refuses_and_takes(name, id, &job(payload.as_bytes(), &signers), code).await;
    }
    let (id, payload) = listener.payload(&brake).await;
    let both = job(payload.as_bytes(), &[&listener.alice, &listener.bob]);
    assert!(matches!(listener.leave(id, &both).await, Outcome::Taken));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_no_one_was_named_no_one_may() {
    let mut listener = StoreFixture::open().await;
    let raw = rusqlite::Connection::open(listener.folder.path().join("agent.db")).unwrap();
    raw.execute("DELETE FROM roster", []).unwrap();
    let (id, payload) = listener.destroy().await;
    let blob = job(payload.as_bytes(), &[&listener.alice]);
    listener.refuses("no operators file", id, &blob, KeyUnknown).await;
    listener.store.lay_down(roster(1), listener.now).await.unwrap();
    assert!(matches!(listener.leave(id, &blob).await, Outcome::Taken), "the same job, once there is one");
}

#[expect(clippy::disallowed_methods, reason = "stock OpenSSH, as an operator has it")]
fn ssh_keygen() -> Command {
    Command::new("ssh-keygen")
}

fn stock_key(folder: &Path) -> String {
    let made = ssh_keygen()
        .args(["-q", "-t", "ed25519", "-N", "", "-C", "x", "-f"])
        .arg(folder.join("key"))
        .status();
    assert!(made.unwrap().success());
    std::fs::read_to_string(folder.join("key.pub")).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_stock_openssh_signs_is_taken() {
    let mut listener = StoreFixture::open().await;
    let folder = tempfile::tempdir().unwrap();
    let public = stock_key(folder.path());
    let operators = format!("{}erin {public}", roster(2).operators);
    listener.store.lay_down(RosterTexts { operators, ..roster(2) }, listener.now).await.unwrap();
    let (id, payload) = listener.destroy().await;
    let file = folder.path().join("payload");
    std::fs::write(&file, &payload).unwrap();
    let sign = |namespace: &str| {
        drop(std::fs::remove_file(folder.path().join("payload.sig")));
        let signed = ssh_keygen()
            .args(["-q", "-Y", "sign", "-n", namespace, "-f"])
            .arg(folder.path().join("key"))
            .arg(&file)
            .output()
            .unwrap();
        assert!(signed.status.success(), "{}", String::from_utf8_lossy(&signed.stderr));
        std::fs::read_to_string(folder.path().join("payload.sig")).unwrap()
    };
    listener.refuses("signed for files", id, &blob(&payload, vec![sign("file")]), Signature).await;
    let good = blob(&payload, vec![sign("holdfast-job")]);
    assert!(matches!(listener.leave(id, &good).await, Outcome::Taken));
}
