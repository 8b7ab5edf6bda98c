//! The identity mark: how a guest says whose it is.
//!
//! Two tags (`holdfast`, `hf-<first 8 hex of the uid>`) and the first line of the description (`holdfast guest <uid>`).
//! All of it must be there, and agree with our records, before anything but reading. Deliberately absent: trust in a
//! part of it.

use std::collections::BTreeSet;

use holdfast_protocol::id::{GuestUid, OperationId};

/// The tag that every guest of ours carries.
pub const TAG: &str = "holdfast";

const LINE: &str = "holdfast guest ";

/// What a guest's configuration says of its identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// No part of a mark.
    None,
    /// A whole mark that agrees with itself.
    Of(GuestUid),
    /// A part of a mark, or parts that do not agree: somebody changed it by hand.
    Broken,
}

/// The tags of a guest, sorted as Proxmox gives them back.
#[must_use]
pub fn tags(uid: GuestUid) -> [String; 2] {
    [short_tag(uid), TAG.to_owned()]
}

/// The first line of the description.
#[must_use]
pub fn first_line(uid: GuestUid) -> String {
    format!("{LINE}{uid}")
}

/// The whole description that we set.
#[must_use]
pub fn description(uid: GuestUid) -> String {
    format!(
        "{}\nKept by holdfast. Tags and the line above say whose this guest is: do not change them.",
        first_line(uid)
    )
}

/// Reads the mark from a configuration.
#[must_use]
pub fn read(tags: &BTreeSet<String>, description: &str) -> Mark {
    let line = description.lines().next().unwrap_or_default().strip_prefix(LINE);
    let shorts: Vec<&String> = tags.iter().filter(|tag| tag.starts_with("hf-")).collect();
    match (line, shorts.as_slice(), tags.contains(TAG)) {
        (None, [], false) => Mark::None,
        (Some(text), [short], true) => match text.trim().parse::<GuestUid>() {
            Ok(uid) if **short == short_tag(uid) => Mark::Of(uid),
            _ => Mark::Broken,
        },
        _ => Mark::Broken,
    }
}

/// The description of a snapshot: by it, and by our record, a snapshot is known as the one that an operation made.
#[must_use]
pub fn snapshot_line(made_by: OperationId) -> String {
    format!("holdfast snapshot of operation {made_by}")
}

/// A tag that a guest carries from just before a rollback until the rollback puts the old tags back: while it is there,
/// the rollback has not happened.
#[must_use]
pub fn rolling_tag(rolled_by: OperationId) -> String {
    // The last digits of an id of version 7 are random, the first ones a time.
    let hex: String = rolled_by.uuid().simple().to_string().chars().skip(20).collect();
    format!("rolling-{hex}")
}

fn short_tag(uid: GuestUid) -> String {
    let hex: String = uid.uuid().simple().to_string().chars().take(8).collect();
    format!("hf-{hex}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uid(text: &str) -> GuestUid {
        text.parse().unwrap()
    }

    #[test]
    fn a_mark_is_whole_or_it_is_none() {
        let me = uid("018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55");
        let all: BTreeSet<String> = tags(me).into();
        assert_eq!(read(&all, &description(me)), Mark::Of(me));
        assert_eq!(read(&BTreeSet::new(), "a customer's note"), Mark::None);
        let extra: BTreeSet<String> = all.iter().cloned().chain(["web".to_owned()]).collect();
        assert_eq!(read(&extra, &description(me)), Mark::Of(me), "other tags do not matter");
        let one: BTreeSet<String> = [TAG.to_owned()].into();
        let other = uid("018f3c1f-6b1f-7c1d-9d0a-2f6d1c0b7a55");
        for (tags, text) in [
            (&one, description(me)),
            (&all, String::new()),
            (&all, description(other)),
            (&BTreeSet::new(), description(me)),
            (&all, format!("note\n{}", first_line(me))),
        ] {
            assert_eq!(read(tags, &text), Mark::Broken, "{tags:?} {text:?}");
        }
    }
}
