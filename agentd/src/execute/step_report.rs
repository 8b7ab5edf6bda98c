//! The step that waits for a scratch guest's report.
//!
//! In: its hello and its report, as the test listener recorded them; the canaries that its guest reported when the
//! backup was taken. Out: one [`Finding::Tested`]. A controller that never says hello leaves only what is seen from
//! outside: that the guest boots. One that says hello and never reports leaves a backup whose stacks do not come up.

use std::time::Duration;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::local::restore_test::TestVerdict;
use holdfast_protocol::local::window::Canary;

use super::context::{Context, Started, StepOutput};
use super::identity::own_copy;
use super::step_power;
use super::step_test::spec;
use super::trouble::StepError;
use crate::model::limits;
use crate::operation::log::Finding;
use crate::operation::restore_test::verdict::judge;

/// How often it is looked whether the guest still runs.
const LOOK: Duration = Duration::from_secs(5);

pub(super) async fn act(context: &Context<'_>) -> Result<Started, StepError> {
    let (store, clock) = (&context.ports.store, &context.ports.clock);
    let mut changes = store.changes();
    let begin = clock.monotonic();
    let [hello_by, report_by] = [limits::TEST_HELLO_S, limits::TEST_REPORT_S - 60]
        .map(|seconds| begin + Duration::from_secs(seconds));
    context.say("waiting for the controller's report");
    loop {
        changes.mark_unchanged();
        let said = store.test_speech(context.progress.id).await?;
        if let Some(report) = said.report {
            return Ok(tested(judge(&report, &reported(context).await?)));
        }
        match said.hello {
            Some(version) if clock.monotonic() >= report_by => {
                let why = format!(
                    "its controller (guestd {version}) came up and did not report within {} minutes: look what its stacks \
                     wait for",
                    (limits::TEST_REPORT_S - 60) / 60
                );
                return Ok(tested((TestVerdict::Failed, why)));
            }
            None if clock.monotonic() >= hello_by => {
                let why = format!(
                    "it was restored and stayed up for {} s, and its controller did not speak: is guestd in this guest?",
                    limits::TEST_HELLO_S
                );
                return Ok(tested((TestVerdict::BootedOnly, why)));
            }
            _ => {}
        }
        tokio::select! {
            biased;
            woken = changes.changed() => woken.map_err(|_| StepError::fault("the store is closed"))?,
            () = clock.sleep(LOOK) => still_runs(context).await?,
        }
    }
}

fn tested((verdict, why): (TestVerdict, String)) -> Started {
    let note = Some(format!("{}: {why}", verdict.as_str()));
    Started::Learnt(StepOutput { facts: vec![Finding::Tested { verdict, why }], note })
}

/// The canaries as they were when the backup was taken; none for a backup of a running guest.
async fn reported(context: &Context<'_>) -> Result<Vec<Canary>, StepError> {
    let window = context.ports.store.window(spec(context)?.backup.taken_by).await?;
    Ok(window.and_then(|window| Some(window.quiesced_stacks()?.canaries.clone())).unwrap_or_default())
}

async fn still_runs(context: &Context<'_>) -> Result<(), StepError> {
    own_copy(context).await?;
    if step_power::runs(context).await? {
        return Ok(());
    }
    let text =
        "the restored guest stopped before its controller reported: look at its log, then try another backup";
    Err(StepError::give_up(ErrorCode::Broken, text))
}
