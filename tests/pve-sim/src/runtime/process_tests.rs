//! With shell scripts in the controller's place.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::Instant;

use tempfile::TempDir;

use super::*;
use crate::runtime::leftover::ProcessMark;
use crate::runtime::spec::tests::guest;

const SOON: Duration = Duration::from_secs(20);

/// A guest whose controller is the given script.
fn guest_with(folder: &TempDir, vmid: u32, script: &str) -> GuestSpec {
    let rootfs = folder.path().join(format!("{vmid}-rootfs"));
    fs::create_dir_all(rootfs.join("usr/bin")).expect("made");
    let program = rootfs.join(CONTROLLER);
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).expect("written");
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).expect("set");
    guest(vmid, &rootfs)
}

/// Checks repeatedly until something is there, for a bounded time.
fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + SOON;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what} did not happen in time");
        std::thread::yield_now();
    }
}

fn log_contains(runtime: &Process, vmid: u32, wanted: &str) {
    eventually(wanted, || fs::read_to_string(runtime.log_path(vmid)).ok().filter(|log| log.contains(wanted)));
}

#[test]
fn a_controller_gets_its_arguments_and_only_the_containers_environment() {
    let folder = TempDir::new().expect("a folder");
    let runtime = Process::new(folder.path());
    let spec = guest_with(
        &folder,
        100,
        "echo \"$@\"; echo home=$HOME claim=$HOLDFAST_BOOTSTRAP ready; exec /bin/sleep 600",
    );
    runtime.start(&spec).expect("started");
    log_contains(&runtime, 100, "home= claim=claim ready");
    let arguments = format!("run --root {} --source-address 127.66.0.91", spec.rootfs.display());
    log_contains(&runtime, 100, &arguments);
    let environ = spec.rootfs.join(ENVIRON);
    assert_eq!(fs::read(&environ).expect("read"), b"HOLDFAST_BOOTSTRAP=claim\0");
    assert_eq!(fs::metadata(&environ).expect("there").mode() & 0o777, 0o400);
    let RunState::Running { pid: Some(pid) } = runtime.state(100) else { panic!("it should run") };
    runtime.stop(100).expect("stopped");
    assert_eq!(runtime.state(100), RunState::Stopped);
    assert!(ProcessMark::of(pid).is_err(), "the controller is gone and reaped");
    assert!(!environ.exists(), "the claim is gone");
    assert!(!folder.path().join("100.pid").exists(), "the record is gone");
}

#[test]
fn a_controllers_own_children_end_with_it() {
    let folder = TempDir::new().expect("a folder");
    let runtime = Process::new(folder.path());
    let spec = guest_with(&folder, 100, "/bin/sleep 600 & echo child=$!=; wait");
    runtime.start(&spec).expect("started");
    log_contains(&runtime, 100, "=\n");
    let log = fs::read_to_string(runtime.log_path(100)).expect("read");
    let child: u32 = log.split('=').nth(1).and_then(|pid| pid.parse().ok()).expect("a number");
    let mark = ProcessMark::of(child).expect("runs");
    runtime.stop(100).expect("stopped");
    eventually("the end of the controller's child", || (!mark.is_alive()).then_some(()));
}

#[test]
fn a_controller_that_ends_is_started_again_and_the_guest_runs_on() {
    let folder = TempDir::new().expect("a folder");
    let runtime = Process::new(folder.path());
    let spec = guest_with(&folder, 100, "echo once; exit 3");
    runtime.start(&spec).expect("started");
    log_contains(&runtime, 100, "once\nonce\n");
    assert!(matches!(runtime.state(100), RunState::Running { .. }));
    runtime.close().expect("closed");
    assert_eq!(runtime.state(100), RunState::Stopped);
}

#[test]
fn a_shutdown_is_polite_and_reports_one_who_does_not_listen() {
    let folder = TempDir::new().expect("a folder");
    let runtime = Process::new(folder.path());
    let polite = "trap 'echo bye; exit 0' TERM; echo ready; while :; do /bin/sleep 600 & wait $!; done";
    runtime.start(&guest_with(&folder, 100, polite)).expect("started");
    runtime
        .start(&guest_with(&folder, 101, "trap '' TERM; echo ready; while :; do /bin/sleep 600; done"))
        .expect("started");
    log_contains(&runtime, 100, "ready");
    log_contains(&runtime, 101, "ready");
    assert_eq!(runtime.shutdown(100, SOON).expect("asked"), ShutdownOutcome::Down);
    log_contains(&runtime, 100, "bye");
    let brief = Duration::from_millis(200);
    assert_eq!(runtime.shutdown(101, brief).expect("asked"), ShutdownOutcome::StillRunning);
    assert!(matches!(runtime.state(101), RunState::Running { .. }));
    runtime.stop(101).expect("stopped");
    assert_eq!(runtime.state(101), RunState::Stopped);
}

#[test]
fn each_boot_has_an_id_of_its_own() {
    let folder = TempDir::new().expect("a folder");
    let runtime = Process::new(folder.path());
    let boot = || {
        runtime.start(&guest(100, folder.path())).expect("started");
        runtime.stop(100).expect("stopped");
        fs::read_to_string(folder.path().join(BOOT_ID)).expect("read")
    };
    let (first, second) = (boot(), boot());
    assert_eq!(first.trim().len(), 36, "{first}");
    assert_ne!(first, second);
}

#[test]
fn a_guest_without_a_controller_runs_all_the_same() {
    let folder = TempDir::new().expect("a folder");
    let runtime = Process::new(folder.path());
    runtime.start(&guest(100, folder.path())).expect("started");
    assert_eq!(runtime.state(100), RunState::Running { pid: None });
    let interfaces = runtime.interfaces(100).expect("seen").expect("running");
    assert_eq!(interfaces[1].hwaddr, "bc:24:11:00:00:01");
    runtime.stop(100).expect("stopped");
}

#[test]
fn a_controller_that_is_a_link_to_the_host_is_not_run() {
    let folder = TempDir::new().expect("a folder");
    let runtime = Process::new(folder.path());
    fs::create_dir_all(folder.path().join("usr/bin")).expect("made");
    std::os::unix::fs::symlink("/bin/sh", folder.path().join(CONTROLLER)).expect("linked");
    runtime.start(&guest(100, folder.path())).expect("started");
    assert_eq!(runtime.state(100), RunState::Running { pid: None });
}

#[test]
fn an_address_of_the_real_network_is_refused() {
    let folder = TempDir::new().expect("a folder");
    let runtime = Process::new(folder.path());
    let mut spec = guest_with(&folder, 100, "exit 0");
    spec.nets[0].ip = Some("10.66.0.91/24".parse().expect("an address"));
    let error = runtime.start(&spec).expect_err("refused");
    assert!(matches!(error, RuntimeError::NotLoopback { vmid: 100, .. }), "{error:?}");
    assert_eq!(runtime.state(100), RunState::Stopped);
    assert!(!spec.rootfs.join(ENVIRON).exists(), "a refusal changes nothing");
}

#[test]
fn what_a_killed_simulator_left_over_is_ended_and_the_guest_started_again() {
    let folder = TempDir::new().expect("a folder");
    let spec = guest_with(&folder, 100, "echo ready; exec /bin/sleep 600");
    // As a killed simulator leaves it: a process of its own group, and a record of it.
    #[expect(clippy::disallowed_methods, reason = "stands for a controller that outlived its simulator")]
    let mut orphan = Command::new("sleep").arg("600").process_group(0).spawn().expect("spawned");
    let record = folder.path().join("100.pid");
    let old = ProcessMark::of(orphan.id()).expect("runs");
    old.write(&record).expect("written");
    let next = Process::new(folder.path());
    let lost = next.reconcile(std::slice::from_ref(&spec)).expect("reconciled");
    assert!(lost.is_empty(), "{lost:?}");
    assert!(!old.is_alive());
    let new = ProcessMark::read(&record).expect("read").expect("a record");
    assert!(new.is_alive() && new != old);
    next.close().expect("closed");
    orphan.wait().expect("reaped");
}

#[test]
fn a_guest_that_cannot_be_started_again_is_named_and_the_others_run() {
    let folder = TempDir::new().expect("a folder");
    let runtime = Process::new(folder.path());
    let gone = guest(100, &folder.path().join("gone"));
    let lost = runtime.reconcile(&[gone, guest(101, folder.path())]).expect("reconciled");
    assert_eq!(lost.iter().map(|guest| guest.vmid).collect::<Vec<_>>(), [100]);
    assert!(matches!(runtime.state(101), RunState::Running { .. }));
    runtime.close().expect("closed");
}
