//! Operations held back by the change limit.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::generation::Numbered;
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::job::act::BulkChange;
use holdfast_protocol::operation::OperationKind;
use holdfast_protocol::report::{Condition, Running};

use super::{Action, GuestVerdict, Inputs, Plan};
use crate::gate::change_limit::{Brake, BulkHeld, Pull};
use crate::operation::{ChangeLimit, Operation};

fn is_counted(operation: &Operation) -> bool {
    operation.change_limit() == ChangeLimit::Counts
}

/// Walks the operations in the order of the plan.
pub(super) fn bulk(inputs: &Inputs<'_>, plan: &mut Plan) {
    // With nothing to stop or resize the guests are not counted.
    if !plan.actions.iter().any(|action| is_counted(&action.operation)) {
        return;
    }
    let rule = inputs.policy.brake;
    let running = running(inputs, &plan.verdicts);
    let document = inputs.content.map(|content| Numbered { generation: inputs.generation, content });
    let mut brake =
        Brake::new(rule, &running, &inputs.records.touched, inputs.now).with(inputs.release, document);
    let (go_on, held): (Vec<Action>, Vec<Action>) =
        std::mem::take(&mut plan.actions).into_iter().partition(|action| {
            // What stands still already is not taken from anybody.
            let (uid, kind) = (action.operation.uid(), action.operation.kind());
            !is_counted(&action.operation) || !running.contains(&uid) || brake.pull(uid, kind) == Pull::Go
        });
    plan.actions = go_on;
    if held.is_empty() {
        return;
    }
    let change = |action: &Action| BulkChange {
        guest: action.operation.uid(),
        name: action.operation.name().clone(),
        operation: action.operation.kind(),
    };
    let bulk = BulkHeld {
        generation: inputs.generation,
        content: inputs.content,
        changes: held.iter().map(change).collect(),
        touched: brake.touched(),
        limit: brake.limit(),
        window_h: rule.window_h,
    };
    let held: BTreeMap<GuestUid, OperationKind> =
        bulk.changes.iter().map(|change| (change.guest, change.operation)).collect();
    for verdict in &mut plan.verdicts {
        if let Some(operation) = uid(inputs, verdict).and_then(|uid| held.get(&uid)) {
            let message = bulk.reason(*operation);
            verdict.conditions.push(Condition { code: ErrorCode::BulkChangeHeld, message });
        }
    }
    plan.braked = Some(bulk);
}

fn uid(inputs: &Inputs<'_>, verdict: &GuestVerdict) -> Option<GuestUid> {
    verdict.recorded.and_then(|place| inputs.records.guests.get(place)).map(|record| record.uid)
}

/// Our guests that run now, whether the document still names them or not.
fn running(inputs: &Inputs<'_>, verdicts: &[GuestVerdict]) -> BTreeSet<GuestUid> {
    let runs = |verdict: &&GuestVerdict| {
        let seen = verdict.vmid.and_then(|vmid| inputs.observed.guests.get(&vmid));
        seen.is_some_and(|seen| seen.run == Running::Running)
    };
    verdicts.iter().filter(runs).filter_map(|verdict| uid(inputs, verdict)).collect()
}
