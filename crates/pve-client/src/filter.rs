//! The firewall options and address set of one guest.
//!
//! Input: answers of Proxmox. Output: [`FilterFacts`]. If they are not set, a guest's firewall and `ipfilter` are off
//! and `macfilter` is on (the schema's defaults).

use std::collections::BTreeMap;

use serde_json::Value;

use super::wire::{Row, Unreadable, rows};
use agent_core::model::filter::{COMMENT, EntryOwner, FilterFacts, SET, Switched};

fn switched(row: Row<'_>, key: &str, without: Switched) -> Result<Switched, Unreadable> {
    let seen = row.whole_opt(key)?;
    Ok(seen.map_or(without, |seen| if seen == 0 { Switched::Off } else { Switched::On }))
}

/// The options; the set is not in them.
pub(super) fn options(value: &Value) -> Result<FilterFacts, Unreadable> {
    let row = Row::of(value)?;
    Ok(FilterFacts {
        firewall: switched(row, "enable", Switched::Off)?,
        hardware: switched(row, "macfilter", Switched::On)?,
        addresses: switched(row, "ipfilter", Switched::Off)?,
        allowed: None,
    })
}

/// Whether the set is in a list of sets.
pub(super) fn has_set(value: &Value) -> Result<bool, Unreadable> {
    let names: Result<Vec<String>, Unreadable> =
        rows(value)?.into_iter().map(|row| row.text("name")).collect();
    Ok(names?.iter().any(|name| name == SET))
}

/// The entries of the set.
pub(super) fn entries(value: &Value) -> Result<BTreeMap<String, EntryOwner>, Unreadable> {
    let entry = |row: Row<'_>| {
        let ours = row.text_opt("comment")?.is_some_and(|comment| comment == COMMENT);
        Ok((row.text("cidr")?, if ours { EntryOwner::Ours } else { EntryOwner::Others }))
    };
    rows(value)?.into_iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// As the genuine server answers (`25-firewall`).
    #[test]
    fn what_is_not_said_is_as_the_schema_has_it() {
        let nothing = options(&json!({ "digest": "da39a3ee5e6b4b0d3255bfef95601890afd80709" })).unwrap();
        let (on, off) = (Switched::On, Switched::Off);
        assert_eq!((nothing.firewall, nothing.hardware, nothing.addresses), (off, on, off));
        let all = options(&json!({ "enable": 1, "ipfilter": 1, "macfilter": 0, "digest": "d" })).unwrap();
        assert_eq!((all.firewall, all.hardware, all.addresses), (on, off, on));
        assert!(options(&json!({ "enable": "perhaps" })).is_err());
    }

    #[test]
    fn an_entry_is_ours_by_its_comment() {
        let list =
            json!([{ "cidr": "10.66.0.1", "comment": "holdfast", "digest": "d" }, { "cidr": "fd00::/64" }]);
        let read = entries(&list).unwrap();
        assert_eq!((read["10.66.0.1"], read["fd00::/64"]), (EntryOwner::Ours, EntryOwner::Others));
        assert!(has_set(&json!([{ "name": "other" }, { "name": "ipfilter-net0" }])).unwrap());
        assert!(!has_set(&json!([])).unwrap());
    }
}
