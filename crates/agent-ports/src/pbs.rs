//! The client of a Proxmox Backup Server.
//!
//! Input: a target that was approved, and credentials that were opened for this. Output: typed answers or a typed
//! error. Everything else about backups uses Proxmox VE, which also lists them and names their keys. Only the server
//! itself knows three things: whether each part is encrypted, who may remove what, and the result of its own
//! verification. The server's certificate is pinned as a whole, as Proxmox does it. Errors of this API are plain text,
//! whatever their header says. Deliberately absent: removing, changing or reading a backup; retries; a way to call any
//! other path.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::{KeyFingerprint, Vmid};
use holdfast_protocol::pin::{Pin, PinSet};
use holdfast_protocol::secret::Secret;
use holdfast_protocol::storage::Backend;
use holdfast_protocol::storage::report::PrunedBy;
use holdfast_seal::Creds;
use jiff::Timestamp;
use net::tls::Trust;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::pve::PveError;
use super::pve::error::Cause;
use super::pve::storage_admin;
use super::pve::transport::{Place, Request, Transport};
use crate::model::offsite::{ServerListing, Snapshot, Verification, VerifyEnd, VerifyTask};

/// The API's default port; a target names no port.
const PORT: u16 = 8007;

/// A snapshot takes some 600 bytes: ten thousand of them.
const LIST_MAX: usize = 8 << 20;

const ANSWER_MAX: usize = 64 << 10;

/// A sentence of the server's is shorter.
const SAYS_MAX: usize = 400;

/// Either of these lets a token remove backups.
const REMOVE: [&str; 2] = ["Datastore.Modify", "Datastore.Prune"];

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum PbsError {
    /// It is no backup server.
    #[error("the target is no backup server")]
    Other,
    /// No connection, or one that broke.
    #[error(
        "the backup server does not answer: check that it is up, and that this host reaches its port {PORT}"
    )]
    Unreachable(#[source] Cause),
    /// Our own time limit ran out.
    #[error("the backup server did not finish {call} within {limit_s} s: look at its load")]
    TimedOut { call: &'static str, limit_s: u64 },
    /// Another certificate than the one that was signed for. Nothing was sent.
    #[error(
        "the backup server shows another certificate ({offered}) than the one that was signed for: if it was changed on \
         purpose, put its fingerprint into the document and sign `attach_storage` again, else somebody sits in between"
    )]
    OtherCertificate {
        /// The pin of the certificate that it shows.
        offered: Pin,
    },
    /// Another error of the connection to the server.
    #[error("the backup server cannot be asked")]
    Way(#[source] PveError),
    /// The address or the pin cannot be used.
    #[error("the backup server cannot be asked")]
    SetUp(#[source] super::pve::SetUpError),
    #[error(
        "the backup server refuses our token: make it a new secret there, seal it and sign `attach_storage` again"
    )]
    Unauthorised,
    /// Another error, with the server's message.
    #[error("the backup server says no to {call} ({status}): {says}")]
    Refused { call: &'static str, status: u16, says: String },
    /// An answer that cannot be understood.
    #[error("the backup server's answer to {call} is not understood: {what}")]
    Garbled {
        call: &'static str,
        /// The fault.
        what: String,
    },
}

/// Makes connections to backup servers.
pub trait Dial: Send + Sync {
    /// To the one of a target.
    ///
    /// # Errors
    /// [`PbsError`].
    fn dial(&self, backend: &Backend) -> Result<Arc<dyn Transport>, PbsError>;
}

/// Over HTTPS, the certificate pinned.
#[derive(Clone, Copy, Debug, Default)]
pub struct Direct;

impl Dial for Direct {
    fn dial(&self, backend: &Backend) -> Result<Arc<dyn Transport>, PbsError> {
        let Backend::Pbs { server, fingerprint, .. } = backend else { return Err(PbsError::Other) };
        let url = format!("https://{}:{PORT}", server.as_str());
        storage_admin::transport(&url, &Trust::Pins(PinSet::from(leaf(fingerprint)?)))
            .map_err(PbsError::SetUp)
    }
}

/// Proxmox writes the same 32 bytes with colons.
fn leaf(fingerprint: &KeyFingerprint) -> Result<Pin, PbsError> {
    format!("leaf/sha256:{}", fingerprint.as_str().replace(':', "")).parse().map_err(|_| PbsError::Other)
}

/// One namespace of one server, with our token.
pub struct BackupServer {
    transport: Arc<dyn Transport>,
    authorization: Secret,
    datastore: String,
    namespace: Option<String>,
}

#[derive(Deserialize)]
struct Data<T> {
    data: T,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Row {
    backup_type: String,
    backup_id: String,
    backup_time: i64,
    fingerprint: Option<String>,
    #[serde(default)]
    files: Vec<File>,
    size: Option<u64>,
    #[serde(default)]
    protected: bool,
    verification: Option<Verified>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct File {
    filename: String,
    crypt_mode: Option<String>,
}

#[derive(Deserialize)]
struct Verified {
    state: String,
    upid: String,
}

#[derive(Deserialize)]
struct Task {
    status: String,
    exitstatus: Option<String>,
}

impl PbsError {
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::OtherCertificate { .. } => ErrorCode::PinMismatch,
            Self::Other
            | Self::Unreachable(_)
            | Self::TimedOut { .. }
            | Self::Way(_)
            | Self::SetUp(_)
            | Self::Unauthorised
            | Self::Refused { .. }
            | Self::Garbled { .. } => ErrorCode::Unavailable,
        }
    }
}

impl From<PveError> for PbsError {
    /// An error of the common transport, for this server.
    fn from(error: PveError) -> Self {
        match error {
            PveError::Unreachable { source, .. } => Self::Unreachable(source),
            PveError::TimedOut { call, limit_s } => Self::TimedOut { call, limit_s },
            PveError::PinMismatch { offered } => Self::OtherCertificate { offered },
            other => Self::Way(other),
        }
    }
}

impl BackupServer {
    /// Makes it. Nothing is sent yet.
    ///
    /// # Errors
    /// [`PbsError`].
    pub fn new(dial: &dyn Dial, backend: &Backend, creds: &Creds) -> Result<Self, PbsError> {
        let Backend::Pbs { datastore, namespace, .. } = backend else { return Err(PbsError::Other) };
        Ok(Self {
            transport: dial.dial(backend)?,
            authorization: Secret::new(format!("PBSAPIToken={}:{}", creds.user(), creds.password().expose())),
            datastore: datastore.as_str().to_owned(),
            namespace: namespace.as_ref().map(|namespace| namespace.as_str().to_owned()),
        })
    }

    /// `GET /access/permissions`, and from it who removes backups.
    ///
    /// # Errors
    /// [`PbsError`].
    pub async fn pruned_by(&self) -> Result<PrunedBy, PbsError> {
        let all: BTreeMap<String, BTreeMap<String, bool>> =
            self.get("GET /access/permissions", "/access/permissions", Vec::new(), ANSWER_MAX).await?;
        let own = self.place();
        // A privilege granted on a parent path holds here if it propagates, which the value says.
        let reaches = |path: &str, handed_down: bool| {
            path == own
                || (handed_down
                    && (path == "/" || own.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'))))
        };
        let may = all.iter().any(|(path, granted)| {
            granted
                .iter()
                .any(|(privilege, down)| REMOVE.contains(&privilege.as_str()) && reaches(path, *down))
        });
        Ok(if may { PrunedBy::Agent } else { PrunedBy::Server })
    }

    fn place(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("/datastore/{}/{namespace}", self.datastore),
            None => format!("/datastore/{}", self.datastore),
        }
    }

    /// `GET /admin/datastore/{store}/snapshots`: those of containers, without those that are still being written.
    ///
    /// # Errors
    /// [`PbsError`].
    pub async fn snapshots(&self) -> Result<Vec<Snapshot>, PbsError> {
        const CALL: &str = "GET /admin/datastore/{store}/snapshots";
        let path = format!("/admin/datastore/{}/snapshots", self.datastore);
        let rows: Vec<Row> = self.get(CALL, &path, self.params(Vec::new()), LIST_MAX).await?;
        let whole = rows
            .into_iter()
            .filter(|row| row.backup_type == "ct" && !row.files.is_empty() && row.size.is_some());
        Ok(whole.filter_map(snapshot).collect())
    }

    /// `POST /admin/datastore/{store}/verify` of one guest's backups, without those that were verified within so many
    /// days.
    ///
    /// # Errors
    /// [`PbsError`].
    pub async fn verify(&self, guest: Vmid, days: u32) -> Result<VerifyTask, PbsError> {
        const CALL: &str = "POST /admin/datastore/{store}/verify";
        let own = [
            ("backup-type", "ct".to_owned()),
            ("backup-id", guest.to_string()),
            ("ignore-verified", "1".to_owned()),
            ("outdated-after", days.to_string()),
        ];
        let path = format!("/admin/datastore/{}/verify", self.datastore);
        let params = self.params(own.map(|(name, value)| (name.to_owned(), Secret::new(value))).into());
        let upid: String = self.call(CALL, "POST", &path, params, ANSWER_MAX).await?;
        VerifyTask::parse(&upid)
            .ok_or_else(|| PbsError::Garbled { call: CALL, what: "no task's name".to_owned() })
    }

    /// `GET /nodes/localhost/tasks/{upid}/status`: how a verification ended; none while it runs.
    ///
    /// # Errors
    /// [`PbsError`].
    pub async fn ended(&self, task: &VerifyTask) -> Result<Option<VerifyEnd>, PbsError> {
        const CALL: &str = "GET /nodes/localhost/tasks/{upid}/status";
        let path = format!("/nodes/localhost/tasks/{}/status", escaped(task.as_str()));
        let task: Task = self.get(CALL, &path, Vec::new(), ANSWER_MAX).await?;
        Ok((task.status != "running").then(|| match task.exitstatus.as_deref() {
            Some("OK") => VerifyEnd::Well,
            said => {
                VerifyEnd::Badly(said.unwrap_or("it ended without a word").chars().take(SAYS_MAX).collect())
            }
        }))
    }

    /// Everything that is checked, read at one time.
    ///
    /// # Errors
    /// [`PbsError`].
    pub async fn look(&self, running: Option<&VerifyTask>) -> Result<ServerListing, PbsError> {
        let ended = match running {
            // A task that the server has forgotten has ended.
            Some(task) => match self.ended(task).await {
                Err(PbsError::Refused { .. }) => Some(VerifyEnd::Well),
                ended => ended?,
            },
            None => None,
        };
        Ok(ServerListing { pruned_by: self.pruned_by().await?, snapshots: self.snapshots().await?, ended })
    }

    fn params(&self, mut params: Vec<(String, Secret)>) -> Vec<(String, Secret)> {
        params.extend(self.namespace.iter().map(|ns| ("ns".to_owned(), Secret::new(ns.clone()))));
        params
    }

    async fn get<T: DeserializeOwned>(
        &self,
        call: &'static str,
        path: &str,
        params: Vec<(String, Secret)>,
        body_max: usize,
    ) -> Result<T, PbsError> {
        self.call(call, "GET", path, params, body_max).await
    }

    async fn call<T: DeserializeOwned>(
        &self,
        call: &'static str,
        method: &'static str,
        path: &str,
        params: Vec<(String, Secret)>,
        body_max: usize,
    ) -> Result<T, PbsError> {
        let place = if method == "GET" { Place::StorageRead } else { Place::Write };
        let path = format!("/api2/json{path}");
        let authorization = self.authorization.clone();
        let request = Request { call, method, path, params, authorization, place, body_max };
        let answer = self.transport.carry(request).await?;
        match answer.status {
            200 => serde_json::from_slice::<Data<T>>(&answer.body)
                .map(|answer| answer.data)
                .map_err(|error| PbsError::Garbled { call, what: error.to_string() }),
            401 => Err(PbsError::Unauthorised),
            status => {
                let text = String::from_utf8_lossy(&answer.body);
                let says = text.chars().filter(|c| !c.is_control()).take(SAYS_MAX).collect();
                Err(PbsError::Refused { call, status, says })
            }
        }
    }
}

/// Files of a snapshot that hold none of the guest's data: the list of its files, which is signed and never encrypted, and
/// the log, which `vzdump` uploads after the backup and the server lists without a mode. Any other file counts.
const WITHOUT_DATA: [&str; 2] = ["index.json.blob", "client.log.blob"];

/// A snapshot whose number cannot be a guest's VMID is not ours.
fn snapshot(row: Row) -> Option<Snapshot> {
    let guest = row.backup_id.parse::<u32>().ok().and_then(|number| Vmid::try_from(number).ok())?;
    // The fingerprint is also there where the files were only signed.
    let parts = row.files.iter().filter(|file| !WITHOUT_DATA.contains(&file.filename.as_str()));
    let sealed =
        parts.map(|file| file.crypt_mode.as_deref() == Some("encrypt")).reduce(|all, one| all && one);
    let key = row.fingerprint.and_then(|text| text.parse().ok()).filter(|_| sealed == Some(true));
    let verification = row.verification.and_then(|said| {
        Some(Verification { well: said.state == "ok", at: VerifyTask::parse(&said.upid)?.began() })
    });
    let at = Timestamp::from_second(row.backup_time).ok()?;
    Some(Snapshot { guest, at, key, protected: row.protected, verification })
}

fn escaped(text: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    text.bytes()
        .map(|byte| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
