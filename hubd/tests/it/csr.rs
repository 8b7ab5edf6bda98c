//! Malformed certificate requests, by error code.
//! Part 3.4.8 of the catalogue.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::enrol::{CSR_BYTES_MAX, Enrolled, Invite, InviteRedemption};
use holdfast_protocol::secret::Secret;
use rcgen::{Attribute, CertificateParams, CustomExtension, DnType, KeyPair, PKCS_ED25519};
use reqwest::{Method, StatusCode};

use crate::rows::{Row, rows};
use crate::world::{World, csr};

fn der(pem: &str) -> Vec<u8> {
    STANDARD.decode(pem.lines().filter(|line| !line.starts_with('-')).collect::<String>()).unwrap()
}

fn armoured(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> =
        text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

fn vectors() -> Vec<(String, String)> {
    const LABEL: &str = "CERTIFICATE REQUEST";
    let (key, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let (good, second) = (csr(&key), csr(&other));
    let bytes = der(&good);
    let mut all = vec![
        ("empty".to_owned(), String::new()),
        ("words".to_owned(), "hello".to_owned()),
        ("too long".to_owned(), format!("{good}{}", " ".repeat(CSR_BYTES_MAX))),
        ("one long word".to_owned(), "A".repeat(CSR_BYTES_MAX + 1)),
        ("two blocks".to_owned(), format!("{good}{second}")),
        ("the same block twice".to_owned(), format!("{good}{good}")),
        ("words before it".to_owned(), format!("so: {good}")),
        ("words behind it".to_owned(), format!("{good}so")),
        ("two ends".to_owned(), format!("{good}E=\n-----END {LABEL}-----\n")),
        ("a key behind it".to_owned(), format!("{good}{}", key.serialize_pem())),
        ("a key".to_owned(), key.serialize_pem()),
        ("a certificate".to_owned(), CertificateParams::default().self_signed(&key).unwrap().pem()),
        ("a certificate's label".to_owned(), armoured("CERTIFICATE", &bytes)),
        ("a key's label".to_owned(), armoured("PRIVATE KEY", &bytes)),
        ("a label in lower case".to_owned(), good.to_lowercase()),
        ("no armour".to_owned(), STANDARD.encode(&bytes)),
        ("no end".to_owned(), good.replace("-----END", "----END")),
        ("bytes behind its end".to_owned(), armoured(LABEL, &[&bytes[..], b"\0"].concat())),
        ("itself behind its end".to_owned(), armoured(LABEL, &[&bytes[..], &bytes[..]].concat())),
        ("a length without end".to_owned(), armoured(LABEL, &[&[0x30, 0x80], &bytes[4..], &[0, 0]].concat())),
        (
            "a long length for a short one".to_owned(),
            armoured(LABEL, &[&[0x30, 0x83, 0], &bytes[2..]].concat()),
        ),
        ("nothing in its block".to_owned(), armoured(LABEL, &[])),
        ("an empty sequence".to_owned(), armoured(LABEL, &[0x30, 0])),
        ("zeroes".to_owned(), armoured(LABEL, &[0; 200])),
    ];
    // Made by stock openssl: whole and signed, and of a kind that is not taken, or by a hash that is none any more.
    let stock = [
        ("RSA of 1024 bits", include_str!("../csr/rsa-1024.csr.pem")),
        ("RSA of 2048 bits", include_str!("../csr/rsa-2048.csr.pem")),
        ("RSA by SHA-1", include_str!("../csr/rsa-2048-sha1.csr.pem")),
        ("RSA by MD5", include_str!("../csr/rsa-2048-md5.csr.pem")),
        ("P-192", include_str!("../csr/p-192.csr.pem")),
        ("P-224", include_str!("../csr/p-224.csr.pem")),
        ("P-521", include_str!("../csr/p-521.csr.pem")),
        ("secp256k1", include_str!("../csr/k-256.csr.pem")),
        ("P-256 by SHA-1", include_str!("../csr/p-256-sha1.csr.pem")),
        ("P-256 with its curve written out", include_str!("../csr/p-256-explicit.csr.pem")),
        ("Ed448", include_str!("../csr/ed448.csr.pem")),
    ];
    all.extend(stock.map(|(name, pem)| (name.to_owned(), pem.to_owned())));
    all.extend(asked_twice(&key).map(|(name, pem)| (name.to_owned(), pem)));
    let mut long = CertificateParams::default();
    long.distinguished_name.push(DnType::CommonName, "x".repeat(32 * 1024));
    all.push(("a subject of 32 KiB".to_owned(), long.serialize_request(&key).unwrap().pem().unwrap()));
    // Its body signed by another key: the applicant holds neither.
    let tail = bytes.len() - 64;
    let mixed = [&bytes[..tail], &der(&second)[der(&second).len() - 64..]].concat();
    all.push(("another's signature".to_owned(), armoured(LABEL, &mixed)));
    for at in (0..bytes.len()).step_by(2) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x10;
        all.push((format!("byte {at} flipped"), armoured(LABEL, &flipped)));
    }
    for cut in (1..16).map(|part| part * bytes.len() / 16) {
        all.push((format!("cut at {cut}"), armoured(LABEL, &bytes[..cut])));
    }
    all
}

/// Whole and signed by their own key, with something in them twice.
fn asked_twice(key: &KeyPair) -> [(&'static str, String); 4] {
    const NAMES: [u64; 4] = [2, 5, 29, 17];
    const UNKNOWN: [u64; 8] = [1, 3, 6, 1, 4, 1, 99_999, 1];
    let asks = || CertificateParams::new(vec!["box7.example".to_owned()]).unwrap();
    let with = |oids: &[&[u64]]| {
        let mut asks = asks();
        asks.custom_extensions =
            oids.iter().map(|oid| CustomExtension::from_oid_content(oid, vec![0x30, 0])).collect();
        asks.serialize_request(key).unwrap().pem().unwrap()
    };
    let attributes = |oid: &'static [u64], values: &[u8]| {
        let one = || Attribute { oid, values: values.to_vec() };
        asks().serialize_request_with_attributes(key, vec![one(), one()]).unwrap().pem().unwrap()
    };
    [
        ("its names twice", with(&[&NAMES])),
        ("an unknown extension twice", with(&[&UNKNOWN, &UNKNOWN])),
        // A set of an empty list of extensions, in addition to the list that is there already.
        ("extensions in two lists", attributes(&[1, 2, 840, 113_549, 1, 9, 14], &[0x31, 2, 0x30, 0])),
        ("a challenge twice", attributes(&[1, 2, 840, 113_549, 1, 9, 7], &[0x31, 3, 0x13, 1, 0x61])),
    ]
}

/// Every row of every table.
pub fn state(world: &World) -> Vec<Row> {
    let all = rows(&world.folder.join("hub.db"));
    // The hub writes by itself that it hears hosts.
    all.into_iter().filter(|(table, _)| table != "hub_presence").collect()
}

async fn ask(world: &World, invite: &Invite, csr_pem: String) -> crate::world::Answered<Enrolled> {
    let secret = Secret::new(invite.secret.expose().to_owned());
    world.anyone().send(Method::POST, "/v1/enroll", &InviteRedemption { secret, csr_pem }).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_csr_changes_nothing() {
    let world = World::start().await;
    let vectors = vectors();
    assert!(vectors.len() > 100, "{}", vectors.len());
    let invite = world.invite("box0").await;
    let before = state(&world);
    for (name, pem) in vectors {
        let answer = ask(&world, &invite, pem).await;
        assert!(answer.envelope.data.is_none(), "{name} was taken");
        assert_eq!(answer.code(), ErrorCode::Csr, "{name}");
        assert!(state(&world) == before, "{name} changed something");
    }
    ask(&world, &invite, csr(&KeyPair::generate().unwrap())).await.data(StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_key_of_a_csr_is_used() {
    let world = World::start().await;
    let invite = world.invite("box0").await;
    let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
    let mut asks = CertificateParams::new(vec!["hub.example".to_owned(), "*.example".to_owned()]).unwrap();
    asks.distinguished_name.push(rcgen::DnType::CommonName, "admin\0.example");
    asks.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
    let pem = asks.serialize_request(&key).unwrap().pem().unwrap();
    let given = ask(&world, &invite, pem).await.data(StatusCode::OK);
    let bytes = der(&given.certificate_pem);
    for text in ["hub.example", "*.example", "admin"] {
        assert!(
            !bytes.windows(text.len()).any(|part| part == text.as_bytes()),
            "{text} is in the certificate"
        );
    }
    // The OID of server authentication, 1.3.6.1.5.5.7.3.1, is not in it, that of client authentication is.
    let has = |last: u8| bytes.windows(8).any(|part| part == [0x2b, 6, 1, 5, 5, 7, 3, last]);
    assert!(!has(1) && has(2));
}
