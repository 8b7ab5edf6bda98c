//! Steps of a restore test.
//!
//! The archive contains what made the guest the guest. The restore call itself overwrites all of it, with every network
//! unplugged except the one that ends at the agent's own listener. So at no moment can the scratch guest be taken for
//! its guest or reach another host. That call also writes a line that names this very operation, so the scratch guest
//! is known from its first moment to its last. Out: one [`Finding::Tested`], written before anything is destroyed.
//! Deliberately absent: anything done to the guest itself, and what a failure says about the backup
//! (`operation::restore_test`).

use std::collections::BTreeMap;
use std::time::Duration;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::json::chain;
use holdfast_protocol::local::restore_test::TestVerdict;
use holdfast_protocol::secret::Secret;

use super::archive_check::{archive, made};
use super::context::{Checked, Context, PENDING, Started, StepOutput};
use super::identity::{own_copy, vmid};
use super::step_read_only_entry::{source, without_key};
use super::step_restore_copy::left_out;
use super::step_room::{Restored, lacks};
use super::trouble::StepError;
use super::{step_power, undo_proof, volume_check};
use crate::gate::archive::{Lines, Nets, judge_backup};
use crate::gate::layout::{Layout, layout};
use crate::gate::{Approved, Effect, Provenance, Verdict, gate};
use crate::model::disks::Content;
use crate::model::limits;
use crate::model::mark;
use crate::model::net::ResolverText;
use crate::model::policy::TestBridge;
use crate::model::records::Place;
use crate::operation::log::Finding;
use crate::operation::step::Step;
use crate::operation::{Operation, RestoreTest};
use crate::port::bridge::BridgeError;
use crate::port::pve::change::Description;
use crate::port::pve::config::Switch;
use crate::port::pve::restore::BootstrapEnv;
use crate::port::pve::restore_copy::Caps;
use crate::port::pve::volume::Backing;
use crate::port::pve::{AclPath, GuestConfig, LiftProof, PveError, RestoreCopyRequest, Role, VmidUse};

/// How often it is looked whether the guest still runs.
const LOOK: Duration = Duration::from_secs(5);

pub(super) fn spec<'a>(context: &'a Context<'_>) -> Result<&'a RestoreTest, StepError> {
    match &context.progress.operation {
        Operation::RestoreTest(test) => Ok(test),
        other => Err(StepError::fault(format!("a {} tries no backup", other.kind().as_str()))),
    }
}

/// Is it that guest's own backup, and can a scratch guest be made of it?
async fn judge(context: &Context<'_>) -> Result<Layout, StepError> {
    let test = spec(context)?;
    let own = archive(&test.backup.archive)?;
    let text = match context.ports.pve.archive_config(Role::Allocate, &own).await {
        Ok(text) => text,
        Err(error) => return Err(closed(context, error).await?),
    };
    let left_out = left_out(context, test.guest, test.backup.archive.as_str()).await?;
    Lines::read(text.expose())
        .and_then(|lines| {
            judge_backup(&lines, test.guest, Nets::Rewritten)?;
            Ok(layout(&lines)?.without(&left_out))
        })
        .map_err(|refused| StepError::give_up(ErrorCode::ArchiveUnusable, refused.to_string()))
}

/// A read that was refused. A backup of a guest that was lost and came back is stored under the guest's former number.
/// That number is in no pool any more, and Proxmox checks a right on it before it shows the content (`docs/adr/0034`).
/// No grant fixes that, so the sentence that names a grant would mislead.
async fn closed(context: &Context<'_>, error: PveError) -> Result<StepError, StepError> {
    let (PveError::Permission { path: Some(path), .. }, test) = (&error, spec(context)?) else {
        return Ok(error.into());
    };
    let now = match context.ports.store.guest(test.guest).await?.map(|record| record.place) {
        Some(Place::Made { vmid, .. }) => AclPath::guest(vmid),
        _ => return Ok(error.into()),
    };
    let former = match path.strip_prefix("/vms/") {
        Some(number) if path != now.as_str() => number,
        _ => return Ok(error.into()),
    };
    let text = format!(
        "{} was taken while {} had the number {former}, which is in no pool any more, so Proxmox does not show what is in \
         it: the next backup is tried, and nothing is to be done",
        test.backup.archive, test.name
    );
    Ok(StepError::give_up(ErrorCode::Forbidden, text))
}

/// The archive, and whether the host has head-room: a test never takes what a guest may need.
pub(super) async fn judged(context: &Context<'_>) -> Result<Started, StepError> {
    let layout = judge(context).await?;
    let (pve, test) = (&context.ports.pve, spec(context)?);
    let place = &test.place;
    let by = source(context, test).await?;
    let restored = Restored {
        guest: test.guest,
        archive: &test.backup.archive,
        disks: layout.bytes(),
        content: Content::Held,
        most_percent: limits::SNAPSHOT_FILL_MAX_PERCENT,
    };
    if let Some(why) = lacks(context, &place.storage, restored).await? {
        let text = format!("its disks would lie on {}, which {why}: the backup is not tried", place.storage);
        return Err(StepError::give_up(ErrorCode::StorageFull, text));
    }
    alone(context)?;
    let node = pve.node_status().await?;
    let free = node.memory_total.saturating_sub(node.memory_used);
    let needed = (u64::from(place.memory.get()) << 20) + node.memory_total / limits::TEST_HEAD_ROOM_SHARE;
    if free < needed {
        let text = format!(
            "the host has {} MiB of memory free, and a test wants {} so that no guest goes short: the backup is not tried",
            free >> 20,
            needed >> 20
        );
        return Err(StepError::give_up(ErrorCode::Unavailable, text));
    }
    let mut note = format!("{}", test.backup.archive);
    if by.as_str() != test.backup.archive.as_str() {
        note.push_str(&format!("; read through {}", by.storage()));
    }
    if !layout.left_out.is_empty() {
        note.push_str(&format!("; not in any backup, and not tried: {}", layout.left_out.join(", ")));
    }
    Ok(Started::Learnt(StepOutput::note(note)))
}

/// Whether nothing else is plugged into the bridge of the scratch guest.
fn alone(context: &Context<'_>) -> Result<(), StepError> {
    let Some(speech) = &spec(context)?.place.speech else { return Ok(()) };
    let unknown = |error: BridgeError| StepError::give_up(ErrorCode::Unavailable, chain(&error));
    let others = context.ports.bridges.ports(&speech.bridge).map_err(unknown)?;
    if others.is_empty() {
        return Ok(());
    }
    let text = format!(
        "{} is plugged into {}, where a scratch guest is alone: unplug it; the backup is not tried",
        others.join(", "),
        speech.bridge
    );
    Err(StepError::give_up(ErrorCode::Forbidden, text))
}

/// Judged once more, right before: the archive may have been exchanged meanwhile.
pub(super) async fn restore(context: &Context<'_>) -> Result<Started, StepError> {
    permitted(&Effect::TryBackup, Provenance::Schedule)?;
    let (layout, test) = (judge(context).await?, spec(context)?);
    let fault = |text: String| StepError::fault(text);
    let source = source(context, test).await?;
    let text = mark::test_description(test.guest, context.progress.id, test.backup.archive.as_str());
    let request = RestoreCopyRequest {
        vmid: vmid(context)?,
        archive: source,
        storage: test.place.storage.clone(),
        elsewhere: BTreeMap::new(),
        pool: test.place.pool.clone(),
        nets: layout.nets,
        bridge: test.place.net_bridge().clone(),
        plugged: test.place.speech.as_ref().map(|speech| speech.guest),
        env: BootstrapEnv::new(Secret::new(PENDING.to_owned())).map_err(|error| fault(error.to_string()))?,
        hostname: test.hostname().ok_or_else(|| fault(format!("{} has no name for a test", test.name)))?,
        description: Description::try_from(text).map_err(|error| fault(error.to_string()))?,
        rootfs: layout.rootfs,
        mounts: layout.mounts.into_iter().map(|(slot, mount)| (slot, (mount.path, mount.size))).collect(),
        caps: Some(Caps { memory: test.place.memory, swap: None, cores: Some(test.place.cores) }),
        resolver: ResolverText::default(),
    };
    match context.ports.pve.restore_copy(&request).await {
        Ok(task) => Ok(Started::Task(task)),
        Err(error) => match without_key(test, &error.to_string()) {
            Some(why) => Err(StepError::give_up(ErrorCode::Unavailable, format!("{}; {why}", chain(&error)))),
            None => Err(error.into()),
        },
    }
}

/// Whether it has any way out. Checked in what Proxmox made, not in what was requested.
pub(super) async fn isolated(context: &Context<'_>) -> Result<Started, StepError> {
    let config = own_copy(context).await?;
    let place = &spec(context)?.place;
    // What it became beyond the restore call is the archive's doing.
    made(&config, place.net_bridge()).map_err(|mut trouble| {
        trouble.problem.code = ErrorCode::ArchiveUnusable;
        trouble
    })?;
    let wrong = ways_out(&config, place.speech.as_ref());
    if wrong.is_empty() {
        alone(context)?;
        return Ok(Started::Learnt(StepOutput::note(match &place.speech {
            Some(speech) => format!("{} is its only way, and ends at {}", speech.bridge, speech.listener),
            None => "every network is unplugged".to_owned(),
        })));
    }
    let text = format!("it is not started, since it would not be alone: {}", wrong.join("; "));
    Err(StepError::give_up(ErrorCode::Forbidden, text))
}

fn ways_out(config: &GuestConfig, speech: Option<&TestBridge>) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut hold = |right: bool, what: String| {
        if !right {
            wrong.push(what);
        }
    };
    hold(config.unprivileged == Switch::On, "it is privileged".to_owned());
    hold(config.onboot == Switch::Off, "it would start with the node".to_owned());
    hold(config.raw_lxc.is_empty(), "it has raw lxc lines".to_owned());
    // It was checked before that all are on the bridge of tests; without a gateway they lead no further.
    let mut plugged = Vec::new();
    for (number, net) in &config.nets {
        let parts: Vec<&str> = net.split(',').collect();
        hold(!parts.iter().any(|part| part.starts_with("gw")), format!("net{number} has a gateway"));
        if !parts.contains(&"link_down=1") {
            let own = speech.is_some_and(|speech| parts.contains(&format!("ip={}", speech.guest).as_str()));
            plugged.push((number, own));
        }
    }
    for (number, _) in plugged.iter().filter(|(_, own)| !own) {
        hold(false, format!("net{number} is plugged in"));
    }
    hold(plugged.len() <= 1, "more than one network is plugged in".to_owned());
    for disk in config.mounts.values().chain(&config.rootfs) {
        hold(matches!(disk.backing, Backing::Volume(_)), format!("{:?} is no volume", disk.backing));
    }
    wrong
}

/// It comes up and stays up for a while. No controller inside is contacted: without a bridge set up for that, it could
/// not answer (`step_report` listens where there is one).
pub(super) async fn observe(context: &Context<'_>) -> Result<Started, StepError> {
    let clock = &context.ports.clock;
    let until = clock.monotonic() + Duration::from_secs(limits::TEST_STAYS_UP_S);
    context.say("waiting whether it stays up");
    loop {
        own_copy(context).await?;
        if !step_power::runs(context).await? {
            let text = "the restored guest was started and did not stay up: look at its log, then try another backup";
            return Err(StepError::give_up(ErrorCode::Broken, text));
        }
        if clock.monotonic() >= until {
            break;
        }
        clock.sleep(LOOK).await;
    }
    let why = format!(
        "it was restored and stayed up for {} s; it has no network, so nobody inside could say whether its programs run; `agentd \
         setup --test-network` makes one that ends here",
        limits::TEST_STAYS_UP_S
    );
    let tested = Finding::Tested { verdict: TestVerdict::BootedOnly, why: why.clone() };
    Ok(Started::Learnt(StepOutput { facts: vec![tested], note: Some(why) }))
}

pub(super) async fn is_stopped(context: &Context<'_>) -> Result<Checked, StepError> {
    Ok((!step_power::runs(context).await?).then(StepOutput::nothing).into())
}

pub(super) async fn is_destroyed(context: &Context<'_>) -> Result<Checked, StepError> {
    let used = context.ports.pve.vmid_use(vmid(context)?).await?;
    Ok((used == VmidUse::Free).then(StepOutput::nothing).into())
}

/// Stops it: by our own record of it, and by its current state.
pub(super) async fn stop(context: &Context<'_>) -> Result<Started, StepError> {
    permitted(&Effect::DestroyScratch, Provenance::ScratchRecord)?;
    own_copy(context).await?;
    Ok(Started::Task(context.ports.pve.stop(vmid(context)?).await?))
}

/// Destroys it, by the same.
pub(super) async fn destroy(context: &Context<'_>) -> Result<Started, StepError> {
    permitted(&Effect::DestroyScratch, Provenance::ScratchRecord)?;
    let config = own_copy(context).await?;
    let pve = &context.ports.pve;
    let mut proof = undo_proof::prove(context, &config)?;
    // The archive brought its guest's protection along.
    if config.protection == Switch::On {
        pve.unprotect(&LiftProof::of_undo(&proof), &config.digest).await?;
        proof = undo_proof::prove(context, &own_copy(context).await?)?;
    }
    Ok(Started::Task(pve.destroy(proof).await?))
}

/// With it we lose the right to see its volumes: what counts is the end and the log of the task.
pub(super) async fn reaped(context: &Context<'_>) -> Result<Started, StepError> {
    let volumes = context.progress.volumes();
    volume_check::prove(context, vmid(context)?, context.progress.upid_of(Step::DestroyScratch), &volumes)
        .await?;
    Ok(Started::Learnt(StepOutput::note(format!("{} volumes are gone", volumes.len()))))
}

fn permitted(effect: &Effect, road: Provenance) -> Result<(), StepError> {
    match gate(effect, road, &Approved::default()) {
        Verdict::Free => Ok(()),
        Verdict::NeedsSignature(why) | Verdict::Forbidden(why) => Err(StepError::fault(why)),
    }
}
