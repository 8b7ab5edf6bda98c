//! Ids of alerts.

use crate::text::texts;

texts! {
    /// The id of an incident: `hub-NUMBER` or `HOST_ID-NUMBER`. It stays the same while the incident fires, is repeated
    /// and is resolved.
    AlertId, 5..=57, "the id of an alert is hub-NUMBER or HOST_ID-NUMBER",
        |text| text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
}
