//! A simulated node for the client's tests.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agent_admin::setup::{SetupArguments, SetupError};
use agentd::model::net::ResolverText;
use agentd::port::pve::change::{Description, MountSlot, NewVolume};
use agentd::port::pve::error::PveError;
use agentd::port::pve::restore::{Address, BootstrapEnv, NetSpec, Placing};
use agentd::port::pve::task::Patience;
use agentd::port::pve::undo::{Evidence, Made};
use agentd::port::pve::volume::InBackup;
use agentd::port::pve::{
    ConfigChange, ConfigUpdate, GuestConfig, Pve, PveClient, RealPace, RestoreRequest, TaskOutcome, Upid,
    follow_task,
};
use agentd::settings::Settings;
use agentd::settings::pve_settings;
use clap::Parser;
use holdfast_protocol::id::Vmid;
use holdfast_protocol::secret::Secret;
use pve_sim::{Handle, Sim};

pub const GOLDEN: &str = "vzdump-lxc-155-2026_11_21-04_02_15.tar.zst";

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    setup: SetupArguments,
}

/// A simulated node, and a host next to it.
pub struct Lab {
    pub sim: Handle,
    pub dir: tempfile::TempDir,
}

impl Lab {
    pub async fn start() -> Self {
        Self::paced(Duration::from_millis(1)).await
    }

    /// A node whose tasks rest this long between steps.
    pub async fn paced(pace: Duration) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let quick = Duration::from_millis(1);
        let sim = Sim::builder()
            .state_dir(dir.path().join("sim"))
            .pace(pace)
            .login_delay(quick)
            .start()
            .await
            .unwrap();
        std::fs::write(
            dir.path().join("credential"),
            format!("root@pam!lab={}\n", sim.tokens.get("root@pam!lab").unwrap()),
        )
        .unwrap();
        Self { sim, dir }
    }

    pub fn config(&self) -> PathBuf {
        self.dir.path().join("etc/agent.toml")
    }

    pub fn archive(&self) -> PathBuf {
        find(&self.dir.path().join("sim"), GOLDEN)
            .unwrap_or_else(|| panic!("{GOLDEN} is not in the simulator's state"))
    }

    /// Runs `agentd setup --api …` as a person would.
    pub async fn setup(&self, more: &[&str]) -> Result<(), SetupError> {
        let path = |name: &str| self.dir.path().join(name).display().to_string();
        let pin = format!("spki/sha256:{}", self.sim.spki_sha256);
        let golden = format!("2026.11.1,backup2:backup/{GOLDEN},{}", self.archive().display());
        let words = [
            "setup",
            "--yes",
            "--api",
            &self.sim.url,
            "--credential",
            &path("credential"),
            "--pin",
            &pin,
            "--node",
            "pve1",
            "--storage",
            "labbtrfs",
            "--bulk-storage",
            "labdir",
            "--backup-storage",
            "backup2",
            "--vmid-range",
            "300-399",
            "--listen",
            "10.66.0.1:8443",
            "--golden",
            &golden,
            "--config",
            &path("etc/agent.toml"),
            "--state-dir",
            &path("state"),
            "--output",
            "json",
        ];
        let arguments = Cli::try_parse_from(words.iter().copied().chain(more.iter().copied())).unwrap();
        // The command makes a runtime of its own.
        tokio::task::spawn_blocking(move || agent_admin::setup::run(&arguments.setup)).await.unwrap()
    }

    pub fn client(&self) -> (PveClient, Settings) {
        let settings =
            Settings::parse(&std::fs::read_to_string(self.config()).unwrap(), &self.config()).unwrap();
        let client =
            PveClient::new(&pve_settings(&settings).unwrap(), Arc::new(RealPace::default())).unwrap();
        (client, settings)
    }
}

pub fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let entries: Vec<_> = std::fs::read_dir(folder).ok()?.flatten().collect();
    let here = entries.iter().find(|entry| entry.file_name() == name).map(std::fs::DirEntry::path);
    here.or_else(|| {
        entries.iter().filter(|entry| entry.path().is_dir()).find_map(|entry| find(&entry.path(), name))
    })
}

pub fn vmid(number: u32) -> Vmid {
    Vmid::try_from(number).unwrap()
}

pub fn request(number: u32, archive: &str) -> RestoreRequest {
    RestoreRequest {
        vmid: vmid(number),
        archive: archive.parse().unwrap(),
        disks: Placing::AllOn("labbtrfs".parse().unwrap()),
        pool: "holdfast".parse().unwrap(),
        net0: NetSpec {
            bridge: "vmbr0".parse().unwrap(),
            address: Address::Static {
                cidr: "10.66.0.91/24".parse().unwrap(),
                gateway: Some([10, 66, 0, 1].into()),
            },
            vlan: None,
            hardware: None,
            mtu: None,
            rate: None,
            firewall: None,
        },
        resolver: ResolverText::default(),
        env: BootstrapEnv::new(Secret::new("eyJjbGFpbSI6MX0".to_owned())).unwrap(),
        hostname: "web-1".parse().unwrap(),
        memory: 256.try_into().unwrap(),
        swap: 0.try_into().unwrap(),
        cores: 1.try_into().unwrap(),
    }
}

pub async fn followed(client: &PveClient, upid: &Upid) -> (TaskOutcome, Vec<String>) {
    let mut lines = Vec::new();
    let mut on_line = |line: &str| lines.push(line.to_owned());
    let patience =
        Patience { pause_min: Duration::from_millis(5), ..Patience::up_to(Duration::from_secs(60)) };
    let outcome = follow_task(client, &RealPace::default(), upid, patience, &mut on_line).await.unwrap();
    (outcome, lines)
}

pub async fn done(client: &PveClient, upid: Result<Upid, PveError>) {
    let (outcome, lines) = followed(client, &upid.unwrap()).await;
    assert_eq!(outcome, TaskOutcome::Ok, "{lines:?}");
}

pub async fn change(client: &PveClient, number: u32, changes: Vec<ConfigChange>) -> Result<(), PveError> {
    let config = client.guest_config(vmid(number)).await.unwrap();
    client.configure(vmid(number), &ConfigUpdate::new(config.digest, changes).unwrap()).await
}

pub fn volume(slot: u8) -> ConfigChange {
    ConfigChange::AddVolume(NewVolume {
        slot: MountSlot(slot),
        storage: "labdir".parse().unwrap(),
        size: 1.try_into().unwrap(),
        mount: format!("/mnt/bulk{slot}").parse().unwrap(),
        in_backup: InBackup::No,
    })
}

pub fn mark() -> Vec<ConfigChange> {
    let tags = ["holdfast", "hf-1a2b3c4d"].map(|tag| tag.parse().unwrap());
    let text = Description::try_from("holdfast 018f3c1e\nsecond line".to_owned()).unwrap();
    vec![ConfigChange::Tags(tags.into()), ConfigChange::Description(text)]
}

pub fn made(number: u32, config: &GuestConfig) -> Made {
    let tags: BTreeSet<String> = ["holdfast".to_owned(), "hf-1a2b3c4d".to_owned()].into();
    let evidence = Evidence::Mark { tags, first_line: "holdfast 018f3c1e".to_owned() };
    Made { vmid: vmid(number), evidence, volumes: config.volumes() }
}
