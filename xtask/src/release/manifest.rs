//! The manifest of a folder, and the times of a release.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use holdfast_protocol::job::UtcSecond;
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::release::{
    ReleaseFile, ReleaseFileKind, ReleaseFileName, ReleaseManifest, ReleaseSchema, VersionNumber,
};
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use crate::workspace::{program, root};

/// When the sources were committed, in seconds since 1970: the time that goes into what is built.
pub fn commit_time() -> Result<i64> {
    let said = program("git").current_dir(root()).args(["log", "-1", "--format=%ct"]).output();
    let said = said.context("cannot run git")?;
    if !said.status.success() {
        bail!("git does not tell the time of the last commit: make releases in a checkout");
    }
    let text = String::from_utf8(said.stdout).context("git's time is not text")?;
    text.trim().parse().context("git's time is no number")
}

/// A time in seconds since 1970.
pub fn second(stamp: i64) -> Result<UtcSecond> {
    let at = Timestamp::from_second(stamp).context("the time is beyond what can be written")?;
    UtcSecond::new(at).map_err(|says| anyhow!("{says}"))
}

/// A file's size and hash.
pub fn measure(path: &Path) -> Result<(u64, Sha256Text)> {
    let mut file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let (mut hasher, mut size, mut chunk) = (Sha256::new(), 0_u64, vec![0; 256 * 1024]);
    loop {
        let count = file.read(&mut chunk).with_context(|| format!("cannot read {}", path.display()))?;
        if count == 0 {
            return Ok((size, Sha256Text::from_digest(hasher.finalize().into())));
        }
        hasher.update(chunk.get(..count).unwrap_or_default());
        size += count as u64;
    }
}

/// Writes the manifest over all files of a folder.
pub fn write(files: &Path, out: &Path, version: VersionNumber, days: u16) -> Result<ReleaseManifest> {
    #[expect(clippy::disallowed_methods, reason = "a manifest has the time at which it was made")]
    let now = Timestamp::now().as_second();
    let manifest = make(files, version, (now, now + i64::from(days) * 24 * 3_600))?;
    fs::write(out, manifest.to_json()?).with_context(|| format!("cannot write {}", out.display()))?;
    Ok(manifest)
}

fn make(files: &Path, version: VersionNumber, (from, until): (i64, i64)) -> Result<ReleaseManifest> {
    let mut listed = Vec::new();
    for entry in fs::read_dir(files).with_context(|| format!("cannot list {}", files.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let kind = ReleaseFileKind::by_name(&name);
        let kind = kind.with_context(|| format!("the name {name} shows no kind of file of a release"))?;
        let name = ReleaseFileName::try_from(name).map_err(|rule| anyhow!("{rule}"))?;
        let (size_bytes, sha256) = measure(&path)?;
        listed.push(ReleaseFile { kind, name, sha256, size_bytes });
    }
    listed.sort_by(|one, other| one.name.cmp(&other.name));
    let (issued_at, expires_at) = (second(from)?, second(until)?);
    let manifest =
        ReleaseManifest { schema: ReleaseSchema::V1, version, issued_at, expires_at, files: listed };
    // What no host would read is not worth a signature.
    ReleaseManifest::parse(manifest.to_json()?.as_bytes())
        .context("the release has a form that no host accepts")?;
    Ok(manifest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_has_each_file_of_the_folder_and_no_strange_one() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
        let version = VersionNumber::new(2026, 12, 1);
        assert!(make(folder.path(), version, (0, 1)).is_err(), "no file, no release");
        put("guestd", b"guest agent");
        put("agentd", b"agent");
        put("agentd.cdx.json", b"{}");
        let manifest = make(folder.path(), version, (0, 1)).unwrap();
        let listed: Vec<_> =
            manifest.files.iter().map(|file| (file.name.as_str(), file.kind.as_str())).collect();
        assert_eq!(listed, [("agentd", "agent"), ("agentd.cdx.json", "sbom"), ("guestd", "guest_agent")]);
        assert_eq!(manifest.files[0].sha256, Sha256Text::of(b"agent"));
        assert_eq!(manifest.files[0].size_bytes, 5);
        assert!(make(folder.path(), version, (1, 1)).is_err(), "it would end as it begins");
        put("notes.txt", b"x");
        assert!(make(folder.path(), version, (0, 1)).is_err());
    }
}
