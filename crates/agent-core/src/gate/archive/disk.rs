//! Allowed values of `rootfs`, `mpN` and `unusedN`.
//!
//! Proxmox takes the volume of such a line at any place, with or without its name before it. Here it comes first and
//! without a name, as it is written, so that no path of the host is overlooked.

/// What is refused about a disk's line.
pub(super) fn refusal(key: &str, value: &str) -> Option<&'static str> {
    let mut parts = value.split(',');
    if let Some(why) = volume(parts.next().unwrap_or_default()) {
        return Some(why);
    }
    let mut seen: Vec<&str> = Vec::new();
    for part in parts {
        let Some((name, value)) = part.split_once('=') else {
            return Some("its volume does not stand first, or it stands there twice");
        };
        if seen.contains(&name) {
            return Some("one of its options stands twice");
        }
        seen.push(name);
        let fine = match name {
            "size" => bytes_of(value).is_some(),
            "mp" => key != "rootfs" && is_mount(value),
            "backup" => key != "rootfs" && is_flag(value),
            "acl" | "quota" | "replicate" | "ro" | "shared" | "keepattrs" => is_flag(value),
            "mountoptions" => value
                .split(';')
                .all(|one| ["discard", "lazytime", "noatime", "nodev", "noexec", "nosuid"].contains(&one)),
            _ => return Some("this agent does not know one of its options"),
        };
        if !fine {
            return Some("one of its options has a value that is not taken");
        }
    }
    None
}

/// `storage:name`, and nothing that is or could become a path of the host.
fn volume(text: &str) -> Option<&'static str> {
    if text.starts_with('/') || text.starts_with("volume=") {
        return Some("a guest never sees a path or a device of the host");
    }
    let Some((storage, name)) = text.split_once(':') else {
        return Some("it names no volume of a storage");
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if !storage.starts_with(|c: char| c.is_ascii_alphabetic()) || !storage.chars().all(plain) {
        return Some("it names no volume of a storage");
    }
    if name.is_empty() || name.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return Some("it names a request for a volume and none that was made");
    }
    let parts = |part: &str| !part.is_empty() && part != "." && part != ".." && part.chars().all(plain);
    (!name.split('/').all(parts)).then_some("the name of its volume leads elsewhere")
}

fn is_flag(value: &str) -> bool {
    matches!(value, "0" | "1")
}

fn is_mount(path: &str) -> bool {
    path.strip_prefix('/')
        .is_some_and(|rest| rest.split('/').all(|part| !part.is_empty() && part != "." && part != ".."))
}

/// What a disk's line says of its size.
pub(in crate::gate) fn disk_bytes(value: &str) -> Option<u64> {
    bytes_of(value.split(',').find_map(|part| part.strip_prefix("size="))?)
}

fn bytes_of(size: &str) -> Option<u64> {
    const UNITS: [(char, u32); 4] = [('K', 10), ('M', 20), ('G', 30), ('T', 40)];
    let with_unit = UNITS.iter().find_map(|(unit, shift)| Some((size.strip_suffix(*unit)?, *shift)));
    let (digits, shift) = with_unit.unwrap_or((size, 0));
    // A sign is no digit, although the parser takes one.
    let plain = digits.bytes().all(|b| b.is_ascii_digit());
    digits.parse::<u64>().ok().filter(|_| plain)?.checked_mul(1 << shift)
}
