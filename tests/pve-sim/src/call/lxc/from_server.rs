//! A restore from a backup server: its client, as the log shows it.
//!
//! In: what is to be made, and which part of the snapshot is fetched. Out: where the snapshot lies, or the sentence of the client's failure,
//! with its reason in the lines before.
use std::path::PathBuf;

use super::restore::{Plan, userns};
use crate::fail::{Fallible, Refusal};
use crate::storage::volume::Located;
use crate::storage::{backup_client, backup_server};
use crate::task::Task;

/// Whether a backup lies on a backup server.
pub(super) fn is_on_server(task: &Task, volid: &str) -> Fallible<bool> {
    let world = task.node.world();
    Ok(backup_server::is_one(world.store().locate(volid)?.definition))
}

/// What is fetched of a backup server's snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Config,
    Files,
}

/// What lies on a backup server is opened by the key of its entry, before any disk is made and again for each part. The storage is not
/// readied for it: what is in the way the client says.
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
            return Err(client_failed(task, plan, part)?);
        }
    }
    Ok(place)
}

/// The sentence of a client that did not come to its end.
///
/// # Errors
/// When the entry is gone by then.
pub(super) fn client_failed(task: &Task, plan: &Plan, part: Part) -> Fallible<Refusal> {
    let world = task.node.world();
    let store = world.store();
    let at = store.locate(&plan.archive)?;
    let key = store.key_of(at.storage, at.definition)?;
    let command = client_command(plan, part, &at, key.is_some());
    Ok(Refusal::die(format!("command '{command}' failed: exit code 255")))
}

fn client_command(plan: &Plan, part: Part, at: &Located<'_>, has_key: bool) -> String {
    let crypt = if has_key { "'--crypt-mode=encrypt' '--keyfd=15'" } else { "'--crypt-mode=none'" };
    let (mapped, what) = match part {
        Part::Config => ("", "pct.conf -".to_owned()),
        Part::Files => {
            (userns(plan), format!("root.pxar /var/lib/lxc/{}/rootfs --allow-existing-dirs", plan.vmid))
        }
    };
    let (snapshot, repository) = (at.name.text(), backup_client::repository(at.definition));
    let namespace = at.definition.get("namespace").map(|ns| format!(" --ns {ns}")).unwrap_or_default();
    format!(
        "{mapped}/usr/bin/proxmox-backup-client restore {crypt} {snapshot} {what} --repository {repository}{namespace}"
    )
}
