//! The state of a tunnel by one reading.
//!
//! In: the settings and what was found. Out: the state, the reason in words, and whether one reading is enough for it.

use holdfast_protocol::report::{TunnelState, UnitActivity};

use super::settings::Tunnel;
use super::systemd::ServiceState;

/// What came of a question that may not be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof<T> {
    /// The settings name none.
    NotAsked,
    /// No answer, or one that says so.
    Failed(String),
    Answered(T),
}

/// What was found of a tunnel at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunnelReading {
    /// None where systemd could not be asked.
    pub service: Option<ServiceState>,
    /// How many connections are ready.
    pub connections: Proof<u32>,
    /// What the far end said.
    pub probe: Proof<String>,
}

/// Whether one reading is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// It is systemd's word, or a proof.
    Enough,
    /// A second one must say the same: an answer may be lost, and a tunnel reconnects by itself.
    NeedsSecond,
}

/// What one reading says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    pub state: TunnelState,
    pub why: String,
    pub certainty: Certainty,
}

impl Judgement {
    fn new(state: TunnelState, why: impl Into<String>) -> Self {
        let certainty = match state {
            TunnelState::Up | TunnelState::Unproved | TunnelState::Stopped => Certainty::Enough,
            TunnelState::Degraded | TunnelState::Down | TunnelState::Unknown => Certainty::NeedsSecond,
        };
        Self { state, why: why.into(), certainty }
    }

    fn enough(self) -> Self {
        Self { certainty: Certainty::Enough, ..self }
    }
}

/// Judges one reading.
#[must_use]
pub fn judge(tunnel: &Tunnel, reading: &TunnelReading) -> Judgement {
    let unit = &tunnel.unit;
    match reading.service.map(|service| service.activity) {
        Some(UnitActivity::NotFound) => {
            Judgement::new(TunnelState::Down, format!("{unit} is not installed")).enough()
        }
        Some(UnitActivity::Failed) => Judgement::new(TunnelState::Down, format!("{unit} failed")).enough(),
        Some(UnitActivity::Inactive) => Judgement::new(
            TunnelState::Stopped,
            format!("{unit} is stopped, and not by a failure: it is left so"),
        ),
        Some(UnitActivity::Changing) => {
            Judgement::new(TunnelState::Down, format!("{unit} starts, stops, or waits to be started again"))
        }
        Some(UnitActivity::Active) => by_proofs(tunnel, reading),
        // Without systemd's word only a success says something.
        None => {
            Some(by_proofs(tunnel, reading)).filter(|proved| proved.state == TunnelState::Up).unwrap_or_else(
                || Judgement::new(TunnelState::Unknown, "systemd could not be asked, and no proof succeeded"),
            )
        }
    }
}

/// Of a service that runs.
fn by_proofs(tunnel: &Tunnel, reading: &TunnelReading) -> Judgement {
    let (wanted, of) = (tunnel.connections, |state, why: String| Judgement::new(state, why));
    match (&reading.connections, &reading.probe) {
        (Proof::NotAsked, Proof::NotAsked) => of(
            TunnelState::Unproved,
            "its service runs; the settings name neither metrics nor a probe".to_owned(),
        ),
        (Proof::NotAsked, Proof::Answered(said)) => {
            of(TunnelState::Up, format!("the far end answers: {said}"))
        }
        (Proof::NotAsked, Proof::Failed(why)) => {
            of(TunnelState::Down, format!("the far end does not answer: {why}"))
        }
        (Proof::Failed(why), Proof::NotAsked) => {
            of(TunnelState::Degraded, format!("its metrics do not answer: {why}"))
        }
        (Proof::Failed(why), Proof::Answered(_)) => {
            of(TunnelState::Degraded, format!("the far end answers, and its metrics do not: {why}"))
        }
        (Proof::Failed(why), Proof::Failed(_)) => {
            of(TunnelState::Down, format!("neither its metrics nor the far end answer: {why}"))
        }
        (Proof::Answered(0), Proof::Answered(_)) => of(
            TunnelState::Degraded,
            "the far end answers, and no connection of this host is ready".to_owned(),
        ),
        (Proof::Answered(0), Proof::NotAsked | Proof::Failed(_)) => {
            of(TunnelState::Down, "no connection is ready".to_owned())
        }
        (Proof::Answered(ready), Proof::Failed(why)) => of(
            TunnelState::Degraded,
            format!("{ready} connections are ready, and the far end does not answer: {why}"),
        ),
        (Proof::Answered(ready), Proof::NotAsked | Proof::Answered(_)) if *ready < wanted => {
            of(TunnelState::Degraded, format!("{ready} of {wanted} connections are ready"))
        }
        (Proof::Answered(ready), Proof::NotAsked | Proof::Answered(_)) => {
            of(TunnelState::Up, format!("{ready} connections are ready"))
        }
    }
}
