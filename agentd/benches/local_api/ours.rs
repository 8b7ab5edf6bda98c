//! The local API with two guests on a temporary store.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agentd::api::{ApiSettings, Local, routes};
use agentd::model::boot::{BootId, BootMoment};
use agentd::model::clock_trust::Synchrony;
use agentd::model::policy::QuiesceBound;
use agentd::model::view::HostSnapshot;
use agentd::port::artifacts::Artifacts;
use agentd::port::clock::{Clock, Pause, SyncQuery};
use agentd::port::guest_address::GuestAddresses;
use agentd::port::local_tls::LocalLeaf;
use agentd::port::store::Store;
use agentd::port::store::access::Redemption;
use agentd::task::local_api::guests::{KnownAddresses, Member};
use agentd::task::local_api::{self, Listeners, Serving};
use agentd::task::stop::{self, Stopper};
use anyhow::{Result, anyhow, ensure};
use holdfast_protocol::desired::Desired;
use holdfast_protocol::pin::PinSet;
use holdfast_protocol::secret::Secret;
use jiff::{SignedDuration, Timestamp};
use net::tls::Trust;
use rusqlite::Connection;
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use uuid::Uuid;

use crate::client::{Endpoint, Wire};
use crate::{DB_AT, WEB_AT};

const GUESTS: [(&str, &str, IpAddr, u32); 2] = [
    ("018f3c1e-6b1f-7c1d-9d0a-000000000001", "web", WEB_AT, 300),
    ("018f3c1e-6b1f-7c1d-9d0a-000000000002", "db", DB_AT, 301),
];

/// Guests of the host that do not call, so that its records are those of a hundred.
const OTHERS: u32 = 98;

/// Runs this much faster, so that the measured guest, with two hundred requests a second, is within its rate; the flood
/// is not.
const FASTER: u32 = 150;

struct FastClock {
    begun: Instant,
    boot: BootMoment,
}

impl Clock for FastClock {
    #[expect(clippy::disallowed_methods, reason = "answers carry the time of day")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
    fn monotonic(&self) -> Duration {
        self.begun.elapsed() * FASTER
    }
    fn boot_moment(&self) -> BootMoment {
        self.boot.clone()
    }
    fn sleep(&self, pause: Duration) -> Pause<'_> {
        Box::pin(tokio::time::sleep(pause))
    }
    fn synchrony(&self) -> SyncQuery<'_> {
        Box::pin(async { Synchrony::Kept })
    }
}

pub struct Server {
    pub listener: Endpoint,
    pub web: String,
    pub db: String,
    pub store: Store,
    _stopper: Stopper,
    served: JoinHandle<()>,
    folder: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.served.abort();
    }
}

impl Server {
    #[expect(clippy::disallowed_methods, reason = "the server that is measured, ended with this")]
    pub async fn start() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let boot = BootId::parse("bench").ok_or_else(|| anyhow!("no boot id"))?;
        let clock: Arc<dyn Clock> =
            Arc::new(FastClock { begun: Instant::now(), boot: BootMoment { boot, ms: 0 } });
        let store = Store::open(folder.path(), clock.now())?;
        store.offer_desired(desired()?, clock.now()).await?;
        let raw = Connection::open(folder.path().join("agent.db"))?;
        let insert = "INSERT INTO guest (uid, name, customer, golden, place, vmid, made_by)
                      VALUES (?1, ?2, 'acme', '2026.11.1', 'made', ?3, ?1)";
        for (uid, name, _, vmid) in GUESTS {
            raw.execute(insert, (uid, name, vmid))?;
        }
        for number in 0..OTHERS {
            let (uid, name) = (Uuid::from_u128(u128::from(number) + 1), format!("other-{number}"));
            raw.execute(insert, (uid.to_string(), name, 400 + number))?;
        }
        let leaf = LocalLeaf::open(folder.path())?;
        let (_, view) = watch::channel(Arc::new(HostSnapshot::default()));
        let settings = ApiSettings {
            pin: leaf.pin(),
            hub: "https://hub.example".to_owned(),
            quiesce_bound: QuiesceBound::usual(),
            test_guest: None,
            artifacts: Artifacts::of(folder.path()),
        };
        let [web, db] = [token(&store, GUESTS[0].0).await?, token(&store, GUESTS[1].0).await?];
        let addresses = GuestAddresses::reported(|_| None, Arc::clone(&clock));
        let local = Local::new(store.clone(), Arc::clone(&clock), view, settings, addresses);
        let listeners = Listeners::bind(&["127.66.8.1:0".parse()?]).await?;
        let address = *listeners.addresses()?.first().ok_or_else(|| anyhow!("no address"))?;
        let (stopper, stop) = stop::pair();
        let members = GUESTS.iter().map(|(uid, _, address, _)| Ok((*address, Member::Guest(uid.parse()?))));
        let known: KnownAddresses = members.collect::<Result<_>>()?;
        let (_, known) = watch::channel(Arc::new(known));
        let (tls, router) = (leaf.server()?, routes::router(local));
        let serving = Serving { listeners, tls, router, known, store: store.clone(), clock };
        let served = tokio::spawn(local_api::run(serving, stop));
        let tls = net::tls::client(&Trust::Pins(PinSet::from(leaf.pin())))?;
        let listener = Endpoint { address, connector: TlsConnector::from(Arc::new(tls)) };
        for (at, token) in [(WEB_AT, &web), (DB_AT, &db)] {
            ensure!(Wire::open(&listener, at, token).await?.ask().await? == 200, "a guest is served");
        }
        Ok(Self { listener, web, db, store, _stopper: stopper, served, folder })
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

fn desired() -> Result<Desired> {
    let guests: Vec<_> = GUESTS
        .iter()
        .map(|(uid, name, at, _)| {
            json!({"uid": uid, "name": name, "customer": "acme", "run": "running", "golden": "2026.11.1",
                "size": {"cores": 1, "memory_mib": 256, "swap_mib": 0, "rootfs_gib": 4},
                "network": {"bridge": "vmbr1", "address": format!("{at}/24")}})
        })
        .collect();
    let document =
        json!({"schema": "holdfast.desired/v1", "generation": 1, "poll_interval_s": 30, "guests": guests});
    Ok(Desired::parse(document.to_string().as_bytes())?)
}

/// Mints a claim and trades it.
#[expect(clippy::disallowed_methods, reason = "a claim's life is by the time of day")]
async fn token(store: &Store, uid: &str) -> Result<String> {
    let (now, claim, token) = (Timestamp::now(), Secret::new(format!("claim {uid}")), format!("token-{uid}"));
    let until = now.checked_add(SignedDuration::from_secs(600))?;
    store.mint_claim(uid.parse()?, claim.hash(), until, now).await?;
    let hash = Secret::new(token.clone()).hash();
    store.redeem_claim(Redemption { claim: claim.hash(), redeemer: None, token: hash }, now).await?;
    Ok(token)
}
