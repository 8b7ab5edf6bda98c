//! PostgreSQL as the engine: schema, sessions that end, several writers.

use std::collections::BTreeMap;

use holdfast_protocol::checkin::{CheckinAnswer, Need};
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::HostId;
use holdfast_protocol::operator::{HostDetail, WhoAmI};
use hubd::domain::alerting::AlertContext;
use hubd::postgres::{MigrateError, OpenError, Postgres, SchemaError, Server, Users};
use hubd::settings::Database;
use hubd::store::duty::Upkeep;
use hubd::store::{Checkin, Duty, HolderId, LEASE, Lease, Redemption, SharedStore, StoreError, WriterThread};
use reqwest::{Method, StatusCode};
use uuid::Uuid;

use crate::postgres_server::{empty_database, fresh_database, session_at, url_of};
use crate::process::{Process, at as at_process, hubd};
use crate::store::fixture::{CORRELATION, Fixture, at, by, checkin, fresh_key, host_id, named};
use crate::store::quiet::quiet_after_first;
use crate::world::{Options, World};

/// The blocking client does not run on a thread that runs tasks.
fn blocking<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(work).join().unwrap())
}

fn open(server: &Server, users: Users) -> Result<(SharedStore, WriterThread), OpenError> {
    Postgres::open(server, AlertContext::without_channels(at(0)), users)
}

/// Columns of each table, by name: their type, whether they may be null, and whether they are of the key.
type Tables = BTreeMap<String, BTreeMap<String, (String, bool, bool)>>;

fn of_sqlite() -> Tables {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hub.db");
    drop(hubd::sqlite::Sqlite::open(&path, AlertContext::without_channels(at(0))).unwrap());
    let connection = rusqlite::Connection::open(path).unwrap();
    let sql = "SELECT m.name, c.name, c.type, c.\"notnull\" OR c.pk > 0, c.pk > 0
        FROM sqlite_schema AS m, pragma_table_info(m.name) AS c WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'";
    let mut statement = connection.prepare(sql).unwrap();
    let mut rows = statement.query([]).unwrap();
    let mut tables = Tables::new();
    while let Some(row) = rows.next().unwrap() {
        let (table, column): (String, String) = (row.get_unwrap(0), row.get_unwrap(1));
        let kind = match row.get_unwrap::<_, String>(2).as_str() {
            "INTEGER" => "bigint",
            "BLOB" => "bytea",
            "TEXT" => "text",
            other => panic!("{other}"),
        };
        let row = (kind.to_owned(), row.get_unwrap(3), row.get_unwrap(4));
        tables.entry(table).or_default().insert(column, row);
    }
    tables
}

fn of_postgres(server: &Server) -> Tables {
    let sql = "SELECT c.table_name::text, c.column_name::text, c.data_type::text, c.is_nullable = 'NO',
            EXISTS (SELECT FROM information_schema.table_constraints AS t
                JOIN information_schema.key_column_usage AS k USING (constraint_schema, constraint_name)
                WHERE t.constraint_type = 'PRIMARY KEY' AND t.table_name = c.table_name AND k.column_name = c.column_name)
        FROM information_schema.columns AS c WHERE c.table_schema = 'public' AND c.table_name <> 'hub_schema'";
    let mut tables = Tables::new();
    for row in session_at(server).query(sql, &[]).unwrap() {
        let column = (row.get(2), row.get(3), row.get(4));
        tables.entry(row.get(0)).or_default().insert(row.get(1), column);
    }
    tables
}

#[test]
fn both_engines_have_the_same_tables_and_columns() {
    let (one, other) = (of_sqlite(), of_postgres(&fresh_database()));
    assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
    for (table, columns) in &one {
        assert_eq!(columns, &other[table], "{table}");
    }
    assert!(one.len() > 30 && one["hosts"].len() > 30);
}

#[test]
fn text_sorts_by_its_bytes_in_every_column() {
    let sql = "SELECT count(*) FROM information_schema.columns
        WHERE table_schema = 'public' AND data_type = 'text' AND collation_name IS DISTINCT FROM 'C'";
    assert_eq!(session_at(&fresh_database()).query_one(sql, &[]).unwrap().get::<_, i64>(0), 0);
}

#[test]
fn a_schema_that_does_not_fit_is_refused_with_the_command_that_helps() {
    let empty = empty_database("empty");
    let refusal = |server: &Server| match open(server, Users::Several) {
        Err(OpenError::Schema(error)) => (error.to_string(), error),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it opens"),
    };
    let (text, error) = refusal(&empty);
    assert!(matches!(error, SchemaError::Missing) && text.contains("`hubd db migrate`"), "{text}");
    let migrated = empty.migrate().unwrap();
    assert_eq!((migrated.from, migrated.to), (0, 1));
    assert_eq!(empty.migrate().unwrap().from, 1, "once more does nothing");
    drop(open(&empty, Users::Several).unwrap());

    let set = |version: i64, readable_from: i64| {
        let sql = "UPDATE hub_schema SET version = $1, readable_from = $2";
        session_at(&empty).execute(sql, &[&version, &readable_from]).unwrap();
    };
    // A newer hub that only added something works beside this one.
    set(9, 1);
    drop(open(&empty, Users::Several).unwrap());
    assert!(matches!(empty.migrate(), Err(MigrateError::Schema(SchemaError::Newer { found: 9, .. }))));
    set(9, 9);
    assert!(matches!(refusal(&empty).1, SchemaError::Newer { found: 9, known: 1 }));
    set(0, 0);
    let (text, error) = refusal(&empty);
    assert!(matches!(error, SchemaError::Older { found: 0, .. }) && text.contains("`hubd db migrate`"));

    let foreign = empty_database("others");
    session_at(&foreign).batch_execute("CREATE TABLE other (x int)").unwrap();
    assert!(matches!(refusal(&foreign).1, SchemaError::Foreign));
    assert!(matches!(foreign.migrate(), Err(MigrateError::Schema(SchemaError::Foreign))));
}

#[test]
fn two_migrations_at_a_time_make_the_tables_once() {
    let empty = empty_database("race");
    let both = std::thread::scope(|scope| {
        let other = scope.spawn(|| empty.migrate().unwrap().from);
        [empty.migrate().unwrap().from, other.join().unwrap()]
    });
    assert!(both == [0, 1] || both == [1, 0], "{both:?}");
}

#[test]
fn several_hubs_serve_and_what_must_be_alone_waits_for_none() {
    let server = fresh_database();
    let hubs = [open(&server, Users::Hub).unwrap(), open(&server, Users::Hub).unwrap()];
    assert!(matches!(open(&server, Users::One), Err(OpenError::Served(_))));
    drop(open(&server, Users::Several).unwrap());
    for (store, threads) in hubs {
        drop(store);
        threads.join().unwrap();
    }
    let alone = open(&server, Users::One).unwrap();
    assert!(matches!(open(&server, Users::Hub), Err(OpenError::Served(_))));
    drop(alone);
}

/// The database's clock is set, so all leases seem to be over, or to last for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_s_clock_that_jumps_ends_leases_and_keeps_none_for_ever() {
    let fixture = Fixture::postgres();
    let (one, two) = (HolderId::new(Uuid::from_u128(1)), HolderId::new(Uuid::from_u128(2)));
    let hold = async |holder| fixture.store.hold_leases(holder, &[Duty::Upkeep], LEASE).await.unwrap();
    let set = |sql: &str| {
        blocking(|| assert_eq!(session_at(fixture.server()).execute(sql, &[]).unwrap(), 1));
    };
    let first = hold(one).await;
    assert!(hold(two).await.is_empty());
    // Forward: the lease is over, though nobody else took it. Its holder may renew it, in the same epoch.
    set("UPDATE hub_leases SET expires_at = expires_at - 60000");
    let term = Lease::<Upkeep>::granted(&first, tokio::time::Instant::now()).term().unwrap();
    let refused = fixture.store.prune(&term, at(0)).await;
    assert!(matches!(refused, Err(StoreError::TermOver(Duty::Upkeep))), "{refused:?}");
    assert_eq!(hold(one).await, first);
    fixture.store.prune(&term, at(0)).await.unwrap();
    // Back: the end is an hour away, and no lease lasts that long.
    set("UPDATE hub_leases SET expires_at = expires_at + 3600000");
    assert_eq!(hold(two).await[0].epoch().number(), first[0].epoch().number() + 1);
}

/// What one hub writes for a host, the other one finds, in the order of the commits and without a second look at quiet hosts.
#[tokio::test(flavor = "multi_thread")]
async fn a_hub_hears_of_changes_that_another_one_makes() {
    let fixture = Fixture::postgres();
    let host = fixture.box7().await;
    let (other, _threads) = blocking(|| open(fixture.server(), Users::Hub)).unwrap();
    let mut changed = other.changed_hosts().unwrap();
    assert!(other.changed_hosts().is_none(), "one task takes it");
    let mut events = other.events_written();
    events.mark_unchanged();
    // A check-in is no change that a host waits for.
    fixture.store.check_in(checkin(host, 1, 1)).await.unwrap().unwrap();
    fixture.store.check_in(quiet_after_first(host, 2)).await.unwrap().unwrap();
    let window = Some(hubd::store::AnnouncedEnd { until: at(900), reason: None });
    fixture.store.set_maintenance(by(6), named("box7"), window).await.ok().unwrap().unwrap();
    assert_eq!(changed.recv().await.unwrap(), [host]);
    fixture.store.revoke_host(by(7), named("box7")).await.ok().unwrap().unwrap();
    assert_eq!(changed.recv().await.unwrap(), [host]);
    events.changed().await.unwrap();
    let count = || {
        blocking(|| {
            session_at(fixture.server())
                .query_one("SELECT seq FROM change_seq", &[])
                .unwrap()
                .get::<_, i64>(0)
        })
    };
    // The session is lost: the next look makes another one.
    blocking(|| {
        let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE (query LIKE '%LISTEN%' OR query LIKE '%change_seq%') AND pid <> pg_backend_pid()";
        session_at(fixture.server()).query(sql, &[]).unwrap();
    });
    let before = count();
    let next = fixture.enrol("box8", host_id(8), &fresh_key()).await.host;
    fixture.store.revoke_host(by(8), named("box8")).await.ok().unwrap().unwrap();
    assert_eq!(changed.recv().await.unwrap(), [next]);
    assert_eq!(count(), before + 1);
}

/// A server that was restarted, or an administrator who ended sessions.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_end_are_made_anew() {
    let server = blocking(fresh_database);
    let (store, _writer) = blocking(|| open(&server, Users::Hub)).unwrap();
    store.ready().await.unwrap();
    blocking(|| {
        let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE application_name = 'hubd' AND datname = current_database()";
        assert!(session_at(&server).query(sql, &[]).unwrap().len() >= 2);
    });
    store.ready().await.unwrap();
    assert_eq!(store.check_database().await.unwrap(), Vec::<String>::new());
    assert!(url_of(&server).starts_with("postgres:///"));
}

/// Two hubs redeem the same invite at the same time, many times: one host comes of each.
#[tokio::test(flavor = "multi_thread")]
async fn writers_of_two_hubs_see_no_half_done_change_of_each_other() {
    let fixture = Fixture::postgres();
    let other = fixture.second();
    for number in 1..=20_u128 {
        let (one, two) = (fixture.invite(number).await, fresh_key());
        let redeem = |store: SharedStore, key| {
            let redemption =
                Redemption { secret: one, key, host: host_id(number), at: at(1), correlation: CORRELATION };
            let issue = fixture.issue();
            #[expect(clippy::disallowed_methods, reason = "two requests at the same time")]
            tokio::spawn(async move { store.redeem(redemption, issue).await.is_ok() })
        };
        let first = redeem(fixture.store.clone(), fresh_key());
        let second = redeem(other.0.clone(), two);
        let redeemed = [first.await.unwrap(), second.await.unwrap()];
        assert_eq!(redeemed.iter().filter(|done| **done).count(), 1, "invite {number}");
    }
    assert_eq!(fixture.store.hosts(None, 100, at(9)).await.unwrap().len(), 20);
}

/// A hub that another one revoked a host at serves it no more: nothing of hosts is in memory.
#[tokio::test(flavor = "multi_thread")]
async fn a_quiet_host_is_refused_at_once_by_every_hub() {
    let fixture = Fixture::postgres();
    let (other, _writer) = fixture.second();
    let host = fixture.box7().await;
    for sequence in 1..=3 {
        fixture.store.check_in(quiet_after_first(host, sequence)).await.unwrap().unwrap();
    }
    other.revoke_host(by(4), named("box7")).await.ok().unwrap().unwrap();
    let refused = fixture.store.check_in(quiet_after_first(host, 5)).await.unwrap();
    assert_eq!(refused, Err(hubd::domain::identity::IdentityError::Revoked));
}

/// Statements for many hosts lock rows while writers do: none of them waits for the other in a circle.
#[tokio::test(flavor = "multi_thread")]
async fn quiet_hosts_of_two_hubs_and_their_writers_end_each_other_never() {
    const HOSTS: u128 = 30;
    let fixture = Fixture::postgres();
    let (other, _writer) = fixture.second();
    for number in 1..=HOSTS {
        fixture.enrol(&format!("host{number}"), host_id(number), &fresh_key()).await;
        fixture.store.check_in(checkin(host_id(number), 1, 1)).await.unwrap().unwrap();
    }
    let mut requests = tokio::task::JoinSet::new();
    for round in 2..10 {
        for number in 1..=HOSTS {
            let store = if number % 2 == u128::from(round % 2) { &fixture.store } else { &other }.clone();
            let (quiet, full) = (quiet_after_first(host_id(number), round), number % 7 == 0);
            requests.spawn(async move {
                // Some of them have news, which the writer keeps.
                let held = if full { Generation::new(round) } else { quiet.held };
                store.check_in(Checkin { held, ..quiet }).await.unwrap().unwrap();
            });
        }
    }
    while let Some(done) = requests.join_next().await {
        done.unwrap();
    }
    for number in (1..=HOSTS).filter(|number| number % 7 != 0) {
        let last = fixture.store.check_in(quiet_after_first(host_id(number), 20)).await.unwrap().unwrap();
        assert_eq!((last.acknowledged, last.need), (20, Need::Changed), "host {number}");
    }
}

/// A check-in with a section that changed. It comes in the second of its number.
fn with_news(host: HostId, sequence: u64) -> Checkin {
    let mut news = quiet_after_first(host, sequence);
    news.sections.waiting = Some("[]".to_owned());
    news
}

async fn three_hosts(fixture: &Fixture) -> [HostId; 3] {
    for number in 1..=3 {
        fixture.enrol(&format!("host{number}"), host_id(number), &fresh_key()).await;
        fixture.store.check_in(checkin(host_id(number), 1, 1)).await.unwrap().unwrap();
    }
    [1, 2, 3].map(host_id)
}

/// Another transaction holds the row of one host. Others, that come in the same statements, are answered meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_is_held_delays_its_own_host_alone() {
    let fixture = Fixture::postgres();
    let hosts = three_hosts(&fixture).await;
    let (held, may_go) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut session = session_at(fixture.server());
            session.batch_execute("BEGIN; UPDATE hosts SET name = name WHERE name = 'host1'").unwrap();
            held.wait();
            may_go.wait();
            session.batch_execute("COMMIT").unwrap();
        });
        held.wait();
        let asked = async {
            for news in [quiet_after_first, with_news] {
                let ask = |host, sequence| {
                    let store = fixture.store.clone();
                    async move { store.check_in(news(host, sequence)).await.unwrap().unwrap() }
                };
                let sequence = if news(hosts[0], 2).sections.is_empty() { 2 } else { 3 };
                let mut first = Box::pin(ask(hosts[0], sequence));
                let others = async { tokio::join!(ask(hosts[1], sequence), ask(hosts[2], sequence)) };
                tokio::select! {
                    biased;
                    _ = &mut first => panic!("its row is held"),
                    (one, two) = others => assert_eq!((one.acknowledged, two.acknowledged), (sequence, sequence)),
                }
            }
        };
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(asked));
        may_go.wait();
    });
    let after = fixture.store.check_in(with_news(hosts[0], 9)).await.unwrap().unwrap();
    assert_eq!((after.acknowledged, after.need), (9, Need::Changed));
}

/// The statements of a batch fail as a whole; then each of its hosts is answered alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_row_refuses_no_other_host() {
    let fixture = Fixture::postgres();
    let hosts = three_hosts(&fixture).await;
    blocking(|| {
        let sql = "DELETE FROM reports WHERE host = (SELECT number FROM hosts WHERE name = 'host1')";
        assert_eq!(session_at(fixture.server()).execute(sql, &[]).unwrap(), 1);
    });
    for sequence in 2..6 {
        let ask = |host| fixture.store.check_in(with_news(host, sequence));
        let (one, two, three) = tokio::join!(ask(hosts[0]), ask(hosts[1]), ask(hosts[2]));
        for answer in [one, two, three] {
            assert_eq!(answer.unwrap().unwrap().acknowledged, sequence);
        }
    }
    let kept = fixture.store.host(named("host2"), at(9)).await.unwrap().unwrap();
    assert!(kept.sections.waiting.is_some());
}

/// The one character that the server's text does not hold.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_cannot_send_text_that_is_not_stored() {
    let fixture = Fixture::postgres();
    let host = fixture.box7().await;
    let mut hostile = checkin(host, 1, 1);
    hostile.sections.guests = Some(r#"[{"uid":"a\u0000b","name":"\u0000"}]"#.to_owned());
    hostile.sections.host = Some("{\"node\":\"a\0b\"}".to_owned());
    fixture.store.check_in(hostile).await.unwrap().unwrap();
    let name = hubd::store::AlertName::Guest("web".to_owned());
    assert_eq!(fixture.store.unknown_names(vec![name.clone()]).await.unwrap(), [name]);
}

/// What the program says, whether it ends well or not.
async fn said(arguments: &[&str], folder: &std::path::Path) -> (bool, String) {
    let output = hubd().args(arguments).arg("--dir").arg(folder).output().await.unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    (output.status.success(), text)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_serves_on_a_database_that_was_migrated() {
    let server = blocking(|| empty_database("served"));
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("hub");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("hub.toml"), format!("database = \"{}\"\n", url_of(&server))).unwrap();
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    let (done, text) = said(&serve, &folder).await;
    assert!(!done && text.contains("`hubd db migrate`"), "{text}");
    let (done, text) = said(&["db", "migrate"], &folder).await;
    assert!(done && text.contains("was empty and has schema 1"), "{text}");
    let (done, text) = said(&["db", "migrate"], &folder).await;
    assert!(done && text.contains("has schema 1 already"), "{text}");

    let database = Database::Postgres(Box::new(server));
    let world = World::started(folder.clone(), Options { database, ..Options::default() }).await;
    let host = world.enrol("box7").await;
    host.check_in(&host.full(1, 0), "0s").await.data(StatusCode::OK);
    let (done, text) = said(&serve, &folder).await;
    assert!(!done && text.contains("another hub"), "{text}");
    world.stop().await;

    let process = Process::start(&folder, "127.0.0.1:0").await;
    let agent = at_process(&host.client, &process);
    let answer: CheckinAnswer =
        agent.send(Method::POST, "/v1/agent/checkin?wait=0s", &host.full(2, 0)).await.data(StatusCode::OK);
    assert_eq!(answer.acknowledged, 2);
    let token = std::fs::read_to_string(folder.join("admin-token")).unwrap();
    let ca_pem = std::fs::read_to_string(folder.join("ca.pem")).unwrap();
    let client = crate::world::client(&ca_pem, &process.url, None);
    let admin = client.with("authorization", &format!("Bearer {}", token.trim()));
    let detail: HostDetail = admin.get("/v1/hosts/box7").await.data(StatusCode::OK);
    assert!(detail.sections.agent.is_some());
    // A command, while the hub serves.
    let (done, made) = said(&["operator", "add", "eve", "--role", "viewer"], &folder).await;
    assert!(done, "{made}");
    // Log entries follow it.
    let token = made.lines().next().unwrap();
    let eve = client.with("authorization", &format!("Bearer {token}"));
    assert_eq!(eve.get::<WhoAmI>("/v1/whoami").await.data(StatusCode::OK).name.as_str(), "eve");
    let (status, log) = process.stop().await;
    assert!(status.success(), "{log}");
    assert!(!folder.join("hub.db").exists());
}
