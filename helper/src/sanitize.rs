//! Whatever state the caller left the process in, from here on it is the same one. What cannot be made so is refused.
//!
//! The environment and odd arguments are shed by running the program a second time with none, which needs no `unsafe`
//! and leaves not even the text in memory. Inherited descriptors are refused, not closed: both doors hand down 0 to 2
//! alone, so more of them means a caller that is neither door.

use std::ffi::OsString;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;

use rustix::fs::{Dir, Mode, OFlags};
use rustix::process::{DumpableBehavior, Resource, Rlimit};

use crate::procfs;
use crate::reply::{Code, Refusal};
use crate::request::Verb;

/// Far more than the helper ever has open.
const DESCRIPTORS: u64 = 32;
const OWN_PROGRAM: &str = "/proc/self/exe";

/// Cleans the process; gives the verb that the caller named as its argument, if any.
pub fn process() -> Result<Option<Verb>, Refusal> {
    let verb = argument(std::env::args_os().collect())?;
    procfs::is_the_kernels()?;
    whole_root()?;
    own_program()?;
    limits()?;
    only_standard_descriptors()?;
    rustix::process::chdir("/").map_err(|error| unfit("cannot go to /", error))?;
    rustix::process::umask(Mode::from_raw_mode(0o077));
    rustix::thread::set_no_new_privs(true)
        .map_err(|error| unfit("cannot give up gaining privileges", error))?;
    without_environment(verb)?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(|error| unfit("cannot forbid core dumps", error))?;
    Ok(verb)
}

/// No argument, or exactly one known verb. The program's own name is read by nobody, but it must be there.
fn argument(arguments: Vec<OsString>) -> Result<Option<Verb>, Refusal> {
    let refused = || {
        Refusal::new(
            Code::Argv,
            "the helper takes no argument, or one of mount, unmount, status; all else is said on standard input",
        )
    };
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
fn whole_root() -> Result<(), Refusal> {
    if !rustix::process::getuid().is_root() || !rustix::process::geteuid().is_root() {
        return Err(Refusal::new(Code::Caps, "the helper must be started as root, by its socket or by sudo"));
    }
    let map = procfs::read("/proc/self/uid_map")?;
    if map.split_whitespace().eq(["0", "0", "4294967295"]) {
        return Ok(());
    }
    Err(Refusal::new(
        Code::Caps,
        "root of a user namespace is not root of this machine: start the helper outside of it",
    ))
}

/// The program's own file is root's alone and still there.
fn own_program() -> Result<(), Refusal> {
    let stat = rustix::fs::stat(OWN_PROGRAM)
        .map_err(|error| unfit("cannot look at the helper's own file", error))?;
    if stat.st_uid == 0 && stat.st_mode & 0o022 == 0 && stat.st_nlink > 0 {
        return Ok(());
    }
    let says = "the helper's own file was replaced, or somebody but root may write it: reinstall the package";
    Err(Refusal::new(Code::Env, says))
}

/// No core dump; of what the caller made small, as much as it may give back.
fn limits() -> Result<(), Refusal> {
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    rustix::process::setrlimit(Resource::Core, none)
        .map_err(|error| unfit("cannot forbid core dumps", error))?;
    for resource in [Resource::Nofile, Resource::Fsize, Resource::Cpu] {
        let Rlimit { maximum, .. } = rustix::process::getrlimit(resource);
        rustix::process::setrlimit(resource, Rlimit { current: maximum, maximum })
            .map_err(|error| unfit("cannot lift a limit of the caller's", error))?;
    }
    match rustix::process::getrlimit(Resource::Nofile).maximum {
        Some(most) if most < DESCRIPTORS => Err(Refusal::new(
            Code::Env,
            format!("the caller allows {most} open files, the helper needs {DESCRIPTORS}"),
        )),
        _ => Ok(()),
    }
}

fn only_standard_descriptors() -> Result<(), Refusal> {
    let failed = |error| unfit("cannot list the open descriptors", error);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open("/proc/self/fd", flags, Mode::empty()).map_err(failed)?;
    let own = folder.as_raw_fd();
    let mut inherited = 0_usize;
    for entry in Dir::new(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let number = entry.file_name().to_str().ok().and_then(|name| name.parse::<i32>().ok());
        inherited += usize::from(number.is_some_and(|number| number > 2 && number != own));
    }
    if inherited == 0 {
        return Ok(());
    }
    let says = format!("{inherited} open descriptors were handed down; the caller closes all but 0, 1 and 2");
    Err(Refusal::new(Code::Env, says))
}

/// Runs the program anew without any, unless there is none.
fn without_environment(verb: Option<Verb>) -> Result<(), Refusal> {
    if std::env::vars_os().next().is_none() {
        return Ok(());
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "the helper's own program, in its own place, to shed the environment"
    )]
    let mut again = std::process::Command::new(OWN_PROGRAM);
    again.arg0("holdfast-helper").args(verb.map(Verb::as_str)).env_clear();
    let error = again.exec();
    Err(Refusal::new(Code::Env, format!("cannot start anew with an empty environment: {error}")))
}

fn unfit(what: &str, error: rustix::io::Errno) -> Refusal {
    Refusal::new(Code::Env, format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn one_known_verb_or_nothing() {
        for good in [&["x"][..], &["\\", "mount"], &["sudoedit", "unmount"], &["-", "status"]] {
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
            &["x", "golden-build"],
            &["x", "mount", "unmount"],
        ] {
            assert_eq!(argument(words(bad)).unwrap_err().code, Code::Argv, "{bad:?}");
        }
    }
}
