//! Tests of real disks through the real helper.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use agentd::execute::offsite::Asker;
use agentd::model::storage::StorageView;
use agentd::port::clock::RealClock;
use agentd::port::helper::Helper;
use agentd::port::mounts::Mounts;
use agentd::port::pbs::Direct;
use agentd::port::store::job_intake::Outcome;
use agentd::port::target_probe::TargetProbe;
use agentd::task::stop;
use agentd::task::storage::StorageTask;
use holdfast_protocol::desired::Desired;
use holdfast_protocol::job::{JobState, Verb};
use holdfast_protocol::storage::report::{TargetReport, TargetStatus};
use serde_json::json;
use tokio::sync::watch;

use super::drift::{Agent, start};
use super::jobs::{ended, lay_down, leave, signed};
use super::world::World;

const INSIDE: &str = "HOLDFAST_DISKS_INSIDE";
const HELPER: &str = "/run/program/holdfast-helper";
const SOCKET: &str = "/run/holdfast-helper.sock";
const AT: &str = "/mnt/holdfast/usb1";
/// The devices as the agent sees them; a device that is not listed there was pulled out.
const BLOCKS: &str = "/run/blocks";
const UUID: &str = "0b5f1f3c-9d0e-4a6b-8f51-1c2d3e4f5a6b";

#[expect(clippy::disallowed_methods, reason = "the helper itself, and the tools that make its host")]
fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    Command::new(program)
}

fn run(program: &str, arguments: &[&str]) -> String {
    let output = command(program).args(arguments).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Runs the test a second time, as PID 1 of namespaces in which `/etc`, `/mnt` and `/run` are empty.
fn on_a_host(test: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        prepare();
        return body();
    }
    if !rustix::process::geteuid().is_root() {
        eprintln!("left out: {test} needs root, for mounts of its own");
        return;
    }
    let mut again = command("timeout");
    again.args(["--kill-after=5", "240", "unshare", "--mount", "--pid", "--fork", "--kill-child"]);
    again.args(["--propagation", "private"]).arg(std::env::current_exe().unwrap());
    again.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(INSIDE, "1").stdin(Stdio::null());
    let output = again.output().unwrap();
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    print!("{said}");
    assert!(output.status.success(), "{test} failed on its own host; it needs loop devices and mkfs.ext4");
    assert!(said.contains("1 passed"), "{test} is not the name of the test that calls it");
}

fn prepare() {
    run("mount", &["-t", "proc", "proc", "/proc"]);
    for folder in ["/etc", "/mnt", "/run"] {
        run("mount", &["-t", "tmpfs", "-o", "mode=755", "tmpfs", folder]);
    }
    for folder in ["/etc/holdfast", "/mnt/holdfast", "/run/program", "/run/systemd/journal", BLOCKS] {
        run("install", &["-d", "-m", "755", folder]);
    }
    // The helper does nothing that it cannot write down.
    let journal = UnixDatagram::bind("/run/systemd/journal/socket").unwrap();
    std::thread::spawn(move || while journal.recv(&mut [0; 8192]).is_ok() {});
    let helper = Path::new(env!("CARGO_BIN_EXE_agentd")).with_file_name("holdfast-helper");
    assert!(helper.exists(), "the helper is not built: `cargo build -p holdfast-helper`");
    run("install", &["-m", "755", helper.to_str().unwrap(), HELPER]);
    serve();
}

/// What systemd does for each connection: standard input and output are the connection itself, and nothing else is open.
fn serve() {
    let listener = UnixListener::bind(SOCKET).unwrap();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let connection = connection.unwrap();
            let output = OwnedFd::from(connection.try_clone().unwrap());
            let mut helper = command("/bin/bash");
            helper.args(["-c", "for fd in /proc/$$/fd/*; do fd=${fd##*/}; [ $fd -gt 2 ] && eval \"exec $fd>&-\"; done; exec \"$0\"", HELPER]);
            let mut child =
                helper.env_clear().stdin(OwnedFd::from(connection)).stdout(output).spawn().unwrap();
            child.wait().unwrap();
        }
    });
}

/// A loop device over a file; it is removed with its last user.
struct Disk {
    name: String,
    _held: File,
}

impl Disk {
    fn file(name: &str, uuid: &str) -> PathBuf {
        let file = PathBuf::from("/run").join(format!("{name}.img"));
        run("truncate", &["--size", "64M", file.to_str().unwrap()]);
        run("mkfs.ext4", &["-q", "-F", "-U", uuid, file.to_str().unwrap()]);
        file
    }

    fn plug_in(file: &Path) -> Self {
        let device = run("losetup", &["--find", "--show", file.to_str().unwrap()]);
        let held = File::open(&device).unwrap();
        run("losetup", &["--detach", &device]);
        let name = Path::new(&device).file_name().unwrap().to_str().unwrap().to_owned();
        std::fs::write(Path::new(BLOCKS).join(&name), "").unwrap();
        Self { name, _held: held }
    }

    /// Like a USB disk that is pulled out: its entry is removed at once, its mount stays.
    fn pull_out(self) {
        std::fs::remove_file(Path::new(BLOCKS).join(&self.name)).unwrap();
    }
}

/// Names the intended disk: by the UUID and, as a serial number, by the file behind it.
fn policy(file: &Path) {
    let text = format!(
        "caller_uid = 990\ntransports = [\"loop-for-tests-only\"]\n[[target]]\nname = \"usb1\"\nuuid = \"{UUID}\"\n\
         filesystem = \"ext4\"\nserial = \"{}\"\n",
        file.display()
    );
    std::fs::write("/etc/holdfast/helper.toml", text).unwrap();
}

fn mounted() -> usize {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    table.lines().filter(|line| line.split(' ').nth(4) == Some(AT)).count()
}

struct Storage {
    view: watch::Receiver<Arc<StorageView>>,
}

impl Storage {
    async fn until(&mut self, what: &str, is: impl Fn(&TargetReport) -> bool) -> (TargetReport, Duration) {
        let begun = Instant::now();
        let found = |view: &Arc<StorageView>| view.targets.iter().any(&is);
        let waited = tokio::time::timeout(Duration::from_secs(40), self.view.wait_for(found)).await;
        if let Ok(Ok(view)) = waited.map(|view| view.map(|view| Arc::clone(&view))) {
            return (view.targets.iter().find(|one| is(one)).unwrap().clone(), begun.elapsed());
        }
        panic!("never {what}: {:#?}", self.view.borrow())
    }

    async fn stands(&mut self, status: TargetStatus) -> (TargetReport, Duration) {
        self.until(status.as_str(), |one| one.status == status).await
    }
}

#[expect(clippy::disallowed_methods, reason = "the loop under test runs beside the test, which ends it")]
fn look_after(agent: &Agent) -> (Storage, stop::Stopper) {
    let (sender, view) = watch::channel(Arc::new(StorageView::default()));
    let (stopper, stop) = stop::pair();
    let task = StorageTask {
        store: agent.ports.store.clone(),
        helper: Helper::at_socket(SOCKET.into()),
        mounts: Arc::new(Mounts::at("/proc/self/mountinfo".into(), BLOCKS.into())),
        view: sender,
        pve: Arc::clone(&agent.ports.pve),
        keeper: None,
        asker: Asker { key: Arc::new(holdfast_seal::HostKey::generate()), dial: Arc::new(Direct) },
        pruners: watch::channel(Arc::default()).0,
        probe: TargetProbe::real(),
        host: watch::channel(Arc::default()).1,
        clock: Arc::new(RealClock::start()),
    };
    tokio::spawn(task.run(stop));
    (Storage { view }, stopper)
}

async fn goal(agent: &Agent, generation: u64, state: &str) {
    let document = json!({ "schema": "holdfast.desired/v1", "generation": generation, "poll_interval_s": 10,
        "guests": [], "storage": [{ "name": "usb1", "backend": { "usb": { "uuid": UUID } }, "class": "slow",
        "role": "local-backup", "state": state, "label": "the blue one", "default": true, "schedulable": true }] });
    let desired = Desired::parse(document.to_string().as_bytes()).unwrap();
    agent.ports.store.offer_desired(desired, agent.ports.clock.now()).await.unwrap();
}

async fn sign_what_waits(agent: &Agent, storage: &mut Storage, verb: Verb) {
    let is = |view: &Arc<StorageView>| view.waiting.iter().any(|one| one.payload.contains(verb.as_str()));
    let found = tokio::time::timeout(Duration::from_secs(20), storage.view.wait_for(is)).await;
    let waiting = found.unwrap().unwrap().waiting.first().unwrap().clone();
    let mail = signed(agent, &waiting).await;
    assert!(matches!(leave(agent, &mail).await, Outcome::Taken));
    assert_eq!(ended(agent, mail.id).await.state, JobState::Done);
}

#[test]
fn a_disk_is_attached_by_a_signature_dropped_reported_and_comes_back_by_itself() {
    on_a_host(
        "engine::disks::a_disk_is_attached_by_a_signature_dropped_reported_and_comes_back_by_itself",
        || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
            runtime.unwrap().block_on(story());
        },
    );
}

async fn story() {
    let world = World::start().await;
    let mut agent = start(&world).await;
    lay_down(&agent).await;
    agent.until("the host is seen", |view| view.seen_at.is_some()).await;
    let file = Disk::file("blue", UUID);
    policy(&file);
    let disk = Disk::plug_in(&file);
    let (mut storage, _stopper) = look_after(&agent);

    // The document alone mounts nothing.
    goal(&agent, 1, "attached").await;
    storage.stands(TargetStatus::Held).await;
    assert_eq!(mounted(), 0);
    sign_what_waits(&agent, &mut storage, Verb::AttachStorage).await;
    // Its top is root's, and root has made no folder for the agent yet.
    let (unmarked, _) = storage.stands(TargetStatus::Unmarked).await;
    assert!(
        unmarked.reason.contains("install -d -o 0 -m 755 /mnt/holdfast/usb1/.holdfast"),
        "{}",
        unmarked.reason
    );
    std::fs::create_dir(Path::new(AT).join(".holdfast")).unwrap();
    let (whole, _) = storage.stands(TargetStatus::Mounted).await;
    println!("measured: {:?} durable writes of 4 KiB a second", whole.iops);
    // Root has made no entry for it in Proxmox; the line that makes it is reported.
    let unnamed =
        |one: &TargetReport| one.entry.iter().any(|what| what.contains("pvesm add dir usb1 --path"));
    storage.until("held to Proxmox", unnamed).await;
    assert!(std::fs::read_to_string(Path::new(AT).join(".holdfast/target.json")).unwrap().contains("usb1"));

    // Pulled out: noticed from the device's entry, and the dead mount is removed so that no process writes to it.
    disk.pull_out();
    let (dropped, took) = storage.stands(TargetStatus::Dropped).await;
    println!("drop to report, device pulled out: {} ms", took.as_millis());
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert!(dropped.reason.contains("went away"), "{}", dropped.reason);
    let gone =
        |one: &TargetReport| one.status == TargetStatus::Dropped && one.reason.contains("E_DEVICE_ABSENT");
    storage.until("told by the helper", gone).await;
    assert_eq!((mounted(), std::fs::read_dir(AT).unwrap().count()), (0, 0), "nothing lies on the root disk");
    let problem = storage.view.borrow().problems.first().unwrap().to_string();
    assert!(problem.contains("usb1 is dropped"), "{problem}");

    // Another disk that wears its UUID is not it.
    let other = Disk::file("twin", UUID);
    let counterpart = Disk::plug_in(&other);
    let twins = |one: &TargetReport| one.status == TargetStatus::Wrong && one.reason.contains("E_DEVICE_");
    let (refused, _) = storage.until("refused for another one's UUID", twins).await;
    println!("a twin of the UUID: {}", refused.reason);
    assert_eq!(mounted(), 0);
    counterpart.pull_out();
    // The same disk comes back under another device.
    let back = Disk::plug_in(&file);
    let (again, took) = storage.stands(TargetStatus::Mounted).await;
    println!("return to mounted: {} ms", took.as_millis());
    assert_eq!(again.device.as_deref(), Some(format!("/dev/{}", back.name).as_str()));
    assert_eq!(again.iops, whole.iops, "measured once");

    // Unmounted behind the agent's back: the kernel's table wakes it, and it is mounted again, perhaps before the
    // report was read; so the test reads the audit.
    let dropped = |lines: &[String]| lines.iter().filter(|line| line.starts_with("storage_dropped")).count();
    let before = dropped(&audit(&agent).await);
    let begun = Instant::now();
    run("umount", &[AT]);
    while dropped(&audit(&agent).await) == before {
        assert!(begun.elapsed() < Duration::from_secs(20), "never told");
        tokio::task::yield_now().await;
    }
    println!("drop to record, unmounted by hand: {} ms", begun.elapsed().as_millis());
    assert!(begun.elapsed() < Duration::from_secs(2));
    storage.stands(TargetStatus::Mounted).await;

    // Emptied meanwhile: the same drive and UUID, but not the disk that was attached.
    back.pull_out();
    storage.until("gone again", gone).await;
    Disk::file("blue", UUID);
    let emptied = Disk::plug_in(&file);
    let lost =
        |one: &TargetReport| one.status == TargetStatus::Wrong && one.reason.contains("lost its marker");
    storage.until("told as emptied", lost).await;
    let unmounted = tokio::time::timeout(Duration::from_secs(20), async {
        while mounted() > 0 {
            tokio::task::yield_now().await;
        }
    });
    assert!(unmounted.await.is_ok(), "an emptied disk is unmounted again");
    emptied.pull_out();

    // Released by a signature: not mounted any more, whatever is plugged in.
    goal(&agent, 2, "decommissioned").await;
    sign_what_waits(&agent, &mut storage, Verb::DetachStorage).await;
    storage.stands(TargetStatus::Detached).await;
    let _left = Disk::plug_in(&file);
    assert_eq!(mounted(), 0);
    for line in audit(&agent).await {
        println!("{line}");
    }
    agent.ports.store.verify_audit().await.unwrap();
    agent.stop().await;
}

async fn audit(agent: &Agent) -> Vec<String> {
    let lines = agent.ports.store.audit(1000).await.unwrap();
    let about = lines.into_iter().filter(|line| line.action.starts_with("storage_"));
    about.map(|line| format!("{} {}", line.action, line.detail)).collect()
}
