//! People in a guest with stacks.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::local::window::WindowPhase;
use holdfast_protocol::protection::Tier;

use crate::fake_agent::OnWish;
use crate::guest::until;
use crate::windows::{guest, told, windows};

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_by_hand_has_a_window_unless_it_is_told_not_to() {
    let (agent, guest, world, before) = guest().await;
    let output = guest.ask("backup", &[]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("holds the stacks standing still: says the test"), "{said}");
    assert_eq!(text(&output.stdout), "backup is done\n");
    assert_eq!((world.states(), windows(&agent, |w| w.quiesced.len())), (before.clone(), 1));
    assert!(world.acts().contains(&"docker stop cache1".to_owned()));
    let acts = world.acts().len();
    let plain = guest.ask("backup", &["--crash-consistent"]);
    assert_eq!(plain.status.code(), Some(0), "{}", text(&plain.stderr));
    assert_eq!(world.acts().len(), acts, "nothing was stopped for it");
    let last = || agent.read(|book| book.wishes.last().map(|wish| (wish.0.clone(), wish.2.clone())));
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
async fn an_interrupt_brings_the_stacks_back_and_the_agent_hears_it() {
    let (agent, guest, world, before) = guest().await;
    agent.book.lock().unwrap().windows.stays_at = Some(WindowPhase::Capturing);
    let running = guest.start("backup", &["--no-wait"]);
    until(
        "capturing",
        || windows(&agent, |w| w.phase == Some(WindowPhase::Capturing)),
        || told(&guest).to_string(),
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
async fn a_command_is_tried_and_kept_when_all_is_well() {
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
    agent.read(|book| {
        assert_eq!(book.wishes.len(), 1);
        assert_eq!((book.wishes[0].0.as_str(), &book.wishes[0].2["keep_s"]), ("/v1/snapshots", &7200.into()));
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_fails_or_breaks_a_stack_is_rolled_back() {
    let broken = "for c in web1 web2; do echo 'app web exited' > \"$1/world/c/$c\"; done";
    for (script, words) in [
        ("exit 3", "the command ended with exit status: 3"),
        (broken, "stack app is not well: web do not run"),
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
        agent.read(|book| {
            assert_eq!(book.wishes[1].0, "/v1/rollback");
            assert_eq!(book.wishes[1].2["snapshot"], book.wishes[0].2["name"]);
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_whose_terminal_is_lost_is_judged_and_rolled_back() {
    let (agent, guest, _world, _) = guest().await;
    let begun = guest.path("begun");
    let script = "touch \"$1\"; while :; do sleep 0.1; done";
    let mut running = guest.start("try", &["--", "/bin/sh", "-c", script, "sh", begun.to_str().unwrap()]);
    until("it runs", || begun.exists(), || told(&guest).to_string()).await;
    running.hang_up();
    // The fake agent rolls nothing back, and says so.
    assert_eq!(running.end().0.code(), Some(11));
    agent.read(|book| {
        assert_eq!(book.wishes[1].0, "/v1/rollback");
        assert_eq!(book.wishes[1].2["snapshot"], book.wishes[0].2["name"]);
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_snapshot_nothing_is_tried() {
    let (agent, guest, _world, _) = guest().await;
    agent.book.lock().unwrap().on_wish = [OnWish::Refuse(ErrorCode::Quota)].into();
    let done = guest.path("done");
    let output = guest.ask("try", &["--", "/bin/touch", done.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(!done.exists() && text(&output.stderr).contains("nothing was run"), "{}", text(&output.stderr));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn volumes_are_told_by_class_and_a_missing_mount_is_no_place_for_a_stack() {
    let (_agent, guest, world, _) = guest().await;
    world.set_stacks(
        "[stack.a]\ndriver = \"systemd\"\nunits = [\"db.service\"]\nvolumes.data = { class = \"hot\" }\n",
    );
    let output = guest.ask("volumes", &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("NOT MOUNTED"), "{}", text(&output.stdout));
    let refused = guest.ask("volumes", &["--stack", "a"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("/srv/db is not mounted: stack a would write onto the root disk"));
    std::fs::create_dir_all(guest.path("proc/self")).unwrap();
    std::fs::write(guest.path("proc/self/mountinfo"), "23 22 0:21 / /srv/db rw - ext4 /dev/sdb rw\n")
        .unwrap();
    let output = guest.ask("volumes", &["--class", "hot", "--output", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), json["volumes"][0]["stands"].as_str()), (Some(0), Some("mounted")));
    assert_eq!(text(&guest.ask("volumes", &["--class", "bulk"]).stdout), "0 volumes\n");
    assert_eq!(text(&guest.ask("volumes", &["--stack", "a"]).stdout), "HOLDFAST_VOLUME_DATA=/srv/db\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stack_whose_volume_is_not_mounted_is_not_stopped() {
    let (agent, guest, world, before) = guest().await;
    world.set_stacks(
        "[stack.db]\ndriver = \"systemd\"\nunits = [\"db.service\"]\nvolumes.data = { class = \"hot\" }\n",
    );
    let words = "/srv/db is not mounted, and stack db would not start again";
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
async fn a_stack_whose_volume_went_is_not_started_on_the_root_disk() {
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
        || told(&guest).to_string(),
    )
    .await;
    std::fs::write(guest.path("proc/self/mountinfo"), "").unwrap();
    agent.book.lock().unwrap().windows.stays_at = None;
    until("released", || windows(&agent, |w| !w.released.is_empty()), || told(&guest).to_string()).await;
    let why = windows(&agent, |w| w.released[0].down[0].why.clone());
    assert!(why.contains("/srv/db is not mounted") && why.contains("root disk"), "{why}");
    assert_eq!(world.states()["db.service"], "inactive");
    std::fs::write(guest.path("proc/self/mountinfo"), mounted).unwrap();
    until("back", || world.states() == before && !world.marker(), || told(&guest).to_string()).await;
}

/// As systemd does when the guest goes down: by the rollback itself, mostly.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trial_lets_go_when_it_is_told_to_end_and_the_controller_goes_on_with_it() {
    let (agent, guest, _world, before) = guest().await;
    agent.book.lock().unwrap().rolls_back_slowly = true;
    let running = guest.start("try", &["--", "/bin/false"]);
    let wishes = || agent.read(|book| book.wishes.len());
    until("a rollback is asked for", || wishes() == 2, || told(&guest).to_string()).await;
    // Without that it ends with its rollback, and this one never does.
    let (status, log) = running.stop();
    assert_eq!(status.code(), Some(12), "{log}");
    assert!(guest.path("var/lib/holdfast/try.json").exists(), "how far it is lies on the disk");
    // The rollback never comes about: the next start asks for it, once, and tells what becomes of it.
    let running = guest.run();
    until("asked again", || wishes() == 3, || told(&guest).to_string()).await;
    agent.read(|book| {
        assert_eq!(book.wishes[2].0, "/v1/rollback");
        assert_eq!(book.wishes[2].2["snapshot"], book.wishes[0].2["name"]);
    });
    agent.book.lock().unwrap().rolls_back_slowly = false;
    let said = || told(&guest)["tried"]["said"].as_str().unwrap_or_default().to_owned();
    until("told", || said().contains("by hand: guestd rollback try-"), || told(&guest).to_string()).await;
    assert!(said().contains("the command ended with exit status: 1"), "{}", said());
    until("it is over", || !guest.path("var/lib/holdfast/try.json").exists(), said).await;
    assert_eq!((wishes(), before.len()), (3, before.len()));
    drop(running);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_was_cut_off_by_the_guests_end_failed_and_one_that_ended_well_is_judged() {
    let (agent, guest, world, _) = guest().await;
    // Its program hears nothing, as some do.
    let begun = guest.path("begun");
    let script = "trap '' TERM; exec 2>/dev/null; touch \"$1\"; while [ -e \"$1\" ]; do sleep 0.1; done";
    let running = guest.start("try", &["--", "/bin/sh", "-c", script, "sh", begun.to_str().unwrap()]);
    until("it runs", || begun.exists(), || told(&guest).to_string()).await;
    assert_eq!(running.stop().0.code(), Some(12));
    let said = || told(&guest)["tried"]["said"].as_str().unwrap_or_default().to_owned();
    let controller = guest.run();
    let asked = || agent.read(|book| book.wishes.iter().any(|wish| wish.0 == "/v1/rollback"));
    until("a rollback is asked for", asked, || told(&guest).to_string()).await;
    until("told", || said().contains("was cut off before it ended"), || told(&guest).to_string()).await;
    drop(controller);
    let _ = std::fs::remove_file(guest.path("var/lib/holdfast/try.json"));

    // The command ended well, and the guest went down while a stack was not yet well after it.
    agent.book.lock().unwrap().wishes.clear();
    let stop = "echo 'app web exited' > \"$1/world/c/web1\"";
    let root = guest.path("");
    let running = guest.start("try", &["--", "/bin/sh", "-c", stop, "sh", root.to_str().unwrap()]);
    let file = guest.path("var/lib/holdfast/try.json");
    let stage = || std::fs::read_to_string(&file).unwrap_or_default().contains("\"stacks\"");
    until("it asks the stacks", stage, || told(&guest).to_string()).await;
    assert_eq!(running.stop().0.code(), Some(12));
    world.set_container("web1", Some("app web running"));
    let _controller = guest.run();
    until("kept", || said().contains("what was tried is kept"), || told(&guest).to_string()).await;
    until("over", || !file.exists(), said).await;
    assert!(!asked(), "{}", said());
}

/// Who took another snapshot since has a plan of their own, and what came out of a backup has none at all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_goes_back_to_a_trials_snapshot_that_others_followed() {
    let (agent, guest, _world, _) = guest().await;
    agent.book.lock().unwrap().other_snapshots.push("mine".to_owned());
    std::fs::write(
        guest.path("var/lib/holdfast/try.json"),
        r#"{"schema":"holdfast.guestd-try/v1","snapshot":"try-1","well":[],"stage":{"is":"command"}}"#,
    )
    .unwrap();
    let _controller = guest.run();
    let said = || told(&guest)["tried"]["said"].as_str().unwrap_or_default().to_owned();
    until("told", || said().contains("it is not rolled back"), || told(&guest).to_string()).await;
    assert!(agent.read(|book| book.wishes.is_empty()));
}
