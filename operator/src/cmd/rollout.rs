//! `holdfast rollout`: a release for many hosts, wave by wave.

use std::time::Duration;

use holdfast_protocol::release::rollout::{
    RolloutRequest, RolloutState, RolloutSubject, RolloutTimes, RolloutView,
};
use serde_json::json;
use tokio::time::sleep;

use crate::args::{PlanArgs, RolloutCommand};
use crate::error::CliError;
use crate::hub::{Hub, WHOLE};
use crate::release_errors::ReleaseStoreError;
use crate::screen::Screen;
use crate::{clock, prompt, render};

/// The hub evaluates a rollout as often.
const POLL: Duration = Duration::from_secs(5);

pub async fn run(command: RolloutCommand, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    match command {
        RolloutCommand::Plan(plan) => show(&hub.post(&["v1", "rollouts"], &request(plan)?).await?, screen),
        RolloutCommand::Start { number, assume_yes } => {
            let view = get(number, hub).await?;
            let hosts = view.waves.first().map_or(0, |wave| wave.hosts.len());
            let version = view.version;
            let question = match view.subject {
                RolloutSubject::Agent => {
                    format!("Offer release {version} to the {hosts} hosts of the first wave?")
                }
                RolloutSubject::GuestAgent => format!(
                    "Ask for the guest agent of release {version} in the documents of the {hosts} hosts of the first wave?"
                ),
                RolloutSubject::Golden => {
                    format!(
                        "Bring the golden image of release {version} to the {hosts} hosts of the first wave?"
                    )
                }
            };
            prompt::confirm(&question, assume_yes)?;
            act(number, "start", hub, screen).await
        }
        RolloutCommand::Pause { number, take_back: true } => act(number, "take-back", hub, screen).await,
        RolloutCommand::Pause { number, take_back: false } => act(number, "pause", hub, screen).await,
        RolloutCommand::Resume { number, assume_yes } => {
            if let Some(reason) = get(number, hub).await?.reason {
                let question = format!("Held: {reason}. Go on, and accept the failures so far?");
                prompt::confirm(&question, assume_yes)?;
            }
            act(number, "resume", hub, screen).await
        }
        RolloutCommand::Abort { number, assume_yes } => {
            let question = format!(
                "End rollout {number} for good? Hosts that confirmed the release keep it; trials of it end."
            );
            prompt::confirm(&question, assume_yes)?;
            act(number, "abort", hub, screen).await
        }
        RolloutCommand::Watch { number } => watch(number, hub, screen).await,
        RolloutCommand::Show { number } => show(&get(number, hub).await?, screen),
        RolloutCommand::List => {
            let all: Vec<RolloutView> = hub.list(&["v1", "rollouts"], &[], WHOLE).await?;
            screen.show(&all, |all, style| render::rollout::rollouts(all, clock::now(), style))
        }
    }
}

fn request(plan: PlanArgs) -> Result<RolloutRequest, ReleaseStoreError> {
    let PlanArgs { version, subject, waves, windows, not, per_hour, on_failure } = plan;
    let times = RolloutTimes { windows: windows.try_into()?, not: not.try_into()?, per_hour };
    let waves = waves.into_iter().map(|wave| wave.0).collect();
    Ok(RolloutRequest { version, subject: subject.into(), waves, times, on_failure })
}

async fn get(number: u32, hub: &Hub) -> Result<RolloutView, CliError> {
    Ok(hub.get(&["v1", "rollouts", &number.to_string()]).await?)
}

async fn act(number: u32, action: &str, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    let view = hub.post(&["v1", "rollouts", &number.to_string(), action], &json!({})).await?;
    show(&view, screen)
}

fn show(view: &RolloutView, screen: &Screen) -> Result<(), CliError> {
    screen.show(view, |view, style| render::rollout::rollout(view, clock::now(), style))
}

/// Follows until the rollout stops; one that is held is an error, so that scripts see it.
async fn watch(number: u32, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    let mut line = String::new();
    loop {
        let view = get(number, hub).await?;
        let now = render::rollout::line(&view);
        if now != line {
            screen.note(&now);
            line = now;
        }
        match view.state {
            RolloutState::Running => sleep(POLL).await,
            RolloutState::Planned | RolloutState::Paused | RolloutState::Aborted | RolloutState::Finished => {
                return show(&view, screen);
            }
            RolloutState::RollingBack => {
                show(&view, screen)?;
                let reason = view.reason.unwrap_or_default();
                return Err(ReleaseStoreError::RolloutBack { number, reason }.into());
            }
            RolloutState::Held => {
                show(&view, screen)?;
                let reason = view.reason.unwrap_or_default();
                return Err(ReleaseStoreError::RolloutHeld { number, reason }.into());
            }
        }
    }
}
