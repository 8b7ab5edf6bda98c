//! A simulated Proxmox with an engine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agentd::execute::failpoint::{Failpoints, Nowhere};
use agentd::execute::run::run;
use agentd::execute::{GuestEndpoint, Ports};
use agentd::model::boot::{BootId, BootMoment};
use agentd::model::clock_trust::Synchrony;
use agentd::model::policy::{BrakeRule, Golden, Policy, TestPlace, VmidRange};
use agentd::model::records::{BackupWhy, HelloRecord, TakenBy, VolumeId};
use agentd::operation::log::Status;
use agentd::operation::progress::OperationState;
use agentd::operation::{Backup, Image, Operation, Provision, Snapshot, Source, Target, VmidRequest};
use agentd::port::artifacts::Artifacts;
use agentd::port::bridge::Bridges;
use agentd::port::clock::{Clock, Pause, SyncQuery};
use agentd::port::pve::task::{TaskKind, TaskQuery};
use agentd::port::pve::{ApiToken, Pve, PveClient, PveSettings, RealPace, Role};
use agentd::port::store::access::Redemption;
use agentd::port::store::journal::NewOperation;
use agentd::port::store::{OpenError, Store};
use agentd::port::target_probe::TargetProbe;
use holdfast_protocol::bootstrap::{BootstrapToken, VARIABLE};
use holdfast_protocol::desired::DesiredGuest;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::{GuestUid, OperationId, Vmid};
use holdfast_protocol::pin::{Pin, PinKind, PinSet};
use holdfast_protocol::report::Health;
use holdfast_protocol::secret::{Secret, TokenHash};
use jiff::Timestamp;
use pve_sim::fault::admin::{Edit, apply};
use pve_sim::in_process::{Ask, Reported, ask};
use pve_sim::node::HotMounts;
use pve_sim::{Builder, Handle, Sim};
use serde_json::json;

pub const ARCHIVE: &str = "backup2:backup/vzdump-lxc-155-2026_11_21-04_02_15.tar.zst";

/// Waits pass this many times faster; the wall clock is the machine's, as the simulator's is.
pub struct FastClock(Instant, u32);

impl FastClock {
    pub fn start() -> Self {
        Self::times(20)
    }

    pub fn times(factor: u32) -> Self {
        Self(Instant::now(), factor)
    }
}

impl Clock for FastClock {
    #[expect(clippy::disallowed_methods, reason = "the simulator stamps its tasks by the machine's clock")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn monotonic(&self) -> Duration {
        self.0.elapsed() * self.1
    }

    fn boot_moment(&self) -> BootMoment {
        let ms = u64::try_from(self.monotonic().as_millis()).unwrap();
        BootMoment { boot: BootId::parse("boot-1").unwrap(), ms }
    }

    fn sleep(&self, pause: Duration) -> Pause<'_> {
        Box::pin(tokio::time::sleep(pause / self.1))
    }

    fn synchrony(&self) -> SyncQuery<'_> {
        Box::pin(async { Synchrony::Kept })
    }
}

pub struct World {
    pub sim: Handle,
    pub dir: tempfile::TempDir,
    pub golden: PathBuf,
    pub golden_sha256: String,
    /// The storage for bulk volumes.
    pub bulk: &'static str,
}

pub fn uid(n: u8) -> GuestUid {
    format!("018f3c{n:02x}-6b1f-7c1d-9d0a-2f6d1c0b7a55").parse().unwrap()
}

pub fn vmid(number: u32) -> Vmid {
    Vmid::try_from(number).unwrap()
}

pub fn guest(n: u8) -> DesiredGuest {
    serde_json::from_value(json!({
        "uid": uid(n), "name": format!("web-{n}"), "customer": "acme", "run": "running", "golden": "2026.11.1",
        "size": { "cores": 2, "memory_mib": 256, "swap_mib": 64, "rootfs_gib": 2 },
        "network": { "bridge": "vmbr0", "address": format!("10.66.0.{n}/24"), "gateway": "10.66.0.254" },
        "volumes": [
            { "name": "db", "mount": "/srv/db", "size_gib": 1, "kind": "hot" },
            { "name": "media", "mount": "/srv/media", "size_gib": 1, "kind": { "bulk": { "none": "rebuilt from the origin" } } }
        ]
    }))
    .unwrap()
}

/// Whatever a test is about: nothing that must never be sent was sent.
impl Drop for World {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.sim.node.guard.offences(), Vec::new());
        }
    }
}

impl World {
    pub async fn start() -> Self {
        Self::with(HotMounts::Work).await
    }

    /// A world in which any call may be sent: for calls that an attacker would send with a token of ours.
    pub async fn unwatched() -> Self {
        Self::of(|builder| builder).await
    }

    /// Whether a running guest takes a new mount: on a node without AppArmor it does not.
    pub async fn with(hot_mounts: HotMounts) -> Self {
        Self::of(|builder| builder.hot_mounts(hot_mounts).guard()).await
    }

    async fn of(more: impl FnOnce(Builder) -> Builder) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let seed = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/engine/seed");
        let state = dir.path().join("pve");
        let pace = Duration::from_millis(1);
        let builder = Sim::builder().state_dir(&state).seed(seed).pace(pace).login_delay(pace);
        let sim = more(builder).start().await.unwrap();
        std::fs::create_dir_all(dir.path().join("net/hftest0/brif")).unwrap();
        let golden = find(&state, "vzdump-lxc-155-2026_11_21-04_02_15.tar.zst");
        let golden_sha256 = agentd::execute::DigestCache::default().sha256(&golden).unwrap();
        Self { sim, dir, golden, golden_sha256, bulk: "tank" }
    }

    pub fn pve(&self) -> Arc<dyn Pve> {
        Arc::new(self.client())
    }

    pub fn client(&self) -> PveClient {
        let spki: Pin = format!("spki/sha256:{}", self.sim.spki_sha256).parse().unwrap();
        let token = |name: &str| {
            let id = format!("hf@pve!{name}");
            ApiToken { secret: Secret::new(self.sim.tokens.get(&id).unwrap().clone()), id }
        };
        let settings = PveSettings {
            url: self.sim.url.clone(),
            node: "pve1".parse().unwrap(),
            trust: net::tls::Trust::Pins(PinSet::from(spki)),
            tokens: BTreeMap::from([
                (Role::Observe, token("observe")),
                (Role::Operate, token("operate")),
                (Role::Allocate, token("allocate")),
                (Role::Scratch, token("scratch")),
            ]),
        };
        PveClient::new(&settings, Arc::new(RealPace::default())).unwrap()
    }

    /// Opens the engine's store, waiting for the one before it to release its lock.
    pub async fn store(&self) -> Store {
        let folder = self.dir.path().join("agent");
        std::fs::create_dir_all(&folder).unwrap();
        let clock = FastClock::start();
        loop {
            match Store::open(&folder, clock.now()) {
                Ok(store) => return store,
                Err(OpenError::Held(_)) if clock.monotonic() < Duration::from_secs(200) => {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    pub async fn ports(&self, failpoints: Arc<dyn Failpoints>) -> Ports {
        let listener = GuestEndpoint {
            endpoint: "https://10.66.0.1:8443".to_owned(),
            pin: Pin::of(PinKind::Leaf, b"leaf"),
        };
        let clock: Arc<dyn Clock> = Arc::new(FastClock::start());
        let client = self.client();
        let scratch = client.for_scratch().map(|client| Arc::new(client) as Arc<dyn Pve>);
        let bridges = Bridges::at(self.dir.path().join("net"));
        Ports {
            failpoints,
            scratch,
            bridges,
            artifacts: Artifacts::of(&self.dir.path().join("agent")),
            targets: TargetProbe::reported(|_| Ok(())),
            ..Ports::new(Arc::new(client), self.store().await, clock, listener)
        }
    }

    pub async fn sound(&self) -> Ports {
        self.ports(Arc::new(Nowhere)).await
    }

    pub fn policy(&self) -> Policy {
        let golden = Golden {
            archive: VolumeId::new(ARCHIVE),
            sha256: Some(self.golden_sha256.clone().try_into().unwrap()),
            file: self.golden.clone(),
            build: None,
        };
        Policy {
            range: VmidRange::try_from([vmid(300), vmid(309)]).unwrap(),
            pool: "holdfast".parse().unwrap(),
            storage: "tank".parse().unwrap(),
            bulk_storage: Some(self.bulk.parse().unwrap()),
            guest_storages: BTreeSet::new(),
            backup_storage: Some("backup2".parse().unwrap()),
            bridge: "vmbr0".parse().unwrap(),
            kept: agentd::model::addresses::ReservedAddresses::default(),
            goldens: BTreeMap::from([("2026.11.1".parse().unwrap(), golden)]),
            golden_dump: None,
            scratch: Some(TestPlace {
                range: VmidRange::try_from([vmid(900), vmid(902)]).unwrap(),
                pool: "holdfast-scratch".parse().unwrap(),
                storage: "tank".parse().unwrap(),
                bridge: "vmbr0".parse().unwrap(),
                memory: 128.try_into().unwrap(),
                speech: None,
                twins: BTreeMap::new(),
                cores: 1.try_into().unwrap(),
            }),
            brake: BrakeRule::usual(),
        }
    }

    pub fn provision(&self, n: u8) -> Operation {
        let policy = self.policy();
        let golden = policy.goldens.values().next().unwrap();
        Operation::Provision(Box::new(Provision {
            volume_storages: Vec::new(),
            guest: guest(n),
            number: VmidRequest::AnyOf { range: policy.range, except: Vec::new() },
            source: Source::Image(Image {
                archive: golden.archive.clone(),
                sha256: golden.sha256.clone().unwrap(),
                file: golden.file.clone(),
            }),
            pool: policy.pool,
            storage: policy.storage,
            bulk_storage: policy.bulk_storage,
            backup_storage: policy.backup_storage,
        }))
    }

    /// A volume on a storage of plain folders takes no snapshot: backups of the guest are in mode `suspend` from now on.
    pub fn give_a_plain_volume(&self) {
        let config = "/nodes/pve1/lxc/300/config";
        for (path, key, value) in [
            ("/storage/local", "content", "iso,vztmpl,snippets,backup,rootdir"),
            (config, "protection", "0"),
            (config, "mp7", "local:1,mp=/plain,backup=1"),
        ] {
            assert_eq!(self.by_hand("PUT", path, &[(key, value)]), 200, "{path} {key}");
        }
    }

    /// A call of an administrator's. Gives the status.
    pub fn by_hand(&self, method: &str, path: &str, params: &[(&str, &str)]) -> u16 {
        let authorization =
            format!("PVEAPIToken=root@pam!lab={}", self.sim.tokens.get("root@pam!lab").unwrap());
        self.by(&authorization, method, path, params)
    }

    /// A call with any token. Gives the status.
    pub fn by(&self, authorization: &str, method: &str, path: &str, params: &[(&str, &str)]) -> u16 {
        self.answer(authorization, method, path, params).0
    }

    /// The same. Returns the status and its reason phrase: `403 Permission check failed`.
    pub fn said(&self, authorization: &str, method: &str, path: &str, params: &[(&str, &str)]) -> String {
        let (status, reason, _) = self.answer(authorization, method, path, params);
        format!("{status} {reason}")
    }

    /// The same, of a call that starts a task. Gives how the task ends.
    pub async fn task(
        &self,
        authorization: &str,
        method: &str,
        path: &str,
        params: &[(&str, &str)],
    ) -> String {
        let (status, reason, body) = self.answer(authorization, method, path, params);
        assert_eq!(status, 200, "{method} {path}: {reason}");
        let upid = body.pointer("/data").and_then(|data| data.as_str()).unwrap().to_owned();
        loop {
            let path = format!("/nodes/pve1/tasks/{upid}/status");
            let (_, _, reported) = self.answer(authorization, "GET", &path, &[]);
            if let Some(end) = reported.pointer("/data/exitstatus").and_then(|end| end.as_str()) {
                return end.to_owned();
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    fn answer(
        &self,
        authorization: &str,
        method: &str,
        path: &str,
        params: &[(&str, &str)],
    ) -> (u16, String, serde_json::Value) {
        let path = &format!("/api2/json{path}");
        match ask(&self.sim.node, &Ask { method, path, params, authorization }) {
            Reported::Answer { status, reason, body, .. } => {
                (status, reason, serde_json::from_slice(&body).unwrap_or_default())
            }
            other => panic!("{other:?}"),
        }
    }

    /// What a token of the agent's has to show.
    pub fn token(&self, role: &str) -> String {
        let id = format!("hf@pve!{role}");
        format!("PVEAPIToken={id}={}", self.sim.tokens.get(&id).unwrap())
    }

    /// The configuration files on the node, with random parts made uniform.
    pub fn guests(&self) -> BTreeMap<String, String> {
        let folder = find(&self.dir.path().join("pve"), "lxc");
        let mut all = BTreeMap::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            all.insert(name, text.lines().map(plain).collect::<Vec<_>>().join("\n"));
        }
        all
    }

    /// How many restores were ever begun for a number.
    pub async fn restores(&self, number: u32) -> usize {
        let query =
            TaskQuery { vmid: vmid(number), kind: TaskKind::Restore, role: Role::Allocate, since_epoch_s: 0 };
        self.pve().find_tasks(query).await.unwrap().len()
    }

    /// What our records say otherwise.
    pub fn records(&self, sql: &str) {
        let raw = rusqlite::Connection::open(self.dir.path().join("agent/agent.db")).unwrap();
        assert!(raw.execute(sql, []).unwrap() > 0, "{sql}");
    }

    /// As `pct unlock` on the node.
    pub fn unlock(&self, vmid: u32) {
        apply(&self.sim.node, &Edit::Unset { vmid, key: "lock".to_owned() }).unwrap();
    }

    /// By our records the backups are as large as those of a guest that holds a petabyte.
    pub fn large_backups(&self) {
        self.records("UPDATE backup SET bytes = 1125899906842624");
    }

    /// Every file or folder that is a guest's disk.
    pub fn disks(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        walk(&self.dir.path().join("pve"), &mut |path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            if (name.starts_with("vm-") || name.starts_with("subvol-")) && name.contains("-disk-") {
                found.insert(name.split('.').next().unwrap().to_owned());
            }
        });
        found
    }
}

/// MAC addresses and claims are random.
fn plain(line: &str) -> String {
    if let Some((before, _)) = line.split_once("HOLDFAST_BOOTSTRAP=ey") {
        return format!("{before}HOLDFAST_BOOTSTRAP=(a bootstrap token)");
    }
    if line.starts_with("snaptime: ") {
        return "snaptime: …".to_owned();
    }
    match line.split_once("hwaddr=") {
        Some((before, after)) => {
            format!("{before}hwaddr=…{}", after.split_once(',').map_or("", |(_, rest)| rest))
        }
        None => line.to_owned(),
    }
}

fn walk(folder: &std::path::Path, see: &mut dyn FnMut(&std::path::Path)) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        see(&entry.path());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            walk(&entry.path(), see);
        }
    }
}

pub fn find(folder: &std::path::Path, name: &str) -> PathBuf {
    let mut found = None;
    walk(folder, &mut |path| {
        if path.file_name().is_some_and(|n| n == name) {
            found = Some(path.to_owned());
        }
    });
    found.unwrap_or_else(|| panic!("there is no {name} in {}", folder.display()))
}

pub async fn open(ports: &Ports, n: u8, operation: Operation) -> agentd::operation::progress::OperationState {
    let new = NewOperation {
        id: OperationId::new(uuid::Uuid::from_u128(u128::from(n))),
        operation,
        generation: Generation::new(1),
        reason: "a test".to_owned(),
        at: ports.clock.now(),
    };
    ports.store.open_operation(new).await.unwrap()
}

/// The guest that the tests make first, as later operations name it.
pub fn target() -> Target {
    Target { uid: guest(1).uid, name: guest(1).name, vmid: vmid(300) }
}

/// A backup of it that was requested.
pub fn asked_backup() -> Backup {
    let storage = "backup2".parse().unwrap();
    Backup { target: target(), storage, why: BackupWhy::Asked, due: None, key: None, leaves_out: Vec::new() }
}

/// Makes it, with an agent that nothing disturbs, and gives that agent.
pub async fn made(world: &World) -> Ports {
    let ports = world.sound().await;
    let _controllers = Controllers::start(&ports);
    let done = end(&ports, 0, world.provision(1)).await;
    assert_eq!(done.status(), Status::Done, "{}", reported(&done));
    ports
}

/// Brings an operation to its end.
pub async fn end(ports: &Ports, n: u8, operation: Operation) -> OperationState {
    run(ports, open(ports, n, operation).await).await.unwrap()
}

/// A snapshot of that guest, which may be removed after this many seconds.
pub fn snapshot(name: &str, lives_s: i64) -> Operation {
    let now = FastClock::start().now().as_second();
    Operation::Snapshot(Snapshot {
        target: target(),
        name: name.parse().unwrap(),
        taken_by: TakenBy::Guest,
        expires_at: Some(Timestamp::from_second(now + lives_s).unwrap()),
        due: None,
    })
}

/// How many tasks of a kind were ever begun for that guest by the agent.
pub async fn tasks(world: &World, kind: TaskKind) -> usize {
    let query = TaskQuery { vmid: vmid(300), kind, role: Role::Operate, since_epoch_s: 0 };
    world.pve().find_tasks(query).await.unwrap().len()
}

/// The guests' controllers: every guest that runs and holds a bootstrap token trades it and says hello. Ends when
/// dropped.
pub struct Controllers(tokio::task::JoinHandle<()>);

impl Drop for Controllers {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Controllers {
    #[expect(clippy::disallowed_methods, reason = "the stand-in for programs that run beside the agent")]
    pub fn start(ports: &Ports) -> Self {
        let (pve, store) = (Arc::clone(&ports.pve), ports.store.clone());
        Self(tokio::spawn(async move {
            loop {
                for number in 300..310 {
                    speak(pve.as_ref(), &store, vmid(number)).await;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }))
    }
}

async fn speak(pve: &dyn Pve, store: &Store, vmid: Vmid) -> Option<()> {
    let config = pve.guest_config(vmid).await.ok()?;
    let text = config.env?.expose().strip_prefix(VARIABLE)?.strip_prefix('=')?.to_owned();
    let token = BootstrapToken::open(&Secret::new(text)).ok()?;
    if pve.guest_status(vmid).await.ok()?.power != agentd::port::pve::read::Power::Running {
        return None;
    }
    let now = FastClock::start().now();
    let proof = TokenHash::of(vmid.to_string().as_bytes());
    let attempt = Redemption {
        claim: token.claim.hash(),
        redeemer: Some(proof),
        token: TokenHash::of(format!("token {vmid}").as_bytes()),
    };
    if let agentd::port::store::access::Redeemed::Granted { guest, .. } =
        store.redeem_claim(attempt, now).await.ok()?
    {
        let hello = HelloRecord {
            reported: Default::default(),
            version: "0.1.0".to_owned(),
            health: Health::Well,
            boot_id: "boot".to_owned(),
            build: Some("e1".repeat(32).try_into().unwrap()),
            at: now,
        };
        store.record_hello(guest, hello).await.ok()?;
    }
    Some(())
}

/// An operation in a few lines, for a failing test.
pub fn reported(progress: &agentd::operation::progress::OperationState) -> String {
    let view = progress.view();
    let mut text = format!("{} {:?}\n", view.kind.as_str(), view.status);
    for step in &view.steps {
        text.push_str(&format!(
            "  {:<16} {:?} {}\n",
            step.name,
            step.status,
            step.note.as_deref().unwrap_or("")
        ));
    }
    text.push_str(&format!("  {:?}\n", view.problem));
    text
}
