//! The copy of a volume.
//!
//! In: two places. Out: the second is as the first. What is plain (folders, files and links of this user, without attributes) is copied
//! here; for anything else the program `cp` is started, which knows how.
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};

use crate::fail::{Fallible, Refusal, host};

/// Copies a folder.
///
/// # Errors
/// When something cannot be read or written, or the copying program fails.
pub fn copy_tree(from: &Path, to: &Path) -> Fallible<()> {
    let failed = |error: &io::Error| host("copy of a volume", error);
    if all_plain(from).map_err(|error| failed(&error))? {
        copy_plain(from, to).map_err(|error| failed(&error))
    } else {
        with_cp(from, to)
    }
}

/// Whether nothing below needs more than the standard library can copy.
fn all_plain(path: &Path) -> io::Result<bool> {
    let meta = path.symlink_metadata()?;
    let kind = meta.file_type();
    let ours = meta.uid() == rustix::process::geteuid().as_raw()
        && meta.gid() == rustix::process::getegid().as_raw();
    let known = kind.is_dir() || kind.is_symlink() || (kind.is_file() && meta.nlink() == 1);
    if !ours || !known || has_attributes(path)? {
        return Ok(false);
    }
    if kind.is_dir() {
        for entry in std::fs::read_dir(path)? {
            if !all_plain(&entry?.path())? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn has_attributes(path: &Path) -> io::Result<bool> {
    match rustix::fs::llistxattr(path, &mut [] as &mut [u8]) {
        Ok(bytes) => Ok(bytes > 0),
        Err(rustix::io::Errno::NOTSUP) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn copy_plain(from: &Path, to: &Path) -> io::Result<()> {
    let meta = from.symlink_metadata()?;
    if meta.is_dir() {
        std::fs::create_dir(to)?;
        for entry in std::fs::read_dir(from)? {
            let entry = entry?;
            copy_plain(&entry.path(), &to.join(entry.file_name()))?;
        }
        std::fs::set_permissions(to, meta.permissions())?;
    } else if meta.is_symlink() {
        std::os::unix::fs::symlink(std::fs::read_link(from)?, to)?;
    } else {
        std::fs::copy(from, to)?;
    }
    keep_times(to, &meta)
}

fn keep_times(path: &Path, of: &Metadata) -> io::Result<()> {
    let times = Timestamps {
        last_access: Timespec { tv_sec: of.atime(), tv_nsec: of.atime_nsec() },
        last_modification: Timespec { tv_sec: of.mtime(), tv_nsec: of.mtime_nsec() },
    };
    Ok(utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

fn with_cp(from: &Path, to: &Path) -> Fallible<()> {
    #[expect(
        clippy::disallowed_methods,
        reason = "cp keeps owners, attributes and device nodes, which the standard library does not"
    )]
    let output = std::process::Command::new("cp")
        .args(["-a", "--reflink=auto", "-T", "--"])
        .arg(from)
        .arg(to)
        .output();
    let output = output.map_err(|error| host("start of cp", &error))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(Refusal::die(format!("copy failed: {}", String::from_utf8_lossy(&output.stderr).trim_end())))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_plain_tree_is_copied_as_cp_would() {
        let folder = tempfile::tempdir().expect("a folder");
        let from = folder.path().join("from");
        std::fs::create_dir_all(from.join("a/b")).expect("made");
        std::fs::write(from.join("a/b/file"), "text").expect("written");
        std::fs::set_permissions(from.join("a/b/file"), std::fs::Permissions::from_mode(0o4750))
            .expect("set");
        std::fs::set_permissions(from.join("a/b"), std::fs::Permissions::from_mode(0o500)).expect("set");
        std::os::unix::fs::symlink("../nowhere", from.join("a/link")).expect("linked");
        assert!(all_plain(&from).expect("looked"));
        let (here, there) = (folder.path().join("here"), folder.path().join("there"));
        copy_tree(&from, &here).expect("copied");
        with_cp(&from, &there).expect("copied");
        for name in ["a", "a/b", "a/b/file", "a/link"] {
            let of = |base: &Path| {
                let meta = base.join(name).symlink_metadata().expect(name);
                (meta.mode(), meta.mtime(), meta.mtime_nsec(), meta.uid(), meta.size())
            };
            let name_of = |base: &Path| std::fs::read_link(base.join(name)).ok();
            assert_eq!(of(&here), of(&there), "{name}");
            assert_eq!(name_of(&here), name_of(&there), "{name}");
        }
        for base in [&from, &here, &there] {
            std::fs::set_permissions(base.join("a/b"), std::fs::Permissions::from_mode(0o700)).expect("set");
        }
    }

    #[test]
    fn two_names_of_one_file_are_left_to_cp() {
        let folder = tempfile::tempdir().expect("a folder");
        let from = folder.path().join("from");
        std::fs::create_dir(&from).expect("made");
        std::fs::write(from.join("one"), "text").expect("written");
        std::fs::hard_link(from.join("one"), from.join("two")).expect("linked");
        assert!(!all_plain(&from).expect("looked"));
        let to = folder.path().join("to");
        copy_tree(&from, &to).expect("copied");
        assert_eq!(to.join("two").metadata().expect("there").nlink(), 2);
    }
}
