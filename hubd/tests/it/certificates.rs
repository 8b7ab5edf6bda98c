//! Client certificates that are refused, and the ones that are served.
//!
//! Part 3.4.8 of the catalogue: an attacker holds the hub's own CA and makes wrong certificates with it.

mod limbo;

use std::path::PathBuf;
use std::sync::Arc;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::enrol::{Enrolled, InviteRedemption, RenewRequest};
use holdfast_protocol::envelope::Envelope;
use holdfast_protocol::id::HostId;
use holdfast_protocol::secret::Secret;
use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, CustomExtension, DnType, ExtendedKeyUsagePurpose,
    GeneralSubtree, IsCa, Issuer, KeyPair, KeyUsagePurpose, NameConstraints, SanType, SerialNumber,
};
use reqwest::{Method, StatusCode};
use rustls::AlertDescription;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, pem::PemObject as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::csr::state;
use crate::world::{Host, World, csr};

/// A chain, its own first, and the key it is shown with.
struct ClientCertificate {
    chain: Vec<CertificateDer<'static>>,
    key: KeyPair,
}

/// What must come of showing it.
#[derive(Clone, Copy, Debug)]
enum Expect {
    /// The handshake ends with one of these alerts.
    Alert(&'static [AlertDescription]),
    /// The handshake is good, and every call of an agent is refused with this.
    Code(ErrorCode),
}

/// Who has the hub's own CA.
struct Hand {
    issuer: Issuer<'static, KeyPair>,
    ca: CertificateDer<'static>,
    host: HostId,
    folder: PathBuf,
}

impl Hand {
    fn new(world: &World, host: &Host) -> Self {
        let key = std::fs::read_to_string(world.folder.join("ca.key")).unwrap();
        let issuer = Issuer::from_ca_cert_pem(&world.ca_pem, KeyPair::from_pem(&key).unwrap()).unwrap();
        let ca = CertificateDer::from_pem_slice(world.ca_pem.as_bytes()).unwrap();
        Self { issuer, ca, host: host.enrolled.host_id, folder: world.folder.clone() }
    }

    /// What a host's certificate says, right in every part.
    fn right(&self) -> CertificateParams {
        named(&[&format!("urn:holdfast:host:{}:1", self.host)])
    }

    fn shown(&self, params: &CertificateParams) -> ClientCertificate {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        ClientCertificate { chain: vec![certificate.into()], key }
    }

    fn with(&self, change: impl FnOnce(&mut CertificateParams)) -> ClientCertificate {
        let mut params = self.right();
        change(&mut params);
        self.shown(&params)
    }

    /// A certificate by a CA that is below ours, or next to it.
    fn under(&self, below: Below, change: impl FnOnce(&mut CertificateParams)) -> ClientCertificate {
        let ca_key = KeyPair::generate().unwrap();
        let mut ca = CertificateParams::default();
        ca.distinguished_name.push(DnType::CommonName, "Holdfast hub CA");
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        change(&mut ca);
        let between: CertificateDer<'static> = match below {
            Below::Ours => ca.signed_by(&ca_key, &self.issuer).unwrap().into(),
            Below::NoCertificate => ca.self_signed(&ca_key).unwrap().into(),
        };
        let key = KeyPair::generate().unwrap();
        let leaf = self.right().signed_by(&key, &Issuer::new(ca, ca_key)).unwrap();
        ClientCertificate { chain: vec![leaf.into(), between], key }
    }
}

#[derive(Clone, Copy)]
enum Below {
    Ours,
    NoCertificate,
}

fn named(urns: &[&str]) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.subject_alt_names =
        urns.iter().map(|urn| SanType::URI((*urn).to_owned().try_into().unwrap())).collect();
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params
}

type Row = (&'static str, ClientCertificate, Expect);

const UNKNOWN_CA: Expect = Expect::Alert(&[AlertDescription::UnknownCA, AlertDescription::DecryptError]);
const BAD: Expect = Expect::Alert(&[
    AlertDescription::BadCertificate,
    AlertDescription::CertificateUnknown,
    AlertDescription::UnsupportedCertificate,
    AlertDescription::DecryptError,
    AlertDescription::UnknownCA,
]);

/// The verifier takes it; who a chain names is read from one alone.
const BETWEEN: Expect = Expect::Code(ErrorCode::Certificate);

/// Refused while hands are shaken, but for those with a CA in between.
fn by_the_handshake(hand: &Hand) -> Vec<Row> {
    let expired = Expect::Alert(&[AlertDescription::CertificateExpired]);
    let of = |year, month| rcgen::date_time_ymd(year, month, 1);
    let mut rows: Vec<Row> = vec![
        ("expired", hand.with(|p| (p.not_before, p.not_after) = (of(2020, 1), of(2020, 2))), expired),
        ("not yet", hand.with(|p| (p.not_before, p.not_after) = (of(2100, 1), of(2100, 2))), expired),
        (
            "ended before it began",
            hand.with(|p| (p.not_before, p.not_after) = (of(2100, 1), of(2020, 1))),
            expired,
        ),
        ("another CA of the same name", hand.under(Below::NoCertificate, |_| {}), UNKNOWN_CA),
        ("a CA under ours, which may have none", hand.under(Below::Ours, |_| {}), BETWEEN),
        ("a leaf as a CA", hand.under(Below::Ours, |p| p.is_ca = IsCa::ExplicitNoCa), BAD),
        ("a leaf that says nothing, as a CA", hand.under(Below::Ours, |p| p.is_ca = IsCa::NoCa), BAD),
        (
            "a CA that may sign nothing",
            hand.under(Below::Ours, |p| p.key_usages = vec![KeyUsagePurpose::CrlSign]),
            BETWEEN,
        ),
        ("a server's", hand.with(|p| p.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth]), BAD),
        (
            "a mailbox's",
            hand.with(|p| p.extended_key_usages = vec![ExtendedKeyUsagePurpose::EmailProtection]),
            BAD,
        ),
        ("a CA's own", hand.with(|p| p.is_ca = IsCa::Ca(BasicConstraints::Unconstrained)), BAD),
    ];
    let critical = |p: &mut CertificateParams| {
        let mut unknown = CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 99_999, 1], vec![5, 0]);
        unknown.set_criticality(true);
        p.custom_extensions.push(unknown);
    };
    rows.push(("an unknown critical extension", hand.with(critical), BAD));
    let narrow = |p: &mut CertificateParams| {
        let elsewhere = vec![GeneralSubtree::IpAddress(CidrSubnet::V4([192, 0, 2, 0], [255, 255, 255, 0]))];
        p.name_constraints =
            Some(NameConstraints { permitted_subtrees: elsewhere, excluded_subtrees: Vec::new() });
    };
    rows.push(("a CA under ours for other names", hand.under(Below::Ours, narrow), BETWEEN));
    let mut missing = hand.under(Below::Ours, |_| {});
    missing.chain.truncate(1);
    rows.push(("a CA in between, not shown", missing, BAD));
    let mut spoilt = hand.shown(&hand.right());
    let mut bytes = spoilt.chain[0].to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    spoilt.chain[0] = bytes.into();
    rows.push(("a signature with a flipped bit", spoilt, BAD));
    let mut tail = hand.shown(&hand.right());
    tail.chain[0] = [tail.chain[0].as_ref(), &[0]].concat().into();
    rows.push((
        "bytes behind its end",
        tail,
        Expect::Alert(&[
            AlertDescription::BadCertificate,
            AlertDescription::DecodeError,
            AlertDescription::UnsupportedCertificate,
            AlertDescription::CertificateUnknown,
        ]),
    ));
    let key = KeyPair::generate().unwrap();
    let own = hand.right().self_signed(&key).unwrap();
    rows.push(("its own", ClientCertificate { chain: vec![own.into()], key }, BAD));
    let right = hand.shown(&hand.right());
    let key = KeyPair::generate().unwrap();
    rows.push((
        "another's, without its key",
        ClientCertificate { chain: right.chain, key },
        Expect::Alert(&[AlertDescription::DecryptError, AlertDescription::BadCertificate]),
    ));
    let key = KeyPair::generate().unwrap();
    rows.push(("the CA's own certificate", ClientCertificate { chain: vec![hand.ca.clone()], key }, BAD));
    rows
}

/// Refused by what they say.
fn by_what_they_say(hand: &Hand) -> Vec<Row> {
    let nobody = Expect::Code(ErrorCode::Certificate);
    let (host, other) = (hand.host, HostId::new(uuid::Uuid::from_u128(9)));
    let says = |names: &[&str]| hand.shown(&named(names));
    let urn = |host: HostId, generation: &str| format!("urn:holdfast:host:{host}:{generation}");
    let capital = urn(host, "1").replace(&host.to_string(), &host.to_string().to_uppercase());
    vec![
        ("a host nobody enrolled", says(&[&urn(other, "1")]), nobody),
        ("a generation further ahead than any backup is old", says(&[&urn(host, "92")]), nobody),
        ("the greatest generation", says(&[&urn(host, "4294967295")]), nobody),
        ("a generation beyond all", says(&[&urn(host, "4294967296")]), nobody),
        ("a generation below nothing", says(&[&urn(host, "-1")]), nobody),
        ("a generation with a sign", says(&[&urn(host, "+1")]), nobody),
        ("a generation with a zero before it", says(&[&urn(host, "01")]), nobody),
        ("no generation", says(&[&format!("urn:holdfast:host:{host}")]), nobody),
        ("a guest", says(&[&format!("urn:holdfast:guest:{host}:1")]), nobody),
        ("a name in capitals", says(&[&capital]), nobody),
        ("two hosts", says(&[&urn(host, "1"), &urn(other, "1")]), nobody),
        ("the same host twice", says(&[&urn(host, "1"), &urn(host, "1")]), nobody),
        ("nobody", says(&[]), nobody),
        (
            "a name of another kind",
            hand.with(|p| {
                p.subject_alt_names = vec![SanType::DnsName("box7".to_owned().try_into().unwrap())]
            }),
            nobody,
        ),
        (
            "the host in its subject alone",
            hand.with(|p| {
                p.subject_alt_names = Vec::new();
                p.distinguished_name.push(DnType::CommonName, format!("urn:holdfast:host:{host}:1"));
            }),
            nobody,
        ),
    ]
}

/// No check depends on an odd serial number or a long life: only our CA makes certificates, and their worth is read
/// from the records. So these are the right host's, and served.
fn odd_and_right(hand: &Hand) -> Vec<(&'static str, ClientCertificate)> {
    vec![
        ("as it should be", hand.shown(&hand.right())),
        ("serial number zero", hand.with(|p| p.serial_number = Some(SerialNumber::from_slice(&[0])))),
        ("a life of forty years", hand.with(|p| p.not_after = rcgen::date_time_ymd(2066, 1, 1))),
    ]
}

/// One request over one connection: the answer's body, or the alert that ended it.
async fn ask(world: &World, shown: &ClientCertificate, request: &str) -> Result<Vec<u8>, rustls::Error> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(world.ca_pem.as_bytes()).unwrap()).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(shown.key.serialize_der()));
    let signing = net::tls::provider().key_provider.load_private_key(key).unwrap();
    // Not `with_client_auth_cert`, which would hold key and certificate to each other.
    let own = rustls::sign::CertifiedKey::new(shown.chain.clone(), signing);
    let config = rustls::ClientConfig::builder_with_provider(net::tls::provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_client_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(own)));
    let address = world.url.strip_prefix("https://").unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let told = async {
        let mut stream = connector.connect(ServerName::try_from("127.0.0.1").unwrap(), stream).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        Ok::<_, std::io::Error>(answer)
    };
    told.await.map_err(|error: std::io::Error| {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        inner.cloned().unwrap_or_else(|| panic!("not a word of TLS: {error:?}"))
    })
}

/// A call that only a host may make, with another host's id wherever a handler might look for one.
fn call(path: &str, other: HostId, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: hub\r\nconnection: close\r\nx-host-id: {other}\r\nx-client-cert: {other}\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn code(answer: &[u8]) -> ErrorCode {
    let text = String::from_utf8_lossy(answer);
    let (_, body) = text.split_once("\r\n\r\n").unwrap();
    let envelope: Envelope<serde_json::Value> = serde_json::from_str(body).unwrap();
    envelope.error.unwrap().code
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_hosts_certificate_changes_nothing() {
    let world = World::start().await;
    let (host, other) = (world.enrol("box7").await, world.enrol("box8").await);
    host.check_in(&host.full(1, 0), "0s").await.data(StatusCode::OK);
    let hand = Hand::new(&world, &host);
    let mut rows: Vec<Row> = by_the_handshake(&hand).into_iter().chain(by_what_they_say(&hand)).collect();
    rows.extend(limbo::rows(&hand));
    // Right in every part, so that only the caller is wrong.
    let report = serde_json::to_string(&host.full(9, 0)).unwrap();
    let renewal = RenewRequest { csr_pem: csr(&KeyPair::generate().unwrap()) };
    let calls =
        [("/v1/agent/checkin?wait=0s", report), ("/v1/renew", serde_json::to_string(&renewal).unwrap())];
    let (mut count, mut wrong) = (0, Vec::new());
    let before = state(&world);
    for (name, shown, expect) in rows {
        for (path, body) in &calls {
            let told = ask(&world, &shown, &call(path, other.enrolled.host_id, body)).await;
            let right = match (expect, &told) {
                (Expect::Alert(alerts), Err(rustls::Error::AlertReceived(alert))) => alerts.contains(alert),
                (Expect::Code(wanted), Ok(answer)) => code(answer) == wanted,
                (Expect::Alert(_), _) | (Expect::Code(_), Err(_)) => false,
            };
            if !right {
                let told = told.map(|answer| String::from_utf8_lossy(&answer).into_owned());
                wrong.push(format!("{name}: {told:?}, not {expect:?}"));
            }
            assert!(state(&world) == before, "{name} changed something");
            count += 1;
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    for (name, shown) in odd_and_right(&hand).into_iter().chain(limbo::odd_and_right(&hand)) {
        // Let in as far as its body, which is no report.
        let answer =
            ask(&world, &shown, &call("/v1/agent/checkin", other.enrolled.host_id, "{}")).await.unwrap();
        assert_eq!(code(&answer), ErrorCode::Missing, "{name}");
        assert!(state(&world) == before, "{name} changed something");
        count += 1;
    }
    println!("{count} vectors of certificates");
    host.check_in(&host.full(2, 0), "0s").await.data(StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_hosts_id_is_never_believed() {
    let world = World::start().await;
    let (mine, other) = (world.enrol("box7").await, world.enrol("box8").await);
    other.check_in(&other.full(1, 0), "0s").await.data(StatusCode::OK);
    let before = state(&world);
    let id = other.enrolled.host_id;
    // In the body there is no place for one.
    let mut report = serde_json::to_value(mine.full(1, 0)).unwrap();
    for field in ["host", "host_id", "id"] {
        report[field] = id.to_string().into();
        let body = serde_json::to_vec(&report).unwrap();
        let told = mine
            .client
            .send_bytes::<serde_json::Value>(Method::POST, "/v1/agent/checkin?wait=0s", body)
            .await;
        assert_eq!(told.code(), ErrorCode::UnknownField, "{field}");
        report.as_object_mut().unwrap().remove(field);
    }
    // In the path an agent's certificate opens nothing, its own things neither.
    for (method, path) in [
        (Method::GET, format!("/v1/hosts/{id}")),
        (Method::GET, format!("/v1/hosts/{id}/desired")),
        (Method::GET, format!("/v1/hosts/{id}/jobs")),
        (Method::GET, format!("/v1/hosts/{}", mine.enrolled.host_id)),
        (Method::POST, format!("/v1/hosts/{id}/revoke")),
        (Method::GET, "/v1/hosts".to_owned()),
        (Method::GET, "/v1/events".to_owned()),
    ] {
        let told = mine.client.send::<serde_json::Value>(method, &path, &()).await;
        assert_eq!(told.code(), ErrorCode::Unauthenticated, "{path}");
    }
    let (path, report) = (format!("/v1/agent/checkin?wait=0s&host={id}"), mine.full(1, 0));
    let told = mine.client.send::<serde_json::Value>(Method::POST, &path, &report).await;
    assert_eq!(told.code(), ErrorCode::Range);
    assert!(state(&world) == before);
    mine.check_in(&mine.full(1, 0), "0s").await.data(StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_one_hosts_alone() {
    let world = World::start().await;
    let (first, second) = (world.enrol("box7").await, world.enrol("box8").await);
    let invite = world.invite("box9").await;
    let before = state(&world);
    let enrol = |pem: String| {
        let secret = Secret::new(invite.secret.expose().to_owned());
        let client = world.anyone();
        async move {
            client
                .send::<Enrolled>(Method::POST, "/v1/enroll", &InviteRedemption { secret, csr_pem: pem })
                .await
        }
    };
    assert_eq!(enrol(csr(&first.key)).await.code(), ErrorCode::Csr);
    let renewal = RenewRequest { csr_pem: csr(&first.key) };
    let told = second.client.send::<Enrolled>(Method::POST, "/v1/renew", &renewal).await;
    assert_eq!(told.code(), ErrorCode::Csr);
    assert!(state(&world) == before, "a refusal changed something");
    // Its own key a host may keep.
    let renewal = RenewRequest { csr_pem: csr(&second.key) };
    let kept = second.client.send::<Enrolled>(Method::POST, "/v1/renew", &renewal).await;
    assert_eq!(kept.data(StatusCode::OK).certificate_generation, 2);
    enrol(csr(&KeyPair::generate().unwrap())).await.data(StatusCode::OK);
}
