//! From root to the hub's own user, before anything is touched.
//!
//! Root that makes, opens or changes files in a folder of another user can be led out of it by a link. So a command that root
//! starts on such a folder starts itself again as the folder's owner. Root goes on by itself only where nobody else has a hand
//! in the folder or in one above it. Deliberately absent: any work in another user's folder as root.

use std::os::unix::process::CommandExt as _;
use std::path::Path;

use held_files::held_folder::{HeldError, HeldFolder};

/// What the command still needs to know of its surroundings.
const KEPT: [&str; 7] = [
    "HOLDFAST_HUB_CONFIG",
    "HOLDFAST_HUB_DIR",
    "HOLDFAST_LOG",
    "NOTIFY_SOCKET",
    "NO_COLOR",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
];

/// Why the command does not run.
#[derive(Debug, thiserror::Error)]
pub(super) enum StepDownError {
    /// The folder, or one on the way to it.
    #[error(
        "root does not use the hub's folder there, and nothing was changed: run the command as the hub's user \
         (`runuser -u holdfast-hub -- hubd …`), or give a folder on whose way there is no link and no other user's hand"
    )]
    Folder(#[source] HeldError),
    /// The program could not be started again.
    #[error(
        "the command could not be started again as user {uid}, and nothing was changed: run it as that user"
    )]
    Again {
        /// The user.
        uid: u32,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// Returns where this process is not root, or where the folder is root's alone; else it becomes the same command, run by the
/// folder's owner.
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

/// Whose the folder is; where it is missing, whose the last one is in which it would be made.
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
    let kept = std::env::vars_os().filter(|(name, _)| KEPT.iter().any(|kept| name == kept));
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
