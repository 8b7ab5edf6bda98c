//! Tests on a booted Debian, from installation to removal.

#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say what they expect"
)]

mod attached;
mod break_glass;
mod disk;
mod disks;
mod guest_apt;
mod inventory;
mod life;
mod machine;
mod proxmox;
mod stand;
mod story;
mod tunnels;
mod updates;

use self::stand::Stand;

#[test]
fn a_box_from_its_first_day_to_its_last() {
    let mut stand = Stand::new("box");
    let before = story::first_boot(&mut stand);
    story::guest_package(&stand, &before);
    story::install(&stand);
    story::set_up(&stand);
    story::enrol(&stand);
    story::provision(&stand);
    disks::by_the_socket(&stand);
    disks::by_sudo(&stand);
    disks::out_and_in(&stand);
    attached::by_signature(&stand);
    attached::fails(&stand);
    attached::out_and_in(&stand);
    break_glass::day(&stand);
    life::reboot(&mut stand);
    break_glass::after_reboot(&stand);
    life::upgrade(&stand);
    life::hang(&stand);
    tunnels::named(&stand);
    tunnels::token(&stand);
    tunnels::bounds(&stand);
    tunnels::without_the_agent(&stand);
    tunnels::ends(&stand);
    attached::let_go(&stand);
    story::leave(&stand);
    break_glass::forget(&stand);
    story::nothing_is_left(&mut stand, &before);
    stand.finish();
}

/// On a machine of its own: trials take their time, in which the other story goes on.
#[test]
fn a_box_takes_releases_and_takes_bad_ones_back() {
    let mut stand = Stand::new("releases");
    let before = story::first_boot(&mut stand);
    story::install(&stand);
    story::set_up(&stand);
    tunnels::with_the_enrolment(&stand);
    story::provision(&stand);
    updates::releases(&mut stand);
    story::leave(&stand);
    story::nothing_is_left(&mut stand, &before);
    stand.finish();
}
