//! The simulated Proxmox of a stage.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::{Golden, READY, Stage};
use crate::child::Running;
use crate::document::Ground;
use crate::place::User;

/// How guests run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// Each is a folder; its `guestd` is a child process on a loopback address of its own.
    Process,
    /// Each is only marked as running; the program that made the stage acts for it, from the host's bridge.
    Inert,
    /// Each is a booted system on a bridge in a network namespace; needs root.
    Nspawn,
}

impl Runtime {
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Inert => "inert",
            Self::Nspawn => "nspawn",
        }
    }

    /// Where guests live.
    #[must_use]
    pub fn ground(self, golden: &str) -> Ground {
        let golden = golden.to_owned();
        match self {
            Self::Process => Ground { network: "127.66.0".to_owned(), prefix: 8, gateway: None, golden },
            Self::Inert => Ground { network: "10.66.0".to_owned(), prefix: 24, gateway: None, golden },
            Self::Nspawn => Ground {
                network: "10.66.0".to_owned(),
                prefix: 24,
                gateway: Some("10.66.0.1".to_owned()),
                golden,
            },
        }
    }

    /// Where the demo tests backups of guests that are folders. Their bridge is only reported to exist; its addresses
    /// are this machine's own.
    #[must_use]
    pub const fn restore_tests(self) -> &'static [&'static str] {
        match self {
            Self::Process => {
                &["--scratch-pool", "--scratch-range", "6000-6009", "--test-network", "127.254.254.1/30"]
            }
            // The values that they are set up with anyway.
            Self::Inert | Self::Nspawn => &[],
        }
    }

    /// Where backups are tested: in guests that boot, on the seed's bridge without ports.
    pub(super) const fn trials(self) -> &'static [&'static str] {
        match self {
            Self::Process | Self::Inert => &[],
            Self::Nspawn => &["--scratch-pool", "--scratch-range", "6000-6009", "--test-network"],
        }
    }

    /// Where the agent serves guests.
    pub(super) const fn local_api(self) -> &'static str {
        match self {
            Self::Process => "127.66.0.1:8443",
            Self::Inert | Self::Nspawn => "10.66.0.1:8443",
        }
    }
}

/// The first line of the simulator's output; unknown fields are ignored.
#[derive(Clone, Debug, Deserialize)]
pub struct Proxmox {
    /// `https://127.0.0.1:port`.
    pub url: String,
    pub node: String,
    /// SHA-256 of its key, hex.
    pub spki_sha256: String,
    /// Secrets by token id.
    pub tokens: BTreeMap<String, String>,
    /// The network namespace of its guests.
    #[serde(default)]
    pub netns: Option<PathBuf>,
}

/// The folder of the archives, inside the simulator's state.
const DUMP: &str = "root/mnt/backup2/dump";

impl Stage {
    /// Starts the simulator with the golden archive on its backup storage.
    ///
    /// # Errors
    /// When it does not come up.
    pub fn start_simulator(&mut self) -> Result<Proxmox> {
        let state = self.part("sim");
        let mut command = self.home.command(self.options.programs.path("pve-sim"), User::Same);
        // The next simulator listens at the address of the previous one: a host keeps its address.
        let before =
            self.proxmox.as_ref().map(|proxmox| proxmox.url.trim_start_matches("https://").to_owned());
        let listen = before.unwrap_or_else(|| "127.0.0.1:0".to_owned());
        let runtime = self.options.runtime.text();
        command.args(["serve", "--guard", "--listen", &listen, "--runtime", runtime]);
        command.arg("--state").arg(&state).arg("--seed").arg(&self.options.seed);
        // The test waits for the first line of the log, so each start has a log of its own.
        let lives = (2..).map(|life| self.log(&format!("pve-sim-{life}")));
        let log = std::iter::once(self.log("pve-sim")).chain(lives).find(|log| !log.exists());
        let log = log.context("a log has a name")?;
        let mut simulator = Running::start("pve-sim", command, &log)?;
        let line = simulator.line("its address", READY, |line| line.starts_with('{'))?;
        let proxmox: Proxmox =
            serde_json::from_str(&line).context("pve-sim's first line is not of its form")?;
        self.simulator = Some(simulator);
        self.place.namespace = proxmox.netns.clone().or_else(|| self.home.namespace.clone());
        self.proxmox = Some(proxmox.clone());
        self.put_image(&self.options.golden)?;
        Ok(proxmox)
    }

    /// Puts an image on the simulator's backup storage, where the agent may read it. Returns it as `agentd setup` takes
    /// it: `--golden` with its version, its volume and its file.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn put_image(&self, image: &Golden) -> Result<String> {
        let golden = self.image_on_storage(image)?;
        let dump = golden.parent().context("an archive lies in a folder")?;
        std::fs::create_dir_all(dump).with_context(|| format!("cannot make {}", dump.display()))?;
        std::fs::copy(&image.file, &golden).with_context(|| format!("cannot write {}", golden.display()))?;
        self.open_to_agent(&golden)?;
        self.named_image(image)
    }

    /// An image as `agentd setup` takes it.
    pub(super) fn named_image(&self, image: &Golden) -> Result<String> {
        let file = self.image_on_storage(image)?;
        Ok(format!("{},backup2:backup/{},{}", image.version, image.name()?, file.display()))
    }

    /// An image where the simulator has it.
    fn image_on_storage(&self, image: &Golden) -> Result<PathBuf> {
        Ok(self.part("sim").join(DUMP).join(image.name()?))
    }

    /// Lets the agent's user read one file of the simulator's, and pass through the folders above it.
    fn open_to_agent(&self, file: &Path) -> Result<()> {
        let open = |path: &Path, mode: u32| {
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(path, permissions)
                .with_context(|| format!("cannot open {}", path.display()))
        };
        open(file, 0o644)?;
        let above = file.ancestors().skip(1).take_while(|folder| *folder != self.folder());
        above.into_iter().try_for_each(|folder| open(folder, 0o755))
    }

    /// The first line of the simulator's output.
    ///
    /// # Errors
    /// Before it was started.
    pub fn proxmox(&self) -> Result<&Proxmox> {
        self.proxmox.as_ref().context("the simulator was not started yet")
    }

    /// The simulator's process.
    #[must_use]
    pub fn simulator_pid(&self) -> Option<u32> {
        self.simulator.as_ref().map(Running::pid)
    }

    /// Runs `pve-sim fault …` against the running simulator: a hand edit, an armed fault.
    ///
    /// # Errors
    /// When the simulator refuses.
    pub fn fault(&self, words: &[&str]) -> Result<String> {
        let mut command = self.home.command(self.options.programs.path("pve-sim"), User::Same);
        command.arg("fault").arg("--state").arg(self.part("sim")).args(words);
        let output = command.output().context("cannot run pve-sim")?;
        if !output.status.success() {
            let said = [output.stdout, output.stderr].concat();
            bail!("pve-sim fault {}: {}", words.join(" "), String::from_utf8_lossy(&said));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Checks with the simulator's guard that the agent sent no forbidden request; the simulator may have ended.
    ///
    /// # Errors
    /// When a forbidden request was sent, or no guard watched.
    pub fn nothing_forbidden_was_sent(&self) -> Result<()> {
        self.fault(&["offences"]).map(drop)
    }

    /// Guest configurations as they lie on the simulator's disk, by VMID.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn configurations(&self) -> Result<BTreeMap<u32, String>> {
        let mut found = BTreeMap::new();
        for entry in
            std::fs::read_dir(self.part("sim").join("lxc")).context("the simulator has no guests' folder")?
        {
            let path = entry?.path();
            let vmid = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
            if let Some(vmid) = vmid.filter(|_| path.extension().is_some_and(|ending| ending == "conf")) {
                found.insert(vmid, std::fs::read_to_string(&path)?);
            }
        }
        Ok(found)
    }

    /// Every task that Proxmox ran for the agent's tokens, from the simulator's own index.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn tasks(&self) -> Result<BTreeSet<String>> {
        let folder = self.part("sim").join("tasks");
        let read = |name: &str| {
            std::fs::read_to_string(folder.join(name)).with_context(|| format!("no {name} of tasks"))
        };
        let (ended, active) = (read("index")?, read("active")?);
        let all = ended.lines().chain(active.lines()).filter_map(|line| line.split_whitespace().next());
        Ok(all.filter(|task| !task.contains(":root@pam")).map(str::to_owned).collect())
    }
}
