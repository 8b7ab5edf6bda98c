//! Volumes as real folders and files beneath the state folder.
//!
//! A storage path of the node (`/mnt/labdir`) is re-rooted to `STATE/root/mnt/labdir`. An archive or template is the very file. A disk image
//! (`vm-110-disk-0.raw`) is not a block device but a folder in its place, holding `tree/` (its files) and `size` (its bytes, as text);
//! a snapshot of a btrfs volume is a copy of that folder named `…@snap`, as on the real one. So content goes in and comes out for real,
//! and no root is needed. Deliberately absent: quotas, and the bytes of a filesystem.
use std::path::{Path, PathBuf};

use super::config::{Definition, StorageConfig};
use super::copy::copy_tree;
use super::server_names;
use crate::fail::{Fallible, Refusal, host};

/// A volume name behind the storage's colon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VolumeName {
    /// A guest's disk: `110/vm-110-disk-0.raw`.
    Image {
        /// Whose it is.
        vmid: u32,
        /// `vm-110-disk-0.raw`
        name: String,
    },
    /// A file of a kind: `backup/vzdump-….tar.zst`.
    File {
        /// `backup`, `vztmpl`, `iso`, `snippets`.
        kind: String,
        name: String,
    },
}

/// Folders of the kinds of files, below a storage's path.
pub const KINDS: &[(&str, &str)] =
    &[("backup", "dump"), ("vztmpl", "template/cache"), ("iso", "template/iso"), ("snippets", "snippets")];

impl VolumeName {
    /// Reads a name; nothing that could leave its folder is one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (first, name) = text.split_once('/')?;
        let plain = !name.is_empty()
            && !name.contains(['/', '\0'])
            && !name.starts_with('.')
            && !name.contains(char::is_whitespace);
        if !plain {
            return None;
        }
        if let Ok(vmid) = first.parse::<u32>() {
            return (name.ends_with(".raw") || name.ends_with(".subvol") || !name.contains('.'))
                .then(|| Self::Image { vmid, name: name.to_owned() });
        }
        KINDS
            .iter()
            .any(|(kind, _)| *kind == first)
            .then(|| Self::File { kind: first.to_owned(), name: name.to_owned() })
    }

    /// Reads the name of a snapshot on a backup server.
    #[must_use]
    pub fn snapshot(text: &str) -> Option<Self> {
        let name =
            text.strip_prefix("backup/").filter(|name| server_names::parse_snapshot(name).is_some())?;
        Some(Self::File { kind: "backup".to_owned(), name: name.to_owned() })
    }

    /// The content type the real API would give it.
    #[must_use]
    pub fn content(&self) -> &str {
        match self {
            Self::Image { .. } => "rootdir",
            Self::File { kind, .. } => kind,
        }
    }

    /// The name itself.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Image { name, .. } | Self::File { name, .. } => name,
        }
    }

    /// The guest a backup or disk belongs to.
    #[must_use]
    pub fn owner(&self) -> Option<u32> {
        match self {
            Self::Image { vmid, .. } => Some(*vmid),
            Self::File { kind, name } if kind == "backup" => backup_owner(name),
            Self::File { .. } => None,
        }
    }
}

/// `vzdump-lxc-140-2026_…` belongs to 140.
#[must_use]
pub fn backup_owner(name: &str) -> Option<u32> {
    if let Some((vmid, _)) = server_names::parse_snapshot(name) {
        return Some(vmid);
    }
    name.strip_prefix("vzdump-lxc-")
        .or_else(|| name.strip_prefix("vzdump-qemu-"))?
        .split('-')
        .next()?
        .parse()
        .ok()
}

/// Storages with their place on disk.
#[derive(Debug, Clone, Copy)]
pub struct Store<'a> {
    pub config: &'a StorageConfig,
    /// `STATE/root`.
    pub root: &'a Path,
    /// `STATE/run`, with marks for storages that are mounted or broken.
    pub run: &'a Path,
}

/// A volume found on a storage.
#[derive(Debug, Clone)]
pub struct Located<'a> {
    /// The storage's name.
    pub storage: &'a str,
    pub definition: &'a Definition,
    /// The name behind the colon.
    pub name: VolumeName,
}

impl<'a> Store<'a> {
    /// Where a path of the node really is.
    #[must_use]
    pub fn real(&self, node_path: &str) -> PathBuf {
        self.root.join(node_path.trim_start_matches('/'))
    }

    /// Splits a volume id into its parts.
    ///
    /// # Errors
    /// When it does not parse or its storage is not there.
    pub fn locate(&self, volid: &'a str) -> Fallible<Located<'a>> {
        let (storage, name) = volid
            .split_once(':')
            .ok_or_else(|| Refusal::die(format!("unable to parse volume ID '{volid}'")))?;
        let definition = self.config.get(storage)?;
        let kind = match definition.kind.as_str() {
            "btrfs" => "btrfs",
            "pbs" => "PBS",
            _ => "directory",
        };
        let parsed = if server_names::is_one(definition) {
            VolumeName::snapshot(name)
        } else {
            VolumeName::parse(name)
        };
        let name =
            parsed.ok_or_else(|| Refusal::die(format!("unable to parse {kind} volume name '{name}'")))?;
        Ok(Located { storage, definition, name })
    }

    /// Readies a storage.
    ///
    /// # Errors
    /// The real sentence when it is not mounted or cannot be reached.
    pub fn activate(&self, storage: &str) -> Fallible<()> {
        let definition = self.config.enabled(storage)?;
        if server_names::is_one(definition) {
            return self.reach(storage, definition);
        }
        let Some(path) = definition.path() else { return Ok(()) };
        let mounted = self.run.join("mounted").join(storage).exists();
        let broken = self.run.join("offline").join(storage).exists();
        if broken
            || (definition.get("is_mountpoint").is_some_and(|word| word != "0" && word != "no") && !mounted)
        {
            return Err(Refusal::die(format!(
                "unable to activate storage '{storage}' - directory is expected to be a mount point but is not mounted: '{path}'"
            )));
        }
        std::fs::create_dir_all(self.real(path)).map_err(|error| host("creation of storage folder", &error))
    }

    /// The reported usage of a storage in percent, where a script sets it.
    #[must_use]
    pub fn filled(&self, storage: &str) -> Option<u64> {
        std::fs::read_to_string(self.run.join("filled").join(storage)).ok()?.trim().parse().ok()
    }

    /// Dies when a storage is full.
    fn has_room(&self, storage: &str) -> Fallible<()> {
        match self.filled(storage) {
            Some(percent) if percent >= 100 => {
                Err(Refusal::die(format!("storage '{storage}': No space left on device")))
            }
            _ => Ok(()),
        }
    }

    /// The path that messages show.
    #[must_use]
    pub fn shown_path(&self, at: &Located<'_>) -> String {
        let base = at.definition.path().unwrap_or_default();
        match &at.name {
            VolumeName::File { name, .. } if server_names::is_one(at.definition) => {
                let namespace = at.definition.get("namespace").map(|ns| ns.replace('/', "%2f"));
                let namespace = namespace.map(|ns| format!("?ns={ns}")).unwrap_or_default();
                format!("pbs://{}/{name}{namespace}", server_names::repository(at.definition))
            }
            VolumeName::Image { vmid, name } if at.definition.kind == "btrfs" => {
                match name.strip_suffix(".raw") {
                    Some(stem) => format!("{base}/images/{vmid}/{stem}/disk.raw"),
                    None => format!("{base}/images/{vmid}/{}", name.trim_end_matches(".subvol")),
                }
            }
            VolumeName::Image { vmid, name } => format!("{base}/images/{vmid}/{name}"),
            VolumeName::File { kind, name } => format!("{base}/{}/{name}", folder_of(kind)),
        }
    }

    /// The folder of an image or the file itself.
    #[must_use]
    pub fn place(&self, at: &Located<'_>) -> PathBuf {
        let base = self.real(at.definition.path().unwrap_or_default());
        match &at.name {
            VolumeName::Image { vmid, name } => {
                base.join("images").join(vmid.to_string()).join(folder_name(at.definition, name))
            }
            VolumeName::File { name, .. } if server_names::is_one(at.definition) => {
                self.namespace(at.definition).join(format!("{name}.tar"))
            }
            VolumeName::File { kind, name } => base.join(folder_of(kind)).join(name),
        }
    }

    /// The files of an image.
    ///
    /// # Errors
    /// When the volume id cannot be taken apart or the volume is not there.
    pub fn tree(&self, volid: &'a str) -> Fallible<PathBuf> {
        let at = self.locate(volid)?;
        let place = self.place(&at);
        if place.exists() { Ok(place.join("tree")) } else { Err(missing(volid)) }
    }

    /// Whether a volume is there.
    #[must_use]
    pub fn exists(&self, volid: &'a str) -> bool {
        self.locate(volid).is_ok_and(|at| self.place(&at).exists())
    }

    /// Makes a volume of `bytes` and returns its id; 0 bytes make a plain folder (`subvol`).
    ///
    /// # Errors
    /// When the storage or its folder fails.
    pub fn allocate(&self, storage: &str, vmid: u32, bytes: u64) -> Fallible<String> {
        self.activate(storage)?;
        self.has_room(storage)?;
        self.allocate_sparse(storage, vmid, bytes)
    }

    /// The same without a check for free space: a sparse image takes none.
    ///
    /// # Errors
    /// When the storage or its folder fails.
    pub fn allocate_sparse(&self, storage: &str, vmid: u32, bytes: u64) -> Fallible<String> {
        self.activate(storage)?;
        let definition = self.config.get(storage)?;
        let folder = self.real(definition.path().unwrap_or_default()).join("images").join(vmid.to_string());
        std::fs::create_dir_all(&folder).map_err(|error| host("creation of image folder", &error))?;
        let taken = |n: u32| {
            ["vm", "subvol", "base"].iter().any(|stem| {
                let name = format!("{stem}-{vmid}-disk-{n}");
                ["", ".raw", ".subvol"].iter().any(|end| folder.join(format!("{name}{end}")).exists())
            })
        };
        let free =
            (0..4096).find(|n| !taken(*n)).ok_or_else(|| Refusal::die("unable to allocate an image name"))?;
        let name = if bytes == 0 {
            format!("subvol-{vmid}-disk-{free}.subvol")
        } else {
            format!("vm-{vmid}-disk-{free}.raw")
        };
        self.make(definition, vmid, &name, bytes)?;
        Ok(format!("{storage}:{vmid}/{name}"))
    }

    /// Makes a volume with a given name.
    ///
    /// # Errors
    /// When its folder cannot be made.
    pub fn make(&self, definition: &Definition, vmid: u32, name: &str, bytes: u64) -> Fallible<()> {
        let base = self.real(definition.path().unwrap_or_default());
        let place = base.join("images").join(vmid.to_string()).join(folder_name(definition, name));
        let make = || -> std::io::Result<()> {
            std::fs::create_dir_all(place.join("tree"))?;
            std::fs::write(place.join("size"), bytes.to_string())
        };
        make().map_err(|error| host("creation of volume", &error))
    }

    /// A volume's size in bytes.
    ///
    /// # Errors
    /// When it is not there.
    pub fn size(&self, volid: &'a str) -> Fallible<u64> {
        let at = self.locate(volid)?;
        let text = std::fs::read_to_string(self.place(&at).join("size")).map_err(|_| missing(volid))?;
        text.trim().parse().map_err(|_| Refusal::die(format!("size of '{volid}' is not a number")))
    }

    /// Makes a volume larger.
    ///
    /// # Errors
    /// When it is not there.
    pub fn resize(&self, volid: &'a str, bytes: u64) -> Fallible<()> {
        let at = self.locate(volid)?;
        self.has_room(at.storage)?;
        std::fs::write(self.place(&at).join("size"), bytes.to_string())
            .map_err(|error| host("resize", &error))
    }

    /// Frees a volume with its snapshots. A missing raw image on a folder storage is only reported; a missing btrfs subvolume fails.
    ///
    /// # Errors
    /// As the real storage fails.
    pub fn free(&self, volid: &'a str) -> Fallible<Option<String>> {
        let at = self.locate(volid)?;
        self.config.enabled(at.storage)?;
        self.activate(at.storage)?;
        let place = self.place(&at);
        if !place.exists() {
            let shown = self.shown_path(&at);
            if at.definition.kind == "btrfs" {
                let subvolume = shown.trim_end_matches("/disk.raw");
                return Err(Refusal::die(format!(
                    "command 'btrfs subvolume delete -- {subvolume}' failed: ERROR: Could not statfs: No such file or directory"
                )));
            }
            return Ok(Some(format!("disk image '{shown}' does not exist")));
        }
        for snapshot in self.snapshots(&at) {
            std::fs::remove_dir_all(snapshot).map_err(|error| host("removal of snapshot", &error))?;
        }
        std::fs::remove_dir_all(&place).map_err(|error| host("removal of volume", &error))?;
        if let Some(parent) = place.parent() {
            // Succeeds only when it was the last one, as wanted.
            let _ = std::fs::remove_dir(parent);
        }
        Ok(None)
    }

    fn snapshots(&self, at: &Located<'_>) -> Vec<PathBuf> {
        let place = self.place(at);
        let (Some(parent), Some(name)) = (place.parent(), place.file_name().and_then(|name| name.to_str()))
        else {
            return Vec::new();
        };
        let prefix = format!("{name}@");
        let entries = std::fs::read_dir(parent).into_iter().flatten().flatten().map(|entry| entry.path());
        entries
            .filter(|path| path.file_name().and_then(|n| n.to_str()).is_some_and(|n| n.starts_with(&prefix)))
            .collect()
    }

    /// Takes a snapshot of one volume.
    ///
    /// # Errors
    /// When one of that name is left over, or the copy fails.
    pub fn snapshot(&self, volid: &'a str, name: &str) -> Fallible<()> {
        let at = self.locate(volid)?;
        self.has_room(at.storage)?;
        let place = self.place(&at);
        let target = with_suffix(&place, name);
        if target.exists() {
            let shown = self.shown_path(&at);
            let subvolume = shown.trim_end_matches("/disk.raw");
            return Err(Refusal::die(format!(
                "command 'btrfs subvolume snapshot -r -- {subvolume} {subvolume}@{name}' failed: ERROR: Could not create subvolume: Read-only file system"
            )));
        }
        copy_tree(&place, &target)
    }

    /// Puts a volume back to a snapshot.
    ///
    /// # Errors
    /// When the snapshot is not there or the copy fails.
    pub fn rollback(&self, volid: &'a str, name: &str) -> Fallible<()> {
        let at = self.locate(volid)?;
        let place = self.place(&at);
        let source = with_suffix(&place, name);
        if !source.exists() {
            return Err(Refusal::die(format!("snapshot '{name}' does not exist on volume '{volid}'")));
        }
        if place.exists() {
            std::fs::remove_dir_all(&place).map_err(|error| host("removal of volume", &error))?;
        }
        copy_tree(&source, &place)
    }

    /// Drops a snapshot of one volume; it may be gone already.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn drop_snapshot(&self, volid: &'a str, name: &str) -> Fallible<()> {
        let at = self.locate(volid)?;
        let target = with_suffix(&self.place(&at), name);
        if target.exists() {
            std::fs::remove_dir_all(target).map_err(|error| host("removal of snapshot", &error))
        } else {
            Ok(())
        }
    }

    /// The files of a snapshot.
    ///
    /// # Errors
    /// When the volume id does not parse.
    pub fn snapshot_tree(&self, volid: &'a str, name: &str) -> Fallible<PathBuf> {
        let at = self.locate(volid)?;
        Ok(with_suffix(&self.place(&at), name).join("tree"))
    }

    /// Gives a volume to another guest under a new name on the same storage.
    ///
    /// # Errors
    /// When it is not there or cannot be renamed.
    pub fn rename(&self, volid: &'a str, vmid: u32) -> Fallible<String> {
        let at = self.locate(volid)?;
        let old = self.place(&at);
        if !old.exists() {
            return Err(missing(volid));
        }
        let new = self.allocate(at.storage, vmid, self.size(volid)?)?;
        let target = Store { ..*self }
            .place(&Store { ..*self }.locate(&new).map_err(|refusal| Refusal::die(refusal.message))?);
        std::fs::remove_dir_all(&target)
            .and_then(|()| std::fs::rename(&old, &target))
            .map_err(|error| host("rename of volume", &error))?;
        Ok(new)
    }
}

fn folder_of(kind: &str) -> &str {
    KINDS.iter().find(|(held, _)| *held == kind).map_or("images", |(_, folder)| folder)
}

/// On btrfs a volume is a subvolume without an ending.
fn folder_name(definition: &Definition, name: &str) -> String {
    if definition.kind == "btrfs" {
        name.trim_end_matches(".raw").trim_end_matches(".subvol").to_owned()
    } else {
        name.to_owned()
    }
}

fn with_suffix(place: &Path, name: &str) -> PathBuf {
    let mut text = place.as_os_str().to_owned();
    text.push(format!("@{name}"));
    PathBuf::from(text)
}

/// The real sentence for a volume that is not there.
#[must_use]
pub fn missing(volid: &str) -> Refusal {
    Refusal::die(format!("volume '{volid}' does not exist"))
}
