//! `holdfast host pin`: a host is known from now on as the hub shows it, since a person compared it with the box itself.

use std::path::Path;

use holdfast_protocol::operator::HostDetail;
use serde::Serialize;

use crate::args::PinArgs;
use crate::exit::CliError;
use crate::hub::Hub;
use crate::pins::{How, PinError, Pins, Shown};
use crate::screen::Screen;
use crate::{ask, clock};

/// For programs.
#[derive(Serialize)]
struct Pinned {
    host: String,
    id: String,
    epoch: String,
    fingerprint: String,
}

pub async fn run(args: PinArgs, hub: &Hub, folder: &Path, screen: &Screen) -> Result<(), CliError> {
    let detail: HostDetail = hub.get(&["v1", "hosts", &args.host]).await?;
    let shown = Shown::of(&detail)?;
    let (name, fingerprint) = (shown.name.clone(), shown.fingerprint());
    match args.fingerprint {
        Some(given) if given != fingerprint => {
            return Err(PinError::Other { name, shown: fingerprint, given }.into());
        }
        Some(_) => {}
        None => ask::compared(
            &format!(
                "The hub shows {name} with fingerprint\n  {fingerprint}\nDoes `agentd status` on {name} show the same?"
            ),
            "--fingerprint with what `agentd status` shows on the box",
        )?,
    }
    let pinned = Pinned {
        host: name.to_string(),
        id: shown.id.to_string(),
        epoch: shown.epoch.to_string(),
        fingerprint: fingerprint.to_string(),
    };
    let mut pins = Pins::load(folder)?;
    pins.note(shown, How::Compared, clock::now(), folder)?;
    pins.store(folder)?;
    screen.show(&pinned, |pinned, _| {
        format!("{} is known by fingerprint {}, epoch {}.\n", pinned.host, pinned.fingerprint, pinned.epoch)
    })
}
