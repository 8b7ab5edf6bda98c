//! Settings: flags of `hubd serve` over `hub.toml` over defaults.
//!
//! In: the parsed flags and the file. Out: [`Settings`], checked. The one place that reads the file.
//!
//! ```toml
//! listen = "0.0.0.0:8440"
//! public_url = "https://hub.example:8440"
//! connections_max = 12000
//! host_certificate_hours = 24
//! tls_certificate_file = "/etc/letsencrypt/live/hub.example/fullchain.pem"
//! tls_key_file = "/etc/letsencrypt/live/hub.example/privkey.pem"
//! database = "postgres:///holdfast?host=/run/postgresql&user=holdfast-hub"
//!
//! [webhook]
//! url = "https://alarm.example/holdfast"
//! secret_file = "/etc/holdfast/webhook-secret"
//!
//! [[receiver]]
//! name = "ops"
//! file = "/etc/holdfast/receiver-ops.toml"
//!
//! [[escrow_notice]]
//! customer = "acme"
//! url = "https://acme.example/read"
//! secret_file = "/etc/holdfast/acme-secret"
//! ```

mod alerts;
mod certificates;
mod database;
mod oidc;
mod sign_in;
mod webhook;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use ::alerts::Rules;
use holdfast_protocol::alert::ReceiverKind;
use holdfast_protocol::id::{CustomerId, ReceiverName};
use notify::EgressPolicy;
use reqwest::Url;
use serde::Deserialize;

pub use self::alerts::{AlertSettings, AlertSettingsError};
use self::alerts::{AlertsFile, BackupFile, ReceiverFile, WatcherFile};
pub use self::certificates::{CertificateSettings, CertificateSettingsError};
pub use self::database::{Database, DatabaseSettingsError};
use self::oidc::OidcFile;
pub use self::oidc::OidcSettingsError;
use self::sign_in::SignInFile;
pub use self::sign_in::SignInSettingsError;
use self::webhook::{SECRET_CHARS_MIN, WebhookFile, webhook};
use crate::api::SettingsFiles;
use crate::artifacts::{ArtifactLimits, DISK_RESERVE_BYTES};
use crate::domain::oidc::provider::ProviderSettings;
use crate::domain::sign_in::SignInRules;
use crate::task::delivery::Receiver;
use crate::task::escrow_notice::NoticeSettings;
use crate::task::http_post::WebhookSettings;
use crate::task::state_snapshots::{SnapshotSchedule, SnapshotSettings};

/// The default address: this machine only, so that nothing is open by accident.
const LISTEN_USUAL: &str = "127.0.0.1:8440";

/// Connections at a time by default: ten thousand hosts and some operators.
const CONNECTIONS_USUAL: usize = 12_000;

/// Kept use by default: a thousand hosts with twenty guests each have 25 GB after 400 days.
pub const USAGE_GIB_USUAL: u16 = 32;

/// Kept snapshots of state by default, in MiB: 34 of them, at up to 30 each.
const STATE_SNAPSHOT_MIB_USUAL: u16 = 1024;

/// Files of releases by default: twenty releases with a golden image each.
const RELEASE_GIB_USUAL: u16 = 20;

#[derive(Debug)]
pub struct Settings {
    /// Where everything is kept.
    pub dir: PathBuf,
    /// Where to listen.
    pub listen: SocketAddr,
    /// How agents and operators reach the hub; by default the address it listens on.
    pub public_url: Option<PublicUrl>,
    /// Where events are forwarded to, if anywhere.
    pub webhook: Option<WebhookSettings>,
    /// Addresses for notices of escrow reads.
    pub escrow_notice: NoticeSettings,
    /// Rules and receivers of alerts, and who watches the hub.
    pub alerts: AlertSettings,
    /// Connections at a time.
    pub connections_max: usize,
    /// Bytes of kept use, at most.
    pub usage_bytes_max: u64,
    /// Bounds of the files of releases.
    pub artifacts: ArtifactLimits,
    /// When snapshots of state are kept, and how many.
    pub snapshots: SnapshotSettings,
    /// Where rows are kept.
    pub database: Database,
    /// Certificates of hosts and of the listener.
    pub certificates: CertificateSettings,
    /// How people sign in.
    pub sign_in: SignInRules,
    /// Who else vouches for people.
    pub provider: Option<ProviderSettings>,
}

/// What was given on the command line.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// `--dir`.
    pub dir: PathBuf,
    /// `--config`.
    pub config: Option<PathBuf>,
    /// `--listen`.
    pub listen: Option<SocketAddr>,
    /// `--public-url`.
    pub public_url: Option<PublicUrl>,
    /// The folder of credentials that systemd made for the hub, where it did.
    pub credentials: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct HubFile {
    listen: Option<SocketAddr>,
    public_url: Option<String>,
    connections_max: Option<usize>,
    usage_gib_max: Option<u16>,
    release_gib_max: Option<u16>,
    state_snapshots: Option<SnapshotSchedule>,
    state_snapshot_mib_max: Option<u16>,
    /// The URL of a PostgreSQL database.
    database: Option<String>,
    database_password_file: Option<PathBuf>,
    /// How long a host's certificate lives.
    host_certificate_hours: Option<u16>,
    /// A certificate of another CA, for who does not pin the hub's.
    tls_certificate_file: Option<PathBuf>,
    tls_key_file: Option<PathBuf>,
    webhook: Option<WebhookFile>,
    #[serde(default)]
    escrow_notice: Vec<NoticeFile>,
    /// The receiver of kind smtp by whose server customers get mail about jobs.
    customer_mail: Option<ReceiverName>,
    /// The rules of alerts.
    alerts: Option<Rules>,
    #[serde(default)]
    receiver: Vec<ReceiverFile>,
    /// How far deliveries may reach: `public`, `private` or `loopback`.
    deliver_to: Option<EgressPolicy>,
    watcher: Option<WatcherFile>,
    backup: Option<BackupFile>,
    #[serde(default)]
    sign_in: SignInFile,
    oidc: Option<OidcFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NoticeFile {
    /// None: all that have no address of their own.
    customer: Option<CustomerId>,
    url: String,
    secret_file: PathBuf,
    former_secret_file: Option<PathBuf>,
}

/// Why the settings are refused.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// A file cannot be read.
    #[error("{path} cannot be read: correct the path, or let the hub's user read it")]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// The file is not as it should be.
    #[error("{path} is refused: correct it")]
    Form {
        path: PathBuf,
        /// Where and why.
        #[source]
        source: Box<toml::de::Error>,
    },
    /// The public URL is none.
    #[error("public_url in {path} is refused: correct it")]
    PublicUrl {
        path: PathBuf,
        #[source]
        source: PublicUrlError,
    },
    /// The webhook's URL is none, or sends events in the clear.
    #[error(
        "the webhook's url {url} is refused: write an https URL (http is accepted to this machine alone)"
    )]
    WebhookUrl {
        /// What was written.
        url: String,
    },
    /// The webhook's secret is too short.
    #[error(
        "the webhook's secret in {path} is shorter than {SECRET_CHARS_MIN} characters: make a longer one"
    )]
    WebhookSecret { path: PathBuf },
    /// Two addresses for one.
    #[error("[[escrow_notice]] names {who} twice: keep one of the two")]
    NoticeTwice { who: String },
    /// Mail that no server takes.
    #[error("customer_mail names {name}, which is no [[receiver]] of kind smtp: name one that is")]
    CustomerMail { name: ReceiverName },
    /// Rules, receivers or the watcher.
    #[error(transparent)]
    Alerts(#[from] AlertSettingsError),
    /// No connection would be accepted.
    #[error("connections_max is 0: set how many connections may be open at a time")]
    Connections,
    #[error("usage_gib_max is 0: set how many GiB of kept use the hub may have, 1 or more")]
    UsageSize,
    #[error(transparent)]
    Database(#[from] DatabaseSettingsError),
    #[error(transparent)]
    Certificates(#[from] CertificateSettingsError),
    #[error(transparent)]
    SignIn(#[from] SignInSettingsError),
    #[error(transparent)]
    Oidc(#[from] OidcSettingsError),
    #[error("release_gib_max is 0: set how many GiB the files of releases may have, 1 or more")]
    ReleaseSize,
    #[error(
        "state_snapshot_mib_max is 0: set how many MiB kept snapshots of state may have, 1 or more, or state_snapshots = \"off\""
    )]
    SnapshotSize,
}

impl Settings {
    /// Combines flags, file and defaults: flags override the file, and the file overrides the defaults.
    ///
    /// # Errors
    /// [`SettingsError`].
    pub fn load(given: Given) -> Result<Self, SettingsError> {
        let usual = given.dir.join("hub.toml");
        let mut files = SettingsFiles::default();
        files.add(given.config.as_ref().unwrap_or(&usual));
        let (path, file) = hub_file(given.config, usual)?;
        let from_file = file.public_url.map(|text| text.parse::<PublicUrl>()).transpose();
        let from_file = from_file.map_err(|source| SettingsError::PublicUrl { path, source })?;
        let listen = given.listen.or(file.listen);
        let connections_max = file.connections_max.unwrap_or(CONNECTIONS_USUAL);
        if connections_max == 0 {
            return Err(SettingsError::Connections);
        }
        let usage_gib_max = file.usage_gib_max.unwrap_or(USAGE_GIB_USUAL);
        if usage_gib_max == 0 {
            return Err(SettingsError::UsageSize);
        }
        let release_gib_max = file.release_gib_max.unwrap_or(RELEASE_GIB_USUAL);
        if release_gib_max == 0 {
            return Err(SettingsError::ReleaseSize);
        }
        let snapshot_mib_max = file.state_snapshot_mib_max.unwrap_or(STATE_SNAPSHOT_MIB_USUAL);
        if snapshot_mib_max == 0 {
            return Err(SettingsError::SnapshotSize);
        }
        let alerts = AlertsFile {
            rules: file.alerts,
            receivers: file.receiver,
            reach: file.deliver_to,
            watcher: file.watcher,
            backup: file.backup,
            files,
        }
        .load(given.credentials.as_deref())?;
        let mut escrow_notice = notices(file.escrow_notice)?;
        escrow_notice.mail = file.customer_mail.map(|name| customer_mail(name, &alerts)).transpose()?;
        Ok(Self {
            dir: given.dir,
            listen: listen.unwrap_or_else(usual_listen),
            public_url: given.public_url.or(from_file),
            webhook: file.webhook.map(webhook).transpose()?,
            escrow_notice,
            alerts,
            connections_max,
            usage_bytes_max: u64::from(usage_gib_max) << 30,
            artifacts: ArtifactLimits {
                bytes_max: u64::from(release_gib_max) << 30,
                disk_reserve_bytes: DISK_RESERVE_BYTES,
            },
            snapshots: SnapshotSettings {
                schedule: file.state_snapshots.unwrap_or_default(),
                bytes_max: u64::from(snapshot_mib_max) << 20,
            },
            database: database::database(file.database.as_deref(), file.database_password_file.as_deref())?,
            certificates: CertificateSettings::checked(
                file.host_certificate_hours,
                (file.tls_certificate_file, file.tls_key_file),
            )?,
            sign_in: file.sign_in.rules()?,
            provider: file.oidc.map(OidcFile::provider).transpose()?,
        })
    }

    /// The database alone, for commands that need nothing else of the settings.
    ///
    /// # Errors
    /// [`SettingsError`].
    pub fn database(given: &Given) -> Result<Database, SettingsError> {
        let (_, file) = hub_file(given.config.clone(), given.dir.join("hub.toml"))?;
        Ok(database::database(file.database.as_deref(), file.database_password_file.as_deref())?)
    }
}

impl Settings {
    /// The issuer of the provider, for commands that need nothing else of the settings; none where there is no provider.
    ///
    /// # Errors
    /// [`SettingsError`].
    pub fn issuer(given: &Given) -> Result<Option<String>, SettingsError> {
        let (_, file) = hub_file(given.config.clone(), given.dir.join("hub.toml"))?;
        Ok(file.oidc.map(OidcFile::issuer).transpose()?)
    }

    /// How the hub is reached, for commands that need nothing else of the settings.
    ///
    /// # Errors
    /// [`SettingsError`].
    pub fn reached_at(given: &Given) -> Result<PublicUrl, SettingsError> {
        if let Some(url) = &given.public_url {
            return Ok(url.clone());
        }
        let (path, file) = hub_file(given.config.clone(), given.dir.join("hub.toml"))?;
        let url = file.public_url.map(|text| text.parse::<PublicUrl>()).transpose();
        let url = url.map_err(|source| SettingsError::PublicUrl { path, source })?;
        Ok(url.unwrap_or_else(|| PublicUrl::of(file.listen.unwrap_or_else(usual_listen))))
    }
}

/// The settings file, where there is one.
fn hub_file(config: Option<PathBuf>, usual: PathBuf) -> Result<(PathBuf, HubFile), SettingsError> {
    match config {
        Some(path) => Ok((path.clone(), read_file(&path)?)),
        None if usual.exists() => Ok((usual.clone(), read_file(&usual)?)),
        None => Ok((usual, HubFile::default())),
    }
}

fn usual_listen() -> SocketAddr {
    LISTEN_USUAL.parse().unwrap_or_else(|_| SocketAddr::from(([127, 0, 0, 1], 8440)))
}

fn read_file(path: &Path) -> Result<HubFile, SettingsError> {
    let text = read(path)?;
    toml::from_str(&text)
        .map_err(|source| SettingsError::Form { path: path.to_owned(), source: Box::new(source) })
}

fn read(path: &Path) -> Result<String, SettingsError> {
    std::fs::read_to_string(path).map_err(|source| SettingsError::Read { path: path.to_owned(), source })
}

/// A receiver whose server takes mail to customers.
fn customer_mail(name: ReceiverName, alerts: &AlertSettings) -> Result<ReceiverName, SettingsError> {
    let is_mail =
        |receiver: &Receiver| receiver.name == name && receiver.channel.kind() == ReceiverKind::Smtp;
    if alerts.receivers.iter().any(is_mail) { Ok(name) } else { Err(SettingsError::CustomerMail { name }) }
}

fn notices(files: Vec<NoticeFile>) -> Result<NoticeSettings, SettingsError> {
    let mut settings = NoticeSettings::default();
    for NoticeFile { customer, url, secret_file, former_secret_file } in files {
        let to = webhook(WebhookFile { url, secret_file, former_secret_file })?;
        let (who, before) = match customer {
            Some(customer) => (customer.to_string(), settings.customers.insert(customer, to)),
            None => ("everybody else".to_owned(), settings.others.replace(to)),
        };
        if before.is_some() {
            return Err(SettingsError::NoticeTwice { who });
        }
    }
    Ok(settings)
}

/// How the hub is reached: `https://name` or `https://name:port`, nothing after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl {
    text: String,
    host: String,
}

/// Text that is no public URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text} is not how a hub is reached: write https://name or https://name:port, without a path")]
pub struct PublicUrlError {
    text: String,
}

impl PublicUrl {
    /// By an address.
    #[must_use]
    pub fn of(address: SocketAddr) -> Self {
        Self { text: format!("https://{address}"), host: address.ip().to_string() }
    }

    /// The URL as written in invites.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The name or address in it, as a certificate has it.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }
}

impl FromStr for PublicUrl {
    type Err = PublicUrlError;
    fn from_str(text: &str) -> Result<Self, PublicUrlError> {
        let refused = || PublicUrlError { text: text.chars().take(96).collect() };
        let url = Url::parse(text).map_err(|_| refused())?;
        let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        let anonymous = url.username().is_empty() && url.password().is_none();
        let host =
            url.host_str().filter(|_| url.scheme() == "https" && bare && anonymous).ok_or_else(refused)?;
        let unbracketed = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self { text: url.as_str().trim_end_matches('/').to_owned(), host: unbracketed })
    }
}

/// The names that the hub's own certificate is for.
#[must_use]
pub fn certificate_names(public_url: &PublicUrl, listen: IpAddr) -> Vec<String> {
    let mut names = vec![public_url.host().to_owned()];
    let own = (!listen.is_unspecified()).then(|| listen.to_string());
    let local = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    for name in own.into_iter().chain(local) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_public_url_is_a_name_and_perhaps_a_port() {
        let good = [
            ("https://hub.example", "https://hub.example", "hub.example"),
            ("https://hub.example:8440/", "https://hub.example:8440", "hub.example"),
            ("https://[::1]:8440", "https://[::1]:8440", "::1"),
        ];
        for (text, url, host) in good {
            let parsed: PublicUrl = text.parse().unwrap();
            assert_eq!((parsed.as_str(), parsed.host()), (url, host));
        }
        for bad in [
            "",
            "hub.example",
            "http://hub.example",
            "https://hub/x",
            "https://a:b@hub",
            "https://hub?x",
            "https://hub#x",
        ] {
            assert!(bad.parse::<PublicUrl>().is_err(), "{bad}");
        }
    }

    /// With every line said, too; lines that are commented out have no space behind the `#`.
    #[test]
    fn the_shipped_file_is_what_the_hub_reads() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("hub.toml");
        let shipped = include_str!("../../packaging/hub/hub.toml");
        let said: String = shipped
            .lines()
            .map(|line| line.strip_prefix('#').filter(|setting| !setting.starts_with(' ')).unwrap_or(line))
            .map(|line| format!("{line}\n"))
            .collect();
        let secret = folder.path().join("secret");
        std::fs::write(&secret, "s".repeat(SECRET_CHARS_MIN)).unwrap();
        std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
        let mut said = said;
        let receiver = "kind = \"ntfy\"\nserver = \"https://ntfy.example/\"\ntopic = \"t\"\n";
        for (named, text) in [("receiver-ops.toml", receiver), ("watcher-url", "https://hc.example/1")] {
            let path = folder.path().join(named);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
            said = said.replace(&format!("/etc/holdfast/{named}"), &path.display().to_string());
        }
        for named in [
            "webhook-secret",
            "former-webhook-secret",
            "notice-secret",
            "acme-secret",
            "database-password",
            "oidc-secret",
        ] {
            said = said.replace(&format!("/etc/holdfast/{named}"), &secret.display().to_string());
        }
        let load = |text: &str| {
            std::fs::write(&config, text).unwrap();
            let dir = folder.path().to_owned();
            Settings::load(Given { dir, config: Some(config.clone()), ..Given::default() }).unwrap()
        };
        let (short, whole) = (load(shipped), load(&said));
        assert_eq!((short.listen, short.connections_max), (whole.listen, whole.connections_max));
        assert_eq!((whole.alerts.receivers.len(), whole.alerts.watcher.unwrap().every_s), (1, 60));
        assert_eq!(whole.alerts.reach, short.alerts.reach);
        assert!(short.alerts.backup.is_none() && whole.alerts.backup.is_some());
        assert!(short.public_url.is_none() && short.webhook.is_none());
        assert!(whole.public_url.is_some() && whole.webhook.unwrap().former_secret.is_some());
        assert_eq!(short.certificates.host_life, whole.certificates.host_life);
        assert!(short.certificates.files.is_none() && whole.certificates.files.is_some());
        assert!(short.provider.is_none() && whole.provider.unwrap().groups.len() == 1);
        let (nobody, all) = (short.escrow_notice.reached(), whole.escrow_notice.reached());
        assert!(nobody.customers.is_empty() && !nobody.all_others);
        assert!(all.customers.len() == 1 && all.all_others);
    }

    #[test]
    fn the_file_is_closed_and_flags_go_over_it() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("hub.toml");
        let load = |text: &str| {
            std::fs::write(&config, text).unwrap();
            Settings::load(Given { dir: folder.path().to_owned(), ..Given::default() })
        };
        let secret = folder.path().join("secret");
        std::fs::write(&secret, "s".repeat(40)).unwrap();
        let hook = |url: &str| format!("[webhook]\nurl = \"{url}\"\nsecret_file = {secret:?}\n");
        assert_eq!(load("").unwrap().listen.to_string(), LISTEN_USUAL);
        assert_eq!(load("listen = \"0.0.0.0:1\"").unwrap().listen.to_string(), "0.0.0.0:1");
        assert!(load(&hook("https://alarm.example/x")).unwrap().webhook.is_some());
        assert!(load(&hook("http://127.0.0.1:9/x")).unwrap().webhook.is_some());
        assert!(matches!(load(&hook("http://alarm.example/x")), Err(SettingsError::WebhookUrl { .. })));
        let told = |who: &str| {
            format!("[[escrow_notice]]\n{who}url = \"https://x.example\"\nsecret_file = {secret:?}\n")
        };
        let one = told("customer = \"acme\"\n");
        assert!(load(&(one.clone() + &told(""))).unwrap().escrow_notice.reached().all_others);
        for twice in [one.repeat(2), told("").repeat(2)] {
            assert!(matches!(load(&twice), Err(SettingsError::NoticeTwice { .. })));
        }
        assert!(matches!(load("lisen = \"0.0.0.0:1\""), Err(SettingsError::Form { .. })));
        assert_eq!(load("").unwrap().artifacts.bytes_max, 20 << 30);
        assert_eq!(load("release_gib_max = 1").unwrap().artifacts.bytes_max, 1 << 30);
        assert!(matches!(load("release_gib_max = 0"), Err(SettingsError::ReleaseSize)));
        assert!(matches!(load("connections_max = 0"), Err(SettingsError::Connections)));
        std::fs::write(&secret, "short").unwrap();
        assert!(matches!(load(&hook("https://alarm.example/x")), Err(SettingsError::WebhookSecret { .. })));
        std::fs::write(&config, "listen = \"0.0.0.0:1\"").unwrap();
        let listen = "127.0.0.1:2".parse().unwrap();
        let given = Given { dir: folder.path().to_owned(), listen: Some(listen), ..Given::default() };
        assert_eq!(Settings::load(given).unwrap().listen, listen);
    }
}
