//! A PostgreSQL server for tests, one for each test process.
//!
//! In: the programs of the newest version that this machine has in `/usr/lib/postgresql`, or in the folder that
//! `HOLDFAST_POSTGRES` names. Out: empty databases with the hub's tables, by name. The first process makes a cluster and
//! keeps it for the others, which begin with a copy. The server listens on a socket in a folder of its own, syncs nothing,
//! and ends with the process that started it, also when that is killed. Without the programs a test fails.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use hubd::postgres::{DatabaseUrl, Server};
use sha2::Digest as _;

/// What the tables of the cluster are made by.
const MIGRATIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/postgres");

const INSTALLED: &str = "/usr/lib/postgresql";

/// The server refuses to run as root, so there it runs as `nobody`.
const SERVER_USER: u32 = 65_534;

/// How long a server may take to start on a busy machine.
const START_WAIT: Duration = Duration::from_secs(120);

const SETTINGS: &str = "listen_addresses = ''
fsync = off
synchronous_commit = off
full_page_writes = off
autovacuum = off
max_connections = 200
shared_buffers = 16MB
max_wal_size = 64MB
min_wal_size = 2MB
";

/// The supervisor keeps a server as long as its input is open, and then removes its folder.
const SUPERVISE: &str = r#"trap '' TERM INT; "$1/postgres" -D "$2/data" -k "$2" & server=$!
cat >/dev/null; kill -QUIT $server; wait $server; cd /; rm -rf "$2""#;

/// A running server.
struct TestServer {
    folder: PathBuf,
    databases: AtomicU32,
    /// It is here for its input: that closes when this process ends.
    _supervisor: Child,
}

/// A fresh database with the hub's tables.
pub fn fresh_database() -> Server {
    fresh_database_with("")
}

/// The same, at a server with more settings. The first call of the process decides.
pub fn fresh_database_with(settings: &str) -> Server {
    static SERVER: OnceLock<TestServer> = OnceLock::new();
    let server = SERVER.get_or_init(|| TestServer::start(settings));
    let name = format!("story{}", server.databases.fetch_add(1, Ordering::Relaxed));
    let sql = format!("CREATE DATABASE {name} TEMPLATE hub");
    session(&server.folder, "postgres").batch_execute(&sql).unwrap();
    at(&server.folder, &name)
}

/// A database of this server without any table.
pub fn empty_database(name: &str) -> Server {
    let server = fresh_database();
    let folder = server_folder(&server);
    session(&folder, "postgres").batch_execute(&format!("CREATE DATABASE {name}")).unwrap();
    at(&folder, name)
}

/// A session of the test's own at a database.
pub fn session_at(server: &Server) -> postgres::Client {
    let name = server.name();
    let database = name.split(' ').nth(1).unwrap();
    session(&server_folder(server), database)
}

pub fn server_folder(server: &Server) -> PathBuf {
    PathBuf::from(server.name().split(" at ").nth(1).unwrap())
}

fn at(folder: &Path, database: &str) -> Server {
    let url = url(folder, database).parse::<DatabaseUrl>().unwrap();
    Server::new(url, None).unwrap()
}

/// The URL of a database at the server of this process.
pub fn url(folder: &Path, database: &str) -> String {
    format!("postgres:///{database}?host={}&user=hub", folder.display())
}

/// The URL of the database of this handle.
pub fn url_of(server: &Server) -> String {
    url(&server_folder(server), server.name().split(' ').nth(1).unwrap())
}

fn session(folder: &Path, database: &str) -> postgres::Client {
    let config: postgres::Config = url(folder, database).parse().unwrap();
    config.connect(postgres::NoTls).unwrap()
}

impl TestServer {
    fn start(settings: &str) -> Self {
        let programs = programs();
        let folder = tempfile::Builder::new().prefix("hub-pg-").tempdir().unwrap().keep();
        copy(&cluster(&programs), &folder.join("data"));
        let file = File::options().append(true).open(folder.join("data/postgresql.conf"));
        file.unwrap().write_all(settings.as_bytes()).unwrap();
        own(&folder);
        let supervisor = supervised(&programs, &folder);
        wait(&folder);
        Self { folder, databases: AtomicU32::new(0), _supervisor: supervisor }
    }
}

/// The folder with the programs of the newest version.
pub fn programs() -> PathBuf {
    if let Some(folder) = std::env::var_os("HOLDFAST_POSTGRES") {
        return folder.into();
    }
    let versions = fs::read_dir(INSTALLED).into_iter().flatten();
    let versions = versions.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let newest =
        versions.max().expect("PostgreSQL is not here: install postgresql-17, or give HOLDFAST_POSTGRES");
    Path::new(INSTALLED).join(newest.to_string()).join("bin")
}

/// A command that runs as another user where this one is root.
fn as_user(program: &str) -> Command {
    #[expect(clippy::disallowed_methods, reason = "a test server is a process of its own")]
    let mut command = Command::new(program);
    if is_root() {
        command.uid(SERVER_USER).gid(SERVER_USER);
    }
    command.current_dir("/").env_clear().env("PATH", "/usr/bin:/bin").stdin(Stdio::null());
    // Where the packages were only unpacked, their libraries are next to the programs.
    if let Some(folder) = std::env::var_os("HOLDFAST_POSTGRES") {
        let folders = ["../../../x86_64-linux-gnu", "../../../../../lib/x86_64-linux-gnu"];
        let folders = folders.map(|libraries| Path::new(&folder).join(libraries));
        command.env("LD_LIBRARY_PATH", std::env::join_paths(folders).unwrap());
    }
    command
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A cluster with the database `hub`, which has the hub's tables. It is made once for a version of both.
fn cluster(programs: &Path) -> PathBuf {
    let version = as_user(programs.join("postgres").to_str().unwrap()).arg("--version").output().unwrap();
    let mut key = sha2::Sha256::new();
    key.update(&version.stdout);
    for entry in fs::read_dir(MIGRATIONS).unwrap() {
        key.update(fs::read(entry.unwrap().path()).unwrap());
    }
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("postgres");
    fs::create_dir_all(&kept).unwrap();
    let (cluster, lock) = (kept.join(hex::encode(&key.finalize()[..8])), kept.join("lock"));
    let lock = File::create(lock).unwrap();
    lock.lock().unwrap();
    if !cluster.exists() {
        let made = make_cluster(programs);
        let unfinished = kept.join("unfinished");
        drop(fs::remove_dir_all(&unfinished));
        copy(&made.join("data"), &unfinished);
        fs::rename(&unfinished, &cluster).unwrap();
        fs::remove_dir_all(made).unwrap();
    }
    cluster
}

fn make_cluster(programs: &Path) -> PathBuf {
    let folder = tempfile::Builder::new().prefix("hub-pg-").tempdir().unwrap().keep();
    own(&folder);
    let data = folder.join("data");
    let made = as_user(programs.join("initdb").to_str().unwrap())
        .args(["--username=hub", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--wal-segsize=1"])
        .args(["--no-sync", "--no-instructions", "-D"])
        .arg(&data)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    File::options()
        .append(true)
        .open(data.join("postgresql.conf"))
        .unwrap()
        .write_all(SETTINGS.as_bytes())
        .unwrap();
    let mut supervisor = supervised(programs, &folder);
    wait(&folder);
    session(&folder, "postgres").batch_execute("CREATE DATABASE hub").unwrap();
    at(&folder, "hub").migrate().unwrap();
    session(&folder, "postgres").batch_execute("CHECKPOINT").unwrap();
    // Stopped in good order, so that copies have nothing to recover.
    let stopped = as_user(programs.join("pg_ctl").to_str().unwrap())
        .args(["stop", "--mode=fast", "-D"])
        .arg(&data)
        .output()
        .unwrap();
    assert!(stopped.status.success(), "{}", String::from_utf8_lossy(&stopped.stderr));
    let kept = folder.with_extension("made");
    fs::rename(&folder, &kept).unwrap();
    drop(supervisor.stdin.take());
    supervisor.wait().unwrap();
    kept
}

pub fn supervised(programs: &Path, folder: &Path) -> Child {
    let log = File::create(folder.join("log")).unwrap();
    as_user("/bin/sh")
        .args(["-c", SUPERVISE, "sh"])
        .args([programs, folder])
        .stdin(Stdio::piped())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap()
}

/// Waits until it answers: how long that takes decides nothing.
pub fn wait(folder: &Path) {
    let (begin, config) = (Instant::now(), url(folder, "postgres").parse::<postgres::Config>().unwrap());
    while let Err(error) = config.connect(postgres::NoTls) {
        let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
        assert!(begin.elapsed() < START_WAIT, "the test server does not start: {error}\n{log}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn copy(from: &Path, to: &Path) {
    #[expect(clippy::disallowed_methods, reason = "a folder is copied by the system's own program")]
    let status = Command::new("cp").args(["-r", "--reflink=auto"]).args([from, to]).status().unwrap();
    assert!(status.success());
}

/// Gives a folder to the user of the server.
fn own(folder: &Path) {
    if is_root() {
        #[expect(clippy::disallowed_methods, reason = "a folder with what is in it")]
        let status = Command::new("chown")
            .arg("-R")
            .arg(format!("{SERVER_USER}:{SERVER_USER}"))
            .arg(folder)
            .status()
            .unwrap();
        assert!(status.success());
    }
    let data = folder.join("data");
    if data.exists() {
        fs::set_permissions(data, fs::Permissions::from_mode(0o700)).unwrap();
    }
}
