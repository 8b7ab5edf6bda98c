//! Tests of backups of PostgreSQL and Docker Compose under load.
//!
//! One guest, two backups. For the first nothing is stopped, so it must come back as after a power cut. For the second
//! the stacks are stopped, so it must come back as after an orderly end. Each is restored next to the guest by an
//! operator's signature, and PostgreSQL's own log decides. At last the agent itself tests the second one, as a policy
//! requires, and the scratch guest's own controller reports how it came back. A last backup, of a guest that holds
//! half as much again, shows that its stacks do not wait for the copy.
//!
//! At the same time another guest has its controller exchanged, and another one taken back. Agents wait minutes for
//! that, so it runs in parallel. In a third one security upgrades are installed, restarted for, and taken back. `cargo
//! xtask stacks` builds what both need and names it in the environment.

#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say what they expect"
)]

mod backup;
mod builds;
mod disk;
mod exchange;
mod guest;
mod restored;
mod shop;
mod stand;
mod trial;
mod upgrade;

use self::backup::Want;
use self::stand::Stand;

#[test]
fn a_backup_is_what_its_label_says_and_controllers_and_upgrades_have_a_way_back() {
    let mut stand = Stand::new();
    let lab = std::thread::scope(|all| {
        let lab = all.spawn(|| exchange::reported(&stand));
        let mend = all.spawn(|| upgrade::reported(&stand));
        backups(&stand);
        mend.join().unwrap();
        lab.join()
    });
    exchange::expires(&mut stand, &lab.unwrap());
    stand.finish();
}

fn backups(stand: &Stand) {
    let shop = shop::open(stand);
    let cut = backup::take(stand, &shop, Want::AsAfterAPowerCut);
    let still = backup::take(stand, &shop, Want::StandingStill);
    shop::unharmed(stand, &shop);
    let labels = backup::labels(&shop);
    assert_eq!(labels["crash"].len(), 2, "the first backup of all, and ours: {labels:#?}");
    assert_eq!(labels["application"].len(), 1, "{labels:#?}");
    backup::interrupted(stand, &shop);
    shop::unharmed(stand, &shop);
    restored::after_a_power_cut(stand, &cut);
    restored::after_an_orderly_end(stand, &still);
    trial::proves(stand, &shop);
    let more = backup::of_more(stand, &shop);
    shop::unharmed(stand, &shop);
    backup::figures(&cut, &still, &more);
}
