//! A disk in memory that loses unsynced changes at a power loss.
//!
//! In: changes of files and folders, in the order in which they are made, and the number of the change before which the
//! power is lost. Out: the answers of the disk, and the folder that is found afterwards. A file's bytes last once the
//! file was synced, and a name lasts once its folder was synced: POSIX promises no more. Owners and modes last at once.
//! A file with a second name is found twice.
//! Deliberately absent: symbolic links, and moves between folders, which no folder of ours knows.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Mutex;

/// A file or folder by its number.
pub type Ino = u64;

/// The root folder of the disk.
pub const ROOT: Ino = 1;

/// The end of the name of a file that SQLite shares between its readers and makes anew after each start. Nothing in it
/// must last, and the kernel writes it back at any time.
const SHARED: &str = "-shm";

/// Why the disk refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The power is gone.
    Cut,
    /// There is nothing of this name or number.
    Missing,
    /// There is something of this name.
    Exists,
    /// The folder is not empty.
    NotEmpty,
    /// It is a folder, or is none.
    WrongKind,
}

/// Owner and permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta {
    /// The permission bits.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
}

/// The attributes of a file or folder.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Owner and permissions.
    pub meta: Meta,
    /// None for a folder; the size in bytes for a file.
    pub size: Option<u64>,
}

/// A change of a file that was not synced yet.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// Bytes from an offset on.
    Write(usize, Vec<u8>),
    Size(usize),
}

impl Change {
    pub(crate) fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Write(at, new) => {
                let end = at + new.len();
                if bytes.len() < end {
                    bytes.resize(end, 0);
                }
                bytes[*at..end].copy_from_slice(new);
            }
            Self::Size(size) => bytes.resize(*size, 0),
        }
    }
}

/// A change of a folder's names that was not synced yet.
#[derive(Clone, Debug)]
pub(crate) enum Naming {
    /// A name for a new file or folder.
    Made(OsString, Ino),
    /// A name that is gone.
    Gone(OsString),
    /// A name that became another one.
    Moved(OsString, OsString, Ino),
}

impl Naming {
    pub(crate) fn apply(&self, names: &mut BTreeMap<OsString, Ino>) {
        match self {
            Self::Made(name, ino) => drop(names.insert(name.clone(), *ino)),
            Self::Gone(name) => drop(names.remove(name)),
            Self::Moved(from, to, ino) => {
                names.remove(from);
                names.insert(to.clone(), *ino);
            }
        }
    }
}

/// The synced state, the current state, and the changes between them.
#[derive(Clone, Debug)]
pub(crate) struct Twice<T, C> {
    pub(crate) kept: T,
    pub(crate) now: T,
    pub(crate) pending: Vec<C>,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    File(Twice<Vec<u8>, Change>),
    /// A file whose bytes never last.
    Shared(Vec<u8>),
    Folder(Twice<BTreeMap<OsString, Ino>, Naming>),
}

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) meta: Meta,
    pub(crate) kind: Kind,
}

#[derive(Debug)]
struct State {
    nodes: BTreeMap<Ino, Node>,
    /// Changes and syncs so far.
    changes: u64,
    cut: bool,
}

#[derive(Debug)]
pub struct Disk {
    state: Mutex<State>,
    /// The power is lost before this change.
    cut_at: u64,
}

impl Disk {
    /// A disk that holds what a folder holds, all of it synced.
    #[must_use]
    pub fn holding(folder: &Path, cut_at: u64) -> Self {
        let mut nodes = BTreeMap::new();
        load(folder, ROOT, &mut nodes);
        Self { state: Mutex::new(State { nodes, changes: 0, cut: false }), cut_at }
    }

    /// Cuts the power.
    pub fn cut(&self) {
        self.state.lock().unwrap().cut = true;
    }

    /// Whether the power is gone.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.state.lock().unwrap().cut
    }

    /// How many changes and syncs there were.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.state.lock().unwrap().changes
    }

    /// Gives the nodes to the function that decides what of them is found.
    pub(crate) fn look_at<T>(&self, look: impl FnOnce(&BTreeMap<Ino, Node>) -> T) -> T {
        look(&self.state.lock().unwrap().nodes)
    }

    fn change<T>(&self, work: impl FnOnce(&mut State) -> Result<T, Fault>) -> Result<T, Fault> {
        let mut state = self.state.lock().unwrap();
        if state.cut || state.changes == self.cut_at {
            state.cut = true;
            return Err(Fault::Cut);
        }
        let done = work(&mut state)?;
        state.changes += 1;
        Ok(done)
    }

    /// The attributes of a file or folder.
    ///
    /// # Errors
    /// [`Fault::Missing`].
    pub fn look(&self, ino: Ino) -> Result<Look, Fault> {
        let state = self.state.lock().unwrap();
        let node = state.nodes.get(&ino).ok_or(Fault::Missing)?;
        let size = match &node.kind {
            Kind::File(file) => Some(file.now.len() as u64),
            Kind::Shared(bytes) => Some(bytes.len() as u64),
            Kind::Folder(_) => None,
        };
        Ok(Look { meta: node.meta, size })
    }

    /// The number behind a name.
    ///
    /// # Errors
    /// [`Fault::Missing`].
    pub fn named(&self, folder: Ino, name: &OsStr) -> Result<Ino, Fault> {
        self.state.lock().unwrap().folder(folder)?.now.get(name).copied().ok_or(Fault::Missing)
    }

    /// All names of a folder.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn names(&self, folder: Ino) -> Result<Vec<(OsString, Ino)>, Fault> {
        let mut state = self.state.lock().unwrap();
        Ok(state.folder(folder)?.now.iter().map(|(name, ino)| (name.clone(), *ino)).collect())
    }

    /// Bytes of a file.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn read(&self, ino: Ino, at: usize, size: usize) -> Result<Vec<u8>, Fault> {
        let state = self.state.lock().unwrap();
        let bytes = match &state.nodes.get(&ino).ok_or(Fault::Missing)?.kind {
            Kind::File(file) => &file.now,
            Kind::Shared(bytes) => bytes,
            Kind::Folder(_) => return Err(Fault::WrongKind),
        };
        let end = bytes.len().min(at.saturating_add(size));
        Ok(bytes.get(at..end).unwrap_or_default().to_vec())
    }

    /// Writes bytes, or sets a size.
    fn alter(&self, ino: Ino, change: Change) -> Result<(), Fault> {
        if let Some(Node { kind: Kind::Shared(bytes), .. }) = self.state.lock().unwrap().nodes.get_mut(&ino) {
            change.apply(bytes);
            return Ok(());
        }
        self.change(|state| {
            let file = state.file(ino)?;
            change.apply(&mut file.now);
            file.pending.push(change);
            Ok(())
        })
    }

    /// Writes bytes.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn write(&self, ino: Ino, at: usize, bytes: &[u8]) -> Result<(), Fault> {
        self.alter(ino, Change::Write(at, bytes.to_vec()))
    }

    /// Sets a size.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn resize(&self, ino: Ino, size: usize) -> Result<(), Fault> {
        self.alter(ino, Change::Size(size))
    }

    /// Sets owner and permissions.
    ///
    /// # Errors
    /// [`Fault::Missing`].
    pub fn allow(&self, ino: Ino, change: impl FnOnce(&mut Meta)) -> Result<(), Fault> {
        let mut state = self.state.lock().unwrap();
        change(&mut state.nodes.get_mut(&ino).ok_or(Fault::Missing)?.meta);
        Ok(())
    }

    /// Makes an empty file.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn make_file(&self, folder: Ino, name: &OsStr, meta: Meta) -> Result<Ino, Fault> {
        if name.to_string_lossy().ends_with(SHARED) {
            let mut state = self.state.lock().unwrap();
            let ino = state.add(Node { meta, kind: Kind::Shared(Vec::new()) });
            state.folder(folder)?.now.insert(name.to_owned(), ino);
            return Ok(ino);
        }
        let empty = Twice { kept: Vec::new(), now: Vec::new(), pending: Vec::new() };
        self.make(folder, name, Node { meta, kind: Kind::File(empty) })
    }

    /// Makes an empty folder.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn make_folder(&self, folder: Ino, name: &OsStr, meta: Meta) -> Result<Ino, Fault> {
        let empty = Twice { kept: BTreeMap::new(), now: BTreeMap::new(), pending: Vec::new() };
        self.make(folder, name, Node { meta, kind: Kind::Folder(empty) })
    }

    fn make(&self, folder: Ino, name: &OsStr, node: Node) -> Result<Ino, Fault> {
        self.change(|state| {
            let ino = state.add(node);
            state.rename(folder, Naming::Made(name.to_owned(), ino))?;
            Ok(ino)
        })
    }

    /// Removes a name.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn remove(&self, folder: Ino, name: &OsStr) -> Result<(), Fault> {
        let ino = self.named(folder, name)?;
        if matches!(self.names(ino), Ok(names) if !names.is_empty()) {
            return Err(Fault::NotEmpty);
        }
        if name.to_string_lossy().ends_with(SHARED) {
            self.state.lock().unwrap().folder(folder)?.now.remove(name);
            return Ok(());
        }
        self.change(|state| state.rename(folder, Naming::Gone(name.to_owned())))
    }

    /// Gives a file another name in its folder; a file with that name is replaced.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn rename(&self, folder: Ino, from: &OsStr, to: &OsStr) -> Result<(), Fault> {
        let ino = self.named(folder, from)?;
        self.change(|state| state.rename(folder, Naming::Moved(from.to_owned(), to.to_owned(), ino)))
    }

    /// Gives a file a second name.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn link(&self, ino: Ino, folder: Ino, name: &OsStr) -> Result<(), Fault> {
        if self.named(folder, name).is_ok() {
            return Err(Fault::Exists);
        }
        self.change(|state| state.rename(folder, Naming::Made(name.to_owned(), ino)))
    }

    /// Brings a file or a folder's names onto the disk.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn sync(&self, ino: Ino) -> Result<(), Fault> {
        if matches!(self.state.lock().unwrap().nodes.get(&ino), Some(Node { kind: Kind::Shared(_), .. })) {
            return Ok(());
        }
        self.change(|state| {
            match &mut state.nodes.get_mut(&ino).ok_or(Fault::Missing)?.kind {
                Kind::File(file) => {
                    let pending = std::mem::take(&mut file.pending);
                    pending.iter().for_each(|change| change.apply(&mut file.kept));
                }
                Kind::Folder(folder) => {
                    let pending = std::mem::take(&mut folder.pending);
                    pending.iter().for_each(|naming| naming.apply(&mut folder.kept));
                }
                Kind::Shared(_) => {}
            }
            Ok(())
        })
    }
}

impl State {
    fn add(&mut self, node: Node) -> Ino {
        let ino = self.nodes.keys().next_back().map_or(ROOT, |last| last + 1);
        self.nodes.insert(ino, node);
        ino
    }

    fn file(&mut self, ino: Ino) -> Result<&mut Twice<Vec<u8>, Change>, Fault> {
        match self.nodes.get_mut(&ino).map(|node| &mut node.kind) {
            Some(Kind::File(file)) => Ok(file),
            Some(Kind::Shared(_) | Kind::Folder(_)) => Err(Fault::WrongKind),
            None => Err(Fault::Missing),
        }
    }

    fn folder(&mut self, ino: Ino) -> Result<&mut Twice<BTreeMap<OsString, Ino>, Naming>, Fault> {
        match self.nodes.get_mut(&ino).map(|node| &mut node.kind) {
            Some(Kind::Folder(folder)) => Ok(folder),
            Some(Kind::Shared(_) | Kind::File(_)) => Err(Fault::WrongKind),
            None => Err(Fault::Missing),
        }
    }

    fn rename(&mut self, folder: Ino, naming: Naming) -> Result<(), Fault> {
        let folder = self.folder(folder)?;
        naming.apply(&mut folder.now);
        folder.pending.push(naming);
        Ok(())
    }
}

/// Reads a folder, with everything beneath it.
fn load(path: &Path, ino: Ino, nodes: &mut BTreeMap<Ino, Node>) {
    let meta = std::fs::metadata(path).unwrap();
    let held = Meta { mode: meta.permissions().mode() & 0o7777, uid: meta.uid(), gid: meta.gid() };
    let kind = if meta.is_dir() {
        let mut names = BTreeMap::new();
        // Its own entry is stored before those of its contents.
        let empty = Twice { kept: BTreeMap::new(), now: BTreeMap::new(), pending: Vec::new() };
        nodes.insert(ino, Node { meta: held, kind: Kind::Folder(empty) });
        for entry in std::fs::read_dir(path).unwrap().map(Result::unwrap) {
            let next = nodes.keys().next_back().map_or(ROOT, |last| last + 1);
            load(&entry.path(), next, nodes);
            names.insert(entry.file_name(), next);
        }
        Kind::Folder(Twice { kept: names.clone(), now: names, pending: Vec::new() })
    } else {
        let bytes = std::fs::read(path).unwrap();
        Kind::File(Twice { kept: bytes.clone(), now: bytes, pending: Vec::new() })
    };
    nodes.insert(ino, Node { meta: held, kind });
}
