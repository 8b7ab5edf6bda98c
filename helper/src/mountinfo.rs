//! Mount table of the kernel.
//!
//! It is read before a mount, to verify that the helper runs in the mount namespace of the host, and after it.

use crate::procfs;
use crate::reply::{Refusal, refusal};
use crate::request::Verb;

const OWN: &str = "/proc/self/mountinfo";
const HOSTS: &str = "/proc/1/mountinfo";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub id: u64,
    /// `major:minor` of the file system's device.
    pub device: String,
    /// What of the file system is mounted; `/` when it is the whole.
    pub root: String,
    pub point: String,
    pub options: Vec<String>,
    pub filesystem: String,
    pub source: String,
}

/// All mounts that this process sees.
pub fn own() -> Result<Vec<Entry>, Refusal> {
    parse(&procfs::read(OWN)?)
}

/// Refuses to work in a mount namespace of our own: what is mounted there is not seen by other processes, and Proxmox would
/// write its backups to the root disk beneath. Two namespaces never share the number of a mount. The
/// builder's service is sandboxed, and its mounts are private on purpose.
pub fn require_host_namespace(verb: Option<Verb>) -> Result<(), Refusal> {
    let roots = |entries: Vec<Entry>| -> Vec<u64> {
        entries.iter().filter(|entry| entry.point == "/").map(|entry| entry.id).collect()
    };
    let own = roots(own()?);
    if verb == Some(Verb::GoldenBuild) || !own.is_empty() && own == roots(parse(&procfs::read(HOSTS)?)?) {
        return Ok(());
    }
    Err(refusal!(Env, "the helper runs in a private mount namespace: correct its unit"))
}

fn parse(text: &str) -> Result<Vec<Entry>, Refusal> {
    let entries: Option<Vec<Entry>> = text.lines().map(entry).collect();
    entries.ok_or_else(|| refusal!(Env, "/proc/self/mountinfo has an unknown format"))
}

fn entry(line: &str) -> Option<Entry> {
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ');
    let id = left.next()?.parse().ok()?;
    let (_parent, device) = (left.next()?, left.next()?.to_owned());
    let (root, point) = (unescaped(left.next()?)?, unescaped(left.next()?)?);
    let options = left.next()?.split(',').map(str::to_owned).collect();
    let mut right = right.split(' ');
    let (filesystem, source) = (right.next()?.to_owned(), unescaped(right.next()?)?);
    Some(Entry { id, device, root, point, options, filesystem, source })
}

/// Blanks, tabs, line ends and backslashes are written there as three octal digits.
fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut parts = text.split('\\');
    bytes.extend(parts.next()?.bytes());
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..3)?, 8).ok()?);
        bytes.extend(part.get(3..)?.bytes());
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_lines_parse() {
        let line = r"36 35 98:0 /a /mnt/hold\040fast\134/x rw,nosuid,noatime master:1 shared:7 - ext4 /dev/s\012db1 rw,errors=continue";
        let entry = entry(line).unwrap();
        assert_eq!((entry.id, entry.device.as_str(), entry.root.as_str()), (36, "98:0", "/a"));
        assert_eq!((entry.point.as_str(), entry.source.as_str()), ("/mnt/hold fast\\/x", "/dev/s\ndb1"));
        assert_eq!(entry.options, ["rw", "nosuid", "noatime"]);
        let deleted = r"36 35 98:0 / /mnt/holdfast/a//deleted rw - ext4 /dev/sdb1 rw";
        assert_eq!(super::entry(deleted).unwrap().point, "/mnt/holdfast/a//deleted", "never cut");
    }

    #[test]
    fn unknown_forms_are_errors() {
        for bad in [
            "",
            "36",
            "x 35 98:0 / / rw - ext4 a rw",
            r"36 35 98:0 / /a\9 rw - ext4 a rw",
            "36 35 98:0 / / rw ext4 a rw",
        ] {
            assert!(entry(bad).is_none(), "{bad}");
        }
        assert!(parse(&std::fs::read_to_string(OWN).unwrap()).is_ok());
    }
}
