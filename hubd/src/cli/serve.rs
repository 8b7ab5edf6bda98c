//! The command `hubd serve`.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};

use crate::clock::SystemClock;
use crate::run;
use crate::settings::{Given, Settings};

pub(super) async fn run(given: Given) -> anyhow::Result<()> {
    let settings = Settings::load(given)?;
    let clock = Arc::new(SystemClock);
    let opened = run::open(&settings.dir, settings.alerts.rules.clone(), clock.as_ref()).await?;
    let mut out = std::io::stdout();
    // The path, never the token; and at once, since the start may yet fail.
    if let Some(path) = &opened.admin_token {
        writeln!(out, "the first admin's token is in {}", path.display())?;
    }
    writeln!(
        out,
        "its CA is {}, PEM in {}",
        opened.authority.ca_pin(),
        settings.dir.join("ca.pem").display()
    )?;
    let running = run::start(opened, run::Start::new(settings, clock)).await?;
    writeln!(
        out,
        "the hub listens on {} and is reached at {}",
        running.address,
        running.public_url.as_str()
    )?;
    out.flush()?;
    let mut terminate = signal(SignalKind::terminate()).context("the signal SIGTERM cannot be heard")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("the signal SIGINT cannot be heard")?;
    sd_notify::notify(&[sd_notify::NotifyState::Ready])
        .context("systemd cannot be notified that the hub is ready")?;
    let told = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        if std::io::stderr().is_terminal() {
            eprintln!("stopping");
        }
    };
    running.until(told).await?;
    Ok(())
}
