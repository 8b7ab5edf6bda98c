//! Tests of `agentd setup` as root among planted links.
//!
//! Each place that setup touches holds a symbolic link to a file, one to a folder, and a second name of a file of
//! root's. Each run ends with a refusal, and the whole tree is as it was. Only root can be misled, so other users have
//! nothing to test here.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Output;

use super::setup_box::TheBox;

const USER: &str = "nobody";
const REFUSED: i32 = 73;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plant {
    LinkToFile,
    LinkToFolder,
    SecondName,
}

impl Plant {
    const ALL: [Self; 3] = [Self::LinkToFile, Self::LinkToFolder, Self::SecondName];

    const fn code(self) -> &'static str {
        match self {
            Self::LinkToFile | Self::LinkToFolder => "E_LINK",
            Self::SecondName => "E_HARD_LINK",
        }
    }

    /// Puts it in a place, whatever was there.
    fn put(self, place: &Path, victims: &Path) {
        if place.symlink_metadata().is_ok_and(|about| about.is_dir()) {
            std::fs::rename(place, place.with_extension("aside")).unwrap();
        } else if place.symlink_metadata().is_ok() {
            std::fs::remove_file(place).unwrap();
        }
        match self {
            Self::LinkToFile => symlink(victims.join("file"), place).unwrap(),
            Self::LinkToFolder => symlink(victims.join("folder"), place).unwrap(),
            Self::SecondName => std::fs::hard_link(victims.join("file"), place).unwrap(),
        }
        std::os::unix::fs::lchown(place, Some(65_534), Some(65_534))
            .map(|()| {
                // The second name's file is root's own, as it was.
                if self == Self::SecondName {
                    std::os::unix::fs::chown(place, Some(0), Some(0)).unwrap();
                }
            })
            .unwrap();
    }
}

/// Everything below a folder: type, owner and content. Times and the count of names are left out.
fn tree(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let about = path.symlink_metadata().unwrap();
            let says = if about.is_dir() {
                open.push(path.clone());
                String::new()
            } else if about.is_symlink() {
                std::fs::read_link(&path).unwrap().display().to_string()
            } else {
                String::from_utf8_lossy(&std::fs::read(&path).unwrap_or_default()).into_owned()
            };
            found.insert(path, format!("{:o} {}:{} {says}", about.mode(), about.uid(), about.gid()));
        }
    }
    found
}

struct Planted {
    the_box: TheBox,
    victims: PathBuf,
}

/// A host that is set up for another user, and files of root's outside it.
fn set_up() -> Planted {
    let the_box = TheBox::of(USER);
    let victims = the_box.path("victims");
    std::fs::create_dir_all(victims.join("folder/secrets")).unwrap();
    for name in ["file", "folder/agent.toml", "folder/proxmox-observe", "folder/secrets/proxmox-observe"] {
        std::fs::write(victims.join(name), "root's own").unwrap();
        let closed = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(victims.join(name), closed).unwrap();
    }
    let first = the_box.run(&["--yes", "--target", "nas1"]);
    assert!(first.status.success(), "{}", String::from_utf8_lossy(&first.stderr));
    Planted { the_box, victims }
}

fn refused(output: &Output, code: &str, about: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(REFUSED), "{about}: {said}");
    assert!(said.contains(code), "{about}: {code} is not in {said}");
}

/// The places in the agent's folder.
const PLACES: [&str; 13] = [
    "state",
    "state/secrets",
    "state/host.agekey",
    "state/host.new",
    "state/secrets/proxmox-observe",
    "state/secrets/proxmox-observe.new",
    "state/secrets/proxmox-operate",
    "state/secrets/proxmox-operate.new",
    "state/secrets/proxmox-allocate",
    "state/secrets/proxmox-allocate.new",
    "state/secrets/proxmox-storage.sealed",
    "state/secrets/proxmox-storage.new",
    "etc/agent.toml",
];

#[test]
fn setup_follows_no_link_in_the_agents_folder() {
    if !is_root() {
        return;
    }
    let planted = set_up();
    let (the_box, victims) = (&planted.the_box, &planted.victims);
    for place in PLACES {
        for plant in Plant::ALL {
            let about = format!("{plant:?} at {place}");
            let is_folder = the_box.path(place).is_dir();
            // A folder cannot have a second name, and only root puts files into root's own folder.
            if plant == Plant::SecondName && (is_folder || place.starts_with("etc")) {
                continue;
            }
            let kept = the_box.path("kept");
            let was_there = the_box.path(place).exists();
            if was_there {
                std::fs::rename(the_box.path(place), &kept).unwrap();
            }
            plant.put(&the_box.path(place), victims);
            let before = tree(the_box.dir.path());
            refused(&the_box.run(&["--yes", "--target", "nas1"]), plant.code(), &about);
            // The stand-ins for Proxmox's commands record each call: there was none.
            assert_eq!(tree(the_box.dir.path()), before, "{about}");
            std::fs::remove_file(the_box.path(place)).unwrap();
            if was_there {
                std::fs::rename(&kept, the_box.path(place)).unwrap();
            }
        }
    }
    let again = the_box.run(&["--yes", "--target", "nas1"]);
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
}

/// The moment at which everything is still to be made is no other.
#[test]
fn a_first_setup_follows_no_link_either() {
    if !is_root() {
        return;
    }
    for place in ["state", "state/secrets", "state/secrets/proxmox-observe", "state/host.agekey"] {
        let planted = set_up();
        let (the_box, victims) = (&planted.the_box, &planted.victims);
        for made in
            ["state/secrets/proxmox-observe", "state/secrets/proxmox-storage.sealed", "state/host.agekey"]
        {
            std::fs::remove_file(the_box.path(made)).unwrap();
        }
        Plant::LinkToFolder.put(&the_box.path(place), victims);
        let before = tree(the_box.dir.path());
        refused(&the_box.run(&["--yes", "--target", "nas1"]), "E_LINK", place);
        assert_eq!(tree(the_box.dir.path()), before, "{place}");
    }
}

#[test]
fn a_folder_of_a_third_user_is_not_taken_from_it() {
    if !is_root() {
        return;
    }
    let planted = set_up();
    let the_box = &planted.the_box;
    std::os::unix::fs::chown(the_box.path("state"), Some(54_321), Some(54_321)).unwrap();
    let before = tree(the_box.dir.path());
    refused(&the_box.run(&["--yes"]), "E_OWNER", "state");
    assert_eq!(tree(the_box.dir.path()), before);
}

#[test]
fn a_removal_takes_nothing_away_behind_a_link() {
    if !is_root() {
        return;
    }
    let planted = set_up();
    let (the_box, victims) = (&planted.the_box, &planted.victims);
    Plant::LinkToFolder.put(&the_box.path("state/secrets"), victims);
    let before = tree(the_box.dir.path());
    refused(&the_box.run(&["--yes", "--remove"]), "E_LINK", "state/secrets");
    assert_eq!(tree(the_box.dir.path()), before);
}

/// What the state folder holds is read by a process of the agent's user, or by descriptor.
#[test]
fn other_commands_of_roots_are_not_led_out_of_the_agents_folder() {
    if !is_root() {
        return;
    }
    let planted = set_up();
    let the_box = &planted.the_box;
    std::fs::set_permissions(the_box.dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    // Where the agent's user can start it.
    let program = the_box.path("agentd");
    std::fs::copy(env!("CARGO_BIN_EXE_agentd"), &program).unwrap();
    let config = the_box.path("etc/agent.toml").display().to_string();
    let run = |words: &[&str]| {
        #[expect(clippy::disallowed_methods, reason = "the test runs the program itself")]
        std::process::Command::new(&program).args(words).args(["--config", &config]).output().unwrap()
    };
    let said = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();

    let sqlite = planted.victims.join("folder/agent.db");
    rusqlite::Connection::open(&sqlite).unwrap().execute_batch("CREATE TABLE audit (number)").unwrap();
    std::fs::set_permissions(&sqlite, std::fs::Permissions::from_mode(0o600)).unwrap();
    symlink(&sqlite, the_box.path("state/agent.db")).unwrap();
    let _others = std::os::unix::net::UnixListener::bind(planted.victims.join("sock")).unwrap();
    symlink(planted.victims.join("sock"), the_box.path("state/agent.sock")).unwrap();
    let key = the_box.path("state/host.agekey");
    std::fs::remove_file(&key).unwrap();
    symlink(planted.victims.join("file"), &key).unwrap();

    let before = tree(the_box.dir.path());
    let audit = run(&["audit", "export"]);
    assert_eq!((audit.status.code(), audit.stdout.len()), (Some(74), 0), "{}", said(&audit));
    let status = run(&["status"]);
    assert!(status.status.code() == Some(77) && said(&status).contains("E_LINK"), "{}", said(&status));
    let key = run(&["storage", "key"]);
    assert!(key.status.code() == Some(74) && said(&key).contains("E_LINK"), "{}", said(&key));
    assert_eq!(tree(the_box.dir.path()), before);
}

/// In `crates/agent-admin` nothing is written, given away or removed by path alone: `held_files::held_folder` is the
/// only way.
#[test]
fn no_command_writes_by_a_path() {
    const WAYS: [&str; 10] = [
        "fs::write(",
        "fs::rename(",
        "fs::remove_",
        "fs::create_dir",
        "fs::set_permissions(",
        "fs::copy(",
        "fs::hard_link(",
        "File::create",
        ".create_new(",
        "chown(",
    ];
    // A sheet is a file in shared memory, made new; a file that is removed there was checked by its descriptor.
    const EXCEPT: [&str; 1] = ["src/escrow/paper.rs"];
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/agent-admin/src")];
    let (mut seen, mut found) = (0, Vec::new());
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            if path.extension().is_none_or(|end| end != "rs") || path.ends_with("tests.rs") {
                continue;
            }
            seen += 1;
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            let ways = WAYS.iter().filter(|way| code.contains(**way));
            if !EXCEPT.iter().any(|except| path.ends_with(except)) {
                found.extend(ways.map(|way| format!("{}: {way}", path.display())));
            }
        }
    }
    assert!(seen > 30 && found.is_empty(), "{seen} files, {found:?}");
}
