//! The request that a recorded call becomes here.
//!
//! In: a recorded call, the names and secrets that this node made where the recorded one made others. Out: a request with its credential.
use std::collections::BTreeMap;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::names::Names;
use super::precondition::SECRET;
use super::recording::Call;
use crate::node::Node;
use crate::wire::Request;

/// What of this node a request needs.
#[derive(Debug, Clone, Copy)]
pub struct Resend<'a> {
    /// The node, which signs tickets.
    pub node: &'a Node,
    /// Its names for recorded ones.
    pub names: &'a Names,
    /// Secrets that it made, by token.
    pub secrets: &'a BTreeMap<String, String>,
    /// The password of `root@pam`.
    pub root_password: &'a str,
}

impl Resend<'_> {
    pub fn request(&self, call: &Call) -> Request {
        let mut headers: Vec<(String, String)> =
            call.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect();
        self.authorize(call, &mut headers);
        let mut target = self.names_in_target(&call.path);
        let mut body = call.raw_body.clone().unwrap_or_default().into_bytes();
        if call.json && call.raw_body.is_none() {
            headers.push(("content-type".into(), "application/json".into()));
            body = self.names.ours(&Value::Object(call.params.clone()).to_string()).into_bytes();
        } else if !call.params.is_empty() {
            let form = self.form(call);
            if matches!(call.method.as_str(), "GET" | "DELETE") {
                let join = if target.contains('?') { '&' } else { '?' };
                target = format!("{target}{join}{form}");
            } else {
                headers.push(("content-type".into(), "application/x-www-form-urlencoded".into()));
                body = form.into_bytes();
            }
        }
        Request { method: call.method.clone(), target, headers, body }
    }

    /// Names in a path are recorded both raw and encoded.
    fn names_in_target(&self, path: &str) -> String {
        let decoded = percent_encoding::percent_decode_str(path).decode_utf8_lossy().into_owned();
        let ours = self.names.ours(&decoded);
        if ours == decoded {
            return path.to_owned();
        }
        let (plain, query) =
            ours.split_once('?').map_or((ours.as_str(), None), |(plain, query)| (plain, Some(query)));
        let mut out: String = plain
            .split('/')
            .map(|part| utf8_percent_encode(part, NON_ALPHANUMERIC).to_string())
            .collect::<Vec<_>>()
            .join("/");
        if let Some(query) = query {
            out = format!("{out}?{query}");
        }
        out
    }

    fn form(&self, call: &Call) -> String {
        let mut pairs = Vec::new();
        for (name, value) in &call.params {
            let values = if let Value::Array(list) = value { list.clone() } else { vec![value.clone()] };
            for value in values {
                let text =
                    self.secret(name, &self.names.ours(&crate::call::plain(&value).unwrap_or_default()));
                pairs.push(format!(
                    "{}={}",
                    utf8_percent_encode(name, NON_ALPHANUMERIC),
                    utf8_percent_encode(&text, NON_ALPHANUMERIC)
                ));
            }
        }
        pairs.join("&")
    }

    /// Passwords are scrubbed from the recordings; every user has the same one here.
    fn secret(&self, name: &str, text: &str) -> String {
        match (name, text) {
            ("password", "<password>") => self.root_password.to_owned(),
            // Of an account on a backup server.
            ("password", "<secret>") => SECRET.to_owned(),
            _ => text.to_owned(),
        }
    }

    fn authorize(&self, call: &Call, headers: &mut Vec<(String, String)>) {
        let mut scrubbed = String::new();
        let mut rest = call.auth.as_str();
        while let Some((before, after)) = rest.split_once("<secret-of-") {
            scrubbed.push_str(before);
            scrubbed.push_str(SECRET);
            rest = after.split_once('>').map_or("", |(_, tail)| tail);
        }
        scrubbed.push_str(rest);
        if let Some(id) = scrubbed.strip_prefix("token:") {
            let secret = self.secrets.get(id).map_or(SECRET, String::as_str);
            headers.push(("authorization".into(), format!("PVEAPIToken={id}={secret}")));
        } else if let Some(raw) = scrubbed.strip_prefix("rawtoken:") {
            let value =
                if raw.starts_with("PVEAPIToken") { raw.to_owned() } else { format!("PVEAPIToken={raw}") };
            headers.push(("authorization".into(), value));
        } else if let Some(raw) = scrubbed.strip_prefix("rawhdr:") {
            headers.push(("authorization".into(), raw.to_owned()));
        } else if let Some(user) =
            scrubbed.strip_prefix("ticket:").or_else(|| scrubbed.strip_prefix("ticket-nocsrf:"))
        {
            let (ticket, csrf) = self.node.world().secrets.ticket(user, self.node.clock.now_s());
            headers.push((
                "cookie".into(),
                format!("PVEAuthCookie={}", utf8_percent_encode(&ticket, NON_ALPHANUMERIC)),
            ));
            if scrubbed.starts_with("ticket:") {
                headers.push(("csrfpreventiontoken".into(), csrf));
            }
        }
    }
}
