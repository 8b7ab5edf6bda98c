//! Command line arguments about restore certificates.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};
use restore_certificate::PublicKey;
use restore_certificate::verify::KnownHub;

/// Of `holdfast certificate`.
#[derive(Debug, Subcommand)]
pub enum CertificateCommand {
    /// Verify the restore certificate in a file. Needs no network and no login.
    #[command(after_long_help = "\
Both signatures are checked, and that the hub enrolled the signing key as that host. Give the hub's key as you know it, from \
`holdfast guest certificate` or from the hub's operator. Without it, the command shows what the file says of itself.")]
    Verify {
        /// The file, as `holdfast guest certificate --json` wrote it.
        file: PathBuf,
        #[command(flatten)]
        hub: HubKeyArg,
    },
}

/// The hub's key.
#[derive(Debug, ClapArgs)]
pub struct HubKeyArg {
    /// The hub's key for restore certificates: SHA256:… or the line ecdsa-sha2-nistp256 ….
    #[arg(long, value_name = "KEY", value_parser = known_hub)]
    pub hub_key: Option<KnownHub>,
}

/// Of `holdfast guest certificate`.
#[derive(Debug, ClapArgs)]
pub struct CertificateArgs {
    /// The guest's name, uid or VMID.
    pub guest: String,
    /// Search only this host; by default all hosts.
    #[arg(long)]
    pub host: Option<String>,
    /// Write it as a page for people. The file must not be there yet.
    #[arg(long, value_name = "FILE")]
    pub pdf: Option<PathBuf>,
    /// Write it as the file that is verified. The file must not be there yet.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    #[command(flatten)]
    pub hub: HubKeyArg,
}

/// Characters of a fingerprint: 32 bytes in base64, without padding.
const FINGERPRINT_CHARS: usize = 43;

fn known_hub(text: &str) -> Result<KnownHub, String> {
    match text.strip_prefix("SHA256:") {
        Some(rest) if rest.len() == FINGERPRINT_CHARS && rest.is_ascii() => {
            Ok(KnownHub::Fingerprint(text.to_owned()))
        }
        Some(_) => Err("a fingerprint is SHA256: and 43 characters".to_owned()),
        None => PublicKey::from_openssh(text).map(KnownHub::Key).map_err(|error| error.to_string()),
    }
}
