//! A hub in this process with scripted answers.
//!
//! In: the agent's own loop, by [`agentd::port::hub::Hub::over`]. Out: any answer of the given hub, valid or not, as
//! bytes. Each request takes a little virtual time. Deliberately absent: TLS. The pinned CA in the agent's identity
//! shows which hub is meant; each hub can check it when it is dialled.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agentd::port::hub::{Hub, Line, Posted};
use agentd::port::identity::Identity;
use agentd::task::hub_sync::Dial;
use net::client::{Answer, CallError, Method};
use serde_json::{Value, json};

use crate::clock::Timeline;

/// The time that a request takes.
const ON_THE_WAY: Duration = Duration::from_millis(2);

/// An answer and its timing.
#[derive(Clone, Debug)]
pub struct Reply {
    /// After how long.
    pub after: Duration,
    /// The answer; none leaves the line dead until the agent gives up.
    pub answer: Option<Answer>,
}

impl Reply {
    /// A right answer, at once.
    #[must_use]
    pub fn data(data: &Value) -> Self {
        Self::at_once(200, framed(data, &Value::Null))
    }

    /// An answer that comes at once.
    #[must_use]
    pub fn at_once(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { after: Duration::ZERO, answer: Some(Answer::new(status, body.into())) }
    }

    /// The same, later.
    #[must_use]
    pub fn after(self, after: Duration) -> Self {
        Self { after, ..self }
    }
}

/// The frame of an answer.
#[must_use]
pub fn framed(data: &Value, error: &Value) -> String {
    let id = uuid::Uuid::from_u128(1);
    json!({
        "schema_version": "holdfast.envelope/v1", "request_id": id, "correlation_id": id, "data": data, "error": error,
        "metadata": { "timestamp": "2026-11-21T12:00:00Z" },
    })
    .to_string()
}

/// A hub of a test.
pub trait Brain: Send {
    /// Receives a request and returns the reply.
    fn hear(&mut self, path: &str, body: &[u8], at: Duration) -> Reply;

    /// Whether an agent of this identity reaches this hub.
    fn is_reached_by(&self, identity: &Identity) -> bool;
}

struct InProcess<B> {
    brain: Arc<Mutex<B>>,
    timeline: Timeline,
    reached: bool,
}

impl<B> fmt::Debug for InProcess<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcess").field("reached", &self.reached).finish_non_exhaustive()
    }
}

impl<B: Brain> Line for InProcess<B> {
    fn send<'a>(&'a self, _: Method, path: &'a str, body: Vec<u8>, within: Duration) -> Posted<'a> {
        Box::pin(async move {
            tokio::time::sleep(ON_THE_WAY).await;
            let broken = |why: &'static str| CallError::Unreachable(std::io::Error::other(why).into());
            if !self.reached {
                return Err(broken("nobody of that CA is there"));
            }
            let reply = self.brain.lock().unwrap().hear(path, &body, self.timeline.passed());
            let Some(answer) = reply.answer.filter(|_| reply.after <= within) else {
                tokio::time::sleep(within).await;
                return Err(broken("no answer came in time"));
            };
            tokio::time::sleep(reply.after).await;
            Ok(answer)
        })
    }
}

/// How an agent calls this hub. An identity that cannot make a TLS client reaches no hub, as in the agent.
#[must_use]
pub fn dial<B: Brain + 'static>(brain: &Arc<Mutex<B>>, timeline: Timeline) -> Dial {
    let brain = Arc::clone(brain);
    Arc::new(move |identity: &Identity| {
        drop(Hub::enrolled(identity)?);
        let reached = brain.lock().unwrap().is_reached_by(identity);
        let line = InProcess { brain: Arc::clone(&brain), timeline, reached };
        Ok(Hub::over(Arc::new(line), &identity.hub))
    })
}
