//! Delivery to a webhook, signed.
//!
//! `X-Holdfast-Signature: t=SECONDS,v1=HEX` is HMAC-SHA256 over `SECONDS.BODY`. A receiver checks it and refuses an old
//! time. While a key is replaced there are two, `t=SECONDS,v1=HEX,v1=HEX`, of which one must fit. `Idempotency-Key` is the
//! same for each repeat of one delivery.

use jiff::Timestamp;
use ring::hmac;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::HttpChannel;
use crate::field::{CaPem, SigningKey};
use crate::fit::{Fitted, fit};
use crate::http::{HttpAnswer, HttpRequest, Method};
use crate::id::OutboxId;
use crate::message::{Alert, Message};
use crate::url::SecretUrl;
use crate::verdict::{Form, Verdict, by_status};

/// The header with time and signature.
pub const SIGNATURE_HEADER: &str = "x-holdfast-signature";
/// The version of the body's form.
const VERSION: u8 = 1;
/// The most bytes of a body.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// A receiver of one's own.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    pub url: SecretUrl,
    pub key: SigningKey,
    /// The key before it, while the receiver may still know that alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub former_key: Option<SigningKey>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<CaPem>,
}

fn body(message: &Message, id: &OutboxId, alerts: &[Value], omitted: u64) -> Value {
    json!({
        "version": VERSION,
        "id": id,
        "group": message.group,
        "state": message.state,
        "severity": message.severity,
        "title": message.title,
        "alerts": alerts,
        "omitted": omitted,
        "remedy": message.remedy,
        "link": message.link,
        "at": message.at,
    })
}

impl HttpChannel for Webhook {
    fn request(&self, message: &Message, id: &OutboxId, now: Timestamp, _: Form) -> HttpRequest {
        let entry = |alert: &Alert| json!({ "incident": alert.incident, "text": alert.text });
        let entries: Vec<Value> = message.alerts.iter().map(entry).collect();
        let room = BODY_BYTES_MAX.saturating_sub(body(message, id, &[], 0).to_string().len());
        let lines = entries.iter().map(Value::to_string).collect();
        let Fitted { lines, omitted } = fit(lines, message.omitted, room, str::len);
        let named: Vec<Value> = entries.into_iter().take(lines.len()).collect();
        let request = HttpRequest::json(Method::Post, self.url.clone(), &body(message, id, &named, omitted));
        let seconds = now.as_second();
        let mut signature = format!("t={seconds}");
        for key in std::iter::once(&self.key).chain(&self.former_key) {
            let key = hmac::Key::new(hmac::HMAC_SHA256, key.expose().as_bytes());
            let mut signed = hmac::Context::with_key(&key);
            signed.update(format!("{seconds}.").as_bytes());
            signed.update(&request.body);
            signature.push_str(&format!(",v1={}", hex::encode(signed.sign())));
        }
        request.with(SIGNATURE_HEADER, signature).with("idempotency-key", id.as_str())
    }

    fn verdict(&self, answer: &HttpAnswer, now: Timestamp) -> Verdict {
        by_status(answer, now)
    }

    fn ca(&self) -> Option<&CaPem> {
        self.ca.as_ref()
    }
}
