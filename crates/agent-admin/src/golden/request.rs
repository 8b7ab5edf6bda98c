//! `agentd golden approve-request`: a job draft for one image.
//!
//! Input: the image's version, and the bytes of its archive, hashed by this command. Output: a draft of
//! `approve_release` for exactly these bytes. The draft alone gives no rights: the operator who signs it checks version
//! and digest.

use std::path::{Path, PathBuf};

use holdfast_protocol::id::GoldenVersion;
use holdfast_protocol::job::act::{Act, ReleaseKind, args};
use holdfast_protocol::job::{Draft, Target};
use sha2::{Digest, Sha256};

use super::{GoldenError, stored};
use crate::Output;
use crate::port::golden_dump::StoredImage;
use crate::port::held_folder;
use crate::settings::ConfigPath;

/// The arguments of `approve-request`.
#[derive(Debug, clap::Args)]
pub(super) struct RequestArguments {
    #[command(flatten)]
    config: ConfigPath,
    /// The image's version.
    version: GoldenVersion,
    /// Write the request to this file; by default golden-VERSION.approve.json in the current folder. Never replaces an
    /// existing file.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Text for people, or JSON (`holdfast.golden-request/v1`) for programs.
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

/// The written request: the document for programs.
#[derive(serde::Serialize)]
struct Written<'a> {
    schema: &'static str,
    version: &'a GoldenVersion,
    sha256: &'a str,
    file: &'a Path,
}

pub(super) fn run(arguments: &RequestArguments) -> Result<(), GoldenError> {
    let (_, _, found) = stored(&arguments.config)?;
    let wanted = found.into_iter().find(|golden| golden.manifest.version == arguments.version);
    let golden = wanted.ok_or_else(|| GoldenError::NoSuch(arguments.version.clone()))?;
    let text = request(&golden)?;
    let file = arguments.out.clone();
    let file = file.unwrap_or_else(|| PathBuf::from(format!("golden-{}.approve.json", arguments.version)));
    write(&file, &text).map_err(|source| GoldenError::Write { path: file.clone(), source })?;
    let (version, sha256) = (&arguments.version, golden.manifest.sha256.as_str());
    match arguments.output {
        Output::Json => {
            let schema = "holdfast.golden-request/v1";
            crate::print_json(&Written { schema, version, sha256, file: &file });
        }
        Output::Table => println!(
            "golden   {version}\nsha256   {sha256}\nrequest  {0}\nAn operator signs it: `holdfast sign HOST --draft {0} \
             --key KEY --reason TEXT --submit`.",
            file.display()
        ),
    }
    Ok(())
}

/// The draft, for the bytes that are stored there now.
fn request(golden: &StoredImage) -> Result<String, GoldenError> {
    let found = digest(&golden.archive)
        .map_err(|source| GoldenError::Archive { path: golden.archive.clone(), source })?;
    if found != golden.manifest.sha256 {
        let said = golden.manifest.sha256.clone();
        return Err(GoldenError::Exchanged { path: golden.archive.clone(), found, said });
    }
    let unwritable = |error: &dyn std::fmt::Display| GoldenError::Unwritable(error.to_string());
    let version =
        golden.manifest.version.as_str().to_owned().try_into().map_err(|error| unwritable(&error))?;
    let sha256 = found.try_into().map_err(|error| unwritable(&error))?;
    let act = Act::ApproveRelease(args::ApproveRelease { kind: ReleaseKind::Golden, version, sha256 });
    let draft = Draft { target: Target::Host {}, act };
    Ok(draft.to_json().map_err(|error| unwritable(&error))? + "\n")
}

fn digest(path: &Path) -> std::io::Result<String> {
    let mut digest = Sha256::new();
    std::io::copy(&mut std::fs::File::open(path)?, &mut digest)?;
    Ok(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    Ok(held_folder::create_new(path, text.as_bytes(), 0o644)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_names_the_bytes_that_lie_there() {
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path().join("vzdump-lxc-900001-a.tar.zst");
        std::fs::write(&archive, "golden bytes").unwrap();
        let sha256 = digest(&archive).unwrap();
        let manifest = serde_json::json!({
            "schema": "holdfast.golden-manifest/v1", "version": "2026.11.2", "contents": "tiny",
            "archive": "vzdump-lxc-900001-a.tar.zst", "sha256": sha256, "size_bytes": 12,
            "recipe_sha256": "", "guestd_sha256": "", "source_date_epoch": 1,
            "build": { "made_at_s": 1, "seconds": 1, "entries": 1, "content_bytes": 1 }, "packages": [],
        });
        let manifest = serde_json::from_value(manifest).unwrap();
        let file = folder.path().join("golden-2026.11.2.json");
        let golden = StoredImage { manifest, file, archive: archive.clone() };
        let draft = Draft::parse(request(&golden).unwrap().as_bytes()).unwrap();
        let Act::ApproveRelease(release) = &draft.act else { panic!("{draft:?}") };
        assert_eq!((release.kind, release.version.as_str()), (ReleaseKind::Golden, "2026.11.2"));
        assert_eq!(release.sha256.as_str(), sha256);
        std::fs::write(&archive, "other bytes").unwrap();
        assert!(matches!(request(&golden), Err(GoldenError::Exchanged { .. })));
        std::fs::remove_file(&archive).unwrap();
        assert!(matches!(request(&golden), Err(GoldenError::Archive { .. })));
        let out = folder.path().join("out");
        write(&out, "one").unwrap();
        assert!(write(&out, "two").is_err(), "never over an existing file");
    }
}
