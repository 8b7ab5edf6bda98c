//! The command `hubd serve`.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::clock::SystemClock;
use crate::run;
use crate::settings::{AlertSettings, Given, Settings};
use crate::task::delivery::ReceiverSet;
use crate::task::reload::{AlertChannels, ReloadSource};

pub(super) async fn run(given: Given) -> anyhow::Result<()> {
    let settings = Settings::load(given.clone())?;
    let clock = Arc::new(SystemClock);
    let opened =
        run::open_on(&settings.dir, &settings.database, settings.alerts.rules.clone(), clock.as_ref())
            .await?;
    let mut out = std::io::stdout();
    // The path, never the token; and at once, since the start may yet fail.
    if let Some(path) = &opened.admin_token {
        writeln!(out, "the first admin's token is in {}", path.display())?;
    }
    writeln!(
        out,
        "its CA is {}, PEM in {}",
        opened.authority.cas().serving().pin(),
        settings.dir.join("ca.pem").display()
    )?;
    // Before the start is announced: a signal that comes earlier would kill the program.
    let mut hangup = signal(SignalKind::hangup()).context("the signal SIGHUP cannot be heard")?;
    let mut terminate = signal(SignalKind::terminate()).context("the signal SIGTERM cannot be heard")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("the signal SIGINT cannot be heard")?;
    let (reload, source) = reload_source(given);
    let running = run::start(opened, run::Start::new(settings, Some(source), clock)).await?;
    writeln!(
        out,
        "the hub listens on {} and is reached at {}",
        running.address,
        running.public_url.as_str()
    )?;
    out.flush()?;
    sd_notify::notify(&[sd_notify::NotifyState::Ready])
        .context("systemd cannot be notified that the hub is ready")?;
    let told = async {
        loop {
            tokio::select! {
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
                // One request that waits is enough for all that come meanwhile.
                _ = hangup.recv() => drop(reload.try_send(())),
            }
        }
        if std::io::stderr().is_terminal() {
            eprintln!("stopping");
        }
    };
    running.until(told).await?;
    Ok(())
}

/// Reads rules and receivers again, by the same flags and files as at the start.
fn reload_source(given: Given) -> (mpsc::Sender<()>, ReloadSource) {
    let (reload, requests) = mpsc::channel(1);
    let read = move || {
        let AlertSettings { rules, receivers, reach, files, .. } = Settings::load(given.clone())?.alerts;
        Ok(AlertChannels { rules, set: ReceiverSet::new(receivers, reach).with_files(files) })
    };
    (reload, ReloadSource { read: Box::new(read), requests })
}
