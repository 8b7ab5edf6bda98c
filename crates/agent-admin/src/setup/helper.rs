//! The helper's policy, folder and units, fitted to this host.
//!
//! Input: the choices, and the files on the host. Output: steps. The policy names the agent's user, the folder that
//! goldens are built into, and no disk. Root adds the disks to mount, and root's entries are never replaced.
//! Deliberately absent: starting the agent; it has no identity before it is enrolled.

use std::path::{Path, PathBuf};

use super::diff::StepState;
use super::helper_policy::text;
use super::local::{LocalAct, LocalError, LocalStep, owner};
use super::plan::Choices;
use crate::port::atomic_file;

/// Where the package puts it.
pub const PROGRAM: &str = "/usr/lib/holdfast/holdfast-helper";
/// Where the helper mounts.
pub const MOUNTS: &str = "/mnt/holdfast";
const BYTES_MAX: u64 = 64 * 1024;
const UNITS: &str = "/usr/lib/systemd/system";
const WANTED: &str = "/etc/systemd/system";

/// A unit of the package that runs from boot on.
pub struct Unit {
    pub name: &'static str,
    target: &'static str,
    now: Now,
}

/// Whether a unit runs at once; the agent waits for its enrolment.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Now {
    Start,
    Later,
}

impl Unit {
    /// The command that makes it run from boot on.
    #[must_use]
    pub fn enabling(&self) -> Vec<String> {
        let now = match self.now {
            Now::Start => ["--now"].as_slice(),
            Now::Later => &[],
        };
        ["systemctl", "enable"].iter().chain(now).chain([&self.name]).map(|word| (*word).to_owned()).collect()
    }

    /// The command that stops it permanently.
    #[must_use]
    pub fn disabling(&self) -> Vec<String> {
        ["systemctl", "disable", "--now", self.name].map(str::to_owned).to_vec()
    }
}

/// All of them.
pub const ENABLED: [Unit; 7] = [
    Unit { name: "holdfast-golden-publish.socket", target: "sockets.target", now: Now::Start },
    Unit { name: "holdfast-golden.socket", target: "sockets.target", now: Now::Start },
    Unit { name: "holdfast-hardware.timer", target: "timers.target", now: Now::Start },
    Unit { name: "holdfast-helper.socket", target: "sockets.target", now: Now::Start },
    Unit { name: "holdfast-proxmox-tokens.timer", target: "timers.target", now: Now::Start },
    Unit { name: "holdfast-updates.timer", target: "timers.target", now: Now::Start },
    Unit { name: "agentd.service", target: "multi-user.target", now: Now::Later },
];

/// The steps of `setup` for them.
///
/// # Errors
/// When there is a policy that cannot be read.
pub fn steps(choices: &Choices) -> Result<Vec<LocalStep>, LocalError> {
    let Some(user) = &choices.system_user else { return Ok(Vec::new()) };
    if !Path::new(PROGRAM).exists() {
        return Ok(Vec::new());
    }
    let status = if Path::new(MOUNTS).is_dir() { StepState::Done } else { StepState::Missing };
    let what = format!("folder {MOUNTS}, root's alone");
    let mut steps = vec![LocalStep { what, status, act: LocalAct::OpenFolder(MOUNTS.into()) }];
    steps.push(policy(&file(&choices.config), user, dump(choices))?);
    for unit in ENABLED.iter().filter(|unit| Path::new(UNITS).join(unit.name).exists()) {
        let status = if is_wanted(unit) { StepState::Done } else { StepState::Missing };
        let what = format!("unit {}, from boot on", unit.name);
        steps.push(LocalStep { what, status, act: LocalAct::Command(unit.enabling()) });
    }
    Ok(steps)
}

/// The folder that goldens are built into.
fn dump(choices: &Choices) -> Option<&Path> {
    choices.golden_dump.as_ref().map(|dump| dump.folder.as_path())
}

/// Whether a policy is unchanged since `setup` wrote it: with disks in it, it is root's own.
#[must_use]
pub fn is_as_written(there: &str) -> bool {
    caller(there).is_some_and(|uid| there == text(uid, builds_into(there).as_deref()))
}

/// Where the helper reads it.
#[must_use]
pub fn file(config: &Path) -> PathBuf {
    config.with_file_name("helper.toml")
}

/// Whether it is enabled.
#[must_use]
pub fn is_wanted(unit: &Unit) -> bool {
    Path::new(WANTED).join(format!("{}.wants", unit.target)).join(unit.name).symlink_metadata().is_ok()
}

fn policy(path: &Path, user: &str, dump: Option<&Path>) -> Result<LocalStep, LocalError> {
    let status = match atomic_file::read(path, BYTES_MAX)? {
        None => StepState::Missing,
        Some(bytes) => {
            let there = String::from_utf8_lossy(&bytes);
            let uid = caller(&there).ok_or_else(|| LocalError::HelperPolicy { path: path.to_owned() })?;
            if owner(user).is_none_or(|owner| owner.uid != uid) {
                StepState::Differs("it lets in another user: the number is put right, the rest stays")
            } else if dump.is_some_and(|dump| builds_into(&there).as_deref() != Some(dump)) {
                StepState::Differs(
                    "goldens are built into another folder, or none: that is put right, the rest stays",
                )
            } else {
                StepState::Done
            }
        }
    };
    let what = format!("the root helper's policy {}, for the user {user}", path.display());
    let goldens = dump.map(|dump| format!(", goldens into {}", dump.display())).unwrap_or_default();
    Ok(LocalStep { what: what + &goldens, status, act: LocalAct::HelperPolicy { path: path.to_owned() } })
}

fn caller(text: &str) -> Option<u32> {
    text.parse::<toml::Table>().ok()?.get("caller_uid")?.as_integer()?.try_into().ok()
}

fn builds_into(text: &str) -> Option<PathBuf> {
    Some(text.parse::<toml::Table>().ok()?.get("golden_dump")?.as_str()?.into())
}

#[cfg(test)]
mod tests {
    use super::super::helper_policy::fitted;
    use super::*;

    #[test]
    fn what_root_wrote_stays_and_the_users_number_is_put_right() {
        assert_eq!(caller(&text(995, None)), Some(995));
        let mine = "caller_uid=990\ntransports = [\"usb\"]\n# my disk\n[[target]]\nname = \"usb1\"\n";
        let right = fitted(Some(mine), 995, None);
        assert_eq!(right, mine.replace("caller_uid=990", "caller_uid = 995"));
        assert!(!is_as_written(&right), "there is a disk in it");
        assert_eq!(caller("nonsense"), None);
        assert_eq!(caller("caller_uid = -1"), None);
    }

    #[test]
    fn the_folder_of_goldens_is_put_right_and_never_taken_away() {
        let (old, new) = (Path::new("/var/lib/vz/dump"), Path::new("/mnt/\"big\"/dump"));
        let plain = text(995, None);
        let with = fitted(Some(&plain), 995, Some(old));
        assert_eq!(with, text(995, Some(old)));
        assert!(is_as_written(&with) && is_as_written(&plain) && !is_as_written(&format!("{with}# mine\n")));
        assert_eq!(fitted(Some(&with), 995, Some(old)), with, "it is so already");
        assert_eq!(fitted(Some(&with), 995, None), with, "nobody named one this time");
        let moved = fitted(Some(&with), 995, Some(new)).parse::<toml::Table>().unwrap();
        assert_eq!(moved["golden_dump"].as_str(), new.to_str());
    }

    #[test]
    fn a_policy_is_made_kept_or_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("helper.toml");
        let status = |dump| policy(&path, "root", dump).map(|step| step.status);
        assert_eq!(status(None).unwrap(), StepState::Missing);
        std::fs::write(&path, text(0, None)).unwrap();
        assert_eq!(status(None).unwrap(), StepState::Done);
        assert!(matches!(status(Some(Path::new("/dump"))).unwrap(), StepState::Differs(_)));
        std::fs::write(&path, text(7, None)).unwrap();
        assert!(matches!(status(None).unwrap(), StepState::Differs(_)));
        std::fs::write(&path, "nonsense").unwrap();
        assert!(matches!(status(None), Err(LocalError::HelperPolicy { .. })));
    }
}
