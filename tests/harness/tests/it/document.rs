//! Tests from document to report, killed at every point.
#![forbid(unsafe_code)]

use std::sync::Arc;

use harness::controllers::Speech;
use harness::daemon::{Served, serve};
use harness::fixtures::{guest, uid};
use harness::ground::Ground;
use harness::hub::Hub;
use harness::invariant::done;
use harness::points::{Conductor, Kill, Place};
use harness::scene::Comparable;
use harness::virtual_time;
use harness::world_template::Template;
use holdfast_protocol::operation::OperationStatus;
use holdfast_protocol::operator::HostDetail;
use holdfast_protocol::report::{GuestStatus, Running};
use serde_json::json;

/// The report at the hub says that guest 1 serves and that no operation is open.
fn serves(host: &HostDetail) -> bool {
    let guests = host.sections.guests.as_deref().unwrap_or_default();
    let operations = host.sections.operations.as_deref().unwrap_or_default();
    let well = guests.iter().any(|report| {
        report.uid == Some(uid(1))
            && report.status == GuestStatus::Managed
            && report.run == Running::Running
            && report.controller.is_some()
            && report.conditions.is_empty()
    });
    well && operations.iter().all(|operation| operation.status == OperationStatus::Done)
}

struct Reported {
    places: Vec<Place>,
    after: Comparable,
    done: std::collections::BTreeMap<(String, String), usize>,
}

/// The story, killed at one point or not at all.
fn report(kill: Option<usize>) -> Result<Reported, String> {
    let template = Template::of(Ground::Empty);
    virtual_time(|| async {
        let world = template.world(3);
        let hub = Hub::open(world.timeline).await;
        let document = json!({
            "schema": "holdfast.desired/v1", "generation": 1, "poll_interval_s": 30, "guests": [guest(1)],
        });
        hub.put_desired("\"0\"", &document).await;
        if let Some(point) = kill {
            let conductor = Conductor::new(Kill::At(point), None);
            match Box::pin(serve(&world, &hub, &conductor, Speech::Hello, &serves)).await {
                Served::Killed(_) => {}
                other => return Err(format!("not killed but {other:?}")),
            }
        }
        let conductor = Conductor::undisturbed();
        match Box::pin(serve(&world, &hub, &conductor, Speech::Hello, &serves)).await {
            Served::Reached => {}
            other => return Err(format!("{other:?}")),
        }
        world.settle().await;
        let ended = |upid: &str| world.node.tasks.ended(upid).map_or_else(String::new, |ended| ended.status);
        let tasks: Vec<_> =
            world.log.tasks().into_iter().map(|task| (task.clone(), ended(&task.upid))).collect();
        let offences = world.node.guard.offences();
        if !offences.is_empty() {
            return Err(format!("{offences:?}"));
        }
        Ok(Reported { places: conductor.places(), after: world.scene().comparable(), done: done(&tasks) })
    })
}

#[test]
fn a_document_becomes_a_guest_and_a_report_wherever_the_agent_is_killed() {
    let whole = Arc::new(report(None).unwrap());
    let named = |name: &str| whole.places.iter().any(|place| place.to_string() == name);
    for point in ["document:before:exchange", "operation:after:opened", "report:after:exchange"] {
        assert!(named(point), "{point} is no point of {:#?}", whole.places);
    }
    let (mut wrong, mut cases) = (Vec::new(), 0);
    for (point, place) in whole.places.iter().enumerate() {
        cases += 1;
        match report(Some(point)) {
            Err(what) => wrong.push(format!("{point} {place}: {what}")),
            Ok(reported) => {
                let differs = reported.after.differences(&whole.after);
                if !differs.is_empty() || reported.done != whole.done {
                    wrong.push(format!(
                        "{point} {place}: {differs:?}, {:?} not {:?}",
                        reported.done, whole.done
                    ));
                }
            }
        }
    }
    println!("a document: {cases} points, {} violations", wrong.len());
    assert!(wrong.is_empty(), "{} of {cases}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(cases > 120, "only {cases} points");
}
