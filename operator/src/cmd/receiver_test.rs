//! `holdfast alert test`: a test of a receiver, followed to its answer.

use std::time::Duration;

use holdfast_protocol::alert::{DeliveryOutcome, DeliveryView, ReceiverView, TestQueued};
use holdfast_protocol::id::ReceiverName;
use serde_json::json;

use crate::cmd_errors::ReceiverTestError;
use crate::error::CliError;
use crate::hub::{Hub, WHOLE};
use crate::render;
use crate::screen::Screen;

/// How often the deliveries are read.
const PAUSE: Duration = Duration::from_secs(1);

/// Among so many of the newest deliveries those of the test are searched.
const NEWEST: usize = 200;

pub async fn run(receiver: ReceiverName, timeout_s: u64, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    let queued: TestQueued = hub.post(&["v1", "receivers", receiver.as_str(), "test"], &json!({})).await?;
    screen.note(&format!("A test of {receiver} is queued: an alert, and its end."));
    let deadline = tokio::time::Instant::now() + Duration::from_secs(timeout_s);
    loop {
        let ended = deliveries(hub, &queued).await?;
        if ended.len() >= queued.notices.len() {
            let failed = ended.iter().find(|one| one.outcome != DeliveryOutcome::Delivered);
            let problem =
                failed.map(|one| one.remark.clone().unwrap_or_else(|| "no reason is given".to_owned()));
            screen.show(&ended, |ended, style| render::receiver::deliveries(ended, style))?;
            return match problem {
                None => Ok(()),
                Some(problem) => Err(ReceiverTestError::Refused { receiver, problem }.into()),
            };
        }
        if tokio::time::Instant::now() + PAUSE > deadline {
            let failure = failure(hub, &receiver).await?;
            return Err(ReceiverTestError::TimedOut { receiver, seconds: timeout_s, failure }.into());
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The deliveries of the test that ended, the oldest first.
async fn deliveries(hub: &Hub, queued: &TestQueued) -> Result<Vec<DeliveryView>, CliError> {
    let newest: Vec<DeliveryView> = hub.list(&["v1", "deliveries"], &[], NEWEST).await?;
    let mut ended: Vec<DeliveryView> =
        newest.into_iter().filter(|one| queued.notices.contains(&one.notice)).collect();
    ended.sort_by_key(|one| one.number);
    Ok(ended)
}

/// Why the last try failed, as far as the hub knows.
async fn failure(hub: &Hub, name: &ReceiverName) -> Result<String, CliError> {
    let receivers: Vec<ReceiverView> = hub.list(&["v1", "receivers"], &[], WHOLE).await?;
    let failure = receivers.into_iter().find(|one| one.name == *name).and_then(|one| one.failure);
    Ok(failure.unwrap_or_else(|| "it was not tried yet".to_owned()))
}
