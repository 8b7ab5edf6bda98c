//! Tests of handshakes in memory: accepted and refused servers.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

use std::io;
use std::sync::Arc;

use holdfast_protocol::pin::{Pin, PinKind, PinSet};
use holdfast_protocol::secret::Secret;
use net::tls::{Identity, Refusal, Trust, client, client_with_identity, pin_of, provider, refusal};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, CustomExtension, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, SanType, date_time_ymd,
};
use rustls::client::Resumption;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ServerConfig, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, Error, HandshakeKind, RootCertStore, ServerConnection,
};

type Ca = CertifiedIssuer<'static, KeyPair>;

fn ca() -> Ca {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

struct Leaf {
    der: CertificateDer<'static>,
    pem: String,
    key: KeyPair,
}

fn leaf(ca: &Ca, change: impl FnOnce(&mut CertificateParams)) -> Leaf {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["hub.example".to_owned()]).unwrap();
    change(&mut params);
    let certificate = params.signed_by(&key, ca).unwrap();
    Leaf { der: certificate.der().clone(), pem: certificate.pem(), key }
}

fn server(leaf: &Leaf, shown: &[&Ca]) -> ServerConfig {
    let mut chain = vec![leaf.der.clone()];
    chain.extend(shown.iter().map(|ca| ca.der().clone()));
    let signing = provider().key_provider.load_private_key(private(&leaf.key)).unwrap();
    ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        // Not `with_single_cert`, which would check the certificate first.
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(CertifiedKey::new(chain, signing))))
}

fn private(key: &KeyPair) -> PrivateKeyDer<'static> {
    PrivateKeyDer::try_from(key.serialize_der()).unwrap()
}

/// Carries bytes both ways until both are done; at most ten flights.
fn shake(config: ClientConfig, server: ServerConfig, name: &'static str) -> Result<ServerConnection, Error> {
    let mut client = ClientConnection::new(Arc::new(config), ServerName::try_from(name).unwrap()).unwrap();
    let mut server = ServerConnection::new(Arc::new(server)).unwrap();
    for _ in 0..10 {
        carry(|to| client.write_tls(to), |from| server.read_tls(from));
        server.process_new_packets()?;
        carry(|to| server.write_tls(to), |from| client.read_tls(from));
        client.process_new_packets()?;
        if !client.is_handshaking() && !server.is_handshaking() {
            return Ok(server);
        }
    }
    panic!("the handshake did not end");
}

fn carry(
    mut write: impl FnMut(&mut dyn io::Write) -> io::Result<usize>,
    mut read: impl FnMut(&mut dyn io::Read) -> io::Result<usize>,
) {
    let mut bytes = Vec::new();
    while write(&mut bytes).unwrap() > 0 {}
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        read(&mut rest).unwrap();
    }
}

#[test]
fn a_pinned_leaf_or_key_is_accepted_whatever_its_name() {
    let (ca, other) = (ca(), ca());
    let shown = leaf(&ca, |_| ());
    for kind in [PinKind::Leaf, PinKind::Spki] {
        let pins = PinSet::try_from(vec![
            pin_of(kind, &leaf(&other, |_| ()).der).unwrap(),
            pin_of(kind, &shown.der).unwrap(),
        ])
        .unwrap();
        let config = client(&Trust::Pins(pins)).unwrap();
        shake(config, server(&shown, &[]), "another.example").unwrap();
    }
}

#[test]
fn another_leaf_is_refused_and_the_refusal_names_what_was_shown() {
    let ca = ca();
    let (shown, pinned) = (leaf(&ca, |_| ()), leaf(&ca, |_| ()));
    for kind in [PinKind::Leaf, PinKind::Spki] {
        let trust = Trust::Pins(PinSet::from(pin_of(kind, &pinned.der).unwrap()));
        let error = shake(client(&trust).unwrap(), server(&shown, &[&ca]), "hub.example").unwrap_err();
        let expected = Refusal::NotPinned {
            leaf: pin_of(PinKind::Leaf, &shown.der).unwrap(),
            spki: pin_of(PinKind::Spki, &shown.der).unwrap(),
        };
        assert_eq!(refusal(&error), Some(&expected));
        let wrapped = io::Error::other(io::Error::new(io::ErrorKind::InvalidData, error));
        assert_eq!(refusal(&wrapped), Some(&expected), "found inside what a client wraps around it");
    }
}

#[test]
fn a_pinned_certificate_without_its_key_is_refused() {
    let ca = ca();
    let pinned = leaf(&ca, |_| ());
    let thief = Leaf { key: KeyPair::generate().unwrap(), der: pinned.der.clone(), pem: pinned.pem.clone() };
    let key = rustls::crypto::ring::sign::any_supported_type(&private(&thief.key)).unwrap();
    let certified = Arc::new(rustls::sign::CertifiedKey::new(vec![thief.der.clone()], key));
    let stolen = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(certified)));
    let trust = Trust::Pins(PinSet::from(pin_of(PinKind::Leaf, &pinned.der).unwrap()));
    let error = shake(client(&trust).unwrap(), stolen, "hub.example").unwrap_err();
    assert_eq!(error, Error::InvalidCertificate(CertificateError::BadSignature));
}

#[test]
fn a_server_of_the_pinned_ca_is_accepted_for_its_own_name() {
    let ca = ca();
    let shown = leaf(&ca, |_| ());
    for pin in
        [pin_of(PinKind::Leaf, &ca.der().clone()).unwrap(), pin_of(PinKind::Spki, &ca.der().clone()).unwrap()]
    {
        shake(client(&Trust::CaPin(pin)).unwrap(), server(&shown, &[&ca]), "hub.example").unwrap();
        let error =
            shake(client(&Trust::CaPin(pin)).unwrap(), server(&shown, &[&ca]), "other.example").unwrap_err();
        assert!(matches!(
            error,
            Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
            )
        ));
    }
}

#[test]
fn presenting_the_pinned_ca_is_not_enough() {
    let (ca, mallory) = (ca(), ca());
    let trust = Trust::CaPin(Pin::of(PinKind::Leaf, ca.der()));
    let forged = leaf(&mallory, |_| ());
    let error = shake(client(&trust).unwrap(), server(&forged, &[&ca]), "hub.example").unwrap_err();
    assert!(matches!(error, Error::InvalidCertificate(_)), "{error}");
    assert_eq!(refusal(&error), None);

    let error = shake(client(&trust).unwrap(), server(&forged, &[&mallory]), "hub.example").unwrap_err();
    let shown = vec![Pin::of(PinKind::Leaf, mallory.der())];
    assert_eq!(refusal(&error), Some(&Refusal::CaNotShown { shown }));

    let bare = shake(client(&trust).unwrap(), server(&leaf(&ca, |_| ()), &[]), "hub.example").unwrap_err();
    assert!(refusal(&bare).unwrap().to_string().contains("no CA at all"));
}

#[test]
fn an_expired_certificate_of_the_right_ca_is_refused() {
    let ca = ca();
    let old = leaf(&ca, |params| {
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2020, 2, 1);
    });
    for trust in [Trust::CaPin(Pin::of(PinKind::Leaf, ca.der())), Trust::CaPem(ca.pem())] {
        let error = shake(client(&trust).unwrap(), server(&old, &[&ca]), "hub.example").unwrap_err();
        assert!(
            matches!(
                error,
                Error::InvalidCertificate(
                    CertificateError::Expired | CertificateError::ExpiredContext { .. }
                )
            ),
            "{error}"
        );
    }
}

#[test]
fn a_ca_file_needs_no_ca_on_the_wire_and_refuses_other_texts() {
    let ca = ca();
    let trust = Trust::CaPem(ca.pem());
    shake(client(&trust).unwrap(), server(&leaf(&ca, |_| ()), &[]), "hub.example").unwrap();
    for bad in ["", "hello", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        assert!(client(&Trust::CaPem(bad.to_owned())).is_err(), "{bad:?}");
    }
}

#[test]
fn an_identity_is_shown_to_a_server_that_asks() {
    let (hub, agents) = (ca(), ca());
    let own = leaf(&agents, |params| params.subject_alt_names.clear());
    let identity = Identity { chain_pem: own.pem.clone(), key_pem: Secret::new(own.key.serialize_pem()) };
    let mut roots = RootCertStore::empty();
    roots.add(agents.der().clone()).unwrap();
    let shown = leaf(&hub, |_| ());
    let asking = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_client_cert_verifier(
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider()).build().unwrap(),
        )
        .with_single_cert(vec![shown.der.clone()], private(&shown.key))
        .unwrap();
    let trust = Trust::CaPem(hub.pem());
    let seen =
        shake(client_with_identity(&trust, &identity).unwrap(), asking.clone(), "hub.example").unwrap();
    assert_eq!(seen.peer_certificates().unwrap(), std::slice::from_ref(&own.der));
    assert!(shake(client(&trust).unwrap(), asking, "hub.example").is_err(), "none is shown, none is served");

    let stranger =
        Identity { key_pem: Secret::new(KeyPair::generate().unwrap().serialize_pem()), ..identity };
    assert!(client_with_identity(&trust, &stranger).is_err());
}

#[test]
fn clients_keep_no_sessions() {
    let ca = ca();
    let leaf = leaf(&ca, |_| {});
    // It gives session tickets to every client, which is the library's default.
    let server = server(&leaf, &[]);
    let ours = client(&Trust::Pins(PinSet::from(Pin::of(PinKind::Leaf, &leaf.der)))).unwrap();
    let mut keeps = ours.clone();
    keeps.resumption = Resumption::in_memory_sessions(8);
    for (config, second) in [(keeps, HandshakeKind::Resumed), (ours, HandshakeKind::Full)] {
        for kind in [HandshakeKind::Full, second] {
            let shaken = shake(config.clone(), server.clone(), "hub.example").unwrap();
            assert_eq!(shaken.handshake_kind(), Some(kind));
        }
    }
}

/// Each as the hub's own certificate, made by the right CA. N1 and N4 of the catalogue: nothing was sent to any of them.
#[test]
fn client_certificates_are_refused_as_server_certificates() {
    let (hub, mallory) = (ca(), ca());
    let with = |change: fn(&mut CertificateParams)| leaf(&hub, change);
    let critical = |params: &mut CertificateParams| {
        let mut unknown = CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 99_999, 1], vec![5, 0]);
        unknown.set_criticality(true);
        params.custom_extensions.push(unknown);
    };
    let other = |params: &mut CertificateParams| {
        params.subject_alt_names = vec![SanType::DnsName("hub.example.evil".try_into().unwrap())];
    };
    let rows = [
        ("not yet", with(|p| p.not_before = date_time_ymd(2100, 1, 1))),
        ("a client's", with(|p| p.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth])),
        ("a mailbox's", with(|p| p.extended_key_usages = vec![ExtendedKeyUsagePurpose::EmailProtection])),
        ("a CA's own", with(|p| p.is_ca = IsCa::Ca(BasicConstraints::Unconstrained))),
        ("an unknown critical extension", with(critical)),
        ("another name", with(other)),
        ("no name", with(|p| p.subject_alt_names.clear())),
        (
            "a name that it may only end in",
            with(|p| p.subject_alt_names = vec![SanType::DnsName("example".try_into().unwrap())]),
        ),
        ("another CA of the same name", leaf(&mallory, |_| ())),
    ];
    for trust in [Trust::CaPin(Pin::of(PinKind::Leaf, hub.der())), Trust::CaPem(hub.pem())] {
        for (name, shown) in &rows {
            let told = shake(client(&trust).unwrap(), server(shown, &[&hub]), "hub.example");
            assert!(matches!(told, Err(Error::InvalidCertificate(_))), "{name}: {told:?}");
        }
        shake(client(&trust).unwrap(), server(&leaf(&hub, |_| ()), &[&hub]), "hub.example").unwrap();
    }
}
