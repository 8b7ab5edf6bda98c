//! A host with an off-site target and a running agent.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use agentd::execute::failpoint::{Failpoints, Nowhere};
use agentd::model::boot::BootMoment;
use agentd::model::escrow::Codes;
use agentd::model::view::{HeavyView, HostSnapshot, ProgressLines};
use agentd::plan::escrow::Purpose;
use agentd::port::admin_socket;
use agentd::port::clock::{Clock, Pause, RealClock, SyncQuery};
use agentd::port::host_key;
use agentd::port::host_replacement::HandOverFolder;
use agentd::port::hub::Contact;
use agentd::port::store::Store;
use agentd::port::store::escrow::Goal;
use agentd::task::admin_socket::StatusTask;
use agentd::task::metrics::MetricsSource;
use agentd::task::stop::{self, Stopper};
use agentd::task::usage::UsageQueue;
use holdfast_protocol::desired::Desired;
use holdfast_protocol::escrow::CodeNumber;
use holdfast_protocol::id::TargetName;
use holdfast_protocol::job::{HostEpoch, UtcSecond};
use holdfast_protocol::report::Sections;
use holdfast_protocol::secret::Secret;
use holdfast_protocol::storage::{Approval, Backend, Sealed, StorageTarget};
use holdfast_recovery::RecoveryCode;
use holdfast_recovery::escrow::{Context, Escrow, EscrowFile, Record};
use holdfast_seal::backup_key::BackupKey;
use holdfast_seal::{Creds, HostKey, SealContext};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::sync::watch;

const KEY: &[u8] = include_bytes!("../../../../seal/tests/backup-key.json");

/// The mark in the marker of a disk.
pub const MARK: &str = "01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a01";

pub fn key() -> BackupKey {
    BackupKey::parse(KEY).unwrap()
}

/// What the key is changed to.
pub fn other_key() -> BackupKey {
    BackupKey::parse(include_bytes!("../../../../recovery/tests/keys/none-3.json")).unwrap()
}

/// The host's clock, set ahead as a test needs.
struct Ahead(Mutex<SignedDuration>, RealClock);

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        self.1.now() + *self.0.lock().unwrap()
    }
    fn monotonic(&self) -> std::time::Duration {
        self.1.monotonic()
    }
    fn boot_moment(&self) -> BootMoment {
        self.1.boot_moment()
    }
    fn sleep(&self, pause: std::time::Duration) -> Pause<'_> {
        self.1.sleep(pause)
    }
    fn synchrony(&self) -> SyncQuery<'_> {
        self.1.synchrony()
    }
}

pub struct Place {
    path: PathBuf,
    _folder: Option<tempfile::TempDir>,
    runtime: Runtime,
    store: Store,
    clock: Arc<Ahead>,
    _stopper: Stopper,
}

impl Place {
    pub fn new() -> Self {
        let folder = lay_down(&key());
        let place = Self::at(folder.path(), Arc::new(Nowhere));
        Self { _folder: Some(folder), ..place }
    }

    /// The agent starts in a folder that was laid down.
    pub fn at(path: &Path, failpoints: Arc<dyn Failpoints>) -> Self {
        let state = path.join("state");
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let clock = Arc::new(Ahead(Mutex::new(SignedDuration::ZERO), RealClock::start()));
        let store = Store::open(&state, clock.now()).unwrap();
        let (stopper, stop) = stop::pair();
        let contact = Contact { reached_at: None, problem: None, certificate_ends_at: Timestamp::MAX };
        let as_clock: Arc<dyn Clock> = clock.clone();
        let sections = watch::channel(Arc::new(Sections::default())).1;
        let (contact, heavy) = (watch::channel(contact).1, watch::channel(HeavyView::default()).1);
        let metrics = MetricsSource {
            sections: sections.clone(),
            usage: UsageQueue::default(),
            contact: contact.clone(),
            heavy: heavy.clone(),
            clock: Arc::clone(&as_clock),
        };
        let reader = agentd::task::diagnostics::Reader {
            sections: sections.clone(),
            tasks: Arc::new(|| Box::pin(async { Ok(Vec::new()) })),
            clock: Arc::clone(&as_clock),
        };
        let task = StatusTask {
            take_tokens: Arc::new(|| Box::pin(async { Ok(std::collections::BTreeMap::new()) })),
            token_ages: Arc::new(Vec::new),
            reader,
            host: "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55".parse().unwrap(),
            own: holdfast_protocol::job::SeenHost {
                name: "box7".parse().unwrap(),
                fingerprint: "4f2a-9c01-77de-b3a8-0c11".parse().unwrap(),
            },
            hub: "https://hub".to_owned(),
            contact,
            store: store.clone(),
            helper: agentd::port::helper::Helper::shipped(),
            local_api: ([127, 0, 0, 1], 1).into(),
            handed: HandOverFolder::of(&state),
            sections,
            withdrawal: watch::channel(None).1,
            metrics,
            view: watch::channel(Arc::new(HostSnapshot::default())).1,
            lines: watch::channel(ProgressLines::new()).1,
            heavy,
            clock: as_clock,
            failpoints,
        };
        let listener = runtime.block_on(async { admin_socket::open(&state) }).unwrap();
        runtime.spawn(task.run(listener, stop));
        Self { path: path.to_owned(), _folder: None, runtime, store, clock, _stopper: stopper }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn codes(&self) -> Codes {
        self.runtime.block_on(self.store.escrow()).unwrap()
    }

    pub fn file(&self, code: CodeNumber) -> EscrowFile {
        self.runtime.block_on(self.store.escrow_files()).unwrap().remove(&code).unwrap().file
    }

    /// The records, as the running agent has them.
    pub fn store(&self) -> &Store {
        &self.store
    }

    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// A code by the store's own steps, as its command takes them.
    pub fn make(&self, purpose: Purpose) -> (CodeNumber, RecoveryCode) {
        self.runtime.block_on(self.another(purpose))
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub async fn another(&self, purpose: Purpose) -> (CodeNumber, RecoveryCode) {
        let now = self.clock.now();
        let code = RecoveryCode::generate().unwrap();
        let record = self.store.begin_escrow(goal(purpose, now), now).await.unwrap();
        let number = record.context.code;
        let file = Escrow::new(record.context, key()).wrap(&code).unwrap();
        self.store.note_shown((number, now), "a test".to_owned(), now).await.unwrap();
        self.store.keep_escrow((number, now), file, "a test".to_owned(), now).await.unwrap();
        (number, code)
    }

    pub fn later(&self, length: SignedDuration) {
        *self.clock.0.lock().unwrap() += length;
    }

    /// An operator signed for this target, and the agent started anew.
    pub fn signed_anew(self, target: &StorageTarget) -> Self {
        let Self { path, _folder: folder, runtime, store, .. } = self;
        drop((runtime, store));
        let state = path.join("state");
        // The thread of a store that was just dropped releases its lock a moment later.
        let lock = std::fs::File::open(state.join("agent.lock")).unwrap();
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
        drop(lock);
        sign_for(&state, target, 2);
        Self { _folder: folder, ..Self::at(&path, Arc::new(Nowhere)) }
    }

    /// The host's own key.
    pub fn host_key(&self) -> HostKey {
        host_key::open(&self.path().join("state")).unwrap()
    }

    #[expect(clippy::disallowed_methods, reason = "the program under test")]
    pub fn without_terminal(&self, arguments: &[&str]) -> (i32, String) {
        let output = Command::new("setsid")
            .arg(self.path().join("bin/agentd"))
            .args(arguments)
            .env("HOLDFAST_AGENT_CONFIG", self.path().join("agent.toml"))
            .env("TERM", "xterm")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8_lossy(&said).into_owned())
    }

    /// Neither the words nor the bare key are in any file of this host, nor in what was shown.
    pub fn nothing_of(&self, words: &[String], shown: &[&str]) {
        assert_eq!(words.len(), 11);
        let json = key().to_json().unwrap();
        let bare: serde_json::Value = serde_json::from_str(json.expose()).unwrap();
        let bare = bare["data"].as_str().unwrap().to_owned();
        let mut places: Vec<(String, String)> =
            shown.iter().map(|text| ("what was shown".to_owned(), (*text).to_owned())).collect();
        let mut folders: Vec<PathBuf> = vec![self.path().join("state")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let entry = entry.unwrap();
                let kind = entry.file_type().unwrap();
                if kind.is_dir() {
                    folders.push(entry.path());
                } else if kind.is_file() {
                    let bytes = std::fs::read(entry.path()).unwrap();
                    places.push((
                        entry.path().display().to_string(),
                        String::from_utf8_lossy(&bytes).into_owned(),
                    ));
                }
            }
        }
        assert!(places.iter().any(|(name, _)| name.ends_with("agent.db")));
        for (name, text) in &places {
            assert!(!text.contains(&bare), "the key is in {name}");
            // Three of its words in a row come from the code, not from chance.
            for three in words.windows(3) {
                for between in [" ", "\n", "-", ", "] {
                    assert!(!text.contains(&three.join(between)), "words are in {name}");
                }
            }
        }
    }
}

/// What a code is made for here. The store gives it its number.
fn goal(purpose: Purpose, at: Timestamp) -> Goal {
    let context = Context {
        host: "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55".parse().unwrap(),
        host_name: "box7".parse().unwrap(),
        customer: "acme".parse().unwrap(),
        epoch: HostEpoch::new(3),
        code: CodeNumber::FIRST,
        made_at: UtcSecond::new(at).unwrap(),
    };
    let record = Record { context, fingerprint: key().fingerprint().clone() };
    Goal { record, target: "off1".parse().unwrap(), purpose, by: "a test".to_owned() }
}

/// What a code of this host is for.
pub fn record() -> Record {
    goal(Purpose::First, RealClock::start().now()).record
}

/// A code that was made, and the file that it opens; used in more than one host, since making one is slow.
pub struct Made {
    pub code: RecoveryCode,
    pub file: EscrowFile,
    at: Timestamp,
}

impl Made {
    /// With this number, so long ago.
    pub fn new(number: u32, ago: SignedDuration) -> Self {
        let at = RealClock::start().now() - ago;
        let Record { context, .. } = goal(Purpose::First, at).record;
        let context = Context { code: CodeNumber::try_from(number).unwrap(), ..context };
        let code = RecoveryCode::generate().unwrap();
        let file = Escrow::new(context, key()).wrap(&code).unwrap();
        Self { code, file, at }
    }
}

/// A host's folder in which no agent runs: the key that is signed for, and the codes that were kept there before.
pub fn lay_down_with(signed: &BackupKey, kept: &[Made]) -> tempfile::TempDir {
    let folder = lay_down(signed);
    let state = folder.path().join("state");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store = Store::open_on_callers_thread(&state, RealClock::start().now()).unwrap();
    runtime.block_on(async {
        let by = || "a test".to_owned();
        for Made { file, at, .. } in kept {
            let purpose =
                store.escrow().await.unwrap().codes.first().map_or(Purpose::First, |_| Purpose::Another);
            let number = store.begin_escrow(goal(purpose, *at), *at).await.unwrap().context.code;
            store.note_shown((number, *at), by(), *at).await.unwrap();
            store.keep_escrow((number, *at), file.clone(), by(), *at).await.unwrap();
        }
    });
    folder
}

/// A host's folder: its program, its settings, an attached off-site target, and the document that names it.
fn lay_down(signed: &BackupKey) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    std::fs::create_dir_all(folder.path().join("bin")).unwrap();
    std::fs::create_dir(&state).unwrap();
    symlink(env!("CARGO_BIN_EXE_agentd"), folder.path().join("bin/agentd")).unwrap();
    std::fs::write(folder.path().join("agent.toml"), settings(&state)).unwrap();
    sign_for(&state, &target(&state, signed), 1);
    folder
}

/// What a signature for a target leaves, and the document that names it.
fn sign_for(state: &Path, target: &StorageTarget, generation: u32) {
    let now = RealClock::start().now();
    attach(state, target, now);
    let document = json!({ "schema": "holdfast.desired/v1", "generation": generation, "poll_interval_s": 30,
        "storage": [target], "guests": [{ "uid": "018f3c1e-6b1f-7c1d-9d0a-000000000001", "name": "web-1",
            "customer": "acme", "vmid": 101, "run": "running", "golden": "2026.11.1",
            "size": { "cores": 2, "memory_mib": 512, "swap_mib": 0, "rootfs_gib": 8 },
            "network": { "bridge": "vmbr0", "address": "10.66.0.1/24", "gateway": "10.66.0.254" } }] });
    let desired = Desired::parse(document.to_string().as_bytes()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store = Store::open_on_callers_thread(state, now).unwrap();
    runtime.block_on(store.offer_desired(desired, now)).unwrap();
}

/// The target as an operator requests it and signs for it.
fn target(state: &Path, key: &BackupKey) -> StorageTarget {
    let host_key = host_key::open(state).unwrap();
    let backend: Backend =
        serde_json::from_value(json!({ "pbs": { "server": "10.66.0.1", "datastore": "store1",
        "namespace": "hf", "fingerprint": vec!["86"; 32].join(":"), "key": key.fingerprint() } }))
        .unwrap();
    let name: TargetName = "off1".parse().unwrap();
    let meant = SealContext { target: &name, backend: &backend };
    let creds =
        Creds::new(meant, "pve@pbs!bk".to_owned(), Secret::new("secret".to_owned()), Some(key.clone()))
            .unwrap();
    target_of(&backend, &creds.seal(&host_key.recipient().unwrap()).unwrap())
}

/// The target, by its backend and its sealed credentials.
pub fn target_of(backend: &Backend, creds: &Sealed) -> StorageTarget {
    serde_json::from_value(
        json!({ "name": "off1", "backend": backend, "class": "slow", "role": "offsite-backup",
        "state": "attached", "label": "away", "default": false, "schedulable": true, "creds": creds }),
    )
    .unwrap()
}

/// The records that a signed job leaves: another test covers the signing.
fn attach(state: &Path, target: &StorageTarget, at: Timestamp) {
    drop(Store::open_on_callers_thread(state, at).unwrap());
    let connection = rusqlite::Connection::open(state.join("agent.db")).unwrap();
    let approval = serde_json::to_string(&Approval::of(target)).unwrap();
    connection
        .execute(
            "INSERT OR REPLACE INTO storage_target (name, approval, standing, mark, by, at)
             VALUES ('off1', ?1, 'attached', ?2, 'job', ?3)",
            (approval, MARK, at.as_microsecond()),
        )
        .unwrap();
    let disk = json!({ "name": "usb1", "class": "slow", "role": "local-backup",
        "backend": { "usb": { "uuid": "0b5f1f3c-9d0e-4a6b-8f51-1c2d3e4f5a6b" } } });
    connection
        .execute(
            "INSERT OR REPLACE INTO storage_target (name, approval, standing, mark, by, at)
             VALUES ('usb1', ?1, 'attached', ?2, 'job', ?3)",
            (disk.to_string(), MARK, at.as_microsecond()),
        )
        .unwrap();
}

fn settings(state: &Path) -> String {
    let token = |name: &str| {
        format!(
            "[proxmox.tokens.{name}]\nid = \"hf@pve!{name}\"\nsecret_file = \"{}/{name}\"\n",
            state.display()
        )
    };
    format!(
        "[proxmox]\nurl = \"https://127.0.0.1:1\"\nnode = \"pve1\"\npins = [\"spki/sha256:{}\"]\n\
         pool = \"holdfast\"\nstorage = \"local\"\nbridge = \"vmbr1\"\nvmid_range = [300, 399]\n{}{}{}\
         [local_api]\nlisten = [\"127.0.0.1:2\"]\n[state]\ndir = \"{}\"\n",
        "0".repeat(64),
        token("observe"),
        token("operate"),
        token("allocate"),
        state.display()
    )
}
