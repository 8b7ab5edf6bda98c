//! Tests of a full loss, restored by a customer from paper.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use e2e::document;
use e2e::stage::HOST;
use e2e::wait::until;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::jobs::{agentd, key, lay_down};
use super::lost_box::{PATIENCE, heard, reported};
use super::notices::Notices;
use super::scan::{FoundSecret, Secrets};
use super::stand::{self, Stand, well};
use super::tee::Tee;
use crate::paper::{Paper, WORDS};
use crate::terminal::{at_terminal, typed_by};

/// The backup server's name. There is none of that name anywhere.
const SERVER: &str = "backup.invalid";
const USER: &str = "pve@pbs!bk";
/// The password that the server accepts. It is a canary: the scan looks for it, as for the words and the key.
const PASSWORD: &str = "11111111-2222-3333-4444-canary000001";
const AGAIN: &str = "All eleven words again (not shown): ";

/// What surrounds the host.
struct Drill {
    stand: Stand,
    tee: Tee,
    notices: Notices,
    /// The operator's own files.
    desk: tempfile::TempDir,
    paper: Paper,
    /// Everything that was shown at the terminal of a host, except the page with the words.
    shown: Vec<String>,
}

#[test]
fn a_box_burns_and_its_guests_come_back_by_a_code_on_paper() {
    let mut drill = Drill::new();
    let made = drill.makes_a_key();
    drill.applies(&drill.document(&made, None));
    drill.attaches(&made, "the first day");
    drill.makes_a_code();
    let before = drill.fills_and_backs_up(&made);
    drill.prints_the_page(&before);
    let secrets = drill.secrets();

    drill.burns();
    drill.takes_the_place();
    let recovered = drill.types_the_code(&made);
    // No document is accepted before the guests are on record. Then this one is accepted, which is sealed for the new
    // host.
    drill.applies(&drill.document(&recovered, None));
    drill.takes_up_the_guests();
    drill.attaches(&recovered, "the day after");
    drill.gets_its_guests_back(&before, &secrets);
    drill.the_sheet_is_in_force();
    drill.hands_the_file_out();
    drill.old_box_stands_still();

    drill.nothing_is_anywhere(secrets);
}

impl Drill {
    /// A host and a hub that listens behind a tee, a backup server elsewhere, a customer who is notified of reads.
    fn new() -> Self {
        let mut stand = stand::laid();
        let (notices, desk) = (Notices::new(), tempfile::tempdir().unwrap());
        let hub = stand.stage.folder().join("hub");
        let secret = hub.join("notice-secret");
        std::fs::write(&secret, "0123456789abcdef0123456789abcdef").unwrap();
        std::fs::write(hub.join("hub.toml"), notices.settings(secret.to_str().unwrap())).unwrap();
        let server = stand.stage.outside().join(SERVER);
        std::fs::create_dir_all(server.join("store1/ns/hf")).unwrap();
        std::fs::write(server.join("fingerprint"), print()).unwrap();
        std::fs::write(server.join("secret"), PASSWORD).unwrap();
        stand.stage.start_simulator().unwrap();
        let front = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://{}", front.local_addr().unwrap());
        let own = stand.stage.start_hub_behind(&url).unwrap();
        // The identity of a host stays in its state folder, wherever the test moves that folder.
        let identities = ["agent", "agent-lost", "agent-new"];
        let identities =
            identities.map(|name| stand.stage.folder().join(name).join("state/identity/identity.json"));
        let tee = Tee::before(front, own.parse().unwrap(), hub, identities.to_vec());
        stand.stage.log_in().unwrap();
        stand.stage.set_up_agent_with(&["--target", "off1"]).unwrap();
        stand.stage.enrol_agent().unwrap();
        lay_down(&stand, &key(desk.path()));
        stand.stage.start_agent(None).unwrap();
        Self { stand, tee, notices, desk, paper: Paper::new(1), shown: Vec::new() }
    }

    /// The folder in which a person at the host works.
    fn at_the_box(&self) -> PathBuf {
        self.stand.stage.state().parent().unwrap().to_owned()
    }

    /// The program, as a person at the host types it.
    fn program() -> String {
        let programs = std::env::var_os("HOLDFAST_E2E_PROGRAMS").unwrap();
        Path::new(&programs).join("agentd").display().to_string()
    }

    /// The key is made at the host; the server's password is typed there.
    fn makes_a_key(&mut self) -> Value {
        let mut backend = json!({ "pbs": { "server": SERVER, "datastore": "store1", "namespace": "hf", "fingerprint": print() } });
        let made = self.seals("make-key", &backend, &[]);
        backend["pbs"]["key"] = made["fingerprint"].clone();
        assert_eq!(made["backend"], backend);
        made
    }

    /// Runs `agentd storage make-key` or `recover-key`; returns its output.
    fn seals(&mut self, verb: &str, backend: &Value, words: &[(&str, &str)]) -> Value {
        let folder = self.at_the_box();
        let draft = json!({ "storage": [{ "name": "off1", "backend": backend }] });
        std::fs::write(folder.join("draft.json"), draft.to_string()).unwrap();
        let line = format!(
            "{} storage {verb} --document draft.json --target off1 --user '{USER}' --output json > made.json",
            Self::program()
        );
        let question = format!("Password of {USER} at the backup server (not shown): ");
        let answers: Vec<(&str, &str)> =
            std::iter::once((question.as_str(), PASSWORD)).chain(words.iter().copied()).collect();
        self.shown.push(at_terminal(&folder, &line, &answers));
        serde_json::from_str(&std::fs::read_to_string(folder.join("made.json")).unwrap()).unwrap()
    }

    /// Two guests and the backup server. `due` can set a time at which backups are due.
    fn document(&self, sealed: &Value, due: Option<&str>) -> Value {
        let target = json!({ "name": "off1", "class": "slow", "role": "offsite-backup", "state": "attached", "label": "away",
            "backend": sealed["backend"], "creds": sealed["creds"], "default": false, "schedulable": true });
        let schedule =
            json!({ "at": [due.unwrap_or("02:30")], "zone": "UTC", "jitter_min": 0, "window_min": 60 });
        let backup = json!({ "target": "off1", "schedule": schedule, "retention": "keep_all", "consistency": "crash" });
        let tiers = json!({ "off_site": { "key": sealed["fingerprint"], "backup": backup } });
        let ground = self.stand.stage.ground();
        // The second one is more important.
        let guests = [(2, "two"), (1, "one")].map(|(number, name)| {
            let mut guest = document::guest(&ground, number, name, "acme");
            if due.is_some() {
                guest["policy"] = json!("away");
            }
            guest
        });
        json!({ "poll_interval_s": 5, "storage": [target], "guests": guests,
            "policies": [{ "name": "away", "tiers": tiers }] })
    }

    fn applies(&self, document: &Value) {
        self.stand.stage.apply(document, "the drill").unwrap();
    }

    fn takes_up_the_guests(&self) {
        let words = self.stand.stage.agent_does(&["enroll", "--take-up"]).unwrap();
        assert!(words.starts_with("2 guests of the lost box are on record"), "{words}");
    }

    /// The document carries what was sealed, and an operator signs for it.
    fn attaches(&self, sealed: &Value, why: &str) {
        let stage = &self.stand.stage;
        until("the draft at the hub", PATIENCE, || {
            let host = stage.holdfast(&["host", "show", HOST])?;
            let waiting = host["sections"]["waiting"].as_array().cloned().unwrap_or_default();
            let is_it = |one: &Value| {
                one["payload"]
                    .as_str()
                    .is_some_and(|text| text.contains("attach_storage") && text.contains("off1"))
            };
            Ok((waiting.iter().any(is_it) && host["sections"]["trust"]["operators"].is_string())
                .then_some(()))
        })
        .unwrap();
        let (key, out) = (self.desk.path().join("key"), self.desk.path().join("job.json"));
        let sign =
            ["sign", HOST, "off1", "--key", key.to_str().unwrap(), "--reason", why, "--confirm", "off1"];
        let leave = ["--out", out.to_str().unwrap(), "--submit"];
        let signed = stage.holdfast(&[&sign[..], &leave].concat()).unwrap();
        let job = signed["job"].as_str().unwrap();
        let end = stage.holdfast(&["job", "watch", HOST, job, "--timeout", "120"]).unwrap();
        assert_eq!(end["report"]["state"], "done", "{end:#}");
        std::fs::remove_file(out).unwrap();
        let fingerprint = sealed["fingerprint"].as_str().unwrap();
        until("Proxmox has the entry with its key", PATIENCE, || {
            let entries = std::fs::read_to_string(stage.folder().join("sim/etc/storage.cfg"))?;
            let own = entries.split("\n\n").find(|entry| entry.starts_with("pbs: off1"));
            Ok(own.filter(|own| own.contains(&format!("encryption-key {fingerprint}"))).map(drop))
        })
        .unwrap();
    }

    /// The code is made, shown once, and typed back with a slip. The wrapped key is at the hub.
    fn makes_a_code(&mut self) {
        let line = format!("{} escrow create", Self::program());
        let folder = self.at_the_box();
        let shown = typed_by(&folder, &line, &mut |fresh: &str| self.paper.answer(fresh));
        assert_eq!((self.paper.words.len(), self.paper.asked), (11, 4), "three words and a slip");
        let (before, rest) = shown.split_once("\x1b[?1049h").unwrap();
        let (_, after) = rest.split_once("\x1b[?1049l").unwrap();
        assert!(after.contains("Recovery code 1 opens the off-site backups at off1 from now on."), "{after}");
        self.shown.extend([before.to_owned(), after.to_owned()]);
        until("the wrapped key is at the hub", PATIENCE, || {
            let reported = agentd(&self.stand, &["escrow", "status", "--output", "json"]);
            let status: Value = serde_json::from_slice(&reported.stdout)?;
            let copies = status["copies"].as_array().cloned().unwrap_or_default();
            Ok(copies.iter().any(|copy| copy["place"] == "hub" && copy["problem"].is_null()).then_some(()))
        })
        .unwrap();
    }

    /// Each guest has data of its own, and a backup of it elsewhere.
    fn fills_and_backs_up(&self, made: &Value) -> Before {
        let stage = &self.stand.stage;
        let guests = stage.guests_until("two guests", both_well).unwrap();
        for (name, root) in roots(&self.stand) {
            let put = |path: &str, bytes: &[u8]| {
                std::fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
                std::fs::write(root.join(path), bytes).unwrap();
            };
            put("srv/shop/orders.db", &Sha256::digest(&name).repeat(4_000));
            put("srv/shop/empty", b"");
            put("srv/shop/a name with blanks", format!("of {name}").as_bytes());
            // How a tunnel would know the guest: the file is on the guest's own disk.
            put(
                "etc/tunnel/credentials.json",
                json!({ "tunnel": name, "secret": "of this guest alone" }).to_string().as_bytes(),
            );
        }
        let files = files(&self.stand);
        assert_eq!((files.len(), files["one"].len()), (2, 4), "{files:?}");
        // None was taken before, so each holds them.
        assert!(backups(&self.stand).is_empty());
        stage.apply(&self.document(made, Some(&soon())), "backups").unwrap();
        let vmids: BTreeSet<u32> = guests.iter().filter(|guest| well(guest)).map(vmid).collect();
        let of_each =
            || Ok((backups(&self.stand).into_keys().collect::<BTreeSet<_>>() == vmids).then_some(()));
        until("a whole backup of each", PATIENCE * 3, of_each).unwrap();
        for path in backups(&self.stand).into_values().flatten() {
            let sealed = std::fs::read_to_string(format!("{}.sealed", path.display())).unwrap();
            assert_eq!(sealed, made["fingerprint"].as_str().unwrap(), "{}", path.display());
        }
        heard(&self.stand);
        Before { files, known: known_by(&guests), vmids }
    }

    /// The customer's page, as the hub knows it: where the backups are, and each guest by its number.
    fn prints_the_page(&self, before: &Before) {
        let page = self.stand.stage.holdfast(&["escrow", "kit", HOST]).unwrap();
        let target = &page["targets"][0];
        assert_eq!(target["sheet"]["code"], 1, "{page:#}");
        let steps = target["steps"].as_array().unwrap().iter();
        let lines: Vec<&str> = steps
            .flat_map(|step| step["commands"].as_array().unwrap())
            .map(|line| line.as_str().unwrap())
            .collect();
        let chosen =
            lines.iter().filter_map(|line| line.strip_prefix("VMID=")?.split("  #").next()?.parse().ok());
        assert_eq!(chosen.collect::<BTreeSet<u32>>(), before.vmids, "{lines:#?}");
        let repository = format!("@{SERVER}:8007:store1'");
        assert!(
            lines
                .iter()
                .any(|line| line.starts_with("export PBS_REPOSITORY=") && line.ends_with(&repository))
        );
        assert!(lines.contains(&format!("export PBS_FINGERPRINT={}", print()).as_str()), "{lines:#?}");
        assert_eq!(self.notices.reported(), Vec::<String>::new(), "a page reads no file");
    }

    /// On the new host the customer's sheet is in force, and was proved when its words were typed.
    fn the_sheet_is_in_force(&self) {
        let reported = agentd(&self.stand, &["escrow", "status", "--output", "json"]);
        let status: Value = serde_json::from_slice(&reported.stdout).unwrap();
        let code = &status["codes"][0];
        assert_eq!(code["record"]["context"]["code"], 1, "{status:#}");
        assert_eq!(
            (&code["origin"], status["targets"][0]["code"].as_u64()),
            (&json!("handed_over"), Some(1))
        );
        assert!(code["drilled_at"].is_string(), "{status:#}");
        let problems = status["problems"].as_array().unwrap();
        let about: Vec<&Value> = problems.iter().filter(|one| one["code"] != "ESCROW_COPY").collect();
        assert!(about.is_empty(), "{status:#}");
    }

    /// The operator exports the wrapped file. It is the file that the new host received, and the customer is notified
    /// who read it.
    fn hands_the_file_out(&self) {
        let stage = &self.stand.stage;
        let before = self.notices.reported().len();
        let folder = self.desk.path().to_str().unwrap();
        let fetched = stage.holdfast(&["escrow", "fetch", HOST, "--to", folder]).unwrap();
        assert_eq!(fetched.as_array().unwrap().len(), 1, "{fetched:#}");
        let file = std::fs::read(self.desk.path().join("escrow-1.age")).unwrap();
        let handed = stage.folder().join("agent/state/restore/escrow-1.age");
        assert_eq!(file, std::fs::read(handed).unwrap());
        let reported = until("the customer is told of this read, too", PATIENCE, || {
            let reported = self.notices.reported();
            Ok((reported.len() > before).then_some(reported))
        })
        .unwrap();
        assert!(reported.last().unwrap().contains("was read by operator "), "{reported:?}");
    }

    /// The secrets that must be nowhere from now on.
    fn secrets(&self) -> Secrets {
        let mut secrets = Secrets::default();
        secrets.words(&self.paper.words);
        let key = self.stand.stage.folder().join("sim/root/etc/pve/priv/storage/off1.enc");
        secrets.key(&std::fs::read_to_string(key).unwrap());
        secrets.text("password", PASSWORD);
        secrets
    }

    /// The host is gone with all its disks.
    fn burns(&mut self) {
        self.stand.stage.change_box("lost", None).unwrap();
    }

    /// The operator signs for the replacement host, by that host's own key. Returns the invite.
    fn is_ordered(&self) -> String {
        let stage = &self.stand.stage;
        let new_key = stage.agent_does(&["enroll", "--show-key"]).unwrap();
        let key = self.desk.path().join("key");
        let (key, reason) = (key.to_str().unwrap(), "the box burnt");
        let words = ["host", "restore", HOST, "--new-key", new_key.trim(), "--key", key, "--reason", reason];
        let invite = stage.holdfast(&[&words[..], &["--confirm", HOST]].concat()).unwrap();
        invite["code"].as_str().unwrap().to_owned()
    }

    /// The operator compares the new host's fingerprint with the one in the hub: until then nothing is signed for it.
    fn is_compared(&self) {
        let stage = &self.stand.stage;
        let status: Value =
            serde_json::from_str(&stage.agent_does(&["status", "--output", "json"]).unwrap()).unwrap();
        let fingerprint = status["fingerprint"].as_str().unwrap();
        // The hub shows it once the new host has reported.
        let pinned = || Ok(stage.holdfast(&["host", "pin", HOST, "--fingerprint", fingerprint]).ok());
        until("the hub shows the new box's fingerprint", PATIENCE, pinned).unwrap();
    }

    fn takes_the_place(&mut self) {
        let operators = std::fs::read_to_string(self.desk.path().join("key.pub")).unwrap();
        let stage = &mut self.stand.stage;
        stage.start_simulator().unwrap();
        assert!(
            !stage.folder().join("sim/root/etc/pve/priv/storage").exists(),
            "the new Proxmox knows no key"
        );
        stage.set_up_agent_with(&["--target", "off1"]).unwrap();
        lay_down(&self.stand, &format!("ada {operators}"));
        let invite = self.is_ordered();
        let stage = &mut self.stand.stage;
        assert_eq!(self.notices.reported(), Vec::<String>::new());
        stage.enrol_with(&invite, &["--restore"]).unwrap();
        stage.start_agent(None).unwrap();
        reported(&self.stand, "RESTORING");
        self.is_compared();
        until("the customer is told of the read", PATIENCE, || {
            Ok((!self.notices.reported().is_empty()).then_some(()))
        })
        .unwrap();
    }

    /// Types an unknown word, then two swapped words, then the right code. K then goes into the document, sealed.
    fn types_the_code(&mut self, made: &Value) -> Value {
        let good = self.paper.whole();
        let misspelt = good.replacen(&self.paper.words[2], &format!("{}q", self.paper.words[2]), 1);
        let mut swapped = self.paper.words.clone();
        swapped.swap(6, 7);
        let swapped = swapped.join(" ");
        let words = [(WORDS, misspelt.as_str()), (AGAIN, swapped.as_str()), (AGAIN, good.as_str())];
        let recovered = self.seals("recover-key", &made["backend"], &words);
        let shown = self.shown.last().unwrap();
        let meant = format!("word 3: did you mean {}", self.paper.words[2]);
        for says in [meant.as_str(), "perhaps words 7 and 8 swapped", "The key is sealed to this box"] {
            assert!(shown.contains(says), "{says}: {shown}");
        }
        assert_eq!(recovered["backend"], made["backend"], "the same key at the same place");
        assert_ne!(recovered["creds"], made["creds"], "sealed for another box");
        recovered
    }

    fn gets_its_guests_back(&self, before: &Before, secrets: &Secrets) {
        let stage = &self.stand.stage;
        let guests = until("both guests are back", PATIENCE * 3, || {
            let guests = stage.guests()?;
            Ok(both_well(&guests).then_some(guests))
        })
        .unwrap();
        assert_eq!(known_by(&guests), before.known, "the same guests at the same addresses");
        assert_eq!(files(&self.stand), before.files, "and what was on their disks");
        let vmids: BTreeSet<u32> = guests.iter().filter(|guest| well(guest)).map(vmid).collect();
        assert!(vmids.is_disjoint(&before.vmids), "under new numbers: {vmids:?}");
        // This agent handed the key to Proxmox.
        self.nothing_in_memory(secrets);
    }

    /// Checks the memory of the programs that still run, as root reads it.
    fn nothing_in_memory(&self, secrets: &Secrets) {
        let stage = &self.stand.stage;
        if rustix::process::geteuid().is_root() {
            // This very process holds them, which proves that the scan works.
            let own = secrets.in_memory("this test", std::process::id());
            let whats: BTreeSet<&str> = own.iter().map(|found| found.what).collect();
            assert!(whats.is_superset(&BTreeSet::from(["words", "key", "password"])), "{whats:?}");
            for (name, pid) in [("the hub", stage.hub_pid()), ("the agent", stage.agent_pid())] {
                assert_eq!(secrets.in_memory(name, pid.unwrap()), BTreeSet::new());
            }
        }
    }

    /// It starts again with its own disks, receives the order, and does nothing any more.
    fn old_box_stands_still(&mut self) {
        let stage = &mut self.stand.stage;
        stage.change_box("new", Some("lost")).unwrap();
        stage.start_simulator().unwrap();
        let before = (stage.configurations().unwrap(), stage.tasks().unwrap());
        for _ in 0..2 {
            self.stand.stage.start_agent(None).unwrap();
            reported(&self.stand, "REPLACED");
            self.stand.stage.kill_agent().unwrap();
        }
        let stage = &mut self.stand.stage;
        assert_eq!((stage.configurations().unwrap(), stage.tasks().unwrap()), before);
        stage.nothing_forbidden_was_sent().unwrap();
        // The new one is not harmed by it.
        stage.change_box("lost", Some("new")).unwrap();
        stage.start_simulator().unwrap();
        stage.start_agent(None).unwrap();
        stage.guests_until("both are as they were", both_well).unwrap();
    }

    /// Words, key and password are in nothing that was written, shown or kept, except where they belong.
    fn nothing_is_anywhere(self, mut secrets: Secrets) {
        let stage = &self.stand.stage;
        let folder = stage.folder().to_owned();
        // A canary that is there, which proves that the scan works.
        secrets.text("planted", "a canary that was planted");
        std::fs::write(folder.join("agent/state/planted"), "{\"x\":\"a canary that was planted\"}").unwrap();
        let priv_of = |sim: &str| format!("{sim}/root/etc/pve/priv/storage");
        let allowed: BTreeSet<(&str, String)> = [
            ("planted", "agent/state/planted".to_owned()),
            // Where Proxmox keeps them, on the lost host and on its replacement.
            ("key", format!("{}/off1.enc", priv_of("sim"))),
            ("key", format!("{}/off1.enc", priv_of("sim-lost"))),
            ("password", format!("{}/off1.pw", priv_of("sim"))),
            ("password", format!("{}/off1.pw", priv_of("sim-lost"))),
            // The server's own.
            ("password", format!("sim/run/outside/{SERVER}/secret")),
        ]
        .into();
        let found: BTreeSet<(&str, String)> = secrets
            .in_folder(&folder)
            .into_iter()
            .map(|FoundSecret { what, place }| {
                (what, place.strip_prefix(&format!("{}/", folder.display())).unwrap().to_owned())
            })
            .collect();
        assert_eq!(found, allowed, "both boxes, the hub, the operator, all logs");

        let wire = self.tee.heard();
        let heard = String::from_utf8_lossy(&wire);
        // The wrapped file passes there, as base64 of `-----BEGIN AGE`.
        for said in
            ["PUT /v1/agent/escrow ", "POST /v1/restore ", "POST /v1/agent/checkin?", "LS0tLS1CRUdJTiBBR0Ug"]
        {
            assert!(heard.contains(said), "{said} was not heard");
        }
        assert_eq!(secrets.in_bytes(&wire), BTreeSet::new(), "the hub's wire");
        let said = [self.shown.clone(), self.notices.reported()].concat().join("\n");
        assert_eq!(
            secrets.in_bytes(said.as_bytes()),
            BTreeSet::new(),
            "what was shown, and what the customer was told"
        );
        self.nothing_in_memory(&secrets);
    }
}

/// How the guests were on the lost host.
struct Before {
    files: Files,
    known: BTreeMap<String, Value>,
    vmids: BTreeSet<u32>,
}

/// For each guest, the files on its disk, as hashes.
type Files = BTreeMap<String, BTreeMap<String, String>>;

fn print() -> String {
    vec!["86"; 32].join(":")
}

fn vmid(guest: &Value) -> u32 {
    guest["vmid"].as_u64().unwrap().try_into().unwrap()
}

/// The minute after the next, as a time of day in UTC: a schedule that needs no operator's signature.
fn soon() -> String {
    let minute = (std::time::UNIX_EPOCH.elapsed().unwrap().as_secs() / 60 + 2) % 1_440;
    format!("{:02}:{:02}", minute / 60, minute % 60)
}

fn both_well(guests: &[Value]) -> bool {
    guests.iter().filter(|guest| well(guest)).count() == 2
}

/// What stays of a guest on any host.
fn known_by(guests: &[Value]) -> BTreeMap<String, Value> {
    let of =
        |guest: &Value| (guest["name"].as_str().unwrap().to_owned(), json!([guest["uid"], guest["address"]]));
    guests.iter().filter(|guest| well(guest)).map(of).collect()
}

/// The root disks of our guests, by their names.
fn roots(stand: &Stand) -> BTreeMap<String, PathBuf> {
    let images = stand.stage.folder().join("sim/root/mnt/tank/images");
    let of = |(vmid, text): (u32, String)| {
        let name = text.lines().find_map(|line| line.strip_prefix("hostname: "))?.to_owned();
        let own = ["one", "two"].contains(&name.as_str());
        own.then(|| (name, images.join(format!("{vmid}/vm-{vmid}-disk-0/tree"))))
    };
    stand.stage.configurations().unwrap().into_iter().filter_map(of).collect()
}

/// The customer's files there.
fn files(stand: &Stand) -> Files {
    let hashes = |root: PathBuf| {
        let (mut all, mut folders) = (BTreeMap::new(), vec![root.join("srv"), root.join("etc/tunnel")]);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.path());
                    continue;
                }
                let hash = Sha256::digest(std::fs::read(entry.path()).unwrap());
                let hash = hash.iter().map(|byte| format!("{byte:02x}")).collect();
                all.insert(entry.path().strip_prefix(&root).unwrap().display().to_string(), hash);
            }
        }
        all
    };
    roots(stand).into_iter().map(|(name, root)| (name, hashes(root))).collect()
}

/// Whole backups on the server, by the number under which they were taken.
fn backups(stand: &Stand) -> BTreeMap<u32, BTreeSet<PathBuf>> {
    let mut all: BTreeMap<u32, BTreeSet<PathBuf>> = BTreeMap::new();
    let groups = stand.stage.outside().join(SERVER).join("store1/ns/hf/ct");
    for group in std::fs::read_dir(groups).into_iter().flatten().map(Result::unwrap) {
        let vmid = group.file_name().to_string_lossy().parse().unwrap();
        let files = std::fs::read_dir(group.path()).unwrap().map(|entry| entry.unwrap().path());
        // A file that is still being written has another extension.
        for whole in files.filter(|path| path.extension().is_some_and(|end| end == "tar")) {
            all.entry(vmid).or_default().insert(whole);
        }
    }
    all
}
