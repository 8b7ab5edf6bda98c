//! Files and credentials that hold the settings of a channel.
//!
//! The settings hold secrets, so a file that every user can read is refused. A credential is what systemd decrypts for
//! one unit alone (`LoadCredentialEncrypted=`): it is sealed at rest. No error quotes the content.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::channel::Channel;

/// Settings of a channel are short; a longer file is another one.
const FILE_BYTES_MAX: u64 = 256 * 1024;

/// Where the settings are: exactly one of the two.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChannelPlace {
    /// A file that only root and the program's user can read.
    pub file: Option<PathBuf>,
    /// A credential of the program's unit.
    pub credential: Option<String>,
}

/// Why no settings are read.
#[derive(Debug, thiserror::Error)]
pub enum ChannelFileError {
    #[error("write either `file` or `credential`, and not both")]
    Place,
    #[error("{0:?} is not the name of a credential: write letters, digits, '.', '_', '-'")]
    CredentialName(String),
    #[error(
        "systemd gives this program no credentials: add LoadCredentialEncrypted= to its unit, or use `file`"
    )]
    NoCredentials,
    #[error("{} cannot be read: correct the path, or let the program's user read it", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{} holds a secret and every user can read it: make a new secret, and run `chmod o= {}`", path.display(), path.display())]
    Open { path: PathBuf },
    #[error("{} is longer than settings of a channel are", path.display())]
    Long { path: PathBuf },
    #[error("{} is refused: correct it", path.display())]
    Form {
        path: PathBuf,
        /// Where and why.
        #[source]
        source: Box<toml::de::Error>,
    },
}

impl ChannelPlace {
    /// Reads the channel. `credentials` is the folder that systemd made for the program.
    ///
    /// # Errors
    /// [`ChannelFileError`].
    pub fn read(&self, credentials: Option<&Path>) -> Result<Channel, ChannelFileError> {
        let path = self.path(credentials)?;
        let text = read_secret(&path)?;
        toml::from_str(&text).map_err(|mut source: toml::de::Error| {
            // The message would quote the line, and with it the secret.
            source.set_input(None);
            ChannelFileError::Form { path, source: Box::new(source) }
        })
    }

    fn path(&self, credentials: Option<&Path>) -> Result<PathBuf, ChannelFileError> {
        match (&self.file, &self.credential) {
            (Some(path), None) => Ok(path.clone()),
            (None, Some(name)) => {
                let fits = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
                if name.is_empty() || name.starts_with('.') || !name.bytes().all(fits) {
                    return Err(ChannelFileError::CredentialName(name.chars().take(64).collect()));
                }
                credentials.map(|folder| folder.join(name)).ok_or(ChannelFileError::NoCredentials)
            }
            (Some(_), Some(_)) | (None, None) => Err(ChannelFileError::Place),
        }
    }
}

/// Reads a text that not every user can read.
///
/// # Errors
/// [`ChannelFileError`].
pub fn read_secret(path: &Path) -> Result<Zeroizing<String>, ChannelFileError> {
    let failed = |source| ChannelFileError::Read { path: path.to_owned(), source };
    // Judged and read by one descriptor, so that it cannot be exchanged in between.
    let file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.mode() & 0o007 != 0 {
        return Err(ChannelFileError::Open { path: path.to_owned() });
    }
    let mut text = Zeroizing::new(String::new());
    let length = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(failed)?;
    if length as u64 > FILE_BYTES_MAX {
        return Err(ChannelFileError::Long { path: path.to_owned() });
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    const NTFY: &str = "kind = \"ntfy\"\nserver = \"https://ntfy.example/\"\ntopic = \"t0p1c\"\n";

    fn write(folder: &Path, name: &str, text: &str, mode: u32) -> ChannelPlace {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        ChannelPlace { file: Some(path), credential: None }
    }

    fn credential(name: &str) -> ChannelPlace {
        ChannelPlace { file: None, credential: Some(name.to_owned()) }
    }

    #[test]
    fn a_channel_is_read_out_of_a_file_or_a_credential() {
        let folder = tempfile::tempdir().unwrap();
        for place in [write(folder.path(), "ops", NTFY, 0o640), credential("ops")] {
            assert!(matches!(place.read(Some(folder.path())), Ok(Channel::Ntfy(_))));
        }
    }

    #[test]
    fn what_is_wrong_is_refused_and_no_secret_is_shown() {
        let folder = tempfile::tempdir().unwrap();
        let open = write(folder.path(), "open", NTFY, 0o644).read(None);
        assert!(matches!(open, Err(ChannelFileError::Open { .. })));
        let wrong = write(folder.path(), "bad", &NTFY.replace("kind", "knid"), 0o600).read(None).unwrap_err();
        let text = holdfast_protocol::json::chain(&wrong);
        assert!(matches!(wrong, ChannelFileError::Form { .. }) && !text.contains("t0p1c"), "{text}");
        let long = write(folder.path(), "long", &"#".repeat(300_000), 0o600).read(None);
        assert!(matches!(long, Err(ChannelFileError::Long { .. })));
        assert!(matches!(credential("a").read(None), Err(ChannelFileError::NoCredentials)));
        let outside = credential("../a").read(Some(folder.path()));
        assert!(matches!(outside, Err(ChannelFileError::CredentialName(_))));
        assert!(matches!(ChannelPlace::default().read(None), Err(ChannelFileError::Place)));
        let absent = ChannelPlace { file: Some(folder.path().join("absent")), credential: None }.read(None);
        assert!(matches!(absent, Err(ChannelFileError::Read { .. })));
    }
}
