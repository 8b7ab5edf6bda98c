//! Tests of uploads: whole, in pieces, cut off, wrong, and without room.

use std::os::unix::fs::PermissionsExt as _;

use holdfast_protocol::code::ErrorCode;

use super::*;

const LIMITS: ArtifactLimits = ArtifactLimits { bytes_max: u64::MAX, disk_reserve_bytes: 0 };

fn bytes() -> Vec<u8> {
    (0..10_000_u32).flat_map(u32::to_be_bytes).collect()
}

fn upload(folder: &Arc<ArtifactFolder>, offset: u64) -> Result<Upload, ArtifactError> {
    let bytes = bytes();
    match folder.begin(&Sha256Text::of(&bytes), bytes.len() as u64, offset)? {
        Begun::Upload(upload) => Ok(upload),
        Begun::Complete(view) => panic!("complete: {view:?}"),
    }
}

fn view(folder: &ArtifactFolder) -> (u64, ArtifactState) {
    let bytes = bytes();
    let view = folder.view(&Sha256Text::of(&bytes), bytes.len() as u64).unwrap();
    (view.received_bytes, view.state)
}

#[test]
fn a_file_comes_in_pieces_over_a_restart() {
    let temp = tempfile::tempdir().unwrap();
    let (all, digest) = (bytes(), Sha256Text::of(&bytes()));
    let folder = ArtifactFolder::open(temp.path(), LIMITS).unwrap();
    assert_eq!(view(&folder), (0, ArtifactState::Missing));
    let mut first = upload(&folder, 0).unwrap();
    first.write(&all[..9_000]).unwrap();
    assert!(matches!(upload(&folder, 0), Err(ArtifactError::Locked)));
    assert_eq!(first.end().unwrap().received_bytes, 9_000);
    assert!(folder.read(&digest).unwrap().is_none(), "a beginning is not served");
    assert!(matches!(upload(&folder, 9_001), Err(ArtifactError::Offset { received: 9_000 })));

    // One that ends without `end`, as when its connection is lost.
    let mut second = upload(&folder, 9_000).unwrap();
    second.write(&all[9_000..20_000]).unwrap();
    drop(second);
    assert_eq!(view(&folder), (20_000, ArtifactState::Partial));
    // The next hub knows no hash of the beginning.
    drop(folder);
    let folder = ArtifactFolder::open(temp.path(), LIMITS).unwrap();
    // A piece whose answer was lost comes again.
    let mut again = upload(&folder, 9_000).unwrap();
    again.write(&all[9_000..]).unwrap();
    assert_eq!(again.end().unwrap().state, ArtifactState::Complete);
    let mut read = Vec::new();
    io::Read::read_to_end(&mut folder.read(&digest).unwrap().unwrap(), &mut read).unwrap();
    assert_eq!(read, all);
    let mode = fs::metadata(folder.whole(&digest)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(!folder.part(&digest).exists());
    let begun = folder.begin(&digest, all.len() as u64, 0).unwrap();
    assert!(matches!(begun, Begun::Complete(_)), "it is not written again");
}

#[test]
fn wrong_and_too_many_bytes_never_get_the_name() {
    let temp = tempfile::tempdir().unwrap();
    let folder = ArtifactFolder::open(temp.path(), LIMITS).unwrap();
    let mut all = bytes();
    let mut long = upload(&folder, 0).unwrap();
    long.write(&all).unwrap();
    assert_eq!(long.write(b"x").unwrap_err().code(), ErrorCode::Size);
    drop(long);
    // All bytes are there, and it was not ended: the next request ends it.
    let rest = upload(&folder, all.len() as u64).unwrap();
    assert_eq!(rest.end().unwrap().state, ArtifactState::Complete);
    folder.keep_only(&BTreeSet::new()).unwrap();

    all[5] ^= 1;
    let mut wrong = upload(&folder, 0).unwrap();
    wrong.write(&all).unwrap();
    assert_eq!(wrong.end().unwrap_err().code(), ErrorCode::ArtifactWrong);
    assert_eq!(view(&folder), (0, ArtifactState::Missing), "nothing of it stays");
    // A beginning that the disk lost a part of is wrong at its end, too.
    let mut part = upload(&folder, 0).unwrap();
    part.write(&bytes()[..1_000]).unwrap();
    part.end().unwrap();
    let path = folder.part(&Sha256Text::of(&bytes()));
    drop(folder);
    fs::write(&path, vec![0; 1_000]).unwrap();
    let folder = ArtifactFolder::open(temp.path(), LIMITS).unwrap();
    let mut rest = upload(&folder, 1_000).unwrap();
    rest.write(&bytes()[1_000..]).unwrap();
    assert_eq!(rest.end().unwrap_err().code(), ErrorCode::ArtifactWrong);
}

#[test]
fn room_is_looked_for_before_the_first_byte() {
    let temp = tempfile::tempdir().unwrap();
    let limits = ArtifactLimits { disk_reserve_bytes: u64::MAX / 2, ..LIMITS };
    let folder = ArtifactFolder::open(temp.path(), limits).unwrap();
    assert_eq!(upload(&folder, 0).err().unwrap().code(), ErrorCode::DiskFull);
    assert_eq!(fs::read_dir(temp.path().join(FOLDER)).unwrap().count(), 0, "not even an empty file");
    assert_eq!(upload(&folder, 0).err().unwrap().code(), ErrorCode::DiskFull, "and it is not locked");
    let full = ArtifactError::Disk { verb: "written", source: io::ErrorKind::StorageFull.into() };
    assert_eq!(full.code(), ErrorCode::DiskFull);
}

#[test]
fn what_no_release_names_goes_and_strange_files_stay() {
    let temp = tempfile::tempdir().unwrap();
    let folder = ArtifactFolder::open(temp.path(), LIMITS).unwrap();
    let [kept, gone, begun] = ["kept", "gone", "begun"].map(|text| Sha256Text::of(text.as_bytes()));
    let at = |name: &str| temp.path().join(FOLDER).join(name);
    let part = format!("{}.part", begun.as_str());
    for name in [kept.as_str(), gone.as_str(), part.as_str(), "README"] {
        fs::write(at(name), "x").unwrap();
    }
    let mut writing = upload(&folder, 0).unwrap();
    writing.write(b"x").unwrap();
    folder.keep_only(&BTreeSet::from([kept.clone()])).unwrap();
    let there = |name: &str| at(name).exists();
    assert!(there(kept.as_str()) && there("README") && !there(gone.as_str()) && !there(&part));
    assert_eq!(view(&folder), (1, ArtifactState::Partial), "what is written now stays");
    drop(writing);
    folder.keep_only(&BTreeSet::new()).unwrap();
    assert_eq!(view(&folder), (0, ArtifactState::Missing));
}
