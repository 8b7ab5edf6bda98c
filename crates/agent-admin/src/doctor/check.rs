//! The checks, in the order in which one builds on the other.
//!
//! Input: a client and the settings. Output: [`Check`]s. When a call fails, the checks that need its answer are
//! *unknown*, never good.

use std::path::Path;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::StorageName;
use holdfast_protocol::json::chain;

use super::judge::{judge, paths_to_ask};
use super::row::{Check, State};
use crate::model::policy::GoldenDump;
use crate::port::admin_socket;
use crate::port::pve::read::StorageStatus;
use crate::port::pve::resources::Resources;
use crate::port::pve::{ContentKind, Permissions, Pve, PveError, Role, VolumeId};
use crate::settings::{GoldenSettings, Settings};
use crate::setup::file_sha256;
use crate::setup::plan::{Places, ScratchPlaces, archive_vmid};

/// The parts of Proxmox that the settings name.
fn places(settings: &Settings) -> Places {
    let proxmox = &settings.proxmox;
    let archives: Vec<VolumeId> =
        settings.golden.iter().filter_map(|golden| golden.archive.parse().ok()).collect();
    let of_goldens = archives.iter().filter_map(|archive| archive.storage().parse().ok());
    let dump = settings.golden_dump.as_ref();
    let built_on = dump.map(|dump| dump.storage.clone());
    let built_as = dump.and_then(|_| GoldenDump::vmid());
    let targets = settings.storage_entries.iter().flat_map(|entries| &entries.targets);
    let used = targets.clone().filter_map(|target| target.as_str().parse().ok());
    Places {
        node: proxmox.node.clone(),
        pool: proxmox.pool.clone(),
        scratch: settings.scratch.as_ref().map(|scratch| ScratchPlaces {
            pool: scratch.pool.clone(),
            storage: scratch.storage.clone(),
            bridge: scratch.speech.as_ref().map(|speech| speech.bridge.clone()),
            twins: scratch.twins.clone(),
        }),
        guest_storages: std::iter::once(&proxmox.storage)
            .chain(&proxmox.bulk_storage)
            .chain(&proxmox.guest_storages)
            .cloned()
            .collect(),
        backup_storages: proxmox.backup_storage.iter().cloned().chain(used).collect(),
        archive_storages: of_goldens.chain(built_on).collect(),
        golden_vmids: archives.iter().filter_map(archive_vmid).chain(built_as).collect(),
        targets: targets.cloned().collect(),
        bridge: proxmox.bridge.clone(),
        vlans: Vec::new(),
    }
}

/// Whether the running agent can write its records.
#[must_use]
pub fn records(state: &Path) -> Check {
    let name = "the agent's records";
    let status = match admin_socket::ask(state) {
        Ok(status) => status,
        Err(error) => return Check::new(State::Unknown, name, chain(&error)),
    };
    let of_records = |problem: &&ErrorBody| {
        matches!(problem.code, ErrorCode::DiskFull | ErrorCode::RecordsBroken | ErrorCode::RecordsDamaged)
    };
    match status.sections.agent.iter().flat_map(|agent| &agent.problems).find(of_records) {
        Some(problem) => Check::new(State::Failed, name, problem.to_string()),
        None => Check::new(State::Good, name, "the running agent writes them"),
    }
}

/// Makes all checks.
pub async fn examine(pve: &dyn Pve, settings: &Settings) -> Vec<Check> {
    let places = places(settings);
    let mut checks = vec![version(pve).await];
    if checks.iter().any(|check| check.state != State::Good) {
        // Without the first answer every other line would repeat the same failure.
        checks.push(Check::new(State::Unknown, "everything else", "Proxmox must answer first"));
        return checks;
    }
    let proxmox = &settings.proxmox;
    let scratch = settings.scratch.as_ref().map(|scratch| (Role::Scratch, &scratch.token));
    let tokens = [
        (Role::Observe, &proxmox.tokens.observe),
        (Role::Operate, &proxmox.tokens.operate),
        (Role::Allocate, &proxmox.tokens.allocate),
    ];
    for (role, token) in tokens.into_iter().chain(scratch) {
        checks.extend(token_rights(pve, role, &token.id, &places).await);
    }
    let node = format!("node {}", places.node);
    checks.push(match pve.node_status().await {
        Ok(status) => match filled(status.rootfs_used, status.rootfs_total) {
            Some(full) => Check::new(State::Failed, node, format!("its root file system is {full} % full")),
            None => Check::new(State::Good, node, format!("up for {} h", status.uptime_s / 3600)),
        },
        Err(error) => Check::of_error(node, &error),
    });
    checks.extend(pool(pve.resources().await, &places));
    checks.extend(storages(pve, &places, proxmox.backup_storage.as_ref()).await);
    checks.extend(super::read_only_entries::checks(pve, &places).await);
    for golden in &settings.golden {
        checks.push(golden_listed(pve, golden).await);
        checks.push(golden_file(&golden.file, golden));
    }
    checks
}

/// The pool, and locks on guests in it. A lock is a task at work, or one that died; which of the two a person sees.
fn pool(seen: Result<Resources, PveError>, places: &Places) -> Vec<Check> {
    let name = format!("pool {}", places.pool);
    let all = match seen {
        Ok(all) => all,
        Err(error) => return vec![Check::of_error(name, &error)],
    };
    if !all.has_pool(&places.pool) {
        return vec![Check::new(State::Failed, name, "not visible: it is missing, or Pool.Audit is")];
    }
    let ours = all.guests.iter().filter(|guest| guest.pool.as_deref() == Some(places.pool.as_str()));
    let locked = ours.filter_map(|guest| Some((guest.vmid, guest.lock.as_deref()?)));
    let mut checks = vec![Check::new(State::Good, name, "visible")];
    checks.extend(locked.map(|(vmid, lock)| {
        let detail =
            format!("{lock}: a task is at it; if none is (`pvesh get /cluster/tasks`), `pct unlock {vmid}`");
        Check::new(State::Unknown, format!("lock on guest {vmid}"), detail)
    }));
    checks
}

/// From here on a write may fail at any moment.
const FILL_MAX: u64 = 95;

/// How full, where it is too full.
const fn filled(used: u64, total: u64) -> Option<u64> {
    match used.saturating_mul(100).checked_div(total) {
        Some(share) if share >= FILL_MAX => Some(share),
        _ => None,
    }
}

/// The first answer also proves address, pin and token.
async fn version(pve: &dyn Pve) -> Check {
    match pve.version().await {
        Ok(version) if version.is_supported() => Check::new(
            State::Good,
            "Proxmox VE",
            format!("{}, address, pin and token are right", version.text),
        ),
        Ok(version) => {
            let (major, minor) = crate::port::pve::read::Version::OLDEST;
            let detail = format!("{} is too old: {major}.{minor} or newer is needed", version.text);
            Check::new(State::Failed, "Proxmox VE", detail)
        }
        Err(error) => unanswered(&error),
    }
}

pub(super) fn unanswered(error: &PveError) -> Check {
    let check = Check::of_error("Proxmox VE", error);
    if !matches!(error, PveError::PinMismatch { .. }) {
        return check;
    }
    let line = "agentd setup ...   # with the options of the first time: it reads the new key";
    Check { mend: vec![line.to_owned()], ..check }
}

async fn token_rights(pve: &dyn Pve, role: Role, token_id: &str, places: &Places) -> Vec<Check> {
    let permissions = match rights(pve, role, places).await {
        Ok(permissions) => permissions,
        Err(error) => return vec![Check::of_error(format!("token {token_id}"), &error)],
    };
    let findings = judge(role, token_id, places, &permissions);
    if findings.is_empty() {
        return vec![Check::new(
            State::Good,
            format!("token {token_id}"),
            "may what it needs and nothing more",
        )];
    }
    let list = |set: &std::collections::BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>().join(" ");
    let line = |finding: super::judge::Finding| {
        let name = format!("{role} on {}", finding.path);
        let detail = if finding.missing.is_empty() {
            format!("{} is too much", list(&finding.surplus))
        } else {
            format!("{} is missing: {}", list(&finding.missing), finding.prevents.join("; "))
        };
        Check { mend: finding.mend, ..Check::new(State::Failed, name, detail) }
    };
    findings.into_iter().map(line).collect()
}

async fn rights(pve: &dyn Pve, role: Role, places: &Places) -> Result<Permissions, PveError> {
    let everything = pve.permissions(role, None).await?;
    let mut all: Vec<_> = everything.iter().map(|(path, set)| (path.to_owned(), set.clone())).collect();
    for path in paths_to_ask(role, places) {
        let here = pve.permissions(role, Some(path)).await?;
        all.extend(here.iter().map(|(path, set)| (path.to_owned(), set.clone())));
    }
    Ok(all.into_iter().collect())
}

/// The storages that the settings name. The running agent reports the state of the targets' entries (`entries`).
async fn storages(pve: &dyn Pve, places: &Places, backups: Option<&StorageName>) -> Vec<Check> {
    let list = match pve.storages().await {
        Ok(list) => list,
        Err(error) => return vec![Check::of_error("storages", &error)],
    };
    let mut wanted: Vec<_> = places.guest_storages.iter().map(|storage| (storage, "rootdir")).collect();
    let twins = places.scratch.iter().flat_map(|scratch| scratch.twins.values());
    let archives = places.archive_storages.iter().chain(backups).chain(twins);
    wanted.extend(archives.map(|storage| (storage, "backup")));
    wanted.sort();
    wanted.dedup();
    let check = |(storage, content): (&StorageName, &str)| {
        let name = format!("storage {storage} for {content}");
        match list.iter().find(|status| status.storage == *storage) {
            None => Check::new(State::Failed, name, "not visible: it is missing, or Datastore.Audit is"),
            Some(status) => storage_check(name, status, content),
        }
    };
    wanted.into_iter().map(check).collect()
}

fn storage_check(name: String, status: &StorageStatus, content: &str) -> Check {
    let free = format!("{} GiB free", status.available >> 30);
    if !status.enabled {
        let mend = vec![format!("pvesm set {} --disable 0", status.storage)];
        return Check { mend, ..Check::new(State::Failed, name, "switched off") };
    }
    if !status.active {
        return Check::new(State::Failed, name, "not available: mount it, or look at its server");
    }
    if !status.content.iter().any(|kind| kind == content) {
        let all = status.content.join(",");
        let mend = vec![format!("pvesm set {} --content {all},{content}", status.storage)];
        return Check { mend, ..Check::new(State::Failed, name, format!("holds {all} only")) };
    }
    if let Some(full) = filled(status.used, status.total) {
        let mend = vec![format!("pvesm list {}", status.storage)];
        let detail = format!("{full} % full, {free}: make room, or give it more");
        return Check { mend, ..Check::new(State::Failed, name, detail) };
    }
    Check::new(State::Good, name, free)
}

/// Listed for the token that restores it, which also proves its right to it.
async fn golden_listed(pve: &dyn Pve, golden: &GoldenSettings) -> Check {
    let name = format!("golden {} in Proxmox", golden.version);
    let Ok(archive) = golden.archive.parse::<VolumeId>() else {
        return Check::new(State::Failed, name, format!("{:?} is not the name of a volume", golden.archive));
    };
    let Ok(storage) = archive.storage().parse() else {
        return Check::new(State::Failed, name, format!("{:?} names no storage", golden.archive));
    };
    match pve.storage_content(Role::Allocate, &storage, ContentKind::Backup, archive_vmid(&archive)).await {
        Ok(volumes) if volumes.iter().any(|volume| volume.volid == golden.archive) => {
            Check::new(State::Good, name, golden.archive.clone())
        }
        Ok(_) => Check::new(
            State::Failed,
            name,
            format!("{} is not listed: build it, or name another", golden.archive),
        ),
        Err(error) => Check::of_error(name, &error),
    }
}

fn golden_file(path: &Path, golden: &GoldenSettings) -> Check {
    let name = format!("golden {} on disk", golden.version);
    match file_sha256(path) {
        Ok(sha256) => golden_digest(path, &sha256, golden, name),
        Err(error) => Check::new(State::Failed, name, format!("{} cannot be read: {error}", path.display())),
    }
}

fn golden_digest(path: &Path, sha256: &str, golden: &GoldenSettings, name: String) -> Check {
    match &golden.sha256 {
        Some(named) if sha256.eq_ignore_ascii_case(named) => {
            Check::new(State::Good, name, "its digest is the approved one")
        }
        None => Check::new(
            State::Good,
            name,
            format!("its digest is {sha256}; guests are made from it once an operator has signed for it"),
        ),
        Some(_) => Check::new(
            State::Failed,
            name,
            format!(
                "{} has the digest {sha256}, not the approved one: approve it by `agentd setup`, or find out who changed it",
                path.display()
            ),
        ),
    }
}
