//! `holdfast top`: a live view of the fleet.
//!
//! ```text
//! hub ─► gather ─► picture ─► draw
//! keys ────────────► view ────┘
//! ```
//! Gathering fails and is tried again; the last picture stays, with its age. Nothing is changed by any key.

mod draw;
mod gather;
mod keys;
mod lists;
mod picture;
mod text;

use std::io::IsTerminal as _;
use std::time::Duration;

use holdfast_protocol::json::chain;
use ratatui::DefaultTerminal;
use tokio::time::{Instant, sleep_until};

use self::keys::{Key, Keys};
use self::picture::{Picture, View};
use crate::args::{Output, TopArgs};
use crate::clock;
use crate::error::CliError;
use crate::hub::Hub;
use crate::screen::Screen;

pub async fn run(args: TopArgs, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    if args.once || screen.output() == Output::Json || !std::io::stdout().is_terminal() {
        let picture = gather::picture(hub).await?;
        return screen.show(&picture, text::page);
    }
    // The first look fails in plain text, before the screen is taken over.
    let picture = gather::picture(hub).await?;
    let mut terminal = ratatui::try_init().map_err(CliError::Print)?;
    let ended = live(&mut terminal, hub, picture, Duration::from_secs(args.every.into())).await;
    ratatui::restore();
    ended
}

async fn live(
    terminal: &mut DefaultTerminal,
    hub: &Hub,
    mut picture: Picture,
    every: Duration,
) -> Result<(), CliError> {
    let mut keys = Keys::listen();
    let mut view = View::default();
    let mut next = Instant::now() + every;
    loop {
        terminal.draw(|frame| draw::draw(frame, &picture, &view, clock::now())).map_err(CliError::Print)?;
        tokio::select! {
            key = keys.next() => match key {
                Some(Key::Quit) | None => return Ok(()),
                Some(Key::Refresh) => next = Instant::now(),
                Some(Key::Next) => view.next(),
                Some(Key::Down) => view.down(),
                Some(Key::Up) => view.up(),
                Some(Key::Redraw) => {}
            },
            () = sleep_until(next) => {
                match gather::picture(hub).await {
                    Ok(newer) => (picture, view.problem) = (newer, None),
                    Err(error) => view.problem = Some(chain(&error)),
                }
                next = Instant::now() + every;
            }
        }
    }
}

#[cfg(test)]
mod tests;
