//! Which systemd a guest starts, and whether it may need nesting.
//!
//! In: a guest's values and its root folder. Out: the warning of the real start, or nothing. The version is read from the name of the shared
//! library that `/sbin/init` is linked with. Links are followed inside the root folder only, because its content may be hostile.
use std::collections::VecDeque;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::config::Section;
use crate::schema::property;
use crate::schema::table::Table;

/// The last version that does without.
const WITHOUT_NESTING: u32 = 241;
/// How many links are followed.
const LINKS_MAX: usize = 40;
/// How much of the program is read; the real one has some hundred kilobytes.
const PROGRAM_BYTES_MAX: u64 = 8 << 20;

#[must_use]
pub fn warning(table: &Table, main: &Section, root: &Path) -> Option<String> {
    let features = main.get("features").zip(table.format("features"));
    let features =
        features.and_then(|(text, format)| property::parse(table, format, text).ok()).unwrap_or_default();
    let nests = features.get("nesting").is_some_and(|value| value == "1");
    if nests || main.get("ostype") == Some("unmanaged") {
        return None;
    }
    let version = version(root)?;
    (version > WITHOUT_NESTING)
        .then(|| format!("Systemd {version} detected. You may need to enable nesting."))
}

/// The version of the systemd behind `/sbin/init`.
fn version(root: &Path) -> Option<u32> {
    let init = resolve(root, "/sbin/init")?;
    if init.file_name()? != "systemd" {
        return None;
    }
    let mut bytes = Vec::new();
    std::fs::File::open(init).ok()?.take(PROGRAM_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    let name = b"libsystemd-shared-";
    let at = bytes.windows(name.len()).position(|window| window == name)?;
    let rest = bytes.get(at + name.len()..)?;
    let digits: String =
        rest.iter().take_while(|byte| byte.is_ascii_digit()).map(|byte| char::from(*byte)).collect();
    digits.parse().ok()
}

/// The file at a path of the guest, all links followed inside its root.
fn resolve(root: &Path, path: &str) -> Option<PathBuf> {
    let mut at = PathBuf::new();
    let mut rest: VecDeque<String> = parts(path);
    let mut links = 0;
    while let Some(part) = rest.pop_front() {
        if part == ".." {
            at.pop();
            continue;
        }
        let here = root.join(&at).join(&part);
        match std::fs::read_link(&here) {
            Ok(target) if links < LINKS_MAX => {
                links += 1;
                let target = target.to_str()?.to_owned();
                if target.starts_with('/') {
                    at = PathBuf::new();
                }
                parts(&target).into_iter().rev().for_each(|part| rest.push_front(part));
            }
            Ok(_) => return None,
            Err(_) => at.push(part),
        }
    }
    let found = root.join(at);
    found.symlink_metadata().is_ok_and(|meta| meta.is_file()).then_some(found)
}

fn parts(path: &str) -> VecDeque<String> {
    path.split('/').filter(|part| !part.is_empty() && *part != ".").map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_linked_systemd_is_found_and_weighed() {
        let dir = tempfile::tempdir().expect("folder");
        let root = dir.path();
        std::fs::create_dir_all(root.join("usr/lib/systemd")).expect("folders");
        std::fs::create_dir_all(root.join("usr/sbin")).expect("folders");
        symlink("usr/sbin", root.join("sbin")).expect("link");
        symlink("/usr/lib", root.join("lib")).expect("link");
        symlink("../lib/systemd/systemd", root.join("usr/sbin/init")).expect("link");
        std::fs::write(root.join("usr/lib/systemd/systemd"), b"\x7fELF libsystemd-shared-257.so\0")
            .expect("file");
        let table = Table::committed().expect("table");
        let mut main = Section::default();
        let said = warning(&table, &main, root);
        assert_eq!(said.as_deref(), Some("Systemd 257 detected. You may need to enable nesting."));
        main.set("features", "nesting=1,keyctl=1");
        assert_eq!(warning(&table, &main, root), None);
    }

    #[test]
    fn a_link_does_not_lead_out() {
        let dir = tempfile::tempdir().expect("folder");
        let root = dir.path().join("root");
        std::fs::create_dir_all(root.join("sbin")).expect("folders");
        std::fs::write(dir.path().join("systemd"), b"libsystemd-shared-257.so").expect("file");
        symlink("../../systemd", root.join("sbin/init")).expect("link");
        assert_eq!(version(&root), None);
        std::fs::remove_file(root.join("sbin/init")).expect("removal");
        symlink("init", root.join("sbin/init")).expect("link");
        assert_eq!(version(&root), None);
    }
}
