//! The slots as a person or a program reads them.

use agent_slots::state::{Content, Returning, Slot, SlotsState};

use crate::GateError;
use crate::settings::Settings;
use crate::store;

/// The form of the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    Text,
    Json,
}

/// Prints the status.
pub fn run(settings: &Settings, output: Output) -> Result<(), GateError> {
    let state = store::look(&settings.paths.slots)?.unwrap_or_default();
    match output {
        Output::Json => {
            let text = serde_json::to_string_pretty(&state).map_err(store::StoreError::Form)?;
            println!("{text}");
        }
        Output::Text => print!("{}", text(settings, &state)),
    }
    Ok(())
}

fn text(settings: &Settings, state: &SlotsState) -> String {
    let mut lines = vec![format!("package    {}", settings.packaged)];
    lines.push(match state.floor {
        Some(floor) => format!("floor      {floor}; nothing older is started"),
        None => "floor      none: no release was confirmed here yet".to_owned(),
    });
    for slot in Slot::ALL {
        let role = match (&state.trial, state.confirmed) {
            (Some(trial), _) if trial.slot == slot => {
                let ended = agent_slots::state::REBOOTS_MAX.saturating_sub(trial.reboots_left);
                let with_machine = match ended {
                    0 => String::new(),
                    many => format!("; {many} that ended with the machine are not counted"),
                };
                format!("on trial, {} more starts{with_machine}", trial.starts_left)
            }
            (_, Some(confirmed)) if confirmed == slot => "confirmed".to_owned(),
            (_, _) => String::new(),
        };
        lines.push(match state.content(slot) {
            Content::Empty => format!("slot {}     empty", slot.as_str()),
            Content::Filling(build) => {
                format!("slot {}     {} is being copied", slot.as_str(), build.version)
            }
            Content::Holds(build) => format!(
                "slot {}     {}  {role}  sha256 {}",
                slot.as_str(),
                build.version,
                build.sha256.as_str()
            ),
        });
    }
    if state.returning != Returning::No {
        lines.push("returning  the build that was put back is being watched".to_owned());
    }
    for failure in state.failures.iter().rev() {
        let at = failure.at.map_or_else(|| "at an unknown time".to_owned(), |at| at.to_string());
        lines.push(format!("failed     {}  {at}  {}", failure.build.version, failure.reason));
        if let Some(back) = &failure.way_back {
            lines.push(format!("           and the build that was put back: {}", back));
        }
    }
    if let Some(refused) = &state.refused {
        lines.push(format!("refused    {}: {}", refused.code, refused.why));
    }
    lines.join("\n") + "\n"
}
