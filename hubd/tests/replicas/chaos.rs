//! Faults under a fleet, and the table of what came of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::fault::Fault;
use crate::fleet::{Agent, Fleet, HELD_S, Random, asked};
use crate::hubs::Site;
use crate::judge::{all_is_durable, at_database, patiently, watch_epochs};
use crate::receiver::Receiver;
use crate::world::{Client, document};

const HUBS: usize = 3;

/// Hosts that are never heard of again: each is one alarm.
const SILENT: usize = 3;

/// Hosts that are held at a hub and get documents.
const WATCHERS: usize = 6;

const SEED: u64 = 26;

/// How many agents; `HOLDFAST_REPLICA_AGENTS` sets another number.
fn agents() -> usize {
    std::env::var("HOLDFAST_REPLICA_AGENTS").map_or(100, |text| text.parse().unwrap())
}

/// What is played, each fault by itself.
const FAULTS: [Fault; 9] = [
    Fault::Kill(0),
    Fault::EndSessions,
    Fault::CutCommits(4),
    Fault::Pause(1),
    Fault::CrashDatabase,
    Fault::Pause(2),
    Fault::Kill(1),
    Fault::Pause(0),
    Fault::Kill(2),
];

/// A document that was put, and when.
struct Put {
    host: String,
    generation: u64,
    at: Instant,
}

/// Puts a document now and then at whichever hub answers.
async fn put_documents(fleet: Arc<Fleet>, hosts: Vec<String>, hubs: Vec<Client>) -> Vec<Put> {
    let (mut puts, mut random) = (Vec::new(), Random(SEED + 1));
    for generation in 1_u64.. {
        for host in &hosts {
            let body = json!({ "reason": "because the test says so", "document": document(generation) });
            let seen = format!("\"{}\"", generation - 1);
            let path = format!("/v1/hosts/{host}/desired");
            let mut hub = usize::try_from(random.below(hubs.len() as u64)).unwrap();
            loop {
                if fleet.is_over() {
                    return puts;
                }
                let client = hubs[hub].with("if-match", &seen);
                let wait = Duration::from_secs(3);
                match asked::<Value>(&client, Method::PUT, &path, &body, wait).await {
                    // A repeat of one whose answer was lost finds its own document there.
                    Some((StatusCode::OK | StatusCode::PRECONDITION_FAILED, _)) => break,
                    Some(_) | None => hub = (hub + 1) % hubs.len(),
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            puts.push(Put { host: host.clone(), generation, at: Instant::now() });
            tokio::time::sleep(Duration::from_millis(100 + random.below(300))).await;
        }
    }
    puts
}

/// A fault, with what was answered and compared until all was well again.
struct FaultRecord {
    fault: Fault,
    from: Duration,
    to: Duration,
    answered: u64,
    compared: usize,
}

/// A site under load.
struct Load {
    site: Site,
    fleet: Arc<Fleet>,
    tasks: tokio::task::JoinSet<()>,
    watched: Vec<String>,
    /// How many agents find something wrong.
    wrong: usize,
}

impl Load {
    /// The last hosts report once and are silent; those before them are held at hubs; all others come and go.
    async fn begin(mut site: Site, count: usize) -> Self {
        let pace_ms = (count as u64 * 10).max(1_000);
        let fleet = Arc::new(Fleet { pace_ms, ..Fleet::default() });
        let (mut random, mut tasks) = (Random(SEED), tokio::task::JoinSet::new());
        for (name, host) in site.hosts.split_off(count + WATCHERS) {
            let clients = site.clients(&host);
            Agent::new(name, host, clients, 0).check_in(&fleet, false, 0).await.unwrap();
        }
        // A poll of a second makes their alarms come within the run.
        at_database(&site.server, move |client| {
            let sql = "UPDATE hosts SET poll_interval_s = 1 WHERE sequence IS NOT NULL";
            assert_eq!(client.execute(sql, &[]).unwrap(), SILENT as u64);
        })
        .await;
        let mut watched = Vec::new();
        for (name, host) in site.hosts.split_off(count) {
            let clients = site.clients(&host);
            watched.push(name.clone());
            let at = watched.len() % HUBS;
            tasks.spawn(Agent::new(name, host, clients, at).watch(Arc::clone(&fleet)));
        }
        let mut wrong = 0;
        for (number, (name, host)) in std::mem::take(&mut site.hosts).into_iter().enumerate() {
            let clients = site.clients(&host);
            let agent = Agent::new(name, host, clients, number % HUBS);
            // Every fifth finds something wrong, at some time of the run.
            let after = number.is_multiple_of(5).then(|| random.below(40));
            wrong += usize::from(after.is_some());
            tasks.spawn(agent.live(Arc::clone(&fleet), Random(SEED + 100 + number as u64), after));
        }
        Self { site, fleet, tasks, watched, wrong }
    }

    fn answered(&self) -> u64 {
        self.fleet.answered.load(Ordering::Relaxed)
    }

    /// One fault; until as many check-ins were answered as there are agents.
    async fn suffer(&mut self, fault: Fault, begun: Instant, count: usize) -> FaultRecord {
        let (from, before) = (begun.elapsed(), self.answered());
        fault.happen(&mut self.site).await;
        let goal = self.answered() + count as u64;
        patiently("agents are answered again", || self.answered() >= goal).await;
        let compared = all_is_durable(&self.site.server, &self.fleet).await;
        let answered = self.answered() - before;
        FaultRecord { fault, from, to: begun.elapsed(), answered, compared }
    }
}

fn line(what: &str, found: impl std::fmt::Display) {
    println!("| {what:<58} | {found:>14} |");
}

fn print_faults(played: &[FaultRecord]) {
    println!("\n| {:<36} | from s | to s | check-ins | hosts compared |", "fault");
    for FaultRecord { fault, from, to, answered, compared } in played {
        let (from, to) = (from.as_secs(), to.as_secs());
        println!("| {:<36} | {from:>6} | {to:>4} | {answered:>9} | {compared:>14} |", fault.name());
    }
    println!();
}

/// How long each document took; and how many never came.
fn print_waits(fleet: &Fleet, puts: &[Put]) -> usize {
    let woken = fleet.woken.lock().unwrap().clone();
    let took = |put: &Put| {
        let came_at = woken.get(&(put.host.clone(), put.generation))?;
        Some(came_at.saturating_duration_since(put.at))
    };
    let mut waits: Vec<Duration> = puts.iter().filter_map(took).collect();
    waits.sort_unstable();
    let share = |of: usize| waits[(waits.len() - 1) * of / 100].as_millis();
    line("documents put while hubs came and went", puts.len());
    line("of those on the way at the end", puts.len() - waits.len());
    line("from put to agent, of 50 and of 95 in a hundred", format!("{}, {} ms", share(50), share(95)));
    line("from put to agent, longest, faults included", format!("{} ms", share(100)));
    puts.len() - waits.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn hubs_that_are_killed_stopped_and_cut_off_lose_nothing_and_say_nothing_twice() {
    let (begun, count) = (Instant::now(), agents());
    let receiver = Receiver::default();
    let site = Site::start(HUBS, count + SILENT + WATCHERS, &receiver.start().await).await;
    println!("\n{count} agents, {HUBS} hubs, seed {SEED}; set up in {} s", begun.elapsed().as_secs());
    let mut load = Load::begin(site, count).await;
    let (admins, watched) = ((0..HUBS).map(|hub| load.site.admin(hub)).collect(), load.watched.clone());
    #[expect(clippy::disallowed_methods, reason = "it is awaited below")]
    let puts = tokio::spawn(put_documents(Arc::clone(&load.fleet), watched, admins));
    let epochs_over = Arc::new(AtomicBool::new(false));
    let epochs = watch_epochs(load.site.server.clone(), Arc::clone(&epochs_over));
    let mut played = Vec::new();
    for fault in FAULTS {
        played.push(load.suffer(fault, begun, count).await);
    }
    let expected = load.wrong + SILENT;
    let all_sent = async {
        while receiver.firing().len() < expected {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let sent = tokio::time::timeout(Duration::from_secs(180), all_sent).await;
    let Load { site, fleet, mut tasks, .. } = load;
    fleet.over.store(true, Ordering::Relaxed);
    let puts = puts.await.unwrap();
    // The last documents arrive within a poll.
    let ended = async { while tasks.join_next().await.is_some() {} };
    drop(tokio::time::timeout(Duration::from_secs(HELD_S + 5), ended).await);
    tasks.shutdown().await;
    let compared = all_is_durable(&site.server, &fleet).await;
    epochs_over.store(true, Ordering::Relaxed);
    let epochs = epochs.join().unwrap();
    let silences: Vec<i64> = at_database(&site.server, |client| {
        let sql = "SELECT count(*) FROM events WHERE kind = 'heartbeat_missed' GROUP BY host";
        client.query(sql, &[]).unwrap().iter().map(|row| row.get(0)).collect()
    })
    .await;
    let firing = receiver.firing();
    let twice: Vec<_> = firing.iter().filter(|(_, notices)| notices.len() > 1).collect();

    print_faults(&played);
    line("check-ins answered", fleet.answered.load(Ordering::Relaxed));
    line("check-ins not answered, and sent to another hub", fleet.failed.load(Ordering::Relaxed));
    line("hosts whose last acknowledged check-in is durable", format!("{compared} of {compared}"));
    line("alarms expected, and sent", format!("{expected}, {}", firing.len()));
    line("alarms sent twice (under two keys)", twice.len());
    line("requests repeated under the same key", receiver.repeats());
    line("silent hosts with one event of it", silences.iter().filter(|count| **count == 1).count());
    let lost = print_waits(&fleet, &puts);
    line("changes of a holder, and epochs that fell", format!("{}, {}", epochs.changes, epochs.fell.len()));
    line("the whole run", format!("{} s", begun.elapsed().as_secs()));
    assert!(sent.is_ok() && firing.len() == expected, "{} of {expected} alarms were sent", firing.len());
    assert!(twice.is_empty(), "{twice:?}");
    assert_eq!(silences, [1; SILENT]);
    assert_eq!(epochs.fell, Vec::<String>::new());
    // At least the stop of the hub that has the duties moves all of them.
    assert!(epochs.changes >= 8 && puts.len() > 20);
    // The newest document of each may be on its way when the run ends.
    assert!(lost <= WATCHERS, "{lost} documents never came");
}
