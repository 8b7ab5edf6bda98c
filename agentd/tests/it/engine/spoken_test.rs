//! Tests of restore tests with a reporting guest agent.

use std::sync::Arc;
use std::time::Duration;

use agentd::execute::Ports;
use agentd::model::policy::TestBridge;
use agentd::operation::log::Status;
use agentd::operation::progress::OperationState;
use agentd::operation::restore_test::TestedBackup;
use agentd::operation::window::{QuiescedStacks, Restarted, WindowEvent};
use agentd::operation::{Operation, QuiescedBackup, RestoreTest};
use agentd::port::pve::Pve;
use agentd::port::store::Store;
use agentd::port::store::access::Redemption;
use agentd::port::store::window::Moment;
use holdfast_protocol::bootstrap::{BootstrapToken, Mode, VARIABLE};
use holdfast_protocol::local::restore_test::{StackCheck, StackHealth, TestReport, TestVerdict};
use holdfast_protocol::local::window::{Canary, WindowPhase};
use holdfast_protocol::secret::{Secret, TokenHash};

use super::hand::HandAt;
use super::world::{FastClock, World, asked_backup, end, guest, made, open, reported, vmid};
use agentd::execute::run::run;
use agentd::model::policy::QuiesceBound;
use agentd::port::clock::Clock;

/// The controller of the scratch guest: claims, says hello, and reports when it has something to say. Ends when dropped.
struct ScratchGuest(tokio::task::JoinHandle<()>);

impl Drop for ScratchGuest {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl ScratchGuest {
    #[expect(clippy::disallowed_methods, reason = "the stand-in for a program that runs beside the agent")]
    fn start(ports: &Ports, report: Option<TestReport>) -> Self {
        let (pve, store) = (Arc::clone(ports.scratch.as_ref().unwrap()), ports.store.clone());
        Self(tokio::spawn(async move {
            // Whatever the agent does to its guest is written down.
            let mut changes = store.changes();
            while speak(pve.as_ref(), &store, report.as_ref()).await.is_none() {
                changes.changed().await.unwrap();
            }
        }))
    }
}

async fn speak(pve: &dyn Pve, store: &Store, report: Option<&TestReport>) -> Option<()> {
    let config = pve.guest_config(vmid(900)).await.ok()?;
    let text = config.env?.expose().strip_prefix(VARIABLE)?.strip_prefix('=')?.to_owned();
    let token = BootstrapToken::open(&Secret::new(text)).ok()?;
    if pve.guest_status(vmid(900)).await.ok()?.power != agentd::port::pve::read::Power::Running {
        return None;
    }
    assert_eq!((token.mode, token.endpoint.as_str()), (Mode::RestoreTest, "https://10.254.254.1:8443"));
    let now = FastClock::start().now();
    let attempt = Redemption {
        claim: token.claim.hash(),
        redeemer: Some(TokenHash::of(b"proof")),
        token: TokenHash::of(b"token of the scratch guest"),
    };
    let granted = store.redeem_test_claim(attempt, now).await.ok()??;
    store.record_test_hello(granted.operation, "0.1.0".to_owned(), now).await.ok()?;
    if let Some(report) = report {
        store.record_test_report(granted.operation, report.clone(), now).await.ok()?;
    }
    Some(())
}

fn bridge() -> TestBridge {
    TestBridge {
        bridge: "hftest0".parse().unwrap(),
        guest: "10.254.254.2/30".parse().unwrap(),
        listener: "10.254.254.1:8443".parse().unwrap(),
    }
}

async fn trial(world: &World, ports: &Ports) -> Operation {
    let backup = ports.store.backups(guest(1).uid, 1).await.unwrap().remove(0);
    let mut place = world.policy().scratch.unwrap();
    place.speech = Some(bridge());
    Operation::RestoreTest(Box::new(RestoreTest {
        guest: guest(1).uid,
        name: guest(1).name,
        backup: TestedBackup {
            archive: backup.archive,
            taken_by: backup.taken_by,
            taken_at: backup.taken_at,
        },
        place,
    }))
}

async fn verdict(ports: &Ports, done: &OperationState) -> (TestVerdict, String) {
    let mut all = ports.store.restore_tests(guest(1).uid, 8).await.unwrap();
    assert_eq!(all.len(), 1, "{}", reported(done));
    let record = all.remove(0);
    (record.verdict, record.why)
}

/// The guest as it was, and no other guest; every token that the scratch guest was given is worthless now.
async fn only_the_guest(world: &World, ports: &Ports, done: &OperationState) {
    assert_eq!((world.guests().len(), world.disks().len()), (1, 3), "{}", reported(done));
    assert_eq!(ports.store.copies().await.unwrap(), Vec::new());
    let token = TokenHash::of(b"token of the scratch guest");
    assert_eq!(ports.store.test_holder(token).await.unwrap(), None);
    ports.store.verify_audit().await.unwrap();
}

fn canary(digit: &str) -> Canary {
    Canary { mount: None, sha256: digit.repeat(64).try_into().unwrap() }
}

fn report(health: StackHealth, canaries: &[Canary]) -> TestReport {
    let stacks = vec![StackCheck { stack: "shop".parse().unwrap(), health, took_ms: 5 }];
    TestReport { guest: None, stacks, canaries: canaries.to_vec(), reached: Vec::new() }
}

/// A backup with the guest's programs stopped, whose controller reported one canary.
async fn quiesced(ports: &Ports) {
    let operation =
        Operation::QuiescedBackup(QuiescedBackup { backup: asked_backup(), bound: QuiesceBound::usual() });
    let progress = open(ports, 7, operation).await;
    let id = progress.id;
    let moment = || Moment { boot: ports.clock.boot_moment(), at: ports.clock.now() };
    let stands = QuiescedStacks { stacks: vec!["shop".parse().unwrap()], canaries: vec![canary("a")] };
    let play = async {
        let mut changes = ports.store.changes();
        for (phase, said) in [
            (WindowPhase::Granted, WindowEvent::Quiesced(stands)),
            (
                WindowPhase::Captured,
                WindowEvent::Released(Restarted { down: Vec::new(), begun_ago: Some(Duration::ZERO) }),
            ),
        ] {
            loop {
                changes.mark_unchanged();
                let look = ports.store.look_at_window(id).await.unwrap();
                if look.is_some_and(|look| look.view(&ports.clock.boot_moment()).phase == phase) {
                    break;
                }
                changes.changed().await.unwrap();
            }
            ports.store.say_of_window(id, said, moment()).await.unwrap();
        }
    };
    let (done, ()) = tokio::join!(run(ports, progress), play);
    assert_eq!(done.unwrap().status(), Status::Done);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_owner_controller_finds_everything_as_it_was_is_proved() {
    let world = World::start().await;
    let ports = made(&world).await;
    quiesced(&ports).await;
    let before = world.guests();
    let _scratch = ScratchGuest::start(&ports, Some(report(StackHealth::Healthy, &[canary("a")])));
    let done = end(&ports, 1, trial(&world, &ports).await).await;
    assert_eq!(done.status(), Status::Done, "{}", reported(&done));
    let (verdict, why) = verdict(&ports, &done).await;
    assert_eq!(verdict, TestVerdict::Proved, "{why}");
    assert!(why.contains("canaries as they were: 1"), "{why}");
    assert_eq!(world.guests(), before);
    let proofs = ports.store.backups(guest(1).uid, 8).await.unwrap();
    assert_eq!(proofs.len(), 2);
    only_the_guest(&world, &ports, &done).await;
}

/// It boots, its programs run, and its content is not what was there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_canary_that_changed_fails_the_test() {
    let world = World::start().await;
    let ports = made(&world).await;
    quiesced(&ports).await;
    let _scratch = ScratchGuest::start(&ports, Some(report(StackHealth::Healthy, &[canary("b")])));
    let done = end(&ports, 1, trial(&world, &ports).await).await;
    let (verdict, why) = verdict(&ports, &done).await;
    assert_eq!(verdict, TestVerdict::Failed, "{why}");
    only_the_guest(&world, &ports, &done).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_way_to_say_less_has_its_word() {
    let unwell = StackHealth::Unhealthy { why: "no answer on port 80".to_owned() };
    let reached = TestReport { reached: vec![8006], ..report(StackHealth::Healthy, &[]) };
    for (said, word, part) in [
        (Some(report(StackHealth::Healthy, &[])), TestVerdict::Proved, "own check: 1"),
        (Some(report(unwell, &[])), TestVerdict::Failed, "no answer on port 80"),
        (Some(reached), TestVerdict::NotRun, "port 8006"),
        (None, TestVerdict::Failed, "did not report"),
    ] {
        let world = World::start().await;
        let ports = Ports { clock: Arc::new(FastClock::times(400)), ..made(&world).await };
        let _scratch = ScratchGuest::start(&ports, said);
        let done = end(&ports, 1, trial(&world, &ports).await).await;
        assert_eq!(done.status(), Status::Done, "{}", reported(&done));
        let (verdict, why) = verdict(&ports, &done).await;
        assert_eq!(verdict, word, "{why}");
        assert!(why.contains(part), "{why}");
        only_the_guest(&world, &ports, &done).await;
    }
}

/// No controller calls: the verdict is only what is seen from outside.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_without_a_controller_boots_and_no_more() {
    let world = World::start().await;
    let ports = Ports { clock: Arc::new(FastClock::times(400)), ..made(&world).await };
    let done = end(&ports, 1, trial(&world, &ports).await).await;
    let (verdict, why) = verdict(&ports, &done).await;
    assert_eq!(verdict, TestVerdict::BootedOnly, "{why}");
    only_the_guest(&world, &ports, &done).await;
}

/// A bridge that is missing, or that leads to another network: nothing is restored at all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_bridge_of_its_own_nothing_is_tried() {
    for (others, part) in
        [(Some("enp1s0"), "enp1s0 is plugged into hftest0"), (None, "there is no bridge hftest0")]
    {
        let world = World::start().await;
        let ports = made(&world).await;
        let brif = world.dir.path().join("net/hftest0/brif");
        match others {
            Some(name) => std::fs::write(brif.join(name), "").unwrap(),
            None => std::fs::remove_dir_all(brif.parent().unwrap()).unwrap(),
        }
        let done = end(&ports, 1, trial(&world, &ports).await).await;
        assert_eq!(done.status(), Status::Undone, "{}", reported(&done));
        let (verdict, why) = verdict(&ports, &done).await;
        assert_eq!(verdict, TestVerdict::NotRun, "{why}");
        assert!(why.contains(part), "{why}");
        only_the_guest(&world, &ports, &done).await;
    }
}

/// A network is plugged in after the restore: it is not started, and that does not count against the backup.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bridge_that_leads_somewhere_after_the_restore_is_not_the_backups_fault() {
    let world = World::start().await;
    drop(made(&world).await);
    let port = world.dir.path().join("net/hftest0/brif/enp1s0");
    let hand = HandAt::doing("confirm_isolated", move || std::fs::write(port, "").unwrap());
    let ports = world.ports(hand).await;
    let done = end(&ports, 1, trial(&world, &ports).await).await;
    assert_eq!(done.status(), Status::Undone, "{}", reported(&done));
    assert!(done.restored_by().is_some(), "{}", reported(&done));
    let (verdict, why) = verdict(&ports, &done).await;
    assert_eq!(verdict, TestVerdict::NotRun, "{why}");
    assert!(why.contains("enp1s0 is plugged into hftest0"), "{why}");
    only_the_guest(&world, &ports, &done).await;
}
