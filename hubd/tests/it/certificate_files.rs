//! A certificate of another CA for the listener, from files.

use hubd::authority::CertificateFiles;
use hubd::settings::CertificateSettings;
use net::tls::Trust;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::world::{Client, Options, World, client, until};

type Ca = CertifiedIssuer<'static, KeyPair>;

fn public_ca() -> Ca {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// As an ACME client writes them: one file after the other.
fn write(files: &CertificateFiles, ca: &Ca) {
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(&key, ca).unwrap();
    std::fs::write(&files.certificate, leaf.pem()).unwrap();
    std::fs::write(&files.key, key.serialize_pem()).unwrap();
}

async fn reaches(client: &Client) -> bool {
    client.http.get(format!("{}/healthz", client.url)).send().await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_sees_the_certificate_of_the_files_and_who_pins_the_hub_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let files =
        CertificateFiles { certificate: folder.path().join("full.pem"), key: folder.path().join("key.pem") };
    let (first, second) = (public_ca(), public_ca());
    write(&files, &first);
    let certificates = CertificateSettings { files: Some(files.clone()), ..CertificateSettings::default() };
    let world = World::with(Options { certificates, ..Options::default() }).await;
    let browser = |ca: &Ca| client(&ca.pem(), &world.url, None);
    assert!(reaches(&browser(&first)).await && !reaches(&browser(&second)).await);
    let pinned = || {
        let config = net::tls::client(&Trust::CaPem(world.ca_pem.clone())).unwrap();
        let http = reqwest::Client::builder().tls_backend_preconfigured(config).no_proxy().build().unwrap();
        Client { http, ..world.anyone() }
    };
    assert!(reaches(&pinned()).await);
    write(&files, &second);
    until("of the new file", || async { reaches(&browser(&second)).await }).await;
    // A file that cannot be used changes nothing.
    std::fs::write(&files.key, "torn").unwrap();
    assert!(reaches(&browser(&second)).await && reaches(&pinned()).await);
}
