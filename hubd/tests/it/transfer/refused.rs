//! Files and databases that are refused, and that nothing is changed then.

use std::fs;
use std::path::Path;

use super::{EXPORT, IMPORT, blocking, copy_of_keys, filled, migrated, run, unmigrated, uses};
use crate::postgres_server::session_at;
use crate::world::World;

/// A change to the lines of a file, and a part of the refusal.
type Damage = (&'static str, fn(&mut Vec<String>));

fn row_of(lines: &[String], table: &str) -> usize {
    lines.iter().position(|line| *line == format!("{{\"table\":\"{table}\"}}")).unwrap() + 1
}

const DAMAGES: [Damage; 10] = [
    ("was cut off", |lines| drop(lines.pop())),
    ("was cut off", |lines| lines.truncate(lines.len() / 2)),
    ("another digest", |lines| {
        let row = row_of(lines, "hosts");
        lines[row] = lines[row].replace("host1\"", "hostX\"");
    }),
    ("another digest", |lines| drop(lines.remove(row_of(lines, "usage")))),
    ("another digest", |lines| {
        let row = row_of(lines, "usage");
        lines.swap(row, row + 1);
    }),
    ("is not what must be there", |lines| {
        let row = row_of(lines, "hosts");
        lines[row] = lines[row].replacen('[', "[\"more\",", 1);
    }),
    ("is not what must be there", |lines| {
        let row = row_of(lines, "hosts");
        lines[row] = "[".to_owned();
    }),
    ("is not what must be there", |lines| lines.push("[]".to_owned())),
    ("written by a newer hub", |lines| {
        lines[0] = lines[0].replace("\"schema\":{\"sqlite\":", "\"schema\":{\"sqlite\":9");
    }),
    ("differ from those of the database", |lines| {
        lines[0] = lines[0].replace("{\"name\":\"agent_version\",\"kind\":\"text\"},", "");
    }),
];

fn write(lines: &[String], to: &Path) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(to, zstd::encode_all(text.as_bytes(), 1).unwrap()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_cut_changed_or_is_newer_changes_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let (one, file) = (temp.path().join("one"), temp.path().join("good"));
    filled(&one).await;
    run(&EXPORT, &one, &file).await.unwrap();
    let text = String::from_utf8(zstd::decode_all(fs::File::open(&file).unwrap()).unwrap()).unwrap();
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let (folder, at_server) = (temp.path().join("folder"), temp.path().join("at-server"));
    copy_of_keys(&one, &folder);
    copy_of_keys(&one, &at_server);
    let server = migrated();
    uses(&at_server, &server);
    let damaged = temp.path().join("damaged");
    let mut cases: Vec<(&str, Vec<u8>)> = Vec::new();
    for (refusal, damage) in DAMAGES {
        let mut changed = lines.clone();
        damage(&mut changed);
        assert_ne!(changed, lines, "{refusal}");
        write(&changed, &damaged);
        cases.push((refusal, fs::read(&damaged).unwrap()));
    }
    let packed = fs::read(&file).unwrap();
    cases.push(("was cut off", packed[..packed.len() - 5].to_vec()));
    cases.push(("was cut off", packed[..20].to_vec()));
    cases.push(("was cut off", Vec::new()));
    cases.push(("cannot be read as an export", b"PGDMP no export of a hub".to_vec()));
    for (refusal, bytes) in cases {
        fs::write(&damaged, bytes).unwrap();
        for dir in [&folder, &at_server] {
            let before = fs::read_dir(dir).unwrap().count();
            let said = run(&IMPORT, dir, &damaged).await.unwrap_err();
            assert!(said.contains(refusal) && said.contains("nothing was changed"), "{refusal}: {said}");
            assert_eq!(fs::read_dir(dir).unwrap().count(), before, "{refusal}");
        }
        let rows = blocking(|| {
            let mut session = session_at(&server);
            ["hosts", "usage", "operators"].map(|table| {
                session.query_one(&format!("SELECT count(*) FROM {table}"), &[]).unwrap().get::<_, i64>(0)
            })
        });
        assert_eq!(rows, [0, 0, 0], "{refusal}");
    }
    // And what was refused so often takes the good file.
    run(&IMPORT, &at_server, &file).await.unwrap();
    run(&IMPORT, &folder, &file).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_needs_an_empty_database_of_the_same_hub() {
    let temp = tempfile::tempdir().unwrap();
    let (one, other, file) = (temp.path().join("one"), temp.path().join("other"), temp.path().join("file"));
    World::in_folder(one.clone(), None).await.stop().await;
    World::in_folder(other.clone(), None).await.stop().await;
    run(&EXPORT, &one, &file).await.unwrap();
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).unwrap().permissions()) & 0o777,
        0o600
    );
    let again = run(&EXPORT, &one, &file).await.unwrap_err();
    assert!(again.contains("there already"), "{again}");
    let said = run(&IMPORT, &one, &file).await.unwrap_err();
    assert!(said.contains("hub.db is there already"), "{said}");
    fs::remove_file(other.join("hub.db")).unwrap();
    let said = run(&IMPORT, &other, &file).await.unwrap_err();
    assert!(said.contains("folder of the same hub"), "{said}");

    let keys = temp.path().join("keys");
    copy_of_keys(&one, &keys);
    let bare = unmigrated("bare");
    uses(&keys, &bare);
    let said = run(&IMPORT, &keys, &file).await.unwrap_err();
    assert!(said.contains("`hubd db migrate`"), "{said}");
    uses(&keys, &migrated());
    run(&IMPORT, &keys, &file).await.unwrap();
    let said = run(&IMPORT, &keys, &file).await.unwrap_err();
    assert!(said.contains("not empty") && said.contains("events"), "{said}");

    let world = World::in_folder(one.clone(), None).await;
    let said = run(&IMPORT, &one, &file).await.unwrap_err();
    assert!(said.contains("a hub runs in"), "{said}");
    world.stop().await;
}
