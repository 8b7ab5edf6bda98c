//! Odd certificate chains of the kinds that x509-limbo collects.
//! that are none any more, thickets of CAs. The stock `openssl` makes what the library here would not.

use std::process::{Command, Stdio};

use holdfast_protocol::code::ErrorCode;
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SerialNumber,
};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};

use super::{BAD, BETWEEN, ClientCertificate, Expect, Hand, Row, UNKNOWN_CA};

const NAMES: &[u64] = &[2, 5, 29, 17];
const KEY_USAGE: &[u64] = &[2, 5, 29, 15];
const USAGES: &[u64] = &[2, 5, 29, 37];
const CA_FLAG: &[u64] = &[2, 5, 29, 19];
const UNKNOWN: &[u64] = &[1, 3, 6, 1, 4, 1, 99_999, 1];

/// What a CA says of itself, and its key.
fn ca(name: &str) -> (CertificateParams, KeyPair) {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    (params, KeyPair::generate().unwrap())
}

/// A leaf that is right in every part, by an issuer.
fn leaf(hand: &Hand, issuer: &Issuer<'_, KeyPair>) -> (CertificateDer<'static>, KeyPair) {
    let key = KeyPair::generate().unwrap();
    (hand.right().signed_by(&key, issuer).unwrap().into(), key)
}

/// All that must be refused.
pub(super) fn rows(hand: &Hand) -> Vec<Row> {
    let mut rows = cross_signed(hand);
    rows.extend(thickets(hand));
    rows.extend(said_twice(hand));
    rows.extend(said_wrongly(hand));
    rows.push(("by SHA-1", by_openssl(hand, "-sha1", SAYS), BAD));
    rows.push(("by SHA-224", by_openssl(hand, "-sha224", SAYS), BAD));
    rows
}

/// Certificates that are unusual, and right in all that counts.
pub(super) fn odd_and_right(hand: &Hand) -> Vec<(&'static str, ClientCertificate)> {
    let long = SerialNumber::from_slice(&[0x7f; 20]);
    vec![
        // The counterpart of the two above: by the same hand with a hash that is taken.
        ("made by stock openssl", by_openssl(hand, "-sha256", SAYS)),
        ("by SHA-384", by_openssl(hand, "-sha384", SAYS)),
        ("a serial number of twenty bytes", hand.with(|p| p.serial_number = Some(long))),
    ]
}

/// A root that was replaced, in each way in which the old one and the new one may have signed each other. Our hub has
/// one root, and it signs a host's certificate directly.
fn cross_signed(hand: &Hand) -> Vec<Row> {
    let (old_says, old_key) = ca("Holdfast hub CA of last year");
    let old_itself: CertificateDer<'static> = old_says.self_signed(&old_key).unwrap().into();
    let old_by_ours: CertificateDer<'static> = old_says.signed_by(&old_key, &hand.issuer).unwrap().into();
    let old = Issuer::new(old_says, old_key);
    let (ours_says, _) = ca("Holdfast hub CA");
    let ours_by_old: CertificateDer<'static> = ours_says.signed_by(hand.issuer.key(), &old).unwrap().into();
    let by = |issuer: &Issuer<'_, KeyPair>, more: &[&CertificateDer<'static>]| {
        let (leaf, key) = leaf(hand, issuer);
        let chain = std::iter::once(leaf).chain(more.iter().map(|one| (*one).clone())).collect();
        ClientCertificate { chain, key }
    };
    vec![
        ("by an old root, alone", by(&old, &[]), UNKNOWN_CA),
        ("by an old root that shows itself", by(&old, &[&old_itself]), UNKNOWN_CA),
        ("by an old root that ours has signed", by(&old, &[&old_by_ours]), BETWEEN),
        ("by an old root, with both of its certificates", by(&old, &[&old_itself, &old_by_ours]), BETWEEN),
        ("by an old root, with ours signed by it", by(&old, &[&ours_by_old]), UNKNOWN_CA),
        ("by ours, with ours signed by an old root", by(&hand.issuer, &[&ours_by_old]), BETWEEN),
        (
            "by ours, with roots that signed each other",
            by(&hand.issuer, &[&ours_by_old, &old_by_ours]),
            BETWEEN,
        ),
    ]
}

/// Chains that are long, turned round, or a maze.
fn thickets(hand: &Hand) -> Vec<Row> {
    let right = || leaf(hand, &hand.issuer);
    let with = |more: &[CertificateDer<'static>]| {
        let (leaf, key) = right();
        ClientCertificate { chain: [&[leaf], more].concat(), key }
    };
    let mut turned = with(std::slice::from_ref(&hand.ca));
    turned.chain.reverse();
    let (same, key) = right();
    let twice = ClientCertificate { chain: vec![same.clone(), same], key };
    // Ten CAs in a chain, the first of them below ours: longer than any verifier accepts.
    let mut between: Vec<CertificateDer<'static>> = Vec::new();
    let (params, key) = ca("CA 0");
    between.push(params.signed_by(&key, &hand.issuer).unwrap().into());
    let mut last = Issuer::new(params, key);
    for number in 1..10 {
        let (params, key) = ca(&format!("CA {number}"));
        between.push(params.signed_by(&key, &last).unwrap().into());
        last = Issuer::new(params, key);
    }
    between.reverse();
    let (below, key) = leaf(hand, &last);
    let deep = ClientCertificate { chain: [&[below], &between[..]].concat(), key };
    // Each of many CAs of one name is signed by each other's key, and none by ours: a search without bound would go
    // through all orders of them.
    let keys: Vec<KeyPair> = (0..10).map(|_| KeyPair::generate().unwrap()).collect();
    let (says, _) = ca("Holdfast hub CA of nobody");
    let mut maze: Vec<CertificateDer<'static>> = Vec::new();
    for by in 0..keys.len() {
        let pem = keys[by].serialize_pem();
        let issuer = Issuer::new(says.clone(), KeyPair::from_pem(&pem).unwrap());
        maze.extend(keys.iter().map(|key| says.signed_by(key, &issuer).unwrap().into()));
    }
    let (lost, key) = leaf(hand, &Issuer::new(says, KeyPair::from_pem(&keys[0].serialize_pem()).unwrap()));
    let maze = ClientCertificate { chain: [&[lost], &maze[..]].concat(), key };
    vec![
        ("with its CA behind it", with(std::slice::from_ref(&hand.ca)), BETWEEN),
        ("its CA first", turned, BAD),
        ("the same one twice", twice, BETWEEN),
        ("ten CAs in between", deep, BAD),
        ("a maze of CAs", maze, BAD),
        ("no certificate in its place", with(&[Vec::new().into()]), BETWEEN),
    ]
}

/// An extension that occurs twice: readers disagree on which one counts.
fn said_twice(hand: &Hand) -> Vec<Row> {
    let more = |oid: &[u64], content: &[u8]| {
        hand.with(|p| p.custom_extensions.push(CustomExtension::from_oid_content(oid, content.to_vec())))
    };
    // One name, of a host: `[6] "urn:…"` in a list.
    let urn = format!("urn:holdfast:host:{}:1", hand.host);
    let name = [&[0x86, u8::try_from(urn.len()).unwrap()], urn.as_bytes()].concat();
    let names = [&[0x30, u8::try_from(name.len()).unwrap()], &name[..]].concat();
    // A list of one: client authentication.
    let client = [0x30, 10, 6, 8, 0x2b, 6, 1, 5, 5, 7, 3, 2];
    vec![
        ("its names twice", more(NAMES, &names), BAD),
        ("its usages twice", more(USAGES, &client), BAD),
        ("its key's usages twice", more(KEY_USAGE, &[3, 2, 7, 0x80]), BAD),
        ("that it is no CA, twice", more(CA_FLAG, &[0x30, 0]), BAD),
    ]
}

/// Parts of the wrong form, or of the right form and without meaning here.
fn said_wrongly(hand: &Hand) -> Vec<Row> {
    let nobody = Expect::Code(ErrorCode::Certificate);
    let only = |oid: &[u64], content: &[u8]| {
        hand.with(|p| {
            match oid {
                NAMES => p.subject_alt_names.clear(),
                _ => p.extended_key_usages.clear(),
            }
            p.custom_extensions.push(CustomExtension::from_oid_content(oid, content.to_vec()));
        })
    };
    let named = |name: &[u8]| {
        let name = [&[0x86, u8::try_from(name.len()).unwrap()], name].concat();
        only(NAMES, &[&[0x30, u8::try_from(name.len()).unwrap()], &name[..]].concat())
    };
    let urn = format!("urn:holdfast:host:{}:1", hand.host);
    let mut mixed = hand.shown(&hand.right());
    let mut bytes = mixed.chain[0].to_vec();
    // The outer algorithm is ECDSA with SHA-384, while the signed part says SHA-256.
    let sha256 = [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
    let at = bytes.windows(sha256.len()).rposition(|part| part == sha256).unwrap();
    bytes[at + 7] = 3;
    mixed.chain[0] = bytes.into();
    vec![
        ("any usage at all", hand.with(|p| p.extended_key_usages = vec![ExtendedKeyUsagePurpose::Any]), BAD),
        ("an empty list of usages", only(USAGES, &[0x30, 0]), BAD),
        ("usages that are none", only(USAGES, &[5, 0]), BAD),
        ("an empty list of names", only(NAMES, &[0x30, 0]), nobody),
        ("names that are none", only(NAMES, &[5, 0]), BAD),
        ("names without an end", only(NAMES, &[0x30, 0x7f]), BAD),
        ("a name with a zero behind it", named(format!("{urn}\0").as_bytes()), nobody),
        ("a name with a zero before it", named(format!("\0{urn}").as_bytes()), nobody),
        ("a name with a newline", named(format!("{urn}\n").as_bytes()), nobody),
        ("a name of no ASCII", named(urn.replace('h', "\u{4bb}").as_bytes()), nobody),
        ("a name in bytes that are no text", named(&[urn.as_bytes(), &[0xff]].concat()), nobody),
        (
            "an unknown extension, critical, twice",
            hand.with(|p| {
                for _ in 0..2 {
                    let mut unknown = CustomExtension::from_oid_content(UNKNOWN, vec![5, 0]);
                    unknown.set_criticality(true);
                    p.custom_extensions.push(unknown);
                }
            }),
            BAD,
        ),
        ("of two minds which hash it is by", mixed, BAD),
        ("of version 1", by_openssl(hand, "-sha256", ""), BAD),
    ]
}

/// What a host's certificate says, for `openssl`; the host's name is put in.
const SAYS: &str = "basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\n\
    extendedKeyUsage=clientAuth\nsubjectAltName=URI:HOST\n";

/// Signed with the hub's own key by the stock tool. It is in Debian's openssl.
fn by_openssl(hand: &Hand, hash: &str, says: &str) -> ClientCertificate {
    let folder = tempfile::tempdir().unwrap();
    let key = KeyPair::generate().unwrap();
    let put = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    put("leaf.csr", &crate::world::csr(&key));
    put("says", &says.replace("HOST", &format!("urn:holdfast:host:{}:1", hand.host)));
    #[expect(clippy::disallowed_methods, reason = "the maker of what no library here would make")]
    let mut openssl = Command::new("openssl");
    openssl.args([
        "x509",
        "-req",
        "-in",
        "leaf.csr",
        "-set_serial",
        "7",
        "-days",
        "30",
        "-out",
        "leaf.pem",
        hash,
    ]);
    openssl.arg("-CA").arg(hand.folder.join("ca.pem")).arg("-CAkey").arg(hand.folder.join("ca.key"));
    openssl.args(["-extfile", "says"]).current_dir(folder.path());
    let made = openssl.stdin(Stdio::null()).output().expect("openssl: install Debian's package of that name");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let pem = std::fs::read_to_string(folder.path().join("leaf.pem")).unwrap();
    ClientCertificate { chain: vec![CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()], key }
}
