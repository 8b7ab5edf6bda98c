//! The place of the hub's rows: a file, or a PostgreSQL database.
//!
//! In: two lines of `hub.toml`. Out: the server to connect to, with the password out of its file. Deliberately absent: a
//! password in the settings, on the command line or in the environment.

use std::path::{Path, PathBuf};

use holdfast_protocol::secret::Secret;

use crate::postgres::{ConnectError, DatabaseUrl, DatabaseUrlError, Server};

/// Where rows are kept.
#[derive(Clone, Debug)]
pub enum Database {
    /// SQLite, in the hub's folder.
    Folder,
    Postgres(Box<Server>),
}

/// Why the database's settings are refused.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseSettingsError {
    #[error("`database` is refused")]
    Url(#[from] DatabaseUrlError),
    #[error(
        "`database_password_file` stands without `database`: take it out, or say with `database` where to log in"
    )]
    PasswordAlone,
    #[error("{} cannot be read as the database's password: correct the path, or let the hub's user read it", path.display())]
    Password {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{} holds no password: write one line", .0.display())]
    NoPassword(PathBuf),
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

/// Reads the settings of the database.
pub(super) fn database(
    url: Option<&str>,
    password_file: Option<&Path>,
) -> Result<Database, DatabaseSettingsError> {
    let url: DatabaseUrl = match (url, password_file) {
        (None, None) => return Ok(Database::Folder),
        (None, Some(_)) => return Err(DatabaseSettingsError::PasswordAlone),
        (Some(url), _) => url.parse()?,
    };
    let password = password_file.map(password).transpose()?;
    Ok(Database::Postgres(Box::new(Server::new(url, password.as_ref())?)))
}

fn password(path: &Path) -> Result<Secret, DatabaseSettingsError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| DatabaseSettingsError::Password { path: path.to_owned(), source })?;
    let password = Secret::new(text.trim().to_owned());
    if password.expose().is_empty() {
        return Err(DatabaseSettingsError::NoPassword(path.to_owned()));
    }
    Ok(password)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_comes_from_its_file_and_shows_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        std::fs::write(&path, "correct horse\n").unwrap();
        let url = Some("postgres:///holdfast?user=hubd");
        let database = database(url, Some(&path)).unwrap();
        assert!(!format!("{database:?}").contains("correct horse"));
        assert!(matches!(super::database(None, None), Ok(Database::Folder)));
        assert!(matches!(super::database(None, Some(&path)), Err(DatabaseSettingsError::PasswordAlone)));
        std::fs::write(&path, "\n").unwrap();
        assert!(matches!(super::database(url, Some(&path)), Err(DatabaseSettingsError::NoPassword(_))));
    }
}
