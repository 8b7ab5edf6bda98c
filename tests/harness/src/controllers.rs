//! The guests' controllers: whoever runs and holds a ticket trades it at its agent and says hello.
//!
//! In: the simulator, by hand and not through the agent's client, and the store of the agent that is up. Out: nothing, until
//! dropped; a controller whose agent is dead has nobody to speak to.

use std::time::Duration;

use agentd::model::record::HelloRecord;
use agentd::port::store::Store;
use agentd::port::store::access::{Redeemed, Redemption};
use holdfast_protocol::bootstrap::{Ticket, VARIABLE};
use holdfast_protocol::report::Health;
use holdfast_protocol::secret::{Secret, TokenHash};

use crate::world::World;

/// How often a controller tries.
const EVERY: Duration = Duration::from_millis(700);

/// Whether the guests' controllers speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speech {
    /// They do.
    Hello,
    /// They do not.
    Silence,
}

/// Speaks for all guests, for as long as it is awaited.
pub async fn speak(world: &World, store: &Store, speech: Speech) {
    if speech == Speech::Silence {
        return std::future::pending().await;
    }
    loop {
        tokio::time::sleep(EVERY).await;
        for vmid in world.node.power.all() {
            if let Some(ticket) = ticket(world, vmid) {
                trade(world, store, vmid, &ticket).await;
            }
        }
    }
}

/// The ticket in a running guest's environment.
fn ticket(world: &World, vmid: u32) -> Option<Ticket> {
    let held = world.node.world();
    let line = held.guests.get(vmid).ok()?.main.get("env")?.to_owned();
    let text = line.strip_prefix(VARIABLE)?.strip_prefix('=')?.to_owned();
    Ticket::open(&Secret::new(text)).ok()
}

async fn trade(world: &World, store: &Store, vmid: u32, ticket: &Ticket) {
    let now = world.timeline.now();
    let attempt = Redemption {
        claim: ticket.claim.hash(),
        redeemer: Some(TokenHash::of(vmid.to_string().as_bytes())),
        token: TokenHash::of(format!("token of {vmid}").as_bytes()),
    };
    if let Ok(Redeemed::Granted { guest, .. }) = store.redeem_claim(attempt, now).await {
        let hello = HelloRecord {
            version: "0.1.0".to_owned(),
            health: Health::Well,
            boot_id: "boot".to_owned(),
            at: now,
        };
        store.record_hello(guest, hello).await.expect("a hello is written");
    }
}
