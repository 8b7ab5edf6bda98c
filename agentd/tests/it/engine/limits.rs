//! Tests of a guest's limits of CPU time (`29-limits-options`).

use std::time::Duration;

use holdfast_protocol::desired::DesiredGuest;
use holdfast_protocol::desired::field::GuestField;
use holdfast_protocol::id::Vmid;
use holdfast_protocol::report::FieldState;
use pve_sim::fault::admin::{Edit, apply};
use serde_json::{Value, json};

use super::drift::{Agent, report, serves, start};
use super::world::{World, guest, uid};

/// So many changes of the view are waited for.
const PATIENCE: Duration = Duration::from_secs(60);

fn limited(n: u8, limits: Value) -> DesiredGuest {
    DesiredGuest { limits: Some(serde_json::from_value(limits).unwrap()), ..guest(n) }
}

/// `cpulimit` and `cpuunits` in its configuration.
async fn seen(world: &World, vmid: Vmid) -> [Option<String>; 2] {
    let config = world.pve().guest_config(vmid).await.unwrap();
    ["cpulimit", "cpuunits"].map(|key| config.other.get(key).cloned())
}

async fn until(agent: &mut Agent, world: &World, vmid: Vmid, wanted: [Option<&str>; 2]) {
    let wanted = wanted.map(|text| text.map(str::to_owned));
    let reached = async {
        while seen(world, vmid).await != wanted {
            agent.ports.clock.sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, reached).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_are_there_at_the_first_start_and_follow_the_document_at_once() {
    let world = World::start().await;
    let mut agent = start(&world).await;
    let tight = json!({ "cpu": { "core_percent": 150 }, "cpu_weight": 50 });
    agent.goal(1, vec![guest(1), limited(2, tight.clone())]).await;
    let view = agent.until("two guests that serve", |view| serves(view, 1) && serves(view, 2)).await;
    let [first, second] = [1, 2].map(|n| report(&view, n).unwrap().vmid.unwrap());
    assert_eq!(seen(&world, first).await, [None, None]);
    assert_eq!(seen(&world, second).await, [Some("1.5".to_owned()), Some("50".to_owned())], "as it was made");
    let words = report(&view, 2).unwrap().limits.as_ref().map(|limits| limits.words());
    assert_eq!(words.as_deref(), Some("at most 1.5 cores of CPU time, CPU weight 50"));
    let fields = &view.fields[&uid(2)].fields;
    assert!(fields.iter().all(FieldState::is_settled), "{fields:#?}");
    let carried = fields.iter().find(|state| state.field == GuestField::CpuLimit).unwrap().applied.clone();
    assert_eq!(carried.map(|applied| applied.value).as_deref(), Some("150 % of a core"), "by its making");

    // Both run, and neither is restarted for it.
    agent
        .goal(2, vec![limited(1, tight.clone()), limited(2, json!({ "cpu": { "core_percent": 50 } }))])
        .await;
    until(&mut agent, &world, first, [Some("1.5"), Some("50")]).await;
    until(&mut agent, &world, second, [Some("0.5"), Some("50")]).await;

    // A change by hand is put back; what the document does not name stays.
    let set = |key: &str, value: &str| Edit::Set {
        vmid: second.into(),
        key: key.to_owned(),
        value: value.to_owned(),
    };
    apply(&world.sim.node, &set("cpuunits", "77")).unwrap();
    apply(&world.sim.node, &set("cpulimit", "4")).unwrap();
    until(&mut agent, &world, second, [Some("0.5"), Some("77")]).await;

    agent.goal(3, vec![limited(1, json!({ "cpu": "unlimited" })), guest(2)]).await;
    until(&mut agent, &world, first, [None, Some("50")]).await;
    assert_eq!(seen(&world, second).await, [Some("0.5".to_owned()), Some("77".to_owned())]);
    agent.until("both serve", |view| serves(view, 1) && serves(view, 2)).await;
    agent.stop().await;
}
