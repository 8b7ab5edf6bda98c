//! An idle zabbix-agent2, for comparison.

use std::process::{Child, Stdio};

use anyhow::{Context, Result};
use e2e::place::{Place, User};
use tempfile::TempDir;

/// Debian's program, installed by `cargo bench-all`.
const PROGRAM: &str = "zabbix_agent2";

/// It runs until this is dropped.
pub struct Peer {
    child: Child,
    _folder: TempDir,
}

impl Peer {
    /// Starts one that listens for a server on loopback, and that no server asks.
    pub fn start() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let settings = folder.path().join("agent2.conf");
        let lines = [
            "Server=127.0.0.1".to_owned(),
            "ListenIP=127.0.0.1".to_owned(),
            format!("ListenPort={port}"),
            "LogType=console".to_owned(),
            format!("PidFile={}", folder.path().join("pid").display()),
            format!("ControlSocket={}", folder.path().join("control").display()),
            format!("PluginSocket={}", folder.path().join("plugins").display()),
        ];
        std::fs::write(&settings, lines.join("\n"))?;
        let mut command = Place::default().command(PROGRAM, User::Same);
        command.arg("--foreground").arg("--config").arg(&settings);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Ok(Self { child: child.with_context(|| format!("{PROGRAM} cannot be started"))?, _folder: folder })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Where it has ended already there is nothing to kill.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
