//! Tests of `guestd backup`, `try` and `volumes`.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::local::window::WindowPhase;
use holdfast_protocol::protection::Tier;

use crate::fake_agent::OnRequest;
use crate::guest::until;
use crate::windows::{guest, stack_status, windows};

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_manual_backup_has_a_window_unless_crash_consistent() {
    let (agent, guest, world, before) = guest().await;
    let output = guest.ask("backup", &[]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("the backup is application-consistent: says the test"), "{said}");
    assert_eq!(text(&output.stdout), "backup is done\n");
    assert_eq!((world.states(), windows(&agent, |w| w.quiesced.len())), (before.clone(), 1));
    assert!(world.acts().contains(&"docker stop cache1".to_owned()));
    let acts = world.acts().len();
    let plain = guest.ask("backup", &["--crash-consistent"]);
    assert_eq!(plain.status.code(), Some(0), "{}", text(&plain.stderr));
    assert_eq!(world.acts().len(), acts, "nothing was stopped for it");
    let last =
        || agent.read(|script| script.requests.last().map(|request| (request.0.clone(), request.2.clone())));
    assert_eq!(last(), Some(("/v1/backups".to_owned(), serde_json::json!({}))));
    // The tier is the agent's to judge, with a window and without.
    let away = guest.ask("backup", &["--crash-consistent", "--tier", "off-site"]);
    assert_eq!(away.status.code(), Some(0), "{}", text(&away.stderr));
    assert_eq!(last(), Some(("/v1/backups".to_owned(), serde_json::json!({ "tier": "off_site" }))));
    let still = guest.ask("backup", &["--tier", "off-site"]);
    assert_eq!(still.status.code(), Some(0), "{}", text(&still.stderr));
    assert_eq!(windows(&agent, |w| w.tiers.clone()), [None, Some(Tier::OffSite)]);
    assert_eq!(guest.ask("backup", &["--list", "--tier", "local"]).status.code(), Some(2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupt_resumes_stacks_and_is_reported() {
    let (agent, guest, world, before) = guest().await;
    agent.script.lock().unwrap().windows.stays_at = Some(WindowPhase::Capturing);
    let running = guest.start("backup", &["--no-wait"]);
    until(
        "capturing",
        || windows(&agent, |w| w.phase == Some(WindowPhase::Capturing)),
        || stack_status(&guest).to_string(),
    )
    .await;
    // Meanwhile there is no other window on this guest.
    let other = guest.ask("backup", &[]);
    assert_eq!(other.status.code(), Some(5), "{}", text(&other.stderr));
    let (status, log) = running.stop();
    assert!(status.code().is_some(), "{log}");
    assert_eq!((world.states(), world.marker()), (before, false), "{log}");
    assert_eq!(windows(&agent, |w| w.released.len()), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_successful_try_is_kept() {
    let (agent, guest, _world, _) = guest().await;
    let done = guest.path("done");
    let output = guest.ask("try", &["--keep-hours", "2", "--", "/bin/touch", done.to_str().unwrap()]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(done.exists() && said.contains("these stacks must be well after it: db, app"), "{said}");
    assert!(
        said.find("what is written from now on is lost") < said.find("all is well"),
        "the plan comes first"
    );
    agent.read(|script| {
        assert_eq!(script.requests.len(), 1);
        assert_eq!(
            (script.requests[0].0.as_str(), &script.requests[0].2["keep_s"]),
            ("/v1/snapshots", &7200.into())
        );
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_try_is_rolled_back() {
    let broken = "for c in web1 web2; do echo 'app web exited' > \"$1/world/c/$c\"; done";
    for (script, words) in [
        ("exit 3", "the command ended with exit status: 3"),
        (broken, "stack app is not well: web are not running"),
    ] {
        let (agent, guest, world, _) = guest().await;
        world.set_stacks(
            &std::fs::read_to_string(world.path("etc/holdfast/stacks.toml"))
                .unwrap()
                .replace("stop_timeout_s = 1\nstart", "stop_timeout_s = 1\nhealth_timeout_s = 1\nstart"),
        );
        let root = guest.path("");
        let output = guest.ask("try", &["--", "/bin/sh", "-c", script, "sh", root.to_str().unwrap()]);
        let said = text(&output.stderr);
        assert!(said.contains(words), "{said}");
        // The fake agent does not do it, and says so.
        assert_eq!(output.status.code(), Some(11), "{said}");
        assert!(said.contains("by hand: guestd rollback try-"), "{said}");
        agent.read(|script| {
            assert_eq!(script.requests[1].0, "/v1/rollback");
            assert_eq!(script.requests[1].2["snapshot"], script.requests[0].2["name"]);
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_try_that_lost_its_terminal_is_checked_and_rolled_back() {
    let (agent, guest, _world, _) = guest().await;
    let begun = guest.path("begun");
    let script = "touch \"$1\"; while :; do sleep 0.1; done";
    let mut running = guest.start("try", &["--", "/bin/sh", "-c", script, "sh", begun.to_str().unwrap()]);
    until("it runs", || begun.exists(), || stack_status(&guest).to_string()).await;
    running.hang_up();
    // The fake agent rolls nothing back, and says so.
    assert_eq!(running.end().0.code(), Some(11));
    agent.read(|script| {
        assert_eq!(script.requests[1].0, "/v1/rollback");
        assert_eq!(script.requests[1].2["snapshot"], script.requests[0].2["name"]);
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_tried_without_a_snapshot() {
    let (agent, guest, _world, _) = guest().await;
    agent.script.lock().unwrap().on_request = [OnRequest::Refuse(ErrorCode::Quota)].into();
    let done = guest.path("done");
    let output = guest.ask("try", &["--", "/bin/touch", done.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(!done.exists() && text(&output.stderr).contains("nothing was run"), "{}", text(&output.stderr));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn volumes_are_listed_by_class_and_must_be_mounted() {
    let (_agent, guest, world, _) = guest().await;
    world.set_stacks(
        "[stack.a]\ndriver = \"systemd\"\nunits = [\"db.service\"]\nvolumes.data = { class = \"hot\" }\n",
    );
    let output = guest.ask("volumes", &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("NOT MOUNTED"), "{}", text(&output.stdout));
    let refused = guest.ask("volumes", &["--stack", "a"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("/srv/db is not mounted: stack a would write to the root disk"));
    std::fs::create_dir_all(guest.path("proc/self")).unwrap();
    std::fs::write(guest.path("proc/self/mountinfo"), "23 22 0:21 / /srv/db rw - ext4 /dev/sdb rw\n")
        .unwrap();
    let output = guest.ask("volumes", &["--class", "hot", "--output", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), json["volumes"][0]["state"].as_str()), (Some(0), Some("mounted")));
    assert_eq!(text(&guest.ask("volumes", &["--class", "bulk"]).stdout), "0 volumes\n");
    assert_eq!(text(&guest.ask("volumes", &["--stack", "a"]).stdout), "HOLDFAST_VOLUME_DATA=/srv/db\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stack_with_an_unmounted_volume_is_not_stopped() {
    let (agent, guest, world, before) = guest().await;
    world.set_stacks(
        "[stack.db]\ndriver = \"systemd\"\nunits = [\"db.service\"]\nvolumes.data = { class = \"hot\" }\n",
    );
    let words = "/srv/db is not mounted, and stack db would not start";
    let plan = guest.ask("quiesce", &["--dry-run"]);
    assert_eq!((plan.status.code(), text(&plan.stdout).contains(words)), (Some(1), true), "{plan:?}");
    crate::windows::plan(&agent, |_| {});
    let _running = guest.run();
    crate::windows::over(&guest, words).await;
    assert_eq!((world.states(), world.marker()), (before, false));
    assert!(!world.acts().iter().any(|act| act.contains("stop")), "{:?}", world.acts());
    windows(&agent, |windows| assert_eq!((windows.given_up, windows.quiesced.len()), (1, 0)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stack_without_its_volume_is_not_started() {
    let (agent, guest, world, before) = guest().await;
    std::fs::create_dir_all(guest.path("proc/self")).unwrap();
    let mounted = "23 22 0:21 / /srv/db rw - ext4 /dev/sdb rw\n";
    std::fs::write(guest.path("proc/self/mountinfo"), mounted).unwrap();
    std::fs::create_dir_all(guest.path("srv/db")).unwrap();
    world.set_stacks(
        "[stack.db]\ndriver = \"systemd\"\nunits = [\"db.service\"]\nstop_timeout_s = 1\nvolumes.data = { class = \"hot\" }\n",
    );
    crate::windows::plan(&agent, |windows| windows.stays_at = Some(WindowPhase::Capturing));
    let _running = guest.run();
    until(
        "capturing",
        || windows(&agent, |w| w.phase == Some(WindowPhase::Capturing)),
        || stack_status(&guest).to_string(),
    )
    .await;
    std::fs::write(guest.path("proc/self/mountinfo"), "").unwrap();
    agent.script.lock().unwrap().windows.stays_at = None;
    until("released", || windows(&agent, |w| !w.released.is_empty()), || stack_status(&guest).to_string())
        .await;
    let why = windows(&agent, |w| w.released[0].down[0].why.clone());
    assert!(why.contains("/srv/db is not mounted") && why.contains("root disk"), "{why}");
    assert_eq!(world.states()["db.service"], "inactive");
    std::fs::write(guest.path("proc/self/mountinfo"), mounted).unwrap();
    until("back", || world.states() == before && !world.marker(), || stack_status(&guest).to_string()).await;
}

/// As systemd does when the guest shuts down: in most cases because of the rollback itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminated_try_is_continued_by_the_controller() {
    let (agent, guest, _world, before) = guest().await;
    agent.script.lock().unwrap().rolls_back_slowly = true;
    let running = guest.start("try", &["--", "/bin/false"]);
    let requests = || agent.read(|script| script.requests.len());
    until("a rollback is asked for", || requests() == 2, || stack_status(&guest).to_string()).await;
    // Without that it ends with its rollback, and this one never does.
    let (status, log) = running.stop();
    assert_eq!(status.code(), Some(12), "{log}");
    assert!(guest.path("var/lib/holdfast/try.json").exists(), "how far it is lies on the disk");
    // The rollback never happens: the next start requests it once, and reports its outcome.
    let running = guest.run();
    until("asked again", || requests() == 3, || stack_status(&guest).to_string()).await;
    agent.read(|script| {
        assert_eq!(script.requests[2].0, "/v1/rollback");
        assert_eq!(script.requests[2].2["snapshot"], script.requests[0].2["name"]);
    });
    agent.script.lock().unwrap().rolls_back_slowly = false;
    let said = || stack_status(&guest)["last_try"]["message"].as_str().unwrap_or_default().to_owned();
    until("told", || said().contains("by hand: guestd rollback try-"), || stack_status(&guest).to_string())
        .await;
    assert!(said().contains("the command ended with exit status: 1"), "{}", said());
    until("it is over", || !guest.path("var/lib/holdfast/try.json").exists(), said).await;
    assert_eq!((requests(), before.len()), (3, before.len()));
    drop(running);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_command_failed_and_a_finished_one_is_checked() {
    let (agent, guest, world, _) = guest().await;
    // Its program ignores SIGTERM, as some do.
    let begun = guest.path("begun");
    let script = "trap '' TERM; exec 2>/dev/null; touch \"$1\"; while [ -e \"$1\" ]; do sleep 0.1; done";
    let running = guest.start("try", &["--", "/bin/sh", "-c", script, "sh", begun.to_str().unwrap()]);
    until("it runs", || begun.exists(), || stack_status(&guest).to_string()).await;
    assert_eq!(running.stop().0.code(), Some(12));
    let said = || stack_status(&guest)["last_try"]["message"].as_str().unwrap_or_default().to_owned();
    let controller = guest.run();
    let asked = || agent.read(|script| script.requests.iter().any(|request| request.0 == "/v1/rollback"));
    until("a rollback is asked for", asked, || stack_status(&guest).to_string()).await;
    until("told", || said().contains("was cut off before it ended"), || stack_status(&guest).to_string())
        .await;
    drop(controller);
    let _ = std::fs::remove_file(guest.path("var/lib/holdfast/try.json"));

    // The command ended well, and the guest went down while a stack was not yet well after it.
    agent.script.lock().unwrap().requests.clear();
    let stop = "echo 'app web exited' > \"$1/world/c/web1\"";
    let root = guest.path("");
    let running = guest.start("try", &["--", "/bin/sh", "-c", stop, "sh", root.to_str().unwrap()]);
    let file = guest.path("var/lib/holdfast/try.json");
    let stage = || std::fs::read_to_string(&file).unwrap_or_default().contains("\"stacks\"");
    until("it asks the stacks", stage, || stack_status(&guest).to_string()).await;
    assert_eq!(running.stop().0.code(), Some(12));
    world.set_container("web1", Some("app web running"));
    let _controller = guest.run();
    until("kept", || said().contains("what was tried is kept"), || stack_status(&guest).to_string()).await;
    until("over", || !file.exists(), said).await;
    assert!(!asked(), "{}", said());
}

/// Who took another snapshot since has a plan of their own, and what came out of a backup has none at all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_rollback_to_a_try_snapshot_past_later_ones() {
    let (agent, guest, _world, _) = guest().await;
    agent.script.lock().unwrap().other_snapshots.push("mine".to_owned());
    std::fs::write(
        guest.path("var/lib/holdfast/try.json"),
        r#"{"schema":"holdfast.guestd-try/v1","snapshot":"try-1","well":[],"stage":{"is":"command"}}"#,
    )
    .unwrap();
    let _controller = guest.run();
    let said = || stack_status(&guest)["last_try"]["message"].as_str().unwrap_or_default().to_owned();
    until("told", || said().contains("it is not rolled back"), || stack_status(&guest).to_string()).await;
    assert!(agent.read(|script| script.requests.is_empty()));
}
