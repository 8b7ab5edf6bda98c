//! What a restore certificate proves, and what it does not, in words.
//!
//! The text on a terminal and the printed page are made of the same facts and sentences.

use holdfast_protocol::restore_certificate::RestoreCertificate;
use restore_certificate::verify::{HubTrust, Proof};

/// A name and its value.
pub type Fact = (&'static str, String);

/// The facts of a certificate, in three groups.
#[derive(Debug)]
pub struct Facts {
    pub guest: Vec<Fact>,
    pub backup: Vec<Fact>,
    pub test: Vec<Fact>,
    /// The reason of the verdict.
    pub reason: String,
    /// One line for each check.
    pub checks: Vec<String>,
}

impl Facts {
    pub fn of(document: &RestoreCertificate) -> Self {
        let RestoreCertificate { guest, host, backup, test, .. } = document;
        let tier = backup.tier.map_or_else(|| "none".to_owned(), |tier| tier.to_string());
        let key = backup.key.as_ref().map_or("not encrypted", |key| key.as_str());
        let restored = test.took.restore_s.map_or_else(not_measured, seconds);
        let up = test.took.up_s.map_or_else(not_measured, seconds);
        Self {
            guest: vec![
                ("Guest", guest.name.to_string()),
                ("Uid", guest.uid.to_string()),
                ("Customer", guest.customer.to_string()),
                ("Host", format!("{} (node {})", host.name, host.node)),
                ("Host id", host.id.to_string()),
            ],
            backup: vec![
                ("Archive", backup.archive.as_str().to_owned()),
                ("Backup taken", backup.taken_at.to_string()),
                ("Size", format!("{} bytes", backup.bytes)),
                ("Storage", format!("{} (tier: {tier})", backup.storage)),
                ("Encryption", key.to_owned()),
            ],
            test: vec![
                ("Test began", test.began_at.to_string()),
                ("Test ended", test.ended_at.to_string()),
                ("Verdict", test.verdict.as_str().to_owned()),
                ("Restore took", restored),
                ("Start took", up),
                ("Return took", return_time(document)),
            ],
            reason: test.reason.clone(),
            checks: test.checks.iter().map(ToString::to_string).collect(),
        }
    }
}

/// The measured time of a return.
pub fn return_time(document: &RestoreCertificate) -> String {
    document.test.return_s().map_or_else(not_measured, seconds)
}

fn not_measured() -> String {
    "not measured".to_owned()
}

fn seconds(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, seconds) => format!("{hours} h {minutes} min {seconds} s"),
    }
}

/// What is proved.
pub fn proved(proof: &Proof) -> Vec<String> {
    let statement = &proof.statement;
    let mut lines = vec![
        "Host and hub have signed it, and no byte was changed since.".to_owned(),
        format!(
            "The hub states: the signing key was enrolled as host {}, and it received the certificate at {}.",
            statement.host_name, statement.received_at
        ),
    ];
    if proof.trust == HubTrust::Compared {
        lines.push("The hub's key was compared with a known one.".to_owned());
    }
    lines
}

/// What is not proved.
pub fn not_proved(proof: &Proof) -> Vec<String> {
    let test = &proof.document.test;
    let mut lines = Vec::new();
    if proof.trust == HubTrust::NotCompared {
        lines.push(
            "Which hub it is: its key was not compared. Anyone can make two keys. Give the hub's key with --hub-key."
                .to_owned(),
        );
    }
    lines.push(format!(
        "Anything later than the end of the test, {}: the backup may be gone since.",
        test.ended_at
    ));
    lines.push(
        "What the host found: the hub did not repeat the test. Root on the host could sign a false document."
            .to_owned(),
    );
    lines.push("That another host would need the same time for a return.".to_owned());
    lines
}

/// The signatures: name and fingerprint.
pub fn signatures(proof: &Proof) -> Vec<Fact> {
    vec![
        ("Host key", proof.host_key.fingerprint()),
        ("Hub key", proof.hub_key.fingerprint()),
        ("Document", format!("SHA-256 {}", proof.statement.document_sha256.as_str())),
    ]
}
