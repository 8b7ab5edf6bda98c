//! Guests without root: a directory and a child process.
//!
//! Claim, pin and token are exercised all the same. The child has the environment of the container's first process,
//! which is also written to `/proc/1/environ` below the guest's root. Its connections come from the guest's address.
//! A controller that ends is started again, as the guest's own service manager would do. Without a controller the guest
//! just "runs". Mount points are not shown to it.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::Signal;

use super::error::RuntimeError;
use super::keeper::{Again, Keeper, Supervised, Target};
use super::leftover::{end_all_on_record, forget, recorded};
use super::net::Interface;
use super::spec::GuestSpec;
use super::{LostGuest, RunState, Runtime, ShutdownOutcome};
use crate::archive::tree::{ReachError, Tree};

/// The path of a guest's controller.
const CONTROLLER: &str = "usr/bin/guestd";
/// Where the controller reads the environment of the container's first process.
const ENVIRON: &str = "proc/1/environ";
/// Where the controller reads the boot id; a real container has its own.
const BOOT_ID: &str = "proc/sys/kernel/random/boot_id";
/// SIGKILL acts at once; longer than this means that the process hangs in the kernel.
const KILL_PATIENCE: Duration = Duration::from_secs(10);
/// The pause before a controller that ended is started again: as `RestartSec=` in its unit.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// Guests as child processes.
pub struct Process {
    directory: PathBuf,
    running: Mutex<BTreeMap<u32, RunningGuest>>,
}

struct RunningGuest {
    spec: GuestSpec,
    controller: Option<Keeper>,
}

impl Process {
    /// Keeps logs and process records in an existing directory.
    pub fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), running: Mutex::new(BTreeMap::new()) }
    }

    /// The log file of a guest's controller.
    pub fn log_path(&self, vmid: u32) -> PathBuf {
        self.directory.join(format!("{vmid}.log"))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, RunningGuest>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn launch(&self, guest: &GuestSpec) -> Result<RunningGuest, RuntimeError> {
        guest.check()?;
        let address = guest.nets.first().and_then(|net| net.ip).map(|ip| ip.address);
        if let Some(address) = address.filter(|address| !address.is_loopback()) {
            return Err(RuntimeError::NotLoopback { vmid: guest.vmid, address });
        }
        let tree = Tree::open(&guest.rootfs).map_err(RuntimeError::system("opening", &guest.rootfs))?;
        write_environ(&tree, guest).map_err(RuntimeError::system("writing", guest.rootfs.join(ENVIRON)))?;
        let boot_id = format!("{}\n", uuid::Uuid::new_v4());
        write_private(&tree, BOOT_ID, boot_id.as_bytes())
            .map_err(RuntimeError::system("writing", guest.rootfs.join(BOOT_ID)))?;
        let has_controller = has_controller(&tree)
            .map_err(RuntimeError::system("looking for", guest.rootfs.join(CONTROLLER)))?;
        let controller = match address {
            Some(address) if has_controller => {
                let controller = Controller {
                    rootfs: guest.rootfs.clone(),
                    env: guest.env.clone(),
                    address: address.to_string(),
                    log: self.log_path(guest.vmid),
                    record: self.directory.join(format!("{}.pid", guest.vmid)),
                };
                forget(&controller.log).map_err(RuntimeError::system("clearing", &controller.log))?;
                let program = guest.rootfs.join(CONTROLLER);
                Some(Keeper::start(controller).map_err(RuntimeError::system("starting", program))?)
            }
            _ => None,
        };
        Ok(RunningGuest { spec: guest.clone(), controller })
    }

    fn end(&self, vmid: u32, signal: Signal, patience: Duration) -> Result<ShutdownOutcome, RuntimeError> {
        let mut running = self.lock();
        let Some(guest) = running.get_mut(&vmid) else { return Ok(ShutdownOutcome::Down) };
        if guest.controller.as_mut().is_some_and(|keeper| !keeper.end(signal, Target::Group, patience)) {
            return Ok(ShutdownOutcome::StillRunning);
        }
        let rootfs = guest.spec.rootfs.clone();
        running.remove(&vmid);
        // The claim must not stay in the directory of a stopped guest.
        remove_environ(&rootfs).map_err(RuntimeError::system("removing", rootfs.join(ENVIRON)))?;
        Ok(ShutdownOutcome::Down)
    }
}

impl Runtime for Process {
    fn name(&self) -> &'static str {
        "process"
    }

    fn start(&self, guest: &GuestSpec) -> Result<(), RuntimeError> {
        let mut running = self.lock();
        if running.contains_key(&guest.vmid) {
            return Err(RuntimeError::AlreadyRunning { vmid: guest.vmid });
        }
        let launched = self.launch(guest)?;
        running.insert(guest.vmid, launched);
        Ok(())
    }

    fn stop(&self, vmid: u32) -> Result<(), RuntimeError> {
        match self.end(vmid, Signal::KILL, KILL_PATIENCE)? {
            ShutdownOutcome::Down => Ok(()),
            ShutdownOutcome::StillRunning => {
                Err(RuntimeError::TooSlow { vmid, what: "stop", seconds: KILL_PATIENCE.as_secs() })
            }
        }
    }

    fn shutdown(&self, vmid: u32, patience: Duration) -> Result<ShutdownOutcome, RuntimeError> {
        self.end(vmid, Signal::TERM, patience)
    }

    fn state(&self, vmid: u32) -> RunState {
        match self.lock().get(&vmid) {
            Some(guest) => RunState::Running { pid: guest.controller.as_ref().and_then(Keeper::pid) },
            None => RunState::Stopped,
        }
    }

    fn interfaces(&self, vmid: u32) -> Result<Option<Vec<Interface>>, RuntimeError> {
        Ok(self.lock().get(&vmid).map(|guest| {
            let own = guest.spec.nets.iter().map(Interface::as_wanted);
            std::iter::once(Interface::loopback(Vec::new())).chain(own).collect()
        }))
    }

    fn reconcile(&self, should_run: &[GuestSpec]) -> Result<Vec<LostGuest>, RuntimeError> {
        end_all_on_record(&self.directory)
            .map_err(RuntimeError::system("ending what an earlier simulator left over", &self.directory))?;
        let mut lost = Vec::new();
        for guest in should_run {
            if let Err(reason) = self.start(guest) {
                lost.push(LostGuest { vmid: guest.vmid, reason });
            }
        }
        Ok(lost)
    }

    fn close(&self) -> Result<(), RuntimeError> {
        let vmids: Vec<u32> = self.lock().keys().copied().collect();
        vmids.into_iter().try_for_each(|vmid| self.stop(vmid))
    }
}

/// The controller of one guest.
struct Controller {
    rootfs: PathBuf,
    env: Vec<(String, String)>,
    address: String,
    log: PathBuf,
    record: PathBuf,
}

impl Controller {
    /// Where it finds programs: in its guest, and never on this machine, whose services are not the guest's.
    fn program_folders(&self) -> std::ffi::OsString {
        let folders =
            ["usr/sbin", "usr/bin", "sbin", "bin"].map(|folder| self.rootfs.join(folder).into_os_string());
        folders.join(std::ffi::OsStr::new(":"))
    }
}

impl Supervised for Controller {
    #[expect(
        clippy::disallowed_methods,
        reason = "runs the guest's own guestd: that is what this runtime is"
    )]
    fn spawn(&mut self) -> io::Result<Child> {
        let log = OpenOptions::new().create(true).append(true).mode(0o600).open(&self.log)?;
        let child = Command::new(self.rootfs.join(CONTROLLER))
            .arg("run")
            .arg("--root")
            .arg(&self.rootfs)
            .args(["--source-address", &self.address])
            .env_clear()
            .env("PATH", self.program_folders())
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.rootfs)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        recorded(child, &self.record)
    }

    fn ended(&mut self, _status: ExitStatus) -> Again {
        Again::After(RESTART_PAUSE)
    }

    fn finished(&mut self) {
        // A record that stays is harmless: it names a process that is gone.
        let _ = forget(&self.record);
    }
}

fn has_controller(tree: &Tree) -> io::Result<bool> {
    match tree.existing(Path::new(CONTROLLER)) {
        Ok(slot) => slot.map_or(Ok(false), |slot| slot.is_file()),
        // A link in the way could lead to a program of the host, which is no guest's controller.
        Err(ReachError::ThroughLink) => Ok(false),
        Err(ReachError::Io(error)) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(ReachError::Io(error)) => Err(error),
    }
}

fn write_environ(tree: &Tree, guest: &GuestSpec) -> io::Result<()> {
    let mut environ = Vec::new();
    for (name, value) in &guest.env {
        environ.extend_from_slice(format!("{name}={value}\0").as_bytes());
    }
    write_private(tree, ENVIRON, &environ)
}

/// Writes a file that only its owner can read, in place of whatever is there, and through no link.
fn write_private(tree: &Tree, path: &str, content: &[u8]) -> io::Result<()> {
    let slot = match tree.slot(Path::new(path)) {
        Ok(Some(slot)) => slot,
        Ok(None) | Err(ReachError::ThroughLink) => return Err(io::ErrorKind::InvalidInput.into()),
        Err(ReachError::Io(error)) => return Err(error),
    };
    slot.remove()?;
    let file = slot.create_file()?;
    let mut file: File = file.ok_or_else(|| io::Error::from(io::ErrorKind::AlreadyExists))?;
    file.write_all(content)?;
    rustix::fs::fchmod(&file, rustix::fs::Mode::RUSR)?;
    Ok(())
}

fn remove_environ(rootfs: &Path) -> io::Result<()> {
    let tree = match Tree::open(rootfs) {
        Ok(tree) => tree,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    match tree.existing(Path::new(ENVIRON)) {
        Ok(slot) => slot.map_or(Ok(()), |slot| slot.remove()),
        Err(ReachError::ThroughLink) => Ok(()),
        Err(ReachError::Io(error)) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(ReachError::Io(error)) => Err(error),
    }
}

#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;
