//! CAs and certificates that changed on the disk.
//!
//! In: the hub's folder, and the files of another certificate. Out: a listener that shows and accepts what is there now,
//! without a restart. What is refused is logged, and what was in force stays. Deliberately absent: what changes the files:
//! `hubd ca rotate`, an ACME client.

use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::json::chain;
use rustls::crypto::CryptoProvider;
use tokio::sync::watch;

use super::{Rest, rest};
use crate::authority::{
    Authority, AuthorityError, CaSet, FilesReload, ServerCertificate, ServerCertificateError,
};
use crate::clock::Clock;
use crate::serve::{HostVerifier, TlsError};

/// A look costs a few reads of small files.
const EVERY: Duration = Duration::from_secs(5);

/// The parts that are kept in step with the files.
pub struct CertificateWatch {
    pub authority: Arc<Authority>,
    /// The listener's certificates.
    pub certificate: Arc<ServerCertificate>,
    /// Which certificates of hosts are accepted.
    pub clients: Arc<HostVerifier>,
    pub provider: Arc<CryptoProvider>,
    pub clock: Arc<dyn Clock>,
}

/// Why new files are not used.
#[derive(Debug, thiserror::Error)]
enum ReloadError {
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    #[error(transparent)]
    Certificate(#[from] ServerCertificateError),
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl CertificateWatch {
    /// Looks until `stop`.
    pub async fn run(self, mut stop: watch::Receiver<bool>) {
        let mut reported = None;
        let mut pending = None;
        while rest(&mut stop, EVERY).await == Rest::Over {
            let looked = self.look(&mut pending);
            let refusal = looked.err().map(|error| chain(&error));
            // Once, and not with each look.
            if refusal != reported
                && let Some(error) = &refusal
            {
                tracing::error!(action = "reload_certificates", result = "refused", error = %error);
            }
            reported = refusal;
        }
    }

    /// `pending` are CAs that were read and are not in force everywhere.
    fn look(&self, pending: &mut Option<Arc<CaSet>>) -> Result<(), ReloadError> {
        if let Some(cas) = self.authority.reload()? {
            *pending = Some(cas);
        }
        if let Some(cas) = pending.as_ref() {
            self.clients.accept(&cas.accepted())?;
            self.certificate.renew(&self.authority, &self.provider, self.clock.now())?;
            let (serving, issuing) = (cas.serving().pin(), cas.issuing().pin());
            tracing::info!(action = "reload_ca", result = "ok", %serving, %issuing);
            *pending = None;
        }
        if self.certificate.reload_files(&self.provider)? == FilesReload::Taken {
            tracing::info!(action = "reload_certificate_files", result = "ok");
        }
        Ok(())
    }
}
