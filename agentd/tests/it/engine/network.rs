//! Tests of a guest's network and resolver.

use std::time::Duration;

use agentd::model::view::HostSnapshot;
use agentd::port::pve::GuestConfig;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::field::GuestField;
use holdfast_protocol::desired::{DesiredGuest, Resolver};
use holdfast_protocol::id::Vmid;
use holdfast_protocol::report::FieldState;
use pve_sim::node::HotMounts;
use serde_json::json;

use super::drift::{Agent, report, serves, start};
use super::world::{World, guest, uid};

/// So many changes of the store are waited for, each within this time.
const LOOKS: usize = 60;
const CHANGES_WITHIN: Duration = Duration::from_secs(60);

/// A guest with everything of a network that a document can name.
fn whole(n: u8) -> DesiredGuest {
    let mut wanted = guest(n);
    let network = json!({
        "bridge": "vmbr0", "address": format!("10.66.0.{n}/24"), "gateway": "10.66.0.254", "mtu": { "bytes": 1400 },
        "rate": { "mib_per_s": 50 }, "firewall": "on",
        "resolver": { "own": { "servers": ["9.9.9.9", "fd00::1"], "search": ["lan.example"] } }
    });
    wanted.network = serde_json::from_value(network).unwrap();
    wanted
}

fn value<'a>(config: &'a GuestConfig, key: &str) -> Option<&'a str> {
    config
        .nets
        .get(&0)?
        .split(',')
        .find_map(|part| part.split_once('=').filter(|(name, _)| *name == key))
        .map(|(_, value)| value)
}

/// The network settings in its configuration: packets, limit, flag, servers, domains.
async fn seen(world: &World, vmid: Vmid) -> [Option<String>; 5] {
    let config = world.pve().guest_config(vmid).await.unwrap();
    let own = |key: &str| value(&config, key).map(str::to_owned);
    [own("mtu"), own("rate"), own("firewall"), config.resolver().servers, config.resolver().search]
}

fn texts(texts: [&str; 5]) -> [Option<String>; 5] {
    texts.map(|text| Some(text.to_owned()))
}

/// Waits until a document's guest is as wanted, according to Proxmox.
async fn until(agent: &mut Agent, world: &World, vmid: Vmid, wanted: [Option<String>; 5]) {
    let mut changes = agent.ports.store.changes();
    for _ in 0..LOOKS {
        if seen(world, vmid).await == wanted {
            return;
        }
        tokio::time::timeout(CHANGES_WITHIN, changes.changed()).await.unwrap().unwrap();
    }
    panic!("never {wanted:?}: {:?}", seen(world, vmid).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_is_made_changed_and_taken_back_as_the_document_says() {
    let world = World::start().await;
    let mut agent = start(&world).await;
    agent.goal(1, vec![guest(1), whole(2)]).await;
    let view = agent.until("two guests that serve", |view| serves(view, 1) && serves(view, 2)).await;
    let [first, second] = [1, 2].map(|n| report(&view, n).unwrap().vmid.unwrap());
    let all = texts(["1400", "50", "1", "9.9.9.9 fd00::1", "lan.example"]);
    let none = [const { None::<String> }; 5];
    assert_eq!(
        (seen(&world, first).await, seen(&world, second).await),
        (none.clone(), all.clone()),
        "as they were made"
    );

    let fields = &view.fields[&uid(2)];
    assert!(fields.read_at.is_some() && fields.fields.iter().all(FieldState::is_settled), "{fields:#?}");
    let carried = fields.fields.iter().find(|state| state.field == GuestField::Mtu).unwrap().applied.clone();
    assert_eq!(carried.map(|applied| applied.value).as_deref(), Some("1400"), "by its making");

    agent.goal(2, vec![whole(1), guest(2)]).await;
    until(&mut agent, &world, first, all.clone()).await;
    // It runs on with what it had; by its next start it has the rest.
    let waits = |view: &HostSnapshot| {
        let conditions = &report(view, 1).unwrap().conditions;
        conditions
            .iter()
            .any(|one| one.code == ErrorCode::RestartNeeded && one.message.contains("network.mtu 1400"))
    };
    agent.until("what waits for a start is told", waits).await;
    assert_eq!(seen(&world, second).await, all, "what a document names no more stays");

    // The first one's servers only wait for its next start, so a delete has no effect on them.
    let back = |n: u8| {
        let mut wanted = whole(n);
        let network = json!({
            "bridge": "vmbr0", "address": format!("10.66.0.{n}/24"), "gateway": "10.66.0.254", "mtu": "bridge",
            "rate": "unlimited", "resolver": "host"
        });
        wanted.network = serde_json::from_value(network).unwrap();
        assert_eq!(wanted.network.resolver, Some(Resolver::Host));
        wanted
    };
    agent.goal(3, vec![back(1), back(2)]).await;
    let mut back = none;
    // Taken away by a person alone.
    back[2] = all[2].clone();
    until(&mut agent, &world, first, back.clone()).await;
    until(&mut agent, &world, second, back).await;
    agent.until("what waits is told", |view| !serves(view, 1) && !serves(view, 2)).await;
    for vmid in [first, second] {
        world.pve().stop(vmid).await.unwrap();
    }
    agent.until("both serve, started anew", |view| serves(view, 1) && serves(view, 2)).await;
    agent.stop().await;
}

/// A running guest's limit is set at once or not at all, and with it everything else of the call (`23-net-name`).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_that_the_kernel_does_not_keep_is_reported_and_nothing_changes() {
    let world = World::with(HotMounts::NoAppArmor).await;
    let mut agent = start(&world).await;
    agent.goal(1, vec![guest(1)]).await;
    let view = agent.until("a guest that serves", |view| serves(view, 1)).await;
    let vmid = report(&view, 1).unwrap().vmid.unwrap();
    let before = world.pve().guest_config(vmid).await.unwrap().digest;
    let mut limited = guest(1);
    limited.network.rate = Some(serde_json::from_value(json!({ "mib_per_s": 50 })).unwrap());
    agent.goal(2, vec![limited]).await;
    let reported = |view: &HostSnapshot| {
        let conditions = &report(view, 1).unwrap().conditions;
        conditions.iter().any(|one| one.code == ErrorCode::Unavailable && one.message.contains("tc filter"))
    };
    let view = agent.until("why it has no limit is told", reported).await;
    let rate = report(&view, 1).unwrap().fields.iter().find(|state| state.field == GuestField::Rate).cloned();
    let rate = rate.map(|state| (state.desired, state.observed));
    assert_eq!(rate, Some((Some("50 MiB/s".to_owned()), Some("unlimited".to_owned()))));
    assert_eq!(world.pve().guest_config(vmid).await.unwrap().digest, before);
    agent.stop().await;
}
