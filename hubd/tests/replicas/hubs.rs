//! Hub processes with the same keys on one database.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use hubd::postgres::Server;
use hubd::settings::Database;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::{Mutex, MutexGuard};

use crate::postgres_server::{fresh_database, server_folder, url_of};
use crate::proxy::Proxy;
use crate::world::{Client, Host, Options, World, client};

/// A hub in a process of its own; killed when dropped.
pub struct HubProcess {
    pub url: String,
    folder: PathBuf,
    child: Child,
}

pub fn hubd() -> Command {
    #[expect(clippy::disallowed_methods, reason = "the program under test")]
    let mut command = Command::new(env!("CARGO_BIN_EXE_hubd"));
    command.kill_on_drop(true).stdin(Stdio::null()).env_remove("NOTIFY_SOCKET");
    command
}

async fn started(folder: &Path, listen: &str) -> (Child, String) {
    let log = File::options().create(true).append(true).open(folder.join("log")).unwrap();
    let mut command = hubd();
    command.args(["serve", "--listen", listen, "--dir"]).arg(folder);
    let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let read = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if let Some((_, url)) = line.split_once("is reached at ") {
                return Some(url.to_owned());
            }
        }
        None
    };
    let url = tokio::time::timeout(Duration::from_secs(60), read).await.expect("the hub starts");
    let log = || fs::read_to_string(folder.join("log")).unwrap();
    (child, url.unwrap_or_else(|| panic!("the hub does not start: {}", log())))
}

impl HubProcess {
    async fn start(folder: PathBuf) -> Self {
        let (child, url) = started(&folder, "127.0.0.1:0").await;
        Self { url, folder, child }
    }

    pub async fn kill(&mut self) {
        self.child.start_kill().unwrap();
        self.child.wait().await.unwrap();
    }

    /// Starts it again at the address it had.
    pub async fn restart(&mut self) {
        let listen = self.url.strip_prefix("https://").unwrap().to_owned();
        self.child = started(&self.folder, &listen).await.0;
    }

    pub async fn signal(&self, signal: &str) {
        let pid = self.child.id().unwrap().to_string();
        #[expect(clippy::disallowed_methods, reason = "a signal, as a person sends it")]
        let sent = Command::new("kill").args([signal, &pid]).status().await.unwrap();
        assert!(sent.success());
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap()
    }
}

/// A test may end the server that all of this program share.
static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// Hubs on one database, with the hosts that were enrolled.
pub struct Site {
    pub server: Server,
    pub hubs: Vec<HubProcess>,
    pub hosts: Vec<(String, Host)>,
    pub ca_pem: String,
    pub token: String,
    /// In front of the database for the last hub.
    pub proxy: Proxy,
    temp: TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Site {
    /// So many hubs and hosts; alerts go to `receiver`.
    pub async fn start(hubs: usize, hosts: usize, receiver: &str) -> Self {
        let alone = ONE_AT_A_TIME.lock().await;
        let server = std::thread::scope(|scope| scope.spawn(fresh_database).join().unwrap());
        let temp = tempfile::tempdir().unwrap();
        let first = temp.path().join("hub0");
        let database = Database::Postgres(Box::new(server.clone()));
        let world = World::started(first.clone(), Options { database, ..Options::default() }).await;
        let mut enrolled = Vec::new();
        for number in 0..hosts {
            let name = format!("box{number}");
            let host = world.enrol(&name).await;
            enrolled.push((name, host));
        }
        let (ca_pem, token) = (world.ca_pem.clone(), world.token());
        world.stop().await;
        let proxy = Proxy::start(temp.path().join("proxy"), &server_folder(&server));
        let mut site =
            Self { server, hubs: Vec::new(), hosts: enrolled, ca_pem, token, proxy, temp, _alone: alone };
        for number in 0..hubs {
            let is_last = number + 1 == hubs;
            let database = if is_last { site.by_proxy() } else { url_of(&site.server) };
            let folder = site.folder(number, &database, receiver);
            site.hubs.push(HubProcess::start(folder).await);
        }
        site
    }

    /// The database's URL by the proxy.
    fn by_proxy(&self) -> String {
        let (folder, proxy) = (server_folder(&self.server), &self.proxy.folder);
        url_of(&self.server).replace(&folder.display().to_string(), &proxy.display().to_string())
    }

    /// A folder with the keys of the first hub.
    fn folder(&self, number: usize, database: &str, receiver: &str) -> PathBuf {
        let (first, folder) = (self.temp.path().join("hub0"), self.temp.path().join(format!("hub{number}")));
        if number > 0 {
            fs::create_dir(&folder).unwrap();
            for key in ["seed.key", "ca.key", "ca.pem", "countersign.key"] {
                fs::copy(first.join(key), folder.join(key)).unwrap();
            }
        }
        let ops = folder.join("receiver-ops.toml");
        fs::write(&ops, format!("kind = \"webhook\"\nurl = \"{receiver}\"\nkey = \"{}\"\n", "k".repeat(32)))
            .unwrap();
        fs::set_permissions(&ops, fs::Permissions::from_mode(0o600)).unwrap();
        let settings = format!(
            "database = \"{database}\"\ndeliver_to = \"loopback\"\n[alerts]\ngroup_wait_s = 0\n[[receiver]]\nname = \"ops\"\nfile = \"{}\"\n",
            ops.display()
        );
        fs::write(folder.join("hub.toml"), settings).unwrap();
        folder
    }

    /// A folder without keys, on the same database.
    pub fn strange_folder(&self) -> PathBuf {
        let folder = self.temp.path().join("stranger");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("hub.toml"), format!("database = \"{}\"\n", url_of(&self.server))).unwrap();
        folder
    }

    /// The admin, at one of the hubs.
    pub fn admin(&self, hub: usize) -> Client {
        client(&self.ca_pem, &self.hubs[hub].url, None)
            .with("authorization", &format!("Bearer {}", self.token))
    }

    /// A host, at each of the hubs.
    pub fn clients(&self, host: &Host) -> Vec<Client> {
        let identity = Some((host.enrolled.certificate_pem.as_str(), &host.key));
        self.hubs.iter().map(|hub| client(&self.ca_pem, &hub.url, identity)).collect()
    }
}
