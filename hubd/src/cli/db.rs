//! The command `hubd db`: schema and rows of the database.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, bail};

use super::{DbCommand, transfer};
use crate::postgres::Migrated;
use crate::settings::{Database, Given, Settings};

pub(super) async fn run(dir: PathBuf, config: Option<PathBuf>, command: DbCommand) -> anyhow::Result<()> {
    match command {
        DbCommand::Migrate => migrate(dir, config).await,
        DbCommand::Export { to, output } => {
            transfer::blocking(move || transfer::export(&dir, config, &to, output)).await
        }
        DbCommand::Import { from, output } => {
            transfer::blocking(move || transfer::import(&dir, config, &from, output)).await
        }
    }
}

async fn migrate(dir: PathBuf, config: Option<PathBuf>) -> anyhow::Result<()> {
    let Database::Postgres(server) = Settings::database(&Given { dir, config, ..Given::default() })? else {
        bail!(
            "the settings name no `database`, so the hub keeps its rows in its folder and brings them up to date at its \
             start: there is nothing to migrate"
        );
    };
    let name = server.name();
    let migrated = tokio::task::spawn_blocking(move || server.migrate());
    let Migrated { from, to } = migrated.await.context("the migration ended in a mistake")??;
    let mut out = std::io::stdout();
    match (from, to) {
        (0, to) => writeln!(out, "{name} was empty and has schema {to}")?,
        (from, to) if from == to => writeln!(out, "{name} has schema {to} already")?,
        (from, to) => writeln!(out, "{name} has schema {to}; it had {from}")?,
    }
    Ok(())
}
