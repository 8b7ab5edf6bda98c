//! Arguments of `holdfast release`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};
use holdfast_protocol::release::{ReleaseFileKind, VersionNumber};
use jiff::Timestamp;

use super::{AssumeYes, KeyArgs};

/// Of `holdfast release`.
#[derive(Debug, Subcommand)]
pub enum ReleaseCommand {
    /// Write the manifest of a release: names, sizes and hashes of its files. Needs no network and no login.
    Manifest(ManifestArgs),
    /// Sign a manifest with your SSH key, after somebody else or as the first. Needs no network and no login.
    #[command(after_long_help = "\
The signatures are in FILE.signed.json, next to the manifest. The second person signs the same manifest and has that file, \
or gives FILE.signed.json itself, which has the manifest inside.")]
    Sign {
        /// The manifest, or the signed release (….signed.json).
        file: PathBuf,
        #[command(flatten)]
        key: KeyArgs,
    },
    /// Verify a signed release, and the files in a folder. Needs no network and no login.
    Verify(VerifyArgs),
    /// Upload a signed release and its files to the hub; a repeat goes on where the last one ended.
    Upload {
        /// The signed release.
        signed: PathBuf,
        /// The folder with its files.
        #[arg(long, value_name = "FOLDER")]
        files: PathBuf,
    },
    /// Show the releases at the hub, the newest version first.
    List,
    /// Offer a release to hosts. Each takes it within minutes, once, and only with the signatures that it requires.
    Offer {
        /// The version.
        version: VersionNumber,
        /// The hosts, by name or id.
        #[arg(required = true)]
        hosts: Vec<String>,
    },
    /// Take the offer back from hosts. One that runs the release already goes on with it.
    Withdraw {
        /// The hosts, by name or id.
        #[arg(required = true)]
        hosts: Vec<String>,
    },
    /// Delete a release at the hub, with the files that no other release names. No host is offered it any more.
    Delete {
        /// The version.
        version: VersionNumber,
        #[command(flatten)]
        assume_yes: AssumeYes,
    },
}

/// Of `holdfast release manifest`.
#[derive(Debug, ClapArgs)]
pub struct ManifestArgs {
    /// The version of the programs in it, such as 2026.11.0.
    #[arg(long, value_name = "VERSION")]
    pub version: VersionNumber,
    /// For how many days hosts may install it.
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub expires_in_days: u16,
    /// Write the manifest to this file. It must not be there yet.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// A file whose name does not show its kind: agent, guest_agent, golden, golden_manifest, package or sbom; repeat for each.
    #[arg(long = "file", value_name = "KIND=PATH", value_parser = kind_and_path)]
    pub files: Vec<(ReleaseFileKind, PathBuf)>,
    /// Files whose names show their kinds: agentd, guestd, *.deb, *.cdx.json, *.spdx.json, archives of images (*.tar.zst,
    /// *.tar.gz, *.tar.xz) and their manifests (golden-*.json).
    #[arg(value_name = "PATH", required_unless_present = "files")]
    pub paths: Vec<PathBuf>,
}

/// Of `holdfast release verify`.
#[derive(Debug, ClapArgs)]
pub struct VerifyArgs {
    /// The signed release.
    pub file: PathBuf,
    /// The release keys, as hosts have them: one line for each, `name ssh-ed25519 AAAA…`.
    #[arg(long, value_name = "FILE")]
    pub keys: PathBuf,
    /// How many people must have signed it.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=8))]
    pub signatures: u8,
    /// Also hash the files in this folder.
    #[arg(long, value_name = "FOLDER")]
    pub files: Option<PathBuf>,
    /// The time to verify for, such as 2026-12-24T00:00:00Z; by default now.
    #[arg(long, value_name = "TIME")]
    pub at: Option<Timestamp>,
}

fn kind_and_path(text: &str) -> Result<(ReleaseFileKind, PathBuf), &'static str> {
    let (kind, path) = text.split_once('=').ok_or("write KIND=PATH, such as agent=build/agentd")?;
    if path.is_empty() {
        return Err("a path follows the '='");
    }
    Ok((kind.parse()?, PathBuf::from(path)))
}
