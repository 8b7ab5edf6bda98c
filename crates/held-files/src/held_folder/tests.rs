//! Tests with links, foreign files and pipes in every place.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use super::*;

/// A user that is not root.
const STRANGER: u32 = 65_533;

struct Place {
    dir: tempfile::TempDir,
    folder: PathBuf,
}

/// A folder of a lesser user's beneath one of root's, and a file that none of this may touch.
fn place(owner: u32) -> Place {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("theirs");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(dir.path().join("victim"), "root's").unwrap();
    if is_root() {
        std::os::unix::fs::chown(&folder, Some(owner), Some(owner)).unwrap();
    }
    Place { dir, folder }
}

fn name(name: &str) -> &OsStr {
    OsStr::new(name)
}

#[test]
fn a_file_is_written_whole_with_its_mode_and_read_again() {
    let place = place(STRANGER);
    let folder = HeldFolder::open(&place.folder).unwrap();
    folder.write(name("a"), b"one", 0o640, Given::Kept).unwrap();
    std::fs::write(place.folder.join("a.new"), "half of an earlier attempt").unwrap();
    folder.write(name("a"), b"two", 0o600, Given::Kept).unwrap();
    let meta = std::fs::metadata(place.folder.join("a")).unwrap();
    assert_eq!(meta.permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read(place.folder.join("a")).unwrap(), b"two");
    assert!(folder.fresh(name("a"), b"x", 0o600, Given::Kept).is_err(), "it is there already");
    assert!(folder.file(name("b")).unwrap().is_none());
    folder.remove(name("a")).unwrap();
    folder.remove(name("a")).unwrap();
    assert!(!folder.has(name("a")).unwrap());
}

#[test]
fn no_link_is_followed_to_read_to_write_or_to_give() {
    let place = place(STRANGER);
    let victim = place.dir.path().join("victim");
    symlink(&victim, place.folder.join("a")).unwrap();
    let folder = HeldFolder::open(&place.folder).unwrap();
    let codes = [
        folder.file(name("a")).unwrap_err(),
        folder.write(name("a"), b"x", 0o600, Given::Kept).unwrap_err(),
        folder.give(name("a"), Given::To { uid: STRANGER, gid: STRANGER }).unwrap_err(),
        folder.socket(name("a")).unwrap_err(),
        folder.down(name("a")).unwrap_err(),
    ];
    assert!(codes.iter().all(|error| error.code() == "E_LINK"), "{codes:?}");
    symlink(place.dir.path(), place.folder.join("d")).unwrap();
    assert_eq!(folder.make(name("d"), 0o700).unwrap_err().code(), "E_LINK");
    assert!(folder.fresh(name("a"), b"x", 0o600, Given::Kept).is_err());
    assert_eq!(std::fs::read(&victim).unwrap(), b"root's");
    folder.remove(name("a")).unwrap();
    assert!(victim.exists(), "the link goes, what it leads to stays");
}

#[test]
fn nothing_is_waited_for_and_only_files_are_read() {
    let place = place(STRANGER);
    let folder = HeldFolder::open(&place.folder).unwrap();
    rustix::fs::mknodat(&folder.fd, "pipe", FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(place.folder.join("sock")).unwrap();
    std::fs::create_dir(place.folder.join("d")).unwrap();
    for what in ["pipe", "sock", "d"] {
        let error = folder.write(name(what), b"x", 0o600, Given::Kept).unwrap_err();
        assert_eq!(error.code(), "E_KIND", "{what}");
        assert_eq!(folder.file(name(what)).unwrap_err().code(), "E_KIND", "{what}");
    }
    assert!(folder.socket(name("sock")).is_ok());
}

/// As root alone: any other user who runs this reaches nothing that the owner of the folder could not reach.
#[test]
fn root_takes_neither_second_names_nor_strangers_things_in_anothers_folder() {
    if !is_root() {
        return;
    }
    let place = place(STRANGER);
    let victim = place.dir.path().join("victim");
    std::fs::hard_link(&victim, place.folder.join("a")).unwrap();
    std::fs::write(place.folder.join("b"), "another's").unwrap();
    std::os::unix::fs::chown(place.folder.join("b"), Some(STRANGER - 1), None).unwrap();
    std::fs::create_dir(place.folder.join("c")).unwrap();
    std::os::unix::fs::chown(place.folder.join("c"), Some(STRANGER - 1), None).unwrap();
    let folder = HeldFolder::open(&place.folder).unwrap();
    let code = |error: HeldError| error.code();
    assert_eq!(folder.file(name("a")).map_err(code).unwrap_err(), "E_HARD_LINK");
    let given = Given::To { uid: STRANGER, gid: STRANGER };
    assert_eq!(folder.give(name("a"), given).map_err(code).unwrap_err(), "E_HARD_LINK");
    assert_eq!(folder.write(name("a"), b"x", 0o600, given).map_err(code).unwrap_err(), "E_HARD_LINK");
    assert_eq!(folder.file(name("b")).map_err(code).unwrap_err(), "E_OWNER");
    assert_eq!(folder.down(name("c")).map_err(code).unwrap_err(), "E_OWNER");
    let meta = std::fs::metadata(&victim).unwrap();
    assert_eq!((meta.uid(), meta.len()), (0, 6));
}

/// As root alone: every folder of the path is checked, not only its end.
#[test]
fn root_walks_through_no_link() {
    if !is_root() {
        return;
    }
    let place = place(STRANGER);
    symlink(place.dir.path(), place.folder.join("out")).unwrap();
    let error = HeldFolder::open(&place.folder.join("out")).unwrap_err();
    assert_eq!(error.code(), "E_LINK");
    assert_eq!(open_file(&place.folder.join("out/victim")).unwrap_err().code(), "E_LINK");
    assert_eq!(create_new(&place.folder.join("out/new"), b"x", 0o600).unwrap_err().code(), "E_LINK");
    assert_eq!(HeldFolder::make_all(&place.folder.join("out/a/b")).unwrap_err().code(), "E_LINK");
    assert!(!place.dir.path().join("new").exists() && !place.dir.path().join("a").exists());
    assert_eq!(HeldFolder::roots_alone(&place.folder).unwrap_err().code(), "E_OWNER");
    HeldFolder::make_all(&place.dir.path().join("x/y")).unwrap();
    let mode = std::fs::metadata(place.dir.path().join("x/y")).unwrap().mode() & 0o7777;
    assert_eq!(mode, 0o755, "whatever mask this has");
}
