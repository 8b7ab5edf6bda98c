//! The published host snapshot.
//!
//! In: what was observed, planned, and could not be read. Out: the view. Deliberately absent: who reads it.

use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::json::chain;
use holdfast_protocol::report::WaitingForSignature;
use jiff::{SignedDuration, Timestamp};

use super::{CycleError, Reconcile, State};
use crate::gate::growth::Budget;
use crate::model::clock_trust::Timekeeper;
use crate::model::observed::Sight;
use crate::model::view::HostSnapshot;
use crate::plan::{
    Inputs, conditions, fields, fill_level, missing_goldens, old_goldens, plan_with, report, waiting_goldens,
};
use crate::port::store::Refusal;

/// How long a host may be unobserved before its last observation is called unknown.
fn unobserved_max(interval: Duration) -> SignedDuration {
    SignedDuration::try_from(interval.saturating_mul(2)).unwrap_or(SignedDuration::MAX)
}

/// Everything that waits for an operator's signature.
fn waiting(plan: &crate::plan::Plan) -> Vec<WaitingForSignature> {
    let held = plan.held.iter().map(crate::gate::pending_approval::PendingApproval::report);
    held.chain(plan.braked.iter().map(crate::gate::change_limit::BulkHeld::report)).collect()
}

impl Reconcile {
    /// What is wrong with the agent's own records.
    fn records_problems(&self) -> Vec<ErrorBody> {
        let store = &self.ports.store;
        store.refusal().iter().map(Refusal::problem).chain(store.large()).collect()
    }

    pub(super) fn report(
        &self,
        inputs: &Inputs<'_>,
        plan: &crate::plan::Plan,
        (clock, interval): (&Timekeeper, Duration),
    ) {
        let interval_s = u32::try_from(interval.as_secs()).unwrap_or(u32::MAX);
        let mut problems = self.records_problems();
        problems.extend(clock.problem());
        problems.extend(report::unknown_marks(plan));
        problems.extend(fill_level::problems(inputs.observed));
        problems.extend(old_goldens(inputs));
        problems.extend(self.ports.golden_trouble.borrow().clone());
        if let Sight::Unproved(why) = &inputs.observed.sight {
            let text = format!(
                "our right to see every guest of the pool is not proved ({why}): run `agentd doctor`"
            );
            problems.push(ErrorBody::new(ErrorCode::Unavailable, text));
        }
        let facts = conditions::facts::gather((inputs, plan), problems.clone(), clock.behind());
        let fields = fields::all(inputs);
        let growth = &inputs.records.growth;
        self.view.send_replace(Arc::new(HostSnapshot {
            seen_at: Some(inputs.observed.at),
            unobserved_since: None,
            host: report::host(&self.node, inputs, interval_s),
            times: inputs.observed.times.clone(),
            guests: report::guests(inputs, plan, (&fields, interval_s)),
            mounts: report::mounts(inputs),
            fields,
            waiting: waiting(plan).into_iter().chain(waiting_goldens(inputs, &plan.held)).collect(),
            problems,
            lanes: report::lanes(inputs.records),
            anchor: clock.anchor(),
            growth: Budget::new(&growth.limits, &growth.ledger, inputs.time.at).used(),
            missing_goldens: missing_goldens(inputs),
            facts,
            blocked: None,
        }));
    }

    /// Only records changed, such as a hello: the last observation is reported again, and no operation is opened from
    /// it.
    pub(super) async fn report_again(&self, state: &mut State) {
        let State { picture: Some(picture), timekeeper, judged, .. } = state else { return };
        let now = self.ports.clock.now();
        let generation = picture.desired.generation();
        let records = match self.ports.store.records(generation, now).await {
            Ok(records) => records,
            Err(error) => return tracing::warn!(error = chain(&error), "the records cannot be read"),
        };
        let release = match self.release(picture.desired.numbered(), now).await {
            Ok(release) => release,
            Err(error) => return tracing::warn!(error = chain(&error), "the jobs cannot be read"),
        };
        let inputs = Inputs {
            generation,
            content: picture.desired.numbered().map(|numbered| numbered.content),
            desired: picture.desired.guests(),
            policies: picture.desired.policies(),
            manifest: picture.desired.manifest(),
            levels: picture.desired.levels(),
            overcommit: picture.desired.overcommit(),
            observed: &picture.observed,
            records: &records,
            policy: &self.policy,
            release: release.as_ref(),
            now,
            time: timekeeper.belief(self.ports.clock.monotonic(), now),
        };
        let interval = self.interval.under(picture.desired.document.as_ref());
        self.report(&inputs, &plan_with(&inputs, judged), (timekeeper, interval));
    }

    pub(super) fn report_trouble(&self, error: &CycleError, began: Timestamp, state: &State) {
        let now = self.ports.clock.now();
        let document = state.picture.as_ref().and_then(|picture| picture.desired.document.as_ref());
        let mut problems = self.records_problems();
        problems.push(ErrorBody::new(error.code(), chain(error)));
        self.view.send_modify(|view| {
            // What was observed before stays unchanged for two intervals; after that its age is reported.
            let since = view.seen_at.unwrap_or(began);
            let unobserved_since =
                (now.duration_since(since) > unobserved_max(self.interval.under(document))).then_some(since);
            let blocked = Some(error.blocked());
            *view =
                Arc::new(HostSnapshot { problems, unobserved_since, blocked, ..HostSnapshot::clone(view) });
        });
    }
}
