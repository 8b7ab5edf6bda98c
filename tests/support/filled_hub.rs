//! A database with a month of records of many hosts.
//!
//! It is for tests and figures of a hub's move. In: the file of a hub that does not run, and how much. Out: rows in the
//! tables that grow, with use as a hub of that age has it: two hours of minutes, seven days of steps, and a row for each
//! hour. It is written by SQL, since a month of samples by the hub's own way takes hours. Values are the same in each run.
//! Deliberately absent: what alerts would be.

use std::collections::BTreeMap;
use std::path::Path;

use holdfast_protocol::id::GuestUid;
use holdfast_protocol::usage::{Readings, UsageMetric, UsageSample};
use hubd::domain::usage::UsageRow;
use jiff::Timestamp;
use rusqlite::{Connection, Transaction, params};
use uuid::Uuid;

/// How much.
#[derive(Clone, Copy, Debug)]
pub struct Filling {
    pub hosts: u32,
    pub guests_per_host: u32,
    pub days: u32,
}

const NOW_S: i64 = 1_790_000_000;

/// Documents of each host, and jobs.
const VERSIONS: u32 = 10;

/// Events of each host and day.
const EVENTS_A_DAY: u32 = 6;

/// Texts that one engine or the other might change on the way.
const ODD_TEXTS: [&str; 6] =
    ["", " ", "\u{fffd}", "a\"\\\u{0001}\n", "\u{1f980} naïve", "{\"b64\":\"AA==\"}"];

impl Filling {
    /// Fills the file in one transaction.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn fill(self, database: &Path) -> rusqlite::Result<()> {
        let mut connection = Connection::open(database)?;
        connection.execute_batch("PRAGMA foreign_keys = ON")?;
        let tx = connection.transaction()?;
        for host in 1..=self.hosts {
            self.host(&tx, host)?;
        }
        shared(&tx)?;
        tx.commit()
    }

    fn host(self, tx: &Transaction<'_>, number: u32) -> rusqlite::Result<()> {
        let (now, id) = (NOW_S * 1000, id(1, number));
        tx.prepare_cached(
            "INSERT INTO hosts (number, id, name, enrolled_at, status, issued_generation, used_generation, certificate_ends_at,
                 liveness, seen_at, run_started_at, sequence, poll_interval_s, wanted, held, agent_version, guests)
             VALUES (?1, ?2, ?3, ?4, 'active', 1, 1, ?4, 'online', ?4, ?4, ?1, 30, ?5, ?5, '0.1.0', ?6)",
        )?
        .execute(params![
            number,
            id,
            format!("host{number}"),
            now,
            VERSIONS,
            self.guests_per_host
        ])?;
        let report =
            format!("[{}]", vec![r#"{"name":"web","status":"managed","run":"running"}"#; 40].join(","));
        tx.prepare_cached("INSERT INTO reports (host, guests) VALUES (?1, ?2)")?
            .execute(params![number, report])?;
        tx.prepare_cached("INSERT INTO certificates VALUES (?1, 1, ?2, ?3, ?4, ?4)")?.execute(params![
            number,
            [7_u8; 32],
            "-----BEGIN CERTIFICATE-----\n".repeat(30),
            now
        ])?;
        for version in 1..=VERSIONS {
            tx.prepare_cached(
                "INSERT INTO desired (host, generation, content, author, reason, put_at, document)
                               VALUES (?1, ?2, ?3, 'eve', ?4, ?5, ?6)",
            )?
            .execute(params![
                number,
                version,
                format!("{version:064}"),
                odd(version),
                now,
                report
            ])?;
            tx.prepare_cached(
                "INSERT INTO jobs (host, id, blob, hash, operator, submitted_at, queue_state, correlation)
                 VALUES (?1, ?2, 'signed', ?3, 'eve', ?4, 'answered', NULL)",
            )?
            .execute(params![
                number,
                self::id(2, number * VERSIONS + version),
                [version as u8; 32],
                now
            ])?;
            let number = i64::from(number);
            tx.prepare_cached(
                "INSERT INTO audit_heads (host, number, chain, at, ended_at) VALUES (?1, ?2, ?3, ?4, NULL)",
            )?
            .execute(params![number, version, format!("{version:064}"), now])?;
        }
        for event in 0..self.days * EVENTS_A_DAY {
            tx.prepare_cached(
                "INSERT INTO events (at, kind, host, actor, correlation, message)
                               VALUES (?1, 'desired_put', ?2, NULL, ?2, ?3)",
            )?
            .execute(params![now - i64::from(event) * 14_400_000, id, odd(event)])?;
        }
        self.usage(tx, number)
    }

    fn usage(self, tx: &Transaction<'_>, host: u32) -> rusqlite::Result<()> {
        let days = i64::from(self.days);
        for (span, step, count) in [(0, 60, 120), (1, 300, days.min(7) * 288), (2, 3_600, days * 24)] {
            for place in 0..count {
                let at = (NOW_S / step - place) * step;
                let row = self.sample(at, u64::from(host) + place.unsigned_abs());
                let bytes = UsageRow::of(&row).to_bytes().unwrap();
                tx.prepare_cached("INSERT INTO usage (host, span, at, row) VALUES (?1, ?2, ?3, ?4)")?
                    .execute(params![host, span, at, bytes])?;
            }
        }
        Ok(())
    }

    fn sample(self, at: i64, seed: u64) -> UsageSample {
        let readings = |seed: u64, has: fn(UsageMetric) -> bool| -> Readings {
            let metrics = UsageMetric::ALL.iter().filter(|metric| has(**metric));
            metrics
                .zip(1_u64..)
                .map(|(metric, place)| (*metric, (seed * place * 7_919) % 3_000_000_000))
                .collect()
        };
        let guests = (1..=self.guests_per_host)
            .map(|guest| {
                let uid = GuestUid::new(Uuid::from_u128(u128::from(guest)));
                (uid, readings(seed + u64::from(guest), UsageMetric::is_of_guests))
            })
            .collect::<BTreeMap<_, _>>();
        let at = Timestamp::from_second(at).unwrap();
        UsageSample { at, host: readings(seed, UsageMetric::is_of_hosts), guests }
    }
}

/// Rows that are no host's own, at the ends of what columns hold.
fn shared(tx: &Transaction<'_>) -> rusqlite::Result<()> {
    for (number, text) in (1_u32..).zip(ODD_TEXTS) {
        tx.execute(
            "INSERT INTO idempotency (operator, key, request, answer, at) VALUES (?1, ?2, ?3, ?1, ?4)",
            params![text, format!("key{number}"), [0_u8; 32], i64::MIN + i64::from(number)],
        )?;
        tx.execute(
            "INSERT INTO alert_deliveries (at, receiver, key, made_at, tries, outcome, remark, title)
             VALUES (?1, ?2, ?2, 0, 1, 'delivered', NULL, ?3)",
            params![i64::MAX, text, odd(number)],
        )?;
        tx.execute(
            "INSERT INTO alert_log (scope, at, incident, body) VALUES (?1, ?2, NULL, ?1)",
            params![text, i64::MAX],
        )?;
        // Two rows that differ in nothing: the table has no key.
        for _ in 0..2 {
            tx.execute("INSERT INTO audit_breaks (host, at, kept_number, kept_chain, found_number, found_chain, ended_at)
                        VALUES (1, 1, 1, ?1, 2, ?1, NULL)", [text])?;
        }
    }
    // The newest numbers are of rows that are gone.
    for table in ["events", "alert_log"] {
        tx.execute(&format!("DELETE FROM {table} WHERE number = (SELECT max(number) FROM {table})"), [])?;
    }
    // One character that PostgreSQL's text does not hold.
    tx.execute("UPDATE reports SET trust = ?1 WHERE host = 1", ["a\0b"])?;
    Ok(())
}

fn odd(number: u32) -> &'static str {
    ODD_TEXTS[number as usize % ODD_TEXTS.len()]
}

/// The bytes of an id that is not given twice.
fn id(kind: u64, number: u32) -> [u8; 16] {
    *Uuid::from_u64_pair(kind, number.into()).as_bytes()
}
