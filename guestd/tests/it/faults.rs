//! Tests of faults at each moment of a window.
//!
//! Clocks that jump or go back, an agent that falls silent, a full disk.

use std::path::Path;

use crate::guest::{each_point, until};
use crate::killed::POINTS;
use crate::windows::{guest, plan, stack_status, windows};

/// Every call about windows.
const CALLS: [&str; 7] = ["due", "ask", "storage", "look", "quiesced", "released", "give_up"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// As after a suspend: more time than the bound at once.
    Leap,
    /// More is left than ever was.
    Back,
    /// The agent stops answering, for longer than a restart of an agent takes.
    Silence,
    /// Nothing can be written, neither to the disk nor to memory.
    NoRoom,
}

async fn comes_back(point: &'static str, fault: Fault) {
    let (agent, guest, world, before) = guest().await;
    plan(&agent, |_| {});
    let controller = guest.run_to(point);
    let name = format!("{fault:?} at {point}");
    until(&format!("{name}: reached"), || controller.is_suspended(), || stack_status(&guest).to_string())
        .await;
    // Nothing more is due: what happens now is the bringing back alone.
    agent.script.lock().unwrap().windows.due = false;
    match fault {
        Fault::Leap => world.set_time(1_000 + 960),
        Fault::Back => world.set_time(5),
        Fault::Silence => {
            agent.script.lock().unwrap().windows.deaf.extend(CALLS);
            world.set_time(1_000 + 125);
        }
        Fault::NoRoom => {
            for file in ["guestd.json", "stacks.json", "resume-requested"] {
                no_room(&guest.path("run/holdfast").join(format!("{file}.new")));
            }
            for file in
                ["quiesce.json", "canary", "canaries.json", "guestd-resume", "releases.json", "volumes.json"]
            {
                no_room(&guest.path("var/lib/holdfast").join(format!("{file}.new")));
            }
        }
    }
    // Where it comes by the same moment again it is not kept.
    let back = || {
        controller.go_on();
        // A message that arrived right before the pause may count from when the process continued.
        if fault == Fault::Silence && !windows(&agent, |w| w.missed.is_empty()) {
            world.set_time(1_000 + 250);
        }
        world.states() == before && !world.marker()
    };
    let heard = || windows(&agent, |w| w.released.len() + w.given_up as usize > 0);
    let over = || back() && (heard() || stack_status(&guest)["last"].is_object());
    until(&format!("{name}: all runs"), over, || format!("{:?} {}", world.states(), world.log().join("\n")))
        .await;
    let timer = || {
        controller.go_on();
        world.timer().is_none()
    };
    until(&format!("{name}: the timer is taken back"), timer, || world.log().join("\n")).await;
    assert_eq!((world.states(), world.marker()), (before, false), "{name}");
    assert!(world.was_guarded(), "{name}");
}

/// A folder where a file would be made: no process can write it, not even root.
fn no_room(path: &Path) {
    if path.is_file() {
        std::fs::remove_file(path).unwrap();
    }
    std::fs::create_dir_all(path.join("x")).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn a_clock_jump_ends_in_running_stacks() {
    each_point(&POINTS, |point| comes_back(point, Fault::Leap)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn a_clock_set_back_ends_in_running_stacks() {
    each_point(&POINTS, |point| comes_back(point, Fault::Back)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn a_silent_agent_keeps_nothing_stopped_at_any_moment() {
    each_point(&POINTS, |point| comes_back(point, Fault::Silence)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn a_full_disk_keeps_nothing_stopped() {
    each_point(&POINTS, |point| comes_back(point, Fault::NoRoom)).await;
}
