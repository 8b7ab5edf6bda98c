//! From root to the agent's own user, before anything is touched.
//!
//! A person often types as root what the agent's user must own. Files that root makes there would shut the daemon out,
//! and root that follows names in a folder of another user can be led astray. So a command started by root starts itself
//! again as the owner of the state folder. Deliberately absent: any work done as root.

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

/// Why the command does not run.
#[derive(Debug, thiserror::Error)]
pub enum StepDownError {
    /// No state folder.
    #[error("the state folder {} cannot be looked at: run `agentd setup` first", path.display())]
    NoFolder {
        /// The folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Root's own folder.
    #[error("the state folder {} belongs to root: run `agentd setup`, which gives it to the user `holdfast`", path.display())]
    RootsFolder {
        /// The folder.
        path: PathBuf,
    },
    /// The program could not be started again.
    #[error("the command could not be started again as user {uid}: run it as that user")]
    Again {
        /// The user.
        uid: u32,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// Returns when this process is not root; as root it becomes the same command, run by the folder's owner.
///
/// # Errors
/// [`StepDownError`].
#[expect(
    clippy::disallowed_methods,
    reason = "starts this very program again with the same arguments, in this process's place"
)]
pub fn to_owner_of(state: &Path) -> Result<(), StepDownError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let owner = std::fs::metadata(state)
        .map_err(|source| StepDownError::NoFolder { path: state.to_owned(), source })?;
    let uid = owner.uid();
    if uid == 0 {
        return Err(StepDownError::RootsFolder { path: state.to_owned() });
    }
    let again = |source| StepDownError::Again { uid, source };
    let program = std::env::current_exe().map_err(again)?;
    let kept = std::env::vars_os().filter(|(name, _)| name == "HOLDFAST_AGENT_CONFIG" || name == "NO_COLOR");
    // With `uid` set the standard library also empties the list of extra groups.
    let error = std::process::Command::new(program)
        .args(std::env::args_os().skip(1))
        .env_clear()
        .envs(kept)
        .uid(uid)
        .gid(owner.gid())
        .exec();
    Err(again(error))
}
