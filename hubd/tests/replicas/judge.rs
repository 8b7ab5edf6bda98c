//! What must hold of the database, whatever happens to hubs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hubd::postgres::Server;

use crate::fleet::Fleet;
use crate::postgres_server::{session_at, url_of};

/// Far longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(180);

/// Runs a question at the database on a thread of its own.
pub async fn at_database<T: Send + 'static>(
    server: &Server,
    question: impl FnOnce(&mut postgres::Client) -> T + Send + 'static,
) -> T {
    let server = server.clone();
    tokio::task::spawn_blocking(move || question(&mut session_at(&server))).await.unwrap()
}

/// Waits until it holds. How long that takes on a busy machine decides nothing.
pub async fn patiently(what: &str, mut holds: impl FnMut() -> bool) {
    let looking = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.unwrap_or_else(|_| panic!("never {what}"));
}

/// Everything that was acknowledged is in the database. No check-in is under way meanwhile. Answers how many hosts there
/// were.
pub async fn all_is_durable(server: &Server, fleet: &Fleet) -> usize {
    let _turn = fleet.turn.write().await;
    let acknowledged = fleet.acknowledged.lock().unwrap().clone();
    let kept: BTreeMap<String, i64> = at_database(server, |client| {
        let rows = client.query("SELECT name, coalesce(sequence, 0) FROM hosts", &[]).unwrap();
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    })
    .await;
    for (name, number) in &acknowledged {
        let kept = kept[name];
        assert!(kept >= i64::try_from(*number).unwrap(), "{name}: {number} was acknowledged, {kept} is kept");
    }
    acknowledged.len()
}

/// Epochs of all duties, as they were seen over time.
#[derive(Debug, Default)]
pub struct Epochs {
    pub newest: BTreeMap<String, i64>,
    pub changes: u32,
    pub fell: Vec<String>,
}

/// Looks at the leases until `over`. A database that is away is asked again.
pub fn watch_epochs(server: Server, over: Arc<AtomicBool>) -> std::thread::JoinHandle<Epochs> {
    std::thread::spawn(move || {
        let (mut epochs, mut session) = (Epochs::default(), None);
        while !over.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(100));
            let connected = session.take().or_else(|| {
                let config: postgres::Config = url_of(&server).parse().unwrap();
                config.connect(postgres::NoTls).ok()
            });
            let Some(mut client) = connected else { continue };
            let Ok(rows) = client.query("SELECT duty, epoch FROM hub_leases", &[]) else { continue };
            for row in &rows {
                let (duty, epoch): (String, i64) = (row.get(0), row.get(1));
                let before = epochs.newest.insert(duty.clone(), epoch).unwrap_or(epoch);
                if epoch < before {
                    epochs.fell.push(format!("{duty}: {before}, then {epoch}"));
                }
                epochs.changes += u32::from(epoch > before);
            }
            session = Some(client);
        }
        epochs
    })
}
