//! The outcomes for unsynced changes at a power loss.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::dice::Dice;
use crate::disk::{Change, Disk, Ino, Kind, Node, ROOT, Twice};

/// A disk writes sectors of this many bytes whole or not at all.
const SECTOR: usize = 512;

/// The fate of unsynced data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// All of it is lost.
    Lost,
    /// All of it is there, although no sync was requested.
    Kept,
    /// Of each file some writes, in part; of each folder the first changes of names. The seed says which.
    Torn(u64),
}

impl Fate {
    /// Reads what [`fmt::Display`] writes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "lost" => Some(Self::Lost),
            "kept" => Some(Self::Kept),
            _ => Some(Self::Torn(text.strip_prefix("torn")?.parse().ok()?)),
        }
    }

    /// Writes into an empty folder what is found on a disk after the power came back.
    pub fn found(self, disk: &Disk, into: &Path) {
        disk.look_at(|nodes| self.lay_out(nodes, into));
    }

    fn lay_out(self, nodes: &BTreeMap<Ino, Node>, into: &Path) {
        let mut dice = match self {
            Self::Torn(seed) => Dice::of(seed),
            Self::Lost | Self::Kept => Dice::of(0),
        };
        self.folder(nodes, ROOT, into, &mut dice);
    }

    fn folder(self, nodes: &BTreeMap<Ino, Node>, ino: Ino, into: &Path, dice: &mut Dice) {
        let Some(Node { meta, kind: Kind::Folder(folder) }) = nodes.get(&ino) else { return };
        for (name, ino) in self.names(folder, dice) {
            let path = into.join(name);
            match nodes.get(&ino).map(|node| (&node.kind, node.meta)) {
                Some((Kind::Folder(_), _)) => {
                    std::fs::create_dir(&path).unwrap();
                    self.folder(nodes, ino, &path, dice);
                }
                Some((Kind::File(file), meta)) => {
                    std::fs::write(&path, self.bytes(file, dice)).unwrap();
                    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(meta.mode)).unwrap();
                }
                Some((Kind::Shared(_), _)) | None => {}
            }
        }
        std::fs::set_permissions(into, std::fs::Permissions::from_mode(meta.mode)).unwrap();
    }

    fn names(
        self,
        folder: &Twice<BTreeMap<OsString, Ino>, crate::disk::Naming>,
        dice: &mut Dice,
    ) -> BTreeMap<OsString, Ino> {
        let all = folder.pending.len();
        let there = match self {
            Self::Lost => 0,
            Self::Kept => all,
            Self::Torn(_) => usize::try_from(dice.below(all as u64 + 1)).unwrap(),
        };
        let mut names = folder.kept.clone();
        folder.pending.iter().take(there).for_each(|naming| naming.apply(&mut names));
        names
    }

    fn bytes(self, file: &Twice<Vec<u8>, Change>, dice: &mut Dice) -> Vec<u8> {
        let mut bytes = file.kept.clone();
        match self {
            Self::Lost => {}
            Self::Kept => bytes.clone_from(&file.now),
            Self::Torn(_) => {
                for change in &file.pending {
                    if let Some(change) = torn(change, dice) {
                        change.apply(&mut bytes);
                    }
                }
            }
        }
        bytes
    }
}

/// A third of the changes is lost, a third is there, and of a third the first sectors are.
fn torn(change: &Change, dice: &mut Dice) -> Option<Change> {
    match (dice.below(3), change) {
        (0, _) => None,
        (1, Change::Write(at, bytes)) => {
            // Sectors begin where the file does, not where the write does.
            let sectors = usize::try_from(dice.below((bytes.len() / SECTOR) as u64 + 1)).unwrap();
            let end = (at / SECTOR + sectors) * SECTOR;
            let first = bytes.get(..end.saturating_sub(*at)).unwrap_or(bytes);
            (!first.is_empty()).then(|| Change::Write(*at, first.to_vec()))
        }
        (_, whole) => Some(whole.clone()),
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost => f.write_str("lost"),
            Self::Kept => f.write_str("kept"),
            Self::Torn(seed) => write!(f, "torn{seed}"),
        }
    }
}
