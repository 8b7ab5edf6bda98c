//! A filled hub from SQLite to PostgreSQL and back.
//!
//! In: a hub of so many hosts and days, made here. Out: how long each export and import takes, how large the file is, and the
//! peak of the memory. It fails where a digest differs. The server syncs, as one of an operator does.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, anyhow, ensure};
use hubd::clock::{Clock as _, SystemClock};
use hubd::run;
use hubd::settings::AlertSettings;
use hubd::transfer::{self, Engine, ExportReader, ExportRequest, RowSink, RowSource, SchemaNumbers, Summary};
use hubd::{postgres, sqlite};

use crate::figures::{self, Figure};
use crate::filled_hub::Filling;
use crate::flapping::memory_mib;
use crate::postgres_server::fresh_database_with;
use crate::upserts::SYNCED;

#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Arguments {
    #[arg(long, default_value_t = 1_000)]
    hosts: u32,
    #[arg(long, default_value_t = 5)]
    guests: u32,
    #[arg(long, default_value_t = 30)]
    days: u32,
}

pub async fn measure(arguments: Arguments) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let opened = run::open(folder.path(), AlertSettings::default().rules, &SystemClock).await?;
    let (store, writer) = (opened.store, opened.writer);
    drop(store);
    writer.join().map_err(|_| anyhow!("the writer panicked"))?;
    tokio::task::spawn_blocking(move || moved(arguments, folder.path())).await?
}

fn known() -> SchemaNumbers {
    SchemaNumbers { sqlite: sqlite::schema_number(), postgres: postgres::schema_number() }
}

fn export(source: &mut dyn RowSource, engine: Engine, to: &Path) -> anyhow::Result<(Summary, f64)> {
    let began = Instant::now();
    let request = ExportRequest {
        engine,
        schema: known(),
        taken_at: SystemClock.now(),
        ca: "leaf/sha256:bench".to_owned(),
        files: Vec::new(),
    };
    let out = BufWriter::new(File::create(to)?);
    let (summary, out) = transfer::export(source, request, out, &mut |_| {})?;
    out.into_inner()?.sync_all()?;
    Ok((summary, began.elapsed().as_secs_f64()))
}

fn import(sink: Box<dyn RowSink>, from: &Path, began: Instant) -> anyhow::Result<(Summary, f64)> {
    let mut reader = ExportReader::open(File::open(from)?)?;
    let summary = transfer::import(&mut reader, sink, known(), &mut |_| {})?;
    Ok((summary, began.elapsed().as_secs_f64()))
}

fn moved(arguments: Arguments, folder: &Path) -> anyhow::Result<()> {
    let Arguments { hosts, guests, days } = arguments;
    eprintln!("a hub of {hosts} hosts and {days} days is made …");
    let database = folder.join("hub.db");
    Filling { hosts, guests_per_host: guests, days }.fill(&database)?;
    let server = fresh_database_with(SYNCED);
    let (first, second, back) = (folder.join("first"), folder.join("second"), folder.join("back.db"));

    eprintln!("SQLite → file …");
    let (exported, export_sqlite_s) = export(&mut sqlite::snapshot(&database)?, Engine::Sqlite, &first)?;
    eprintln!("file → PostgreSQL …");
    let began = Instant::now();
    let (imported, import_postgres_s) = import(Box::new(postgres::empty_database(&server)?), &first, began)?;
    ensure!(imported == exported, "the digests differ in PostgreSQL");
    eprintln!("PostgreSQL → file …");
    let (again, export_postgres_s) = export(&mut postgres::snapshot(&server)?, Engine::Postgres, &second)?;
    ensure!(again == exported, "the digests differ in the export of PostgreSQL");
    eprintln!("file → SQLite …");
    let began = Instant::now();
    let (returned, import_sqlite_s) = import(Box::new(sqlite::new_file(&back)?), &second, began)?;
    ensure!(returned == exported, "the digests differ back in SQLite");

    let size_mib = |path: &Path| -> anyhow::Result<f64> {
        Ok(std::fs::metadata(path).context("a file")?.len() as f64 / f64::from(1 << 20))
    };
    let how = format!(
        "{hosts} hosts with {guests} guests each and {days} days of use, {} rows, hub.db {:.0} MiB, the file {:.0} MiB; all \
         digests equal; the import reads every row back before its commit; server and hub share the machine",
        exported.rows,
        size_mib(&database)?,
        size_mib(&first)?
    );
    let figure = |name: &str, ours: f64, unit| Figure {
        name: name.to_owned(),
        ours,
        baseline: None,
        ratio: None,
        unit,
        pairs: 1,
        note: how.clone(),
    };
    figures::print(&[
        figure("export of a filled hub from SQLite", export_sqlite_s, "s"),
        figure("import of a filled hub into PostgreSQL", import_postgres_s, "s"),
        figure("export of a filled hub from PostgreSQL", export_postgres_s, "s"),
        figure("import of a filled hub into SQLite", import_sqlite_s, "s"),
        figure("memory of the program that moves a filled hub", memory_mib("VmHWM:")?, "MiB"),
    ])
}
