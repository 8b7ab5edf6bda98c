//! Data on a guest's root disk, and what was signed about it.
//!
//! In: what a guest agent found on the root disk outside of volumes, and what an operator signed for when the guest is put on
//! a newer image. Out: what is known of that data now, and whether the signature covers it. A guest's word is a claim: it
//! keeps an operator from an oversight, and proves nothing. Deliberately absent: finding the data, which the guest agent does.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::texts;

/// Items in one list. It fits into a hello with all that a hello can say.
pub const ITEMS_MAX: usize = 8;

/// A list that is older says nothing of today.
pub const GOOD_FOR: SignedDuration = SignedDuration::from_hours(24);

texts! {
    /// Where the data is, in the guest. Other characters of a path are replaced before it is reported.
    RootDiskPath, 2..=96, "a path is 2 to 96 printable ASCII characters from its / on, without quotes and backslashes", |text| {
        text.starts_with('/') && text.bytes().all(|b| matches!(b, b' '..=b'~') && b != b'"' && b != b'\\')
    };
}

/// What kind of data it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RootDiskKind {
    /// A volume of Docker's.
    DockerVolume,
    /// What a container has mounted from the guest and may write to.
    DockerBind,
    /// A folder of a database below `/var/lib`.
    Database,
    /// A home directory.
    Home,
    /// Files of no package below `/srv`, `/opt` or `/var/www`.
    Files,
}

impl RootDiskKind {
    /// For people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DockerVolume => "volume of Docker",
            Self::DockerBind => "mount of a container",
            Self::Database => "database",
            Self::Home => "home directory",
            Self::Files => "files of no package",
        }
    }
}

/// One place with data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RootDiskItem {
    /// What it is.
    pub kind: RootDiskKind,
    /// Where.
    pub path: RootDiskPath,
    /// How much was seen of it, in bytes.
    pub bytes: u64,
}

/// Whether all of the root disk that counts was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Coverage {
    /// All of it.
    Whole,
    /// A limit ended the walk, or something could not be read, or more was found than a list holds.
    Partial,
}

/// What a guest agent found on its root disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RootDiskData {
    /// When, by the guest's clock.
    pub at: Timestamp,
    /// How much of it was looked at.
    pub coverage: Coverage,
    /// The places, the largest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub items: Vec<RootDiskItem>,
}

/// What is known of a root disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knowledge<'a> {
    /// Nothing that counts; why.
    Unknown(&'static str),
    /// There was none.
    NoData,
    /// There is some.
    Data(&'a RootDiskData),
}

impl<'a> Knowledge<'a> {
    /// What a list is worth now.
    #[must_use]
    pub fn of(data: Option<&'a RootDiskData>, now: Timestamp) -> Self {
        let Some(data) = data else {
            return Self::Unknown("its guest agent reported nothing of it");
        };
        match (data.items.is_empty(), data.coverage) {
            (false, Coverage::Whole | Coverage::Partial) => Self::Data(data),
            (true, _) if now.duration_since(data.at) > GOOD_FOR => {
                Self::Unknown("what its guest agent reported is older than a day")
            }
            (true, Coverage::Partial) => Self::Unknown("its guest agent could not look at all of it"),
            (true, Coverage::Whole) => Self::NoData,
        }
    }
}

/// What an operator knew of the data that stays behind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LeftBehind {
    /// There is none.
    #[default]
    Nothing,
    /// These places, and no others.
    Listed(BTreeSet<RootDiskPath>),
    /// It is unknown what there is, and that was accepted.
    Unlisted,
}

impl LeftBehind {
    /// Whether nothing stays behind.
    #[must_use]
    pub const fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }

    /// What is signed for when what is known is accepted.
    #[must_use]
    pub fn accepted(known: Knowledge<'_>) -> Self {
        match known {
            Knowledge::NoData => Self::Nothing,
            Knowledge::Unknown(_) => Self::Unlisted,
            Knowledge::Data(data) => Self::Listed(data.items.iter().map(|item| item.path.clone()).collect()),
        }
    }

    /// Whether this covers what is known now.
    ///
    /// # Errors
    /// What it does not cover.
    pub fn covers<'a>(&self, known: Knowledge<'a>) -> Result<(), Uncovered<'a>> {
        let listed = match (self, known) {
            (_, Knowledge::NoData) | (Self::Listed(_) | Self::Unlisted, Knowledge::Unknown(_)) => {
                return Ok(());
            }
            (Self::Nothing, Knowledge::Unknown(why)) => return Err(Uncovered::Unknown(why)),
            (Self::Nothing | Self::Unlisted, Knowledge::Data(data)) => (None, data),
            (Self::Listed(paths), Knowledge::Data(data)) => (Some(paths), data),
        };
        let (paths, data) = listed;
        let is_new = |item: &&RootDiskItem| paths.is_none_or(|paths| !paths.contains(&item.path));
        data.items.iter().find(is_new).map_or(Ok(()), |item| Err(Uncovered::Item(item)))
    }
}

/// What a signature does not cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Uncovered<'a> {
    /// It is unknown what is there.
    #[error("it is unknown what is on its root disk outside of volumes: {0}")]
    Unknown(&'static str),
    /// This place.
    #[error("its root disk holds data outside of volumes, such as {} ({}, {} bytes)", .0.path.as_str(), .0.kind.as_str(), .0.bytes)]
    Item(&'a RootDiskItem),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hours: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_hours(hours)
    }

    fn data(paths: &[&str], coverage: Coverage) -> RootDiskData {
        let item = |path: &&str| RootDiskItem {
            kind: RootDiskKind::Files,
            path: (*path).to_owned().try_into().unwrap(),
            bytes: 7,
        };
        RootDiskData { at: at(0), coverage, items: paths.iter().map(item).collect() }
    }

    #[test]
    fn only_a_whole_and_recent_list_without_items_says_that_nothing_is_there() {
        use Coverage::{Partial, Whole};
        let none = data(&[], Whole);
        assert_eq!(Knowledge::of(Some(&none), at(24)), Knowledge::NoData);
        assert!(matches!(Knowledge::of(Some(&none), at(25)), Knowledge::Unknown(_)));
        assert!(matches!(Knowledge::of(Some(&data(&[], Partial)), at(1)), Knowledge::Unknown(_)));
        assert!(matches!(Knowledge::of(None, at(1)), Knowledge::Unknown(_)));
        // What was there a month ago is still a reason to look.
        let some = data(&["/srv/wiki"], Partial);
        assert_eq!(Knowledge::of(Some(&some), at(700)), Knowledge::Data(&some));
    }

    #[test]
    fn a_signature_covers_what_was_known_when_it_was_made_and_no_more() {
        let (one, two) =
            (data(&["/srv/wiki"], Coverage::Whole), data(&["/srv/wiki", "/root"], Coverage::Whole));
        let unknown = Knowledge::Unknown("older");
        let [nothing, listed, unlisted] =
            [Knowledge::NoData, Knowledge::Data(&one), unknown].map(LeftBehind::accepted);
        for signed in [&nothing, &listed, &unlisted] {
            assert!(signed.covers(Knowledge::NoData).is_ok(), "{signed:?}");
        }
        assert!(matches!(nothing.covers(unknown), Err(Uncovered::Unknown("older"))));
        assert!(nothing.covers(Knowledge::Data(&one)).is_err());
        assert!(listed.covers(Knowledge::Data(&one)).is_ok() && listed.covers(unknown).is_ok());
        let Err(Uncovered::Item(item)) = listed.covers(Knowledge::Data(&two)) else { panic!("not signed") };
        assert_eq!(item.path.as_str(), "/root");
        assert!(unlisted.covers(unknown).is_ok());
        assert!(unlisted.covers(Knowledge::Data(&one)).is_err(), "it is known by now: look again");
    }

    #[test]
    fn paths_are_printable_and_bounded() {
        let path = |text: &str| RootDiskPath::try_from(text.to_owned()).is_ok();
        assert!(path("/srv/a b") && !path("srv") && !path("/") && !path("/a\"b") && !path("/a\\b"));
        assert!(!path("/\u{1b}[2J") && !path("/ä") && !path(&format!("/{}", "a".repeat(96))));
        let text = serde_json::to_string(&LeftBehind::accepted(Knowledge::Data(&data(
            &["/srv/wiki"],
            Coverage::Whole,
        ))))
        .unwrap();
        assert_eq!(text, r#"{"listed":["/srv/wiki"]}"#);
        assert_eq!(serde_json::to_string(&LeftBehind::Unlisted).unwrap(), r#""unlisted""#);
    }
}
