//! One guest's `systemd-nspawn`.

use std::fs::OpenOptions;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::namespace;
use crate::runtime::error::RuntimeError;
use crate::runtime::keeper::{Again, Keeper, Supervised};
use crate::runtime::leftover::{forget, recorded};
use crate::runtime::spec::{Features, GuestSpec};

/// nspawn is up when it has mounted the guest's file systems and started its init: well under a second.
const UP_PATIENCE: Duration = Duration::from_secs(30);
/// How often we check whether it ended instead.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// How much of the end of the log is put into an error.
const LAST_WORDS_BYTES: u64 = 1024;
/// nspawn's exit code when the guest asked for a reboot and there is no unit to do it.
const REBOOT_WANTED: i32 = 133;

/// nspawn needs the unified control group hierarchy at its usual place, and a group of its own in it. On a machine with
/// the old hierarchies it gets both in a mount namespace of its own; the machine's view stays as it is.
const SCRIPT: &str = r#"set -e
if [ "$(stat -f -c %T /sys/fs/cgroup)" != cgroup2fs ]; then
    umount -l /sys/fs/cgroup
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
fi
mkdir -p "/sys/fs/cgroup/$1"
echo $$ > "/sys/fs/cgroup/$1/cgroup.procs"
shift
exec systemd-nspawn "$@""#;

/// Where and under which names a guest is booted.
pub(super) struct Place {
    pub namespace: String,
    pub machine: String,
    pub cgroup: String,
    pub log: PathBuf,
    pub record: PathBuf,
}

/// A guest to boot.
struct Boot {
    spec: GuestSpec,
    place: Place,
    poweroff_signal: &'static str,
}

/// Boots a guest and waits until its init runs.
pub(super) fn start(spec: &GuestSpec, place: Place) -> Result<Keeper, RuntimeError> {
    let vmid = spec.vmid;
    let poweroff_signal = poweroff_signal(&spec.rootfs).ok_or(RuntimeError::NoInit { vmid })?;
    let log = place.log.clone();
    let failed = |what| RuntimeError::system(what, &log);
    forget(&log).map_err(failed("clearing"))?;
    let ready = ready_socket(&place.machine).map_err(failed("listening for the guest's start"))?;
    let mut keeper = Keeper::start(Boot { spec: spec.clone(), place, poweroff_signal })
        .map_err(|source| RuntimeError::Program { program: "unshare and systemd-nspawn", source })?;
    let deadline = Instant::now() + UP_PATIENCE;
    let mut message = [0_u8; 4096];
    loop {
        match ready.recv(&mut message) {
            Ok(count) if says_ready(message.get(..count).unwrap_or_default()) => return Ok(keeper),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(error) => return Err(failed("listening for the guest's start")(error)),
        }
        if keeper.has_ended() {
            let last_words = last_words(&log).map_err(failed("reading"))?;
            return Err(RuntimeError::EndedEarly { vmid, last_words });
        }
        if Instant::now() >= deadline {
            keeper.end(rustix::process::Signal::KILL, crate::runtime::keeper::Target::Group, UP_PATIENCE);
            return Err(RuntimeError::TooSlow { vmid, what: "come up", seconds: UP_PATIENCE.as_secs() });
        }
    }
}

/// Removes what a killed nspawn leaves behind: its lock file next to the guest's directory, which a storage would
/// take for a stray file, and the folder through which mounts could be passed in.
pub(super) fn remove_traces(rootfs: &Path, machine: &str) -> Result<(), RuntimeError> {
    if let (Some(folder), Some(name)) = (rootfs.parent(), rootfs.file_name()) {
        let lock = folder.join(format!(".#{}.lck", name.to_string_lossy()));
        forget(&lock).map_err(RuntimeError::system("removing", &lock))?;
    }
    let propagate = Path::new("/run/systemd/nspawn/propagate").join(machine);
    match std::fs::remove_dir(&propagate) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(RuntimeError::system("removing", propagate)(error))
        }
        _ => Ok(()),
    }
}

impl Supervised for Boot {
    #[expect(clippy::disallowed_methods, reason = "boots the guest: that is what this runtime is")]
    fn spawn(&mut self) -> io::Result<Child> {
        let log = OpenOptions::new().create(true).append(true).mode(0o600).open(&self.place.log)?;
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "--", "sh", "-c", SCRIPT, "sh", &self.place.cgroup])
            .args(self.arguments())
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            // The guest's network is its own: it may change what it can set of it, as under LXC.
            .env("SYSTEMD_NSPAWN_API_VFS_WRITABLE", "network")
            .env("NOTIFY_SOCKET", format!("@{}", socket_name(&self.place.machine)))
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        for (name, value) in self.spec.env.iter().filter(|(name, _)| goes_by_environment(name)) {
            command.env(name, value);
        }
        recorded(command.spawn()?, &self.place.record)
    }

    fn ended(&mut self, status: ExitStatus) -> Again {
        if status.code() == Some(REBOOT_WANTED) { Again::After(Duration::ZERO) } else { Again::No }
    }

    fn finished(&mut self) {
        // A record that stays is harmless: it names a process that is gone.
        let _ = forget(&self.place.record);
    }
}

impl Boot {
    fn arguments(&self) -> Vec<String> {
        let mut arguments: Vec<String> = [
            "--quiet",
            "--boot",
            "--settings=no",
            "--keep-unit",
            "--register=no",
            "--console=pipe",
            "--resolv-conf=off",
            "--timezone=off",
            "--link-journal=no",
        ]
        .map(str::to_owned)
        .to_vec();
        arguments.push(format!("--directory={}", self.spec.rootfs.display()));
        arguments.push(format!("--machine={}", self.place.machine));
        arguments.push(format!("--hostname={}", self.spec.hostname));
        arguments.push(format!(
            "--network-namespace-path={}",
            namespace::path_of(&self.place.namespace).display()
        ));
        arguments.push(format!("--kill-signal={}", self.poweroff_signal));
        arguments.extend(allowed(self.spec.features).map(str::to_owned));
        for mount in &self.spec.mounts {
            let outside = escaped(&mount.directory.display().to_string());
            arguments.push(format!("--bind={outside}:{}", escaped(&mount.at.to_string())));
        }
        for (name, value) in &self.spec.env {
            if goes_by_environment(name) {
                arguments.push(format!("--setenv={name}"));
            } else {
                arguments.push(format!("--setenv={name}={value}"));
            }
        }
        arguments
    }
}

/// The nspawn options for the guest's features. Without a user namespace, nspawn must allow a container engine to
/// control devices (`bpf`) and its own networks. On a genuine node the namespace gives both.
fn allowed(features: Features) -> impl Iterator<Item = &'static str> {
    let nesting: &[_] =
        if features.nesting { &["--capability=CAP_NET_ADMIN", "--system-call-filter=bpf"] } else { &[] };
    let keyctl: &[_] =
        if features.keyctl { &["--system-call-filter=add_key keyctl request_key"] } else { &[] };
    nesting.iter().chain(keyctl).copied()
}

/// Secrets must not be in the arguments, which every user of the machine can read. But no other name may reach the
/// environment of a program that runs as root, where `LD_PRELOAD` would take effect.
fn goes_by_environment(name: &str) -> bool {
    name.starts_with("HOLDFAST_")
}

/// A colon separates the two paths of `--bind`.
fn escaped(path: &str) -> String {
    path.replace('\\', "\\\\").replace(':', "\\:")
}

/// The inits that nspawn would boot, in its order.
const SYSTEMD: [&str; 2] = ["usr/lib/systemd/systemd", "lib/systemd/systemd"];
const OTHER_INIT: &str = "sbin/init";

/// The signal that makes a guest's init power off: systemd and busybox expect different signals. `None` without an
/// init: nspawn would report the guest as up before it notices that there is no init.
fn poweroff_signal(rootfs: &Path) -> Option<&'static str> {
    let is_there = |path: &str| rootfs.join(path).symlink_metadata().is_ok();
    if SYSTEMD.into_iter().any(is_there) {
        Some("SIGRTMIN+4")
    } else {
        is_there(OTHER_INIT).then_some("SIGUSR2")
    }
}

fn socket_name(machine: &str) -> String {
    format!("pve-sim/{machine}")
}

fn ready_socket(machine: &str) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(socket_name(machine))?)?;
    socket.set_read_timeout(Some(LOOK_AGAIN))?;
    Ok(socket)
}

fn says_ready(message: &[u8]) -> bool {
    message.split(|&byte| byte == b'\n').any(|line| line == b"READY=1")
}

fn last_words(log: &Path) -> io::Result<String> {
    let mut file = std::fs::File::open(log)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LAST_WORDS_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(LAST_WORDS_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}
