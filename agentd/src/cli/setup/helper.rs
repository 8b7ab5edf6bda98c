//! The root helper's policy, its folder and the units, where the package has laid them: `setup` fits them to this box.
//!
//! What comes in: the choices, and what lies on the box. What goes out: steps. The policy names the agent's user and no
//! disk: which disks are mounted is root's to add, and what root wrote there is never replaced. Deliberately absent:
//! starting the agent; it has no identity before it is enrolled.

use std::path::{Path, PathBuf};

use super::local::{LocalAct, LocalError, LocalStep, owner};
use super::plan::Choices;
use super::settle::Standing;
use crate::port::atomic_file;

/// Where the package puts it.
const PROGRAM: &str = "/usr/lib/holdfast/holdfast-helper";
/// Where the helper mounts.
const MOUNTS: &str = "/mnt/holdfast";
const BYTES_MAX: u64 = 64 * 1024;
const UNITS: &str = "/usr/lib/systemd/system";
const WANTED: &str = "/etc/systemd/system";

/// A unit of the package that runs from boot on.
struct Unit {
    name: &'static str,
    target: &'static str,
    /// Whether it runs at once; the agent waits for its enrolment.
    now: Now,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Now {
    Start,
    Later,
}

const ENABLED: [Unit; 3] = [
    Unit { name: "holdfast-golden.socket", target: "sockets.target", now: Now::Start },
    Unit { name: "holdfast-helper.socket", target: "sockets.target", now: Now::Start },
    Unit { name: "agentd.service", target: "multi-user.target", now: Now::Later },
];

/// What `setup` makes of them.
///
/// # Errors
/// When a policy lies there that cannot be read.
pub fn steps(choices: &Choices) -> Result<Vec<LocalStep>, LocalError> {
    let Some(user) = &choices.system_user else { return Ok(Vec::new()) };
    if !Path::new(PROGRAM).exists() {
        return Ok(Vec::new());
    }
    let standing = if Path::new(MOUNTS).is_dir() { Standing::Done } else { Standing::Missing };
    let what = format!("folder {MOUNTS}, root's alone");
    let mut steps = vec![LocalStep { what, standing, act: LocalAct::OpenFolder(MOUNTS.into()) }];
    steps.push(policy(&file(choices), user)?);
    for unit in ENABLED.iter().filter(|unit| Path::new(UNITS).join(unit.name).exists()) {
        let standing = if is_wanted(unit) { Standing::Done } else { Standing::Missing };
        let words: &[&str] = match unit.now {
            Now::Start => &["systemctl", "enable", "--now", unit.name],
            Now::Later => &["systemctl", "enable", unit.name],
        };
        steps.push(command(format!("unit {}, from boot on", unit.name), standing, words));
    }
    Ok(steps)
}

/// What `--remove` stops before anything is taken away.
#[must_use]
pub fn stopping(choices: &Choices) -> Vec<LocalStep> {
    let ours = choices.system_user.is_some();
    let enabled = ENABLED.iter().filter(|unit| ours && unit.now == Now::Later && is_wanted(unit));
    enabled
        .map(|unit| {
            let words = ["systemctl", "disable", "--now", unit.name];
            command(format!("unit {}, stopped", unit.name), Standing::Differs("it is enabled"), &words)
        })
        .collect()
}

/// The policy, where it is still what `setup` wrote: with disks in it, it is root's own.
#[must_use]
pub fn removable(choices: &Choices) -> Option<PathBuf> {
    let uid = owner(choices.system_user.as_ref()?)?.uid;
    let file = file(choices);
    (std::fs::read_to_string(&file).ok()? == text(uid)).then_some(file)
}

/// Where the helper reads it.
#[must_use]
pub fn file(choices: &Choices) -> PathBuf {
    choices.config.with_file_name("helper.toml")
}

fn command(what: String, standing: Standing, words: &[&str]) -> LocalStep {
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    LocalStep { what, standing, act: LocalAct::Command(words) }
}

fn is_wanted(unit: &Unit) -> bool {
    Path::new(WANTED).join(format!("{}.wants", unit.target)).join(unit.name).symlink_metadata().is_ok()
}

fn policy(path: &Path, user: &str) -> Result<LocalStep, LocalError> {
    let standing = match atomic_file::read(path, BYTES_MAX)? {
        None => Standing::Missing,
        Some(bytes) => {
            let there = String::from_utf8_lossy(&bytes);
            match (caller(&there), owner(user)) {
                (None, _) => return Err(LocalError::HelperPolicy { path: path.to_owned() }),
                (Some(uid), Some(owner)) if uid == owner.uid => Standing::Done,
                _ => Standing::Differs("it lets in another user: the number is put right, the rest stays"),
            }
        }
    };
    let what = format!("the root helper's policy {}, for the user {user}", path.display());
    Ok(LocalStep { what, standing, act: LocalAct::HelperPolicy { path: path.to_owned() } })
}

fn caller(text: &str) -> Option<u32> {
    text.parse::<toml::Table>().ok()?.get("caller_uid")?.as_integer()?.try_into().ok()
}

/// What is to lie there for this user: a new policy without disks, or the old one with the right number.
#[must_use]
pub fn fitted(there: Option<&str>, uid: u32) -> String {
    let Some(there) = there else { return text(uid) };
    let line = |line: &str| match line.split_once('=') {
        Some((key, _)) if key.trim() == "caller_uid" => format!("caller_uid = {uid}\n"),
        _ => format!("{line}\n"),
    };
    there.lines().map(line).collect()
}

fn text(uid: u32) -> String {
    format!(
        "# What the root helper may do on this box. Root adds the disks that it may mount, one [[target]] each:\n\
         # /usr/share/doc/holdfast-agent/examples/helper.toml shows how. Changes count from the next call on.\n\
         caller_uid = {uid}\ntransports = [\"usb\", \"sata\"]\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_root_wrote_stays_and_the_users_number_is_put_right() {
        assert_eq!(caller(&text(995)), Some(995));
        let mine = "caller_uid=990\ntransports = [\"usb\"]\n# my disk\n[[target]]\nname = \"usb1\"\n";
        let fitted = fitted(Some(mine), 995);
        assert_eq!(fitted, mine.replace("caller_uid=990", "caller_uid = 995"));
        assert_eq!(caller("nonsense"), None);
        assert_eq!(caller("caller_uid = -1"), None);
    }

    #[test]
    fn a_policy_is_made_kept_or_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("helper.toml");
        assert_eq!(policy(&path, "root").unwrap().standing, Standing::Missing);
        std::fs::write(&path, text(0)).unwrap();
        assert_eq!(policy(&path, "root").unwrap().standing, Standing::Done);
        std::fs::write(&path, text(7)).unwrap();
        assert!(matches!(policy(&path, "root").unwrap().standing, Standing::Differs(_)));
        std::fs::write(&path, "nonsense").unwrap();
        assert!(matches!(policy(&path, "root"), Err(LocalError::HelperPolicy { .. })));
    }
}
