//! From root to the agent's own user, before anything is touched.
//!
//! An operator often runs as root a command whose files the agent's user must own. Files that root makes there would
//! lock the daemon out, and root can be misdirected by names in another user's folder. So a command started by root
//! starts itself again as the owner of the state folder. Deliberately absent: any work done as root.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::port::held_folder::{self, HeldError, HeldFolder};

/// Why the command does not run.
#[derive(Debug, thiserror::Error)]
pub enum StepDownError {
    /// No state folder.
    #[error("the state folder cannot be looked at: run `agentd setup` first")]
    NoFolder(#[source] HeldError),
    /// Root's own folder.
    #[error("the state folder {} belongs to root: run `agentd setup`, which gives it to the user `holdfast`", path.display())]
    RootsFolder { path: PathBuf },
    /// A file for the command.
    #[error("the file for this command cannot be read")]
    File(#[source] HeldError),
    /// The program could not be started again.
    #[error("the command could not be started again as user {uid}: run it as that user")]
    Again {
        uid: u32,
        #[source]
        source: std::io::Error,
    },
}

/// Returns when this process is not root; as root it becomes the same command, run by the folder's owner.
///
/// # Errors
/// [`StepDownError`].
pub fn to_owner_of(state: &Path) -> Result<(), StepDownError> {
    become_owner(state, std::env::args_os().skip(1).collect(), None)
}

/// The same switch of user, with a file that only root may read: it is opened here, and the command reads it as its
/// standard input. An option and its value name the file; they are replaced by `-`.
///
/// # Errors
/// [`StepDownError`].
pub fn to_owner_of_with(state: &Path, option: &str, file: &Path) -> Result<(), StepDownError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    // A user who may exchange a folder or a link on the way must not make root read another file.
    let opened = held_folder::open_file(file).map_err(StepDownError::File)?;
    let words = without(std::env::args_os().skip(1), option);
    become_owner(state, words, Some(opened))
}

/// The arguments without an option and its value, in either form, and `-` instead.
fn without(words: impl Iterator<Item = OsString>, option: &str) -> Vec<OsString> {
    let joined = format!("{option}=");
    let mut kept = Vec::new();
    let mut words = words;
    while let Some(word) = words.next() {
        if word == option {
            drop(words.next());
            kept.push("-".into());
        } else if word.to_str().is_some_and(|word| word.starts_with(&joined)) {
            kept.push("-".into());
        } else {
            kept.push(word);
        }
    }
    kept
}

/// The same switch of user, for a command that only reads: in root's own folder root reads by itself.
///
/// # Errors
/// [`StepDownError`].
pub fn to_reader_of(state: &Path) -> Result<(), StepDownError> {
    if !rustix::process::geteuid().is_root() || owner(state)?.0 == 0 {
        return Ok(());
    }
    to_owner_of(state)
}

fn owner(state: &Path) -> Result<(u32, u32), StepDownError> {
    HeldFolder::open(state).map(|folder| folder.owner()).map_err(StepDownError::NoFolder)
}

#[expect(
    clippy::disallowed_methods,
    reason = "starts this very program again with the same arguments, in this process's place"
)]
fn become_owner(state: &Path, words: Vec<OsString>, input: Option<File>) -> Result<(), StepDownError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let (uid, gid) = owner(state)?;
    if uid == 0 {
        return Err(StepDownError::RootsFolder { path: state.to_owned() });
    }
    let again = |source| StepDownError::Again { uid, source };
    let program = std::env::current_exe().map_err(again)?;
    let kept = std::env::vars_os().filter(|(name, _)| name == "HOLDFAST_AGENT_CONFIG" || name == "NO_COLOR");
    // With `uid` set the standard library also empties the list of extra groups.
    let input = input.map_or_else(Stdio::inherit, Stdio::from);
    let error = std::process::Command::new(program)
        .args(words)
        .stdin(input)
        .env_clear()
        .envs(kept)
        .uid(uid)
        .gid(gid)
        .exec();
    Err(again(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_root_opened_is_read_from_standard_input_instead() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        let without = |text: &str| super::without(words(text).into_iter(), "--invite-file");
        assert_eq!(
            without("enroll --restore --invite-file /root/i --output json"),
            words("enroll --restore - --output json")
        );
        assert_eq!(without("enroll --invite-file=/root/i"), words("enroll -"));
        assert_eq!(without("enroll --invite-files x"), words("enroll --invite-files x"));
    }
}
