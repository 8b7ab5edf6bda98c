//! Login file: hub, trust and token, with mode 0600.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use holdfast_protocol::json::{self, JsonError};
use holdfast_protocol::pin::Pin;
use holdfast_protocol::secret::Secret;
use net::tls::Trust;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// A CA in PEM is under 4 KiB.
const BYTES_MAX: usize = 64 * 1024;
const NAME: &str = "login.json";

/// The version of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Schema {
    /// The only one so far.
    #[default]
    #[serde(rename = "holdfast.login/v1")]
    V1,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Login {
    /// The version of the file.
    pub schema: Schema,
    pub url: String,
    /// How it is known.
    pub ca: Ca,
    /// The token it knows us by.
    pub token: Secret,
}

/// How the hub is known.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ca {
    /// By the pin of its CA, which it shows itself.
    Pin(Pin),
    /// By its CA's certificate.
    Pem(String),
}

impl From<&Ca> for Trust {
    fn from(ca: &Ca) -> Self {
        match ca {
            Ca::Pin(pin) => Self::CaPin(*pin),
            Ca::Pem(pem) => Self::CaPem(pem.clone()),
        }
    }
}

/// Why there is no login.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// No folder to keep it in.
    #[error("no folder for the login: set HOLDFAST_CONFIG or HOME")]
    NoFolder,
    /// No login is stored yet.
    #[error("not logged in ({} is not there): run `holdfast login URL --ca-pin PIN`", path.display())]
    NotLoggedIn {
        /// The path where it was expected.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot {verb} {}", path.display())]
    Io {
        verb: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// Others can read the token.
    #[error(
        "{} has mode {mode:04o}, so others may have read or changed it: a token in it is revoked at the hub, then log in again; \
         a list of known hosts is looked through, then `chmod 600`",
        path.display()
    )]
    OpenToOthers { path: PathBuf, mode: u32 },
    /// Not a login.
    #[error("{} is not a login of this version: log in again", path.display())]
    Malformed {
        path: PathBuf,
        /// Where and why.
        #[source]
        source: JsonError,
    },
    /// Cannot happen for text.
    #[error("the login cannot be written as JSON")]
    Unwritable(#[source] serde_json::Error),
}

fn failed(verb: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ConfigError {
    move |source| ConfigError::Io { verb, path: path.to_owned(), source }
}

/// The folder: the given one, or the user's own.
pub fn folder(told: Option<PathBuf>) -> Result<PathBuf, ConfigError> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    told.or_else(|| set("XDG_CONFIG_HOME").map(|base| base.join("holdfast")))
        .or_else(|| set("HOME").map(|home| home.join(".config/holdfast")))
        .ok_or(ConfigError::NoFolder)
}

/// Reads the login.
pub fn load(folder: &Path) -> Result<Login, ConfigError> {
    let path = folder.join(NAME);
    let Some(bytes) = read_private(folder, NAME, BYTES_MAX)? else {
        return Err(ConfigError::NotLoggedIn { path });
    };
    json::parse("the file", &bytes, BYTES_MAX).map_err(|source| ConfigError::Malformed { path, source })
}

/// Reads a file that no other user may read or write; none where there is none. One byte more than the limit is read,
/// so that a longer file is detected.
pub fn read_private(
    folder: &Path,
    name: &str,
    max: usize,
) -> Result<Option<Zeroizing<Vec<u8>>>, ConfigError> {
    let path = folder.join(name);
    let file = match fs::File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed("open", &path)(error)),
    };
    let mode = file.metadata().map_err(failed("look at", &path))?.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(ConfigError::OpenToOthers { path, mode });
    }
    let mut bytes = Zeroizing::new(Vec::new());
    file.take(max as u64 + 1).read_to_end(&mut bytes).map_err(failed("read", &path))?;
    Ok(Some(bytes))
}

/// Writes the login: whole or not at all.
pub fn store(folder: &Path, login: &Login) -> Result<PathBuf, ConfigError> {
    let bytes = Zeroizing::new(serde_json::to_vec_pretty(login).map_err(ConfigError::Unwritable)?);
    write_private(folder, NAME, &bytes)
}

/// Writes a file that no other user may read: whole or not at all.
pub fn write_private(folder: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf, ConfigError> {
    let path = folder.join(name);
    let temporary = folder.join(format!("{name}.new"));
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed("make", folder))?;
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(failed("remove", &temporary)(error));
        }
        _ => {}
    }
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary);
    let mut file = opened.map_err(failed("make", &temporary))?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(failed("write", &temporary))?;
    fs::rename(&temporary, &path).map_err(failed("put in place", &path))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use holdfast_protocol::pin::PinKind;

    use super::*;

    fn login() -> Login {
        Login {
            schema: Schema::V1,
            url: "https://hub.example".to_owned(),
            ca: Ca::Pin(Pin::of(PinKind::Leaf, b"ca")),
            token: Secret::new("a-token-of-some-length".to_owned()),
        }
    }

    #[test]
    fn a_login_round_trips_with_mode_0600() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("deep/holdfast");
        assert!(matches!(load(&folder), Err(ConfigError::NotLoggedIn { .. })));
        let path = store(&folder, &login()).unwrap();
        store(&folder, &login()).unwrap();
        assert_eq!(load(&folder).unwrap().token.expose(), "a-token-of-some-length");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o7777, 0o700);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(load(&folder), Err(ConfigError::OpenToOthers { mode: 0o644, .. })));
        fs::write(&path, "{}").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(matches!(load(&folder), Err(ConfigError::Malformed { .. })));
    }
}
