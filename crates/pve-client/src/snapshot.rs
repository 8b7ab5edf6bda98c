//! Snapshots of a guest, and the proof that one is ours.
//!
//! Input: rows of `GET …/snapshot`, and the line that the operation which made a snapshot wrote into it. Output:
//! [`OwnSnapshot`], or what exists there instead. Deliberately absent: `force`, `start`, and a way to make the proof
//! without reading the list.

use std::fmt;

use holdfast_protocol::id::{SnapshotName, Vmid};
use serde_json::Value;

use super::change::Description;
use super::wire::{Row, Unreadable, rows};

/// One snapshot. The pseudo entry `current` is left out when reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub name: String,
    /// The one it grew from.
    pub parent: Option<String>,
    /// When it was made.
    pub made_epoch_s: Option<u64>,
    /// The description that its maker wrote, without the newline that Proxmox appends.
    pub description: String,
    /// `prepare` or `delete` while a task works on it, or since one died over it.
    pub half: Option<String>,
}

impl Snapshot {
    pub(super) fn read_list(value: &Value) -> Result<Vec<Self>, Unreadable> {
        let of = |row: Row<'_>| {
            let description = row.text_opt("description")?.unwrap_or_default();
            Ok(Self {
                name: row.text("name")?,
                parent: row.text_opt("parent")?,
                made_epoch_s: row.whole_opt("snaptime")?,
                description: description.strip_suffix('\n').unwrap_or(&description).to_owned(),
                half: row.text_opt("snapstate")?,
            })
        };
        let all: Vec<Self> = rows(value)?.into_iter().map(of).collect::<Result<_, _>>()?;
        Ok(all.into_iter().filter(|snapshot| snapshot.name != "current").collect())
    }
}

/// Whether every volume of a guest can be snapshotted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CanSnapshot {
    /// All of them can.
    Yes,
    /// At least one cannot. Proxmox does not say which.
    No,
}

impl CanSnapshot {
    pub(super) fn read(value: &Value) -> Result<Self, Unreadable> {
        Ok(if Row::of(value)?.flag("hasFeature")? { Self::Yes } else { Self::No })
    }
}

/// The snapshot to take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSnapshot {
    pub name: SnapshotName,
    /// The line by which it is known again.
    pub line: Description,
}

/// The entry listed under the name of a snapshot that we made.
#[derive(Debug)]
pub enum SnapshotListing {
    Whole(OwnSnapshot),
    /// Our snapshot, in this state: a task works on it, or died while doing so.
    Half(String),
    /// A snapshot that another user made or changed.
    Others,
    Nothing,
}

/// Proof that a snapshot is the one that one of our operations made, and that it is whole.
#[derive(Debug)]
pub struct OwnSnapshot {
    vmid: Vmid,
    name: SnapshotName,
    made_epoch_s: Option<u64>,
}

impl OwnSnapshot {
    /// Looks for it in the guest's list. `line` is the line that its operation wrote, from the journal.
    #[must_use]
    pub fn find(vmid: Vmid, name: &SnapshotName, line: &str, listed: &[Snapshot]) -> SnapshotListing {
        let Some(row) = listed.iter().find(|row| row.name == name.as_str()) else {
            return SnapshotListing::Nothing;
        };
        if row.description != line {
            return SnapshotListing::Others;
        }
        match &row.half {
            Some(state) => SnapshotListing::Half(state.clone()),
            None => {
                let (name, made_epoch_s) = (name.clone(), row.made_epoch_s);
                SnapshotListing::Whole(Self { vmid, name, made_epoch_s })
            }
        }
    }

    #[must_use]
    pub const fn vmid(&self) -> Vmid {
        self.vmid
    }

    #[must_use]
    pub const fn name(&self) -> &SnapshotName {
        &self.name
    }

    /// When Proxmox made it.
    #[must_use]
    pub const fn made_epoch_s(&self) -> Option<u64> {
        self.made_epoch_s
    }
}

impl fmt::Display for OwnSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of guest {}", self.name, self.vmid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn listed() -> Vec<Snapshot> {
        Snapshot::read_list(&json!([
            {"name": "s1", "description": "ours\n", "snaptime": 1_795_233_627},
            {"name": "s2", "description": "ours", "snaptime": "1795233628", "parent": "s1", "snapstate": "prepare"},
            {"name": "s3", "description": "first snapshot\n"},
            {"name": "current", "description": "You are here!", "parent": "s2", "running": 0, "digest": "37"}
        ]))
        .unwrap()
    }

    fn find(name: &str) -> SnapshotListing {
        OwnSnapshot::find(Vmid::try_from(300).unwrap(), &name.parse().unwrap(), "ours", &listed())
    }

    #[test]
    fn a_name_alone_proves_nothing() {
        assert_eq!(listed().len(), 3, "current is no snapshot");
        let SnapshotListing::Whole(own) = find("s1") else { panic!("{:?}", find("s1")) };
        assert_eq!((own.name().as_str(), own.made_epoch_s()), ("s1", Some(1_795_233_627)));
        assert!(matches!(find("s2"), SnapshotListing::Half(state) if state == "prepare"));
        assert!(matches!(find("s3"), SnapshotListing::Others));
        assert!(matches!(find("s4"), SnapshotListing::Nothing));
    }
}
