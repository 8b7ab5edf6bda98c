//! `holdfast audit verify`: checks the hash chain of an exported audit.

use std::path::Path;

use holdfast_protocol::audit::{VerifiedChain, Verifier, verify};
use holdfast_protocol::operator::{AuditBreak, AuditEvidence, HostDetail};
use serde::Serialize;

use crate::cmd_errors::AuditError;
use crate::error::CliError;
use crate::hub::Hub;
use crate::render;
use crate::screen::Screen;

/// An export of years; more is another file.
const BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;

/// A chain that holds: the document for programs.
#[derive(Debug, Serialize)]
pub struct AuditVerification {
    /// The number of the last line.
    pub lines: u64,
    /// This many lines at the beginning are not in the file: nothing is proved for them.
    pub missing: u64,
    /// The last one's hash.
    pub head: String,
    /// How far the host had reported, where that was compared.
    pub reported: Option<u64>,
    /// How many ends that the hub kept are in the file, where that was compared.
    pub kept: Option<usize>,
    /// Evidence of another history that the hub keeps, where it was asked.
    pub breaks: Vec<AuditBreak>,
}

/// Holds a file to its hashes, and to what a host reported.
pub async fn run(file: &Path, host: Option<(&str, &Hub)>, screen: &Screen) -> Result<(), CliError> {
    let mut reported = None;
    let mut evidence = None;
    let verifier = match host {
        None => Verifier::default(),
        Some((host, hub)) => {
            let detail: HostDetail = hub.get(&["v1", "hosts", host]).await?;
            let trust = detail.sections.trust.ok_or_else(|| AuditError::NoHead { host: host.to_owned() })?;
            reported = Some(trust.audit.number);
            let kept: AuditEvidence = hub.get(&["v1", "hosts", host, "audit-heads"]).await?;
            let heads = kept.heads.iter().map(|head| (head.number, head.chain.clone()));
            let verifier = Verifier::with_heads(heads.chain([(trust.audit.number, trust.audit.chain)]));
            evidence = Some(kept);
            verifier
        }
    };
    let text = read(file)?;
    let chain = |source| AuditError::Chain { path: file.to_owned(), source };
    let VerifiedChain { missing, lines, head } = verify(&text, verifier).map_err(chain)?;
    let kept = evidence.as_ref().map(|evidence| {
        evidence.heads.iter().filter(|head| head.number > 0 && head.number >= missing).count()
    });
    let breaks = evidence.map(|evidence| evidence.breaks).unwrap_or_default();
    let verification = AuditVerification { lines, missing, head, reported, kept, breaks };
    screen.show(&verification, |holds, _| render::audit::holds(holds))
}

fn read(path: &Path) -> Result<String, AuditError> {
    use std::io::Read as _;
    let unread = |source| AuditError::Read { path: path.to_owned(), source };
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(unread)?;
    file.take(BYTES_MAX).read_to_string(&mut text).map_err(unread)?;
    Ok(text)
}
