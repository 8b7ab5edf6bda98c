//! Fake windows: an honest agent, and faults that a test sets.

use std::collections::BTreeSet;

use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::Response;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::OperationId;
use holdfast_protocol::local::window::{Quiesced, Released, WindowPhase, WindowRequest};
use holdfast_protocol::protection::Tier;
use uuid::Uuid;

use crate::fake_agent::{Shared, answer, knows, refuse};

/// The state of the windows.
pub struct Windows {
    /// Whether a backup is due that requires stopped stacks.
    pub due: bool,
    /// The phase of the window; none before one was requested.
    pub phase: Option<WindowPhase>,
    /// The window stays at this phase.
    pub stays_at: Option<WindowPhase>,
    /// The bound that it reports.
    pub bound_s: u32,
    /// Calls that are received, but whose answers are lost.
    pub lost: BTreeSet<&'static str>,
    /// Calls that fail: the connection breaks before they are received.
    pub deaf: BTreeSet<&'static str>,
    /// Those that were made, and failed.
    pub missed: BTreeSet<&'static str>,
    /// Calls whose answers are held back, and those that wait so.
    pub held: BTreeSet<&'static str>,
    pub waiting: BTreeSet<&'static str>,
    /// Keys of the requests for windows.
    pub asked: Vec<String>,
    /// The tiers that they named.
    pub tiers: Vec<Option<Tier>>,
    pub quiesced: Vec<Quiesced>,
    pub released: Vec<Released>,
    pub given_up: u32,
    pub looks: u32,
    /// Reports of restore tests.
    pub reports: Vec<serde_json::Value>,
}

impl Default for Windows {
    fn default() -> Self {
        Self {
            due: false,
            phase: None,
            stays_at: None,
            bound_s: 900,
            lost: BTreeSet::new(),
            deaf: BTreeSet::new(),
            missed: BTreeSet::new(),
            held: BTreeSet::new(),
            waiting: BTreeSet::new(),
            asked: Vec::new(),
            tiers: Vec::new(),
            quiesced: Vec::new(),
            released: Vec::new(),
            given_up: 0,
            looks: 0,
            reports: Vec::new(),
        }
    }
}

impl Windows {
    fn go(&mut self, to: WindowPhase) {
        if self.stays_at.is_none_or(|last| self.phase != Some(last)) {
            self.phase = Some(to);
        }
    }

    fn view(&self) -> Response {
        let Some(phase) = self.phase else { return refuse(ErrorCode::NotFound) };
        answer(serde_json::json!({
            "id": id(), "phase": phase, "bound_s": self.bound_s, "left_s": self.bound_s,
            "label": (phase == WindowPhase::Captured).then(|| serde_json::json!({ "consistency": "application", "why": "says the test" })),
        }))
    }
}

pub fn id() -> OperationId {
    OperationId::new(Uuid::from_u128(42))
}

/// Takes a call in, unless it is lost before or after.
fn heard(
    shared: &Shared,
    call: &'static str,
    headers: &HeaderMap,
    take: impl FnOnce(&mut Windows),
) -> Response {
    let mut script = shared.script.lock().unwrap();
    if !knows(&script, headers) {
        return refuse(ErrorCode::Unauthenticated);
    }
    let lost = script.windows.lost.contains(call);
    let deaf = script.windows.deaf.contains(call);
    if !deaf {
        take(&mut script.windows);
    }
    if deaf {
        script.windows.missed.insert(call);
    }
    if lost || deaf {
        drop(script);
        // The connection is closed with the task that serves it.
        std::panic::resume_unwind(Box::new("the answer is lost"));
    }
    script.windows.view()
}

pub async fn due(State(shared): State<Shared>, headers: HeaderMap) -> Response {
    let mut due = false;
    let view = heard(&shared, "due", &headers, |windows| due = windows.due);
    drop(view);
    let entry = serde_json::json!({
        "tier": "local", "policy": "nightly", "since": "2026-11-21T12:00:00Z", "consistency": "application",
        "waits_until": "2026-11-21T13:00:00Z"
    });
    answer(serde_json::json!({ "due": if due { vec![entry] } else { Vec::new() } }))
}

pub async fn ask(State(shared): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    let request: WindowRequest = serde_json::from_slice(&body).unwrap();
    let key = headers["idempotency-key"].to_str().unwrap().to_owned();
    let view = heard(&shared, "ask", &headers, |windows| {
        windows.asked.push(key);
        windows.tiers.push(request.tier);
        windows.phase = Some(WindowPhase::Requested);
    });
    drop(view);
    answer(serde_json::json!({ "operation": id(), "taken": "queued", "before": 0 }))
}

pub async fn look(State(shared): State<Shared>, request: Request) -> Response {
    // Without the request to wait it is a query for the label, after all is over.
    assert!(request.uri().query().is_none_or(|query| query.starts_with("wait=")));
    let view = heard(&shared, "look", request.headers(), |windows| {
        windows.looks += 1;
        match windows.phase {
            Some(WindowPhase::Requested) => windows.go(WindowPhase::Granted),
            Some(WindowPhase::Quiesced) => windows.go(WindowPhase::Capturing),
            Some(WindowPhase::Capturing) => windows.go(WindowPhase::Captured),
            _ => {}
        }
    });
    let is_held = || {
        let mut script = shared.script.lock().unwrap();
        let held = script.windows.held.contains("look");
        if held {
            script.windows.waiting.insert("look");
        }
        held
    };
    while is_held() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    view
}

pub async fn quiesced(State(shared): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    let said: Quiesced = serde_json::from_slice(&body).unwrap();
    heard(&shared, "quiesced", &headers, |windows| {
        windows.quiesced.push(said);
        windows.go(WindowPhase::Quiesced);
        windows.due = false;
    })
}

pub async fn released(State(shared): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    let said: Released = serde_json::from_slice(&body).unwrap();
    heard(&shared, "released", &headers, |windows| {
        windows.released.push(said);
        windows.phase = Some(WindowPhase::Released);
    })
}

pub async fn give_up(State(shared): State<Shared>, headers: HeaderMap) -> Response {
    assert!(!headers["idempotency-key"].is_empty());
    heard(&shared, "give_up", &headers, |windows| {
        windows.given_up += 1;
        windows.phase = Some(WindowPhase::Cancelled);
        windows.due = false;
    })
}

pub async fn report(State(shared): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    let said: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let view = heard(&shared, "report", &headers, |windows| windows.reports.push(said.clone()));
    drop(view);
    answer(said)
}
