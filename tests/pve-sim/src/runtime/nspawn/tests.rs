//! Tests with a booted guest, as root.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Instant;

use tempfile::TempDir;

use super::*;
use crate::archive::{MountDir, Volumes, extract};
use crate::runtime::leftover::ProcessMark;
use crate::runtime::spec::{Features, GuestMount};
use crate::runtime::{Cidr, Link, Net, bridges_of_interfaces};

const SOON: Duration = Duration::from_secs(60);
const ARCHIVE: &str = "lab/archives/vzdump-lxc-155-2026_11_21-04_02_15.tar.zst";

/// What the guest does when it boots: writes down what it was given, and calls the node.
const BOOT_SCRIPT: &str = "#!/bin/sh
/bin/busybox tr '\\0' '\\n' < /proc/1/environ > /var/log/environ
/bin/busybox touch /mnt/touched
while :; do echo tick >> /var/log/ticks; /bin/busybox sleep 0.02 || /bin/busybox sleep 1; done &
echo hello from $(/bin/hostname) | /bin/busybox nc -w 20 10.66.0.1 8006 > /var/log/answer
";

/// Whether the test can run here; in CI not being able to is a failure.
fn possible() -> bool {
    let Err(missing) = Nspawn::is_possible() else { return true };
    assert!(std::env::var_os("HOLDFAST_CI").is_none(), "guests must be booted in CI: {missing}");
    eprintln!("skipped: guests cannot be booted here: {missing}");
    false
}

fn settings(folder: &TempDir) -> NspawnSettings {
    let text = "iface vmbr0 inet static\n\taddress 10.66.0.1/24\n\tbridge-ports none\n";
    NspawnSettings {
        directory: folder.path().to_owned(),
        bridges: bridges_of_interfaces(text).expect("readable"),
    }
}

/// A variable that no guest of another test is given.
fn mark(folder: &TempDir) -> (String, String) {
    ("FOLDER".to_owned(), folder.path().display().to_string())
}

fn guest(folder: &TempDir, vmid: u32) -> GuestSpec {
    let make = |name: String| {
        let path = folder.path().join(name);
        fs::create_dir(&path).expect("made");
        path
    };
    let (rootfs, data) = (make(format!("{vmid}-rootfs")), make(format!("{vmid}:data")));
    let at = crate::archive::GuestPath::parse("/mnt").expect("a path");
    let volumes = Volumes {
        rootfs: rootfs.clone(),
        mounts: vec![MountDir { at: at.clone(), directory: data.clone() }],
    };
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join(ARCHIVE);
    extract(&archive, &volumes, u64::MAX, &|| false).expect("extracted");
    fs::write(rootfs.join("etc/init.d/rcS"), BOOT_SCRIPT).expect("written");
    let net = Net {
        name: "eth0".to_owned(),
        bridge: "vmbr0".to_owned(),
        hwaddr: "BC:24:11:EE:25:8E".to_owned(),
        ip: Some("10.66.0.91/24".parse::<Cidr>().expect("an address")),
        gw: Some("10.66.0.1".parse().expect("an address")),
        link: Link::Up,
    };
    GuestSpec {
        vmid,
        hostname: format!("ct{vmid}"),
        rootfs,
        mounts: vec![GuestMount { at, directory: data }],
        env: vec![
            ("HOLDFAST_BOOTSTRAP".to_owned(), "the-claim".to_owned()),
            ("OTHER".to_owned(), "two words".to_owned()),
            mark(folder),
        ],
        nets: vec![net],
        ostype: "debian".to_owned(),
        features: Features::default(),
    }
}

fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + SOON;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what} did not happen in time");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Takes one call and answers it.
fn answer_one(listener: &TcpListener) -> String {
    listener.set_nonblocking(true).expect("set");
    let (mut call, from) = eventually("the guest's call", || listener.accept().ok());
    call.set_nonblocking(false).expect("set");
    call.set_read_timeout(Some(SOON)).expect("set");
    let mut words = vec![0; 100];
    let count = call.read(&mut words).expect("read");
    call.write_all(b"welcome").expect("written");
    format!("{} from {}", String::from_utf8_lossy(&words[..count]).trim(), from.ip())
}

/// Whether the kernel holds the init that was given this variable still, in whichever control group it is.
fn is_held(variable: &str) -> bool {
    let is_first_of_its_namespace = |process: &Path| {
        let status = fs::read_to_string(process.join("status")).unwrap_or_default();
        let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
        ids.split_whitespace().skip(1).last() == Some("1")
    };
    let was_given = |process: &Path| {
        let environ = fs::read(process.join("environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes())
    };
    let processes = fs::read_dir("/proc").expect("listed").map(|entry| entry.expect("listed").path());
    let mut inits = processes.filter(|path| is_first_of_its_namespace(path) && was_given(path));
    let init = inits.next().expect("an init with that variable");
    let groups = fs::read_to_string(init.join("cgroup")).expect("read");
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/")).expect("a unified group");
    let root = cgroup::unified_root().expect("looked for").expect("a unified hierarchy");
    let events = fs::read_to_string(root.join(group).join("cgroup.events")).expect("read");
    events.lines().any(|line| line == "frozen 1")
}

#[test]
fn a_genuine_guest_boots_calls_the_node_and_goes_down() {
    if !possible() {
        return;
    }
    let folder = TempDir::new().expect("a folder");
    let runtime = Nspawn::open(&settings(&folder)).expect("opened");
    let address = "10.66.0.1:8006".parse().expect("an address");
    let listener = listen_in_namespace(&runtime.namespace_path(), address).expect("listening");
    let spec = guest(&folder, 155);
    runtime.start(&spec).expect("started");
    let RunState::Running { pid: Some(pid) } = runtime.state(155) else { panic!("it should run") };
    assert_eq!(answer_one(&listener), "hello from ct155 from 10.66.0.91");
    let answer = spec.rootfs.join("var/log/answer");
    eventually("the answer", || fs::read_to_string(&answer).ok().filter(|text| text == "welcome"));
    let environ = fs::read_to_string(spec.rootfs.join("var/log/environ")).expect("read");
    assert!(environ.lines().any(|line| line == "HOLDFAST_BOOTSTRAP=the-claim"), "{environ}");
    assert!(environ.lines().any(|line| line == "OTHER=two words"), "{environ}");
    assert!(spec.mounts[0].directory.join("touched").exists(), "the mount point is the volume");
    let arguments = fs::read_to_string(format!("/proc/{pid}/cmdline")).expect("read");
    assert!(arguments.contains("HOLDFAST_BOOTSTRAP") && !arguments.contains("the-claim"));

    let ticks =
        || fs::read_to_string(spec.rootfs.join("var/log/ticks")).map_or(0, |text| text.lines().count());
    eventually("the first tick", || (ticks() > 0).then_some(()));
    runtime.freeze(155).expect("frozen");
    let (name, value) = mark(&folder);
    let marked = format!("{name}={value}");
    assert!(is_held(&marked), "the kernel lets the guest's init work on");
    let held_at = ticks();
    runtime.thaw(155).expect("thawed");
    assert!(!is_held(&marked));
    eventually("the next tick", || (ticks() > held_at).then_some(()));

    let interfaces = runtime.interfaces(155).expect("seen").expect("running");
    let eth0 = interfaces.iter().find(|interface| interface.name == "eth0").expect("eth0");
    assert_eq!(eth0.hwaddr, "bc:24:11:ee:25:8e");
    assert!(eth0.addresses.contains(&("10.66.0.91".parse().expect("an address"), 24)), "{eth0:?}");
    assert_eq!(interfaces[0].name, "lo");

    assert!(matches!(runtime.start(&spec), Err(RuntimeError::AlreadyRunning { vmid: 155 })));
    assert_eq!(runtime.shutdown(155, SOON).expect("asked"), ShutdownOutcome::Down);
    assert_eq!(runtime.state(155), RunState::Stopped);
    assert_eq!(runtime.interfaces(155).expect("seen"), None);
    // Started again at once: every name must be free. One that is held can be ended all the same.
    runtime.start(&spec).expect("started again");
    runtime.freeze(155).expect("frozen");
    runtime.stop(155).expect("stopped");
    assert!(!folder.path().join(".#155-rootfs.lck").exists(), "nothing is left beside the guest's directory");
    let names = runtime.instance.namespace();
    runtime.close().expect("closed");
    assert_eq!(namespace::with_prefix(&names).expect("listed"), Vec::<String>::new());
}

#[test]
fn the_address_of_a_bridge_stays_when_guests_come_and_go() {
    if !possible() {
        return;
    }
    let folder = TempDir::new().expect("a folder");
    let runtime = Nspawn::open(&settings(&folder)).expect("opened");
    let node = runtime.instance.namespace();
    let bridge = || {
        let all = network::interfaces(&node).expect("seen");
        all.into_iter().find(|interface| interface.name == "vmbr0").expect("the bridge").hwaddr
    };
    let before = bridge();
    // Their outer interfaces have random addresses: one below the bridge's own would be taken over.
    let mut spec = guest(&folder, 160);
    for vmid in 160..180 {
        spec.vmid = vmid;
        let inside = runtime.instance.guest_namespace(vmid);
        runtime.network.plug(&inside, &spec).expect("plugged");
        assert_eq!(bridge(), before);
        runtime.network.unplug(&inside, vmid).expect("unplugged");
        assert_eq!(bridge(), before);
    }
    runtime.close().expect("closed");
}

#[test]
fn a_bridge_that_is_not_there_is_named_and_nothing_is_left() {
    if !possible() {
        return;
    }
    let folder = TempDir::new().expect("a folder");
    let runtime = Nspawn::open(&settings(&folder)).expect("opened");
    let mut spec = guest(&folder, 156);
    spec.nets[0].bridge = "vmbr99".to_owned();
    let error = runtime.start(&spec).expect_err("refused");
    assert_eq!(error.to_string(), "bridge 'vmbr99' does not exist");
    let mut spec = guest(&folder, 157);
    fs::remove_dir_all(spec.rootfs.join("sbin")).expect("removed");
    spec.nets[0].ip = None;
    let error = runtime.start(&spec).expect_err("no init");
    assert!(matches!(error, RuntimeError::NoInit { vmid: 157 }), "{error:?}");
    let mut spec = guest(&folder, 159);
    fs::remove_dir_all(&spec.rootfs).expect("removed");
    fs::create_dir_all(spec.rootfs.join("sbin/init")).expect("made");
    spec.nets.clear();
    let error = runtime.start(&spec).expect_err("no operating system");
    assert!(matches!(error, RuntimeError::EndedEarly { vmid: 159, .. }), "{error:?}");
    let own = namespace::with_prefix(&runtime.instance.namespace()).expect("listed");
    assert_eq!(own, [runtime.instance.namespace()]);
    runtime.close().expect("closed");
}

#[test]
fn what_a_killed_simulator_left_over_is_removed_and_a_living_one_is_not() {
    if !possible() {
        return;
    }
    let folder = TempDir::new().expect("a folder");
    let first = Nspawn::open(&settings(&folder)).expect("opened");
    let spec = guest(&folder, 158);
    first.start(&spec).expect("started");
    let error = Nspawn::open(&settings(&folder)).err().expect("refused while the first lives");
    assert!(matches!(error, RuntimeError::InUse { .. }), "{error:?}");

    // As if the first had been killed: its guest runs on, and its record names a process that is gone.
    let record = first.instance.record(158);
    let guest_mark = ProcessMark::read(&record).expect("read").expect("a record");
    let owner = record.with_file_name("owner");
    ProcessMark { pid: 1, start_ticks: u64::MAX }.write(&owner).expect("written");
    let second = Nspawn::open(&settings(&folder)).expect("opened");
    assert!(!guest_mark.is_alive(), "the guest of the killed one was ended");
    let lost = second.reconcile(std::slice::from_ref(&spec)).expect("reconciled");
    assert!(lost.is_empty(), "{lost:?}");
    assert!(matches!(second.state(158), RunState::Running { .. }));
    second.close().expect("closed");
}
