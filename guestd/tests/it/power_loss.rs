//! Tests of a guest that loses its power in a window.
//!
//! The folder in which guestd keeps what lasts is on a disk that loses what was not synced. After each loss the guest
//! boots: what is stopped must have its marker, and all of it must run again by what is found. Needs the right to mount
//! (root, or `fusermount3`), so `cargo xtask power` runs it; `GUESTD_POWER_SHARE`, such as `1/20`, is a share of it.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use power_disk::dice::Dice;
use power_disk::disk::Disk;
use power_disk::fate::Fate;
use power_disk::mount::mount;

use crate::fake_agent::FakeAgent;
use crate::guest::{Guest, until};
use crate::windows::{guest, plan, stack_status, windows};

const FOLDER: &str = "var/lib/holdfast";

/// The program is on the same disk as its data, as in a guest.
const PROGRAM: &str = "var/lib/holdfast/program";

/// Which share of the changes a run takes: its number, and the number of shares.
fn share() -> (u64, u64) {
    let text = std::env::var("GUESTD_POWER_SHARE").unwrap_or_else(|_| "1/1".to_owned());
    let (number, of) = text.split_once('/').unwrap();
    (number.parse::<u64>().unwrap() - 1, of.parse().unwrap())
}

/// Puts the program there. Its symbols are of no use to it, and stay in memory for as long as the disk does.
fn install(guest: &Guest) {
    #[expect(clippy::disallowed_methods, reason = "copies the program under test")]
    let mut strip = std::process::Command::new("strip");
    strip.arg("-o").arg(guest.path(PROGRAM)).arg(env!("CARGO_BIN_EXE_guestd"));
    if !strip.status().is_ok_and(|status| status.success()) {
        fs::copy(env!("CARGO_BIN_EXE_guestd"), guest.path(PROGRAM)).unwrap();
    }
}

fn released(agent: &FakeAgent) -> bool {
    windows(agent, |w| w.released.len() + w.given_up as usize > 0)
}

/// A window whose disk loses its power before this change, if it comes to it. Gives how many changes there were.
async fn lose(cut_at: u64, fate: Fate) -> u64 {
    let case = format!("{cut_at}:{fate}");
    let (agent, guest, world, before) = guest().await;
    install(&guest);
    plan(&agent, |_| {});
    let disk = Arc::new(Disk::holding(&guest.path(FOLDER), cut_at));
    let shown = mount(&guest.path(FOLDER), Arc::clone(&disk)).unwrap();
    let running = guest.run_program(&guest.path(PROGRAM));
    let over = || disk.is_cut() || (released(&agent) && world.states() == before && !world.marker());
    until(&case, over, || format!("{:?} {}", world.states(), stack_status(&guest))).await;
    let changes = disk.changes();
    // All at once, as power does.
    disk.cut();
    drop(running);
    drop(shown);
    agent.script.lock().unwrap().windows.due = false;
    found(&disk, fate, &guest.path(FOLDER));
    world.lose_timers();
    world.set_boot("boot-b");
    world.set_time(7);
    if world.marker() {
        let (program, root) = (guest.path(FOLDER).join("guestd-resume"), guest.path(""));
        let argv = [program.to_str().unwrap(), "resume", "--root", root.to_str().unwrap()];
        let output = guest.start_as_systemd(&argv.map(str::to_owned));
        assert_eq!(output.status.code(), Some(0), "{case}: {output:?}");
    }
    assert_eq!(world.states(), before, "{case}: what was stopped has no marker, or did not start by it");
    assert!(!world.marker() && world.was_guarded(), "{case}");
    let hellos = agent.read(|script| script.hellos.len());
    let running = guest.run_program(&guest.path(PROGRAM));
    let hello = || agent.read(|script| script.hellos.len() > hellos);
    until(&format!("{case}: it says hello with the token it has"), hello, || guest.state().to_string()).await;
    let status = running.stop().0;
    assert_eq!(status.code(), Some(0), "{case}");
    changes
}

/// Puts what is found where the disk was shown.
fn found(disk: &Disk, fate: Fate, folder: &Path) {
    fs::remove_dir_all(folder).unwrap();
    fs::create_dir(folder).unwrap();
    fate.found(disk, folder);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "needs the right to mount: cargo xtask power"]
async fn a_loss_of_power_keeps_nothing_stopped() {
    let (number, of) = share();
    let changes = lose(u64::MAX, Fate::Kept).await;
    assert!(changes > 10, "a window makes {changes} changes");
    let mut tried = 0;
    for at in 0..changes {
        for (nth, fate) in [Fate::Lost, Fate::Kept, Fate::Torn(at)].into_iter().enumerate() {
            if Dice::of(at * 3 + nth as u64).below(of) == number {
                lose(at, fate).await;
                tried += 1;
            }
        }
    }
    println!("a window of a guest: {changes} changes, {tried} losses of power");
}
