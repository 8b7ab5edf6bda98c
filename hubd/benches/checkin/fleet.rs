//! Hosts with certificates, enrolled before anything is measured.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use holdfast_protocol::id::{CorrelationId, HostId, InviteId};
use hubd::authority::{AgentKey, Authority, HostLife};
use hubd::clock::{Clock as _, SystemClock};
use hubd::run;
use hubd::settings::AlertSettings;
use hubd::store::{By, NewInvite, Redemption, SharedStore};
use rcgen::{CertificateParams, KeyPair};
use rustls::client::Resumption;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, pem::PemObject as _};
use tokio::task::JoinSet;
use uuid::Uuid;

/// A fleet: one TLS identity per host.
pub struct Fleet {
    pub members: Vec<Arc<rustls::ClientConfig>>,
}

/// Enrolments under way at a time: they share their commits.
const AT_ONCE: usize = 64;

impl Fleet {
    /// Enrols hosts in a folder that no hub serves yet.
    pub async fn enrol(folder: &Path, hosts: usize) -> anyhow::Result<Self> {
        let opened = run::open(folder, AlertSettings::default().rules, &SystemClock).await?;
        let mut roots = rustls::RootCertStore::empty();
        roots.add(opened.authority.cas().serving().der.clone())?;
        let roots = Arc::new(roots);
        let mut members = Vec::with_capacity(hosts);
        let mut tasks = JoinSet::new();
        for number in 0..hosts {
            if tasks.len() == AT_ONCE {
                members.push(tasks.join_next().await.context("a task")???);
            }
            let enrolled =
                member(Arc::clone(&opened.store), Arc::clone(&opened.authority), Arc::clone(&roots), number);
            tasks.spawn(enrolled);
        }
        while let Some(enrolled) = tasks.join_next().await {
            members.push(enrolled??);
        }
        let (store, writer) = (opened.store, opened.writer);
        drop(store);
        writer.join().map_err(|_| anyhow!("the writer panicked"))?;
        Ok(Self { members })
    }

    /// Fleets of so many hosts each: one for each round, since the hub bounds what a host reports within a minute.
    pub fn split(self, hosts: usize) -> Vec<Self> {
        self.members.chunks(hosts.max(1)).map(|members| Self { members: members.to_vec() }).collect()
    }
}

async fn member(
    store: SharedStore,
    authority: Arc<Authority>,
    roots: Arc<rustls::RootCertStore>,
    number: usize,
) -> anyhow::Result<Arc<rustls::ClientConfig>> {
    let (at, correlation) = (SystemClock.now(), CorrelationId::new(Uuid::new_v4()));
    let id = InviteId::new(Uuid::new_v4());
    let secret = authority.invite_secret(id).hash();
    let by = By { operator: "bench".parse()?, correlation, at, claim: None };
    let invite = NewInvite { id, host_name: format!("box{number}").parse()?, secret };
    store.create_invite(by, invite).await.map_err(|error| anyhow!("{error:?}"))?;
    let key = KeyPair::generate()?;
    let csr = CertificateParams::default().serialize_request(&key)?.pem()?;
    let redemption = Redemption {
        secret,
        key: AgentKey::from_csr(&csr)?,
        host: HostId::new(Uuid::new_v4()),
        at,
        correlation,
    };
    let issuer = Arc::clone(&authority);
    let issue = Box::new(move |host, generation, key: &AgentKey, now| {
        issuer.issue_host(host, generation, key, now, HostLife::default())
    });
    let given = store.redeem(redemption, issue).await.map_err(|error| anyhow!("{error:?}"))?;
    let chain = vec![CertificateDer::from_pem_slice(given.pem.as_bytes()).context("a certificate")?];
    let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let mut config = rustls::ClientConfig::builder_with_provider(net::tls::provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, private)?;
    // As agents: no memory of earlier sessions.
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}
