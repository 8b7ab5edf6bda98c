//! The document of a restore certificate, from the records.
//!
//! What comes in: a guest with its newest proved backup, the host, the time. What goes out: the document that the host
//! signs. Pure.

use holdfast_protocol::job::UtcSecond;
use holdfast_protocol::job::act::ArchiveText;
use holdfast_protocol::local::restore_test::TestVerdict;
use holdfast_protocol::restore_certificate::{
    CertificateSchema, CertifiedBackup, CertifiedGuest, CertifiedHost, CertifiedTest, RestoreCertificate,
    Verdict,
};
use jiff::Timestamp;

use crate::model::tested_guest::TestedGuest;

/// Why there is nothing to certify.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoDocument {
    /// The test did not prove the backup.
    #[error("the restore test is {verdict}: only a proved one is certified", verdict = .0.as_str())]
    Verdict(TestVerdict),
    /// A value of the records does not fit the document.
    #[error("the {what} cannot be written in a restore certificate: {rule}")]
    Value {
        /// Which value.
        what: &'static str,
        /// What it should be.
        rule: &'static str,
    },
}

/// The host that certifies, and when.
#[derive(Clone, Debug)]
pub struct Issuer {
    pub host: CertifiedHost,
    /// The version of the agent.
    pub version: String,
    pub at: Timestamp,
}

/// Writes it.
///
/// # Errors
/// [`NoDocument`].
pub fn document(tested: &TestedGuest, issuer: &Issuer) -> Result<RestoreCertificate, NoDocument> {
    let TestedGuest { guest, backup, test, checks } = tested;
    let verdict = match test.verdict {
        TestVerdict::Proved => Verdict::Proved,
        other @ (TestVerdict::BootedOnly | TestVerdict::Failed | TestVerdict::NotRun) => {
            return Err(NoDocument::Verdict(other));
        }
    };
    let archive = ArchiveText::try_from(backup.archive.as_str().to_owned())
        .map_err(|rule| NoDocument::Value { what: "archive", rule })?;
    Ok(RestoreCertificate {
        schema: CertificateSchema::V1,
        guest: CertifiedGuest { uid: guest.uid, name: guest.name.clone(), customer: guest.customer.clone() },
        host: issuer.host.clone(),
        backup: CertifiedBackup {
            operation: backup.taken_by,
            archive,
            taken_at: second("time of the backup", backup.taken_at)?,
            bytes: test.bytes.unwrap_or(backup.bytes),
            storage: backup.storage.clone(),
            tier: backup.tier,
            key: backup.sealed.clone(),
        },
        test: CertifiedTest {
            operation: test.operation,
            began_at: second("beginning of the test", test.began_at)?,
            ended_at: second("end of the test", test.at)?,
            verdict,
            reason: test.why.clone(),
            checks: checks.clone(),
            took: test.took,
        },
        issued_at: second("time", issuer.at)?,
        agent_version: issuer.version.clone(),
    })
}

fn second(what: &'static str, at: Timestamp) -> Result<UtcSecond, NoDocument> {
    UtcSecond::new(at).map_err(|rule| NoDocument::Value { what, rule })
}
