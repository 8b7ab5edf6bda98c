//! A command of a person, carried out by the build that runs.
//!
//! In: the link that root's gate made before the last start of the agent. Out: this process, replaced by that program,
//! where it is another one than this. So a command and the agent that it asks are always of one version.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};

/// Made by the gate, in a folder that only root can change.
const LINK: &str = "/run/holdfast-agent-gate/agentd";

/// Where the gate keeps builds that did not come by the package.
const SLOTS: &str = "/var/lib/holdfast-slots";

/// Hands over. It returns where this is the right build, or where the other one cannot be started.
pub fn hand_over() {
    let Ok(own) = std::env::current_exe() else { return };
    let Some(current) = other_build(&own, Path::new(LINK)) else { return };
    #[expect(clippy::disallowed_methods, reason = "this very command, by the build that runs")]
    let error = std::process::Command::new(&current).args(std::env::args_os().skip(1)).exec();
    eprintln!(
        "agentd: {} runs as the agent and could not be started for this command: {error}",
        current.display()
    );
}

/// The build in a slot that runs instead of this one.
fn other_build(own: &Path, link: &Path) -> Option<PathBuf> {
    let current = std::fs::read_link(link).ok()?;
    (current.starts_with(SLOTS) && current != own).then_some(current)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_build_in_a_slot_takes_over_and_only_from_another() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("agentd");
        let package = Path::new("/usr/bin/agentd");
        assert_eq!(other_build(package, &link), None, "no gate yet");
        let slot = Path::new("/var/lib/holdfast-slots/a/agentd");
        std::os::unix::fs::symlink(slot, &link).unwrap();
        assert_eq!(other_build(package, &link).as_deref(), Some(slot));
        assert_eq!(other_build(slot, &link), None, "it is this one");
        std::fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(package, &link).unwrap();
        assert_eq!(
            other_build(Path::new("/root/agentd"), &link),
            None,
            "a build that somebody tries by hand"
        );
    }
}
