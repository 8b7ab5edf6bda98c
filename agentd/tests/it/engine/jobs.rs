//! Tests of signed jobs, from text to effect.

use agentd::model::records::{BackupWhy, Place};
use agentd::port::pve::PveError;
use agentd::port::pve::config::Switch;
use agentd::port::store::job_intake::{Outcome, take};
use agentd::port::store::roster::RosterTexts;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signer as _, SigningKey};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::{DesiredGuest, RunState};
use holdfast_protocol::id::{HostId, JobId};
use holdfast_protocol::job::act::{ArchiveText, BackupLoss, args};
use holdfast_protocol::job::stamp::{Nonce, UtcSecond};
use holdfast_protocol::job::{
    Act, Draft, Fingerprint, JobReport, JobState, Order, QueuedJob, SeenGuest, SeenHost, SignedJob, Target,
    Verb,
};
use holdfast_protocol::protection::Tier;
use holdfast_protocol::report::{GuestStatus, Running, WaitingForSignature};
use jiff::SignedDuration;
use pve_sim::fault::admin::{Edit, apply};
use sha2::{Digest as _, Sha512};
use uuid::Uuid;

use super::drift::{Agent, report, serves, start};
use super::world::{ARCHIVE, World, guest, uid, vmid};

fn key() -> SigningKey {
    SigningKey::from_bytes(&[1; 32])
}

fn string(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(u32::try_from(bytes.len()).unwrap().to_be_bytes());
    out.extend(bytes);
}

pub fn public() -> Vec<u8> {
    let mut blob = Vec::new();
    string(&mut blob, b"ssh-ed25519");
    string(&mut blob, key().verifying_key().as_bytes());
    blob
}

/// As `ssh-keygen -Y sign -n holdfast-job` does.
fn sign(bytes: &[u8]) -> String {
    let mut signed = b"SSHSIG".to_vec();
    for part in [b"holdfast-job".as_slice(), b"", b"sha512", Sha512::digest(bytes).as_slice()] {
        string(&mut signed, part);
    }
    let mut signature = Vec::new();
    string(&mut signature, b"ssh-ed25519");
    string(&mut signature, &key().sign(&signed).to_bytes());
    let mut all = b"SSHSIG".to_vec();
    all.extend(1_u32.to_be_bytes());
    for part in [&public()[..], b"holdfast-job", b"", b"sha512", &signature] {
        string(&mut all, part);
    }
    let text = STANDARD.encode(all);
    let lines: Vec<&str> =
        text.as_bytes().chunks(70).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN SSH SIGNATURE-----\n{}\n-----END SSH SIGNATURE-----\n", lines.join("\n"))
}

fn host() -> HostId {
    HostId::new(Uuid::from_u128(77))
}

/// The host as it knows itself.
fn own() -> SeenHost {
    SeenHost { name: "box7".parse().unwrap(), fingerprint: "4f2a-9c01-77de-b3a8-0c11".parse().unwrap() }
}

/// Alice may sign everything; what destroys waits a second.
pub async fn lay_down(agent: &Agent) {
    let operators = format!("alice ssh-ed25519 {}\n", STANDARD.encode(public()));
    let policy =
        "version = 1\n[verbs.delete_backup]\ndelay_s = 1\n[verbs.destroy_guest]\ndelay_s = 1\n[verbs.loosen_policy]\ndelay_s = 1\n"
            .to_owned();
    agent.ports.store.lay_down(RosterTexts { operators, policy }, agent.ports.clock.now()).await.unwrap();
}

/// Signs what waits, with the payload it was given.
pub async fn signed(agent: &Agent, waiting: &WaitingForSignature) -> QueuedJob {
    order(agent, Draft::parse(waiting.payload.as_bytes()).unwrap()).await
}

/// Signs what an operator thought of.
pub async fn order(agent: &Agent, draft: Draft) -> QueuedJob {
    let now = agent.ports.clock.now();
    let id = JobId::new(Uuid::new_v4());
    let order = Order {
        job_id: id,
        host: Some(own()),
        host_id: host(),
        host_epoch: agent.ports.store.trust_state().await.unwrap().epoch,
        not_before: UtcSecond::new(now - SignedDuration::from_secs(60)).unwrap(),
        expires_at: UtcSecond::new(now + SignedDuration::from_hours(8)).unwrap(),
        nonce: Nonce::try_from(Uuid::new_v4().simple().to_string()).unwrap(),
        reason: "the customer left".to_owned().try_into().unwrap(),
    };
    let payload = draft.ordered(order).to_json().unwrap().into_bytes();
    let signatures = vec![sign(&payload)];
    QueuedJob {
        id,
        blob: SignedJob { payload, signatures, consents: Vec::new() }.to_json().unwrap(),
        correlation_id: None,
    }
}

pub async fn leave(agent: &Agent, mail: &QueuedJob) -> Outcome {
    take(&agent.ports.store, (host(), &own()), mail, agent.ports.clock.now()).await.unwrap()
}

/// Waits until a job has ended, and gives the report about it.
pub async fn ended(agent: &Agent, id: JobId) -> JobReport {
    let mut changes = agent.ports.store.changes();
    let waiting = async {
        loop {
            changes.borrow_and_update();
            let reports = agent.ports.store.job_reports().await.unwrap();
            let found = reports.into_iter().find(|report| report.id == id).unwrap();
            if found.state.is_end() {
                return found;
            }
            changes.changed().await.unwrap();
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), waiting).await.unwrap()
}

pub fn waits(verb: Verb) -> impl Fn(&agentd::model::view::HostSnapshot) -> bool {
    move |view| found(view, verb).is_some()
}

pub fn found(view: &agentd::model::view::HostSnapshot, verb: Verb) -> Option<&WaitingForSignature> {
    let is = |one: &&WaitingForSignature| {
        Draft::parse(one.payload.as_bytes()).is_ok_and(|draft| draft.act.verb() == verb)
    };
    view.waiting.iter().find(is)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_goes_by_a_signature_once_and_only_as_it_was_seen() {
    let world = World::start().await;
    let mut agent = start(&world).await;
    lay_down(&agent).await;
    agent.goal(1, vec![guest(1), guest(2)]).await;
    agent.until("two guests that serve", |view| (1..=2).all(|n| serves(view, n))).await;
    agent.goal(2, vec![guest(1)]).await;
    let view = agent.until("the second may be let go", waits(Verb::DestroyGuest)).await;
    let waiting = found(&view, Verb::DestroyGuest).unwrap().clone();

    // Signed, and then something changed: nothing is done, and this is reported.
    let early = signed(&agent, &waiting).await;
    let number = report(&view, 2).unwrap().vmid.unwrap();
    let unused = Edit::Set {
        vmid: number.number(),
        key: "unused0".to_owned(),
        value: "tank:300/vm-300-disk-9.raw".to_owned(),
    };
    apply(&world.sim.node, &unused).unwrap();
    assert!(matches!(leave(&agent, &early).await, Outcome::Taken));
    let end = ended(&agent, early.id).await;
    assert_eq!((end.state, end.operation), (JobState::Failed, None), "no operation was even opened");
    assert_eq!(end.problem.unwrap().code, ErrorCode::TargetChanged);
    assert!(world.guests().len() == 2, "the guest is still there");
    apply(&world.sim.node, &Edit::Unset { vmid: number.number(), key: "unused0".to_owned() }).unwrap();

    // As it is now, and a thousand times: one destroy.
    let good = signed(&agent, &waiting).await;
    assert!(matches!(leave(&agent, &good).await, Outcome::Taken));
    for _ in 0..200 {
        assert!(matches!(leave(&agent, &good).await, Outcome::Known));
    }
    let end = ended(&agent, good.id).await;
    assert_eq!(end.state, JobState::Done, "{:?}", end.problem);
    assert_eq!(world.guests().len(), 1);
    let place = agent.ports.store.guest(uid(2)).await.unwrap().unwrap().place;
    assert!(matches!(place, Place::Gone { by } if by.uuid() == good.id.uuid()), "{place:?}");
    assert!(matches!(leave(&agent, &good).await, Outcome::Known), "and afterwards");
    let view = agent.until("nothing waits", |view| view.waiting.is_empty()).await;
    assert!(serves(&view, 1), "{view:#?}");
    assert!(agent.ports.store.verify_audit().await.unwrap() > 20);
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bulk_change_goes_on_by_a_signature_for_these_guests_and_this_document() {
    let world = World::start().await;
    let mut agent = start(&world).await;
    lay_down(&agent).await;
    let goal = |stopped: u8| -> Vec<DesiredGuest> {
        let run = |n: u8| if n <= stopped { RunState::Stopped } else { RunState::Running };
        (1..=3).map(|n| DesiredGuest { run: run(n), ..guest(n) }).collect()
    };
    agent.goal(1, goal(0)).await;
    agent.until("three guests that serve", |view| (1..=3).all(|n| serves(view, n))).await;
    agent.goal(2, goal(3)).await;
    let view = agent.until("one of them is held", waits(Verb::ReleaseBrake)).await;
    let mail = signed(&agent, found(&view, Verb::ReleaseBrake).unwrap()).await;
    assert!(matches!(leave(&agent, &mail).await, Outcome::Taken));
    let stands = |view: &agentd::model::view::HostSnapshot, n: u8| {
        report(view, n)
            .is_some_and(|report| report.run == Running::Stopped && report.status == GuestStatus::Managed)
    };
    agent.until("all three stand still", |view| (1..=3).all(|n| stands(view, n))).await;
    assert_eq!(ended(&agent, mail.id).await.state, JobState::Done);
    let first = report(&agent.view.borrow(), 1).unwrap().vmid.unwrap();
    let guarded = world.pve().guest_config(first).await.unwrap();
    assert_eq!(guarded.protection, Switch::On);
    agent.stop().await;
}

/// A signed restore becomes one copy next to the guest, under the job's own id; a stranger's archive becomes none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_is_restored_as_a_copy_by_a_signature() {
    let world = World::start().await;
    let mut agent = start(&world).await;
    lay_down(&agent).await;
    agent.goal(1, vec![guest(1)]).await;
    agent.until("a guest that serves", |view| serves(view, 1)).await;
    let volumes = world.pve().guest_config(vmid(300)).await.unwrap().volumes();
    let draft = |archive: &str| Draft {
        target: Target::Guest {
            uid: uid(1),
            vmid: Some(vmid(300)),
            fingerprint: Fingerprint {
                name: guest(1).name,
                customer: Some(guest(1).customer),
                volumes: volumes.iter().map(ToString::to_string).collect(),
            },
        },
        act: Act::Restore(args::Restore { archive: archive.to_owned().try_into().unwrap() }),
    };

    let golden = order(&agent, draft(ARCHIVE)).await;
    assert!(matches!(leave(&agent, &golden).await, Outcome::Taken));
    let end = ended(&agent, golden.id).await;
    assert_eq!(end.state, JobState::Failed, "{:?}", end.problem);
    assert_eq!(world.restores(301).await, 0);

    let own = agent.ports.store.backups(uid(1), 1).await.unwrap().remove(0).archive;
    let good = order(&agent, draft(own.as_str())).await;
    for _ in 0..20 {
        assert!(matches!(leave(&agent, &good).await, Outcome::Taken | Outcome::Known));
    }
    let end = ended(&agent, good.id).await;
    assert_eq!(end.state, JobState::Done, "{:?}", end.problem);
    let copies = agent.ports.store.copies().await.unwrap();
    assert_eq!((copies.len(), copies[0].made_by.uuid()), (1, good.id.uuid()));
    assert_eq!((world.restores(301).await, world.guests().len()), (1, 2));
    let copy = |view: &agentd::model::view::HostSnapshot| {
        let is = |report: &holdfast_protocol::report::GuestReport| {
            report.vmid == Some(vmid(301)) && report.status == GuestStatus::RestoredCopy
        };
        view.guests.iter().any(is) && serves(view, 1)
    };
    agent.until("it is told beside its guest", copy).await;
    agent.stop().await;
}

/// A volume changes hands by a signature that names both guests. A volume that differs from what was signed for, or of
/// two customers, does not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_volume_is_handed_over_by_a_signature_over_both_guests() {
    let world = World::start().await;
    let mut agent = start(&world).await;
    lay_down(&agent).await;
    let taker = |n: u8| {
        let mut taker = guest(n);
        taker.volumes.truncate(1);
        taker
    };
    let other = DesiredGuest { customer: "globex".parse().unwrap(), ..taker(3) };
    let goal = |run: RunState| {
        [guest(1), taker(2), other.clone()].map(|guest| DesiredGuest { run, ..guest }).to_vec()
    };
    agent.goal(1, goal(RunState::Running)).await;
    agent.until("three guests that serve", |view| (1..=3).all(|n| serves(view, n))).await;
    let view = agent.view.borrow().clone();
    let seen = |n: u8| {
        let report = report(&view, n).unwrap();
        let volumes = report.volumes.iter().cloned().collect();
        SeenGuest {
            uid: uid(n),
            vmid: report.vmid.unwrap(),
            fingerprint: Fingerprint { name: guest(n).name, customer: report.customer.clone(), volumes },
        }
    };
    let bulk = world.pve().guest_config(seen(1).vmid).await.unwrap().mounts[&1].volume().unwrap().to_string();
    let draft = |from: u8, to: SeenGuest, volume: &str| Draft {
        target: seen(from).target(),
        act: Act::ReassignVolume(args::ReassignVolume { volume: volume.to_owned().try_into().unwrap(), to }),
    };
    let away = |outcome: Outcome| match outcome {
        Outcome::Away(why) => why.code(),
        other => panic!("{other:?}"),
    };
    // Refused on arrival: another customer's guest, the guest itself, one that is not ours, one with another name.
    let renamed = SeenGuest {
        fingerprint: Fingerprint { name: "web-9".parse().unwrap(), ..seen(2).fingerprint },
        ..seen(2)
    };
    let unknown = SeenGuest { uid: uid(9), ..seen(2) };
    for (to, code) in [
        (seen(3), ErrorCode::Forbidden),
        (seen(1), ErrorCode::Forbidden),
        (unknown, ErrorCode::TargetChanged),
        (renamed, ErrorCode::TargetChanged),
    ] {
        let mail = order(&agent, draft(1, to, &bulk)).await;
        assert_eq!(away(leave(&agent, &mail).await), code);
    }
    // Before the operation: one that runs.
    let mail = order(&agent, draft(1, seen(2), &bulk)).await;
    assert!(matches!(leave(&agent, &mail).await, Outcome::Taken));
    let end = ended(&agent, mail.id).await;
    assert_eq!(
        (end.state, end.operation, end.problem.unwrap().code),
        (JobState::Failed, None, ErrorCode::Locked)
    );

    // The request first: a guest that is stopped by hand while it should run is started again. The brake lets the agent
    // stop two of them itself.
    agent.goal(2, goal(RunState::Stopped)).await;
    let asked = |view: &agentd::model::view::HostSnapshot, n: u8| {
        report(view, n).is_some_and(|report| report.wanted == Some(RunState::Stopped))
    };
    agent.until("the request is in force", |view| (1..=3).all(|n| asked(view, n))).await;
    for n in 1..=3 {
        match world.pve().stop(seen(n).vmid).await {
            Ok(_) | Err(PveError::NotRunning { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    agent
        .ports
        .store
        .lay_down(
            RosterTexts {
                operators: format!("alice ssh-ed25519 {}\n", STANDARD.encode(public())),
                policy: "version = 2\n".to_owned(),
            },
            agent.ports.clock.now(),
        )
        .await
        .unwrap();
    let stands = |view: &agentd::model::view::HostSnapshot, n: u8| {
        report(view, n).is_some_and(|report| report.run == Running::Stopped)
    };
    agent.until("all stand still", |view| (1..=3).all(|n| stands(view, n))).await;
    // Other volumes than were signed for, a volume that is not the guest's.
    let more = SeenGuest {
        fingerprint: Fingerprint { volumes: ["tank:1/x.raw".to_owned()].into(), ..seen(2).fingerprint },
        ..seen(2)
    };
    for (to, volume) in [(more, bulk.as_str()), (seen(2), "tank:300/vm-300-disk-9.raw")] {
        let before = world.disks();
        let mail = order(&agent, draft(1, to, volume)).await;
        assert!(matches!(leave(&agent, &mail).await, Outcome::Taken));
        let end = ended(&agent, mail.id).await;
        let code = end.problem.unwrap().code;
        assert_eq!(
            (end.state, end.operation, code),
            (JobState::Failed, None, ErrorCode::TargetChanged),
            "{volume}"
        );
        assert_eq!(world.disks(), before, "{volume}");
    }
    let good = order(&agent, draft(1, seen(2), &bulk)).await;
    for _ in 0..20 {
        assert!(matches!(leave(&agent, &good).await, Outcome::Taken | Outcome::Known));
    }
    let end = ended(&agent, good.id).await;
    assert_eq!(
        (end.state, end.operation.map(|id| id.uuid())),
        (JobState::Done, Some(good.id.uuid())),
        "{:?}",
        end.problem
    );
    let taken = world.pve().guest_config(seen(2).vmid).await.unwrap();
    assert_eq!(taken.mounts[&1].mount.as_deref(), Some("/srv/media"));
    agent.stop().await;
}

/// What operators request although nothing is due: a backup of a tier, and a test of an existing backup.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tier_is_backed_up_and_a_backup_tried_by_a_signature() {
    let world = World::start().await;
    let mut agent = start(&world).await;
    lay_down(&agent).await;
    let policies = super::missing_guest::seldom(agent.ports.clock.now());
    agent.goal_under(1, policies, vec![DesiredGuest { policy: "usual".parse().ok(), ..guest(1) }]).await;
    let view = agent.until("a guest that serves", |view| serves(view, 1)).await;
    let volumes = report(&view, 1).unwrap().volumes.iter().cloned().collect();
    let fingerprint = Fingerprint { name: guest(1).name, customer: Some(guest(1).customer), volumes };
    let target = Target::Guest { uid: uid(1), vmid: Some(vmid(300)), fingerprint };
    let job = async |act| {
        let mail = order(&agent, Draft { target: target.clone(), act }).await;
        leave(&agent, &mail).await;
        ended(&agent, mail.id).await
    };
    let backup = job(Act::BackupNow(args::BackupNow { tier: Some(Tier::Local) })).await;
    assert_eq!(backup.state, JobState::Done, "{backup:?}");
    let newest = agent.ports.store.backups(uid(1), 1).await.unwrap().remove(0);
    assert_eq!((newest.why, newest.storage.as_str()), (BackupWhy::Asked, "backup2"));
    let nowhere = job(Act::BackupNow(args::BackupNow { tier: Some(Tier::OffSite) })).await;
    assert_eq!(nowhere.state, JobState::Failed, "{nowhere:?}");
    assert!(
        nowhere.problem.as_ref().unwrap().message.contains("no off-site backup is promised"),
        "{nowhere:?}"
    );

    let test = job(Act::RestoreTest(args::RestoreTest { tier: Some(Tier::Local) })).await;
    assert_eq!(test.state, JobState::Done, "{test:?}");
    let tests = agent.ports.store.restore_tests(uid(1), 9).await.unwrap();
    assert_eq!((tests.len(), &tests[0].archive), (1, &newest.archive), "{tests:#?}");
    let none = job(Act::RestoreTest(args::RestoreTest { tier: Some(Tier::OffSite) })).await;
    assert_eq!(none.problem.as_ref().unwrap().code, ErrorCode::NotFound, "{none:?}");
    agent.stop().await;
}

/// A backup is deleted by a signature that names it and what is lost with it; no signature deletes the last on its
/// storage.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_is_deleted_by_a_signature_that_says_what_is_lost() {
    let world = World::start().await;
    let mut agent = start(&world).await;
    lay_down(&agent).await;
    let policies = super::missing_guest::seldom(agent.ports.clock.now());
    agent.goal_under(1, policies, vec![DesiredGuest { policy: "usual".parse().ok(), ..guest(1) }]).await;
    let view = agent.until("a guest that serves", |view| serves(view, 1)).await;
    let volumes = report(&view, 1).unwrap().volumes.iter().cloned().collect();
    let fingerprint = Fingerprint { name: guest(1).name, customer: Some(guest(1).customer), volumes };
    let target = Target::Guest { uid: uid(1), vmid: Some(vmid(300)), fingerprint };
    let job = async |act| {
        let mail = order(&agent, Draft { target: target.clone(), act }).await;
        leave(&agent, &mail).await;
        ended(&agent, mail.id).await
    };
    let delete = |archive: &str, loses: &[BackupLoss]| {
        let archive = ArchiveText::try_from(archive.to_owned()).unwrap();
        Act::DeleteBackup(args::DeleteBackup { archive, loses: loses.iter().copied().collect() })
    };
    let backups = async || {
        let all = agent.ports.store.backups(uid(1), 9).await.unwrap();
        let names = all.iter().map(|backup| backup.archive.as_str().to_owned());
        names.collect::<std::collections::BTreeSet<_>>()
    };
    let why = |end: &JobReport| {
        assert_eq!(end.state, JobState::Failed, "{end:?}");
        end.problem.as_ref().unwrap().message.clone()
    };
    let first = backups().await.into_iter().next().unwrap();
    let only = job(delete(&first, &[BackupLoss::Newest, BackupLoss::OnlyHolder])).await;
    assert!(why(&only).contains("is the only backup of it on backup2"), "{only:?}");
    let backup = job(Act::BackupNow(args::BackupNow { tier: Some(Tier::Local) })).await;
    assert_eq!(backup.state, JobState::Done, "{backup:?}");
    let both = backups().await;
    let newest = both.iter().find(|name| **name != first).unwrap().clone();
    let test = job(Act::RestoreTest(args::RestoreTest { tier: Some(Tier::Local) })).await;
    assert_eq!(test.state, JobState::Done, "{test:?}");
    let unsaid = job(delete(&newest, &[BackupLoss::NewestProved])).await;
    assert!(why(&unsaid).contains("(newest)"), "{unsaid:?}");
    let strange = job(delete("backup2:backup/vzdump-lxc-300-none.tar.zst", &[])).await;
    assert!(why(&strange).contains("is no backup of it"), "{strange:?}");
    assert_eq!(backups().await, both, "nothing went");
    let gone = job(delete(&newest, &[BackupLoss::Newest, BackupLoss::NewestProved])).await;
    assert_eq!(gone.state, JobState::Done, "{gone:?}");
    assert_eq!(backups().await, [first.clone()].into());
    let listed = agent.ports.pve.storage_content(
        agentd::port::pve::Role::Operate,
        &"backup2".parse().unwrap(),
        agentd::port::pve::ContentKind::Backup,
        Some(vmid(300)),
    );
    let listed: Vec<String> = listed.await.unwrap().into_iter().map(|row| row.volid).collect();
    assert_eq!(listed, [first]);
    agent.stop().await;
}
