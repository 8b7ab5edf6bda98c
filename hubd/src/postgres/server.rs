//! Sessions at the database server, and the address that names it.
//!
//! In: a URL without a password, and the password from a credential. Out: sessions with bounds on every wait. A server
//! that is reached by TCP is verified by its certificate, unless the URL turns TLS off.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use ::postgres::config::{Host, SslMode};
use ::postgres::{Config, NoTls};
use holdfast_protocol::secret::Secret;

use super::sql::{Connection, Error};
use super::tls::{ServerTls, TlsSetupError};

/// How long a session may take to begin.
const CONNECT_WAIT: Duration = Duration::from_secs(5);

/// A server that is gone is noticed after this.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// Bounds of every session: of a statement, of a wait for a lock, and of a transaction that its hub forgot. A commit is
/// durable before it is answered, whatever the server's own default is.
const OPTIONS: &str = "-c statement_timeout=60s -c lock_timeout=20s -c idle_in_transaction_session_timeout=60s \
     -c synchronous_commit=on -c client_min_messages=warning -c search_path=public";

/// Where the database is. It holds no password.
#[derive(Clone, Debug)]
pub struct DatabaseUrl(Config);

/// Why an address of a database is refused.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseUrlError {
    #[error("a database is named by a URL such as postgres:///holdfast?host=/run/postgresql&user=hubd")]
    Form(#[source] Option<::postgres::Error>),
    #[error(
        "the URL of the database has a password, and nothing was opened: take it out and write it to a file that \
         `database_password_file` names"
    )]
    Password,
    #[error("the URL of the database has `options`, and nothing was opened: the hub sets its own")]
    Options,
    #[error("the URL of the database names {0}, and nothing was opened: give it as ?{0}=")]
    Missing(&'static str),
}

impl FromStr for DatabaseUrl {
    type Err = DatabaseUrlError;

    fn from_str(text: &str) -> Result<Self, DatabaseUrlError> {
        if !text.starts_with("postgres://") && !text.starts_with("postgresql://") {
            return Err(DatabaseUrlError::Form(None));
        }
        let mut config: Config = text.parse().map_err(|error| DatabaseUrlError::Form(Some(error)))?;
        if config.get_password().is_some() {
            return Err(DatabaseUrlError::Password);
        }
        if config.get_options().is_some() {
            return Err(DatabaseUrlError::Options);
        }
        if config.get_hosts().is_empty() {
            config.host("/run/postgresql");
        }
        if config.get_dbname().is_none() {
            return Err(DatabaseUrlError::Missing("dbname"));
        }
        let is_local = config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_)));
        // What the library calls "prefer" would go on without TLS where a stranger says that there is none.
        config.ssl_mode(match (is_local, config.get_ssl_mode()) {
            (true, _) | (_, SslMode::Disable) => SslMode::Disable,
            (false, _) => SslMode::Require,
        });
        config
            .options(OPTIONS)
            .application_name("hubd")
            .connect_timeout(CONNECT_WAIT)
            .keepalives_idle(SILENCE_MAX)
            .tcp_user_timeout(SILENCE_MAX);
        Ok(Self(config))
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.0.get_dbname().unwrap_or_default();
        let host = match self.0.get_hosts().first() {
            Some(Host::Unix(folder)) => folder.display().to_string(),
            Some(Host::Tcp(host)) => host.clone(),
            None => String::new(),
        };
        write!(out, "database {name} at {host}")
    }
}

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("the hub cannot log in to {url}: is the server running, and may the hub's user log in there?")]
    Refused {
        url: String,
        #[source]
        source: ::postgres::Error,
    },
    #[error(transparent)]
    Tls(#[from] TlsSetupError),
}

/// The server, with what is needed to log in.
#[derive(Clone, Debug)]
pub struct Server {
    url: DatabaseUrl,
    /// None for a socket of this machine, which needs no certificates, and where the URL turns it off.
    tls: Option<ServerTls>,
}

impl Server {
    /// # Errors
    /// [`ConnectError`], where the system's root certificates cannot be used.
    pub fn new(url: DatabaseUrl, password: Option<&Secret>) -> Result<Self, ConnectError> {
        let DatabaseUrl(mut config) = url;
        if let Some(password) = password {
            config.password(password.expose());
        }
        let is_plain = config.get_ssl_mode() == SslMode::Disable;
        let tls = if is_plain { None } else { Some(ServerTls::of_system()?) };
        Ok(Self { url: DatabaseUrl(config), tls })
    }

    /// The name of the database, without anything secret.
    #[must_use]
    pub fn name(&self) -> String {
        self.url.to_string()
    }

    /// A new session. Blocks.
    pub(super) fn session(&self) -> Result<Connection, ConnectError> {
        let begun = match &self.tls {
            None => self.url.0.connect(NoTls),
            Some(tls) => self.url.0.connect(tls.clone()),
        };
        match begun {
            Ok(client) => Ok(Connection::new(client)),
            Err(source) => Err(ConnectError::Refused { url: self.name(), source }),
        }
    }

    /// The session, or a new one where it has ended. Blocks.
    pub(super) fn renewed(&self, session: Option<Connection>) -> Result<Connection, Error> {
        match session {
            Some(session) if !session.is_closed() => Ok(session),
            _ => self.session().map_err(Error::unconnected),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Result<Config, DatabaseUrlError> {
        Ok(text.parse::<DatabaseUrl>()?.0)
    }

    #[test]
    fn a_url_names_a_database_and_holds_no_password() {
        let local = config("postgres:///holdfast").unwrap();
        assert_eq!(local.get_hosts(), [Host::Unix("/run/postgresql".into())]);
        assert_eq!(local.get_ssl_mode(), SslMode::Disable);
        let far = config("postgresql://hubd@db.example/holdfast").unwrap();
        assert_eq!(far.get_ssl_mode(), SslMode::Require);
        let plain = config("postgres://hubd@10.0.0.9/holdfast?sslmode=disable").unwrap();
        assert_eq!(plain.get_ssl_mode(), SslMode::Disable);
        for (text, part) in [
            ("postgres://hubd:secret@db/holdfast", "database_password_file"),
            ("postgres://hubd@db/holdfast?password=secret", "database_password_file"),
            ("postgres://hubd@db", "dbname"),
            ("postgres:///holdfast?options=-cfsync%3Doff", "options"),
            ("host=db dbname=holdfast", "postgres:///"),
            ("sqlite:hub.db", "postgres:///"),
        ] {
            let error = config(text).unwrap_err().to_string();
            assert!(error.contains(part) && !error.contains("secret@"), "{text}: {error}");
        }
        assert_eq!(far.get_options(), Some(OPTIONS));
        let name = "postgres://hubd@db.example/holdfast".parse::<DatabaseUrl>().unwrap().to_string();
        assert_eq!(name, "database holdfast at db.example");
    }
}
