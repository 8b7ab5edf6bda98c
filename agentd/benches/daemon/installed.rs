//! The files of an enrolled agent and of zabbix-agent2.

use std::fs::{self, Permissions};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use agentd::port::local_tls::LocalLeaf;
use anyhow::{Context as _, Result, ensure};
use holdfast_protocol::pin::PinSet;
use jiff::SignedDuration;
use net::tls::Trust;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use serde_json::json;

use crate::place::{Made, key, lay_down_with};
use crate::program::Program;
use crate::terminal::at_terminal;

const ZABBIX: &str = "/usr/sbin/zabbix_agent2";

/// A user id without an account.
const SOMEONE: u32 = 64_998;

/// A server that accepts a connection and does nothing more with it.
const ANSWER_MAX: Duration = Duration::from_secs(5);

pub struct Host {
    folder: tempfile::TempDir,
    local_api: SocketAddr,
    zabbix: SocketAddr,
    client: Arc<ClientConfig>,
    words: String,
    is_root: bool,
}

impl Host {
    pub fn lay_down() -> Result<Self> {
        ensure!(Path::new(ZABBIX).is_file(), "{ZABBIX} is missing: install zabbix-agent2");
        let made = Made::new(1, SignedDuration::from_hours(1));
        let words = made.code.words().collect::<Vec<_>>().join(" ");
        let folder = lay_down_with(&key(), &[made]);
        let (local_api, zabbix) = (free(20_000)?, free(25_000)?);
        let path = |name: &str| folder.path().join(name);
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755))?;
        // Where the checkout is, another user may not reach.
        fs::remove_file(path("bin/agentd"))?;
        fs::copy(env!("CARGO_BIN_EXE_agentd"), path("bin/agentd"))?;
        let settings = fs::read_to_string(path("agent.toml"))?;
        fs::write(path("agent.toml"), settings.replace("127.0.0.1:2", &local_api.to_string()))?;
        for token in ["observe", "operate", "allocate"] {
            fs::write(path("state").join(token), "11111111-2222-3333-4444-555555555555\n")?;
        }
        fs::create_dir(path("state/identity"))?;
        fs::write(path("state/identity/identity.json"), identity()?)?;
        fs::write(path("zabbix.conf"), zabbix_settings(zabbix, folder.path()))?;
        let pin = LocalLeaf::open(&path("state"))?.pin();
        let client = Arc::new(net::tls::client(&Trust::Pins(PinSet::from(pin)))?);
        let is_root = rustix::process::geteuid().is_root();
        if is_root {
            hand_over(folder.path())?;
        }
        Ok(Self { folder, local_api, zabbix, client, words, is_root })
    }

    pub fn start_agent(&self) -> Result<Program> {
        let mut command = self.command(&self.folder.path().join("bin/agentd"));
        let settings = self.folder.path().join("agent.toml");
        Program::start(command.arg("run").env("HOLDFAST_AGENT_CONFIG", settings))
    }

    pub fn start_zabbix(&self) -> Result<Program> {
        let mut command = self.command(Path::new(ZABBIX));
        Program::start(command.args(["-f", "-c"]).arg(self.folder.path().join("zabbix.conf")))
    }

    #[expect(clippy::disallowed_methods, reason = "the programs that are measured")]
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if self.is_root {
            command.uid(SOMEONE).gid(SOMEONE);
        }
        command
    }

    /// Whether the agent's local API answers with its certificate.
    pub fn shakes_hands(&self) -> bool {
        let name = ServerName::IpAddress(self.local_api.ip().into());
        let Ok(mut stream) = TcpStream::connect(self.local_api) else { return false };
        let Ok(mut tls) = ClientConnection::new(Arc::clone(&self.client), name) else { return false };
        stream.set_read_timeout(Some(ANSWER_MAX)).is_ok() && tls.complete_io(&mut stream).is_ok()
    }

    pub fn zabbix_accepts(&self) -> bool {
        TcpStream::connect(self.zabbix).is_ok()
    }

    /// Types the words of the recovery code, which open the file that the agent keeps.
    pub fn drill(&self) {
        let user = format!("setpriv --reuid={SOMEONE} --regid={SOMEONE} --clear-groups ");
        let line = format!("{}bin/agentd escrow drill", if self.is_root { &user } else { "" });
        at_terminal(self.folder.path(), &line, &[("The eleven words (not shown): ", &self.words)]);
    }
}

/// The first free port from there on: zabbix-agent2 takes none above 32767, where the kernel's own choice begins.
fn free(from: u16) -> Result<SocketAddr> {
    let mut all = (from..from + 1_000).map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    all.find(|address| TcpListener::bind(address).is_ok()).context("no port is free")
}

/// As a hub would have given it; that hub is gone.
fn identity() -> Result<String> {
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new(Vec::new())?.self_signed(&key)?.pem();
    let identity = json!({
        "schema": "holdfast.identity/v1", "hub": "https://127.0.0.1:1", "key_pem": key.serialize_pem(),
        "enrolled": { "host_id": "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55", "host_name": "box7",
            "certificate_pem": certificate, "ca_pem": certificate, "certificate_generation": 1,
            "not_before": "2026-01-01T00:00:00Z", "not_after": "2126-01-01T00:00:00Z" }
    });
    Ok(identity.to_string())
}

fn zabbix_settings(listen: SocketAddr, folder: &Path) -> String {
    format!(
        "LogType=console\nServer=127.0.0.1\nServerActive=127.0.0.1\nHostname=box7\nListenIP={}\nListenPort={}\n\
         ControlSocket={}\n",
        listen.ip(),
        listen.port(),
        folder.join("zabbix.sock").display()
    )
}

/// Gives a folder and all in it to the user who runs both programs. What is private stays so.
fn hand_over(path: &Path) -> Result<()> {
    chown(path, Some(SOMEONE), Some(SOMEONE))
        .with_context(|| format!("cannot hand over {}", path.display()))?;
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            hand_over(&entry?.path())?;
        }
    } else if !path.ends_with("agentd") {
        fs::set_permissions(path, Permissions::from_mode(0o600))?;
    }
    Ok(())
}
