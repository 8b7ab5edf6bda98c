//! A client of the simulator.
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pve_sim::clock::SystemClock;
use pve_sim::http::entry::serve;
use pve_sim::node::Node;
use pve_sim::wire::{Request, Response};
use pve_sim::{Builder, Opened, Sim};
use serde_json::Value;

pub struct Client {
    pub node: Arc<Node>,
    header: String,
}

impl Client {
    pub fn of(opened: &Opened) -> Self {
        Self::with(opened, "agent@pve!hostagent")
    }

    /// With a token of the lab.
    pub fn with(opened: &Opened, token: &str) -> Self {
        let secret = opened.node.world().secrets.tokens[token].clone();
        Self { node: Arc::clone(&opened.node), header: format!("PVEAPIToken={token}={secret}") }
    }

    /// The answer as it is sent over the wire.
    pub fn send(&self, method: &str, path: &str, form: &str) -> Response {
        let mut headers = vec![("authorization".to_owned(), self.header.clone())];
        if !form.is_empty() {
            headers.push(("content-type".to_owned(), "application/x-www-form-urlencoded".to_owned()));
        }
        let request = Request {
            method: method.into(),
            target: format!("/api2/json{path}"),
            headers,
            body: form.into(),
        };
        serve(&self.node, &request)
    }

    pub fn ask(&self, method: &str, path: &str, form: &str) -> (u16, Value) {
        let response = self.send(method, path, form);
        (response.status, serde_json::from_slice(&response.body).unwrap_or_default())
    }

    /// Starts a task and waits until it has ended; returns its name.
    pub fn ended(&self, method: &str, path: &str, form: &str) -> String {
        let (status, body) = self.ask(method, path, form);
        assert_eq!(status, 200, "{body}");
        let upid = body["data"].as_str().expect("a task").to_owned();
        wait_until("the task to end", || self.node.tasks.running(&upid).is_none());
        upid
    }

    /// Starts a task and returns its end status.
    pub fn task(&self, method: &str, path: &str, form: &str) -> String {
        let upid = self.ended(method, path, form);
        self.node.tasks.ended(&upid).expect("an end").status
    }
}

/// Checks repeatedly, for ten seconds at most.
pub fn wait_until(what: &str, is: impl Fn() -> bool) {
    for _ in 0..2_000 {
        if is() {
            return;
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
    panic!("waited in vain for {what}");
}

pub fn builder(state: &Path) -> Builder {
    Sim::builder()
        .state_dir(state)
        .clock(Arc::new(SystemClock::starting_at(5_000)))
        .pace(Duration::from_millis(1))
}

pub fn open(state: &Path) -> Opened {
    builder(state).open().expect("an instance")
}
