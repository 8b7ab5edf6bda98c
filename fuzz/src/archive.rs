//! Fuzzed configurations inside archives.
//!
//! The second reader does what Proxmox does. It goes line by line and skips what cannot be read. Of two values it takes
//! the last. A section begins only at a whole `[name]`. Any difference between the two readings is a way to attack.

use std::collections::BTreeMap;

use holdfast_protocol::id::GuestUid;
use holdfast_protocol::size::DiskGib;
use regex::bytes::Regex;

use crate::gate::archive::{Lines, Nets, judge_backup, judge_golden, judge_made};
use crate::gate::layout::layout;

/// One input.
///
/// # Panics
/// When what passes is not harmless.
pub fn target(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let lines = match Lines::read(text) {
        Ok(lines) => lines,
        Err(error) => return assert!(error.to_string().len() < 4_000),
    };
    let uid: GuestUid = "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55".parse().expect("a uid");
    let golden = judge_golden(&lines, DiskGib::MAX).is_ok();
    let own = judge_backup(&lines, uid, Nets::First).is_ok();
    let copied = judge_backup(&lines, uid, Nets::Rewritten).is_ok();
    assert!(!own || copied, "the narrower rule lets more pass");
    if !(golden || copied) {
        return;
    }
    let seen = Proxmox::read(data);
    assert_eq!(seen.raw, Vec::<String>::new(), "raw lines pass");
    assert_eq!(seen.keys.get("unprivileged").map(String::as_str), Some("1"), "it is privileged");
    for (key, value) in &seen.keys {
        harmless(key, value);
        let first_only = golden || own;
        assert!(!first_only || !key.starts_with("net") || key == "net0", "{key} stays as it is");
        assert!(!golden || !key.starts_with("mp") && !key.starts_with("unused"), "a golden with {key}");
        assert_eq!(
            lines.get(key).map(|line| line.value.as_str()),
            Some(value.as_str()),
            "{key} reads in two ways"
        );
    }
    assert_eq!(lines.iter().count(), seen.keys.len(), "a line is lost or made up");
    let bridge = "vmbr0".parse().expect("a bridge");
    if judge_made(&seen.keys, &[], &bridge).is_ok() {
        let nets = seen.keys.iter().filter(|(key, _)| key.starts_with("net"));
        assert!(nets.into_iter().all(|(_, net)| net.split(',').any(|part| part == "bridge=vmbr0")));
    }
    if let Ok(layout) = layout(&lines) {
        let count = |stem: &str| {
            seen.keys.keys().filter(|key| key.starts_with(stem) && !key.starts_with("nets")).count()
        };
        let nets = seen
            .keys
            .keys()
            .filter(|key| key.strip_prefix("net").is_some_and(|n| n.parse::<u8>().is_ok()))
            .count();
        assert_eq!(layout.nets.len(), nets);
        assert!(layout.mounts.len() + layout.left_out.len() <= count("mp"));
        for mount in layout.mounts.values() {
            assert!(mount.path.as_str().split('/').all(|part| part != ".."));
        }
    }
}

fn harmless(key: &str, value: &str) {
    for stem in [
        "dev",
        "hookscript",
        "entrypoint",
        "lock",
        "template",
        "parent",
        "snapstate",
        "args",
        "delete",
        "env",
    ] {
        assert!(!key.starts_with(stem), "{key}: {value}");
    }
    assert!(
        key != "features" || !["mount", "mknod", "fuse", "force"].iter().any(|flag| value.contains(flag)),
        "{value}"
    );
    if key == "rootfs" || key.starts_with("mp") || key.starts_with("unused") {
        for part in value.split(',') {
            let (name, rest) = part.split_once('=').unwrap_or(("volume", part));
            assert!(
                name != "volume"
                    || !rest.starts_with('/') && !rest.split(['/', ':']).any(|part| part == ".."),
                "{key}: {value}"
            );
            assert!(
                name != "mp" || rest.starts_with('/') && !rest.split('/').any(|part| part == ".."),
                "{key}: {value}"
            );
        }
    }
}

/// The main section, as Proxmox reads it.
#[derive(Default)]
struct Proxmox {
    keys: BTreeMap<String, String>,
    raw: Vec<String>,
}

impl Proxmox {
    fn read(text: &[u8]) -> Self {
        let of = |pattern: &str| Regex::new(&format!("(?-u){pattern}")).expect("a pattern");
        let (blank, section) = (of(r"^\s*$"), of(r"^\[(?i:pve:pending|[a-z][a-z0-9_\-]+)\]\s*$"));
        let raw = of(r"^(lxc\.[a-z0-9_\-\.]+)(:|\s*=)\s*(.*?)\s*$");
        let pair = of(r"^([a-z][a-z_]*\d*):\s*(.+?)\s*$");
        let word = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut seen = Self::default();
        for line in text.split(|byte| *byte == b'\n') {
            if blank.is_match(line) || line.first() == Some(&b'#') {
                continue;
            }
            if section.is_match(line) {
                break;
            }
            if let Some(found) = raw.captures(line) {
                if &found[1] != b"lxc.environment.runtime" {
                    seen.raw.push(word(line));
                }
            } else if let Some(found) = pair.captures(line) {
                seen.keys.insert(word(&found[1]), word(&found[2]));
            }
        }
        seen
    }
}
