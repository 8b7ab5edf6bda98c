//! A restore from a backup server.
//!
//! In: the restore plan, and the part of the snapshot to fetch. Out: where the snapshot is stored, or the text of the client's failure,
//! with its reason in the log lines before.
use std::path::PathBuf;

use super::restore::{Plan, userns};
use crate::fail::{Fallible, Refusal};
use crate::storage::volume::Located;
use crate::storage::{backup_server, server_names};
use crate::task::Task;

/// Whether a backup is on a backup server.
pub(super) fn is_on_server(task: &Task, volid: &str) -> Fallible<bool> {
    let world = task.node.world();
    Ok(server_names::is_one(world.store().locate(volid)?.definition))
}

/// The part of a backup server's snapshot that is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Config,
    Files,
}

/// Opens a snapshot on a backup server with the key of its entry, before any disk is made and again for each part. The storage is not
/// activated for this: the client reports any obstacle.
pub(super) fn unlock(task: &Task, plan: &Plan, part: Part) -> Fallible<PathBuf> {
    let (said, place) = {
        let world = task.node.world();
        let store = world.store();
        let at = store.locate(&plan.archive)?;
        (store.open(&at)?, store.place(&at))
    };
    match said {
        Ok(lines) => lines.iter().for_each(|line| task.log(line)),
        Err(complaint) => {
            complaint.iter().for_each(|line| task.log(line));
            return Err(client_failed(task, plan, part, CLIENT_ENDS)?);
        }
    }
    if part == Part::Files && is_found_damaged(&place) {
        task.log(format!("Error: error extracting archive - {}", lacks_chunk(task, plan)?));
        return Err(client_failed(task, plan, part, CLIENT_ENDS)?);
    }
    Ok(place)
}

/// How a client ends that failed by itself.
pub(super) const CLIENT_ENDS: &str = "exit code 255";

/// Whether a verification on the server found a damaged chunk of the snapshot and renamed it.
fn is_found_damaged(place: &std::path::Path) -> bool {
    backup_server::verification(place)
        .is_some_and(|said| said.get("state").is_some_and(|state| state == "failed"))
}

/// The server's error for a chunk whose file does not exist any more.
fn lacks_chunk(task: &Task, plan: &Plan) -> Fallible<String> {
    use sha2::{Digest as _, Sha256};
    let world = task.node.world();
    let at = world.store().locate(&plan.archive)?;
    let digest: String = Sha256::digest(at.name.text()).iter().map(|byte| format!("{byte:02x}")).collect();
    let (first, store) =
        (digest.get(..4).unwrap_or_default(), at.definition.get("datastore").unwrap_or_default());
    Ok(format!(
        "reading file \"/srv/{store}/.chunks/{first}/{digest}\" failed: No such file or directory (os error 2)"
    ))
}

/// The error text of a client that failed.
///
/// # Errors
/// When the entry was removed meanwhile.
pub(super) fn client_failed(task: &Task, plan: &Plan, part: Part, how: &str) -> Fallible<Refusal> {
    let world = task.node.world();
    let store = world.store();
    let at = store.locate(&plan.archive)?;
    let key = store.key_of(at.storage, at.definition)?;
    let command = client_command(plan, part, &at, key.is_some());
    Ok(Refusal::die(format!("command '{command}' failed: {how}")))
}

fn client_command(plan: &Plan, part: Part, at: &Located<'_>, has_key: bool) -> String {
    let crypt = if has_key { "'--crypt-mode=encrypt' '--keyfd=15'" } else { "'--crypt-mode=none'" };
    let (mapped, what) = match part {
        Part::Config => ("", "pct.conf -".to_owned()),
        Part::Files => {
            (userns(plan), format!("root.pxar /var/lib/lxc/{}/rootfs --allow-existing-dirs", plan.vmid))
        }
    };
    let (snapshot, repository) = (at.name.text(), server_names::repository(at.definition));
    let namespace = at.definition.get("namespace").map(|ns| format!(" --ns {ns}")).unwrap_or_default();
    format!(
        "{mapped}/usr/bin/proxmox-backup-client restore {crypt} {snapshot} {what} --repository {repository}{namespace}"
    )
}
