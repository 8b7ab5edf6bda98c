//! `holdfast-helper`: the root program that mounts disks and builds images.
//!
//! One request on standard input, one reply on standard output, one line in the journal, exit.
//!
//! In: at most one argument (a verb), at most 4 KiB of JSON, `/etc/holdfast/helper.toml`. Out: a file system mounted
//! beneath `/mnt/holdfast`, or unmounted, or a golden image, or nothing at all and a code that says why.
//! Deliberately absent: a path, option or program that a caller could choose; threads, network, the environment;
//! children but the one builder; any way for a test to loosen it (tests give it a machine of their own instead, see `tests/`).
#![forbid(unsafe_code)]

mod audit;
mod caller;
mod capabilities;
mod disk;
mod find;
mod golden;
mod mount;
mod mountinfo;
mod mountpoint;
mod names;
mod openat;
mod policy;
mod probe;
mod procfs;
mod reply;
mod request;
mod sanitize;
mod state;
mod status;

use std::process::ExitCode;

use policy::Action;
use reply::Outcome;
use state::Lock;

fn main() -> ExitCode {
    let mut line = audit::AuditLine::default();
    let outcome = serve(&mut line);
    line.write(&outcome);
    let status = reply::send(&outcome);
    request::drain_input();
    status
}

/// All steps of a call: sanitize, drop privileges, read the request, authorize, act.
fn serve(line: &mut audit::AuditLine) -> Outcome {
    let verb = sanitize::process()?;
    let caps = capabilities::Capabilities::keep(verb)?;
    mountinfo::require_host_namespace(verb)?;
    let policy = policy::Policy::read()?;
    line.caller = Some(caller::identify(&policy)?);
    let request = request::read(verb)?;
    line.set_request(&request);
    let caps = caps.restrict_to(request.verb())?;
    line.reach_journal(request.verb())?;
    match policy.authorize(request)? {
        Action::Mount(target, options) => mount::mount(target, &options, &policy, (&caps, &Lock::take()?)),
        Action::Unmount(target) => mount::unmount(&target, (&caps, &Lock::take()?)),
        Action::Status => status::read(&policy, &Lock::take()?),
        Action::GoldenBuild(dump) => golden::build(dump, &caps),
    }
}
