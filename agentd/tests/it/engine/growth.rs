//! Tests of growth against the simulator.

use agentd::model::growth::Passed;
use agentd::model::view::HostSnapshot;
use agentd::port::store::job_intake::Outcome;
use agentd::port::store::roster::RosterTexts;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::DesiredGuest;
use holdfast_protocol::job::{Draft, JobState, Verb};
use holdfast_protocol::size::{DiskGib, MemoryMib};

use super::drift::{Agent, report, serves, start};
use super::jobs::{ended, found, leave, order, public, signed};
use super::world::{World, guest};

/// Two new guests of 4 GiB, and 4 GiB more.
const GROWTH: &str = "[growth]\ndisk_gib_per_day = 12\nguest_disk_gib_per_day = 8\nguests_per_day = 2\n";

async fn lay_down(agent: &Agent) {
    let operators = format!("alice ssh-ed25519 {}\n", STANDARD.encode(public()));
    let texts = RosterTexts { operators, policy: format!("version = 1\n{GROWTH}") };
    agent.ports.store.lay_down(texts, agent.ports.clock.now()).await.unwrap();
}

fn with(n: u8, gib: u32) -> DesiredGuest {
    let mut guest = guest(n);
    guest.size.rootfs_gib = DiskGib::try_from(gib).unwrap();
    guest
}

fn has(code: ErrorCode, n: u8) -> impl Fn(&HostSnapshot) -> bool {
    move |view| report(view, n).is_some_and(|one| one.conditions.iter().any(|reported| reported.code == code))
}

/// The size of a root disk by the guest's own configuration.
fn root(world: &World, vmid: &str) -> String {
    let config = world.guests().remove(vmid).unwrap();
    let line = config.lines().find(|line| line.starts_with("rootfs:")).unwrap();
    line.rsplit_once("size=").unwrap().1.to_owned()
}

/// Whether the root disk and the memory of the first guest have these sizes, as observed.
fn is(gib: u32, mib: u32) -> impl Fn(&HostSnapshot) -> bool {
    move |view| {
        report(view, 1).is_some_and(|one| {
            let size = one.size.filter(|size| size.rootfs_gib.get() == gib && size.memory_mib.get() == mib);
            size.is_some() && one.conditions.is_empty()
        })
    }
}

/// What was counted: of which kind, by how many GiB.
async fn ledger(agent: &Agent) -> Vec<(Passed, u64)> {
    let growth = agent.ports.store.growth(agent.ports.clock.now()).await.unwrap();
    growth.ledger.iter().map(|one| (one.passed, one.amount.disk_gib)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_grows_within_the_day_and_beyond_it_by_a_signature_for_exactly_that() {
    let world = World::start().await;
    let mut agent = start(&world).await;
    lay_down(&agent).await;
    agent.goal(1, vec![guest(1)]).await;
    agent.until("the guest serves", |view| serves(view, 1)).await;
    let vmid = world.guests().keys().next().unwrap().clone();
    assert_eq!(root(&world, &vmid), "2G");

    // As it was seen: 64 TiB, which nothing takes back.
    agent.goal(2, vec![with(1, 65_536)]).await;
    let view = agent.until("64 TiB have no room", has(ErrorCode::StorageFull, 1)).await;
    assert!(found(&view, Verb::AllowGrowth).is_none(), "and nobody is asked to sign for them");
    agent.goal(3, vec![with(1, 64)]).await;
    let view = agent.until("64 GiB are held", has(ErrorCode::GrowthHeld, 1)).await;
    let waiting = found(&view, Verb::AllowGrowth).unwrap().clone();
    assert!(
        waiting.effect.contains("it asks 62 GiB of disk, and 4 of 8 a day are left for this guest"),
        "{waiting:?}"
    );
    assert_eq!(root(&world, &vmid), "2G");

    // Another guest's name: refused, and nothing grows.
    let mut other = Draft::parse(waiting.payload.as_bytes()).unwrap();
    if let holdfast_protocol::job::Act::AllowGrowth(args) = &mut other.act {
        args.name = "web-2".parse().unwrap();
    }
    let mail = order(&agent, other).await;
    let Outcome::Away(why) = leave(&agent, &mail).await else { panic!("it was taken") };
    assert_eq!(why.code(), ErrorCode::TargetChanged);

    let mail = signed(&agent, &waiting).await;
    assert!(matches!(leave(&agent, &mail).await, Outcome::Taken));
    let view = agent.until("it has 64 GiB", is(64, 256)).await;
    assert!(view.waiting.is_empty(), "{:?}", view.waiting);
    assert_eq!(ended(&agent, mail.id).await.state, JobState::Done);
    assert_eq!(root(&world, &vmid), "64G");
    let rows = ledger(&agent).await;
    assert!(matches!(rows.as_slice(), [(Passed::Budget, 4), (Passed::Signed(_), 62)]), "{rows:?}");

    // The signature is used up, and was for no more.
    agent.goal(4, vec![with(1, 69)]).await;
    agent.until("five more are held", has(ErrorCode::GrowthHeld, 1)).await;
    assert_eq!(root(&world, &vmid), "64G");
    agent.goal(5, vec![with(1, 68)]).await;
    agent.until("four more are within the day", is(68, 256)).await;
    assert_eq!(root(&world, &vmid), "68G");

    // Neither a restart nor a shrunk request gives anything back.
    agent.stop().await;
    let mut agent = start(&world).await;
    let mut more = with(1, 68);
    more.size.memory_mib = MemoryMib::try_from(512).unwrap();
    agent.goal(6, vec![more, guest(2), guest(3)]).await;
    agent
        .until("one guest more, one is held, and memory has a budget of its own", |view| {
            serves(view, 2) && has(ErrorCode::GrowthHeld, 3)(view) && is(68, 512)(view)
        })
        .await;
    assert_eq!(world.guests().len(), 2);
    agent.stop().await;
}
