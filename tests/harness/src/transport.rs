//! The transport from agent to simulator, in process.
//!
//! In: the client's request. Out: the simulator's answer, or the fault that the story sets. Every request takes a
//! little virtual time, so that nothing happens at the same moment as its cause. A dead agent's request never returns.

use std::sync::Arc;
use std::time::Duration;

use agentd::execute::failpoint::Side;
use agentd::port::pve::PveError;
use agentd::port::pve::error::{Cause, Sent};
use agentd::port::pve::transport::{Carried, Request, Response, Transport};
use pve_sim::in_process::{Ask, Reported, ask};
use pve_sim::node::Node;

use crate::clock::Timeline;
use crate::log::{Effect, Log};
use crate::outside;
use crate::points::{Conductor, How};

/// The time that a request takes each way.
const ONE_WAY: Duration = Duration::from_millis(1);

/// The transport of one run of the agent.
pub struct InProcess {
    pub node: Arc<Node>,
    pub timeline: Timeline,
    /// The planned faults.
    pub conductor: Arc<Conductor>,
    pub log: Arc<Log>,
    /// More requests than this in one story mean an endless loop.
    pub patience: usize,
}

impl InProcess {
    async fn send(&self, request: Request) -> Result<Response, PveError> {
        let request = outside::alter(request);
        tokio::time::sleep(ONE_WAY).await;
        let changes = request.method != "GET";
        let fault = if changes { self.conductor.fails() } else { None };
        let broken = |sent: Sent, why: &'static str| PveError::Unreachable {
            call: request.call,
            sent,
            source: Cause::new(std::io::Error::other(why)),
        };
        if changes {
            self.pass(Side::Before).await;
            match fault {
                Some(How::RequestLost) => return Err(broken(Sent::Perhaps, "the request was lost")),
                Some(How::Refused) => return Ok(refused()),
                Some(How::ReplyLost) | None => {}
            }
        }
        let step = self.conductor.step();
        let params: Vec<(&str, &str)> =
            request.params.iter().map(|(key, value)| (key.as_str(), value.expose())).collect();
        let asked = Ask {
            method: request.method,
            path: &request.path,
            params: &params,
            authorization: request.authorization.expose(),
        };
        let reported = ask(&self.node, &asked);
        let status = if let Reported::Answer { status, .. } = &reported { *status } else { 0 };
        let count = self.log.request(self.timeline.passed(), request.call, &request.path, status);
        assert!(count < self.patience, "{WITHOUT_END}: {} {}", request.method, request.path);
        if changes {
            let path = request.path.clone();
            let archive =
                params.iter().find(|(key, _)| *key == "ostemplate").map(|(_, value)| (*value).to_owned());
            let at = self.timeline.passed();
            self.log.effect(Effect { at, step, call: request.call, path, status, archive });
            self.pass(Side::After).await;
        }
        tokio::time::sleep(ONE_WAY).await;
        match reported {
            _ if fault == Some(How::ReplyLost) => Err(broken(Sent::Perhaps, "the answer was lost")),
            Reported::Dropped => Err(broken(Sent::Perhaps, "the connection was dropped")),
            Reported::Cut => Err(broken(Sent::Perhaps, "the answer was cut")),
            Reported::Answer { body, .. } if body.len() > request.body_max => {
                Err(PveError::TooLarge { call: request.call, limit: request.body_max })
            }
            Reported::Answer { status, reason, body, delay_ms } => {
                tokio::time::sleep(Duration::from_millis(delay_ms)).await;
                Ok(Response { status, reason, body })
            }
        }
    }

    /// A dead agent waits for ever; its caller drops it.
    async fn pass(&self, side: Side) {
        if self.conductor.request(side).is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Transport for InProcess {
    fn carry(&self, request: Request) -> Carried<'_> {
        Box::pin(self.send(request))
    }
}

fn refused() -> Response {
    let body = br#"{"data":null,"message":"the harness refuses this\n"}"#.to_vec();
    Response { status: 500, reason: "the harness refuses this".to_owned(), body }
}

/// The beginning of the transport's message when it stops an agent that sends requests without end.
pub const WITHOUT_END: &str = "the agent asks without end";
