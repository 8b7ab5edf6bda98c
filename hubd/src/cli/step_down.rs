//! The switch from root to the owner of the hub's folder.
//!
//! Root that makes, opens or changes files in another user's folder follows that user's links. So a command that root starts
//! on such a folder starts itself again as the folder's owner. Root continues as root only where no other user can change the
//! folder or one above it. Deliberately absent: any work in another user's folder as root.

use std::os::unix::process::CommandExt as _;
use std::path::Path;

use held_files::held_folder::{HeldError, HeldFolder};

/// Environment variables that the restarted command keeps.
const KEPT_VARIABLES: [&str; 7] = [
    "HOLDFAST_HUB_CONFIG",
    "HOLDFAST_HUB_DIR",
    "HOLDFAST_LOG",
    "NOTIFY_SOCKET",
    "NO_COLOR",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
];

/// Why the command was not run.
#[derive(Debug, thiserror::Error)]
pub(super) enum StepDownError {
    /// The folder, or one on the way to it.
    #[error(
        "root does not use the hub's folder there, and nothing was changed: run the command as the hub's user \
         (`runuser -u holdfast-hub -- hubd …`), or give a folder whose path has no link and which no other user can change"
    )]
    Folder(#[source] HeldError),
    /// The program could not be started again.
    #[error(
        "the command could not be started again as user {uid}, and nothing was changed: run it as that user"
    )]
    Again {
        uid: u32,
        #[source]
        source: std::io::Error,
    },
}

/// Returns where this process is not root, or where only root can change the folder. Otherwise it is replaced by the same
/// command, run by the folder's owner.
///
/// # Errors
/// [`StepDownError`].
pub(super) fn to_owner_of(folder: &Path) -> Result<(), StepDownError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let (uid, gid, there) = owner(folder).map_err(StepDownError::Folder)?;
    if uid == 0 {
        return HeldFolder::roots_alone(there).map(drop).map_err(StepDownError::Folder);
    }
    Err(become_user(uid, gid))
}

/// The folder's owner; where it is missing, the owner of the nearest folder above it.
fn owner(folder: &Path) -> Result<(u32, u32, &Path), HeldError> {
    let mut at = folder;
    loop {
        let missing = match HeldFolder::open(at) {
            Ok(held) => {
                let (uid, gid) = held.owner();
                return Ok((uid, gid, at));
            }
            Err(error) if error.is_missing() => error,
            Err(error) => return Err(error),
        };
        at = match at.parent() {
            Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
            Some(parent) => parent,
            None => return Err(missing),
        };
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "starts this very program again with the same arguments, in this process's place"
)]
fn become_user(uid: u32, gid: u32) -> StepDownError {
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(source) => return StepDownError::Again { uid, source },
    };
    let kept = std::env::vars_os().filter(|(name, _)| KEPT_VARIABLES.iter().any(|kept| name == kept));
    // With `uid` set the standard library also empties the list of extra groups.
    let source = std::process::Command::new(program)
        .args(std::env::args_os().skip(1))
        .env_clear()
        .envs(kept)
        .uid(uid)
        .gid(gid)
        .exec();
    StepDownError::Again { uid, source }
}
