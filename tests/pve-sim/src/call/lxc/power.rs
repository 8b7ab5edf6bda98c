//! Start, stop, shutdown, reboot.
use std::sync::Arc;
use std::time::Duration;

use crate::call::{Answer, Call, Reply};
use crate::die;
use crate::fail::{Fallible, Refusal};
use crate::guest::change::{Change, Run, low_level, unlocked};
use crate::guest::config::GuestConfig;
use crate::guest::options::{Origin, mounts, numbered};
use crate::guest::spec::spec;
use crate::guest::systemd;
use crate::node::Node;
use crate::runtime::RuntimeError;
use crate::task::worker::{Outcome, spawn};
use crate::task::{Halt, Task};

/// Graceful shutdown without a given time.
const SHUTDOWN_S: u64 = 60;

fn no_skiplock(call: &Call<'_>) -> Fallible<bool> {
    let skip = call.flag("skiplock");
    if skip && !call.who.is_root() {
        return Err(Refusal::param("skiplock", "Only root may use this option."));
    }
    Ok(skip)
}

/// A lock of another kind than `mounted` is in the way.
fn startable(config: &GuestConfig) -> Fallible<()> {
    if config.lock() == Some("mounted") { Ok(()) } else { unlocked(config) }
}

/// `POST …/status/start`
///
/// # Errors
/// When it runs already.
pub fn start(call: &Call<'_>) -> Reply {
    let vmid = call.vmid()?;
    let skiplock = no_skiplock(call)?;
    start_task(call.node, &call.who.id, vmid, skiplock).map(|upid| Answer::Data(upid.into()))
}

/// Starts the task that starts a guest.
///
/// # Errors
/// When it runs already.
pub fn start_task(node: &Arc<Node>, owner: &str, vmid: u32, skiplock: bool) -> Fallible<String> {
    if node.power.is_running(vmid) {
        die!("CT {vmid} already running");
    }
    spawn(node, "vzstart", &vmid.to_string(), owner, move |task| {
        task.node.faults.lock_config(vmid)?;
        {
            let world = task.node.world();
            let config = world.guests.get(vmid)?;
            if config.main.flag("template") {
                return Err(Refusal::die("you can't start a CT if it's a template").into());
            }
            if !skiplock {
                startable(config)?;
            }
        }
        boot_reported(task, vmid)?;
        caution(task, vmid)?;
        task.pace("booted")
    })
}

/// Starts a guest. LXC's message about two interfaces with one name is logged before the error.
fn boot_reported(task: &Task, vmid: u32) -> Outcome {
    let name = twice_named(&task.node, vmid)?;
    let Some(name) = name else { return Ok(boot(&task.node, vmid)?) };
    task.log(format!(
        "__netdev_configure_container_common: File exists - Failed to rename network device to \"{name}\""
    ));
    Err(Refusal::die(format!("startup for container '{vmid}' failed")).into())
}

/// A name that two interfaces of a guest have.
fn twice_named(node: &Node, vmid: u32) -> Fallible<Option<String>> {
    let world = node.world();
    let main = &world.guests.get(vmid)?.main;
    let nets = main.values.iter().filter(|(key, _)| numbered(key, "net").is_some());
    let named = |text: &str| text.split(',').find_map(|part| part.strip_prefix("name=")).map(str::to_owned);
    let mut seen = std::collections::BTreeSet::new();
    Ok(nets.filter_map(|(_, text)| named(text)).find(|name| !seen.insert(name.clone())))
}

/// Applies pending changes, as the real node does when a guest has stopped: a detached volume becomes unused only here. Does nothing for
/// a running guest.
///
/// # Errors
/// When the guest is not there or its configuration cannot be written.
pub fn settle(node: &Node, vmid: u32) -> Fallible<()> {
    let mut world = node.world();
    let mut config = world.guests.get(vmid)?.clone();
    let waits = !config.pending.is_empty() || !config.pending_delete.is_empty();
    if !waits || node.power.is_running(vmid) {
        return Ok(());
    }
    let change = Change { node, store: world.store(), vmid, running: Run::Down };
    for (option, fault) in change.settle(&mut config, None) {
        tracing::warn!(vmid, option, fault, "pending change not applied");
    }
    world.guests.put(vmid, config)
}

/// Applies pending changes and lets the runtime start the guest.
///
/// # Errors
/// The real error text for what is missing.
pub fn boot(node: &Node, vmid: u32) -> Fallible<()> {
    settle(node, vmid)?;
    let spec = {
        let world = node.world();
        let config = world.guests.get(vmid)?;
        if config.main.flag("unprivileged") && has_quotas(node, config) {
            die!("Quotas are not supported by unprivileged containers.");
        }
        low_level(node, &config.main)?;
        spec(&node.table, world.store(), vmid, &config.main)?
    };
    node.power.start(&spec, node.settable.even_s()).map_err(|error| match error {
        RuntimeError::NoBridge { bridge } => Refusal::die(format!("bridge '{bridge}' does not exist")),
        other => {
            tracing::warn!(vmid, error = %chain(&other), "guest did not start");
            Refusal::die(format!("startup for container '{vmid}' failed"))
        }
    })
}

/// Whether a volume is to be mounted with quotas.
fn has_quotas(node: &Node, config: &GuestConfig) -> bool {
    mounts(&node.table, &config.main)
        .iter()
        .any(|mount| mount.origin() == Origin::Volume && mount.props.get("quota").is_some_and(|on| on == "1"))
}

/// The warning of the start about the guest's init.
fn caution(task: &Task, vmid: u32) -> Fallible<()> {
    let said = {
        let world = task.node.world();
        let main = &world.guests.get(vmid)?.main;
        let root = spec(&task.node.table, world.store(), vmid, main)?.rootfs;
        systemd::warning(&task.node.table, main, &root)
    };
    said.into_iter().for_each(|text| task.warn(&text));
    Ok(())
}

/// An error with everything beneath it.
fn chain(error: &dyn std::error::Error) -> String {
    std::iter::successors(Some(error), |error| error.source())
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

fn running(call: &Call<'_>, kind: &str) -> Fallible<u32> {
    let vmid = call.vmid()?;
    if call.node.power.is_running(vmid) {
        Ok(vmid)
    } else {
        Err(Refusal::die(format!("{kind} {vmid} not running")))
    }
}

/// `POST …/status/stop`
///
/// # Errors
/// When it does not run.
pub fn stop(call: &Call<'_>) -> Reply {
    let skiplock = no_skiplock(call)?;
    let vmid = running(call, "CT")?;
    call.spawn("vzstop", &vmid.to_string(), move |task| {
        if !skiplock {
            startable(task.node.world().guests.get(vmid)?)?;
        }
        halt(task, vmid)
    })
}

/// Ends a guest at once.
///
/// # Errors
/// When the runtime fails.
pub fn halt(task: &Task, vmid: u32) -> Outcome {
    task.node
        .power
        .stop(vmid)
        .map_err(|error| Halt::Failed(Refusal::die(format!("container did not stop: {}", chain(&error)))))?;
    settle(&task.node, vmid)?;
    task.pace("stopped")
}

/// Requests an orderly shutdown of a guest. A guest that stays up is ended when `force` is set.
///
/// # Errors
/// When it is still up.
pub fn go_down(task: &Task, vmid: u32, patience: Duration, force: bool) -> Outcome {
    let down = task
        .node
        .power
        .shutdown(vmid, patience)
        .map_err(|error| Halt::Failed(Refusal::die(chain(&error))))?;
    if down {
        settle(&task.node, vmid)?;
        return task.pace("stopped");
    }
    if force { halt(task, vmid) } else { Err(Refusal::die("container did not stop").into()) }
}

/// `POST …/status/shutdown`
///
/// # Errors
/// When it does not run.
pub fn shutdown(call: &Call<'_>) -> Reply {
    let vmid = running(call, "CT")?;
    let patience = patience(call);
    let force = call.flag("forceStop");
    call.spawn("vzshutdown", &vmid.to_string(), move |task| {
        task.node.faults.lock_config(vmid)?;
        unlocked(task.node.world().guests.get(vmid)?)?;
        go_down(task, vmid, patience, force)
    })
}

fn patience(call: &Call<'_>) -> Duration {
    Duration::from_secs(
        call.number("timeout").and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(SHUTDOWN_S),
    )
}

/// `POST …/status/reboot`
///
/// # Errors
/// When it does not run.
pub fn reboot(call: &Call<'_>) -> Reply {
    let vmid = running(call, "VM")?;
    let patience = patience(call);
    call.spawn("vzreboot", &vmid.to_string(), move |task| {
        go_down(task, vmid, patience, true)?;
        boot_reported(task, vmid)?;
        caution(task, vmid)?;
        task.pace("booted")
    })
}

/// `POST …/status/suspend`: the checkpointing program is not there, as on the recorded node.
///
/// # Errors
/// When it does not run.
pub fn suspend(call: &Call<'_>) -> Reply {
    let vmid = running(call, "CT")?;
    call.spawn("vzsuspend", &vmid.to_string(), move |task| {
        unlocked(task.node.world().guests.get(vmid)?)?;
        task.log(format!("lxc-checkpoint: {vmid}: ../src/lxc/criu.c: criu_version_ok: 767 No such file or directory - execing criu failed, is it installed?"));
        task.log(format!("lxc-checkpoint: {vmid}: ../src/lxc/tools/lxc_checkpoint.c: checkpoint: 182 Checkpointing {vmid} failed"));
        Err(Refusal::die(format!("command 'lxc-checkpoint -n {vmid} -s -D /var/lib/vz/dump' failed: exit code 1")).into())
    })
}

/// `POST …/status/resume`: likewise.
///
/// # Errors
/// When it runs already.
pub fn resume(call: &Call<'_>) -> Reply {
    let vmid = call.vmid()?;
    if call.node.power.is_running(vmid) {
        die!("CT {vmid} already running");
    }
    call.spawn("vzresume", &vmid.to_string(), move |_| {
        Err(Refusal::die(format!(
            "command 'lxc-checkpoint -n {vmid} -r --foreground -D /var/lib/vz/dump' failed: exit code 1"
        ))
        .into())
    })
}
