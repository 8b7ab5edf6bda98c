//! The archive step of a backup.
use super::backup::Backup;
use super::mode::{HeldGuest, included};
use super::options::Mode;
use super::texts::{TarCommand, file_size};
use super::upload;
use crate::archive::{MountDir, Owner, PackError, PackPlan, Packed, Volumes, pack};
use crate::call::lxc::restore::human;
use crate::fail::{Fallible, Refusal};
use crate::guest::config::GuestConfig;
use crate::guest::spec::guest_path;
use crate::storage::volume::missing;
use crate::task::worker::Outcome;

/// Writes the archive.
///
/// # Errors
/// For a volume that is not there, and with the real command when packing fails or is interrupted.
pub(super) fn write(backup: &Backup<'_>, held: &HeldGuest) -> Outcome {
    match &backup.dump.server {
        Some(server) => upload::begin(backup, held, server)?,
        None => {
            let shown = format!("{}/{}", backup.dump.shown, backup.file_name());
            backup.log(&format!("creating vzdump archive '{shown}'"));
        }
    }
    let volumes = volumes(backup, held)?;
    if let Some(later) = backup.task.node.faults.orphans(backup.vmid) {
        orphan(backup, volumes, later)?;
        return Err(crate::task::Halt::Killed);
    }
    if backup.dump.server.is_some() && backup.task.node.faults.cuts_upload(backup.vmid) {
        upload::cut(backup);
        return Err(Refusal::die(upload::failed(backup, held, "exit code 255")).into());
    }
    // The phase in which a real worker spends its time.
    let paced = backup.task.pace("copy");
    let began_ms = backup.task.node.clock.now_ms();
    let packed = match paced {
        Err(crate::task::Halt::Failed(_)) if backup.task.is_stopping() => Err(PackError::Cancelled),
        Err(failed @ crate::task::Halt::Failed(_)) => return Err(failed),
        Err(killed) => return Err(killed),
        Ok(()) => pack_now(backup, &volumes),
    };
    match packed {
        Ok(packed) => {
            if backup.task.node.faults.loses_archive(backup.vmid) {
                std::fs::remove_file(backup.place())
                    .map_err(|error| crate::fail::host("removal of archive", &error))?;
            }
            reported(backup, &packed, backup.task.node.clock.now_ms() - began_ms);
            Ok(())
        }
        Err(error) => {
            tracing::debug!(%error, "archive not written");
            // A kill comes back as such here, and then nothing is cleaned up.
            if !matches!(error, PackError::Cancelled) || backup.task.is_stopping() {
                if backup.dump.server.is_some() && !matches!(error, PackError::Cancelled) {
                    upload::broken(backup);
                }
                return Err(Refusal::die(failed(backup, held, &error)).into());
            }
            backup.task.pace("copied")
        }
    }
}

fn pack_now(backup: &Backup<'_>, volumes: &Volumes) -> Result<Packed, PackError> {
    let unprivileged = backup.config.main.flag("unprivileged");
    let place = backup.place();
    let plan = PackPlan {
        target: &place,
        config: &travelling(&backup.config),
        firewall: &firewall(backup),
        config_owner: if unprivileged { Owner::NoOne } else { Owner::Root },
        volumes,
        exclude: &backup.options.exclude,
        made_at_s: u64::try_from(backup.started_s).unwrap_or_default(),
    };
    pack(&plan, &|| backup.task.is_ending())
}

/// The guest's firewall as it travels.
fn firewall(backup: &Backup<'_>) -> String {
    crate::call::firewall::text_of(&backup.task.node, &format!("{}.fw", backup.vmid))
}

/// The worker dies, and the programs that it started continue. A backup server's client finishes its snapshot by itself.
/// A local archive stays unfinished, because only the worker gives it its final name.
fn orphan(backup: &Backup<'_>, volumes: Volumes, later: std::time::Duration) -> Fallible<()> {
    let unfinished = backup.place().with_extension("dat");
    std::fs::write(&unfinished, b"begun").map_err(|error| crate::fail::host("write of archive", &error))?;
    if backup.dump.server.is_none() {
        return Ok(());
    }
    let unprivileged = backup.config.main.flag("unprivileged");
    let (place, config, exclude) =
        (backup.place(), travelling(&backup.config), backup.options.exclude.clone());
    let made_at_s = u64::try_from(backup.started_s).unwrap_or_default();
    let held = firewall(backup);
    let clock = std::sync::Arc::clone(&backup.task.node.clock);
    let go_on = move || {
        clock.pause(later);
        if let Err(error) = std::fs::remove_file(&unfinished) {
            tracing::warn!(%error, "the orphan of a backup lost its beginning");
        }
        let plan = PackPlan {
            target: &place,
            config: &config,
            firewall: &held,
            config_owner: if unprivileged { Owner::NoOne } else { Owner::Root },
            volumes: &volumes,
            exclude: &exclude,
            made_at_s,
        };
        if let Err(error) = pack(&plan, &|| false) {
            tracing::warn!(%error, "the orphan of a backup did not finish its archive");
        }
    };
    // Named like a task, so that a harness can schedule it. Its owner field is empty.
    let name = format!("orphan:::::vzdump:{}:", backup.vmid);
    backup
        .task
        .node
        .clock
        .run_task(&name, Box::new(go_on))
        .map_err(|error| crate::fail::host("start of worker", &error))
}

fn reported(backup: &Backup<'_>, packed: &Packed, took_ms: i64) {
    let total = packed.total_bytes_written;
    if backup.dump.server.is_some() {
        return upload::end(backup, packed, took_ms);
    }
    let a_second = total.saturating_mul(1000) / u64::try_from(took_ms.max(1)).unwrap_or(1);
    backup.log(&format!("Total bytes written: {total} ({}, {}/s)", human(total), human(a_second)));
    backup.log(&format!("archive file size: {}", file_size(packed.archive_bytes)));
}

/// The configuration as it travels: current values only, without what belongs to this moment.
fn travelling(config: &GuestConfig) -> String {
    let mut alone = GuestConfig { main: config.main.clone(), ..GuestConfig::default() };
    for key in ["lock", "parent"] {
        alone.main.unset(key);
    }
    alone.print()
}

/// The folders to pack: the snapshots, the copy aside, or the volumes themselves.
fn volumes(backup: &Backup<'_>, held: &HeldGuest) -> Fallible<Volumes> {
    let world = backup.task.node.world();
    let store = world.store();
    let mut found = Volumes { rootfs: std::path::PathBuf::new(), mounts: Vec::new() };
    for mount in included(backup) {
        let directory = match held.mode {
            Mode::Snapshot => store.snapshot_tree(mount.volume(), "vzdump")?,
            Mode::Suspend => backup.temporary().join(&mount.key),
            Mode::Stop => store.tree(mount.volume())?,
        };
        if !directory.is_dir() {
            return Err(missing(mount.volume()));
        }
        if mount.key == "rootfs" {
            found.rootfs = directory;
        } else {
            found.mounts.push(MountDir { at: guest_path(&mount)?, directory });
        }
    }
    Ok(found)
}

fn failed(backup: &Backup<'_>, held: &HeldGuest, error: &PackError) -> String {
    if backup.dump.server.is_some() {
        let cut = matches!(error, PackError::Cancelled);
        return upload::failed(backup, held, if cut { "interrupted by signal" } else { "exit code 255" });
    }
    let at = |end: &str| format!("{}/{}{end}", backup.dump.shown, backup.name);
    let temporary = at(".tmp");
    let (source, root) =
        if held.mode == Mode::Suspend { (temporary.as_str(), ".") } else { ("/mnt/vzsnap0", "./") };
    let others: Vec<String> = included(backup)
        .iter()
        .filter(|mount| mount.key != "rootfs")
        .map(|mount| format!(".{}", mount.path()))
        .collect();
    let command = TarCommand {
        options: backup.options,
        unprivileged: backup.config.main.flag("unprivileged"),
        temporary: &temporary,
        source,
        root,
        others: &others,
        unfinished: &at(".tar.dat"),
    };
    let how = if matches!(error, PackError::Cancelled) { "interrupted by signal" } else { "exit code 2" };
    format!("command '{}' failed: {how}", command.text())
}
