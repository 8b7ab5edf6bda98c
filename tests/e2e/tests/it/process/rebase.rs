//! Tests of guests on a newer image, by the real programs.
//!
//! In: a host with two images, and a guest on the older one with data on its disks. An operator signs with the real command,
//! and hub, agent and the guest's own controller do the rest. Out: where guest, volumes and former container are
//! afterwards, by Proxmox's configurations, the disks and the report. Deliberately absent: what a crash at each single step
//! leaves, which the crash matrix shows.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use e2e::document;
use e2e::stage::{HOST, ImageChange};
use e2e::wait;
use serde_json::{Value, json};

use super::fire::{Aim, End, Fire};
use super::stand::{self, Stand, well};

/// The newer image.
const NEWER: &str = "2026.12.1";
/// Ends a hang; measures nothing.
const LONG: Duration = Duration::from_secs(180);
const REASON: &str = "the older image gets no updates";

/// Paths of its volumes, and what is on them.
const VOLUMES: [(&str, &str); 2] = [("/srv/db", "orders of acme"), ("/srv/media", "pictures of acme")];

/// An enrolled host that has both images, with an operator who may sign. Its agent does not run yet.
fn with_two_images(change: ImageChange) -> Stand {
    let mut stand = stand::laid();
    let stage = &mut stand.stage;
    let folder = stage.folder().join("newer");
    std::fs::create_dir(&folder).unwrap();
    stage.start_simulator().unwrap();
    stage.start_hub().unwrap();
    stage.log_in().unwrap();
    let image = stage.golden().changed(&folder, NEWER, change).unwrap();
    let named = stage.put_image(&image).unwrap();
    stage.set_up_agent_with(&["--golden", &named]).unwrap();
    stage.enrol_agent().unwrap();
    stage.make_signer("ada").unwrap();
    // Nobody waits ten minutes here for the end of what was kept.
    let policy = "version = 1\n[verbs.discard_copy]\ndelay_s = 2\n";
    std::fs::write(stage.folder().join("agent/policy.toml"), policy).unwrap();
    stand
}

/// The document with its one guest, on that image.
fn document_on(stand: &Stand, golden: &str) -> Value {
    let mut guest = document::guest(&stand.stage.ground(), 1, "web", "acme");
    guest["golden"] = json!(golden);
    guest["volumes"] = json!([
        { "name": "db", "mount": "/srv/db", "size_gib": 1, "kind": "hot" },
        { "name": "media", "mount": "/srv/media", "size_gib": 2, "kind": { "bulk": { "none": "fetched again" } } },
    ]);
    json!({ "poll_interval_s": 5, "guests": [guest] })
}

fn older(stand: &Stand) -> String {
    stand.stage.ground().golden
}

/// The guest's number, once it is there and its controller has looked at the root disk.
fn placed(stand: &Stand) -> u32 {
    let ready = |guest: &Value| guest["name"] == "web" && well(guest) && !guest["root_disk_data"].is_null();
    let guests = stand.stage.guests_until("the guest", |guests| guests.iter().any(ready)).unwrap();
    number(named(&guests, "web"))
}

/// A wiki on the root disk, and the guest as it reports that.
fn with_a_wiki(stand: &Stand, vmid: u32) {
    let wiki = disk(stand, vmid, "/").unwrap().join("srv/wiki");
    std::fs::create_dir_all(&wiki).unwrap();
    std::fs::write(wiki.join("pages"), "of acme").unwrap();
    // It looks once an hour, and when it starts. The agent starts it, since the document wants that.
    stand.stage.fault(&["stop", &vmid.to_string()]).unwrap();
    let reports = |guest: &Value| guest["root_disk_data"].to_string().contains("/srv/wiki") && well(guest);
    stand.stage.guests_until("the wiki is reported", |guests| reports(named(guests, "web"))).unwrap();
}

/// What a person reads.
fn printed(stand: &Stand, words: &[&str]) -> String {
    let output = stand.stage.holdfast_command(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn number(guest: &Value) -> u32 {
    u32::try_from(guest["vmid"].as_u64().unwrap()).unwrap()
}

fn named<'a>(guests: &'a [Value], name: &str) -> &'a Value {
    let is = |guest: &&Value| guest["name"] == name;
    guests.iter().find(is).unwrap_or_else(|| panic!("no guest {name} in {guests:#?}"))
}

fn configuration(stand: &Stand, vmid: u32) -> String {
    stand.stage.configurations().unwrap().remove(&vmid).unwrap_or_else(|| panic!("guest {vmid} is gone"))
}

fn has_line(text: &str, line: &str) -> bool {
    text.lines().any(|one| one == line)
}

/// Where the disk with this path is; `/` is the root disk.
fn disk(stand: &Stand, vmid: u32, path: &str) -> Option<PathBuf> {
    let text = configuration(stand, vmid);
    let is = |line: &&str| match path {
        "/" => line.starts_with("rootfs: "),
        _ => line.starts_with("mp") && line.split(',').any(|option| option == format!("mp={path}")),
    };
    let line = text.lines().find(is)?;
    let volume = line.split_once(": ")?.1.split(',').next()?.strip_prefix("tank:")?.trim_end_matches(".raw");
    Some(stand.stage.folder().join("sim/root/mnt/tank/images").join(volume).join("tree"))
}

fn content(stand: &Stand, vmid: u32, path: &str) -> Option<String> {
    std::fs::read_to_string(disk(stand, vmid, path)?.join("state")).ok()
}

/// Data of the customer's on every disk of the guest.
fn write_data(stand: &Stand, vmid: u32) {
    for (path, text) in VOLUMES.into_iter().chain([("/", "written outside of volumes")]) {
        std::fs::write(disk(stand, vmid, path).unwrap().join("state"), text).unwrap();
    }
}

fn volumes_are_with(stand: &Stand, vmid: u32) {
    for (path, text) in VOLUMES {
        assert_eq!(content(stand, vmid, path).as_deref(), Some(text), "{path} of guest {vmid}");
    }
}

/// Signs with the real command, and gives the job's id.
fn sign(stand: &Stand) -> String {
    stand.stage.sign(&["web", "--rebase", NEWER], "web", REASON).unwrap()
}

fn host(stand: &Stand) -> Value {
    stand.stage.holdfast(&["host", "show", HOST]).unwrap()
}

/// The one operation of this kind, in a report.
fn rebase(sections: &Value) -> Option<Value> {
    let operations = sections["operations"].as_array()?;
    operations.iter().find(|operation| operation["kind"] == "rebase_guest").cloned()
}

/// The guest is on the newer image under another number, with its identity and volumes, and the former is kept.
fn exchanged(stand: &Stand, was: u32) {
    let guests = stand
        .stage
        .guests_until("the guest on the newer image", |guests| {
            let is = |guest: &Value| guest["name"] == "web" && guest["golden"] == NEWER && well(guest);
            guests.iter().any(is) && guests.iter().any(|guest| guest["status"] == "restored_copy")
        })
        .unwrap();
    let (web, former) = (named(&guests, "web"), named(&guests, "web-former"));
    let now = number(web);
    assert_ne!(now, was);
    assert_eq!(web["uid"], "0193a000-0000-7000-8000-000000000001");
    assert_eq!(former["run"], "stopped", "{former:#}");
    assert_eq!((number(former), former["status"].as_str()), (was, Some("restored_copy")), "{former:#}");
    volumes_are_with(stand, now);
    assert_eq!(content(stand, now, "/"), None, "the root disk is the image's");
    assert!(disk(stand, now, "/").unwrap().join("etc/newer-image").is_file(), "it is the newer image");
    assert_eq!(content(stand, was, "/").as_deref(), Some("written outside of volumes"));
    let (new, old) = (configuration(stand, now), configuration(stand, was));
    for line in ["hostname: web", "protection: 1"] {
        assert!(has_line(&new, line), "{line}: {new}");
    }
    assert!(!new.contains("link_down=1") && new.contains("ip=127.66.0.101/8"), "{new}");
    for line in ["hostname: web-former", "protection: 1"] {
        assert!(has_line(&old, line), "{line}: {old}");
    }
    assert!(old.contains("link_down=1") && !old.contains("mp0: "), "{old}");
}

#[test]
fn a_signed_guest_comes_to_a_newer_image_and_the_document_follows_without_a_fight() {
    let mut stand = with_two_images(ImageChange::OneMoreFile);
    stand.stage.start_agent(None).unwrap();
    stand.stage.apply(&document_on(&stand, &older(&stand)), "one guest").unwrap();
    let was = placed(&stand);
    write_data(&stand, was);
    with_a_wiki(&stand, was);

    // What would be left behind by oversight is named, and nothing is signed.
    let folder = tempfile::tempdir().unwrap();
    let (key, out) = (stand.stage.key(), folder.path().join("job.json"));
    let (key, out) = (key.to_str().unwrap(), out.to_str().unwrap());
    let words =
        ["sign", HOST, "web", "--rebase", NEWER, "--key", key, "--confirm", "web", "--reason", REASON];
    let (code, text) = stand.stage.holdfast_refuses(&[&words[..], &["--out", out]].concat()).unwrap();
    assert!(code == 5 && text.contains("/srv/wiki") && text.contains("--leave-behind"), "{text}");
    assert!(printed(&stand, &["guest", "show", "web"]).contains("/srv/wiki (files of no package"));

    let job = stand.stage.sign(&["web", "--rebase", NEWER, "--leave-behind"], "web", REASON).unwrap();
    stand.stage.job_done(&job).unwrap();
    exchanged(&stand, was);
    assert!(disk(&stand, was, "/").unwrap().join("srv/wiki/pages").is_file(), "it is kept with the former");

    // A person sees all of it in one page.
    let shown = stand.stage.holdfast(&["guest", "show", "web"]).unwrap();
    assert_eq!(shown["golden"], NEWER, "{shown:#}");
    let names_both = |guest: &Value| {
        let conditions = guest["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|condition| {
            let text = condition["message"].as_str().unwrap_or_default();
            text.contains(NEWER) && text.contains(&older(&stand))
        })
    };
    stand
        .stage
        .guests_until("the document is said to name the older image", |guests| {
            names_both(named(guests, "web"))
        })
        .unwrap();

    // The document names the image that the guest is on: nothing is left to say, and nothing to do.
    let before = (stand.stage.configurations().unwrap(), stand.stage.tasks().unwrap());
    stand.stage.apply(&document_on(&stand, NEWER), "the newer image").unwrap();
    let held = |reported: &Value| {
        let generation = reported["sections"]["desired"]["held"].as_u64();
        generation == Some(2) && reported["sections"]["desired"]["refused"].is_null()
    };
    wait::until("the agent holds the new document", LONG, || Ok(held(&host(&stand)).then_some(()))).unwrap();
    stand
        .stage
        .guests_until("nothing to say of the guest", |guests| {
            let web = named(guests, "web");
            web["conditions"].as_array().is_none_or(Vec::is_empty) && well(web)
        })
        .unwrap();
    assert_eq!((stand.stage.configurations().unwrap(), stand.stage.tasks().unwrap()), before);

    // The end of the former, by the line that its page shows.
    let former = printed(&stand, &["guest", "show", "web-former"]);
    assert!(former.contains(&format!("holdfast sign HOST web --discard {was}")), "{former}");
    assert!(former.contains("kept since 20"), "{former}");
    let job = stand.stage.sign(&["web", "--discard", "web-former"], "web", "nobody missed anything").unwrap();
    stand.stage.job_done(&job).unwrap();
    let configurations = stand.stage.configurations().unwrap();
    assert!(!configurations.contains_key(&was), "{configurations:#?}");
    let images = stand.stage.folder().join("sim/root/mnt/tank/images").join(was.to_string());
    assert!(!images.exists() || std::fs::read_dir(images).unwrap().next().is_none(), "its disk is freed");
    let guests = stand
        .stage
        .guests_until("the former is gone", |guests| {
            !guests.iter().any(|guest| guest["name"] == "web-former")
        })
        .unwrap();
    let web = named(&guests, "web");
    assert!(well(web), "{web:#}");
    volumes_are_with(&stand, number(web));
}

#[test]
fn a_newer_image_that_never_says_hello_is_taken_back_and_the_report_says_why() {
    let mut stand = with_two_images(ImageChange::NoController);
    stand.stage.start_agent(None).unwrap();
    stand.stage.apply(&document_on(&stand, &older(&stand)), "one guest").unwrap();
    let was = placed(&stand);
    write_data(&stand, was);
    let before = configuration(&stand, was);

    let job = sign(&stand);
    let waits = wait::until("the new container is waited for", LONG, || {
        let operation = rebase(&host(&stand)["sections"]);
        let waits = operation.filter(|operation| {
            let steps = operation["steps"].as_array().cloned().unwrap_or_default();
            steps.iter().any(|step| step["name"] == "await_hello" && step["status"] == "intended")
        });
        Ok(waits)
    })
    .unwrap();
    // It goes down by itself, so that nobody waits five minutes for its hello here.
    let next = number(&waits);
    assert_ne!(next, was);
    volumes_are_with(&stand, next);
    stand.stage.fault(&["stop", &next.to_string()]).unwrap();

    let end = stand.stage.holdfast(&["job", "watch", HOST, &job, "--timeout", "180"]);
    let failed = wait::until("the job ended", LONG, || {
        let jobs = host(&stand)["sections"]["jobs"].as_array().cloned().unwrap_or_default();
        Ok(jobs.into_iter().find(|one| one["id"] == job.as_str() && one["state"] == "failed"))
    })
    .unwrap_or_else(|error| panic!("{error:#}; {end:?}"));
    let why = failed.to_string();
    assert!(why.contains("the guest stopped before its controller said hello"), "{failed:#}");

    let guests = stand
        .stage
        .guests_until("the guest runs where it was", |guests| {
            let web = named(guests, "web");
            number(web) == was && well(web) && web["golden"] == older(&stand).as_str()
        })
        .unwrap();
    assert!(guests.iter().all(|guest| guest["status"] != "restored_copy"), "{guests:#?}");
    assert!(!stand.stage.configurations().unwrap().contains_key(&next), "what was made is gone");
    volumes_are_with(&stand, was);
    // Volumes that came back have other names, and nothing else of it is another.
    let face = |text: &str| {
        let passing = ["mp", "lxc.environment", "[pve:pending]", "delete: env"];
        let kept = |line: &&str| !line.is_empty() && !passing.iter().any(|start| line.starts_with(start));
        let lines: BTreeSet<String> = text.lines().filter(kept).map(str::to_owned).collect();
        lines
    };
    assert_eq!(face(&configuration(&stand, was)), face(&before));
}

/// The moments between the stop of the guest and the change of our records, in order.
const MOMENTS: [&str; 6] = [
    "demote_original:after:effect",
    "move_volume:after:intent",
    "move_volume:after:effect",
    "move_volume:after:outcome",
    "promote_copy:after:effect",
    "confirm_placed:before:outcome",
];

#[test]
fn an_agent_that_is_killed_at_the_moves_carries_the_exchange_on() {
    let stand = with_two_images(ImageChange::OneMoreFile);
    let mut fire = Fire::new(stand);
    let stage = &fire.stand.stage;
    stage.apply(&document_on(&fire.stand, &older(&fire.stand)), "one guest").unwrap();
    let web = |reported: &Value| {
        let guests = reported["sections"]["guests"].as_array().cloned().unwrap_or_default();
        guests.into_iter().find(|guest| guest["name"] == "web")
    };
    // What is signed is what the hub shows, so this life ends when the hub has seen the guest.
    fire.stand.stage.start_agent(None).unwrap();
    let was = placed(&fire.stand);
    write_data(&fire.stand, was);
    sign(&fire.stand);
    fire.stand.stage.kill_agent().unwrap();

    let done = |reported: &Value| {
        let done = rebase(&reported["sections"]).is_some_and(|operation| operation["status"] == "done");
        done && web(reported).is_some_and(|guest| guest["golden"] == NEWER && well(&guest))
    };
    let mut killed = Vec::new();
    for moment in MOMENTS {
        if fire.live(&Aim::Name(moment.to_owned()), done) == End::Killed(Some(moment.to_owned())) {
            killed.push(moment);
        }
    }
    if killed.len() < MOMENTS.len() {
        let points: Vec<_> = fire.lives.iter().map(|life| &life.points).collect();
        panic!("killed only at {killed:?}; the points were {points:#?}");
    }
    assert_eq!(fire.live(&Aim::Rest, done), End::Rested);
    let operations = fire.books().operations.values();
    assert_eq!(operations.filter(|operation| operation.kind == "rebase_guest").count(), 1, "once");
    fire.stand.stage.start_agent(None).unwrap();
    exchanged(&fire.stand, was);
}
