//! Releases at the hub: left, uploaded, cut off, served to hosts, deleted.

use std::sync::Arc;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::operator::{Page, Role};
use holdfast_protocol::release::stored::{
    ArtifactState, ArtifactView, HostOffer, OfferRequest, ReleaseOffer, ReleaseText, ReleaseView,
    WithdrawnOffer,
};
use holdfast_protocol::release::{
    ReleaseFile, ReleaseFileKind, ReleaseManifest, ReleaseSchema, SignedRelease, VersionNumber,
};
use hubd::artifacts::ArtifactLimits;
use reqwest::{Method, StatusCode};
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;

use crate::operators::operator;
use crate::world::{ARTIFACTS, Answered, Client, Host, Options, World, until};

pub fn program(length: u32) -> Vec<u8> {
    (0..length).flat_map(u32::to_be_bytes).collect()
}

/// A release as an operator leaves it. The hub has no keys, so no signature needs to be one.
pub fn release(patch: u32, day: u8, files: &[(&str, &[u8])]) -> SignedRelease {
    let second = |day: u8, month| format!("2026-{month}-{day:02}T00:00:00Z").try_into().unwrap();
    let files = files.iter().map(|(name, bytes)| ReleaseFile {
        kind: ReleaseFileKind::by_name(name).unwrap(),
        name: (*name).to_owned().try_into().unwrap(),
        sha256: Sha256Text::of(bytes),
        size_bytes: bytes.len() as u64,
    });
    let manifest = ReleaseManifest {
        schema: ReleaseSchema::V1,
        version: VersionNumber::new(2026, 11, patch),
        issued_at: second(day, 11),
        expires_at: second(day, 12),
        files: files.collect(),
    };
    let bytes = manifest.to_json().unwrap().into_bytes();
    SignedRelease { manifest: bytes, signatures: vec!["armour".to_owned()] }
}

fn at(patch: u32) -> String {
    format!("/v1/releases/2026.11.{patch}")
}

fn place(bytes: &[u8]) -> String {
    format!("/v1/artifacts/{}", Sha256Text::of(bytes).as_str())
}

impl Client {
    pub async fn put_release(&self, patch: u32, release: &SignedRelease) -> Answered<ReleaseView> {
        self.send_bytes(Method::PUT, &at(patch), release.to_json().unwrap().into_bytes()).await
    }

    /// Sends these of the bytes of a file.
    pub async fn put_file(&self, file: &[u8], from: usize, to: usize) -> Answered<ArtifactView> {
        let path = format!("{}?offset={from}", place(file));
        self.send_bytes(Method::PUT, &path, file[from..to].to_vec()).await
    }

    async fn releases(&self) -> Vec<ReleaseView> {
        self.get::<Page<ReleaseView>>("/v1/releases").await.data(StatusCode::OK).items
    }
}

impl Host {
    async fn fetch(&self, file: &[u8], range: Option<&str>) -> reqwest::Response {
        let path = format!("{}/v1/agent/artifacts/{}", self.client.url, Sha256Text::of(file).as_str());
        let request = self.client.http.get(path);
        let request = match range {
            Some(range) => request.header("range", range),
            None => request,
        };
        request.send().await.unwrap()
    }

    async fn refused(&self, file: &[u8], range: Option<&str>) -> (u16, String) {
        let response = self.fetch(file, range).await;
        let status = response.status().as_u16();
        let answer: Value = response.json().await.unwrap();
        (status, answer["error"]["code"].as_str().unwrap_or_default().to_owned())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_is_left_uploaded_fetched_and_deleted() {
    let world = World::start().await;
    let (host, admin) = (world.enrol("box7").await, world.admin());
    let (agentd, package) = (program(100_000), program(10));
    let first = release(1, 1, &[("agentd", &agentd), ("a.deb", &package)]);
    let left = admin.put_release(1, &first).await.data(StatusCode::OK);
    assert_eq!((left.signatures, left.by.as_str()), (1, "admin"));
    assert!(left.files.iter().all(|file| file.artifact.state == ArtifactState::Missing));
    assert_eq!(host.refused(&agentd, None).await, (404, "NOT_FOUND".to_owned()), "it is not here yet");

    // In two pieces, the first of which comes twice.
    for _ in 0..2 {
        let part = admin.put_file(&agentd, 0, 150_000).await.data(StatusCode::OK);
        assert_eq!((part.received_bytes, part.state), (150_000, ArtifactState::Partial));
    }
    assert_eq!(host.refused(&agentd, None).await.0, 404, "a part is not served");
    let whole = admin.put_file(&agentd, 150_000, agentd.len()).await.data(StatusCode::OK);
    assert_eq!(whole.state, ArtifactState::Complete);
    admin.put_file(&package, 0, package.len()).await.data(StatusCode::OK);
    let again = admin.put_file(&agentd, 0, 1).await.data(StatusCode::OK);
    assert_eq!(again.state, ArtifactState::Complete, "what is whole is not written again");

    let text: ReleaseText = host.client.get("/v1/agent/releases/2026.11.1").await.data(StatusCode::OK);
    assert_eq!(SignedRelease::parse(text.signed.as_bytes()).unwrap(), first);
    let path = format!("/v1/agent/artifacts/{}/release", Sha256Text::of(&package).as_str());
    let text: ReleaseText = host.client.get(&path).await.data(StatusCode::OK);
    assert_eq!(SignedRelease::parse(text.signed.as_bytes()).unwrap(), first);
    let response = host.fetch(&agentd, None).await;
    assert_eq!(
        (response.status(), response.headers()["accept-ranges"].as_bytes()),
        (StatusCode::OK, &b"bytes"[..])
    );
    assert_eq!(response.bytes().await.unwrap(), agentd);
    for (range, first, last) in
        [("bytes=0-0", 0, 0), ("bytes=399990-", 399_990, 399_999), ("bytes=-3", 399_997, 399_999)]
    {
        let response = host.fetch(&agentd, Some(range)).await;
        assert_eq!(response.status(), StatusCode::PARTIAL_CONTENT);
        let told = format!("bytes {first}-{last}/400000");
        assert_eq!(response.headers()["content-range"], told.as_str());
        assert_eq!(response.bytes().await.unwrap(), agentd[first..=last]);
    }
    for range in ["bytes=400000-", "bytes=0-1,4-5", "all"] {
        assert_eq!(host.refused(&agentd, Some(range)).await, (400, "RANGE".to_owned()), "{range}");
    }

    // Another release names one of the two files: it stays when the first release goes.
    let second = release(2, 2, &[("agentd", &agentd)]);
    let left = admin.put_release(2, &second).await.data(StatusCode::OK);
    assert_eq!(left.files[0].artifact.state, ArtifactState::Complete);
    let versions: Vec<String> = admin.releases().await.iter().map(|one| one.version.to_string()).collect();
    assert_eq!(versions, ["2026.11.2", "2026.11.1"]);
    admin.send_bytes::<ReleaseView>(Method::DELETE, &at(1), Vec::new()).await.data(StatusCode::OK);
    let folder = world.folder.join("artifacts");
    let there = |bytes: &[u8]| folder.join(Sha256Text::of(bytes).as_str()).exists();
    assert!(there(&agentd) && !there(&package));
    admin.send_bytes::<ReleaseView>(Method::DELETE, &at(2), Vec::new()).await.data(StatusCode::OK);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    assert_eq!(host.refused(&agentd, None).await.0, 404);
    let gone: Answered<ReleaseView> = admin.send_bytes(Method::DELETE, &at(2), Vec::new()).await;
    assert_eq!(gone.code(), ErrorCode::NotFound);
    let kinds = world.event_kinds().await;
    let of_releases: Vec<&str> =
        kinds.iter().map(String::as_str).filter(|kind| kind.starts_with("release")).collect();
    assert_eq!(of_releases, ["release_put", "release_put", "release_deleted", "release_deleted"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_of_a_release_is_refused() {
    let world = World::start().await;
    let (host, admin) = (world.enrol("box7").await, world.admin());
    let (agentd, other) = (program(1_000), program(1_001));
    // A file before its release.
    assert_eq!(admin.put_file(&agentd, 0, 10).await.code(), ErrorCode::NotFound);
    let first = release(1, 1, &[("agentd", &agentd)]);
    assert_eq!(admin.put_release(2, &first).await.code(), ErrorCode::Range, "another version");
    let viewer = world.with_token(&operator(&world, "vera", Role::Viewer).await);
    assert_eq!(viewer.put_release(1, &first).await.code(), ErrorCode::Forbidden);
    assert!(viewer.releases().await.is_empty(), "nothing was left so far");
    admin.put_release(1, &first).await.data(StatusCode::OK);
    assert_eq!(viewer.put_file(&agentd, 0, 10).await.code(), ErrorCode::Forbidden);
    assert_eq!(world.anyone().put_file(&agentd, 0, 10).await.code(), ErrorCode::Unauthenticated);

    // Of another digest, too long, and not where the hub is.
    let path = place(&agentd);
    let mut wrong = agentd.clone();
    wrong[7] ^= 1;
    let sent: Answered<ArtifactView> = admin.send_bytes(Method::PUT, &path, wrong).await;
    assert_eq!(sent.code(), ErrorCode::ArtifactWrong);
    let sent: Answered<ArtifactView> = admin.send_bytes(Method::PUT, &path, other.clone()).await;
    assert_eq!(sent.code(), ErrorCode::Size);
    let beyond = admin.put_file(&agentd, 100, 200).await;
    assert_eq!(beyond.code(), ErrorCode::PreconditionFailed);
    assert_eq!(beyond.envelope.error.unwrap().details["received"], "0");
    assert_eq!(admin.put_file(&other, 0, 10).await.code(), ErrorCode::NotFound, "no release names it");
    assert_eq!(admin.releases().await[0].files[0].artifact.state, ArtifactState::Missing);
    admin.put_file(&agentd, 0, agentd.len()).await.data(StatusCode::OK);

    // The same version with another manifest, unless it was made later.
    let same_day = release(1, 1, &[("agentd", &other)]);
    assert_eq!(admin.put_release(1, &same_day).await.code(), ErrorCode::NameTaken);
    let later = release(1, 2, &[("agentd", &agentd)]);
    let signed_twice = SignedRelease { signatures: vec!["a".to_owned(), "b".to_owned()], ..later.clone() };
    admin.put_release(1, &later).await.data(StatusCode::OK);
    assert_eq!(admin.put_release(1, &signed_twice).await.data(StatusCode::OK).signatures, 2);
    assert_eq!(admin.put_release(1, &first).await.code(), ErrorCode::NameTaken, "an older one");
    let none = SignedRelease { signatures: Vec::new(), ..first.clone() };
    assert_eq!(admin.put_release(1, &none).await.code(), ErrorCode::Range);

    // Who is not a host here fetches nothing.
    let digest = format!("/v1/agent/artifacts/{}", Sha256Text::of(&agentd).as_str());
    assert_eq!(admin.get::<Value>(&digest).await.code(), ErrorCode::Certificate);
    assert_eq!(host.fetch(&agentd, None).await.status(), StatusCode::OK);
    let revoked: Answered<Value> = admin.send_bytes(Method::POST, "/v1/hosts/box7/revoke", Vec::new()).await;
    revoked.data(StatusCode::OK);
    assert_eq!(host.refused(&agentd, None).await, (401, "REVOKED".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn releases_have_bounds_of_number_and_bytes_and_disk() {
    let limits = ArtifactLimits { bytes_max: 5_000, ..ARTIFACTS };
    let world = World::with(Options { artifacts: limits, ..Options::default() }).await;
    let admin = world.admin();
    let (agentd, guestd) = (program(1_000), program(250));
    for patch in 0..50 {
        admin.put_release(patch, &release(patch, 1, &[("agentd", &agentd)])).await.data(StatusCode::OK);
    }
    let more = release(50, 1, &[("agentd", &agentd)]);
    assert_eq!(admin.put_release(50, &more).await.code(), ErrorCode::Quota);
    admin.send_bytes::<ReleaseView>(Method::DELETE, &at(0), Vec::new()).await.data(StatusCode::OK);
    // 4,000 bytes that fifty releases name are 4,000 bytes; with 1,000 more they are as many as there may be.
    let both = release(50, 1, &[("agentd", &agentd), ("guestd", &guestd)]);
    admin.put_release(50, &both).await.data(StatusCode::OK);
    let large = release(49, 2, &[("agentd", &agentd), ("guestd", &program(251))]);
    assert_eq!(admin.put_release(49, &large).await.code(), ErrorCode::Quota);
    assert_eq!(admin.releases().await.len(), 50);

    let limits = ArtifactLimits { disk_reserve_bytes: u64::MAX / 2, ..ARTIFACTS };
    let world = World::with(Options { artifacts: limits, ..Options::default() }).await;
    let admin = world.admin();
    admin.put_release(1, &release(1, 1, &[("agentd", &agentd)])).await.data(StatusCode::OK);
    assert_eq!(admin.put_file(&agentd, 0, 10).await.code(), ErrorCode::DiskFull);
    assert_eq!(std::fs::read_dir(world.folder.join("artifacts")).unwrap().count(), 0);
}

/// Sends the head of an upload and a part of the announced bytes, and ends the connection.
async fn cut_off(world: &World, file: &[u8], length: usize) {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(world.ca_pem.as_bytes()).unwrap()).unwrap();
    let config = rustls::ClientConfig::builder_with_provider(net::tls::provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let address = world.url.strip_prefix("https://").unwrap();
    let tcp = tokio::net::TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let mut stream = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, tcp).await.unwrap();
    let head = format!(
        "PUT {}?offset=0 HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\ncontent-length: {}\r\n\r\n",
        place(file),
        world.token(),
        file.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&file[..length]).await.unwrap();
    stream.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_goes_on_after_a_cut_and_after_a_restart() {
    let world = World::start().await;
    let agentd = program(500_000);
    world.admin().put_release(1, &release(1, 1, &[("agentd", &agentd)])).await.data(StatusCode::OK);
    cut_off(&world, &agentd, 1_300_000).await;
    let received = async |world: &World| world.admin().releases().await[0].files[0].artifact.received_bytes;
    until("the bytes before the cut are kept", || async { received(&world).await == 1_300_000 }).await;
    // The request that was cut off may still hold the file for a moment.
    let admin = world.admin();
    until("the next piece is taken", || async {
        let next = admin.put_file(&agentd, 1_300_000, 1_400_000).await;
        match next.envelope.data {
            Some(view) => view.received_bytes == 1_400_000,
            None => {
                assert_eq!(next.code(), ErrorCode::Locked);
                false
            }
        }
    })
    .await;

    let (folder, _temp) = world.stop().await;
    // What no release names is swept up at the start, as after a stop between a deletion and its files.
    let stray = folder.join("artifacts").join(Sha256Text::of(b"stray").as_str());
    std::fs::write(&stray, "x").unwrap();
    let world = World::in_folder(folder, None).await;
    assert!(!stray.exists());
    assert_eq!(received(&world).await, 1_400_000);
    let whole = world.admin().put_file(&agentd, 1_400_000, agentd.len()).await.data(StatusCode::OK);
    assert_eq!(whole.state, ArtifactState::Complete);
    let host = world.enrol("box7").await;
    assert_eq!(host.fetch(&agentd, None).await.bytes().await.unwrap(), agentd);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_fetches_two_files_at_once_and_not_three() {
    let world = World::start().await;
    let (host, other, admin) = (world.enrol("box7").await, world.enrol("box8").await, world.admin());
    // More than all buffers on the way hold.
    let large = program(8_000_000);
    admin.put_release(1, &release(1, 1, &[("agentd", &large)])).await.data(StatusCode::OK);
    admin.put_file(&large, 0, large.len()).await.data(StatusCode::OK);
    let first = host.fetch(&large, None).await;
    let second = host.fetch(&large, Some("bytes=8-")).await;
    assert_eq!(host.refused(&large, None).await, (429, "RATE_LIMITED".to_owned()));
    assert_eq!(other.fetch(&large, Some("bytes=0-9")).await.bytes().await.unwrap(), large[..10]);
    drop(first);
    until("the slot of a connection that was lost is free", || async {
        host.fetch(&large, Some("bytes=0-9")).await.status() == StatusCode::PARTIAL_CONTENT
    })
    .await;
    assert_eq!(second.bytes().await.unwrap(), large[8..]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_is_offered_what_the_hub_can_serve() {
    let world = World::start().await;
    let (host, other, admin) = (world.enrol("box7").await, world.enrol("box8").await, world.admin());
    let asks = async |host: &Host| {
        host.client.get::<ReleaseOffer>("/v1/agent/release-offer").await.data(StatusCode::OK).release
    };
    let version = VersionNumber::new(2026, 11, 1);
    let (place_of_offer, offer) = ("/v1/hosts/box7/release-offer", OfferRequest { version });
    let put = async || admin.send::<HostOffer>(Method::PUT, place_of_offer, &offer).await;
    assert_eq!(asks(&host).await, None);
    assert_eq!(put().await.code(), ErrorCode::NotFound, "no such release");

    let (agentd, arm) = (program(1_000), program(999));
    let signed = release(1, 1, &[("agentd", &agentd)]);
    admin.put_release(1, &signed).await.data(StatusCode::OK);
    assert_eq!(put().await.code(), ErrorCode::PreconditionFailed, "nothing of its agent is here");
    admin.put_file(&agentd, 0, 100).await.data(StatusCode::OK);
    assert_eq!(put().await.code(), ErrorCode::PreconditionFailed, "a part of its agent is here");
    assert_eq!(asks(&host).await, None, "a refusal changes nothing");
    admin.put_file(&agentd, 100, agentd.len()).await.data(StatusCode::OK);
    admin.put_release(2, &release(2, 1, &[("guestd", &arm)])).await.data(StatusCode::OK);
    let without = OfferRequest { version: VersionNumber::new(2026, 11, 2) };
    let without: Answered<HostOffer> = admin.send(Method::PUT, place_of_offer, &without).await;
    assert_eq!(without.code(), ErrorCode::PreconditionFailed, "it has no agent");

    assert_eq!(put().await.data(StatusCode::OK).version, version);
    let offered = asks(&host).await.unwrap();
    assert_eq!((offered.version, offered.manifest_sha256), (version, Sha256Text::of(&signed.manifest)));
    assert_eq!(asks(&other).await, None);
    let viewer = world.with_token(&operator(&world, "vera", Role::Viewer).await);
    let refused: Answered<HostOffer> = viewer.send(Method::PUT, place_of_offer, &offer).await;
    assert_eq!(refused.code(), ErrorCode::Forbidden);

    let (folder, _temp) = world.stop().await;
    let world = World::in_folder(folder, None).await;
    let admin = world.admin();
    let detail: Value = admin.get("/v1/hosts/box7").await.data(StatusCode::OK);
    assert_eq!(detail["offer"]["version"], "2026.11.1", "it is kept over a restart");
    let withdrawn: Answered<WithdrawnOffer> =
        admin.send_bytes(Method::DELETE, place_of_offer, Vec::new()).await;
    assert!(withdrawn.data(StatusCode::OK).offer.is_some());
    let nothing: Answered<WithdrawnOffer> =
        admin.send_bytes(Method::DELETE, place_of_offer, Vec::new()).await;
    assert!(nothing.data(StatusCode::OK).offer.is_none());
}
