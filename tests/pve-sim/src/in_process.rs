//! Calls from the same process, answered as over HTTPS.
//!
//! In: method, path, parameters and the `Authorization` header, as a client would write them. Out: the answer, or how the connection
//! broke by an armed fault. Nothing of a client's types crosses. Deliberately absent: sockets, TLS and waiting; a login that is held back
//! says for how long.
use std::sync::Arc;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::http::entry;
use crate::node::Node;
use crate::wire::{Request, Spoil};

#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// `GET`, `POST`, …
    pub method: &'a str,
    /// From `/api2/json` on, percent-encoded.
    pub path: &'a str,
    /// Names and values, not encoded.
    pub params: &'a [(&'a str, &'a str)],
    /// The header `Authorization`.
    pub authorization: &'a str,
}

/// The result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reported {
    Answer {
        status: u16,
        /// The reason phrase.
        reason: String,
        body: Vec<u8>,
        /// Held back this long.
        delay_ms: u64,
    },
    /// The connection was dropped without an answer.
    Dropped,
    /// The connection was dropped in the middle of the body.
    Cut,
}

#[must_use]
pub fn ask(node: &Arc<Node>, ask: &Ask<'_>) -> Reported {
    let form = form(ask.params);
    let in_query = matches!(ask.method, "GET" | "DELETE");
    let mut headers = vec![("authorization".to_owned(), ask.authorization.to_owned())];
    let (target, body) = if in_query {
        let tail = if form.is_empty() { String::new() } else { format!("?{form}") };
        (format!("{}{tail}", ask.path), Vec::new())
    } else {
        headers.push(("content-type".to_owned(), "application/x-www-form-urlencoded".to_owned()));
        (ask.path.to_owned(), form.into_bytes())
    };
    let request = Request { method: ask.method.to_owned(), target, headers, body };
    let response = entry::serve(node, &request);
    match response.spoil {
        Spoil::Drop => Reported::Dropped,
        Spoil::Cut => Reported::Cut,
        Spoil::Nothing => Reported::Answer {
            status: response.status,
            reason: response.reason,
            body: response.body,
            delay_ms: response.delay_ms,
        },
    }
}

fn form(params: &[(&str, &str)]) -> String {
    let coded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let pairs: Vec<String> =
        params.iter().map(|(key, value)| format!("{}={}", coded(key), coded(value))).collect();
    pairs.join("&")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sim;
    use crate::fault::{Aim, Fault};

    #[test]
    fn in_process_calls_answer_as_the_wire_does() {
        let opened = Sim::builder().open().expect("a node");
        let tokens = opened.node.world().secrets.tokens.clone();
        let authorization = tokens.iter().map(|(id, secret)| format!("PVEAPIToken={id}={secret}")).next();
        let authorization = authorization.expect("a token");
        let version =
            Ask { method: "GET", path: "/api2/json/version", params: &[], authorization: &authorization };
        let Reported::Answer { status: 200, body, .. } = ask(&opened.node, &version) else {
            panic!("no version")
        };
        assert!(String::from_utf8_lossy(&body).contains("\"release\""));
        let stranger = Ask { authorization: "PVEAPIToken=x@pve!y=z", ..version };
        assert!(matches!(ask(&opened.node, &stranger), Reported::Answer { status: 401, delay_ms: 1.., .. }));
        let odd = Ask { params: &[("a b", "c&d")], ..version };
        let Reported::Answer { status: 400, body, .. } = ask(&opened.node, &odd) else { panic!("taken") };
        assert!(String::from_utf8_lossy(&body).contains("a b"));
        opened
            .node
            .faults
            .arm(Fault::LostReply { on: Aim { method: String::new(), path: "/version".into() } });
        assert_eq!(ask(&opened.node, &version), Reported::Dropped);
    }
}
