//! A fresh store, with shorthands for what stories begin with.

use std::path::PathBuf;
use std::sync::Arc;

use alerts::Rules;
use holdfast_protocol::checkin::Coverage;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::{CorrelationId, HostId, InviteId};
use holdfast_protocol::secret::{Secret, TokenHash};
use hubd::authority::{AgentKey, Authority, Fresh, HostLife};
use hubd::clock::Clock;
use hubd::domain::alerting::{AlertContext, ReportedConditions};
use hubd::domain::host::HostRef;
use hubd::domain::identity::Presented;
use hubd::domain::merge::IncomingReport;
use hubd::domain::summary::Summary;
use hubd::postgres::{Postgres, Server, Users};
use hubd::sqlite::Sqlite;
use hubd::store::duty::DutyType;
use hubd::store::{
    By, CertificateRecord, Checkin, Claim, EventFilter, HolderId, Issue, LEASE, Lease, NewInvite, Redemption,
    SectionTexts, SharedStore, Term, WriterThread,
};
use hubd::task::alerts::AlertTimer;
use jiff::Timestamp;
use rcgen::KeyPair;
use tempfile::TempDir;
use uuid::Uuid;

use crate::postgres_server::fresh_database;
use crate::world::csr;

/// The hub of the stories.
const HOLDER: HolderId = HolderId::new(Uuid::from_u128(1));

pub const CORRELATION: CorrelationId = CorrelationId::new(Uuid::nil());

/// So many seconds after the stories begin.
pub fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

pub fn by(second: i64) -> By {
    By { operator: "eve".parse().unwrap(), correlation: CORRELATION, at: at(second), claim: None }
}

/// The same with an idempotency key, for a request of this content.
pub fn claiming(second: i64, key: &str, content: u8) -> By {
    By { claim: Some(Claim { key: key.parse().unwrap(), request: [content; 32] }), ..by(second) }
}

pub fn host_id(number: u128) -> HostId {
    HostId::new(Uuid::from_u128(number))
}

pub fn named(name: &str) -> HostRef {
    HostRef::Name(name.parse().unwrap())
}

pub fn fresh_key() -> AgentKey {
    AgentKey::from_csr(&csr(&KeyPair::generate().unwrap())).unwrap()
}

pub struct Fixture {
    pub store: SharedStore,
    authority: Arc<Authority>,
    engine: Engine,
    _writer: WriterThread,
    _folder: TempDir,
}

/// How the store is opened.
enum Engine {
    Sqlite(PathBuf),
    Postgres(Box<Server>),
}

impl Engine {
    /// Blocks.
    fn open(&self) -> (SharedStore, WriterThread) {
        match self {
            Self::Sqlite(path) => Sqlite::open(path, alerts_to_ops()).unwrap(),
            Self::Postgres(server) => {
                // Sessions may not begin on a thread that runs other tasks.
                let opened = std::thread::scope(|scope| {
                    scope.spawn(|| Postgres::open(server, alerts_to_ops(), Users::Several)).join().unwrap()
                });
                opened.unwrap()
            }
        }
    }
}

/// The default rules, with one channel.
fn alerts_to_ops() -> AlertContext {
    AlertContext::new(Rules::default().resolve(&["ops".parse().unwrap()]).unwrap(), at(0))
}

struct FixedClock(Timestamp);

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        self.0
    }
}

impl Fixture {
    pub fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::Sqlite(folder.path().join("hub.db"));
        Self::on(engine, folder)
    }

    pub fn postgres() -> Self {
        let server = std::thread::scope(|scope| scope.spawn(fresh_database).join().unwrap());
        Self::on(Engine::Postgres(Box::new(server)), tempfile::tempdir().unwrap())
    }

    fn on(engine: Engine, folder: TempDir) -> Self {
        let authority = Arc::new(Authority::open_or_make(folder.path(), Fresh::Yes, at(0)).unwrap());
        let (store, writer) = engine.open();
        Self { store, authority, engine, _writer: writer, _folder: folder }
    }

    /// Opens the same database anew, as another process would.
    pub fn restart(&mut self) {
        // The writer before ends with its store.
        (self.store, self._writer) = self.engine.open();
    }

    /// The server of its database.
    pub fn server(&self) -> &Server {
        match &self.engine {
            Engine::Postgres(server) => server,
            Engine::Sqlite(path) => panic!("{} is a file", path.display()),
        }
    }

    /// Another hub on the same database.
    pub fn second(&self) -> (SharedStore, WriterThread) {
        self.engine.open()
    }

    /// A look at the database for an export.
    pub fn snapshot(&self) -> Box<dyn hubd::transfer::RowSource + Send> {
        match &self.engine {
            Engine::Sqlite(path) => Box::new(hubd::sqlite::snapshot(path).unwrap()),
            Engine::Postgres(server) => {
                let begun = std::thread::scope(|scope| {
                    scope.spawn(|| hubd::postgres::snapshot(server)).join().unwrap()
                });
                Box::new(begun.unwrap())
            }
        }
    }

    /// The proof that this hub has a duty. It lasts for a story.
    pub async fn term<D: DutyType>(&self) -> Term<D> {
        self.lease().await.term().unwrap()
    }

    async fn lease<D: DutyType>(&self) -> Lease<D> {
        let asked_at = tokio::time::Instant::now();
        let grants = self.store.hold_leases(HOLDER, &[D::DUTY], LEASE).await.unwrap();
        Lease::granted(&grants, asked_at)
    }

    /// The secret of an invite for the host of this number.
    pub async fn invite(&self, number: u128) -> TokenHash {
        let secret = Secret::new(format!("secret {number}")).hash();
        let host_name = format!("host{number}").parse().unwrap();
        let new = NewInvite { id: InviteId::new(Uuid::from_u128(number)), host_name, secret };
        self.store.create_invite(by(0), new).await.ok().unwrap();
        secret
    }

    pub fn issue(&self) -> Issue {
        let authority = Arc::clone(&self.authority);
        Box::new(move |host, generation, key, now| {
            authority.issue_host(host, generation, key, now, HostLife::default())
        })
    }

    /// Invites a host and redeems the invite.
    pub async fn enrol(&self, name: &str, host: HostId, key: &AgentKey) -> CertificateRecord {
        let secret = Secret::new(format!("secret of {name}")).hash();
        let new = NewInvite { id: InviteId::new(host.uuid()), host_name: name.parse().unwrap(), secret };
        self.store.create_invite(by(0), new).await.ok().unwrap();
        let redemption = Redemption { secret, key: key.clone(), host, at: at(1), correlation: CORRELATION };
        self.store.redeem(redemption, self.issue()).await.ok().unwrap()
    }

    /// A host called `box7`.
    pub async fn box7(&self) -> HostId {
        self.enrol("box7", host_id(7), &fresh_key()).await.host
    }

    /// The timer of the alert engine, at this second.
    pub async fn timer(&self, second: i64) -> AlertTimer {
        let (store, lease) = (self.store.clone(), self.lease().await);
        AlertTimer::new(store, lease, Arc::new(FixedClock(at(second))), self._folder.path().to_owned())
    }

    /// Kinds of the events so far, oldest first.
    pub async fn kinds(&self) -> Vec<String> {
        let mut events = self.store.events(EventFilter::default(), 500).await.unwrap();
        events.reverse();
        events.into_iter().map(|event| event.kind).collect()
    }
}

/// A full report without sections.
pub fn checkin(host: HostId, generation: u32, sequence: u64) -> Checkin {
    Checkin {
        presented: Presented { host, generation },
        arriving: IncomingReport { coverage: Coverage::Full, run: Some(at(0)), sequence },
        held: Generation::NONE,
        sections: SectionTexts::default(),
        summary: Summary::default(),
        conditions: ReportedConditions::default(),
        jobs: Vec::new(),
        orders: Vec::new(),
        diagnostic: None,
        at: at(5),
        correlation: CORRELATION,
    }
}
