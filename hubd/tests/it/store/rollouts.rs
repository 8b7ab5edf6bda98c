//! Rollouts over many hosts, with restarts between all steps.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use holdfast_protocol::checkin::Coverage;
use holdfast_protocol::desired::Desired;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::host_label::{self, LabelChange, LabelError};
use holdfast_protocol::id::HostId;
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::release::VersionNumber;
use holdfast_protocol::release::rollout::{
    OnFailure, RolloutHostState, RolloutRequest, RolloutState, RolloutSubject, RolloutTimes, RolloutView,
    WaitReason, WaveHosts, WaveRequest,
};
use holdfast_protocol::report::{AgentBuilds, AgentSection, FailedRelease};
use hubd::domain::desired::IfMatch;
use hubd::domain::identity::Presented;
use hubd::domain::rollout::action::Action;
use hubd::store::{
    AskingHost, Checkin, IncidentFilter, IncidentRecord, PlanRolloutError, Put, SectionTexts, WriteError,
};

use serde_json::json;

use super::fixture::{CORRELATION, Fixture, at, by, checkin, fresh_key, host_id, named};
use super::releases::new;
use crate::releases::program;

const VERSION: VersionNumber = VersionNumber::new(2026, 11, 1);

fn wave(hosts: WaveHosts, max_failures: u32) -> WaveRequest {
    WaveRequest { hosts, max_failures, soak_s: 600, timeout_s: 3_600 }
}

/// A store whose hosts take what they are offered.
struct Fleet {
    fixture: Fixture,
    hosts: Vec<HostId>,
    manifest: Sha256Text,
    /// Of each host the number of its last report.
    sequences: BTreeMap<HostId, u64>,
}

impl Fleet {
    async fn of(count: u128, fixture: Fixture) -> Self {
        let release = new(1, 1, &[("agentd", &program(10))]);
        let manifest = release.manifest_sha256.clone();
        fixture.store.put_release(by(1), release, u64::MAX).await.ok().unwrap();
        let mut hosts = Vec::new();
        for number in 1..=count {
            hosts.push(fixture.enrol(&format!("box{number:03}"), host_id(number), &fresh_key()).await.host);
        }
        Self { fixture, hosts, manifest, sequences: BTreeMap::new() }
    }

    async fn plan_in(&self, waves: Vec<WaveRequest>, times: RolloutTimes) -> RolloutView {
        let request = RolloutRequest {
            version: VERSION,
            subject: RolloutSubject::Agent,
            waves,
            times,
            on_failure: OnFailure::Hold,
        };
        self.fixture.store.plan_rollout(by(2), request).await.ok().unwrap()
    }

    async fn plan(&self, waves: Vec<WaveRequest>) -> Result<RolloutView, WriteError<PlanRolloutError>> {
        self.fixture
            .store
            .plan_rollout(
                by(2),
                RolloutRequest {
                    version: VERSION,
                    subject: RolloutSubject::Agent,
                    waves,
                    times: RolloutTimes::default(),
                    on_failure: OnFailure::Hold,
                },
            )
            .await
    }

    async fn act(&self, number: u32, action: Action, second: i64) -> RolloutView {
        let done = self.fixture.store.act_on_rollout(by(second), number, action).await;
        done.ok().unwrap().unwrap()
    }

    async fn look(&self, number: u32, second: i64) -> RolloutView {
        self.fixture
            .store
            .evaluate_rollouts(&self.fixture.term().await, at(second), CORRELATION)
            .await
            .unwrap();
        self.fixture.store.rollout(number, at(second)).await.unwrap().unwrap()
    }

    async fn is_offered(&self, host: HostId, second: i64) -> bool {
        let presented = Presented { host, generation: 1 };
        let asking = AskingHost { presented, at: at(second), correlation: CORRELATION };
        self.fixture.store.release_offered_to(asking).await.ok().unwrap().release.is_some()
    }

    async fn offered(&self) -> Vec<usize> {
        self.offered_when(5).await
    }

    async fn offered_when(&self, second: i64) -> Vec<usize> {
        let mut offered = Vec::new();
        for (index, host) in self.hosts.iter().enumerate() {
            if self.is_offered(*host, second).await {
                offered.push(index);
            }
        }
        offered
    }

    async fn firing(&self) -> Vec<String> {
        let all = self.fixture.store.incidents(IncidentFilter::Firing.into(), None, 10).await.unwrap();
        let text = |one: IncidentRecord| {
            let incident = one.incident;
            format!("{} {}: {}", incident.code, incident.subject, incident.message.as_str())
        };
        all.into_iter().map(text).collect()
    }

    async fn report(&mut self, host: HostId, builds: AgentBuilds) {
        let sequence = self.sequences.entry(host).or_default();
        *sequence += 1;
        let agent = AgentSection {
            version: "2026.10.0".to_owned(),
            started_at: at(0),
            problems: Vec::new(),
            unobserved_since: None,
            recipient: None,
            maintenance: None,
            tunnels: Vec::new(),
            builds: Some(builds),
        };
        let sections =
            SectionTexts { agent: Some(serde_json::to_string(&agent).unwrap()), ..SectionTexts::default() };
        let mut report = Checkin { sections, ..checkin(host, 1, *sequence) };
        report.arriving.coverage = Coverage::Full;
        self.fixture.store.check_in(report).await.unwrap().unwrap();
    }

    /// Hosts that are offered the release take it; those for which `fails` says so fail.
    async fn take(&mut self, fails: impl Fn(usize) -> bool) {
        for index in self.offered().await {
            let failed = FailedRelease {
                version: VERSION,
                manifest_sha256: self.manifest.clone(),
                why: "the process ended three times".to_owned(),
                way_back: None,
                at: None,
            };
            let builds = if fails(index) {
                AgentBuilds { failed: Some(failed), ..AgentBuilds::default() }
            } else {
                AgentBuilds { confirmed: Some(VERSION), ..AgentBuilds::default() }
            };
            let host = self.hosts[index];
            self.report(host, builds).await;
        }
    }

    /// The process ends and another one opens the same file.
    fn restart(&mut self) {
        self.fixture.restart();
    }
}

fn count(view: &RolloutView, wave: usize, state: RolloutHostState) -> usize {
    view.waves[wave].hosts.iter().filter(|host| host.state == state).count()
}

pub async fn a_defect_in_the_second_wave_of_200_hosts_reaches_no_third(fixture: Fixture) {
    let mut fleet = Fleet::of(200, fixture).await;
    let waves = vec![wave(WaveHosts::Count(5), 0), wave(WaveHosts::Count(45), 2), wave(WaveHosts::Rest, 10)];
    let planned = fleet.plan(waves).await.ok().unwrap();
    let sizes: Vec<usize> = planned.waves.iter().map(|wave| wave.hosts.len()).collect();
    assert_eq!((planned.state, sizes), (RolloutState::Planned, vec![5, 45, 150]));
    fleet.restart();
    assert!(fleet.offered().await.is_empty(), "a plan offers nothing");

    let number = planned.number;
    fleet.act(number, Action::Start, 100).await;
    fleet.restart();
    assert_eq!(fleet.offered().await, (0..5).collect::<Vec<_>>());
    fleet.take(|_| false).await;
    fleet.restart();
    let soaking = fleet.look(number, 200).await;
    assert_eq!(soaking.open.unwrap().settled_at, Some(at(200)));
    fleet.restart();
    assert_eq!(fleet.look(number, 799).await.open.unwrap().number, 1, "it soaks over a restart");
    assert_eq!(fleet.offered().await.len(), 5);
    assert_eq!(fleet.look(number, 800).await.open.unwrap().number, 2);
    fleet.restart();
    assert_eq!(fleet.offered().await, (0..50).collect::<Vec<_>>());

    // The defect shows on three hosts of the second wave, where two may fail.
    fleet.take(|index| [7, 20, 33].contains(&index)).await;
    fleet.restart();
    let held = fleet.look(number, 900).await;
    assert_eq!(held.state, RolloutState::Held);
    let reason = held.reason.clone().unwrap();
    for part in ["wave 2", "3 failed", "2 may", "box008", "box021", "box034", "the process ended three times"]
    {
        assert!(reason.contains(part), "{part}: {reason}");
    }
    assert_eq!((count(&held, 1, RolloutHostState::Failed), count(&held, 1, RolloutHostState::Done)), (3, 42));
    fleet.restart();
    assert!(fleet.offered().await.is_empty(), "nothing is offered any more");
    for second in [5_000, 50_000] {
        let still = fleet.look(number, second).await;
        assert_eq!((still.state, still.open.unwrap().number), (RolloutState::Held, 2));
        assert_eq!(count(&still, 2, RolloutHostState::Waiting), 150, "the third wave was never open");
    }
    fleet.fixture.timer(60_000).await.tick().await.unwrap();
    let alerts = fleet.firing().await;
    assert_eq!(alerts.len(), 1, "{alerts:?}");
    assert!(alerts[0].starts_with("ROLLOUT_HELD hub: rollout 1 of release 2026.11.1 is held"), "{alerts:?}");
    let aborted = fleet.act(number, Action::Abort, 60_000).await;
    assert_eq!(aborted.state, RolloutState::Aborted);
    assert_eq!(count(&aborted, 1, RolloutHostState::Done), 42, "who runs it goes on with it");
    fleet.restart();
    assert!(fleet.offered().await.is_empty());
    // What ended is over once it stayed so for a while.
    for second in [60_100, 70_000] {
        fleet.fixture.timer(second).await.tick().await.unwrap();
    }
    assert_eq!(fleet.firing().await, [""; 0]);
    let kinds = fleet.fixture.kinds().await;
    let told: Vec<&str> =
        kinds.iter().map(String::as_str).filter(|kind| kind.starts_with("rollout")).collect();
    assert_eq!(
        told,
        ["rollout_changed", "rollout_changed", "rollout_changed", "rollout_held", "rollout_changed"],
        "planned, started, second wave, held, aborted"
    );
}

pub async fn a_rollout_is_planned_paused_resumed_and_aborted(fixture: Fixture) {
    let mut fleet = Fleet::of(3, fixture).await;
    let store = fleet.fixture.store.clone();
    let waves = || vec![wave(WaveHosts::Named(vec!["box002".parse().unwrap()]), 0), wave(WaveHosts::Rest, 1)];
    let other = RolloutRequest {
        version: VersionNumber::new(2026, 11, 9),
        subject: RolloutSubject::Agent,
        waves: waves(),
        times: RolloutTimes::default(),
        on_failure: OnFailure::Hold,
    };
    let none = store.plan_rollout(by(2), other).await;
    assert!(matches!(none, Err(WriteError::Refused(PlanRolloutError::NoRelease { .. }))));
    let number = fleet.plan(waves()).await.ok().unwrap().number;
    let second = fleet.plan(waves()).await;
    assert!(matches!(second, Err(WriteError::Refused(PlanRolloutError::Unfinished { .. }))));
    assert!(store.act_on_rollout(by(3), number, Action::Pause).await.is_err(), "it does not run");
    assert!(store.act_on_rollout(by(3), 99, Action::Start).await.ok().unwrap().is_none());

    fleet.act(number, Action::Start, 10).await;
    assert_eq!(fleet.offered().await, [1]);
    fleet.act(number, Action::Pause, 20).await;
    assert!(fleet.offered().await.is_empty());
    assert_eq!(
        fleet.look(number, 90_000).await.state,
        RolloutState::Paused,
        "no time-out while it is paused"
    );
    fleet.act(number, Action::Resume, 90_000).await;
    assert_eq!(fleet.look(number, 93_599).await.state, RolloutState::Running);
    // The host takes nothing in its time.
    let held = fleet.look(number, 93_600).await;
    assert_eq!(held.state, RolloutState::Held);
    assert!(held.reason.unwrap().contains("box002 (it has not taken the release in time)"));
    let resumed = fleet.act(number, Action::Resume, 94_000).await;
    assert_eq!((resumed.state, count(&resumed, 0, RolloutHostState::Accepted)), (RolloutState::Running, 1));
    fleet.look(number, 94_000).await;
    assert_eq!(fleet.look(number, 94_600).await.open.unwrap().number, 2);
    assert_eq!(fleet.offered().await, [0, 1, 2], "the host of the first wave catches up");
    fleet.take(|_| false).await;
    fleet.look(number, 94_700).await;
    assert_eq!(fleet.look(number, 95_300).await.state, RolloutState::Finished);
    assert_eq!(fleet.offered().await, [0, 1, 2], "a host that is set up anew gets it too");
    assert_eq!(fleet.plan(waves()).await.ok().unwrap().number, number + 1);
}

fn wait(view: &RolloutView, name: &str) -> Option<(WaitReason, Option<i64>)> {
    let hosts = view.waves.iter().flat_map(|wave| &wave.hosts);
    let wait = hosts.into_iter().find(|host| host.host.as_str() == name).unwrap().wait?;
    Some((wait.why, wait.until.map(|until| until.duration_since(at(0)).as_secs())))
}

pub async fn waves_by_label_keep_to_windows_and_to_a_rate(fixture: Fixture) {
    let mut fleet = Fleet::of(5, fixture).await;
    let store = fleet.fixture.store.clone();
    let tier = |tier: &str| {
        let (key, value) = host_label::label(tier).unwrap();
        LabelChange { set: [(key, value)].into(), ..LabelChange::default() }
    };
    for name in ["box002", "box004"] {
        store.change_labels(by(2), named(name), tier("tier=canary")).await.ok().unwrap().unwrap();
    }
    let none = store.change_labels(by(2), named("box009"), tier("tier=canary")).await.ok().unwrap();
    assert!(none.is_none(), "there is no such host");
    let empty = store.change_labels(by(2), named("box001"), LabelChange::default()).await;
    assert!(matches!(empty, Err(WriteError::Refused(LabelError::Empty))));
    // The stories begin at 22:13:20 UTC: it opens after 6,400 s, for two hours.
    let windows = vec!["daily 00:00-02:00 UTC".parse().unwrap()].try_into().unwrap();
    store.set_update_windows(by(2), named("box004"), windows).await.ok().unwrap().unwrap();

    let times = RolloutTimes { per_hour: NonZeroU32::new(1), ..RolloutTimes::default() };
    let canary = WaveHosts::Labelled("tier=canary".parse().unwrap());
    let planned = fleet.plan_in(vec![wave(canary.clone(), 0), wave(WaveHosts::Rest, 0)], times.clone()).await;
    assert_eq!((&planned.waves[0].selects, &planned.times), (&Some(canary), &times));
    let number = planned.number;
    // Labels that change afterwards move no host to another wave.
    let removed = LabelChange { remove: tier("tier=x").set.into_keys().collect(), ..LabelChange::default() };
    store.change_labels(by(3), named("box004"), removed).await.ok().unwrap().unwrap();
    store.change_labels(by(3), named("box001"), tier("tier=canary")).await.ok().unwrap().unwrap();

    let started = fleet.act(number, Action::Start, 100).await;
    assert_eq!(wait(&started, "box002"), Some((WaitReason::Host, Some(3_700))));
    assert_eq!(wait(&started, "box004"), Some((WaitReason::HostWindow, Some(6_400))));
    assert_eq!(wait(&started, "box001"), Some((WaitReason::Wave, None)));
    assert_eq!(fleet.offered_when(100).await, [1]);
    fleet.take(|_| false).await;
    fleet.restart();
    // Long after the time-out of the wave, in the window of the other host.
    assert_eq!(fleet.look(number, 12_000).await.state, RolloutState::Running);
    assert_eq!(fleet.offered_when(12_000).await, [1, 3]);
    assert_eq!(fleet.offered_when(13_600).await, [1], "its window is over");
    fleet.restart();
    // 1,600 s of the first night count, and 2,000 s of the second.
    let second = fleet.look(number, 94_799).await;
    assert_eq!(second.state, RolloutState::Running);
    assert_eq!(wait(&second, "box004"), Some((WaitReason::Host, Some(94_800))));
    let held = fleet.look(number, 94_800).await;
    assert_eq!(held.state, RolloutState::Held);
    assert!(held.reason.unwrap().contains("box004 (it has not taken the release in time)"));

    fleet.act(number, Action::Resume, 94_800).await;
    let soaking = fleet.look(number, 94_800).await;
    assert_eq!(soaking.next_wave_at, Some(at(95_400)));
    assert_eq!(wait(&soaking, "box001"), Some((WaitReason::Wave, Some(95_400))));
    let opened = fleet.look(number, 95_400).await;
    assert_eq!(opened.open.unwrap().number, 2);
    assert_eq!(wait(&opened, "box003"), Some((WaitReason::Rate, Some(99_000))));
    assert_eq!(wait(&opened, "box005"), Some((WaitReason::Rate, Some(102_600))));
    fleet.report(fleet.hosts[0], AgentBuilds { confirmed: Some(VERSION), ..AgentBuilds::default() }).await;
    fleet.restart();
    fleet.look(number, 98_999).await;
    assert_eq!(fleet.offered_when(98_999).await, [0, 1, 3], "one of the second wave in the first hour");
    fleet.look(number, 99_000).await;
    assert_eq!(fleet.offered_when(99_000).await, [0, 1, 2, 3]);
    let kinds = fleet.fixture.kinds().await;
    let count = |wanted: &str| kinds.iter().filter(|kind| *kind == wanted).count();
    assert_eq!((count("host_labels_changed"), count("host_windows_changed")), (4, 1));
}

pub async fn hosts_go_back_to_the_release_that_the_plan_names(fixture: Fixture) {
    let mut fleet = Fleet::of(4, fixture).await;
    let store = fleet.fixture.store.clone();
    let to = VersionNumber::new(2026, 11, 2);
    let plan = async |to: VersionNumber| {
        let waves = vec![wave(WaveHosts::Count(3), 0), wave(WaveHosts::Rest, 0)];
        let (times, on_failure) = (RolloutTimes::default(), OnFailure::RollBack(to));
        store
            .plan_rollout(
                by(2),
                RolloutRequest { version: VERSION, subject: RolloutSubject::Agent, waves, times, on_failure },
            )
            .await
    };
    let older = plan(VERSION).await;
    assert!(matches!(older, Err(WriteError::Refused(PlanRolloutError::OlderFallback { .. }))));
    let unknown = plan(to).await;
    assert!(
        matches!(unknown, Err(WriteError::Refused(PlanRolloutError::NoRelease { version })) if version == to)
    );
    let release = new(2, 1, &[("agentd", &program(11))]);
    store.put_release(by(3), release, u64::MAX).await.ok().unwrap();
    let number = plan(to).await.ok().unwrap().number;

    fleet.act(number, Action::Start, 100).await;
    let took = AgentBuilds { confirmed: Some(VERSION), ..AgentBuilds::default() };
    fleet.report(fleet.hosts[0], took).await;
    fleet.take(|index| index == 1).await;
    fleet.restart();
    let back = fleet.look(number, 200).await;
    assert_eq!((back.state, back.on_failure), (RolloutState::RollingBack, OnFailure::RollBack(to)));
    fleet.restart();
    assert_eq!(fleet.offered().await, [0, 1, 2], "not who was never offered the release");
    let presented = Presented { host: fleet.hosts[0], generation: 1 };
    let asking = AskingHost { presented, at: at(300), correlation: CORRELATION };
    let offer = fleet.fixture.store.release_offered_to(asking).await.ok().unwrap().release.unwrap();
    assert_eq!(offer.version, to);
    let gone_back = || AgentBuilds { confirmed: Some(to), ..AgentBuilds::default() };
    for index in [0, 1] {
        fleet.report(fleet.hosts[index], gone_back()).await;
    }
    let view = fleet.look(number, 400).await;
    let states: Vec<_> = view.waves[0].hosts.iter().map(|host| (host.state, host.why.as_deref())).collect();
    let kept = Some("before: the process ended three times");
    assert_eq!(
        states,
        [(RolloutHostState::Back, None), (RolloutHostState::Back, kept), (RolloutHostState::Waiting, None),],
        "the reason is kept although the host reports it no more"
    );
    let store = fleet.fixture.store.clone();
    assert!(store.act_on_rollout(by(500), number, Action::Resume).await.is_err());
    assert_eq!(fleet.act(number, Action::Abort, 500).await.state, RolloutState::Aborted);
    assert!(fleet.offered().await.is_empty());
}

pub async fn guest_agents_are_asked_for_in_the_documents_of_a_wave(fixture: Fixture) {
    let mut fleet = Fleet::of(3, fixture).await;
    let store = fleet.fixture.store.clone();
    let release = new(1, 2, &[("guestd", &program(12))]);
    store.put_release(by(3), release, u64::MAX).await.ok().unwrap();
    for name in ["box001", "box003"] {
        let document = json!({ "schema": "holdfast.desired/v1", "generation": 1, "poll_interval_s": 30, "guests": [{
            "uid": host_id(77), "name": "web-1", "customer": "acme", "run": "running", "golden": "2026.11.1",
            "size": { "cores": 1, "memory_mib": 512, "swap_mib": 0, "rootfs_gib": 8 },
            "network": { "bridge": "vmbr0", "address": "10.0.0.5/24" } }] });
        let text = document.to_string();
        let put = Put {
            host: named(name),
            seen: IfMatch(Generation::NONE),
            reason: "the story says so".to_owned().try_into().unwrap(),
            desired: Desired::parse(text.as_bytes()).unwrap(),
            text,
        };
        store.put_desired(by(4), put).await.ok().unwrap().unwrap();
    }
    let request = |on_failure| RolloutRequest {
        version: VERSION,
        subject: RolloutSubject::GuestAgent,
        waves: vec![wave(WaveHosts::Count(2), 0), wave(WaveHosts::Rest, 0)],
        times: RolloutTimes::default(),
        on_failure,
    };
    let back = store.plan_rollout(by(5), request(OnFailure::RollBack(VersionNumber::new(2026, 11, 2)))).await;
    assert!(matches!(back, Err(WriteError::Refused(PlanRolloutError::GuestAgentsGoBack))));
    let number = store.plan_rollout(by(5), request(OnFailure::Hold)).await.ok().unwrap().number;
    fleet.act(number, Action::Start, 100).await;
    fleet.restart();
    let newest =
        async |fleet: &Fleet, name: &str| fleet.fixture.store.desired(named(name)).await.unwrap().unwrap();
    let asked = newest(&fleet, "box001").await.unwrap();
    assert_eq!((asked.generation, asked.author.as_str()), (Generation::new(2), "rollout-1"));
    assert_eq!(asked.reason.as_str(), "rollout 1 brings the guest agent of release 2026.11.1");
    let document: serde_json::Value = serde_json::from_str(&asked.document).unwrap();
    let controller = json!({ "version": "2026.11.1", "sha256": Sha256Text::of(&program(12)) });
    assert_eq!(document["guests"][0]["controller"], controller);
    assert!(newest(&fleet, "box002").await.is_none(), "a host without a document gets none");
    let other = newest(&fleet, "box003").await.unwrap();
    assert_eq!(other.generation, Generation::new(1), "its wave is not open");
    assert!(fleet.offered().await.is_empty(), "no agent of a host is offered anything");

    // The host of the first wave that has a guest reads the document, and then its guest says hello with the new one.
    let host = fleet.hosts[0];
    let report = async |fleet: &mut Fleet, version: &str| {
        let sequence = fleet.sequences.entry(host).or_default();
        *sequence += 1;
        let guest = json!([{ "uid": host_id(77), "name": "web-1", "status": "managed", "run": "running",
            "wanted": "running", "controller": { "version": version, "hello_at": at(150), "health": "well" } }]);
        let sections = SectionTexts { guests: Some(guest.to_string()), ..SectionTexts::default() };
        let report = Checkin { sections, held: Generation::new(2), ..checkin(host, 1, *sequence) };
        fleet.fixture.store.check_in(report).await.unwrap().unwrap();
    };
    report(&mut fleet, "2026.10.0").await;
    let view = fleet.look(number, 200).await;
    let states: Vec<_> = view.waves[0].hosts.iter().map(|host| host.state).collect();
    assert_eq!(states, [RolloutHostState::Waiting, RolloutHostState::Done], "one has no guests");
    report(&mut fleet, "2026.11.1").await;
    assert_eq!(fleet.look(number, 300).await.open.unwrap().settled_at, Some(at(300)));
    assert_eq!(fleet.look(number, 900).await.open.unwrap().number, 2);
    assert_eq!(newest(&fleet, "box003").await.unwrap().generation, Generation::new(2));
}
