//! Options of a backup, with defaults of node and storage.
use std::path::PathBuf;

use super::notice::Notice;
use crate::archive::{Compression, ExcludePattern, ExcludePatterns};
use crate::call::{Call, prune};
use crate::die;
use crate::fail::Fallible;
use crate::node::World;
use crate::schema::format::split_list;
use crate::schema::property::Properties;
use crate::storage::config::Definition;
use crate::storage::server_names;
use crate::storage::volume::Store;

/// The default storage of backups.
pub(super) const DEFAULT_STORAGE: &str = "local";

/// How the guest is held still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// A storage snapshot, the guest frozen for a moment.
    Snapshot,
    /// Frozen while the last changes are copied.
    Suspend,
    /// Down for the whole copy.
    Stop,
}

impl Mode {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Snapshot => "snapshot",
            Self::Suspend => "suspend",
            Self::Stop => "stop",
        }
    }
}

/// Which older backups go.
#[derive(Debug, Clone)]
pub(super) struct Retention {
    pub keep: Properties,
}

/// A backup's options.
#[derive(Debug, Clone)]
pub(super) struct Options {
    pub storage: String,
    pub mode: Mode,
    pub compression: Compression,
    pub notes: Option<String>,
    pub protected: bool,
    /// How a backup server's client finds what changed.
    pub change_detection: Option<String>,
    /// `None` when older backups are left alone.
    pub retention: Option<Retention>,
    pub exclude: ExcludePatterns,
    /// Whether temporary files are left out unasked.
    pub standard_excludes: bool,
    /// As given, for the command that is logged.
    pub exclude_words: Vec<String>,
    pub bwlimit_kib_s: u64,
    pub ionice: i64,
    pub notice: Notice,
    pub lockwait_min: u64,
    pub stopwait_min: u64,
}

/// The folder with the archives of a storage: as messages show it, and the real path.
#[derive(Debug, Clone)]
pub(super) struct DumpDir {
    pub shown: String,
    /// For a backup server: the folder for temporary files.
    pub real: PathBuf,
    /// On a backup server: its name as the client takes it, and the folder of the namespace.
    pub server: Option<Repository>,
}

/// A namespace of a backup server.
#[derive(Debug, Clone)]
pub(super) struct Repository {
    /// The repository as it is passed to the client; `shown` is what the client prints, which includes the port.
    pub named: String,
    pub shown: String,
    pub namespace: Option<String>,
    pub folder: PathBuf,
    /// The key that snapshots are encrypted with, or why the client cannot use it; or the error text when it cannot be read.
    pub key: Result<Option<Result<String, String>>, String>,
}

impl Options {
    /// Reads them from a call.
    ///
    /// # Errors
    /// When the retention does not parse.
    pub(super) fn of(call: &Call<'_>) -> Fallible<Self> {
        let storage = call.text("storage").unwrap_or_else(|| DEFAULT_STORAGE.to_owned());
        let unsigned = |name: &str, default: u64| {
            call.number(name).and_then(|number| u64::try_from(number).ok()).unwrap_or(default)
        };
        let given: Vec<String> = call
            .text("exclude-path")
            .map(|all| all.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect())
            .unwrap_or_default();
        let standard = call.maybe("stdexcludes") != Some(false);
        let mut exclude = if standard { ExcludePatterns::standard() } else { ExcludePatterns::default() };
        given.iter().for_each(|pattern| exclude.add(ExcludePattern::new(pattern)));
        Ok(Self {
            mode: match call.text("mode").as_deref() {
                Some("stop") => Mode::Stop,
                Some("suspend") => Mode::Suspend,
                _ => Mode::Snapshot,
            },
            compression: match call.text("compress").as_deref() {
                Some("zstd") => Compression::Zstd,
                Some("gzip") => Compression::Gzip,
                Some("lzo" | "1") => Compression::Lzo,
                _ => Compression::Plain,
            },
            notes: call.text("notes-template"),
            protected: call.flag("protected"),
            retention: retention(call, &storage)?,
            exclude,
            standard_excludes: standard,
            change_detection: call.text("pbs-change-detection-mode"),
            exclude_words: given,
            bwlimit_kib_s: unsigned("bwlimit", 0),
            ionice: call.number("ionice").unwrap_or(7),
            notice: Notice::of(call),
            lockwait_min: unsigned("lockwait", 180),
            stopwait_min: unsigned("stopwait", 10),
            storage,
        })
    }
}

/// What is pruned afterwards: as the call says, else as the storage says, unless `remove=0`.
fn retention(call: &Call<'_>, storage: &str) -> Fallible<Option<Retention>> {
    let text = match call.text("prune-backups") {
        Some(text) => Some(text),
        None => {
            let world = call.node.world();
            world.storage.find(storage).and_then(|held| held.get("prune-backups").map(str::to_owned))
        }
    };
    let Some(text) = text else { return Ok(None) };
    let keep = prune::parse(call.node, &text)?;
    let prunes = !prune::keeps_all(&keep) && call.maybe("remove") != Some(false);
    Ok(prunes.then_some(Retention { keep }))
}

/// The guests that a call means.
///
/// # Errors
/// For a pool that is not there or not the caller's.
pub(super) fn chosen(call: &Call<'_>) -> Fallible<Vec<u32>> {
    let list = |name: &str| -> Vec<u32> {
        let text = call.text(name).unwrap_or_default();
        split_list(&text).filter_map(|word| word.parse().ok()).collect()
    };
    let world = call.node.world();
    let mut vmids = if let Some(pool) = call.text("pool") {
        world.judge(&call.who).need(&format!("/pool/{pool}"), &["Pool.Audit"])?;
        let Some(held) = world.access.pools.get(&pool) else { die!("pool '{pool}' does not exist") };
        held.vms.iter().copied().collect()
    } else if call.flag("all") {
        let excluded = list("exclude");
        world.guests.all().keys().copied().filter(|vmid| !excluded.contains(vmid)).collect()
    } else {
        list("vmid")
    };
    vmids.sort_unstable();
    vmids.dedup();
    Ok(vmids)
}

/// Readies the storage and finds its folder of archives.
///
/// # Errors
/// The real sentences, which name the storage twice when it is not there at all.
pub(super) fn dump_dir(world: &World, storage: &str) -> Fallible<DumpDir> {
    let store = world.store();
    if let Err(refusal) = store.activate(storage) {
        let mut text = format!("could not activate storage '{storage}': {}", refusal.in_task());
        if world.storage.find(storage).is_none() {
            text =
                format!("{text}\ncould not get storage information for '{storage}': {}", refusal.in_task());
        }
        die!("{text}");
    }
    let definition = world.storage.get(storage)?;
    if !definition.holds("backup") {
        die!(
            "could not get storage information for '{storage}': can't use storage '{storage}' for backups - wrong content type"
        );
    }
    let (shown, server) = if server_names::is_one(definition) {
        ("/var/tmp".to_owned(), Some(repository(&store, storage, definition)))
    } else {
        (format!("{}/dump", definition.path().unwrap_or_default()), None)
    };
    let real = store.real(&shown);
    std::fs::create_dir_all(&real).map_err(|error| crate::fail::host("creation of dump folder", &error))?;
    Ok(DumpDir { shown, real, server })
}

fn repository(store: &Store<'_>, storage: &str, definition: &Definition) -> Repository {
    let of = |name: &str| definition.get(name).unwrap_or_default();
    let named = server_names::repository(definition);
    let port = definition.get("port").unwrap_or(server_names::USUAL_PORT);
    let account = definition.get("username").unwrap_or("root@pam");
    let forgets = store.server(definition).join("plain").exists();
    let key = store.key_of(storage, definition).map_err(|refusal| refusal.in_task());
    Repository {
        shown: format!("{account}@{}:{port}:{}", of("server"), of("datastore")),
        named,
        namespace: definition.get("namespace").map(str::to_owned),
        folder: store.namespace(definition),
        key: key.map(|key| key.filter(|_| !forgets)),
    }
}
