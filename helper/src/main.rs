//! `holdfast-helper`: the one program of Holdfast that is root on a box. One request on standard input, one reply on
//! standard output, one line in the journal, exit.
//!
//! In: at most one argument (a verb), at most 4 KiB of JSON, `/etc/holdfast/helper.toml`. Out: a file system mounted
//! beneath `/mnt/holdfast`, or unmounted, or a golden image, or nothing at all and a code that says why.
//! Deliberately absent: a path, option or program that a caller could choose; threads, network, the environment;
//! children but the one builder; any way for a test to loosen it (tests give it a machine of their own instead, see `tests/`).
#![forbid(unsafe_code)]

mod audit;
mod descend;
mod disk;
mod door;
mod find;
mod golden;
mod mount;
mod mountinfo;
mod names;
mod place;
mod policy;
mod powers;
mod probe;
mod procfs;
mod reply;
mod request;
mod sanitize;
mod state;
mod status;

use std::process::ExitCode;

use policy::Order;
use reply::Outcome;
use state::Turn;

fn main() -> ExitCode {
    let mut line = audit::Line::default();
    let outcome = serve(&mut line);
    line.write(&outcome);
    let status = reply::send(&outcome);
    request::hear_out();
    status
}

/// The whole of it: clean, without power, hear, judge, act.
fn serve(line: &mut audit::Line) -> Outcome {
    let verb = sanitize::process()?;
    let powers = powers::Powers::lay_down(verb)?;
    mountinfo::same_as_the_hosts(verb)?;
    let policy = policy::Policy::read()?;
    line.caller = Some(door::caller(&policy)?);
    let request = request::read(verb)?;
    line.heard(&request);
    let powers = powers.for_verb(request.verb())?;
    line.reach_journal(request.verb())?;
    match policy.judge(request)? {
        Order::Mount(target, options) => mount::mount(target, &options, &policy, (&powers, &Turn::take()?)),
        Order::Unmount(target) => mount::unmount(&target, (&powers, &Turn::take()?)),
        Order::Status => status::look(&policy, &Turn::take()?),
        Order::GoldenBuild(dump) => golden::build(dump, &powers),
    }
}
