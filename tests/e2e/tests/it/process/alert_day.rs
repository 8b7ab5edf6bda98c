//! A day of faults: which notices went out, and when.
//!
//! The programs are real, and so are the kills: at chosen moments, and, between a fault and its notice, of hub, agent, both
//! or neither, at once or when the hub has the alert, as the turn of this run chooses. The rules shorten all waits, so a fault takes seconds. Each step
//! waits for its notice and for the notice that it is over. At the end the list of what the receiver was sent must be exactly
//! the list of the steps: nothing missing, nothing twice, nothing false.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use e2e::{document, wait};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::notices::Notices;
use super::stand::{self, FOREIGN_VMID, Stand, well};

/// The longest wait for a notice: an interval of three polls, the alarm, a tick, the wait of the group.
const NOTICE: Duration = Duration::from_secs(150);

/// Waits in seconds, for every code that the day raises.
const RULES: &str = r#"
[alerts]
group_wait_s = 1
group_interval_s = 10
"#;

const CODES: [&str; 7] = [
    "BULK_CHANGE_HELD",
    "GUEST_MISSING",
    "HOST_OFFLINE",
    "HUB_BACKUP_OLD",
    "PROXMOX_AWAY",
    "STORAGE_FILLING",
    "TOKEN_EXPIRING",
];

/// What the receiver was sent, each delivery once.
struct Sent {
    order: Vec<String>,
    first_at: BTreeMap<String, Duration>,
}

struct Day {
    stand: Stand,
    receiver: Notices,
    begun: Instant,
    steps: Vec<(String, &'static str)>,
    /// Numbers that choose kills.
    chance: u64,
}

/// Where the hub's backups would be.
fn backups(folder: &Path) -> std::path::PathBuf {
    folder.join("hub-backups")
}

fn settings(receiver: &Notices, folder: &Path) -> String {
    use std::os::unix::fs::PermissionsExt;
    let file = folder.join("receiver.toml");
    let key = "0123456789abcdef0123456789abcdef";
    let text = format!("kind = \"webhook\"\nurl = \"{}\"\nkey = \"{key}\"\n", receiver.url());
    std::fs::write(&file, text).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let grace = CODES.map(|code| {
        format!("[[alerts.grace]]\nmatchers = [\"code={code}\"]\nfire_after_s = 2\nclear_after_s = 2\n")
    });
    format!(
        "deliver_to = \"loopback\"\n[[receiver]]\nname = \"ops\"\nfile = \"{}\"\n[backup]\npath = \"{}\"\n{RULES}{}",
        file.display(),
        backups(folder).display(),
        grace.concat()
    )
}

/// Whether the hub has a backup when it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HubBackup {
    Missing,
    Taken,
}

/// As far as its age is looked at.
fn take_backup(stand: &Stand) {
    std::fs::write(backups(stand.stage.folder()).join("today"), "x").unwrap();
}

/// Of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    Begin,
    End,
}

impl Day {
    fn begin(backup: HubBackup) -> Self {
        let stand = stand::laid();
        let receiver = Notices::new();
        std::fs::create_dir(backups(stand.stage.folder())).unwrap();
        if backup == HubBackup::Taken {
            take_backup(&stand);
        }
        let settings = settings(&receiver, stand.stage.folder());
        stand.stage.write_hub_settings(&settings).unwrap();
        let stand = stand::enrol(stand);
        hold_every_stop(&stand);
        let turn: u64 = std::env::var("HOLDFAST_CI_TURN").map_or(1, |text| text.parse().unwrap());
        println!("kills of turn {turn}; again: HOLDFAST_CI_TURN={turn} cargo xtask e2e alert_day");
        Self { stand, receiver, begun: Instant::now(), steps: Vec::new(), chance: turn.wrapping_mul(2) | 1 }
    }

    /// A number below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        self.chance % bound
    }

    /// Kills one of the programs, both or none, and starts it again: at once, or as soon as the hub has this phase of the alert.
    fn kill_something(&mut self, code: &str, phases: &[&str]) {
        let (at_once, which) = (self.below(2) == 0, self.below(4));
        if !at_once {
            let has = |alert: &Value| {
                alert["code"] == code && alert["phase"].as_str().is_some_and(|phase| phases.contains(&phase))
            };
            let stage = &self.stand.stage;
            let came = wait::until("the hub has the alert", NOTICE, || {
                let all = stage.holdfast(&["alert", "list", "--all"])?;
                Ok(all.as_array().is_some_and(|all| all.iter().any(has)).then_some(()))
            });
            came.unwrap();
        }
        if which & 1 == 1 {
            self.kill_hub();
        }
        if which & 2 == 2 {
            let stage = &mut self.stand.stage;
            stage.kill_agent().unwrap();
            stage.start_agent(None).unwrap();
        }
        let when = if at_once { "at once" } else { "when the hub had it" };
        println!(
            "killed: {}, {when}",
            ["nothing", "the hub", "the agent", "both"][usize::try_from(which).unwrap()]
        );
    }

    /// A hub looks at its own rows when it starts, and then each minute.
    fn kill_hub(&mut self) {
        self.stand.stage.kill_hub().unwrap();
        self.stand.stage.start_hub_again().unwrap();
    }

    /// Changes the node by hand.
    fn by_hand(&self, edits: &[Value]) {
        let file = self.stand.stage.folder().join("edits");
        let lines: String = edits.iter().map(|edit| format!("{}\n", json!({ "edit": edit }))).collect();
        std::fs::write(&file, lines).unwrap();
        self.stand.stage.fault(&["script", file.to_str().unwrap()]).unwrap();
    }

    /// A fault and its end, each with kills before its notice is there.
    fn comes_and_goes(&mut self, what: &str, why: [&'static str; 2], mut act: impl FnMut(&mut Self, Moment)) {
        let code = what.split(' ').nth_back(1).unwrap().to_owned();
        let place = what.split(": ").next().unwrap().to_owned();
        act(self, Moment::Begin);
        self.kill_something(&code, &["pending", "firing"]);
        self.hears(what, why[0]);
        act(self, Moment::End);
        self.kill_something(&code, &["resolved"]);
        self.hears(&format!("{place}: {code} is over"), why[1]);
    }

    /// Titles in the order of their first arrival. A repeat has the key of the first.
    fn sent(&self) -> Sent {
        let mut seen = BTreeMap::new();
        let mut sent = Sent { order: Vec::new(), first_at: BTreeMap::new() };
        for (request, at) in self.receiver.with_times() {
            let (head, body) = request.split_once("\r\n\r\n").unwrap();
            let key = head.lines().find_map(|line| line.strip_prefix("idempotency-key: ")).unwrap();
            let body: Value = serde_json::from_str(body).unwrap();
            let title = body["title"].as_str().unwrap().to_owned();
            if seen.insert(key.to_owned(), ()).is_none() {
                sent.first_at.entry(title.clone()).or_insert(at.duration_since(self.begun));
                sent.order.push(title);
            }
        }
        sent
    }

    /// Waits until a notice with this title came, and writes the step down.
    fn hears(&mut self, title: &str, why: &'static str) {
        let wanted = self.steps.iter().filter(|(step, _)| step == title).count() + 1;
        let came = wait::until(title, NOTICE, || {
            let count = self.sent().order.iter().filter(|one| *one == title).count();
            Ok((count >= wanted).then_some(()))
        });
        if let Err(error) = came {
            panic!("{error}; sent so far: {:#?}", self.sent().order);
        }
        self.steps.push((title.to_owned(), why));
    }

    fn apply(&self, guest: &Value, why: &str) {
        let document = json!({ "poll_interval_s": 5, "alarm_after_s": 60, "guests": [guest] });
        self.stand.stage.apply(&document, why).unwrap();
    }

    /// The table, and that it is the whole list.
    fn end(self) {
        let sent = self.sent();
        println!("{:>7}  {:<45} why", "at", "to ops");
        for (title, why) in &self.steps {
            let at = sent.first_at[title].as_secs();
            println!("{at:>5} s  {title:<45} {why}");
        }
        let steps: Vec<&String> = self.steps.iter().map(|(title, _)| title).collect();
        assert_eq!(sent.order.iter().collect::<Vec<_>>(), steps, "nothing missing, twice or false");
        println!("{} notices, 0 missing, 0 twice, 0 false", steps.len());
    }
}

/// A brake that lets documents stop no guest.
fn hold_every_stop(stand: &Stand) {
    let config = stand.stage.folder().join("agent/agent.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let lines = text.lines().map(|line| match line.split_once(" = ") {
        Some((key @ ("at_least" | "share_percent"), _)) => format!("{key} = 0\n"),
        _ => format!("{line}\n"),
    });
    std::fs::write(&config, lines.collect::<String>()).unwrap();
}

fn signal(pid: Option<u32>, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid.unwrap()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

#[test]
fn each_fault_is_heard_of_once_and_so_is_its_end() {
    let mut day = Day::begin(HubBackup::Missing);
    day.stand.stage.start_agent(None).unwrap();
    day.hears("the hub: HUB_BACKUP_OLD (critical)", "the folder of the hub's backups is empty");
    take_backup(&day.stand);
    day.kill_hub();
    day.hears("the hub: HUB_BACKUP_OLD is over", "there is one");
    let mut guest = document::guest(&day.stand.stage.ground(), 1, "web", "acme");
    day.apply(&guest, "one guest");
    let made = |guests: &[Value]| guests.len() == 1 && guests.iter().all(well);
    day.stand.stage.guests_until("one guest", made).unwrap();

    guest["run"] = json!("stopped");
    day.apply(&guest, "stopped");
    day.hears("box1: BULK_CHANGE_HELD (warning)", "a document stops more guests than the brake allows");
    // The agent is killed, and says the same after its start.
    day.stand.stage.kill_agent().unwrap();
    day.stand.stage.start_agent(None).unwrap();
    guest["run"] = json!("running");
    day.apply(&guest, "as it was");
    day.hears("box1: BULK_CHANGE_HELD is over", "the document was corrected; the agent was killed before");

    signal(day.stand.stage.simulator_pid(), Signal::STOP);
    day.hears("box1: PROXMOX_AWAY (critical)", "Proxmox hangs");
    // The hub is killed while the incident fires, and again while it ends.
    day.kill_hub();
    signal(day.stand.stage.simulator_pid(), Signal::CONT);
    day.hears("box1: PROXMOX_AWAY is over", "Proxmox goes on; the hub was killed before");

    day.stand.stage.kill_agent().unwrap();
    day.hears("box1: HOST_OFFLINE (critical)", "the agent is gone");
    day.kill_hub();
    day.stand.stage.start_agent(None).unwrap();
    day.hears("box1: HOST_OFFLINE is over", "the agent is back; the hub was killed before");
    day.end();
}

#[test]
fn what_is_changed_by_hand_is_heard_of_once_and_so_is_its_end() {
    let mut day = Day::begin(HubBackup::Taken);
    day.stand.stage.start_agent(None).unwrap();
    let guest = document::guest(&day.stand.stage.ground(), 1, "web", "acme");
    day.apply(&guest, "one guest");
    let made = |guests: &[Value]| guests.len() == 1 && guests.iter().all(well);
    day.stand.stage.guests_until("one guest", made).unwrap();

    let why = ["a token ends within a week", "its operator is revoked"];
    day.comes_and_goes("the hub: TOKEN_EXPIRING (warning)", why, |day, moment| {
        let words: &[&str] = match moment {
            Moment::Begin => &["operator", "add", "eve", "--role", "viewer", "--days", "5"],
            Moment::End => &["operator", "revoke", "eve", "--yes"],
        };
        day.stand.stage.holdfast(words).unwrap();
        day.kill_hub();
    });

    let why = ["a storage is nearly full", "it has room again"];
    day.comes_and_goes("box1: STORAGE_FILLING (warning)", why, |day, moment| {
        let percent = match moment {
            Moment::Begin => json!(93),
            Moment::End => Value::Null,
        };
        day.by_hand(&[json!({ "edit": "storage-fill", "storage": "tank", "percent": percent })]);
    });

    let configurations = day.stand.stage.configurations().unwrap();
    let (vmid, config) = configurations.iter().find(|(vmid, _)| **vmid != FOREIGN_VMID).unwrap();
    let why = ["somebody removed a guest's configuration", "it is back"];
    day.comes_and_goes("box1: GUEST_MISSING (critical)", why, |day, moment| {
        day.by_hand(&[match moment {
            Moment::Begin => json!({ "edit": "lose-config", "vmid": vmid }),
            Moment::End => json!({ "edit": "place", "vmid": vmid, "config": config }),
        }]);
    });
    day.end();
}
