//! An idle zabbix-agent2, for comparison.

use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Stdio};

use anyhow::{Context, Result};
use e2e::place::{Place, User};
use tempfile::TempDir;

/// Debian's program, installed by `cargo bench-all`.
const PROGRAM: &str = "zabbix_agent2";

/// It takes none above 32767, where the kernel's own choice begins.
const PORTS: std::ops::Range<u16> = 21_000..22_000;

/// It runs until this is dropped.
pub struct Peer {
    child: Child,
    _folder: TempDir,
}

impl Peer {
    /// Starts one that listens for a server on loopback, and that no server asks.
    pub fn start() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut ports = PORTS;
        let port = ports.find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok());
        let port = port.context("no port is free for zabbix-agent2")?;
        let settings = folder.path().join("agent2.conf");
        let lines = [
            "Server=127.0.0.1".to_owned(),
            "ListenIP=127.0.0.1".to_owned(),
            format!("ListenPort={port}"),
            "LogType=console".to_owned(),
            format!("PidFile={}", folder.path().join("pid").display()),
            format!("ControlSocket={}", folder.path().join("control").display()),
            "ServerActive=127.0.0.1".to_owned(),
            "Hostname=footprint".to_owned(),
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
