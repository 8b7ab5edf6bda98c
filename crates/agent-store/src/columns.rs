//! The forms of values in columns.

use holdfast_protocol::id::Vmid;
use jiff::Timestamp;
use rusqlite::Connection;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::StoreError;

pub(super) fn micros(at: Timestamp) -> i64 {
    at.as_microsecond()
}

pub(super) fn time(micros: i64) -> Result<Timestamp, StoreError> {
    Timestamp::from_microsecond(micros).map_err(StoreError::unreadable("a time"))
}

/// For showing: a time that cannot be is none.
pub(super) fn when(micros: i64) -> Option<Timestamp> {
    Timestamp::from_microsecond(micros).ok()
}

pub(super) fn vmid(number: i64) -> Result<Vmid, StoreError> {
    let number = u32::try_from(number).map_err(StoreError::unreadable("a VMID"))?;
    Vmid::try_from(number).map_err(StoreError::unreadable("a VMID"))
}

pub(super) fn parsed<T>(what: &'static str, text: &str) -> Result<T, StoreError>
where
    T: std::str::FromStr,
    T::Err: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    text.parse().map_err(StoreError::unreadable(what))
}

pub(super) fn json<T: Serialize>(what: &'static str, value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(StoreError::unreadable(what))
}

pub(super) fn from_json<T: DeserializeOwned>(what: &'static str, text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(StoreError::unreadable(what))
}

/// A value of an enum without fields, as serde writes it.
pub(super) fn word<T: Serialize>(what: &'static str, value: &T) -> Result<String, StoreError> {
    Ok(json(what, value)?.trim_matches('"').to_owned())
}

/// The latest time seen only moves forward (I11).
pub(super) fn note_time(connection: &Connection, now: Timestamp) -> Result<(), rusqlite::Error> {
    connection.execute(
        "INSERT INTO counter (key, value) VALUES ('latest_time', ?1)
         ON CONFLICT (key) DO UPDATE SET value = max(value, excluded.value)",
        [micros(now)],
    )?;
    Ok(())
}
