//! Tables of releases.

use std::path::Path;

use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::release::stored::{ArtifactState, HostOffer, ReleaseView};
use holdfast_protocol::release::{ReleaseFile, ReleaseManifest, VersionNumber};
use jiff::Timestamp;
use serde::Serialize;

use super::table::{Field, Tone, list, plain, table};
use super::time::when;
use crate::release_file::FileState;
use crate::release_proof::{CheckedFile, ReleaseProof};
use crate::screen::Style;

const FILES: [&str; 5] = ["FILE", "KIND", "BYTES", "SHA-256", "HERE"];
const RELEASES: [&str; 6] = ["VERSION", "ENDS", "SIGNATURES", "FILES", "BYTES", "PUT"];

/// A manifest that was written.
pub fn written(manifest: &ReleaseManifest, out: &Path, style: Style) -> String {
    let next =
        format!("\nWritten to {0}. Sign it with `holdfast release sign {0} --key KEY`.\n", out.display());
    head(manifest.version, &[("Ends", manifest.expires_at.to_string())])
        + "\n"
        + &files(&manifest.files, style)
        + &next
}

/// What a signature would be for.
pub fn to_sign(manifest: &ReleaseManifest, digest: &Sha256Text, keys: &[String], style: Style) -> String {
    let signed = if keys.is_empty() { "nobody so far".to_owned() } else { keys.join(", ") };
    let facts = [
        ("Manifest", digest.as_str().to_owned()),
        ("Made", manifest.issued_at.to_string()),
        ("Ends", manifest.expires_at.to_string()),
        ("Signed by", signed),
    ];
    head(manifest.version, &facts) + "\n" + &files(&manifest.files, style)
}

/// A signature that was added.
pub fn signed(version: VersionNumber, count: usize, file: &Path) -> String {
    let signatures = if count == 1 { "1 signature".to_owned() } else { format!("{count} signatures") };
    format!(
        "Signed release {version} ({signatures}), written to {0}.\nAnother person signs it with \
         `holdfast release sign {0} --key KEY`; `holdfast release verify {0} --keys KEYS` checks it as a host does.\n",
        file.display()
    )
}

/// A release that its keys accept, and its files.
pub fn proof(proof: &ReleaseProof, style: Style) -> String {
    let names: Vec<String> = proof.signers.iter().map(ToString::to_string).collect();
    let facts = [
        ("Manifest", proof.manifest_sha256.as_str().to_owned()),
        ("Made", proof.issued_at.to_string()),
        ("Ends", proof.expires_at.to_string()),
        ("Signed by", format!("{} ({} needed)", names.join(", "), proof.signatures)),
    ];
    let rows = proof.files.iter().map(|CheckedFile { file, state }| row(file, here(*state)));
    head(proof.version, &facts) + "\n" + &table(&FILES, rows, style)
}

/// Releases at the hub.
pub fn releases(all: &[ReleaseView], now: Timestamp, style: Style) -> String {
    if all.is_empty() {
        return "The hub has no release. `holdfast release upload` leaves one.\n".to_owned();
    }
    table(&RELEASES, all.iter().map(|one| stored(one, now)), style)
}

fn stored(one: &ReleaseView, now: Timestamp) -> Vec<Field> {
    let complete = one.files.iter().filter(|file| file.artifact.state == ArtifactState::Complete).count();
    let bytes: u64 = one.files.iter().map(|file| file.artifact.size_bytes).sum();
    let files = if complete == one.files.len() {
        (complete.to_string(), Tone::Good)
    } else {
        (format!("{complete} of {}: upload again", one.files.len()), Tone::Look)
    };
    let ends = if one.expires_at.at() > now {
        plain(when(one.expires_at.at(), now))
    } else {
        (format!("ended {}", when(one.expires_at.at(), now)), Tone::Look)
    };
    let put = format!("{} by {}", when(one.put_at, now), one.by);
    vec![plain(one.version), ends, plain(one.signatures), files, plain(bytes), plain(put)]
}

fn head(version: VersionNumber, facts: &[(&str, String)]) -> String {
    let mut rows = vec![("Version", version.to_string())];
    rows.extend(facts.iter().cloned());
    list(&rows)
}

fn files(files: &[ReleaseFile], style: Style) -> String {
    let header = FILES.get(..4).unwrap_or_default();
    table(header, files.iter().map(facts_of), style)
}

fn facts_of(file: &ReleaseFile) -> Vec<Field> {
    vec![plain(file.name.as_str()), plain(file.kind), plain(file.size_bytes), plain(file.sha256.as_str())]
}

fn row(file: &ReleaseFile, here: Field) -> Vec<Field> {
    let mut row = facts_of(file);
    row.push(here);
    row
}

fn here(state: FileState) -> Field {
    let (text, tone) = match state {
        FileState::NotChecked => ("not checked", Tone::Plain),
        FileState::Same => ("the same", Tone::Good),
        FileState::Missing => ("missing", Tone::Bad),
        FileState::Unreadable => ("not readable", Tone::Bad),
        FileState::OtherSize => ("another size", Tone::Bad),
        FileState::OtherBytes => ("other bytes", Tone::Bad),
    };
    (text.to_owned(), tone)
}

/// An offer with its host.
#[derive(Debug, Serialize)]
pub struct OfferAtHost {
    /// As it was named.
    pub host: String,
    pub offer: HostOffer,
}

/// An offer that was taken back, with its host.
#[derive(Debug, Serialize)]
pub struct WithdrawalAtHost {
    /// As it was named.
    pub host: String,
    /// None where nothing was offered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offer: Option<HostOffer>,
}

/// Offers that were made.
pub fn offers(done: &[OfferAtHost], now: Timestamp, style: Style) -> String {
    let rows = done.iter().map(|OfferAtHost { host, offer }| {
        vec![plain(host), plain(offer.version), plain(&offer.by), plain(when(offer.at, now))]
    });
    let next = "\nEach host asks within ten minutes. `holdfast host show HOST` says what became of it.\n";
    table(&["HOST", "OFFERED", "BY", "SINCE"], rows, style) + next
}

/// Offers that were taken back.
pub fn withdrawals(done: &[WithdrawalAtHost], style: Style) -> String {
    let rows = done.iter().map(|WithdrawalAtHost { host, offer }| {
        let was = offer
            .as_ref()
            .map_or_else(|| "nothing was offered".to_owned(), |offer| offer.version.to_string());
        vec![plain(host), plain(was)]
    });
    table(&["HOST", "WITHDRAWN"], rows, style)
}
