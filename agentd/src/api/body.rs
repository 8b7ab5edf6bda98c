//! A bounded body, read within a bounded time, strictly.
//!
//! An optional field without a value has one spelling: it is left out. `null` is refused anywhere in a body; the parser
//! of an optional field alone would take it for absent.

use std::fmt;
use std::time::Duration;

use axum::body::{Body, Bytes};
use holdfast_protocol::json;
use holdfast_protocol::local::BODY_BYTES_MAX;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::error::ApiError;

/// 16 KiB from the same host arrive at once; a body that takes longer is a held-open connection.
const ARRIVAL_MAX: Duration = Duration::from_secs(10);

/// Reads one JSON document.
pub(super) async fn read<T: DeserializeOwned>(what: &'static str, body: Body) -> Result<T, ApiError> {
    parse(what, &bytes(what, body).await?)
}

/// One JSON document.
pub(super) fn parse<T: DeserializeOwned>(what: &'static str, bytes: &[u8]) -> Result<T, ApiError> {
    let document = json::parse(what, bytes, BODY_BYTES_MAX).map_err(ApiError::Body)?;
    let NoNull = json::parse(what, bytes, BODY_BYTES_MAX).map_err(ApiError::Body)?;
    Ok(document)
}

/// Reads the bytes.
pub(super) async fn bytes(what: &'static str, body: Body) -> Result<Bytes, ApiError> {
    Ok(net::server::body::read(what, body, BODY_BYTES_MAX, ARRIVAL_MAX).await?)
}

/// Any JSON without a `null` in it. Nothing of it is stored: there may be a secret in a body.
struct NoNull;

impl<'de> Deserialize<'de> for NoNull {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Looker)
    }
}

struct Looker;

impl<'de> Visitor<'de> for Looker {
    type Value = NoNull;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }
    fn visit_unit<E: Error>(self) -> Result<NoNull, E> {
        Err(E::custom("null says nothing: leave the field out"))
    }
    fn visit_bool<E>(self, _: bool) -> Result<NoNull, E> {
        Ok(NoNull)
    }
    fn visit_i64<E>(self, _: i64) -> Result<NoNull, E> {
        Ok(NoNull)
    }
    fn visit_u64<E>(self, _: u64) -> Result<NoNull, E> {
        Ok(NoNull)
    }
    fn visit_f64<E>(self, _: f64) -> Result<NoNull, E> {
        Ok(NoNull)
    }
    fn visit_str<E>(self, _: &str) -> Result<NoNull, E> {
        Ok(NoNull)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<NoNull, A::Error> {
        while let Some(NoNull) = items.next_element()? {}
        Ok(NoNull)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<NoNull, A::Error> {
        while let Some((serde::de::IgnoredAny, NoNull)) = fields.next_entry()? {}
        Ok(NoNull)
    }
}
