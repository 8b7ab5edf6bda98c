//! Tests of security upgrades in a booted guest.
//!
//! Three of them. A good one is installed behind a snapshot; it needs a restart, which is reported, and done in the
//! window. One whose script fails is left half done by dpkg: the guest goes back to its snapshot, with all its files,
//! and the agent and the hub report it. The timer is switched off, and the test starts what it would start, so that no
//! test waits for half an hour.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use e2e::wait;
use serde_json::{Value, json};

use super::builds::digest;
use super::disk::run;
use super::guest::Guest;
use super::stand::{self, Stand};

/// The guest.
const MEND: &str = "mend";
/// A snapshot, a run of apt, a restart of a Debian, a hello a minute; nothing is measured by it.
const DONE: Duration = Duration::from_secs(600);

const UNIT: &str = "holdfast-upgrade.service";
/// What the guest agent remembers of upgrades.
const RECORD: &str = "/var/lib/holdfast/upgrade.json";

/// Packages change behind a snapshot or not at all, however long a snapshot takes while other stories run.
const STACKS: &str = "[apt]\nsnapshot = \"must\"\nafter = \"roll_back\"\n";

/// The archive, at an address that only the guest itself reaches. It is served again after each start.
const SERVED: &str = "[Service]\nExecStart=/usr/bin/busybox httpd -f -p 127.0.0.1:8080 -h /srv/archive\n\
                      [Install]\nWantedBy=multi-user.target\n";
const SOURCE: &str = "deb [trusted=yes] http://127.0.0.1:8080 ./\n";

/// A script of a package that is in use only after a restart.
const ASKS: &str = "#!/bin/sh\ntouch /run/reboot-required\n";
const FAILS: &str = "#!/bin/sh\necho half > /srv/half\nexit 1\n";
const QUIET: &str = "#!/bin/sh\nexit 0\n";

pub fn reported(stand: &Stand) {
    let mend = stand.made(3, MEND);
    prepared(stand, &mend);
    is_installed(stand, &mend);
    restarts(stand, &mend);
    goes_back(stand, &mend);
}

/// One package is installed, and the guest's only source of packages is the archive.
fn prepared(stand: &Stand, mend: &Guest) {
    mend.run(&["systemctl", "mask", "--now", "holdfast-upgrade.timer"]);
    mend.run(&["rm", "-rf", "/etc/apt/sources.list", "/etc/apt/sources.list.d"]);
    for (inside, text) in [
        ("/etc/apt/sources.list", SOURCE),
        ("/etc/holdfast/stacks.toml", STACKS),
        ("/etc/systemd/system/archive.service", SERVED),
    ] {
        mend.write(inside, text);
    }
    published(stand, mend, 1, QUIET);
    mend.run(&["dpkg", "--install", "/srv/archive/mended_1.deb"]);
    mend.run(&["systemctl", "daemon-reload"]);
    mend.run(&["systemctl", "enable", "--now", "archive.service"]);
    assert_eq!(installed(mend), "installed 1");
}

fn is_installed(stand: &Stand, mend: &Guest) {
    published(stand, mend, 2, ASKS);
    stand.step(&format!("{MEND}: a security upgrade in a maintenance window"));
    window(stand, mend);
    let said = wait::until("the upgrade", DONE, || {
        // Once more, and it would be restarted.
        by_timer(mend, "attempted", &Value::Null);
        Ok(Some(last(mend)).filter(|last| last["outcome"] == "upgraded"))
    });
    let said = said.unwrap_or_else(|error| panic!("{error}: {:#}", last(mend)));
    println!("         {}", said["why"]);
    assert!(said["why"].as_str().unwrap().starts_with("mended: "), "{said:#}");
    assert!(said["snapshot"].as_str().unwrap().starts_with("upgrade-"), "{said:#}");
    assert_eq!((installed(mend).as_str(), version(mend).as_str()), ("installed 2", "2"));
    assert_eq!(snapshots(stand, mend), [said["snapshot"].as_str().unwrap()]);
}

/// A needed restart is reported. In the window the restart happens, and nothing is left to report.
fn restarts(stand: &Stand, mend: &Guest) {
    // A hello each minute is soon enough for everything but this test.
    mend.run(&["systemctl", "restart", "guestd.service"]);
    let words = condition(stand, "RESTART_NEEDED");
    println!("         {words}");
    assert!(words.contains("a package asked for it"), "{words}");
    stand.step(&format!("{MEND}: it is restarted in the window"));
    let before = mend.init().expect("it runs");
    wait::until("its restart", DONE, || {
        by_timer(mend, "restarted", &Value::Null);
        Ok(mend.init().filter(|init| *init != before))
    })
    .unwrap();
    wait::until("its boot", DONE, || Ok(mend.is_up().then_some(()))).unwrap();
    wait::until("nothing is left to tell", DONE, || {
        let reported = stand.reported(MEND)?.filter(|reported| conditions(reported).next().is_none());
        Ok(reported.filter(|reported| reported["controller"]["health"] == "well"))
    })
    .unwrap();
    assert_eq!(installed(mend), "installed 2");
    assert!(record(mend)["restarted"].is_string(), "{:#}", record(mend));
}

fn goes_back(stand: &Stand, mend: &Guest) {
    published(stand, mend, 3, FAILS);
    stand.step(&format!("{MEND}: a security upgrade that fails, in the next window"));
    let (before, attempted) = (mend.init().expect("it runs"), record(mend)["attempted"].clone());
    window(stand, mend);
    wait::until("the guest went back, and was started", DONE, || {
        by_timer(mend, "attempted", &attempted);
        Ok(mend.init().filter(|init| *init != before))
    })
    .unwrap_or_else(|error| panic!("{error}: {:#}", last(mend)));
    wait::until("its boot", DONE, || Ok(mend.is_up().then_some(()))).unwrap();
    stand.step(&format!("{MEND}: it is as before it"));
    assert_eq!((installed(mend).as_str(), version(mend).as_str()), ("installed 2", "2"));
    assert!(!mend.path("/srv/half").exists(), "what its script wrote is gone, too");
    let kept = snapshots(stand, mend);
    assert_eq!(kept.len(), 1, "the one of this upgrade, and none of the one before: {kept:?}");
    // Before the rollback, the condition under the same code says that the upgrade failed.
    let words = condition_with(stand, "BROKEN", "was taken back");
    println!("         {words}");
    assert!(words.contains(&kept[0]), "{words}");
    assert_eq!(last(mend)["outcome"], "rolled_back", "{:#}", last(mend));
    // The agent's own records at the host show it, too.
    let status = stand.stage.agent_says(&["status"]).unwrap();
    let all = status["sections"]["operations"].as_array().cloned().unwrap_or_default();
    let is = |one: &&Value| one["kind"] == "roll_back" && one["name"] == MEND;
    let backs: Vec<&Value> = all.iter().filter(is).collect();
    assert_eq!(backs.len(), 1, "{all:#?}");
    assert_eq!(backs[0]["status"], "done", "{:#}", backs[0]);
    // The window is open, and the same is not tried again.
    mend.run(&["systemctl", "start", UNIT]);
    assert_eq!((installed(mend).as_str(), snapshots(stand, mend)), ("installed 2", kept));
}

/// The document opens a window that was not open when an upgrade was last begun.
fn window(stand: &Stand, mend: &Guest) {
    let minute = match mend.path(RECORD).exists() {
        true => now().as_secs() / 60 + 1,
        false => now().as_secs() / 60,
    };
    let at = format!("{:02}:{:02}", minute / 60 % 24, minute % 60);
    // For half a day: the next one does not begin while the suite runs.
    let windows = json!({ "at": [at], "zone": "UTC", "jitter_min": 0, "window_min": 720 });
    stand.goal("a maintenance window", |document| {
        stand::guest_in(document, MEND)["maintenance"] = json!({ "windows": windows });
    });
    wait::until("it begins", DONE, || Ok((now().as_secs() >= minute * 60).then_some(()))).unwrap();
}

#[expect(clippy::disallowed_methods, reason = "the agent under test goes by the machine's own clock")]
fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

/// Starts what the timer starts, until the guest agent recorded that it began. The document may not have arrived yet,
/// or something else may be in progress. After that no command enters a guest that shuts down.
fn by_timer(mend: &Guest, field: &str, before: &Value) {
    if record(mend)[field] == *before {
        // It is started more often than systemd's limit allows.
        let script = format!("systemctl reset-failed {UNIT}; systemctl start --no-block {UNIT}");
        let _ended = mend.attempts(&["/bin/sh", "-c", &script]);
    }
}

/// Puts a version of the package into the archive, alone.
fn published(stand: &Stand, mend: &Guest, version: u8, script: &str) {
    let folder = stand.folder().join(format!("mended-{version}"));
    let control = format!(
        "Package: mended\nVersion: {version}\nArchitecture: all\nMaintainer: tests <tests@example>\nDescription: mended\n"
    );
    let text = |path: PathBuf| path.to_str().unwrap().to_owned();
    for (file, text) in [
        ("DEBIAN/control", control.as_str()),
        ("DEBIAN/postinst", script),
        ("usr/lib/mended/version", &version.to_string()),
    ] {
        std::fs::create_dir_all(folder.join(file).parent().unwrap()).unwrap();
        std::fs::write(folder.join(file), text).unwrap();
    }
    run("chmod", &["755", &text(folder.join("DEBIAN/postinst"))]);
    let name = format!("mended_{version}.deb");
    let built = stand.folder().join(&name);
    let pack = ["--root-owner-group", "-Zgzip", "-z1", "--build"];
    run("dpkg-deb", &[&pack[..], &[&text(folder), &text(built.clone())]].concat());
    let (bytes, sha256) = (built.metadata().unwrap().len(), digest(&built));
    let packages = format!("{control}Filename: ./{name}\nSize: {bytes}\nSHA256: {sha256}\n");
    let index = stand.folder().join("Packages");
    std::fs::write(&index, &packages).unwrap();
    let (date, bytes, sha256) = (run("date", &["-R", "--utc"]), packages.len(), digest(&index));
    let release =
        format!("Label: Debian-Security\nDate: {}\nSHA256:\n {sha256} {bytes} Packages\n", date.trim());
    std::fs::create_dir_all(mend.path("/srv/archive")).unwrap();
    std::fs::copy(&built, mend.path("/srv/archive").join(&name)).unwrap();
    mend.write("/srv/archive/Packages", &packages);
    mend.write("/srv/archive/Release", &release);
    // Nothing requests it before it is served: a version that cannot be fetched is not tried again in a window.
    if version > 1 {
        let ask = ["/usr/bin/busybox", "wget", "-q", "-O", "-", "http://127.0.0.1:8080/Release"];
        wait::until("the archive is served", DONE, || {
            let said = mend.attempts(&ask);
            Ok(said.filter(|said| said.status.success() && said.stdout == release.as_bytes()))
        })
        .unwrap();
    }
}

/// State and version, as dpkg has them. What runs it in the guest reads a dollar as a variable.
fn installed(mend: &Guest) -> String {
    mend.run(&["dpkg-query", "--show", "--showformat=$${db:Status-Status} $${Version}", "mended"])
}

/// The package's own file.
fn version(mend: &Guest) -> String {
    mend.read("/usr/lib/mended/version")
}

/// The record of the guest agent; null when it does not exist yet.
fn record(mend: &Guest) -> Value {
    let text = std::fs::read(mend.path(RECORD)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

fn last(mend: &Guest) -> Value {
    record(mend)["last"].clone()
}

/// Its snapshots for upgrades, as Proxmox has them.
fn snapshots(stand: &Stand, mend: &Guest) -> Vec<String> {
    let text = stand.stage.configurations().unwrap().remove(&mend.vmid).expect("its configuration");
    let sections = text.lines().filter_map(|line| line.strip_prefix('[')?.strip_suffix(']'));
    sections.filter(|name| name.starts_with("upgrade-")).map(str::to_owned).collect()
}

fn conditions(reported: &Value) -> impl Iterator<Item = &Value> {
    reported["conditions"].as_array().into_iter().flatten()
}

/// The text of the condition that the hub reports for the guest under this code, once it does.
fn condition(stand: &Stand, code: &str) -> String {
    condition_with(stand, code, "")
}

/// The same, once the text contains this part.
fn condition_with(stand: &Stand, code: &str, part: &str) -> String {
    let mut seen = Value::Null;
    let words = wait::until(code, DONE, || {
        seen = stand.reported(MEND)?.unwrap_or_default();
        let found = conditions(&seen).find(|one| one["code"] == code);
        let words = found.and_then(|one| one["message"].as_str());
        Ok(words.filter(|words| words.contains(part)).map(str::to_owned))
    });
    words.unwrap_or_else(|error| panic!("{error}: {seen:#}"))
}
