//! The calls of the API, one file per group.
//!
//! In: a [`Call`]. Out: an [`Answer`] or a refusal with the real text. A call does its synchronous part under the world's lock and leaves
//! the rest to a task.
pub mod access;
pub mod cluster;
pub mod content;
pub mod facts;
pub mod firewall;

pub mod lxc;
pub mod node;
pub mod outside;
pub mod pool;
pub mod prune;
pub mod prune_server;
pub mod rrd;
pub mod storage;
pub mod task;
pub mod token;
pub mod user;
pub mod vzdump;

use std::sync::Arc;

use serde_json::Value;

use crate::access::credential::Caller;
use crate::fail::{Fallible, Refusal};
use crate::http::params::Params;
use crate::node::Node;

/// One checked request.
#[derive(Debug)]
pub struct Call<'a> {
    /// The node it came to.
    pub node: &'a Arc<Node>,
    pub who: Caller,
    pub params: Params,
}

/// What a call answers.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// `data`
    Data(Value),
    /// `data` and `total`
    Counted(Value, usize),
    /// A text file.
    Download { name: String, text: String },
}

/// What a call returns.
pub type Reply = Fallible<Answer>;
/// A call's code.
pub type Handler = fn(&Call<'_>) -> Reply;

/// An answer without a value.
pub const NOTHING: Reply = Ok(Answer::Data(Value::Null));

/// An answer with a value.
///
/// # Errors
/// Never.
pub fn data(value: impl Into<Value>) -> Reply {
    Ok(Answer::Data(value.into()))
}

impl Call<'_> {
    /// A text; numbers and booleans are written out.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<String> {
        self.params.get(name).and_then(plain)
    }

    /// A text that the schema demands.
    ///
    /// # Errors
    /// When it is missing after all.
    pub fn need(&self, name: &str) -> Fallible<String> {
        self.text(name).ok_or_else(|| Refusal::param(name, "property is missing and it is not optional"))
    }

    /// A whole number.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<i64> {
        self.text(name).and_then(|text| text.trim_start_matches('+').parse().ok())
    }

    /// The VMID in the path.
    ///
    /// # Errors
    /// When it is missing after all.
    pub fn vmid(&self) -> Fallible<u32> {
        self.need("vmid")?
            .parse()
            .map_err(|_| Refusal::param("vmid", "invalid format - value does not look like a valid VM ID\n"))
    }

    /// A boolean that was given.
    #[must_use]
    pub fn maybe(&self, name: &str) -> Option<bool> {
        self.text(name).map(|text| text == "1")
    }

    /// A boolean that is off when absent.
    #[must_use]
    pub fn flag(&self, name: &str) -> bool {
        self.maybe(name) == Some(true)
    }

    /// Starts a task in the caller's name and answers with its UPID.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn spawn<F>(&self, kind: &str, id: &str, body: F) -> Reply
    where
        F: FnOnce(&crate::task::Task) -> crate::task::worker::Outcome + Send + 'static,
    {
        crate::task::worker::spawn(self.node, kind, id, &self.who.id, body)
            .map(|upid| Answer::Data(Value::from(upid)))
    }
}

/// A parameter as text.
#[must_use]
pub fn plain(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Bool(on) => Some(u8::from(*on).to_string()),
        Value::Array(list) => Some(list.iter().filter_map(plain).collect::<Vec<_>>().join("\0")),
        other => Some(other.to_string()),
    }
}

/// The code of a call.
#[must_use]
pub fn handler(at: &str) -> Option<Handler> {
    let groups: [fn(&str) -> Option<Handler>; 13] = [
        access::handler,
        content::handler,
        facts::handler,
        firewall::handler,
        lxc::handler,
        cluster::handler,
        node::handler,
        pool::handler,
        storage::handler,
        task::handler,
        token::handler,
        user::handler,
        vzdump::handler,
    ];
    groups.iter().find_map(|group| group(at))
}
