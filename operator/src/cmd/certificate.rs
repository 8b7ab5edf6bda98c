//! Restore certificates as page, file and proof.
//!
//! `holdfast certificate verify` and `holdfast guest certificate`.
//!
//! What comes in: a file, or the newest certificate that the hub holds of a guest. What goes out: what it says, what is
//! proved, and what is not. Nothing is written of a certificate that does not hold.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;

use holdfast_protocol::id::{GuestUid, HostName};
use holdfast_protocol::job::UtcSecond;
use holdfast_protocol::restore_certificate::{
    CertificateView, ENVELOPE_BYTES_MAX, RestoreCertificate, SignedCertificate,
};
use restore_certificate::PublicKey;
use restore_certificate::verify::{HubTrust, KnownHub, Proof, verify};
use serde::Serialize;

use crate::args::{CertificateArgs, CertificateCommand};
use crate::certificate_text::{not_proved, proved};
use crate::cmd_errors::CertificateCommandError;
use crate::error::CliError;
use crate::hub::Hub;
use crate::screen::Screen;
use crate::{certificate_page, render};

/// A certificate that holds: the document for programs.
#[derive(Debug, Serialize)]
struct CertificateProof<'a> {
    certificate: &'a RestoreCertificate,
    /// The fingerprint of the host's key.
    host_key: String,
    /// The fingerprint of the hub's key.
    hub_key: String,
    /// Whether that was compared with a key that was given.
    hub_key_was: HubKeyWas,
    /// When the hub received the certificate.
    received_at: UtcSecond,
    proved: Vec<String>,
    not_proved: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum HubKeyWas {
    Compared,
    NotCompared,
}

impl<'a> CertificateProof<'a> {
    fn of(proof: &'a Proof) -> Self {
        Self {
            certificate: &proof.document,
            host_key: proof.host_key.fingerprint(),
            hub_key: proof.hub_key.fingerprint(),
            hub_key_was: match proof.trust {
                HubTrust::Compared => HubKeyWas::Compared,
                HubTrust::NotCompared => HubKeyWas::NotCompared,
            },
            received_at: proof.statement.received_at,
            proved: proved(proof),
            not_proved: not_proved(proof),
        }
    }
}

/// Verifies a file, without a hub.
pub fn run(command: CertificateCommand, screen: &Screen) -> Result<(), CliError> {
    match command {
        CertificateCommand::Verify { file, hub } => {
            let unread = |source| CertificateCommandError::Read { path: file.clone(), source };
            let mut bytes = Vec::new();
            // One byte more than there may be, so that a longer file is refused.
            let max = u64::try_from(ENVELOPE_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
            File::open(&file).map_err(unread)?.take(max).read_to_end(&mut bytes).map_err(unread)?;
            let signed = SignedCertificate::parse(&bytes)
                .map_err(|source| CertificateCommandError::Form { path: file.clone(), source })?;
            let proof = verify(signed, &hub.hub_key.unwrap_or(KnownHub::Unknown))
                .map_err(CertificateCommandError::Verify)?;
            show(&proof, screen)
        }
    }
}

/// Fetches the newest certificate of a guest, verifies it, and writes it out.
pub async fn of_guest(
    (host, uid): (&HostName, GuestUid),
    args: CertificateArgs,
    hub: &Hub,
    screen: &Screen,
) -> Result<(), CliError> {
    let (host, uid) = (host.to_string(), uid.to_string());
    let found = hub.find(&["v1", "hosts", &host, "guests", &uid, "restore-certificate"]).await?;
    let view: CertificateView = found.ok_or(CertificateCommandError::None { host, guest: args.guest })?;
    // The hub's answer came over the pinned connection; a key that was given counts for more.
    let served = PublicKey::from_openssh(view.hub_key.as_str()).map_err(CertificateCommandError::HubKey)?;
    let known = args.hub.hub_key.unwrap_or(KnownHub::Key(served));
    let proof = verify(view.certificate.clone(), &known).map_err(CertificateCommandError::Verify)?;
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&view.certificate).map_err(CliError::Unwritable)? + "\n";
        write(path, text.as_bytes(), screen)?;
    }
    if let Some(path) = &args.pdf {
        write(path, &certificate_page::pdf(&proof), screen)?;
    }
    show(&proof, screen)
}

fn show(proof: &Proof, screen: &Screen) -> Result<(), CliError> {
    screen.show(&CertificateProof::of(proof), |_, _| render::certificate::proof(proof))
}

fn write(path: &Path, bytes: &[u8], screen: &Screen) -> Result<(), CertificateCommandError> {
    let unwritten = |source| CertificateCommandError::Unwritten { path: path.to_owned(), source };
    let mut file = File::create_new(path).map_err(unwritten)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(unwritten)?;
    screen.note(&format!("wrote {}", path.display()));
    Ok(())
}
