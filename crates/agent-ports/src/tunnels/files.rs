//! Requests, results and tokens of tunnels.
//!
//! The folder and every file in it are root's. The agent's group may write the files of requests and tokens, and can make,
//! replace or remove none: so root's service and systemd follow no path of the agent's. What the agent writes into a
//! request is read by none; that it wrote starts root's service. A token is written and never read back.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use holdfast_protocol::id::TunnelName;
use holdfast_protocol::report::TokenReport;
use jiff::Timestamp;

use crate::model::tunnel::restarts::RestartAnswer;

/// The folder that root made.
pub const FOLDER: &str = "/var/lib/holdfast-tunnels";

/// A result is one line.
const RESULT_BYTES_MAX: u64 = 256;

/// The files of all tunnels.
#[derive(Clone, Debug)]
pub struct TunnelFiles(PathBuf);

/// Why a file was not written.
#[derive(Debug, thiserror::Error)]
#[error("{} was not written: `agentd setup` makes the files of the tunnels that agent.toml names", path.display())]
pub struct TunnelFileError {
    path: PathBuf,
    #[source]
    source: std::io::Error,
}

/// A kind of file in root's folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunnelFile {
    /// The agent writes to it, and root's service starts.
    Request,
    /// Root's service says what came of it.
    Result,
    /// The tunnel's service reads it.
    Token,
}

impl TunnelFile {
    /// Those that `setup` makes.
    pub const MADE: [Self; 2] = [Self::Request, Self::Token];

    /// Its folder.
    #[must_use]
    pub const fn folder(self) -> &'static str {
        match self {
            Self::Request => "requests",
            Self::Result => "results",
            Self::Token => "tokens",
        }
    }
}

impl TunnelFiles {
    /// Those of this host.
    #[must_use]
    pub fn of_the_host() -> Self {
        Self::at(Path::new(FOLDER))
    }

    /// With another folder in the place of root's.
    #[must_use]
    pub fn at(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    /// Where a file is.
    #[must_use]
    pub fn path(&self, kind: TunnelFile, tunnel: &TunnelName) -> PathBuf {
        self.0.join(kind.folder()).join(tunnel.as_str())
    }

    /// Asks root's service for a restart.
    ///
    /// # Errors
    /// [`TunnelFileError`]; nothing was asked.
    pub fn ask(&self, tunnel: &TunnelName) -> Result<(), TunnelFileError> {
        self.fill(TunnelFile::Request, tunnel, b"restart\n")
    }

    /// What root's service said last, where it said something usable.
    #[must_use]
    pub fn answer(&self, tunnel: &TunnelName) -> Option<RestartAnswer> {
        let file =
            OpenOptions::new().read(true).custom_flags(NO_LINK).open(self.path(TunnelFile::Result, tunnel));
        let mut text = String::new();
        file.ok()?.take(RESULT_BYTES_MAX).read_to_string(&mut text).ok()?;
        RestartAnswer::parse(&text)
    }

    /// Whether the tunnel has a token. Its content is not read: the agent may not.
    #[must_use]
    pub fn token(&self, tunnel: &TunnelName) -> TokenReport {
        let about = std::fs::symlink_metadata(self.path(TunnelFile::Token, tunnel));
        let written = about.ok().filter(|about| about.is_file() && about.len() > 0);
        let at = written.and_then(|about| Timestamp::try_from(about.modified().ok()?).ok());
        at.map_or(TokenReport::Missing {}, |written_at| TokenReport::Present { written_at })
    }

    /// Writes a token, to the disk. A cut one is written again with its job.
    ///
    /// # Errors
    /// [`TunnelFileError`].
    pub fn write_token(&self, tunnel: &TunnelName, token: &[u8]) -> Result<(), TunnelFileError> {
        self.fill(TunnelFile::Token, tunnel, token)
    }

    fn fill(&self, kind: TunnelFile, tunnel: &TunnelName, bytes: &[u8]) -> Result<(), TunnelFileError> {
        let path = self.path(kind, tunnel);
        let written = OpenOptions::new()
            .write(true)
            .custom_flags(NO_LINK)
            .open(&path)
            .and_then(|file| put(file, bytes));
        written.map_err(|source| TunnelFileError { path, source })
    }
}

/// No link at the end of a path is followed.
const NO_LINK: i32 = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();

/// Over what is there: a reader in between finds the new beginning, never nothing.
fn put(mut file: File, bytes: &[u8]) -> std::io::Result<()> {
    file.write_all(bytes)?;
    file.set_len(bytes.len() as u64)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::report::RestartOutcome;

    use super::*;

    fn files() -> (tempfile::TempDir, TunnelFiles, TunnelName) {
        let root = tempfile::tempdir().unwrap();
        for kind in [TunnelFile::Request, TunnelFile::Result, TunnelFile::Token] {
            std::fs::create_dir(root.path().join(kind.folder())).unwrap();
        }
        let files = TunnelFiles::at(root.path());
        (root, files, "cf".parse().unwrap())
    }

    #[test]
    fn nothing_is_made_and_no_link_is_followed() {
        let (root, files, name) = files();
        let missing = files.ask(&name).unwrap_err();
        assert!(missing.to_string().contains("agentd setup"), "{missing}");
        assert!(files.write_token(&name, b"t").is_err() && !files.path(TunnelFile::Token, &name).exists());
        let other = root.path().join("other");
        std::fs::write(&other, "as it was").unwrap();
        std::os::unix::fs::symlink(&other, files.path(TunnelFile::Token, &name)).unwrap();
        assert!(files.write_token(&name, b"t").is_err());
        assert_eq!(std::fs::read_to_string(other).unwrap(), "as it was");
        assert_eq!(files.token(&name), TokenReport::Missing {});
    }

    #[test]
    fn a_token_is_there_once_it_was_written_and_a_shorter_one_leaves_nothing_of_it() {
        let (_root, files, name) = files();
        std::fs::write(files.path(TunnelFile::Token, &name), "").unwrap();
        assert_eq!(files.token(&name), TokenReport::Missing {});
        files.write_token(&name, b"a long token").unwrap();
        files.write_token(&name, b"short").unwrap();
        assert_eq!(std::fs::read(files.path(TunnelFile::Token, &name)).unwrap(), b"short");
        assert!(matches!(files.token(&name), TokenReport::Present { .. }));
    }

    #[test]
    fn a_result_of_another_form_is_none() {
        let (_root, files, name) = files();
        assert_eq!(files.answer(&name), None);
        let path = files.path(TunnelFile::Result, &name);
        std::fs::write(&path, "holdfast-tunnel-restart 1 1800000000 restarted\n").unwrap();
        assert_eq!(files.answer(&name).unwrap().outcome, RestartOutcome::Restarted);
        std::fs::write(&path, vec![b' '; 10_000]).unwrap();
        assert_eq!(files.answer(&name), None);
    }
}
