//! `setup`, `doctor` and the Proxmox client against the simulator: the proved sequence of calls, and what must fail.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agentd::cli::doctor::{State, examine};
use agentd::cli::setup::{SetupArguments, SetupError};
use agentd::port::pve::change::{Description, MountSlot, NewVolume};
use agentd::port::pve::error::PveError;
use agentd::port::pve::read::Power;
use agentd::port::pve::restore::{Address, BootstrapEnv, NetSpec};
use agentd::port::pve::sight::{Sight, Wanted};
use agentd::port::pve::task::Patience;
use agentd::port::pve::undo::{Evidence, Made, NotOurs};
use agentd::port::pve::volume::InBackup;
use agentd::port::pve::{
    AclPath, ConfigChange, ConfigUpdate, ContentKind, DiskSlot, GuestConfig, Pve, PveClient, RealPace,
    RestoreRequest, Role, TaskKind, TaskOutcome, TaskQuery, UndoProof, Upid, VmidUse, VolumeId, follow_task,
    prove_sight,
};
use agentd::run::pve_settings;
use agentd::settings::Settings;
use clap::Parser;
use holdfast_protocol::id::Vmid;
use holdfast_protocol::secret::Secret;
use pve_sim::{Handle, Sim};

const GOLDEN: &str = "vzdump-lxc-155-2026_11_21-04_02_15.tar.zst";

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    setup: SetupArguments,
}

/// A simulated node, and a box beside it.
struct Lab {
    sim: Handle,
    dir: tempfile::TempDir,
}

impl Lab {
    async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let quick = Duration::from_millis(1);
        let sim = Sim::builder()
            .state_dir(dir.path().join("sim"))
            .pace(quick)
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

    fn config(&self) -> PathBuf {
        self.dir.path().join("etc/agent.toml")
    }

    fn archive(&self) -> PathBuf {
        find(&self.dir.path().join("sim"), GOLDEN)
            .unwrap_or_else(|| panic!("{GOLDEN} is not in the simulator's state"))
    }

    /// Runs `agentd setup --api …` as a person would.
    async fn setup(&self, more: &[&str]) -> Result<(), SetupError> {
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
        tokio::task::spawn_blocking(move || agentd::cli::setup::run(&arguments.setup)).await.unwrap()
    }

    fn client(&self) -> (PveClient, Settings) {
        let settings =
            Settings::parse(&std::fs::read_to_string(self.config()).unwrap(), &self.config()).unwrap();
        let client =
            PveClient::new(&pve_settings(&settings).unwrap(), Arc::new(RealPace::default())).unwrap();
        (client, settings)
    }
}

fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let entries: Vec<_> = std::fs::read_dir(folder).ok()?.flatten().collect();
    let here = entries.iter().find(|entry| entry.file_name() == name).map(std::fs::DirEntry::path);
    here.or_else(|| {
        entries.iter().filter(|entry| entry.path().is_dir()).find_map(|entry| find(&entry.path(), name))
    })
}

fn vmid(number: u32) -> Vmid {
    Vmid::try_from(number).unwrap()
}

fn request(number: u32, archive: &str) -> RestoreRequest {
    RestoreRequest {
        vmid: vmid(number),
        archive: archive.parse().unwrap(),
        storage: "labbtrfs".parse().unwrap(),
        pool: "holdfast".parse().unwrap(),
        net0: NetSpec {
            bridge: "vmbr0".parse().unwrap(),
            address: Address::Static {
                cidr: "10.66.0.91/24".parse().unwrap(),
                gateway: Some([10, 66, 0, 1].into()),
            },
            vlan: None,
        },
        env: BootstrapEnv::new(Secret::new("eyJjbGFpbSI6MX0".to_owned())).unwrap(),
        hostname: "web-1".parse().unwrap(),
        memory: 256.try_into().unwrap(),
        swap: 0.try_into().unwrap(),
        cores: 1.try_into().unwrap(),
    }
}

async fn followed(client: &PveClient, upid: &Upid) -> (TaskOutcome, Vec<String>) {
    let mut lines = Vec::new();
    let mut on_line = |line: &str| lines.push(line.to_owned());
    let patience =
        Patience { pause_min: Duration::from_millis(5), ..Patience::up_to(Duration::from_secs(60)) };
    let outcome = follow_task(client, &RealPace::default(), upid, patience, &mut on_line).await.unwrap();
    (outcome, lines)
}

async fn done(client: &PveClient, upid: Result<Upid, PveError>) {
    let (outcome, lines) = followed(client, &upid.unwrap()).await;
    assert_eq!(outcome, TaskOutcome::Ok, "{lines:?}");
}

async fn change(client: &PveClient, number: u32, changes: Vec<ConfigChange>) -> Result<(), PveError> {
    let config = client.guest_config(vmid(number)).await.unwrap();
    client.configure(vmid(number), &ConfigUpdate::new(config.digest, changes).unwrap()).await
}

fn volume(slot: u8) -> ConfigChange {
    ConfigChange::AddVolume(NewVolume {
        slot: MountSlot(slot),
        storage: "labdir".parse().unwrap(),
        size: 1.try_into().unwrap(),
        mount: format!("/mnt/bulk{slot}").parse().unwrap(),
        in_backup: InBackup::No,
    })
}

fn mark() -> Vec<ConfigChange> {
    let tags = ["holdfast", "hf-1a2b3c4d"].map(|tag| tag.parse().unwrap());
    let text = Description::try_from("holdfast 018f3c1e\nsecond line".to_owned()).unwrap();
    vec![ConfigChange::Tags(tags.into()), ConfigChange::Description(text)]
}

fn made(number: u32, config: &GuestConfig) -> Made {
    let tags: BTreeSet<String> = ["holdfast".to_owned(), "hf-1a2b3c4d".to_owned()].into();
    let evidence = Evidence::Mark { tags, first_line: "holdfast 018f3c1e".to_owned() };
    Made { vmid: vmid(number), evidence, volumes: config.volumes() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn setup_makes_what_doctor_wants_and_repeats_safely() {
    let lab = Lab::start().await;
    lab.setup(&["--dry-run"]).await.unwrap();
    assert!(!lab.config().exists(), "a dry run writes nothing");
    lab.setup(&[]).await.unwrap();
    let (client, settings) = lab.client();
    let checks = examine(&client, &settings).await;
    assert!(checks.iter().all(|check| check.state == State::Good), "{checks:#?}");
    let secret = std::fs::read_to_string(lab.dir.path().join("state/secrets/proxmox-operate")).unwrap();
    lab.setup(&[]).await.unwrap();
    let again = std::fs::read_to_string(lab.dir.path().join("state/secrets/proxmox-operate")).unwrap();
    assert_eq!(secret, again, "a token whose secret is at hand is kept");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_secret_is_replaced_and_removal_takes_it_all_away() {
    let lab = Lab::start().await;
    lab.setup(&[]).await.unwrap();
    std::fs::remove_file(lab.dir.path().join("state/secrets/proxmox-allocate")).unwrap();
    lab.setup(&[]).await.unwrap();
    let (client, settings) = lab.client();
    let checks = examine(&client, &settings).await;
    assert!(checks.iter().all(|check| check.state == State::Good), "{checks:#?}");
    lab.setup(&["--remove"]).await.unwrap();
    assert!(!lab.config().exists());
    let refused = client.version().await.unwrap_err();
    assert!(matches!(refused, PveError::Unauthorised { role: Role::Observe }), "{refused:?}");
    lab.setup(&["--remove"]).await.unwrap();
    lab.setup(&[]).await.unwrap();
    let (client, settings) = lab.client();
    assert!(examine(&client, &settings).await.iter().all(|check| check.state == State::Good));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_proved_sequence_and_its_undo() {
    let lab = Lab::start().await;
    lab.setup(&[]).await.unwrap();
    let (client, _) = lab.client();
    let archive: VolumeId = format!("backup2:backup/{GOLDEN}").parse().unwrap();
    assert_eq!(client.vmid_use(vmid(300)).await.unwrap(), VmidUse::Free);
    let inside = client.archive_config(Role::Allocate, &archive).await.unwrap();
    assert_eq!(inside.keys.get("features").map(String::as_str), Some("nesting=1,keyctl=1"));
    let listed = client
        .storage_content(Role::Allocate, &"backup2".parse().unwrap(), ContentKind::Backup, Some(vmid(155)))
        .await
        .unwrap();
    assert!(listed.iter().any(|volume| volume.volid == archive.as_str()), "{listed:?}");

    let upid = client.restore(&request(300, archive.as_str())).await.unwrap();
    let (outcome, lines) = followed(&client, &upid).await;
    assert_eq!(outcome, TaskOutcome::Ok, "{lines:?}");
    assert_eq!(lines.last().map(String::as_str), Some("TASK OK"));
    assert_eq!(client.vmid_use(vmid(300)).await.unwrap(), VmidUse::Taken);
    let query = TaskQuery {
        vmid: vmid(300),
        kind: TaskKind::Restore,
        role: Role::Allocate,
        since_epoch_s: upid.start_epoch_s(),
    };
    assert_eq!(client.find_tasks(query).await.unwrap().first().map(|row| row.upid.clone()), Some(upid));

    let config = client.guest_config(vmid(300)).await.unwrap();
    assert_eq!(config.features.as_deref(), Some("nesting=1,keyctl=1"));
    assert_eq!((config.memory_mib, config.cores, config.hostname.as_deref()), (256, Some(1), Some("web-1")));
    assert!(config.nets.get(&0).unwrap().contains("hwaddr="), "a fresh MAC: {:?}", config.nets);
    assert_eq!(config.env.unwrap().expose(), "HOLDFAST_BOOTSTRAP=eyJjbGFpbSI6MX0");

    change(&client, 300, mark()).await.unwrap();
    let config = client.guest_config(vmid(300)).await.unwrap();
    assert_eq!(config.description, "holdfast 018f3c1e\nsecond line");
    let stale =
        ConfigUpdate::new(config.digest.clone(), vec![ConfigChange::Cores(2.try_into().unwrap())]).unwrap();
    done(&client, client.resize(vmid(300), DiskSlot::Rootfs, 3.try_into().unwrap(), &config.digest).await)
        .await;
    let refused = client.configure(vmid(300), &stale).await.unwrap_err();
    assert!(matches!(refused, PveError::DigestChanged), "{refused:?}");
    change(&client, 300, vec![volume(0)]).await.unwrap();
    change(&client, 300, vec![ConfigChange::Protect]).await.unwrap();
    let refused = change(&client, 300, vec![volume(1)]).await.unwrap_err();
    assert!(matches!(refused, PveError::Protected { vmid: v } if v == vmid(300)), "{refused:?}");
    let config = client.guest_config(vmid(300)).await.unwrap();
    assert_eq!(config.rootfs.as_ref().unwrap().size, Some(3 << 30));
    assert_eq!(config.volumes().len(), 2);

    done(&client, client.start(vmid(300)).await).await;
    assert_eq!(client.guest_status(vmid(300)).await.unwrap().power, Power::Running);
    let refused = client.start(vmid(300)).await.unwrap_err();
    assert!(matches!(refused, PveError::AlreadyRunning { .. }), "{refused:?}");
    change(&client, 300, vec![ConfigChange::ClearEnv]).await.unwrap();
    assert!(client.guest_config(vmid(300)).await.unwrap().env.is_none());

    undo(&client).await;
}

/// Stop, prove, unprotect, destroy, and see that it is gone.
async fn undo(client: &PveClient) {
    done(client, client.stop(vmid(300)).await).await;
    let config = client.guest_config(vmid(300)).await.unwrap();
    let mine = made(300, &config);
    let refused = client.destroy(UndoProof::establish(&mine, &config).unwrap()).await.unwrap_err();
    assert!(matches!(refused, PveError::Protected { .. }), "{refused:?}");
    let mut less = mine.clone();
    less.volumes.pop_last();
    assert!(matches!(UndoProof::establish(&less, &config), Err(NotOurs::Volume { .. })));
    let proof = UndoProof::establish(&mine, &config).unwrap();
    client.unprotect(&proof, &config.digest).await.unwrap();
    let wanted = [Wanted { path: AclPath::guest(vmid(300)), sight: Sight::Guest }];
    assert!(prove_sight(client, Role::Operate, &wanted).await.unwrap().is_ok());
    done(client, client.destroy(proof).await).await;
    assert_eq!(client.vmid_use(vmid(300)).await.unwrap(), VmidUse::Free);
    assert!(!client.guests().await.unwrap().iter().any(|guest| guest.vmid == vmid(300)));
    let rest = client
        .storage_content(Role::Operate, &"labdir".parse().unwrap(), ContentKind::Rootdir, None)
        .await
        .unwrap();
    assert!(!rest.iter().any(|volume| volume.vmid == Some(vmid(300))), "{rest:?}");
    // A destroyed guest leaves its pool, and with it goes our right to look there: absence alone proves nothing.
    assert!(prove_sight(client, Role::Operate, &wanted).await.unwrap().is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_tokens_must_not_do() {
    let lab = Lab::start().await;
    lab.setup(&[]).await.unwrap();
    let (client, _) = lab.client();
    let other = "backup2:backup/vzdump-lxc-140-2026_11_21-04_00_56.tar.zst";
    let refused = client.restore(&request(301, other)).await.unwrap_err();
    assert!(
        matches!(&refused, PveError::Permission { path: Some(path), privileges, .. } if path == "/vms/140" && privileges == &["VM.Backup"]),
        "an archive that nobody approved: {refused:?}"
    );
    let taken = client.restore(&request(200, &format!("backup2:backup/{GOLDEN}"))).await.unwrap_err();
    assert!(matches!(taken, PveError::AlreadyExists { vmid: v } if v == vmid(200)), "{taken:?}");
    for refused in [
        client.guest_config(vmid(200)).await.map(|_| ()).unwrap_err(),
        client.start(vmid(200)).await.map(|_| ()).unwrap_err(),
        client.guest_status(vmid(200)).await.map(|_| ()).unwrap_err(),
    ] {
        assert!(matches!(refused, PveError::Permission { .. }), "a guest outside the pool: {refused:?}");
    }
    assert!(client.guests().await.unwrap().is_empty(), "empty, and yet guests 100 and 200 are there");
    let wanted = [Wanted { path: AclPath::guest(vmid(200)), sight: Sight::Guest }];
    assert!(prove_sight(&client, Role::Observe, &wanted).await.unwrap().is_err());
    let gone =
        client.restore(&request(301, "backup2:backup/vzdump-lxc-155-2020_01_01-00_00_00.tar.zst")).await;
    let (outcome, lines) = followed(&client, &gone.unwrap()).await;
    assert!(
        matches!(&outcome, TaskOutcome::Failed(text) if text.contains("does not exist")),
        "{outcome:?} {lines:?}"
    );
    assert_eq!(client.vmid_use(vmid(301)).await.unwrap(), VmidUse::Free);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn doctor_names_what_is_missing() {
    let lab = Lab::start().await;
    lab.setup(&[]).await.unwrap();
    lab.setup(&["--remove"]).await.unwrap();
    // A pool alone: nothing else is left.
    let refused = lab.setup(&["--pin", &format!("spki/sha256:{}", "ab".repeat(32))]).await;
    assert!(refused.is_ok(), "any pin of the set may match");
    let (client, mut settings) = lab.client();
    settings.proxmox.storage = "offline".parse().unwrap();
    let checks = examine(&client, &settings).await;
    let failed: Vec<String> = checks
        .iter()
        .filter(|check| check.state == State::Failed)
        .map(|check| format!("{}: {}", check.name, check.detail))
        .collect();
    assert!(
        failed.iter().any(|line| line.starts_with("observe on /storage/offline: Datastore.Audit is missing")),
        "{failed:#?}"
    );
    assert!(
        failed.iter().any(|line| line.starts_with("storage offline for rootdir: not visible")),
        "{failed:#?}"
    );
    assert!(checks.iter().any(|check| check.mend.iter().any(|line| {
        line == "pveum acl modify /storage/offline --users holdfast@pve --tokens 'holdfast@pve!observe' --roles HfStAudit --propagate 0"
    })));
}
