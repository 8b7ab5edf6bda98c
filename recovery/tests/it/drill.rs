//! Restore drill with the printed sheet and stock tools only.
//!
//! Every command is taken from the text of the sheet and typed on a fresh machine, which has no program but those that
//! the sheet installs. The files of the guests come back, equal by hash.
//!
//! `age`, `jq` and `bash` are Debian's own. The backup server's client is a stand-in that takes what the genuine one was
//! recorded to take, and `apt-get`, `wget` and `tee` are stand-ins that write below a folder: nothing here reaches a network.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use holdfast_recovery::sheet::{Naming, Sheet};
use holdfast_seal::backup_key::BackupKey;
use sha2::{Digest as _, Sha256};

use crate::fixtures::{code, escrow, guests, key, off_site};
use crate::terminal::typed_by;

const CLIENT: &str = include_str!("drill/backup-client.sh");
const MACHINE: &str = include_str!("drill/machine.sh");
const SECRET: &str = "d63e505a-e3ec-449a-9bc7-1da610d4ccde";

/// The files of each guest, by the number under which its newest backup is stored.
const FILES: [(u32, &str, &str); 4] = [
    (20_001, "srv/www/index.html", "as it was the day before"),
    (20_001, "etc/hostname", "web-1"),
    (19_000, "srv/www/index.html", "as it was under the number before"),
    (20_002, "var/mail/anna", "a letter"),
];

/// A step of the sheet, as its text says it.
struct Printed {
    says: String,
    commands: Vec<String>,
}

/// A folder with a backup server, a backup disk, and a fresh machine in it.
struct Position(tempfile::TempDir);

impl Position {
    fn new() -> Self {
        let position = Self(tempfile::tempdir().unwrap());
        for folder in ["machine/bin", "machine/packages", "machine/root", "server", "disk/.holdfast", "made"]
        {
            fs::create_dir_all(position.at(folder)).unwrap();
        }
        for (name, text) in [
            ("address", "backup.example:8007"),
            ("account", "acme-read@pbs!sheet"),
            ("secret", SECRET),
            ("fingerprint", &vec!["86"; 32].join(":")),
        ] {
            fs::write(position.at("server").join(name), text).unwrap();
        }
        for vmid in [20_001, 19_000, 20_002] {
            position.back_up(vmid, "2026-11-20T02:30:00Z", "an older state");
            position.back_up(vmid, "2026-11-21T02:30:00Z", "");
        }
        let machine = position.at("machine");
        let script = |name: &str, text: String| {
            fs::write(machine.join(name), text).unwrap();
            fs::set_permissions(machine.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        };
        script(
            "packages/proxmox-backup-client",
            CLIENT.replace("@SERVER@", position.at("server").to_str().unwrap()),
        );
        script("bin/apt-get", MACHINE.replace("@MACHINE@", machine.to_str().unwrap()));
        symlink("apt-get", machine.join("bin/tee")).unwrap();
        for program in ["bash", "shred"] {
            symlink(Path::new("/usr/bin").join(program), machine.join("bin").join(program)).unwrap();
        }
        position
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Lays a backup onto the server: the guest's files and settings, encrypted with the key.
    fn back_up(&self, vmid: u32, time: &str, instead: &str) {
        let (tree, snapshot) =
            (self.at("made/tree"), self.at("server/store1/hf").join(format!("ct/{vmid}/{time}")));
        fs::create_dir_all(&snapshot).unwrap();
        for (_, path, text) in FILES.iter().filter(|(of, ..)| *of == vmid) {
            let text = if instead.is_empty() { text } else { instead };
            fs::create_dir_all(tree.join(path).parent().unwrap()).unwrap();
            fs::write(tree.join(path), text).unwrap();
        }
        fs::write(self.at("made/pct.conf"), settings(vmid)).unwrap();
        run(&tree, "tar", &["-cf", "../root.pxar", "."]);
        for (file, stored) in [("root.pxar", "root.pxar.didx"), ("pct.conf", "pct.conf.blob")] {
            let (from, to) = (self.at("made").join(file), snapshot.join(stored));
            let [from, to] = [from, to].map(|path| path.display().to_string());
            let zero = "0".repeat(32);
            run(
                &tree,
                "openssl",
                &["enc", "-aes-256-ctr", "-K", &raw(&key(0)), "-iv", &zero, "-in", &from, "-out", &to],
            );
        }
        fs::write(snapshot.join("fingerprint"), key(0).fingerprint().as_str()).unwrap();
        fs::remove_dir_all(&tree).unwrap();
    }

    /// Types lines on the machine, in one shell, as root of it would. Gives what the terminal showed.
    fn typed(&self, lines: &[String], words: &str) -> String {
        let root = self.at("machine/root");
        let bin = self.at("machine/bin").display().to_string();
        fs::write(root.join("typed"), format!("set -e -o pipefail\n{}\n", lines.join("\n"))).unwrap();
        let line = format!("env -i HOME={} PATH={bin} TERM=xterm {bin}/bash typed", root.display());
        typed_by(&root, &line, &mut |fresh: &str| match fresh {
            fresh if fresh.ends_with("Enter passphrase: ") => Some(words.to_owned()),
            fresh if fresh.ends_with("Secret: ") => Some(SECRET.to_owned()),
            _ => None,
        })
    }
}

fn settings(vmid: u32) -> String {
    format!("arch: amd64\nhostname: of-{vmid}\n")
}

/// The key's 32 bytes in hex.
fn raw(key: &BackupKey) -> String {
    let json: serde_json::Value = serde_json::from_str(key.to_json().unwrap().expose()).unwrap();
    let data =
        base64::Engine::decode(&base64::engine::general_purpose::STANDARD, json["data"].as_str().unwrap());
    hex::encode(data.unwrap())
}

#[expect(clippy::disallowed_methods, reason = "stock programs lay out what is restored")]
fn run(folder: &Path, program: &str, arguments: &[&str]) {
    fs::create_dir_all(folder).unwrap();
    let status = Command::new(program).args(arguments).current_dir(folder).status().unwrap();
    assert!(status.success(), "{program} {arguments:?}");
}

/// The sheet as text, with its wrapped key and its words.
fn sheet() -> (String, String) {
    let (record, code) = (escrow().record(), code("abacus"));
    let (off_site, guests) = (off_site(), guests());
    let sheet = Sheet {
        record: &record,
        code: &code,
        naming: Naming::Named,
        off_site: Some(&off_site),
        guests: &guests,
        wrapped: None,
        bare: None,
    };
    let file = escrow().wrap(&code).unwrap();
    (sheet.to_text().unwrap().as_text().to_owned(), file.to_text())
}

/// The eleven words, in the order of their numbers, with one blank between.
fn words(text: &str) -> String {
    let cells = text.split("[ ] ").skip(1).filter_map(|cell| cell.split_once(".  "));
    let numbered = cells.map(|(number, rest)| {
        (number.trim().parse::<u32>().unwrap(), rest.split_whitespace().next().unwrap())
    });
    let numbered: BTreeMap<u32, &str> = numbered.collect();
    assert_eq!(numbered.len(), 11);
    numbered.into_values().collect::<Vec<_>>().join(" ")
}

/// The steps of the second page: a number and a sentence, and lines further in, which are typed.
fn steps(text: &str) -> Vec<Printed> {
    let (_, page) = text.split_once('\u{c}').unwrap();
    let mut steps: Vec<Printed> = Vec::new();
    for line in page.lines() {
        let number = line.trim_start().split_once(". ").and_then(|(number, _)| number.parse::<usize>().ok());
        if let Some(command) = line.strip_prefix("        ") {
            steps.last_mut().unwrap().commands.push(command.to_owned());
        } else if number == Some(steps.len() + 1) {
            steps.push(Printed { says: line.to_owned(), commands: Vec::new() });
        } else if let (Some(more), Some(step)) = (line.strip_prefix("    "), steps.last_mut()) {
            step.says += " ";
            step.says += more;
        }
    }
    assert!(steps.len() > 5, "{text}");
    steps
}

/// The name of the file that a step says to get, and its folder on a disk.
fn file_to_get(steps: &[Printed]) -> (String, String) {
    let step = steps.iter().find(|step| step.says.contains("Get the wrapped key")).unwrap();
    let after = |what: &str| {
        let rest = step.says.split_once(what).unwrap_or_else(|| panic!("{what} is not in {}", step.says)).1;
        rest.split([':', ')', ',', ' ']).find(|part| !part.is_empty()).unwrap().to_owned()
    };
    (after("the file "), after("the folder "))
}

/// All lines in their order; from the choice of a guest on, once for each guest that can be chosen.
fn lines(steps: &[Printed]) -> Vec<String> {
    let choice =
        steps.iter().position(|step| step.commands.iter().any(|line| line.starts_with("VMID="))).unwrap();
    let (before, rest) = steps.split_at(choice);
    let [choose, restore, last] = rest else { panic!("choose, restore, and put away") };
    let mut lines: Vec<String> = before.iter().flat_map(|step| step.commands.clone()).collect();
    for guest in &choose.commands {
        lines.push(guest.clone());
        lines.extend(restore.commands.clone());
    }
    [lines, last.commands.clone()].concat()
}

fn hashes(folder: &Path) -> BTreeMap<String, String> {
    let (mut all, mut folders) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
                continue;
            }
            let path = entry.path().strip_prefix(folder).unwrap().display().to_string();
            all.insert(path, hex::encode(Sha256::digest(fs::read(entry.path()).unwrap())));
        }
    }
    all
}

#[test]
fn the_printed_steps_restore_guest_files_with_stock_tools() {
    let position = Position::new();
    let (text, wrapped) = sheet();
    let steps = steps(&text);
    let (file, folder) = file_to_get(&steps);
    fs::write(position.at("disk/.holdfast/escrow-2.age"), wrapped).unwrap();
    // The file that the sheet names is the one on a backup disk.
    fs::copy(position.at("disk").join(folder).join(&file), position.at("machine/root").join(&file)).unwrap();
    let shown = position.typed(&lines(&steps), &words(&text));
    let root = position.at("machine/root");
    assert!(shown.contains("ct/20001/2026-11-21T02:30:00Z"), "{shown}");
    assert!(shown.contains(key(0).fingerprint().as_str()), "the fingerprint is shown: {shown}");
    for vmid in [20_001, 19_000, 20_002] {
        let own = FILES.iter().filter(|(of, ..)| *of == vmid);
        let wanted: BTreeMap<String, String> =
            own.map(|(_, path, text)| ((*path).to_owned(), hex::encode(Sha256::digest(text)))).collect();
        assert_eq!(hashes(&root.join(format!("guest-{vmid}"))), wanted, "{shown}");
        let conf = fs::read_to_string(root.join(format!("guest-{vmid}.conf"))).unwrap();
        assert_eq!(conf, settings(vmid));
    }
    assert!(!root.join("key.json").exists(), "the key is taken away at the end");
}
