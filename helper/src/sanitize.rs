//! Process clean-up: a fixed state whatever the caller left.
//!
//! What cannot be corrected is refused.
//!
//! The environment and odd arguments are shed by running the program a second time with none, which needs no `unsafe`
//! and leaves not even the text in memory. Inherited descriptors are refused, not closed: both entry points pass 0 to 2
//! alone, so more of them means another caller.

use std::ffi::OsString;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;

use rustix::fs::{Dir, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Resource, Rlimit};

use crate::procfs;
use crate::reply::{Refusal, refusal};
use crate::request::Verb;

/// Far more than the helper ever has open.
const DESCRIPTORS: u64 = 32;
const OWN_PROGRAM: &str = "/proc/self/exe";

/// Cleans the process; gives the verb that the caller named as its argument, if any.
pub fn process() -> Result<Option<Verb>, Refusal> {
    let verb = argument(std::env::args_os().collect())?;
    procfs::require_kernel_procfs()?;
    require_real_root()?;
    require_root_program(OWN_PROGRAM)?;
    limits()?;
    require_standard_descriptors()?;
    must("go to /", rustix::process::chdir("/"))?;
    rustix::process::umask(Mode::from_raw_mode(0o077));
    must("give up gaining privileges", rustix::thread::set_no_new_privs(true))?;
    drop_environment(verb)?;
    let hidden = DumpableBehavior::NotDumpable;
    must("hide its memory", rustix::process::set_dumpable_behavior(hidden))?;
    Ok(verb)
}

/// No argument, or exactly one known verb. The program's own name is ignored, but it must be there.
fn argument(arguments: Vec<OsString>) -> Result<Option<Verb>, Refusal> {
    let refused = || refusal!(Argv, "the only argument allowed is a verb of the helper");
    let mut arguments = arguments.into_iter();
    if arguments.next().is_none_or(|name| name.is_empty()) {
        return Err(refused());
    }
    match (arguments.next(), arguments.next()) {
        (None, _) => Ok(None),
        (Some(word), None) => word.to_str().and_then(Verb::named).map(Some).ok_or_else(refused),
        (Some(_), Some(_)) => Err(refused()),
    }
}

/// Real root, of the machine and not of a user namespace.
fn require_real_root() -> Result<(), Refusal> {
    if !rustix::process::getuid().is_root() || !rustix::process::geteuid().is_root() {
        return Err(refusal!(Caps, "the helper must be started as root, by its socket or by sudo"));
    }
    let map = procfs::read("/proc/self/uid_map")?;
    if map.split_whitespace().eq(["0", "0", "4294967295"]) {
        return Ok(());
    }
    Err(refusal!(Caps, "root of a user namespace is not root of this machine: start the helper outside"))
}

/// A program's file is root's alone and still there.
pub fn require_root_program(file: &str) -> Result<(), Refusal> {
    let stat = must("look at a program's file", rustix::fs::stat(file))?;
    if stat.st_uid == 0 && stat.st_mode & 0o022 == 0 && stat.st_nlink > 0 {
        return Ok(());
    }
    Err(refusal!(Env, "{file} is writable by others or was replaced: reinstall the helper"))
}

/// No core dump; of what the caller made small, as much as it may give back.
fn limits() -> Result<(), Refusal> {
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    must("forbid core dumps", rustix::process::setrlimit(Resource::Core, none))?;
    for resource in [Resource::Nofile, Resource::Fsize, Resource::Cpu] {
        let Rlimit { maximum, .. } = rustix::process::getrlimit(resource);
        let lifted = Rlimit { current: maximum, maximum };
        must("lift a limit of the caller's", rustix::process::setrlimit(resource, lifted))?;
    }
    match rustix::process::getrlimit(Resource::Nofile).maximum {
        Some(most) if most < DESCRIPTORS => Err(refusal!(Env, "the limit of {most} open files is too low")),
        _ => Ok(()),
    }
}

fn require_standard_descriptors() -> Result<(), Refusal> {
    let what = "list the open descriptors";
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = must(what, rustix::fs::open("/proc/self/fd", flags, Mode::empty()))?;
    let own = folder.as_raw_fd();
    let mut inherited = 0_usize;
    for entry in must(what, Dir::new(folder))? {
        let number = must(what, entry)?.file_name().to_str().ok().and_then(|name| name.parse::<i32>().ok());
        inherited += usize::from(number.is_some_and(|number| number > 2 && number != own));
    }
    if inherited == 0 {
        return Ok(());
    }
    Err(refusal!(Env, "{inherited} descriptors were inherited: the caller must close all but 0, 1 and 2"))
}

/// Executes the program again without environment variables, unless there are none.
fn drop_environment(verb: Option<Verb>) -> Result<(), Refusal> {
    if std::env::vars_os().next().is_none() {
        return Ok(());
    }
    #[expect(clippy::disallowed_methods, reason = "itself, in its own place, to shed the environment")]
    let mut again = std::process::Command::new(OWN_PROGRAM);
    again.arg0("holdfast-helper").args(verb.map(Verb::as_str)).env_clear();
    let error = again.exec();
    Err(refusal!(Env, "cannot execute itself with an empty environment: {error}"))
}

fn must<T>(what: &str, result: Result<T, Errno>) -> Result<T, Refusal> {
    result.map_err(|error| refusal!(Env, "the helper cannot {what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::Code;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn one_known_verb_or_nothing() {
        for good in
            [&["x"][..], &["\\", "mount"], &["sudoedit", "unmount"], &["-", "status"], &["x", "golden-build"]]
        {
            assert!(argument(words(good)).is_ok(), "{good:?}");
        }
        for bad in [
            &[][..],
            &[""],
            &["", "mount"],
            &["x", ""],
            &["x", "Mount"],
            &["x", "mount "],
            &["x", "mount", ""],
            &["x", "--help"],
            &["x", "-s", "\\"],
            &["x", "golden_build"],
            &["x", "golden-build", "--out"],
            &["x", "mount", "unmount"],
        ] {
            assert_eq!(argument(words(bad)).unwrap_err().code, Code::Argv, "{bad:?}");
        }
    }
}
