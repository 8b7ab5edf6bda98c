//! Tests of systemd units with dependencies.

use crate::windows::{guest, over, plan};

/// As Debian's `postgresql.service`, which is a wrapper around its clusters.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_part_of_a_unit_is_waited_for() {
    let (agent, guest, world, _) = guest().await;
    world.set_stacks("[stack.db]\ndriver = \"systemd\"\nunits = [\"db.service\"]\nstop_timeout_s = 5\n");
    world.consists("db.service", "db@1.service");
    plan(&agent, |_| {});
    let _running = guest.run();
    over(&guest, "the backup was captured").await;
    assert_eq!(
        world.acts(),
        [
            "systemctl stop -- db.service",
            "systemctl stop -- db@1.service",
            "systemctl start -- db@1.service",
            "systemctl start -- db.service",
        ]
    );
    assert_eq!((&*world.states()["db.service"], &*world.states()["db@1.service"]), ("active", "active"));
}

/// As `Requires=db.service`: systemd stops it with the database, and only guestd starts it again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_needs_a_unit_stops_before_it_and_comes_back_after_it() {
    let (agent, guest, world, _) = guest().await;
    world.set_stacks("[stack.db]\ndriver = \"systemd\"\nunits = [\"db.service\"]\nstop_timeout_s = 5\n");
    world.needed("db.service", "dbapp.service dbidle.service");
    world.needed("dbapp.service", "dbweb.service");
    for (unit, state) in
        [("dbapp.service", "active"), ("dbweb.service", "active"), ("dbidle.service", "inactive")]
    {
        world.set_unit(unit, state);
    }
    let before = world.states();
    plan(&agent, |_| {});
    let _running = guest.run();
    over(&guest, "the backup was captured").await;
    assert_eq!(
        world.acts(),
        [
            "systemctl stop -- dbweb.service",
            "systemctl stop -- dbapp.service",
            "systemctl stop -- db.service",
            "systemctl start -- db.service",
            "systemctl start -- dbapp.service",
            "systemctl start -- dbweb.service",
        ]
    );
    assert_eq!(world.states(), before, "what a person stopped stands still");
    // A unit that another stack names is that stack's.
    world.set_stacks(
        "[stack.db]\ndriver = \"systemd\"\nunits = [\"db.service\"]\n[stack.web]\ndriver = \"systemd\"\nunits = [\"dbweb.service\"]\nafter = [\"db\"]\n",
    );
    let plan: serde_json::Value =
        serde_json::from_slice(&guest.ask("quiesce", &["--dry-run", "--output", "json"]).stdout).unwrap();
    let stops: Vec<_> = plan["would_stop"].as_array().unwrap().iter().map(|step| &step["stop"]).collect();
    assert_eq!(stops[0], &serde_json::json!(["systemctl stop -- dbweb.service"]));
    assert_eq!(
        stops[1],
        &serde_json::json!(["systemctl stop -- dbapp.service", "systemctl stop -- db.service"])
    );
}

/// As `RequiredBy=multi-user.target`: the target stops with the database, and a start of it would start all that it
/// wants.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_needs_a_unit_comes_back_without_what_a_person_stopped() {
    let (agent, guest, world, _) = guest().await;
    world.set_stacks("[stack.db]\ndriver = \"systemd\"\nunits = [\"db.service\"]\nstop_timeout_s = 5\n");
    world.needed("db.service", "all.target");
    world.set_unit("all.target", "active");
    world.set_unit("mail.service", "inactive");
    world.wants("all.target", "db.service mail.service");
    let before = world.states();
    plan(&agent, |_| {});
    let _running = guest.run();
    over(&guest, "the backup was captured").await;
    assert_eq!(world.states(), before, "what a person stopped stands still");
    assert_eq!(
        world.acts().iter().map(|act| act.rsplit(' ').next().unwrap()).collect::<Vec<_>>(),
        ["db.service", "db.service", "all.target"],
        "{:?}",
        world.log()
    );
}
