//! The configuration inside an archive: `./etc/vzdump/pct.conf` and `pct.fw`.

use std::io::Read;
use std::path::Path;

use super::read_error::ReadArchiveError;
use super::stream::{ArchiveStream, Explainer};

/// A real one has a few hundred bytes; pmxcfs itself refuses files above 1 MiB.
const CONFIG_BYTES_MAX: u64 = 1 << 20;
/// The two files come first; more entries than this before them means that there are none.
const ENTRIES_MAX: usize = 5_000_000;

/// The path of the guest's configuration inside an archive.
pub(super) const CONFIG_PATH: &str = "./etc/vzdump/pct.conf";
/// The path of the guest's firewall rules inside an archive.
pub(super) const FIREWALL_PATH: &str = "./etc/vzdump/pct.fw";

/// The data inside an archive in addition to the guest's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbeddedConfig {
    /// The text of `pct.conf`.
    pub config: String,
    /// The text of `pct.fw`, if the archive has one.
    pub firewall: Option<String>,
}

/// Reads the configuration, and no more of the archive than it must.
pub fn read_config(archive: &Path) -> Result<EmbeddedConfig, ReadArchiveError> {
    let mut stream = ArchiveStream::open(archive)?;
    let explainer = stream.explainer();
    let mut config = None;
    let mut firewall = None;
    for entry in stream.entries()?.take(ENTRIES_MAX) {
        let mut entry = entry.map_err(|error| explainer.explain(error))?;
        let path = entry.path_bytes().into_owned();
        // The first that is spelt so; the real node passes over one without the leading `./` here, and unpacks it there.
        if config.is_none() && path == CONFIG_PATH.as_bytes() {
            config = Some(read_text(&mut entry, archive, &explainer)?);
        } else if firewall.is_none() && is(&path, FIREWALL_PATH) {
            firewall = Some(read_text(&mut entry, archive, &explainer)?);
        } else if config.is_some() {
            break;
        }
    }
    let config = config.ok_or_else(|| ReadArchiveError::NoConfig { path: archive.to_owned() })?;
    Ok(EmbeddedConfig { config, firewall })
}

/// Whether an entry's name is the given one, with or without the leading `./`.
pub(super) fn is(path: &[u8], wanted: &str) -> bool {
    path == wanted.as_bytes() || wanted.strip_prefix("./").is_some_and(|bare| path == bare.as_bytes())
}

pub(super) fn read_text(
    entry: &mut tar::Entry<'_, impl Read>,
    archive: &Path,
    explainer: &Explainer,
) -> Result<String, ReadArchiveError> {
    let bad = || ReadArchiveError::BadConfig { path: archive.to_owned(), bytes_max: CONFIG_BYTES_MAX };
    if entry.size() > CONFIG_BYTES_MAX {
        return Err(bad());
    }
    let mut bytes = Vec::new();
    entry.read_to_end(&mut bytes).map_err(|error| explainer.explain(error))?;
    String::from_utf8(bytes).map_err(|_not_text| bad())
}
