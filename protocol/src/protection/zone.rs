//! Time zones by name, such as `Europe/Berlin`.
//!
//! The rules of every zone are in this program, so that hub, operator and agent read a schedule alike whatever their
//! machines have installed. There is no local zone: a document says which one it means.

use std::fmt;

use jiff::tz::{TimeZone, TimeZoneDatabase};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Longer than any name.
const BYTES_MAX: usize = 64;

/// A time zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Zone {
    name: String,
    zone: TimeZone,
}

/// Not a zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no time zone: write UTC, or a name such as Europe/Berlin")]
pub struct ZoneError(String);

impl Zone {
    /// Its name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// Its rules.
    #[must_use]
    pub const fn time_zone(&self) -> &TimeZone {
        &self.zone
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl TryFrom<String> for Zone {
    type Error = ZoneError;
    fn try_from(name: String) -> Result<Self, ZoneError> {
        let clipped = || ZoneError(name.chars().take(BYTES_MAX).collect());
        if name.len() > BYTES_MAX {
            return Err(clipped());
        }
        let zone = TimeZoneDatabase::bundled().get(&name).map_err(|_| clipped())?;
        // One spelling each; and a zone without rules is none.
        let named = zone.iana_name() == Some(name.as_str()) && !zone.is_unknown();
        if named { Ok(Self { name, zone }) } else { Err(clipped()) }
    }
}

impl From<Zone> for String {
    fn from(zone: Zone) -> Self {
        zone.name
    }
}

impl JsonSchema for Zone {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Zone".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string", "minLength": 1, "maxLength": BYTES_MAX,
            "description": "a time zone by its name, such as `Europe/Berlin` or `UTC`",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_has_one_name() {
        for good in ["UTC", "Europe/Berlin", "America/Havana", "Australia/Lord_Howe", "Etc/GMT+5"] {
            assert_eq!(Zone::try_from(good.to_owned()).unwrap().as_str(), good);
        }
        for bad in
            ["", "utc", "europe/berlin", "Europe/Berlin ", "CEST", "local", "../UTC", "+02:00", "Etc/Unknown"]
        {
            assert!(Zone::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }
}
