//! Rows that move between the engines.

use std::collections::BTreeSet;

use hubd::store::EventFilter;
use hubd::transfer::{Engine, ExportReader, ExportRequest, LEFT_OUT, RowSource, SchemaNumbers, is_left_out};
use jiff::Timestamp;
use reqwest::StatusCode;

use super::{EXPORT, FILLING, IMPORT, blocking, copy_of_keys, filled, migrated, printed, run, uses};
use crate::postgres_server::session_at;
use crate::world::World;

/// The whole way: SQLite, PostgreSQL, SQLite. A hub serves on each.
#[tokio::test(flavor = "multi_thread")]
async fn a_filled_hub_moves_to_the_other_engine_and_back_with_equal_digests() {
    let temp = tempfile::tempdir().unwrap();
    let (one, two, three) = (temp.path().join("one"), temp.path().join("two"), temp.path().join("three"));
    let (first, second) = (temp.path().join("first"), temp.path().join("second"));
    filled(&one).await;
    let exported = printed(&EXPORT, &one, &first).await;
    let usage = exported.tables.iter().find(|table| table.name == "usage").unwrap();
    assert_eq!(usage.rows, u64::from(FILLING.hosts) * (120 + 2 * 288 + 2 * 24));

    copy_of_keys(&one, &two);
    let server = migrated();
    uses(&two, &server);
    let imported = printed(&IMPORT, &two, &first).await;
    assert_eq!((&imported.tables, &imported.sha256), (&exported.tables, &exported.sha256));
    let of_postgres = printed(&EXPORT, &two, &second).await;
    assert_eq!((&of_postgres.tables, &of_postgres.sha256), (&exported.tables, &exported.sha256));

    copy_of_keys(&one, &three);
    let back = printed(&IMPORT, &three, &second).await;
    assert_eq!(back.tables, exported.tables);
    assert_eq!(printed(&EXPORT, &three, &temp.path().join("third")).await.tables, exported.tables);
    // Numbers go on behind the highest that was ever given, and triggers count again.
    let gone = rusqlite::Connection::open(one.join("hub.db")).unwrap();
    let gone: i64 = gone
        .query_row("SELECT seq FROM sqlite_sequence WHERE name = 'events'", [], |row| row.get(0))
        .unwrap();
    let size = "SELECT (SELECT bytes FROM usage_size) = (SELECT sum(length(row)) FROM usage)";
    blocking(|| {
        let mut session = session_at(&server);
        session.execute("DELETE FROM usage WHERE span = 2", &[]).unwrap();
        assert!(session.query_one(size, &[]).unwrap().get::<_, bool>(0));
        let sql =
            "INSERT INTO events (at, kind, correlation, message) VALUES (1, 'x', '', '') RETURNING number";
        assert_eq!(session.query_one(sql, &[]).unwrap().get::<_, i64>(0), gone + 1);
        session.execute("DELETE FROM events WHERE kind = 'x'", &[]).unwrap();
    });
    let restored = rusqlite::Connection::open(three.join("hub.db")).unwrap();
    restored.execute("DELETE FROM usage WHERE span = 2", []).unwrap();
    assert!(restored.query_row(size, [], |row| row.get::<_, bool>(0)).unwrap());
    let sql = "INSERT INTO events (at, kind, correlation, message) VALUES (1, 'desired_put', x'00', '') RETURNING number";
    assert_eq!(restored.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap(), gone + 1);
    restored.execute("DELETE FROM events WHERE number > ?1", [gone]).unwrap();
    drop(restored);
    // A hub serves on what came back.
    let world = World::in_folder(three.clone(), None).await;
    let host = world.enrol("box7").await;
    host.check_in(&host.full(1, 0), "0s").await.data(StatusCode::OK);
    assert_eq!(world.store.hosts(None, 100, Timestamp::UNIX_EPOCH).await.unwrap().len(), 21);
    world.stop().await;
}

/// A table that is added is exported by itself, and one that is left out has a reason.
#[tokio::test(flavor = "multi_thread")]
async fn every_table_of_both_engines_is_exported_or_left_out_with_a_reason() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("hub");
    World::in_folder(folder.clone(), None).await.stop().await;
    let mut connection = rusqlite::Connection::open(folder.join("hub.db")).unwrap();
    let tx = connection.transaction().unwrap();
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table'";
    let mut of_sqlite: BTreeSet<String> =
        tx.prepare(sql).unwrap().query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    drop(tx);
    let server = migrated();
    let of_postgres: BTreeSet<String> = blocking(|| {
        let sql = "SELECT tablename::text FROM pg_catalog.pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')";
        session_at(&server).query(sql, &[]).unwrap().iter().map(|row| row.get(0)).collect()
    });
    run(&EXPORT, &folder, &temp.path().join("one")).await.unwrap();
    let file = std::fs::File::open(temp.path().join("one")).unwrap();
    let exported: BTreeSet<String> =
        ExportReader::open(file).unwrap().header().tables.iter().map(|table| table.name.clone()).collect();
    of_sqlite.extend(of_postgres);
    for table in &of_sqlite {
        assert!(exported.contains(table) != is_left_out(table), "{table} is neither exported nor left out");
    }
    for (table, reason) in LEFT_OUT {
        assert!(of_sqlite.contains(table) && reason.len() > 10, "{table}: {reason}");
    }
    assert!(exported.len() > 30);
}

/// What is written during an export is not in it, and the hub does not wait for it.
#[tokio::test(flavor = "multi_thread")]
async fn an_export_sees_one_commit_while_a_hub_writes() {
    for is_postgres in [false, true] {
        let fixture = if is_postgres {
            crate::store::fixture::Fixture::postgres()
        } else {
            crate::store::fixture::Fixture::sqlite()
        };
        fixture.invite(1).await;
        let mut source: Box<dyn RowSource + Send> = fixture.snapshot();
        fixture.invite(2).await;
        let events = fixture.store.events(EventFilter::default(), 500).await.unwrap().len();
        let rows_in = |bytes: &[u8], table: &str| {
            let mut file = tempfile::tempfile().unwrap();
            std::io::Write::write_all(&mut file, bytes).unwrap();
            std::io::Seek::rewind(&mut file).unwrap();
            let lines = String::from_utf8(zstd::decode_all(file).unwrap()).unwrap();
            let begin = format!("{{\"table\":\"{table}\"}}");
            lines
                .lines()
                .skip_while(|line| *line != begin)
                .skip(1)
                .take_while(|line| line.starts_with('['))
                .count()
        };
        let export = |source: &mut (dyn RowSource + Send)| {
            let request = ExportRequest {
                engine: Engine::Sqlite,
                schema: SchemaNumbers { sqlite: 1, postgres: 1 },
                taken_at: Timestamp::UNIX_EPOCH,
                ca: "leaf/sha256:0".to_owned(),
                files: Vec::new(),
            };
            hubd::transfer::export(source, request, Vec::new(), &mut |_| {}).unwrap().1
        };
        let (before, after) = blocking(|| {
            let before = export(source.as_mut());
            drop(source);
            (before, export(fixture.snapshot().as_mut()))
        });
        assert_eq!((rows_in(&before, "invites"), rows_in(&after, "invites")), (1, 2));
        assert_eq!(rows_in(&after, "events"), events);
        assert!(rows_in(&before, "events") < events);
    }
}
