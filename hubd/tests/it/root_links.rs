//! Links in the hub's folder, and commands that root runs.
//!
//! Each file that a command opens, makes or changes is a link to root's file, a link to a missing file, or a second
//! name of root's file. Whatever the command reports, root's files stay as they were, and nothing in the folder becomes
//! root's. Only root can be misled this way, so other users have nothing to test here.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use crate::world::World;

/// The uid of a user who is not root.
const USER: u32 = 65_534;

/// All that a hub's folder holds, or that is made there for a moment.
const PLACES: [&str; 15] = [
    "hub.db",
    "hub.db-wal",
    "hub.db-shm",
    "hub.db-journal",
    "lock",
    "admin-token",
    "ca.key",
    "ca.pem",
    "seed.key",
    "countersign.key",
    "ca.new",
    "countersign.new",
    "seed.new",
    "hub.toml",
    "artifacts",
];

#[derive(Clone, Copy, Debug)]
enum Plant {
    LinkToFile,
    LinkToNothing,
    SecondName,
}

impl Plant {
    const ALL: [Self; 3] = [Self::LinkToFile, Self::LinkToNothing, Self::SecondName];

    fn put(self, place: &Path, victims: &Path) {
        drop(std::fs::remove_file(place));
        match self {
            Self::LinkToFile => symlink(victims.join("file"), place).unwrap(),
            Self::LinkToNothing => symlink(victims.join("made"), place).unwrap(),
            Self::SecondName => return std::fs::hard_link(victims.join("file"), place).unwrap(),
        }
        lchown(place, Some(USER), Some(USER)).unwrap();
    }
}

/// Everything below a folder: what it is, whose, and what it says.
fn tree(folder: &Path) -> BTreeMap<PathBuf, (u32, u32, u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let about = path.symlink_metadata().unwrap();
        let says = if about.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
        if about.is_dir() {
            found.append(&mut tree(&path));
        }
        found.insert(path, (about.mode(), about.uid(), about.gid(), says));
    }
    found
}

fn give_away(folder: &Path) {
    for path in tree(folder).keys() {
        lchown(path, Some(USER), Some(USER)).unwrap();
    }
    lchown(folder, Some(USER), Some(USER)).unwrap();
}

/// A folder of the hub's user, files of root's, and the program where any user may start it.
struct Planted {
    top: tempfile::TempDir,
    program: PathBuf,
    victims: PathBuf,
    made: PathBuf,
}

async fn set_up() -> Planted {
    let top = tempfile::tempdir().unwrap();
    std::fs::set_permissions(top.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let (program, victims, made) =
        (top.path().join("hubd"), top.path().join("victims"), top.path().join("made"));
    std::fs::copy(env!("CARGO_BIN_EXE_hubd"), &program).unwrap();
    std::fs::create_dir(&victims).unwrap();
    std::fs::write(victims.join("file"), "").unwrap();
    std::fs::set_permissions(victims.join("file"), std::fs::Permissions::from_mode(0o640)).unwrap();
    World::in_folder(made.clone(), None).await.stop().await;
    give_away(&made);
    Planted { top, program, victims, made }
}

impl Planted {
    /// The hub's folder, as it was made.
    fn folder(&self) -> PathBuf {
        let folder = self.top.path().join("hub");
        drop(std::fs::remove_dir_all(&folder));
        drop(std::fs::remove_file(&folder));
        std::fs::create_dir(&folder).unwrap();
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).unwrap();
        // The folder of releases is empty, and the hub makes it anew.
        for path in tree(&self.made).keys().filter(|path| path.is_file()) {
            let copy = folder.join(path.file_name().unwrap());
            std::fs::copy(path, &copy).unwrap();
        }
        give_away(&folder);
        folder
    }

    /// Runs it to its end; a hub that serves is ended once it says that it listens.
    async fn run(&self, words: &[&str], folder: &Path) -> bool {
        #[expect(clippy::disallowed_methods, reason = "the program under test")]
        let mut command = Command::new(&self.program);
        command.args(words).arg("--dir").arg(folder).env_remove("NOTIFY_SOCKET").current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let mut lines =
            tokio::io::AsyncBufReadExt::lines(tokio::io::BufReader::new(child.stdout.take().unwrap()));
        let running = async {
            while let Some(line) = lines.next_line().await.unwrap() {
                if line.contains("is reached at") {
                    child.start_kill().unwrap();
                    child.wait().await.unwrap();
                    return true;
                }
            }
            child.wait().await.unwrap().success()
        };
        tokio::time::timeout(Duration::from_secs(60), running).await.expect("the command ends")
    }
}

const COMMANDS: [&[&str]; 4] = [
    &["operator", "list"],
    &["operator", "add", "eve", "--role", "viewer"],
    &["operator", "revoke", "admin"],
    &["serve", "--listen", "127.0.0.1:0"],
];

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[tokio::test(flavor = "multi_thread")]
async fn root_follows_no_link_in_the_hubs_folder() {
    if !is_root() {
        return;
    }
    let planted = set_up().await;
    let before = tree(&planted.victims);
    for words in COMMANDS {
        let folder = planted.folder();
        assert!(planted.run(words, &folder).await, "{words:?} works where nothing is planted");
        let roots: Vec<_> = tree(&folder).into_iter().filter(|(_, about)| about.1 == 0).collect();
        assert!(roots.is_empty(), "{words:?} left files of root's: {:?}", roots.first());
    }
    // The other two open the same files as the first.
    for words in [COMMANDS[1], COMMANDS[3]] {
        for place in PLACES {
            for plant in Plant::ALL {
                let folder = planted.folder();
                plant.put(&folder.join(place), &planted.victims);
                let worked = planted.run(words, &folder).await;
                assert_eq!(tree(&planted.victims), before, "{words:?} with {plant:?} at {place:?}: {worked}");
            }
        }
        let folder = planted.folder();
        std::fs::remove_dir_all(&folder).unwrap();
        symlink(&planted.victims, &folder).unwrap();
        assert!(!planted.run(words, &folder).await, "{words:?} went through a link to the folder");
        assert_eq!(tree(&planted.victims), before);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn root_makes_no_hub_in_another_users_folder_as_root() {
    if !is_root() {
        return;
    }
    let planted = set_up().await;
    let home = planted.top.path().join("home");
    std::fs::create_dir(&home).unwrap();
    lchown(&home, Some(USER), Some(USER)).unwrap();
    assert!(planted.run(&["serve", "--listen", "127.0.0.1:0"], &home.join("new/hub")).await);
    let made = tree(&home);
    assert!(made.contains_key(&home.join("new/hub/hub.db")));
    assert!(made.values().all(|about| about.1 == USER), "{:?}", made.keys());
    // In root's folder that others may write in, root does not make one either.
    let open = planted.top.path().join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).unwrap();
    assert!(!planted.run(&["serve", "--listen", "127.0.0.1:0"], &open.join("hub")).await);
    assert!(tree(&open).is_empty());
}
