//! The ownership tag of a guest.
//!
//! Two tags (`holdfast`, `hf-<first 8 hex of the uid>`) and the first line of the description (`holdfast guest <uid>`).
//! All of it must be there, and agree with our records, before anything but reading. A copy that was restored next to a
//! guest has a mark of its own (`holdfast`, `copy_of-<12 hex>`, `holdfast beside <uid> by <operation>`), so that no
//! part of it can be taken for the guest. Deliberately absent: trust in a part of a mark.

use std::collections::BTreeSet;

use holdfast_protocol::id::{GuestUid, OperationId, Vmid};

/// The tag that every guest of ours carries.
pub const TAG: &str = "holdfast";

const LINE: &str = "holdfast guest ";

const COPY_LINE: &str = "holdfast beside ";

const COPY_TAG: &str = "beside-";

/// What a guest's configuration says of its identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// No part of a mark.
    None,
    /// A whole mark that agrees with itself.
    Of(GuestUid),
    /// The whole mark of a copy.
    Copy {
        /// The guest whose backup it was made from.
        of: GuestUid,
        /// The operation that made it.
        by: OperationId,
    },
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

/// The tags of a copy, sorted as Proxmox gives them back.
#[must_use]
pub fn copy_tags(by: OperationId) -> [String; 2] {
    [copy_tag(by), TAG.to_owned()]
}

/// The first line of a copy's description. The restore call itself carries it, so a copy never exists with the line of
/// the guest.
#[must_use]
pub fn copy_line(of: GuestUid, by: OperationId) -> String {
    format!("{COPY_LINE}{of} by {by}")
}

/// The whole description of a copy.
#[must_use]
pub fn copy_description(of: GuestUid, by: OperationId, from: &str) -> String {
    format!(
        "{}\nA copy of that guest, restored by holdfast from {from}. It is never started by the agent; its networks are \
         unplugged. Before you start it: its disks hold the guest's own keys and tokens.",
        copy_line(of, by)
    )
}

/// The whole description of a guest that a copy took the place of. It is recognised as a copy of its guest, as the copy
/// was before.
#[must_use]
pub fn former_description(of: GuestUid, by: OperationId, now: Vmid) -> String {
    format!(
        "{}\nThat guest as it was before a copy of it, which is guest {now}, took its place. Kept by holdfast until a person lets \
         it go; it is never started by the agent, and its networks are unplugged. Never plug them in while {now} runs.",
        copy_line(of, by)
    )
}

/// The whole description of a container that is made from a newer image for that guest, until it is in its place.
#[must_use]
pub fn next_description(of: GuestUid, by: OperationId, image: &str) -> String {
    format!(
        "{}\nMade by holdfast from image {image} to take the place of that guest. Until then its networks are unplugged.",
        copy_line(of, by)
    )
}

/// The whole description of a guest whose volumes and identity went to a container of a newer image.
#[must_use]
pub fn rebased_description(of: GuestUid, by: OperationId, now: Vmid) -> String {
    format!(
        "{}\nThat guest as it was before it was put on a newer image. Its volumes and its identity went to guest {now}; what was \
         written to its root disk is here. Kept by holdfast until a person lets it go; it is never started by the agent, and its \
         networks are unplugged. Never plug them in while {now} runs.",
        copy_line(of, by)
    )
}

/// The whole description of a scratch guest. It is a copy of its guest like any other; only our records say that it is
/// thrown away.
#[must_use]
pub fn test_description(of: GuestUid, by: OperationId, from: &str) -> String {
    format!(
        "{}\nA copy of that guest, restored by holdfast from {from} to see whether the backup comes back. It is destroyed \
         when that was seen; its networks are unplugged.",
        copy_line(of, by)
    )
}

/// Reads the mark from a configuration.
#[must_use]
pub fn read(tags: &BTreeSet<String>, description: &str) -> Mark {
    let first = description.lines().next().unwrap_or_default();
    let shorts: Vec<&String> = tags.iter().filter(|tag| tag.starts_with("hf-")).collect();
    if let Some(text) = first.strip_prefix(COPY_LINE) {
        return copy_of(tags, text).filter(|_| shorts.is_empty()).unwrap_or(Mark::Broken);
    }
    if tags.iter().any(|tag| tag.starts_with(COPY_TAG)) {
        return Mark::Broken;
    }
    let line = first.strip_prefix(LINE);
    match (line, shorts.as_slice(), tags.contains(TAG)) {
        (None, [], false) => Mark::None,
        (Some(text), [short], true) => match text.trim().parse::<GuestUid>() {
            Ok(uid) if **short == short_tag(uid) => Mark::Of(uid),
            _ => Mark::Broken,
        },
        _ => Mark::Broken,
    }
}

fn copy_of(tags: &BTreeSet<String>, text: &str) -> Option<Mark> {
    let (of, by) = text.trim().split_once(" by ")?;
    let (of, by) = (of.parse().ok()?, by.parse().ok()?);
    let whole = tags.contains(TAG) && tags.iter().filter(|tag| tag.starts_with(COPY_TAG)).eq([&copy_tag(by)]);
    whole.then_some(Mark::Copy { of, by })
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
    format!("rolling-{}", random_part(rolled_by))
}

fn copy_tag(by: OperationId) -> String {
    format!("{COPY_TAG}{}", random_part(by))
}

/// The last digits of an id of version 7 are random, the first ones a time.
fn random_part(id: OperationId) -> String {
    id.uuid().simple().to_string().chars().skip(20).collect()
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

    /// Neither half of a copy's mark makes a guest, and neither half of a guest's makes a copy.
    #[test]
    fn a_copy_is_never_read_as_its_guest() {
        let me = uid("018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55");
        let by: OperationId = "018f3c1f-6b1f-7c1d-9d0a-2f6d1c0b7a56".parse().unwrap();
        let copy: BTreeSet<String> = copy_tags(by).into();
        let text = copy_description(me, by, "backup2:backup/a.tar.zst");
        assert_eq!(read(&copy, &text), Mark::Copy { of: me, by });
        let guest: BTreeSet<String> = tags(me).into();
        let both: BTreeSet<String> = copy.union(&guest).cloned().collect();
        let other: BTreeSet<String> =
            copy_tags("018f3c1f-6b1f-7c1d-9d0a-2f6d1c0b7a57".parse().unwrap()).into();
        for (tags, text) in [
            (&guest, text.clone()),
            (&both, text.clone()),
            (&both, description(me)),
            (&copy, description(me)),
            (&copy, String::new()),
            (&other, text.clone()),
            (&BTreeSet::new(), text.clone()),
            (&copy, text.replace(" by ", " of ")),
        ] {
            assert_eq!(read(tags, &text), Mark::Broken, "{tags:?} {text:?}");
        }
    }
}
