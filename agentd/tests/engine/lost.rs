//! A guest that somebody destroyed by hand, its number free, reused in our pool, or reused outside it.

use std::time::Duration;

use agentd::execute::Ports;
use agentd::model::mark;
use agentd::model::record::Place;
use agentd::port::pve::read::Power;
use agentd::port::pve::restore::{Address, BootstrapEnv, NetSpec};
use agentd::port::pve::undo::{Evidence, Made, UndoProof};
use agentd::port::pve::{RestoreRequest, VmidUse};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::report::{Health, Running, Standing};
use holdfast_protocol::secret::Secret;
use pve_sim::fault::admin::{Edit, apply};

use super::drift::{Agent, report, serves, start};
use super::world::{ARCHIVE, World, guest, uid, vmid};

async fn one_guest(world: &World) -> Agent {
    let mut agent = start(world).await;
    agent.wish(1, vec![guest(1)]).await;
    let view = agent.until("a guest that serves", |view| serves(view, 1)).await;
    assert_eq!(report(&view, 1).unwrap().vmid, Some(vmid(300)));
    agent
}

/// Destroyed on the node, as a person does it: by a task that the node's list shows.
pub async fn destroyed(world: &World) {
    apply(&world.sim.node, &Edit::Stop { vmid: 300 }).unwrap();
    apply(&world.sim.node, &Edit::Unset { vmid: 300, key: "protection".to_owned() }).unwrap();
    let pve = world.pve();
    let config = pve.guest_config(vmid(300)).await.unwrap();
    let evidence = Evidence::Mark { tags: mark::tags(uid(1)).into(), first_line: mark::first_line(uid(1)) };
    let made = Made { vmid: vmid(300), evidence, volumes: config.volumes() };
    pve.destroy(UndoProof::establish(&made, &config).unwrap()).await.unwrap();
    for _ in 0..2_000 {
        if pve.vmid_use(vmid(300)).await.unwrap() == VmidUse::Free {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it was never destroyed");
}

/// Somebody else's container, made under 300 in our pool.
async fn newcomer(world: &World) {
    let request = RestoreRequest {
        vmid: vmid(300),
        archive: ARCHIVE.parse().unwrap(),
        storage: "tank".parse().unwrap(),
        pool: "holdfast".parse().unwrap(),
        net0: NetSpec { bridge: "vmbr0".parse().unwrap(), address: Address::Dhcp, vlan: None },
        env: BootstrapEnv::new(Secret::new("theirs".to_owned())).unwrap(),
        hostname: "newcomer".parse().unwrap(),
        memory: 128.try_into().unwrap(),
        swap: 0.try_into().unwrap(),
        cores: 1.try_into().unwrap(),
    };
    world.pve().restore(&request).await.unwrap();
    let pve = world.pve();
    for _ in 0..2_000 {
        if pve.guest_config(vmid(300)).await.is_ok_and(|config| config.lock.is_none()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("the newcomer never came");
}

/// What a controller that comes up with its old token says.
pub async fn says_hello(ports: &Ports, world: &World) {
    for _ in 0..4_000 {
        let status = world.pve().guest_status(vmid(301)).await;
        if status.is_ok_and(|status| status.power == Power::Running) {
            let hello = agentd::model::record::HelloRecord {
                version: "0.1.0".to_owned(),
                health: Health::Well,
                boot_id: "second".to_owned(),
                build: None,
                at: ports.clock.now(),
            };
            return ports.store.record_hello(uid(1), hello).await.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it was never started again");
}

/// The newcomer is not touched, it is said, and the guest comes back from its own backup under another number.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_guest_comes_back_beside_who_took_its_number() {
    let world = World::start().await;
    let mut agent = one_guest(&world).await;
    destroyed(&world).await;
    newcomer(&world).await;
    let theirs = world.guests().get("300.conf").cloned().unwrap();
    says_hello(&agent.ports, &world).await;
    let back = |view: &agentd::model::view::View| {
        report(view, 1).is_some_and(|report| {
            report.vmid == Some(vmid(301))
                && report.run == Running::Running
                && report.standing == Standing::Managed
        })
    };
    let view = agent.until("back under another number", back).await;
    assert_eq!(world.guests().get("300.conf"), Some(&theirs), "the newcomer is as it was");
    assert_eq!(world.restores(300).await, 2, "ours and theirs");
    let stranger = view.guests.iter().find(|report| report.vmid == Some(vmid(300))).unwrap();
    assert_eq!(stranger.standing, Standing::Foreign, "and is told");
    let audit = agent.ports.store.audit(200).await.unwrap();
    assert!(audit.iter().any(|line| line.detail.contains("it is gone from VMID 300")), "{audit:#?}");
    agent.ports.store.verify_audit().await.unwrap();
    agent.stop().await;
}

/// A number that somebody has whom we may not see proves nothing: it may be our own guest, taken out of the pool.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_we_may_not_see_is_not_lost() {
    let world = World::start().await;
    let mut agent = one_guest(&world).await;
    apply(&world.sim.node, &Edit::Stop { vmid: 300 }).unwrap();
    apply(&world.sim.node, &Edit::Destroy { vmid: 300 }).unwrap();
    let config = "arch: amd64\nhostname: theirs\nmemory: 128\nostype: debian\nrootfs: tank:300/vm-300-disk-9.raw,size=1G\nunprivileged: 1\n";
    apply(&world.sim.node, &Edit::Place { vmid: 300, config: config.to_owned() }).unwrap();
    assert_eq!(world.pve().vmid_use(vmid(300)).await.unwrap(), VmidUse::Taken);
    let before = world.guests();
    let told = |view: &agentd::model::view::View| {
        report(view, 1).is_some_and(|report| {
            report.conditions.iter().any(|condition| condition.code == ErrorCode::VmidForeign)
        })
    };
    agent.until("told", told).await;
    // Two more whole looks, after which a proof would have counted.
    for _ in 0..2 {
        let seen = agent.view.borrow().seen_at;
        agent.until("another look", |view| view.seen_at > seen).await;
    }
    assert_eq!(world.guests(), before, "nobody is touched and nothing is made");
    let place = agent.ports.store.guest(uid(1)).await.unwrap().unwrap().place;
    assert!(matches!(place, Place::Made { vmid: at, .. } if at == vmid(300)), "{place:?}");
    agent.stop().await;
}
