//! Tests of the restore test in a scratch guest.

use holdfast_protocol::bootstrap::Mode;
use holdfast_protocol::local::restore_test::{StackHealth, TestReport};

use crate::fake_agent::{FakeAgent, NEW_TOKEN, TOKEN};
use crate::guest::{Guest, until};
use crate::windows::{plan, stack_status, windows};
use crate::world::World;

/// A guest that was backed up while its stacks were stopped, as it boots in a test.
async fn restored() -> (FakeAgent, Guest, World) {
    let (agent, guest) = (FakeAgent::start().await, Guest::new());
    guest.keep(&agent.bootstrap(TOKEN));
    let world = World::of(&guest);
    plan(&agent, |_| {});
    let mut running = guest.run_until("AllStopped");
    assert!(running.died().await, "{}", stack_status(&guest));
    world.lose_timers();
    world.set_boot("boot-of-the-scratch");
    world.set_time(3);
    {
        let mut script = agent.script.lock().unwrap();
        // Its old token is not known here, and would be counted.
        script.tokens = vec![NEW_TOKEN.to_owned()];
        script.windows.due = true;
        script.windows.asked.clear();
    }
    guest.set_bootstrap_token(&agent.bootstrap_token(Mode::RestoreTest));
    (agent, guest, world)
}

async fn report(agent: &FakeAgent, guest: &Guest) -> TestReport {
    until("reported", || windows(agent, |w| !w.reports.is_empty()), || stack_status(guest).to_string()).await;
    windows(agent, |w| serde_json::from_value(w.reports[0].clone()).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn running_stacks_and_canaries_match_the_backup() {
    let (agent, guest, world) = restored().await;
    let canaries = std::fs::read(guest.path("var/lib/holdfast/canaries.json")).unwrap();
    let canaries: serde_json::Value = serde_json::from_slice(&canaries).unwrap();
    let running = guest.run();
    let report = report(&agent, &guest).await;
    let health: Vec<(&str, &StackHealth)> =
        report.stacks.iter().map(|c| (c.stack.as_str(), &c.health)).collect();
    assert_eq!(
        health,
        [("db", &StackHealth::Runs), ("app", &StackHealth::Runs), ("idle", &StackHealth::Runs)]
    );
    assert_eq!(serde_json::to_value(&report.canaries).unwrap(), canaries["canaries"]);
    assert_eq!(world.states()["web1"], "running");
    until("hellos go on", || agent.read(|script| script.hellos.len() > 2), String::new).await;
    windows(&agent, |w| {
        assert_eq!((w.reports.len(), w.asked.len()), (1, 0), "one report, and no window of a scratch guest");
    });
    assert_eq!(agent.read(|script| script.strangers), 0, "the token of the backup is never spoken with");
    // The agent has the report before the guest knows that it has it.
    let text = || String::from_utf8(guest.status("table").stdout).unwrap();
    until("told in the guest", || text().contains("reported: 3 stacks, 1 canaries"), text).await;
    assert_eq!(running.stop().0.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unhealthy_stacks_are_reported_and_excluded_ones_are_not() {
    let (agent, guest, world) = restored().await;
    let hook = world.path("bin/hook");
    world.set_stacks(&format!(
        "[stack.app]\ndriver = \"compose\"\ndirectory = \"/srv/app\"\nhealth_timeout_s = 1\n\
         hooks.health = [{:?}, \"health\"]\n\
         [stack.db]\ndriver = \"systemd\"\nunits = [\"db.service\"]\nhooks.health = [{:?}, \"fine\"]\n\
         volumes.files = {{ class = \"bulk\" }}\nrestore_test = \"leave\"\n\
         [stack.idle]\ndriver = \"compose\"\ndirectory = \"/srv/idle\"\nwanted = \"stopped\"\n\
         [stack.spare]\ndriver = \"systemd\"\nunits = [\"spare.service\"]\nhooks.health = [{:?}, \"fine\"]\n\
         [stack.media]\ndriver = \"systemd\"\nunits = [\"spare.service\"]\nvolumes.files = {{ class = \"bulk\" }}\n",
        hook.to_str().unwrap(),
        hook.to_str().unwrap(),
        hook.to_str().unwrap()
    ));
    world.fault("fail", "hook-health");
    std::fs::remove_file(guest.path("var/lib/holdfast/canary")).unwrap();
    let _running = guest.run();
    let report = report(&agent, &guest).await;
    let said: Vec<(&str, String)> = report
        .stacks
        .iter()
        .map(|check| match &check.health {
            StackHealth::Unhealthy { why } => (check.stack.as_str(), why.clone()),
            other => (check.stack.as_str(), format!("{other:?}")),
        })
        .collect();
    assert_eq!(said.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["app", "media", "spare"]);
    assert!(said[0].1.contains("says the test"), "{said:?}");
    assert!(said[1].1.contains("needs a bulk volume for `files`, and this guest has none"), "{said:?}");
    assert_eq!(said[2].1, "Healthy");
    assert!(report.canaries.is_empty(), "the one that was there is gone");
}

/// Else a backup in which nothing can be started would be proved by its canaries alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_stacks_file_is_reported() {
    let (agent, guest, world) = restored().await;
    world.set_stacks("[stack.app]\ndriver = \"magic\"\n");
    let _running = guest.run();
    let report = report(&agent, &guest).await;
    assert_eq!(report.stacks.len(), 1, "{report:?}");
    let StackHealth::Unhealthy { why } = &report.stacks[0].health else { panic!("{report:?}") };
    assert!(why.contains("stack.app.driver"), "{why}");
    assert_eq!(report.canaries.len(), 1);
}
