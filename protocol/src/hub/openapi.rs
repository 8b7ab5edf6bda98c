//! The hub's API as an OpenAPI 3.1 document.
//!
//! It is committed as `docs/hub-api.openapi.json` and served at `/v1/openapi.json`.

use serde_json::{Value, json};

use super::TABLES;
use crate::api::openapi::{self, Api, Nulls};
use crate::sign_in::SESSION_COOKIE;

/// The document.
#[must_use]
pub fn document() -> Value {
    openapi::document(&Api {
        title: "Holdfast: what agents and operators ask of the hub",
        description: "HTTPS, TLS 1.3 alone, with a certificate of the hub's own CA. Agents show their client certificate, \
                      operators a token. A list comes in pages: `next` of one is `cursor` of the next. Every answer but this \
                      document travels in the envelope."
            .to_owned(),
        servers: json!([{
            "url": "https://{hub}",
            "variables": { "hub": { "default": "hub.example:8440", "description": "`public_url` of hub.toml" } },
        }]),
        schemes: json!({
            "certificate": { "type": "mutualTLS", "description": "the certificate that enrolment gave the host" },
            "token": { "type": "http", "scheme": "bearer", "description": "an operator's token: `hubd operator add`. The cookie of a session does as well." },
            "session": { "type": "apiKey", "in": "cookie", "name": SESSION_COOKIE, "description":
                "a person's session: `POST /v1/login`. A change also needs the header `x-holdfast-csrf`." },
        }),
        nulls: Nulls::Taken,
        calls: TABLES,
    })
}
