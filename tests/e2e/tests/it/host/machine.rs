//! A Debian machine, booted with `systemd-nspawn`.
//!
//! In: an archive of Debian, an empty folder. Out: what commands print in the machine. The root file system is a plain
//! folder, so that its contents can be compared from outside. Nothing of the machine beneath is shared but the kernel.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use e2e::child::Running;
use e2e::place::{Place, User};
use e2e::wait;

/// A boot takes seconds; this ends a hang.
const BOOT: Duration = Duration::from_secs(120);
/// nspawn's exit code when the system inside requested a restart and there is no unit that does it.
const STARTED_AGAIN: i32 = 133;
const NAME: &str = "pve1";
/// Debian's timers by the time of day: they take apt's lock and write files, in whichever chapter the hour falls.
const BY_TIME_OF_DAY: &[&str] = &["apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer"];

/// nspawn needs the unified control group hierarchy at its usual place, and a group of its own in it. On a machine with
/// the old hierarchies it gets both in a mount namespace of its own. The machine's own view does not change.
const BOOTED: &str = r#"set -e
if [ "$(stat -f -c %T /sys/fs/cgroup)" != cgroup2fs ]; then
    umount -l /sys/fs/cgroup
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
fi
mkdir -p "/sys/fs/cgroup/$1"
echo $$ >"/sys/fs/cgroup/$1/cgroup.procs"
shift
exec systemd-nspawn "$@""#;

/// The machine, on or off.
pub struct Machine {
    root: PathBuf,
    console: PathBuf,
    devices: Vec<String>,
    on: Option<On>,
}

struct On {
    nspawn: Running,
    init: String,
}

impl Machine {
    /// Unpacks an archive, and masks the timers of its Debian.
    pub fn unpack(archive: &Path, folder: &Path) -> Self {
        let root = folder.join("root");
        std::fs::create_dir(&root).unwrap();
        run(command("tar")
            .arg("--extract")
            .arg("--numeric-owner")
            .arg("--directory")
            .arg(&root)
            .arg("--file")
            .arg(archive));
        for timer in BY_TIME_OF_DAY {
            symlink("/dev/null", root.join("etc/systemd/system").join(timer)).unwrap();
        }
        Self { root, console: folder.join("console.log"), devices: Vec::new(), on: None }
    }

    /// A path in there, as seen from outside.
    pub fn path(&self, inside: &str) -> PathBuf {
        self.root.join(inside.trim_start_matches('/'))
    }

    /// From the next boot on this device exists in the machine.
    pub fn attach(&mut self, device: &str) {
        self.devices.push(device.to_owned());
    }

    /// Switches it on and waits until its systemd says that it is up.
    pub fn boot(&mut self) {
        assert!(self.on.is_none(), "it is on already");
        let name = format!("holdfast-host-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let heard = UnixDatagram::bind_addr(&address).unwrap();
        heard.set_nonblocking(true).unwrap();
        let mut words = Place::default().command("unshare", User::Same);
        words.args(["--mount", "--", "sh", "-c", BOOTED, "sh", &name]);
        words.args(["--quiet", "--boot", "--settings=no", "--keep-unit", "--register=no", "--console=pipe"]);
        words.args(["--resolv-conf=off", "--timezone=off", "--link-journal=no", "--notify-ready=yes"]);
        words.args(["--private-network", "--kill-signal=SIGRTMIN+4"]);
        words.arg(format!("--machine={NAME}")).arg(format!("--hostname={NAME}"));
        words.arg(format!("--directory={}", self.root.display()));
        words.args(self.devices.iter().map(|device| format!("--bind={device}")));
        words.env("NOTIFY_SOCKET", format!("@{name}"));
        let mut nspawn = Running::start("systemd-nspawn", words, &self.console).unwrap();
        let (mut init, mut message) = (None, [0_u8; 4096]);
        let init = wait::until("the Debian's boot", BOOT, || {
            if let Some(status) = nspawn.ended()? {
                anyhow::bail!("systemd-nspawn ended with {status}:\n{}", nspawn.log()?);
            }
            let Ok(count) = heard.recv(&mut message) else { return Ok(None) };
            let text = String::from_utf8_lossy(&message[..count]).into_owned();
            let pid = text.lines().find_map(|line| line.strip_prefix("X_NSPAWN_LEADER_PID="));
            init = pid.map(str::to_owned).or(init.take());
            Ok(text.lines().any(|line| line == "READY=1").then(|| init.clone()).flatten())
        });
        self.on = Some(On { nspawn, init: init.unwrap() });
    }

    /// Restarts it, as an administrator would, and waits until it is up.
    pub fn reboot(&mut self) {
        self.tries("systemctl reboot");
        let status = self.on.take().unwrap().nspawn.wait(BOOT).unwrap();
        assert_eq!(status.code(), Some(STARTED_AGAIN), "{}", self.console());
        self.boot();
    }

    /// Ends everything in it at once, as a power cut does. What was written and not synced may be there: the disk is the
    /// host's own.
    pub fn cut_power(&mut self) {
        let mut on = self.on.take().unwrap();
        run(command("kill").args(["-KILL", &on.init]));
        let status = on.nspawn.wait(BOOT).unwrap();
        assert!(!status.success(), "{status}: {}", self.console());
    }

    /// Switches it off in order.
    pub fn off(&mut self) {
        self.tries("systemctl poweroff");
        let status = self.on.take().unwrap().nspawn.wait(BOOT).unwrap();
        assert!(status.success(), "{status}: {}", self.console());
    }

    fn console(&self) -> String {
        std::fs::read_to_string(&self.console).unwrap_or_default()
    }

    /// Runs a line of shell in there, as root.
    pub fn tries(&self, line: &str) -> Output {
        let init = &self.on.as_ref().expect("it is off").init;
        let mut words = command("nsenter");
        words.args(["--target", init, "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--root"]);
        words.args([
            "env",
            "--chdir=/root",
            "--ignore-environment",
            "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        ]);
        words.args([
            "HOME=/root",
            "LC_ALL=C.UTF-8",
            "DEBIAN_FRONTEND=noninteractive",
            "bash",
            "-euo",
            "pipefail",
            "-c",
            line,
        ]);
        words.stdin(Stdio::null()).output().expect("nsenter")
    }

    /// The same, and it must succeed; returns its output.
    pub fn does(&self, line: &str) -> String {
        let output = self.tries(line);
        assert!(output.status.success(), "`{line}` ended with {}\n{}", output.status, both(&output));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// The same, and it must be refused; returns all its output.
    pub fn refuses(&self, line: &str) -> String {
        let output = self.tries(line);
        assert!(!output.status.success(), "`{line}` was done:\n{}", both(&output));
        both(&output)
    }

    /// The JSON output of a program.
    pub fn reports(&self, line: &str) -> serde_json::Value {
        let text = self.does(line);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("`{line}`: {error}: {text}"))
    }

    /// Repeats the command until the answer fits.
    pub fn until(&self, what: &str, bound: Duration, line: &str, fits: impl Fn(&str) -> bool) -> String {
        let mut last = String::new();
        let seen = wait::until(what, bound, || {
            last = both(&self.tries(line)).trim().to_owned();
            Ok(fits(&last).then(|| last.clone()))
        });
        seen.unwrap_or_else(|error| panic!("{error}; the last answer to `{line}`: {last}"))
    }
}

/// The system's init outlives an nspawn that was killed; with it everything in there ends.
impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(on) = self.on.take() {
            let ended = self::command("kill").args(["-KILL", &on.init]).status();
            drop(on);
            assert!(ended.is_ok() || std::thread::panicking(), "kill cannot be run");
        }
        // The empty groups that systemd made in there; nothing else is beneath.
        let find = "for at in $(sed -n 's/^[^ ]* \\([^ ]*\\) cgroup2 .*/\\1/p' /proc/mounts); do \
                    [ ! -d $at/$0 ] || find $at/$0 -depth -type d -exec rmdir {} +; done";
        run(command("sh").args(["-c", find, &format!("holdfast-host-{}", std::process::id())]));
    }
}

fn both(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[expect(clippy::disallowed_methods, reason = "the tools that make and ask the machine")]
pub fn command(program: &str) -> Command {
    Command::new(program)
}

/// Runs a tool of the machine beneath; gives what it printed.
pub fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", both(&output));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
