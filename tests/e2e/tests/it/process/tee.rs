//! A recorder of the hub's traffic.
//!
//! It has what no party on a real wire has: the hub's CA, to show a certificate as the hub does, and each agent's key,
//! to act as that agent towards the hub. So neither end notices it, and it records what TLS hides.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// All that was received, both ways.
type Captured = Arc<Mutex<Vec<u8>>>;

/// The tee. It listens until it is dropped.
pub struct Tee {
    heard: Captured,
    _runtime: tokio::runtime::Runtime,
}

/// The certificates and keys of both ends.
struct Ends {
    hub: SocketAddr,
    /// The hub's folder.
    authority: PathBuf,
    /// The identities of agents that connect through this recorder, wherever their hosts' folders are moved.
    identities: Vec<PathBuf>,
}

impl Tee {
    /// Listens in front of a running hub.
    pub fn before(
        front: std::net::TcpListener,
        hub: SocketAddr,
        authority: PathBuf,
        identities: Vec<PathBuf>,
    ) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let heard = Captured::default();
        let keeps = Arc::clone(&heard);
        let ends = Arc::new(Ends { hub, authority, identities });
        front.set_nonblocking(true).unwrap();
        let handle = runtime.handle().clone();
        runtime.spawn(async move {
            let acceptor = TlsAcceptor::from(Arc::new(ends.as_the_hub()));
            let listener = TcpListener::from_std(front).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, ends, keeps) = (acceptor.clone(), Arc::clone(&ends), Arc::clone(&keeps));
                handle.spawn(async move { ends.pass(acceptor, stream, keeps).await });
            }
        });
        Self { heard, _runtime: runtime }
    }

    /// All that was received so far.
    pub fn heard(&self) -> Vec<u8> {
        self.heard.lock().unwrap().clone()
    }
}

impl Ends {
    fn ca(&self) -> CertificateDer<'static> {
        CertificateDer::from_pem_file(self.authority.join("ca.pem")).unwrap()
    }

    fn roots(&self) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots.add(self.ca()).unwrap();
        Arc::new(roots)
    }

    fn as_the_hub(&self) -> ServerConfig {
        let text = |name: &str| std::fs::read_to_string(self.authority.join(name)).unwrap();
        let issuer =
            Issuer::from_ca_cert_pem(&text("ca.pem"), KeyPair::from_pem(&text("ca.key")).unwrap()).unwrap();
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let clients = WebPkiClientVerifier::builder_with_provider(self.roots(), Arc::clone(&provider))
            .allow_unauthenticated()
            .build()
            .unwrap();
        let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(clients)
            .with_single_cert(vec![certificate.into(), self.ca()], private)
            .unwrap();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config
    }

    /// As the caller that showed this certificate, or without a certificate.
    fn as_the_caller(&self, shown: Option<&CertificateDer<'_>>) -> ClientConfig {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(self.roots());
        let Some(shown) = shown else { return config.with_no_client_auth() };
        let (chain, key) = self.identities.iter().find_map(|path| identity(path, shown)).unwrap();
        config.with_client_auth_cert(vec![chain], key).unwrap()
    }

    async fn pass(&self, acceptor: TlsAcceptor, stream: TcpStream, keeps: Captured) {
        // A caller that disconnects in the middle is ignored.
        let Ok(caller) = acceptor.accept(stream).await else { return };
        let shown = caller.get_ref().1.peer_certificates().and_then(<[_]>::first).cloned();
        let connector = TlsConnector::from(Arc::new(self.as_the_caller(shown.as_ref())));
        let Ok(hub) = TcpStream::connect(self.hub).await else { return };
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let Ok(hub) = connector.connect(name, hub).await else { return };
        let (mut caller, mut hub) =
            (Heeded { stream: caller, keeps: Arc::clone(&keeps) }, Heeded { stream: hub, keeps });
        let _gone = tokio::io::copy_bidirectional(&mut caller, &mut hub).await;
    }
}

fn identity(
    path: &PathBuf,
    shown: &CertificateDer<'_>,
) -> Option<(CertificateDer<'static>, PrivateKeyDer<'static>)> {
    let identity: Value = serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()?;
    let pem = |value: &Value| value.as_str().unwrap().as_bytes().to_vec();
    let own = CertificateDer::from_pem_slice(&pem(&identity["enrolled"]["certificate_pem"])).ok()?;
    let key = PrivateKeyDer::from_pem_slice(&pem(&identity["key_pem"])).ok()?;
    (own == *shown).then_some((own, key))
}

/// A stream of which all that is read is kept.
struct Heeded<S> {
    stream: S,
    keeps: Captured,
}

impl<S: AsyncRead + Unpin> AsyncRead for Heeded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if let Some(fresh) = buffer.filled().get(before..) {
            self.keeps.lock().unwrap().extend_from_slice(fresh);
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Heeded<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
