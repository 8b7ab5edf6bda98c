//! Tests of storage entries made by signature.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agentd::execute::entry::Keeper;
use agentd::execute::offsite::Asker;
use agentd::model::storage::{StorageView, TargetRecord};
use agentd::plan::entry::differences;
use agentd::port::helper::Helper;
use agentd::port::mounts::Mounts;
use agentd::port::pve::storage_admin;
use agentd::port::sealed_token;
use agentd::port::target_probe::TargetProbe;
use agentd::task::stop::{self, Stopper};
use agentd::task::storage::StorageTask;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::Desired;
use holdfast_protocol::job::JobState;
use holdfast_protocol::pin::{Pin, PinSet};
use holdfast_protocol::secret::Secret;
use holdfast_protocol::storage::report::TargetStatus;
use holdfast_protocol::storage::{Backend, Sealed};
use holdfast_seal::backup_key::BackupKey;
use holdfast_seal::token::Token;
use holdfast_seal::{Creds, HostKey, SealContext};
use serde_json::json;
use tokio::sync::watch;

use super::drift::{Agent, start};
use super::jobs::{ended, lay_down, leave, signed};
use super::servers::Dialled;
use super::world::{FastClock, World};

const SECRET: &str = "11111111-2222-3333-4444-555555555555";
const SILENT: &str = "the server does not answer";
const KEY_FILE: &[u8] = include_bytes!("../../../../seal/tests/backup-key.json");

/// A host whose storage loop has a sealed token, with a backup server that answers.
pub struct Ground {
    pub world: World,
    pub agent: Agent,
    key: Arc<HostKey>,
    view: watch::Receiver<Arc<StorageView>>,
    /// Policies and guests of the document.
    pub guests: serde_json::Value,
    generation: u64,
    /// Whether disks and servers answer when they are tried.
    answers: Arc<AtomicBool>,
    _stopper: Stopper,
}

fn fingerprint() -> String {
    vec!["86"; 32].join(":")
}

pub fn server() -> Backend {
    let key = BackupKey::parse(KEY_FILE).unwrap();
    serde_json::from_value(json!({ "pbs": { "server": "10.66.0.1", "datastore": "store1", "namespace": "hf",
        "fingerprint": fingerprint(), "key": key.fingerprint() } }))
    .unwrap()
}

impl Ground {
    #[expect(clippy::disallowed_methods, reason = "the loop under test runs beside the test, which ends it")]
    pub async fn new() -> Self {
        let world = World::start().await;
        let mut agent = start(&world).await;
        lay_down(&agent).await;
        agent.until("the host is seen", |view| view.seen_at.is_some()).await;
        let key = Arc::new(HostKey::generate());
        let token = world.dir.path().join("proxmox-storage.sealed");
        let secret = Secret::new(world.sim.tokens.get("hf@pve!storage").unwrap().clone());
        let opened = Token::new("hf@pve!storage".to_owned(), secret).unwrap();
        sealed_token::write(&token, &opened, &key, agentd::port::atomic_file::Given::Kept).unwrap();
        let spki: Pin = format!("spki/sha256:{}", world.sim.spki_sha256).parse().unwrap();
        let trust = net::tls::Trust::Pins(PinSet::from(spki));
        let targets: BTreeSet<_> = ["off1", "nas1"].iter().map(|name| name.parse().unwrap()).collect();
        let transport = storage_admin::transport(&world.sim.url, &trust).unwrap();
        let (sender, view) = watch::channel(Arc::new(StorageView::default()));
        let (stopper, stop) = stop::pair();
        let answers = Arc::new(AtomicBool::new(true));
        let task = StorageTask {
            store: agent.ports.store.clone(),
            helper: Helper::at_socket(world.dir.path().join("no-helper.sock")),
            mounts: Arc::new(Mounts::of_the_kernel()),
            view: sender,
            pve: Arc::clone(&agent.ports.pve),
            keeper: Some(Keeper { key: Arc::clone(&key), token, transport, targets }),
            asker: Asker {
                key: Arc::clone(&key),
                dial: Arc::new(Dialled(world.dir.path().join("pve/run/outside/10.66.0.1"))),
            },
            pruners: watch::channel(Arc::default()).0,
            probe: TargetProbe::reported({
                let answers = Arc::clone(&answers);
                move |_| answers.load(Ordering::Relaxed).then_some(()).ok_or_else(|| SILENT.to_owned())
            }),
            host: agent.view.clone(),
            clock: Arc::new(FastClock::start()),
        };
        tokio::spawn(task.run(stop));
        let ground = Self {
            world,
            agent,
            key,
            view,
            guests: json!({ "guests": [] }),
            generation: 0,
            answers,
            _stopper: stopper,
        };
        ground.serve(SECRET);
        ground
    }

    /// What the backup server takes from now on.
    pub fn serve(&self, secret: &str) {
        let place = self.world.dir.path().join("pve/run/outside/10.66.0.1");
        std::fs::create_dir_all(place.join("store1")).unwrap();
        std::fs::create_dir_all(self.world.dir.path().join("pve/run/outside/nas")).unwrap();
        std::fs::write(place.join("fingerprint"), fingerprint()).unwrap();
        std::fs::write(place.join("secret"), secret).unwrap();
    }

    fn sealed(&self, target: &str, backend: &Backend, to: &HostKey) -> Sealed {
        let target = target.parse().unwrap();
        let key = matches!(backend, Backend::Pbs { .. }).then(|| BackupKey::parse(KEY_FILE).unwrap());
        let meant = SealContext { target: &target, backend };
        let creds = Creds::new(meant, "pve@pbs!bk".to_owned(), Secret::new(SECRET.to_owned()), key).unwrap();
        creds.seal(&to.recipient().unwrap()).unwrap()
    }

    pub fn good(&self) -> Sealed {
        self.sealed("off1", &server(), &self.key)
    }

    pub async fn goal(&mut self, state: &str, name: &str, backend: &Backend, creds: Option<&Sealed>) {
        self.generation += 1;
        let role = if matches!(backend, Backend::Pbs { .. }) { "offsite-backup" } else { "bulk-data" };
        let mut target = json!({ "name": name, "backend": backend, "class": "slow", "role": role, "state": state,
            "label": format!("away {}", self.generation), "default": false, "schedulable": true });
        if let Some(creds) = creds {
            target.as_object_mut().unwrap().insert("creds".to_owned(), creds.as_str().into());
        }
        let mut document = json!({ "schema": "holdfast.desired/v1", "generation": self.generation, "poll_interval_s": 10,
            "storage": [target] });
        document.as_object_mut().unwrap().extend(self.guests.as_object().unwrap().clone());
        let desired = Desired::parse(document.to_string().as_bytes()).unwrap();
        self.agent.ports.store.offer_desired(desired, self.agent.ports.clock.now()).await.unwrap();
    }

    pub async fn until(&mut self, what: &str, is: impl Fn(&StorageView) -> bool) -> Arc<StorageView> {
        let waited = tokio::time::timeout(Duration::from_secs(30), self.view.wait_for(|view| is(view))).await;
        if let Ok(Ok(view)) = waited.map(|view| view.map(|view| Arc::clone(&view))) {
            return view;
        }
        panic!("never {what}: {:#?}", self.view.borrow())
    }

    pub async fn sign(&mut self, verb: &str) {
        let view = self
            .until("it waits for a signature", |view| {
                view.waiting.iter().any(|one| one.payload.contains(verb))
            })
            .await;
        let waiting = view.waiting.first().unwrap().clone();
        let mail = signed(&self.agent, &waiting).await;
        leave(&self.agent, &mail).await;
        assert_eq!(ended(&self.agent, mail.id).await.state, JobState::Done);
        self.until("it waits no more", |view| view.waiting.is_empty()).await;
    }

    /// Waits until no change of the entry is due any more.
    pub async fn settled(&self) -> TargetRecord {
        let mut changes = self.agent.ports.store.changes();
        let waiting = async {
            loop {
                changes.borrow_and_update();
                let record = self.agent.ports.store.storage_targets().await.unwrap().remove(0);
                if record.entry.is_none() {
                    return record;
                }
                changes.changed().await.unwrap();
            }
        };
        match tokio::time::timeout(Duration::from_secs(30), waiting).await {
            Ok(record) => record,
            Err(_) => panic!("never settled: {:#?}", self.view.borrow()),
        }
    }

    async fn refused(&mut self, code: &str) {
        let reported = |view: &StorageView| {
            view.targets.iter().any(|target| target.entry.iter().any(|what| what.contains(code)))
        };
        self.until(code, reported).await;
    }

    fn file(&self, name: &str) -> PathBuf {
        super::world::find(&self.world.dir.path().join("pve"), name)
    }

    fn definitions(&self) -> String {
        std::fs::read_to_string(self.file("storage.cfg")).unwrap()
    }

    /// Waits until the share has this state, with a problem of its own when it is gone, and until it is in the audit
    /// this often.
    async fn stands(&mut self, status: TargetStatus, words: &str, (action, times): (&str, usize)) {
        let is_gone = status.is_gone();
        let reported = |view: &StorageView| {
            let target = view.targets.first();
            target.is_some_and(|one| one.status == status && one.reason.contains(words))
                && view.problems.iter().any(|one| one.code == ErrorCode::StorageGone) == is_gone
        };
        self.until(words, reported).await;
        let noted = async {
            loop {
                let lines = self.agent.ports.store.audit(1000).await.unwrap();
                if lines.iter().filter(|line| line.action == action).count() == times {
                    return;
                }
                tokio::task::yield_now().await;
            }
        };
        let noted = tokio::time::timeout(Duration::from_secs(30), noted).await;
        assert!(noted.is_ok(), "{action} is not {times} times in the audit");
    }

    async fn differs(&self, record: &TargetRecord) -> Vec<String> {
        let entries = self.agent.ports.pve.storage_entries().await.unwrap();
        differences(&record.approval, entries.get(record.approval.name.as_str()))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signature_makes_the_entry_once_as_it_was_signed_for_and_letting_go_switches_it_off() {
    let mut ground = Ground::new().await;
    let before = ground.definitions();
    let creds = ground.good();
    ground.goal("attached", "off1", &server(), Some(&creds)).await;
    ground.until("held", |view| !view.waiting.is_empty()).await;
    assert_eq!(ground.definitions(), before, "the document alone makes nothing");
    ground.sign("attach_storage").await;
    let record = ground.settled().await;
    assert_eq!(ground.differs(&record).await, Vec::<String>::new());
    assert!(std::fs::read_to_string(ground.file("off1.enc")).unwrap().contains("\"kdf\":null"));
    assert_eq!(std::fs::read_to_string(ground.file("off1.pw")).unwrap().trim(), SECRET);
    let made = ground.definitions();
    assert!(made.contains("pbs: off1") && !made.contains(SECRET));

    // Other documents change nothing, whatever is in them now.
    for label in [Some(&creds), Some(&ground.sealed("off1", &server(), &HostKey::generate()))] {
        ground.goal("attached", "off1", &server(), label).await;
        let label = format!("away {}", ground.generation);
        let read = |view: &StorageView| view.targets.iter().any(|one| one.label.as_ref() == Some(&label));
        ground.until("the document is read", read).await;
        let record = ground.settled().await;
        assert_eq!(ground.differs(&record).await, Vec::<String>::new());
    }
    assert_eq!(ground.definitions(), made);

    ground.goal("disconnected", "off1", &server(), Some(&creds)).await;
    ground.sign("detach_storage").await;
    ground.settled().await;
    assert!(ground.definitions().contains("disable 1"));
    assert!(ground.file("off1.enc").exists(), "nothing of it is taken away");
    ground.goal("attached", "off1", &server(), Some(&creds)).await;
    ground.sign("attach_storage").await;
    let record = ground.settled().await;
    assert_eq!((ground.definitions(), ground.differs(&record).await), (made, Vec::new()));
    ground.agent.ports.store.verify_audit().await.unwrap();
    ground.agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_sealed_for_another_is_refused_with_its_code_and_nothing_is_made() {
    let mut ground = Ground::new().await;
    let (before, elsewhere) = (ground.definitions(), HostKey::generate());
    let other_server: Backend =
        serde_json::from_str(&serde_json::to_string(&server()).unwrap().replace("store1", "store2")).unwrap();
    let cut = {
        let good = ground.good();
        Sealed::try_from(good.as_str()[..good.as_str().len() - 8].to_owned()).unwrap()
    };
    for (creds, code) in [
        (ground.sealed("off1", &server(), &elsewhere), "SEAL_KEY"),
        (ground.sealed("off2", &server(), &ground.key), "SEAL_TARGET"),
        (ground.sealed("off1", &other_server, &ground.key), "SEAL_TARGET"),
        (cut, "SEAL_BROKEN"),
    ] {
        ground.goal("attached", "off1", &server(), Some(&creds)).await;
        ground.sign("attach_storage").await;
        ground.refused(code).await;
        assert_eq!(ground.definitions(), before, "{code}");
        assert!(ground.agent.ports.store.storage_targets().await.unwrap().remove(0).entry.is_some());
    }
    // Signed for one text, and the document has another one: not even opened.
    let (creds, swapped) = (ground.good(), ground.good());
    ground.serve("changed on the server");
    ground.goal("attached", "off1", &server(), Some(&creds)).await;
    ground.sign("attach_storage").await;
    ground.refused("401 Unauthorized").await;
    ground.goal("attached", "off1", &server(), Some(&swapped)).await;
    ground.refused("TARGET_CHANGED").await;
    assert_eq!(ground.definitions(), before);
    // The twin that is right.
    ground.serve(SECRET);
    ground.goal("attached", "off1", &server(), Some(&creds)).await;
    let record = ground.settled().await;
    assert_eq!(ground.differs(&record).await, Vec::<String>::new());
    ground.agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_that_is_there_is_never_overwritten() {
    let mut ground = Ground::new().await;
    let nfs: Backend =
        serde_json::from_value(json!({ "nfs": { "server": "nas", "export": "/srv/bulk" } })).unwrap();
    let by_hand = ground.world.by_hand(
        "POST",
        "/storage",
        &[
            ("storage", "nas1"),
            ("type", "nfs"),
            ("server", "nas"),
            ("export", "/srv/other"),
            ("content", "rootdir"),
        ],
    );
    assert_eq!(by_hand, 200);
    let before = ground.definitions();
    ground.goal("attached", "nas1", &nfs, None).await;
    ground.sign("attach_storage").await;
    let record = ground.settled().await;
    assert_eq!(ground.definitions(), before);
    assert!(ground.differs(&record).await[0].contains("its export is"));
    ground.goal("disconnected", "nas1", &nfs, None).await;
    ground.sign("detach_storage").await;
    ground.settled().await;
    assert_eq!(ground.definitions(), before, "somebody else's is not switched off either");
    ground.agent.stop().await;
}

/// Noticed by its server's silence and by Proxmox's status: each drop and each return is reported, with a line in the
/// audit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_share_that_drops_and_comes_back_is_reported_both_times() {
    for (kind, place) in [("nfs", ("export", "/srv/bulk")), ("cifs", ("share", "bulk"))] {
        let mut ground = Ground::new().await;
        let fields = json!({ "server": "nas", place.0: place.1 });
        let share: Backend = serde_json::from_value(json!({ kind: fields })).unwrap();
        let parameters =
            [("storage", "nas1"), ("type", kind), ("server", "nas"), place, ("content", "backup")];
        assert_eq!(ground.world.by_hand("POST", "/storage", &parameters), 200);
        // Its sealed credentials are not needed: root made the entry.
        let creds = (kind == "cifs").then(|| ground.sealed("nas1", &share, &ground.key));
        ground.goal("attached", "nas1", &share, creds.as_ref()).await;
        ground.sign("attach_storage").await;
        ground.stands(TargetStatus::ByProxmox, "", ("storage_returned", 0)).await;

        ground.answers.store(false, Ordering::Relaxed);
        ground.stands(TargetStatus::Dropped, SILENT, ("storage_dropped", 1)).await;
        ground.answers.store(true, Ordering::Relaxed);
        ground.stands(TargetStatus::ByProxmox, "", ("storage_returned", 1)).await;

        // Its server answers, and Proxmox has it not.
        let offline = ground.world.dir.path().join("pve/run/offline");
        std::fs::create_dir_all(&offline).unwrap();
        std::fs::write(offline.join("nas1"), "").unwrap();
        ground.stands(TargetStatus::Dropped, "not active", ("storage_dropped", 2)).await;
        std::fs::remove_file(offline.join("nas1")).unwrap();
        ground.stands(TargetStatus::ByProxmox, "", ("storage_returned", 2)).await;
        ground.agent.ports.store.verify_audit().await.unwrap();
        ground.agent.stop().await;
    }
}
