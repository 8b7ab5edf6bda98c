//! Detection of programs that run from replaced files.
//!
//! In: the maps of each process, and `/run/reboot-required`, which packages write. Out: names of programs. Processes of another
//! root, those of containers, are not this guest's packages' affair. Bounded: so many processes, so much of each.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use holdfast_protocol::local::hello::{PROGRAMS_MAX, RestartNeeded};
use tokio::time::Instant;

use crate::paths::Paths;

/// Between two checks for the hello.
const EACH: Duration = Duration::from_secs(600);

/// More processes than this are not looked at.
const PROCESSES_MAX: usize = 4_096;

/// A process with thousands of libraries has a longer list; its beginning is enough.
const MAPS_BYTES_MAX: u64 = 512 * 1024;

/// A kernel's name of a program has 15.
const NAME_BYTES_MAX: u64 = 64;

/// Where packages put what is run.
const PACKAGED: [&str; 5] = ["/usr/", "/lib/", "/lib64/", "/bin/", "/sbin/"];

/// The last result, for callers that check often.
#[derive(Debug, Default)]
pub struct Watch {
    seen: Option<(Instant, Option<RestartNeeded>)>,
}

impl Watch {
    /// As it was seen within the last ten minutes.
    pub fn needed(&mut self, paths: &Paths) -> Option<RestartNeeded> {
        if let Some((at, needed)) = &self.seen
            && at.elapsed() < EACH
        {
            return needed.clone();
        }
        let needed = needed(paths);
        self.seen = Some((Instant::now(), needed.clone()));
        needed
    }
}

/// Checks. None where nothing waits for a restart.
pub fn needed(paths: &Paths) -> Option<RestartNeeded> {
    let programs: Vec<String> = outdated(paths).into_iter().take(PROGRAMS_MAX).collect();
    let asked = paths.inside(Path::new("/run/reboot-required")).exists();
    (asked || !programs.is_empty()).then_some(RestartNeeded { programs })
}

pub fn line(needed: &RestartNeeded) -> String {
    match needed.programs.is_empty() {
        true => "a package requires a restart of the guest (/run/reboot-required)".to_owned(),
        false => format!("programs that run from replaced files: {}", needed.programs.join(", ")),
    }
}

fn outdated(paths: &Paths) -> BTreeSet<String> {
    let processes = paths.inside(Path::new("/proc"));
    let root = root_of(&processes.join("1"));
    let entries = std::fs::read_dir(&processes).into_iter().flatten().flatten();
    let folders = entries.map(|entry| entry.path()).filter(|path| is_process(path)).take(PROCESSES_MAX);
    let outdated = folders.filter(|folder| {
        root_of(folder) == root && text(&folder.join("maps"), MAPS_BYTES_MAX).lines().any(is_replaced)
    });
    outdated.map(|folder| text(&folder.join("comm"), NAME_BYTES_MAX)).map(|name| plain(&name)).collect()
}

fn is_process(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit))
}

/// Which root directory a process has; none where it cannot be read.
fn root_of(folder: &Path) -> Option<(u64, u64)> {
    let about = std::fs::metadata(folder.join("root")).ok()?;
    Some((about.dev(), about.ino()))
}

/// The beginning of a file of the kernel's; nothing where it is gone.
fn text(path: &Path, max: u64) -> String {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(max).read_to_end(&mut bytes));
    if read.is_err() {
        return String::new();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Programs choose their own names.
fn plain(name: &str) -> String {
    let name: String = name.trim().chars().filter(|c| c.is_ascii_graphic()).take(32).collect();
    if name.is_empty() { "a program without a name".to_owned() } else { name }
}

/// Whether a line of `maps` is of code whose file is not there any more: `address perms offset device inode path`.
fn is_replaced(line: &str) -> bool {
    let Some(line) = line.strip_suffix(" (deleted)") else { return false };
    let mut words = line.split_ascii_whitespace();
    let (perms, path) = (words.nth(1).unwrap_or_default(), words.nth(3).unwrap_or_default());
    perms.contains('x') && PACKAGED.iter().any(|folder| path.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const OLD: &str = "7f00-7f10 r-xp 00001000 08:01 123   /usr/lib/x86_64-linux-gnu/libssl.so.3 (deleted)\n";

    #[test]
    fn only_code_of_packages_that_was_replaced_counts() {
        assert!(is_replaced(OLD.trim_end()));
        for line in [
            "7f00-7f10 r-xp 00001000 08:01 123   /usr/lib/x86_64-linux-gnu/libssl.so.3",
            "7f00-7f10 r--p 00001000 08:01 123   /usr/share/x (deleted)",
            "7f00-7f10 rwxp 00000000 00:01 123   /memfd:jit (deleted)",
            "7f00-7f10 r-xp 00000000 08:01 123   /tmp/own (deleted)",
            "7f00-7f10 r-xp 00000000 00:00 0 ",
            "",
        ] {
            assert!(!is_replaced(line), "{line}");
        }
    }

    #[test]
    fn programs_are_named_once_and_containers_are_not_asked() {
        let guest = tempfile::tempdir().unwrap();
        let paths = Paths::new(guest.path());
        assert_eq!(needed(&paths), None);
        for folder in ["own", "container", "run"] {
            fs::create_dir_all(guest.path().join(folder)).unwrap();
        }
        let process = |pid: u32, name: &str, root: &str, maps: &str| {
            let folder = guest.path().join(format!("proc/{pid}"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("comm"), format!("{name}\n")).unwrap();
            fs::write(folder.join("maps"), maps).unwrap();
            std::os::unix::fs::symlink(guest.path().join(root), folder.join("root")).unwrap();
        };
        process(1, "systemd", "own", "");
        process(20, "sshd", "own", OLD);
        process(21, "sshd", "own", OLD);
        process(30, "app", "container", OLD);
        process(40, "c\u{1b}[2Jron", "own", OLD);
        let found = needed(&paths).unwrap();
        assert_eq!(found.programs, ["c[2Jron", "sshd"]);
        fs::remove_dir_all(guest.path().join("proc")).unwrap();
        fs::write(guest.path().join("run/reboot-required"), "").unwrap();
        assert!(line(&needed(&paths).unwrap()).contains("/run/reboot-required"));
    }
}
