//! The store of a hub's folder, for commands of a person.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use crate::clock::{Clock as _, SystemClock};
use crate::domain::alerting::AlertContext;
use crate::postgres::{Postgres, Users};
use crate::run::database;
use crate::settings::{Database, Given, Settings};
use crate::sqlite::Sqlite;
use crate::store::{SharedStore, WriterThread};

pub(super) async fn open(
    folder: &Path,
    config: Option<PathBuf>,
) -> anyhow::Result<(SharedStore, WriterThread)> {
    let alerts = AlertContext::without_channels(SystemClock.now());
    let given = Given { dir: folder.to_owned(), config, ..Given::default() };
    Ok(match Settings::database(&given)? {
        Database::Folder => {
            let path = database(folder);
            if !path.exists() {
                bail!(
                    "{} is not a hub's folder: give it with --dir; `hubd serve` makes one",
                    folder.display()
                );
            }
            Sqlite::open(&path, alerts)?
        }
        Database::Postgres(server) => {
            let open = move || Postgres::open(&server, alerts, Users::Several);
            tokio::task::spawn_blocking(open).await.context("the database's opening ended in a mistake")??
        }
    })
}

/// After the store was dropped.
pub(super) async fn close(writer: WriterThread) -> anyhow::Result<()> {
    match tokio::task::spawn_blocking(move || writer.join()).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => bail!("the database's writer ended in a mistake"),
    }
}
