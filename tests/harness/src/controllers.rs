//! Simulated guest agents: claim and hello.
//!
//! In: the simulator, used directly and not through the agent's client, and the store of the running agent. Out:
//! nothing, until dropped. A controller has no peer while its agent is dead.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use agentd::model::records::HelloRecord;
use agentd::operation::Operation;
use agentd::operation::update_controller::Fetched;
use agentd::port::store::Store;
use agentd::port::store::access::{Redeemed, Redemption};
use holdfast_protocol::bootstrap::{BootstrapToken, Mode, VARIABLE};
use holdfast_protocol::local::desired::Turn;
use holdfast_protocol::local::restore_test::{StackCheck, StackHealth, TestReport};
use holdfast_protocol::report::Health;
use holdfast_protocol::secret::{Secret, TokenHash};
use jiff::Timestamp;

use crate::world::World;

/// How often a controller tries.
const EVERY: Duration = Duration::from_millis(700);

/// Whether the guests' controllers speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speech {
    Hello,
    /// They do until they must exchange themselves. Then they fetch the new one, and are silent from then on: the guest's
    /// own way back does not come either.
    Breaks,
    /// The same, and the guest puts its previous controller back, which says so.
    Returns,
    /// They do, and the new controller reports that it is not well.
    Unwell,
    /// They do. They discard the fetched controller, because it does not run here, and continue with their old
    /// messages.
    Refuses,
    /// They do not.
    Silence,
}

/// Acts for all guests, or is silent, for as long as it is awaited.
pub async fn speak(world: &World, store: &Store, speech: Speech) {
    if speech == Speech::Silence {
        return std::future::pending().await;
    }
    speak_while(world, store, &Cell::new(speech)).await;
}

/// Acts for all guests, with the speech that the cell holds at each moment.
pub async fn speak_while(world: &World, store: &Store, speech: &Cell<Speech>) {
    speak_every(EVERY, world, store, speech).await;
}

/// The same, as often as this.
pub async fn speak_every(every: Duration, world: &World, store: &Store, speech: &Cell<Speech>) {
    // A running guest keeps its environment until it stops: a bootstrap token that was traded is not traded again and
    // again.
    let mut traded = BTreeMap::new();
    let mut greeted = BTreeSet::new();
    loop {
        tokio::time::sleep(every).await;
        if speech.get() == Speech::Silence {
            continue;
        }
        Box::pin(take_up(world, store, speech.get())).await;
        let running = world.node.power.all();
        greeted.retain(|vmid| running.contains(vmid));
        for vmid in running {
            let Some(line) = environment(world, vmid) else {
                if greeted.insert(vmid) {
                    greet(world, store, vmid).await;
                }
                continue;
            };
            if traded.get(&vmid) == Some(&line) {
                continue;
            }
            if let Some(token) = token(&line)
                && trade(world, store, vmid, &token).await
            {
                traded.insert(vmid, line);
            }
        }
    }
}

/// A guest in its slot to exchange its controller fetches the new one, which says hello, or breaks.
async fn take_up(world: &World, store: &Store, speech: Speech) {
    let Ok(open) = store.open_operations().await else { return };
    for progress in open {
        let Operation::UpdateController(update) = &progress.operation else { continue };
        let (uid, now) = (update.target().uid, world.timeline.now());
        let runs = world.node.power.all().contains(&update.target().vmid.number());
        let Ok(Turn::Now(turn)) = store.turn_of(uid, update.sha256.clone()).await else { continue };
        // Once is enough: a waiting agent gets no new message from a controller that broke.
        let fetched = store.fetched(turn).await.is_ok_and(|fetched| matches!(fetched, Fetched::Yes(_)));
        let breaks = matches!(speech, Speech::Breaks | Speech::Returns);
        if runs && fetched && speech == Speech::Returns {
            store.note_returned(uid, update.sha256.clone());
            // Its agent has a full disk: it sends the hello again later.
            let _ = store.record_hello(uid, hello(now)).await;
        }
        if !runs || (fetched && breaks) || store.note_fetched(uid, turn, now).await.is_err() {
            continue;
        }
        let said = match speech {
            Speech::Hello => HelloRecord {
                version: update.version.as_str().to_owned(),
                build: Some(update.sha256.clone()),
                ..hello(now)
            },
            Speech::Unwell => HelloRecord {
                version: update.version.as_str().to_owned(),
                build: Some(update.sha256.clone()),
                health: Health::Unwell,
                ..hello(now)
            },
            Speech::Refuses => hello(now),
            Speech::Breaks | Speech::Returns | Speech::Silence => continue,
        };
        // Its agent has a full disk: it sends the hello again later.
        let _ = store.record_hello(uid, said).await;
    }
}

/// A running guest's environment.
fn environment(world: &World, vmid: u32) -> Option<String> {
    Some(world.node.world().guests.get(vmid).ok()?.main.get("env")?.to_owned())
}

/// The bootstrap token in it.
fn token(line: &str) -> Option<BootstrapToken> {
    let text = line.strip_prefix(VARIABLE)?.strip_prefix('=')?.to_owned();
    BootstrapToken::open(&Secret::new(text)).ok()
}

/// A guest that was made again from its own backup holds its old token, and so does a copy in its guest's place. It
/// says hello and trades nothing.
async fn greet(world: &World, store: &Store, vmid: u32) {
    let open = store.open_operations().await.unwrap_or_default();
    let again = open.iter().find(|progress| {
        let holds = match &progress.operation {
            Operation::Provision(made) => made.lost().is_some(),
            Operation::SwapGuest(_) => true,
            _ => false,
        };
        holds && progress.vmid().is_some_and(|own| own.number() == vmid)
    });
    if let Some(progress) = again {
        // A hello that cannot be written is missed, and the operation's bound passes.
        let _ = store.record_hello(progress.operation.uid(), hello(world.timeline.now())).await;
    }
}

fn hello(at: Timestamp) -> HelloRecord {
    HelloRecord {
        reported: Default::default(),
        version: "0.1.0".to_owned(),
        health: Health::Well,
        boot_id: "boot".to_owned(),
        build: None,
        at,
    }
}

/// Whether there was an answer: a bootstrap token that is refused once is refused for ever.
async fn trade(world: &World, store: &Store, vmid: u32, token: &BootstrapToken) -> bool {
    let now = world.timeline.now();
    let attempt = Redemption {
        claim: token.claim.hash(),
        redeemer: Some(TokenHash::of(vmid.to_string().as_bytes())),
        token: TokenHash::of(format!("token of {vmid}").as_bytes()),
    };
    if token.mode == Mode::RestoreTest {
        return report(store, attempt, now).await;
    }
    match store.redeem_claim(attempt, now).await {
        Ok(Redeemed::Granted { guest, .. }) => store.record_hello(guest, hello(now)).await.is_ok(),
        Ok(Redeemed::Refused | Redeemed::Twice { .. }) => true,
        // Its agent has a full disk: it tries again.
        Err(_) => false,
    }
}

/// The controller of a scratch guest: it starts, and reports one stack as well.
async fn report(store: &Store, attempt: Redemption, now: Timestamp) -> bool {
    let granted = match store.redeem_test_claim(attempt, now).await {
        Ok(Some(granted)) => granted,
        Ok(None) => return true,
        Err(_) => return false,
    };
    let stack = "shop".parse().expect("a plain name");
    let found = TestReport {
        stacks: vec![StackCheck { stack, health: StackHealth::Healthy, took_ms: 5 }],
        ..TestReport::default()
    };
    store.record_test_hello(granted.operation, "0.1.0".to_owned(), now).await.is_ok()
        && store.record_test_report(granted.operation, found, now).await.is_ok()
}
