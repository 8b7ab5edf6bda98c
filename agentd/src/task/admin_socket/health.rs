//! The answer to the gate: which parts of the agent work.
//!
//! In: the last cycle, the store, the helper and the local API as they are now. Out: one state for each part. The gate
//! judges; nothing here says whether a build is good.

use std::time::Duration;

use agent_slots::health::{AgentHealth, PartState};
use holdfast_protocol::json::chain;
use jiff::SignedDuration;

use super::StatusTask;
use crate::model::view::HostSnapshot;
use crate::port::hub::Contact;

/// An observation is published each minute at least, and a cycle takes at most a minute and a half.
const OBSERVED_MAX: SignedDuration = SignedDuration::from_mins(3);

/// The helper and the local API are on this host, and the gate waits for five seconds.
const PART_MAX: Duration = Duration::from_millis(1_500);

impl StatusTask {
    pub(super) async fn health(&self) -> AgentHealth {
        let (records, helper, local_api) = tokio::join!(self.records(), self.helper(), self.local_api());
        let (proxmox, plan) = observed(&self.view.borrow(), self.clock.now());
        AgentHealth {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            records,
            proxmox,
            plan,
            helper,
            local_api,
            hub: hub(&self.contact.borrow()),
        }
    }

    /// The socket is served after the journal was replayed, so what is left is whether records can be read and written.
    async fn records(&self) -> PartState {
        if let Some(refusal) = self.store.refusal() {
            return PartState::Failed(chain(&refusal));
        }
        match self.store.open_operations().await {
            Ok(_) => PartState::Works,
            Err(error) => PartState::Failed(chain(&error)),
        }
    }

    async fn helper(&self) -> PartState {
        match tokio::time::timeout(PART_MAX, self.helper.status()).await {
            Ok(Ok(_)) => PartState::Works,
            Ok(Err(error)) => PartState::Failed(chain(&error)),
            Err(_) => PartState::Failed(late()),
        }
    }

    async fn local_api(&self) -> PartState {
        match tokio::time::timeout(PART_MAX, tokio::net::TcpStream::connect(self.local_api)).await {
            Ok(Ok(_)) => PartState::Works,
            Ok(Err(error)) => PartState::Failed(format!("{}: {error}", self.local_api)),
            Err(_) => PartState::Failed(late()),
        }
    }
}

fn late() -> String {
    format!("no answer within {} ms", PART_MAX.as_millis())
}

/// Proxmox, and the plan: a snapshot is published only after both.
fn observed(view: &HostSnapshot, now: jiff::Timestamp) -> (PartState, PartState) {
    let both = |state: PartState| (state.clone(), state);
    if view.blocked.is_some() {
        let why = view
            .problems
            .last()
            .map_or_else(|| "the host was not observed".to_owned(), |problem| problem.message.clone());
        return both(PartState::Failed(why));
    }
    match view.seen_at {
        None => both(PartState::NotYet),
        Some(at) if now.duration_since(at) > OBSERVED_MAX => {
            both(PartState::Failed(format!("the host was last observed at {at}")))
        }
        Some(_) => both(PartState::Works),
    }
}

fn hub(contact: &Contact) -> PartState {
    match (&contact.problem, contact.reached_at) {
        (Some(problem), _) => PartState::Failed(problem.message.clone()),
        (None, None) => PartState::NotYet,
        (None, Some(_)) => PartState::Works,
    }
}
