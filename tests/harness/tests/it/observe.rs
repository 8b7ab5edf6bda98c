//! Tests of what observation finds and costs Proxmox.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of a test")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use agentd::model::view::HostSnapshot;
use agentd::task::reconcile::{ObserveInterval, Reconcile};
use agentd::task::stop;
use harness::fixtures::guest;
use harness::ground::Ground;
use harness::points::Conductor;
use harness::virtual_time;
use harness::world::World;
use harness::world_template::Template;
use holdfast_protocol::desired::Desired;
use holdfast_protocol::report::GuestStatus;
use pve_sim::fault::admin::{Edit, apply};
use serde_json::json;
use tokio::sync::watch;

/// Lets the agent work on its host while `story` runs.
async fn with_agent(world: &World, story: impl AsyncFnOnce(View)) {
    let ports = world.agent(&Conductor::undisturbed()).await;
    let document = json!({ "schema": "holdfast.desired/v1", "generation": 1, "poll_interval_s": 5, "guests": [guest(1)] });
    let desired = Desired::parse(document.to_string().as_bytes()).unwrap();
    ports.store.offer_desired(desired, ports.clock.now()).await.unwrap();
    let (sender, view) = watch::channel(Arc::new(HostSnapshot::default()));
    let (_stopper, stop) = stop::pair();
    let reconcile = Reconcile {
        eye: world.eye(&ports),
        policy: world.kit.policy(),
        node: "pve1".parse().unwrap(),
        interval: ObserveInterval::ByDocument,
        view: sender,
        stop,
        ports,
    };
    tokio::select! {
        biased;
        () = story(view) => {}
        () = reconcile.run() => panic!("the loop ended by itself"),
    }
}

fn config(world: &World, vmid: u32, key: &str) -> Option<String> {
    world.node.world().guests.get(vmid).unwrap().main.get(key).map(str::to_owned)
}

type View = watch::Receiver<Arc<HostSnapshot>>;

/// Waits for observations until something is so, and says how long that took.
async fn until(view: &mut View, what: &str, is_so: impl Fn() -> bool) -> Duration {
    let began = tokio::time::Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(600), "never: {what}");
        view.changed().await.unwrap();
    }
    began.elapsed()
}

/// Waits until this many observations were made after the guest of the document was seen in its place.
async fn observed(view: &mut View, times: usize) {
    view.wait_for(|view| view.guests.iter().any(|guest| guest.status == GuestStatus::Managed)).await.unwrap();
    for _ in 0..times {
        view.changed().await.unwrap();
    }
}

/// Neither Proxmox's list nor a task shows that protection was switched off.
#[test]
fn a_change_that_no_list_shows_is_found_within_the_rotation() {
    let template = Template::of(Ground::GuestRuns);
    virtual_time(|| async {
        let world = template.world(3);
        with_agent(&world, async |mut view| {
            observed(&mut view, 30).await;
            // Another moment of the rotation each time.
            for later in [0, 4, 7] {
                observed(&mut view, later).await;
                apply(&world.node, &Edit::Unset { vmid: 300, key: "protection".to_owned() }).unwrap();
                let is_back = || config(&world, 300, "protection").as_deref() == Some("1");
                let took = until(&mut view, "protection is back", is_back).await;
                assert!(took <= Duration::from_secs(120 + 2 * 10), "found after {took:?}");
            }
        })
        .await;
    });
}

/// Sizes and who runs are in the list after Proxmox's own next round.
#[test]
fn what_the_list_shows_is_healed_within_two_rounds() {
    let template = Template::of(Ground::GuestRuns);
    virtual_time(|| async {
        let world = template.world(4);
        with_agent(&world, async |mut view| {
            observed(&mut view, 30).await;
            apply(&world.node, &Edit::Stop { vmid: 300 }).unwrap();
            let took = until(&mut view, "it runs", || world.node.power.running(300).is_some()).await;
            assert!(took <= Duration::from_secs(30), "started after {took:?}");
            observed(&mut view, 30).await;
            let memory = config(&world, 300, "memory").unwrap();
            let edit = Edit::Set { vmid: 300, key: "memory".to_owned(), value: "128".to_owned() };
            apply(&world.node, &edit).unwrap();
            let is_back = || config(&world, 300, "memory").as_deref() == Some(memory.as_str());
            let took = until(&mut view, "its memory is back", is_back).await;
            assert!(took <= Duration::from_secs(30), "healed after {took:?}");
        })
        .await;
    });
}

/// Milliseconds of CPU that one call costs pveproxy and pvedaemon on a genuine node of two cores with 30 guests.
fn cost_ms(call: &str) -> f64 {
    match call {
        "GET /cluster/resources" => 5.1,
        "GET /nodes/{node}/tasks" => 1.3,
        "GET /nodes/{node}/lxc/{vmid}/config" | "GET /nodes/{node}/lxc/{vmid}/firewall/options" => 1.2,
        "GET /nodes/{node}/lxc/{vmid}/firewall/ipset" => 1.2,
        "GET /nodes/{node}/lxc/{vmid}/firewall/ipset/{name}" => 1.2,
        "GET /access/permissions" => 1.0,
        "GET /version" | "GET /cluster/nextid" => 0.9,
        "GET /nodes/{node}/status" => 1.4,
        "GET /nodes/{node}/storage" => 92.0,
        "GET /nodes/{node}/storage/{storage}/content" => 27.0,
        "GET /nodes/{node}/lxc/{vmid}/status/current" => 37.0,
        other => panic!("what does {other} cost? see the table of costs"),
    }
}

/// A connection of its own for each observation: pveproxy drops one that is idle for five seconds.
const CONNECTION_MS: f64 = 4.2;

/// What an hour at rest asks of Proxmox, by call.
fn at_rest(guests: u32) -> BTreeMap<&'static str, usize> {
    let template = Template::of(Ground::GuestRuns);
    virtual_time(|| async move {
        let world = template.world(5).patient();
        for vmid in 1_000..1_000 + guests - 1 {
            let text =
                format!("arch: amd64\nhostname: g{vmid}\nmemory: 512\nostype: debian\nunprivileged: 1\n");
            apply(&world.node, &Edit::Place { vmid, config: text }).unwrap();
            let mut inner = world.node.world();
            inner.access.pools.get_mut("holdfast").unwrap().vms.insert(vmid);
        }
        let mut counted = BTreeMap::new();
        with_agent(&world, async |mut view| {
            view.wait_for(|view| view.guests.len() >= guests as usize).await.unwrap();
            observed(&mut view, 60).await;
            let (before, began) = (world.log.by_call(), tokio::time::Instant::now());
            while began.elapsed() < Duration::from_secs(3_600) {
                view.changed().await.unwrap();
            }
            counted = world.log.by_call();
            for (call, count) in before {
                *counted.get_mut(call).unwrap() -= count;
            }
        })
        .await;
        counted.retain(|_, count| *count > 0);
        counted
    })
}

#[test]
fn an_agent_at_rest_costs_proxmox_little_and_hardly_more_with_each_guest() {
    let mut costs = Vec::new();
    for guests in [1_u32, 30, 100] {
        let counted = at_rest(guests);
        let requests: usize = counted.values().sum();
        let looks = counted["GET /cluster/resources"];
        let calls = counted.iter().map(|(call, count)| *count as f64 * cost_ms(call)).sum::<f64>();
        let per_minute = (calls + looks as f64 * CONNECTION_MS) / 60.0;
        println!(
            "{guests} guests: {:.1} requests a minute, {per_minute:.0} ms of CPU a minute at Proxmox ({:.2} % of a core); in an \
             hour {counted:?}",
            requests as f64 / 60.0,
            per_minute / 600.0
        );
        costs.push(per_minute);
        assert!(
            !counted.contains_key("GET /cluster/nextid"),
            "no number is asked about at rest: {counted:?}"
        );
    }
    // At most 0.3 % of a core with 30 guests.
    assert!(costs[1] <= 180.0, "{costs:?}");
    // At most 0.1 ms for each guest and poll of five seconds.
    let grows = (costs[2] - costs[1]) / 70.0 / 12.0;
    assert!(grows <= 0.1, "{grows} ms");
}
