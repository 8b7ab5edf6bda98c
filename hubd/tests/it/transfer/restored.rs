//! Hubs made of backups.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use holdfast_protocol::checkin::CheckinAnswer;
use hubd::settings::Database;
use reqwest::{Method, StatusCode};

use super::{BACKUP, EXPORT, RESTORE, migrated, printed, run, uses};
use crate::process::{Process, at};
use crate::world::{Options, World};

/// A backup while the hub serves; the hub that is made of it knows the host by its certificate.
#[tokio::test(flavor = "multi_thread")]
async fn a_hub_returns_from_its_backup_on_both_engines() {
    for is_postgres in [false, true] {
        let temp = tempfile::tempdir().unwrap();
        let (folder, file) = (temp.path().join("hub"), temp.path().join("hub.backup"));
        fs::create_dir(&folder).unwrap();
        let database = if is_postgres {
            let server = migrated();
            uses(&folder, &server);
            Database::Postgres(Box::new(server))
        } else {
            fs::write(folder.join("hub.toml"), "connections_max = 77\n").unwrap();
            Database::Folder
        };
        let world = World::started(folder.clone(), Options { database, ..Options::default() }).await;
        let host = world.enrol("box7").await;
        host.check_in(&host.full(1, 0), "0s").await.data(StatusCode::OK);
        let taken = printed(&BACKUP, &folder, &file).await;
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        // What comes later is not in it.
        world.enrol("box8").await;
        world.stop().await;
        fs::rename(&folder, temp.path().join("lost")).unwrap();

        let new = temp.path().join("new/hub");
        if is_postgres {
            fs::create_dir_all(&new).unwrap();
            uses(&new, &migrated());
        }
        let restored = printed(&RESTORE, &new, &file).await;
        assert_eq!((&restored.tables, restored.rows), (&taken.tables, taken.rows));
        assert_eq!(printed(&EXPORT, &new, &temp.path().join("again")).await.tables, taken.tables);
        for name in ["ca.key", "seed.key", "countersign.key", "admin-token"] {
            let bytes = |folder: &std::path::Path| fs::read(folder.join(name)).unwrap();
            assert_eq!(bytes(&new), bytes(&temp.path().join("lost")), "{name}");
            assert_eq!(fs::metadata(new.join(name)).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
        }
        let settings = fs::read_to_string(new.join("hub.toml")).unwrap();
        assert_eq!(settings.contains("connections_max = 77"), !is_postgres, "{settings}");
        assert!(!new.join("restore.part").exists());

        let process = Process::start(&new, "127.0.0.1:0").await;
        let agent = at(&host.client, &process);
        let answer: CheckinAnswer = agent
            .send(Method::POST, "/v1/agent/checkin?wait=0s", &host.full(2, 0))
            .await
            .data(StatusCode::OK);
        assert_eq!(answer.acknowledged, 2);
        let (status, log) = process.stop().await;
        assert!(status.success(), "{log}");
        let said = run(&RESTORE, &new, &file).await.unwrap_err();
        assert!(said.contains("there already") || said.contains("a database already"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_that_fails_leaves_nothing_behind() {
    let temp = tempfile::tempdir().unwrap();
    let (folder, new) = (temp.path().join("hub"), temp.path().join("new"));
    let (rows, backup) = (temp.path().join("rows"), temp.path().join("backup"));
    World::in_folder(folder.clone(), None).await.stop().await;
    run(&EXPORT, &folder, &rows).await.unwrap();
    run(&BACKUP, &folder, &backup).await.unwrap();
    let said = run(&RESTORE, &new, &rows).await.unwrap_err();
    assert!(said.contains("`hubd db import`") && !new.exists(), "{said}");
    // Everything but the trailer, which shows when all rows are written.
    let whole = fs::read(&backup).unwrap();
    let text = String::from_utf8(zstd::decode_all(whole.as_slice()).unwrap()).unwrap();
    let cut = text.rfind("{\"end\"").unwrap();
    fs::write(&backup, zstd::encode_all(&text.as_bytes()[..cut], 1).unwrap()).unwrap();
    let said = run(&RESTORE, &new, &backup).await.unwrap_err();
    assert!(said.contains("was cut off"), "{said}");
    let left: Vec<_> = fs::read_dir(&new).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["lock"]);
    fs::write(&backup, &whole).unwrap();
    run(&RESTORE, &new, &backup).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_of_backups_keeps_the_newest() {
    let temp = tempfile::tempdir().unwrap();
    let (folder, backups) = (temp.path().join("hub"), temp.path().join("backups"));
    World::in_folder(folder.clone(), None).await.stop().await;
    fs::create_dir(&backups).unwrap();
    for name in ["hub-20200101T000000Z.backup", "hub-20210101T000000Z.backup", "other"] {
        fs::write(backups.join(name), name).unwrap();
    }
    run(&["backup", "--keep", "2", "--to"], &folder, &backups).await.unwrap();
    let mut names: Vec<String> = fs::read_dir(&backups)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names.len(), 3, "{names:?}");
    assert_eq!((names[0].as_str(), names[2].as_str()), ("hub-20210101T000000Z.backup", "other"));
    let said = run(&["backup", "--keep", "2", "--to"], &folder, &temp.path().join("file")).await.unwrap_err();
    assert!(said.contains("--keep is for a folder"), "{said}");
}
