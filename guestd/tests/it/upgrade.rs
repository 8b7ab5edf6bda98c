//! Tests of security upgrades.

use holdfast_protocol::bootstrap::Mode;
use holdfast_protocol::local::desired::MaintenanceWindow;
use holdfast_protocol::maintenance::{RestartRule, SecurityUpgrades};
use serde_json::Value;

use crate::fake_agent::FakeAgent;
use crate::guest::{Guest, until};
use crate::windows::guest;
use crate::world::World;

const STACK: &str = "[stack.db]\ndriver = \"systemd\"\nunits = [\"db.service\"]\nhealth_timeout_s = 1\n";

fn upgrade(guest: &Guest) -> (Option<i32>, String) {
    let output = guest.ask("upgrade", &[]);
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// Has systemd's unit of the last call judge.
fn judge(guest: &Guest, world: &World) -> Option<i32> {
    guest.start_as_systemd(world.judges().last().unwrap()).status.code()
}

fn last(guest: &Guest) -> Value {
    let output = guest.status("json");
    let status: Value = serde_json::from_slice(&output.stdout).unwrap();
    status["upgrade"].clone()
}

fn snapshots(agent: &FakeAgent) -> Vec<String> {
    let name = |request: &(String, String, Value)| request.2["name"].as_str().map(str::to_owned);
    agent.read(|script| {
        script.requests.iter().filter(|request| request.0 == "/v1/snapshots").filter_map(name).collect()
    })
}

fn rollbacks(agent: &FakeAgent) -> usize {
    agent.read(|script| script.requests.iter().filter(|request| request.0 == "/v1/rollback").count())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn security_upgrades_are_made_behind_a_snapshot_and_judged_after_it() {
    let (agent, guest, world, _) = guest().await;
    world.set_stacks(STACK);
    world.set_upgrades(&["libssl3t64", "openssl"], "");
    let (code, log) = upgrade(&guest);
    assert_eq!((code, last(&guest)["outcome"].as_str()), (Some(0), Some("under_way")), "{log}");
    assert!(snapshots(&agent)[0].starts_with("upgrade-"), "{:?}", snapshots(&agent));
    agent.read(|script| assert_eq!(script.requests[0].2["keep_s"], 7 * 24 * 3_600));
    assert_eq!(judge(&guest, &world), Some(0));
    let said = last(&guest);
    assert_eq!(said["outcome"], "upgraded", "{said}");
    assert_eq!(said["snapshot"], snapshots(&agent)[0].as_str());
    let why = "libssl3t64, openssl: packages changed; well before and after it: db";
    assert_eq!(said["why"], why);
    let log = world.log();
    assert!(
        log.contains(&"apt-get env 1 noninteractive".to_owned()),
        "the hook knows whose run it is: {log:?}"
    );
    let priorities = std::fs::read_to_string(world.path("world/priorities")).unwrap();
    assert!(priorities.starts_with("Package: *\nPin: release l=Debian-Security\n"), "{priorities}");
    // The agent receives the report, and the next night there is nothing to do.
    let _running = guest.run();
    let heard = || agent.read(|script| script.hellos.last().and_then(|hello| hello.upgrade.clone()));
    until("heard", || heard().is_some(), || format!("{:?}", heard())).await;
    assert_eq!(upgrade(&guest).0, Some(0));
    assert_eq!((last(&guest)["outcome"].as_str(), snapshots(&agent).len()), (Some("current"), 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_that_breaks_a_stack_or_is_left_half_done_goes_back_and_is_held_back() {
    for (acts, words) in [
        ("echo failed > ROOT/world/u/db.service", "stack db is not well"),
        ("echo 'half-configured web' > ROOT/world/packages", "dpkg left these half done"),
    ] {
        let (agent, guest, world, _) = guest().await;
        world.set_stacks(STACK);
        agent.script.lock().unwrap().rolls_back = true;
        world.set_upgrades(&["web"], &acts.replace("ROOT", guest.path("").to_str().unwrap()));
        let before = guest.path("var/lib/holdfast/upgrade.json");
        assert!(!before.exists());
        let (code, log) = upgrade(&guest);
        assert_eq!(code, Some(0), "{log}");
        assert_eq!(judge(&guest, &world), Some(10), "{words}");
        assert_eq!(rollbacks(&agent), 1);
        let said = String::from_utf8(guest.status("table").stdout).unwrap();
        assert!(said.contains(words), "{said}");
        // The effect of a rollback on this guest: the disk is as before, and everything in memory is gone.
        std::fs::remove_file(&before).unwrap();
        std::fs::remove_dir_all(guest.path("run")).unwrap();
        std::fs::create_dir_all(guest.path("run")).unwrap();
        world.set_boot("boot-b");
        world.set_packages("installed apt\n");
        world.set_unit("db.service", "active");
        world.set_upgrades(&["web"], "");
        let _running = guest.run();
        let stack_status = || last(&guest)["outcome"] == "rolled_back";
        until("told after the restart", stack_status, || last(&guest).to_string()).await;
        assert_eq!(last(&guest)["snapshot"], snapshots(&agent)[0].as_str());
        let heard = || agent.read(|script| script.hellos.last().is_some_and(|hello| hello.upgrade.is_some()));
        until("the agent hears it", heard, || last(&guest).to_string()).await;
        // The next night: not the same again.
        let (code, log) = upgrade(&guest);
        assert_eq!((code, log.contains("was rolled back")), (Some(0), true), "{log}");
        assert_eq!((snapshots(&agent).len(), rollbacks(&agent)), (1, 1));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocked_upgrade_is_reported_and_changes_nothing() {
    type Hinder = fn(&World);
    let cases: [(Hinder, &str, &str); 4] = [
        (|world| world.set_stacks("[upgrades]\nsecurity = \"off\"\n"), "not_run", "switched off"),
        (|world| world.set_stacks("nonsense"), "not_run", "stacks.toml is refused"),
        (|world| world.set_packages("unpacked web\n"), "not_run", "`dpkg --configure -a`"),
        (
            |world| {
                world.set_upgrades(&[], "");
                world.fault("fail", "apt-update");
            },
            "not_run",
            "lists of packages cannot be renewed",
        ),
    ];
    for (hinder, outcome, words) in cases {
        let (agent, guest, world, _) = guest().await;
        world.set_upgrades(&["web"], "");
        hinder(&world);
        let (_, log) = upgrade(&guest);
        let said = last(&guest);
        assert_eq!(said["outcome"], outcome, "{said} {log}");
        assert!(said["why"].as_str().unwrap().contains(words), "{said}");
        assert!(snapshots(&agent).is_empty());
        assert!(!world.log().iter().any(|line| line.contains("--force-confold")), "{:?}", world.log());
    }
}

/// The kernel of a container is its host's: what waits for a restart are programs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn apt_failures_and_needed_restarts_are_reported() {
    let (agent, guest, world, _) = guest().await;
    world.set_stacks(&format!("[apt]\nafter = \"report\"\n{STACK}"));
    world.set_upgrades(&["web"], "");
    world.fault("fail", "apt-upgrade");
    let (code, log) = upgrade(&guest);
    assert_eq!(code, Some(1), "{log}");
    assert_eq!(judge(&guest, &world), Some(0));
    let said = last(&guest);
    assert_eq!(said["outcome"], "failed", "that all is well says nothing of apt: {said}");
    assert!(said["why"].as_str().unwrap().starts_with("upgrading web failed"), "{said}");
    std::fs::write(guest.path("run/reboot-required"), "").unwrap();
    let table = String::from_utf8(guest.status("table").stdout).unwrap();
    assert!(table.contains("Restart     a package requires a restart"), "{table}");
    let _running = guest.run();
    let heard =
        || agent.read(|script| script.hellos.last().is_some_and(|hello| hello.restart_needed.is_some()));
    until("the agent hears it", heard, || last(&guest).to_string()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scratch_guest_is_tested_as_it_was_backed_up() {
    let (agent, guest, world, _) = guest().await;
    guest.set_bootstrap_token(&agent.bootstrap_token(Mode::RestoreTest));
    world.set_upgrades(&["web"], "");
    assert_eq!(upgrade(&guest).0, Some(0));
    assert_eq!((world.log(), last(&guest)), (Vec::new(), Value::Null));
}

/// The agent says that a maintenance window is open, or when the next one begins.
fn set_window(agent: &FakeAgent, open: Open, restart: RestartRule) {
    // By no clock: a window that has been open for years, or one that opens in years.
    let years: [&str; 2] = match open {
        Open::Now => ["2020-01-01T00:00:00Z", "2200-01-01T00:00:00Z"],
        Open::Later => ["2190-01-01T00:00:00Z", "2200-01-01T00:00:00Z"],
    };
    let [begins, ends] = years.map(|at| at.parse().unwrap());
    agent.script.lock().unwrap().maintenance.window = Some(MaintenanceWindow { begins, ends, restart });
}

enum Open {
    Now,
    Later,
}

fn by_timer(guest: &Guest) -> (Option<i32>, String) {
    let output = guest.ask("upgrade", &["--in-window"]);
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

fn reboots(world: &World) -> usize {
    world.log().iter().filter(|line| *line == "systemctl reboot").count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_timer_upgrades_and_restarts_once_in_each_window_and_never_outside_of_it() {
    let (agent, guest, world, _) = guest().await;
    world.set_stacks(STACK);
    world.set_upgrades(&["openssl"], "");
    std::fs::write(guest.path("run/reboot-required"), "").unwrap();
    let (code, log) = by_timer(&guest);
    assert_eq!((code, log.contains("names no maintenance window")), (Some(0), true), "{log}");
    set_window(&agent, Open::Later, RestartRule::InWindow);
    let (code, log) = by_timer(&guest);
    assert_eq!((code, log.contains("maintenance window begins at")), (Some(0), true), "{log}");
    assert!(snapshots(&agent).is_empty() && reboots(&world) == 0);
    set_window(&agent, Open::Now, RestartRule::InWindow);
    assert_eq!(by_timer(&guest).0, Some(0));
    assert_eq!(snapshots(&agent).len(), 1);
    let (_, log) = by_timer(&guest);
    assert_eq!(reboots(&world), 0, "how the stacks are is not judged yet: {log}");
    assert_eq!(judge(&guest, &world), Some(0));
    let (code, log) = by_timer(&guest);
    assert_eq!((code, reboots(&world)), (Some(0), 1), "{log}");
    let (_, log) = by_timer(&guest);
    assert_eq!((snapshots(&agent).len(), reboots(&world)), (1, 1), "once in a window: {log}");
    assert!(log.contains("nothing is left to do"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_switches_upgrades_and_restarts_off() {
    let (agent, guest, world, _) = guest().await;
    world.set_stacks(STACK);
    world.set_upgrades(&["openssl"], "");
    std::fs::write(guest.path("run/reboot-required"), "").unwrap();
    set_window(&agent, Open::Now, RestartRule::ByHand);
    agent.script.lock().unwrap().maintenance.security_upgrades = SecurityUpgrades::Off;
    let (code, log) = by_timer(&guest);
    assert_eq!((code, snapshots(&agent).len(), reboots(&world)), (Some(0), 0, 0), "{log}");
    // A person who runs the command gets an upgrade.
    assert_eq!(upgrade(&guest).0, Some(0));
    assert_eq!(snapshots(&agent).len(), 1);
}
