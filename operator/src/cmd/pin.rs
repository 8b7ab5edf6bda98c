//! `holdfast host pin`: pins a host after a comparison by the operator.

use std::path::Path;

use holdfast_protocol::operator::HostDetail;
use serde::Serialize;

use crate::args::PinArgs;
use crate::error::CliError;
use crate::hub::Hub;
use crate::pins::{PinError, PinOrigin, Pins, ShownHost};
use crate::screen::Screen;
use crate::{clock, prompt};

#[derive(Serialize)]
struct PinOutcome {
    host: String,
    id: String,
    epoch: String,
    fingerprint: String,
}

pub async fn run(args: PinArgs, hub: &Hub, folder: &Path, screen: &Screen) -> Result<(), CliError> {
    let detail: HostDetail = hub.get(&["v1", "hosts", &args.host]).await?;
    let shown = ShownHost::of(&detail)?;
    let (name, fingerprint) = (shown.name.clone(), shown.fingerprint());
    match args.fingerprint {
        Some(given) if given != fingerprint => {
            return Err(PinError::OtherFingerprint { name, shown: fingerprint, given }.into());
        }
        Some(_) => {}
        None => prompt::confirm_comparison(
            &format!(
                "The hub shows {name} with fingerprint\n  {fingerprint}\nDoes `agentd status` on {name} show the same?"
            ),
            "--fingerprint with what `agentd status` shows on the box",
        )?,
    }
    let pinned = PinOutcome {
        host: name.to_string(),
        id: shown.id.to_string(),
        epoch: shown.epoch.to_string(),
        fingerprint: fingerprint.to_string(),
    };
    let mut pins = Pins::load(folder)?;
    pins.note(shown, PinOrigin::Compared, clock::now(), folder)?;
    pins.store(folder)?;
    screen.show(&pinned, |pinned, _| {
        format!("{} is known by fingerprint {}, epoch {}.\n", pinned.host, pinned.fingerprint, pinned.epoch)
    })
}
