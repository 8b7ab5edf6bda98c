//! Rows on their way from one engine to the other, and backups.

mod killed;
mod moved;
mod refused;
mod restored;

use std::path::{Path, PathBuf};

use hubd::postgres::Server;
use serde::Deserialize;

use crate::filled_hub::Filling;
use crate::postgres_server::{empty_database, fresh_database, url_of};
use crate::process::hubd;
use crate::world::World;

/// As much as a test of every run can take.
const FILLING: Filling = Filling { hosts: 20, guests_per_host: 3, days: 2 };

/// What a command prints with `--output json`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Printed {
    file: PathBuf,
    tables: Vec<PrintedTable>,
    rows: u64,
    sha256: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct PrintedTable {
    name: String,
    rows: u64,
    sha256: String,
}

/// The blocking client of the database does not run on a thread that runs tasks.
fn blocking<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(work).join().unwrap())
}

/// A command of the hub: its output, or its error.
async fn run(words: &[&str], dir: &Path, file: &Path) -> Result<String, String> {
    let output = hubd().args(words).arg(file).arg("--dir").arg(dir).output().await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

async fn printed(words: &[&str], dir: &Path, file: &Path) -> Printed {
    let words =
        [words.get(..words.len() - 1).unwrap(), &["--output", "json", words[words.len() - 1]]].concat();
    serde_json::from_str(&run(&words, dir, file).await.unwrap()).unwrap()
}

const EXPORT: [&str; 3] = ["db", "export", "--to"];
const IMPORT: [&str; 3] = ["db", "import", "--from"];
const BACKUP: [&str; 2] = ["backup", "--to"];
const RESTORE: [&str; 2] = ["restore", "--from"];

/// A hub's folder with a filled database, and no hub in it.
async fn filled(folder: &Path) {
    World::in_folder(folder.to_owned(), None).await.stop().await;
    FILLING.fill(&folder.join("hub.db")).unwrap();
}

/// The folder of the same hub without its rows.
fn copy_of_keys(folder: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_file() && !name.starts_with("hub.db") {
            std::fs::copy(&path, to.join(name)).unwrap();
        }
    }
}

/// Has the hub of this folder keep its rows at a server.
fn uses(folder: &Path, server: &Server) {
    std::fs::write(folder.join("hub.toml"), format!("database = \"{}\"\n", url_of(server))).unwrap();
}

/// A database with the hub's tables and no row.
fn migrated() -> Server {
    blocking(fresh_database)
}

/// A database without tables.
fn unmigrated(name: &str) -> Server {
    blocking(|| empty_database(name))
}
