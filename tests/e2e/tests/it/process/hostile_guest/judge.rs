//! The effect of an attack on the neighbours.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use super::super::test_bridge::within;
use super::client::{Guest, PATIENCE, Token};
use super::net::{self, Net};

/// Calls of each neighbour during each attack. With two hellos each time, seven rounds are fewer than the 120 requests that a
/// guest may make at once, so none is refused for that.
const ROUNDS: usize = 14;

/// How many of the 1,024 connections may be seen with strangers. The limit is 64, but a connection that made room ends
/// a moment later, and the agent accepts up to 128 in a row before it lets others run. So more are seen. Half of all is
/// more than that explains.
const STRANGERS_MAX: usize = 512;

/// How an attack signals that it has begun, and learns that it may end.
pub struct Signals {
    begun: SyncSender<()>,
    over: Arc<AtomicBool>,
}

impl Signals {
    /// The attack runs at full load. A second call has no effect.
    pub fn begun(&self) {
        let _ = self.begun.try_send(());
    }

    /// The neighbours have their answers.
    pub fn over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    /// The same, for a later check.
    pub fn is_over(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.over)
    }
}

/// Ends the attack, also where a neighbour panics.
struct Ends<'a>(&'a Signals);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::SeqCst);
    }
}

/// What an attack counted.
#[derive(Debug, Default)]
pub struct Reported {
    pub counts: String,
    /// The agent's faults.
    pub faults: Vec<String>,
}

/// One line of the table.
pub struct Row {
    pub name: &'static str,
    pub reported: Reported,
    times: Vec<Duration>,
    failed: Vec<String>,
    strangers: usize,
}

impl Row {
    fn percentile(&self, of_hundred: usize) -> Duration {
        let mut times = self.times.clone();
        times.sort_unstable();
        let at = (times.len() * of_hundred).div_ceil(100).saturating_sub(1);
        times.get(at).copied().unwrap_or_default()
    }

    /// For a person who reads the log; it does not affect the verdict.
    pub fn line(&self) -> String {
        let ms = |of| self.percentile(of).as_secs_f64() * 1000.0;
        format!(
            "{:<20} {:>5} {:>6} {:>8.1} {:>8.1} {:>9}  {}",
            self.name,
            self.times.len() + self.failed.len(),
            self.failed.len(),
            ms(50),
            ms(99),
            self.strangers,
            self.reported.counts
        )
    }

    /// Everything that was wrong.
    pub fn faults(&self) -> Vec<String> {
        let too_many = (self.strangers > STRANGERS_MAX)
            .then(|| format!("strangers held {} connections at once", self.strangers));
        let all = self.failed.iter().chain(&self.reported.faults).chain(&too_many);
        all.map(|fault| format!("{}: {fault}", self.name)).collect()
    }
}

/// The heading of [`Row::line`].
pub const HEADING: &str = "attack               calls failed   p50 ms   p99 ms strangers  counted";

/// Honest calls one after the other, each on a connection of its own, as command-line calls are.
pub fn rounds(guest: &Guest) -> (Vec<Duration>, Vec<String>) {
    let (mut times, mut failed) = (Vec::new(), Vec::new());
    let mut judge = |what: &str, asked: std::io::Result<super::client::Answer>, own: bool| match asked {
        Ok(answer) if answer.status == 200 && (!own || answer.body["data"]["uid"] == guest.uid) => {}
        other => failed.push(format!("{what} of guest {}: {other:?}", guest.number)),
    };
    judge("hello", guest.says_hello(), false);
    for _ in 0..ROUNDS {
        let began = Instant::now();
        judge("self", guest.ask("GET", "/v1/self", Token::Own, ""), true);
        times.push(began.elapsed());
    }
    judge("hello", guest.says_hello(), false);
    (times, failed)
}

/// Connections that the agent's listener accepted, and whose other end is no guest's own address.
fn strangers(agent: u32, guests: u8) -> usize {
    let table = std::fs::read_to_string(format!("/proc/{agent}/net/tcp")).unwrap();
    let own: Vec<u32> = (1..=guests).map(|number| u32::from(net::address(number)).swap_bytes()).collect();
    let is_strange = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, here, there, state, ..] = words[..] else { return false };
        // Established, or closed by the other end alone. One that waits to be accepted has no owner yet: its inode is
        // 0.
        let is_held = ["01", "08"].contains(&state) && words.get(9).is_some_and(|inode| *inode != "0");
        let from = there.split_once(':').and_then(|(from, _)| u32::from_str_radix(from, 16).ok());
        here.ends_with(":20FB") && is_held && from.is_some_and(|from| !own.contains(&from))
    };
    table.lines().skip(1).filter(is_strange).count()
}

/// Runs an attack in the hostile guest, and the neighbours' calls during it.
pub fn measured(
    name: &'static str,
    net: &Net,
    agent: u32,
    (hostile, neighbours): (&Guest, &[Guest]),
    attack: impl FnOnce(&Guest, &Signals) -> Reported + Send,
) -> Row {
    let (begun, has_begun): (SyncSender<()>, Receiver<()>) = sync_channel(1);
    let signals = Signals { begun, over: Arc::default() };
    let guests = u8::try_from(neighbours.len() + 1).unwrap();
    std::thread::scope(|scope| {
        let ends = Ends(&signals);
        let attacker = scope.spawn(|| within(net.guest(hostile.number), || attack(hostile, &signals)));
        has_begun.recv_timeout(PATIENCE).unwrap();
        let honest: Vec<_> = neighbours
            .iter()
            .map(|guest| scope.spawn(move || within(net.guest(guest.number), || rounds(guest))))
            .collect();
        let mut most = 0;
        while !honest.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            most = most.max(strangers(agent, guests));
            std::thread::yield_now();
        }
        drop(ends);
        let mut row =
            Row { name, reported: Reported::default(), times: vec![], failed: vec![], strangers: most };
        for neighbour in honest {
            let (times, failed) = neighbour.join().unwrap();
            row.times.extend(times);
            row.failed.extend(failed);
        }
        row.reported = attacker.join().unwrap();
        row
    })
}
