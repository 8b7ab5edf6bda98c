//! Tests of rollouts: tables, a defect over 200 hosts, and random lives.

use std::collections::BTreeSet;

use holdfast_protocol::condition::{ConditionCode, ReportedCondition, Severity, Subject};
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::release::VersionNumber;
use holdfast_protocol::release::rollout::{WaveHosts, WaveRequest};
use holdfast_protocol::report::{AgentBuilds, FailedRelease, RefusedRelease};
use uuid::Uuid;

use super::action::{Action, accepted_by_resuming, act};
use super::next::{Decision, apply, next};
use super::plan::{PlanError, plan};
use super::progress::{Contact, HostReport, Target, progress, taken_at};
use super::*;

const VERSION: VersionNumber = VersionNumber::new(2026, 12, 1);

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

fn wave(max_failures: u32, soak: i64, timeout: i64) -> WaveLimits {
    let seconds = SignedDuration::from_secs;
    WaveLimits { max_failures, soak: seconds(soak), timeout: seconds(timeout) }
}

fn host(number: u128, wave: usize, progress: Progress) -> HostFacts {
    let name = format!("box{number:03}").parse().unwrap();
    HostFacts { host: HostId::new(Uuid::from_u128(number)), name, wave, progress, failures: Failures::Count }
}

fn failed() -> Progress {
    Progress::Failed("it ended three times".to_owned())
}

fn running(index: usize, opened: i64, settled: Option<i64>) -> Stage {
    Stage::Running(OpenWave { index, opened_at: at(opened), settled_at: settled.map(at) })
}

#[test]
fn a_wave_waits_settles_soaks_and_opens_the_next() {
    let waves = vec![wave(0, 60, 600), wave(1, 0, 600)];
    let decide = |stage: Stage, hosts: &[HostFacts], now| {
        next(&Rollout { stage, waves: waves.clone() }, hosts, at(now))
    };
    let done = [host(1, 0, Progress::Done), host(2, 1, Progress::Waiting)];
    let waits = [host(1, 0, Progress::Waiting), host(2, 1, failed())];
    assert_eq!(decide(running(0, 0, None), &waits, 599), Decision::Stay, "a later wave counts for nothing");
    assert_eq!(decide(running(0, 0, None), &done, 10), Decision::Settle);
    assert_eq!(decide(running(0, 0, Some(10)), &done, 69), Decision::Stay, "it soaks");
    assert_eq!(decide(running(0, 0, Some(10)), &done, 70), Decision::Advance);
    let silent = [host(1, 0, Progress::Silent), host(2, 1, Progress::Waiting)];
    assert_eq!(
        decide(running(0, 0, Some(10)), &silent, 70),
        Decision::Unsettle,
        "it fell silent in the soak"
    );
    let Decision::Hold(reason) = decide(running(0, 0, None), &waits, 600) else { panic!("not held") };
    assert_eq!(
        reason,
        "of the 1 hosts of wave 1 1 failed, where 0 may: box001 (it has not taken the release in time)"
    );
    let allowed = [host(1, 0, Progress::Gone), host(2, 1, failed())];
    assert_eq!(decide(running(1, 0, None), &allowed, 1), Decision::Settle, "one may fail");
    assert_eq!(decide(running(1, 0, Some(1)), &allowed, 1), Decision::Finish);
    // A failure of a wave that has passed holds too.
    let late = [host(1, 0, failed()), host(2, 1, Progress::Done)];
    assert!(matches!(decide(running(1, 0, Some(1)), &late, 1), Decision::Hold(_)));
    for stage in [Stage::Planned, Stage::Finished, Stage::Aborted(None)] {
        assert_eq!(decide(stage, &late, 9_999), Decision::Stay);
    }
    // A clock that was set back ends no time.
    assert_eq!(decide(running(0, 5_000, Some(5_000)), &done, 0), Decision::Stay);
}

#[test]
fn actions_fit_the_stage_and_resuming_accepts_what_failed() {
    let open = OpenWave { index: 1, opened_at: at(0), settled_at: Some(at(1)) };
    let held_at = |second| Stage::Held { open, reason: "why".to_owned(), at: at(second) };
    let held = held_at(600);
    let again = Stage::Running(OpenWave { opened_at: at(9), settled_at: None, ..open });
    assert_eq!(act(&Stage::Planned, Action::Start, at(9)), Ok(running(0, 9, None)));
    assert_eq!(act(&Stage::Running(open), Action::Pause, at(9)), Ok(Stage::Paused(open)));
    assert_eq!(act(&Stage::Paused(open), Action::Resume, at(9)), Ok(again.clone()));
    assert_eq!(act(&held, Action::Resume, at(9)), Ok(again));
    assert_eq!(act(&held, Action::Abort, at(9)), Ok(Stage::Aborted(Some(open))));
    for stage in [Stage::Finished, Stage::Aborted(None)] {
        for action in [Action::Start, Action::Pause, Action::Resume, Action::Abort] {
            let error = act(&stage, action, at(9)).unwrap_err();
            assert!(error.to_string().contains("nothing was changed"), "{error}");
        }
    }
    assert!(act(&Stage::Running(open), Action::Start, at(9)).is_err());

    let waves = vec![wave(0, 0, 600), wave(0, 0, 600), wave(0, 0, 600)];
    let hosts = [
        host(1, 0, failed()),
        host(2, 1, Progress::Waiting),
        host(3, 1, Progress::Done),
        host(4, 2, failed()),
    ];
    let rollout = Rollout { stage: held, waves };
    let accepted = accepted_by_resuming(&rollout, &hosts);
    assert_eq!(accepted, [hosts[0].host, hosts[1].host], "not the one whose wave was never open");
    let early = Rollout { stage: held_at(599), ..rollout.clone() };
    assert_eq!(accepted_by_resuming(&early, &hosts), [hosts[0].host], "it had time when all was held");
    let hosts = hosts.map(|host| {
        let failures = if accepted.contains(&host.host) { Failures::Accepted } else { Failures::Count };
        HostFacts { failures, ..host }
    });
    let stage = act(&rollout.stage, Action::Resume, at(600)).unwrap();
    assert_eq!(
        next(&Rollout { stage, ..rollout }, &hosts, at(600)),
        Decision::Settle,
        "it is not held again"
    );
}

fn report(builds: AgentBuilds) -> HostReport {
    let running = Some(VersionNumber::new(2026, 11, 0));
    HostReport { contact: Contact::Heard, started_at: Some(at(50)), running, builds, conditions: Vec::new() }
}

#[test]
fn a_host_is_judged_by_what_it_reported() {
    let manifest = Sha256Text::of(b"manifest");
    let target = Target { version: VERSION, manifest: Some(manifest.clone()) };
    let judge = |report: &HostReport| progress(&target, report, taken_at(&target, report, None));
    let confirmed = |version| report(AgentBuilds { confirmed: Some(version), ..AgentBuilds::default() });
    assert_eq!(judge(&report(AgentBuilds::default())), Progress::Waiting);
    let trial = AgentBuilds { trial: Some(VERSION), ..AgentBuilds::default() };
    assert_eq!(judge(&report(trial)), Progress::Waiting, "a trial is no verdict");
    let running = |version, builds| HostReport { running: Some(version), ..report(builds) };
    assert_eq!(judge(&running(VERSION, AgentBuilds::default())), Progress::Done, "a package brought it");
    let newer = VersionNumber::new(2027, 1, 0);
    assert_eq!(
        judge(&running(newer, AgentBuilds::default())),
        Progress::Done,
        "a package brought a newer one"
    );
    let trial = |version| AgentBuilds { trial: Some(version), ..AgentBuilds::default() };
    assert_eq!(judge(&running(VERSION, trial(VERSION))), Progress::Waiting, "what runs is on trial");
    assert_eq!(
        judge(&running(VERSION, trial(newer))),
        Progress::Done,
        "what runs is not what waits for its trial"
    );
    assert_eq!(judge(&confirmed(VersionNumber::new(2026, 12, 0))), Progress::Waiting);
    assert_eq!(judge(&confirmed(VERSION)), Progress::Done);
    assert_eq!(judge(&confirmed(VersionNumber::new(2026, 12, 2))), Progress::Done, "a newer one");
    assert_eq!(judge(&HostReport { contact: Contact::Silent, ..confirmed(VERSION) }), Progress::Silent);
    assert_eq!(judge(&HostReport { contact: Contact::Revoked, ..confirmed(VERSION) }), Progress::Gone);

    let failed = |digest: &Sha256Text| {
        let (manifest_sha256, why) = (digest.clone(), "it ended".to_owned());
        let failed = FailedRelease { version: VERSION, manifest_sha256, why, way_back: None, at: None };
        report(AgentBuilds { failed: Some(failed), ..AgentBuilds::default() })
    };
    assert_eq!(judge(&failed(&manifest)), Progress::Failed("it ended".to_owned()));
    let silent = HostReport { contact: Contact::Silent, ..failed(&manifest) };
    assert_eq!(judge(&silent), Progress::Failed("it ended".to_owned()), "silence excuses nothing");
    assert_eq!(judge(&failed(&Sha256Text::of(b"an older edition"))), Progress::Waiting);
    let refused = RefusedRelease {
        manifest_sha256: Some(manifest.clone()),
        code: "EXPIRED".to_owned(),
        why: "it ended".to_owned(),
        at: None,
    };
    let refused = report(AgentBuilds { refused: Some(refused), ..AgentBuilds::default() });
    assert_eq!(judge(&refused), Progress::Failed("EXPIRED: it ended".to_owned()));

    let code = ConditionCode::ALL.iter().find(|code| code.spec().severity == Severity::Critical).unwrap();
    let since = |second| {
        let condition = ReportedCondition::new(*code, Subject::Host {}, at(second), "what is wrong");
        HostReport { conditions: vec![condition], ..confirmed(VERSION) }
    };
    assert_eq!(judge(&since(49)), Progress::Done, "it held before the update");
    assert!(matches!(judge(&since(50)), Progress::Failed(why) if why.ends_with("what is wrong")));
    let restarted = HostReport { started_at: Some(at(90)), ..since(70) };
    assert_eq!(taken_at(&target, &restarted, Some(at(50))), Some(at(50)), "a later start excuses nothing");
    assert!(matches!(progress(&target, &restarted, Some(at(50))), Progress::Failed(_)));
}

fn request(hosts: WaveHosts) -> WaveRequest {
    WaveRequest { hosts, max_failures: 1, soak_s: 60, timeout_s: 600 }
}

#[test]
fn waves_take_named_hosts_and_then_the_rest_in_order() {
    let name = |number: u128| host(number, 0, Progress::Waiting).name;
    let id = |number| HostId::new(Uuid::from_u128(number));
    let hosts: Vec<_> = (1..=6).map(|number| (name(number), id(number))).collect();
    let ask = |waves: &[WaveHosts]| {
        let waves: Vec<_> = waves.iter().cloned().map(request).collect();
        plan(&waves, &hosts).map(|waves| waves.into_iter().map(|wave| wave.hosts).collect::<Vec<_>>())
    };
    let planned = ask(&[WaveHosts::Count(2), WaveHosts::Named(vec![name(2), name(6)]), WaveHosts::Rest]);
    assert_eq!(planned.unwrap(), [vec![id(1), id(3)], vec![id(2), id(6)], vec![id(4), id(5)]]);
    assert_eq!(ask(&[]), Err(PlanError::Waves(0)));
    assert_eq!(ask(&[WaveHosts::Count(0)]), Err(PlanError::Empty { wave: 1 }));
    assert_eq!(ask(&[WaveHosts::Rest, WaveHosts::Rest]), Err(PlanError::Empty { wave: 2 }));
    assert_eq!(ask(&[WaveHosts::Count(7)]), Err(PlanError::Few { wave: 1, wanted: 7, left: 6 }));
    let unknown = ask(&[WaveHosts::Named(vec![name(9)])]);
    assert_eq!(unknown, Err(PlanError::UnknownHost { wave: 1, host: name(9) }));
    let twice = ask(&[WaveHosts::Named(vec![name(1)]), WaveHosts::Named(vec![name(1)])]);
    assert_eq!(twice, Err(PlanError::Twice { wave: 2, host: name(1) }));
    let timeless = WaveRequest { timeout_s: 0, ..request(WaveHosts::Rest) };
    assert!(matches!(plan(&[timeless], &hosts), Err(PlanError::Times { wave: 1, .. })));
}

/// A generator that gives the same numbers each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn index(&mut self, bound: usize) -> usize {
        usize::try_from(self.below(bound as u64)).unwrap()
    }

    fn progress(&mut self) -> Progress {
        match self.below(12) {
            0 => Progress::Failed("why".to_owned()),
            1 => Progress::Silent,
            2 => Progress::Gone,
            3..=5 => Progress::Waiting,
            _ => Progress::Done,
        }
    }
}

/// In 2,000 random lives: a host is offered the release only when its wave was opened, waves open one after the other,
/// each opens only over one that kept its bound, and a stage that offers nothing offers nothing.
#[test]
fn no_host_outside_of_open_waves_is_ever_offered() {
    let mut ends = BTreeSet::new();
    for seed in 0..2_000 {
        let mut numbers = Numbers(seed);
        let count = 1 + numbers.index(4);
        let limits = (0..count).map(|_| {
            let max = u32::try_from(numbers.below(3)).unwrap();
            wave(
                max,
                i64::try_from(numbers.below(90)).unwrap(),
                60 + i64::try_from(numbers.below(300)).unwrap(),
            )
        });
        let mut rollout = Rollout { stage: Stage::Planned, waves: limits.collect() };
        let mut hosts: Vec<_> =
            (0..12).map(|number| host(number, numbers.index(count), Progress::Waiting)).collect();
        let (mut opened, mut now) = (None::<usize>, 0);
        for _ in 0..60 {
            now += i64::try_from(numbers.below(60)).unwrap();
            let changed = numbers.index(hosts.len());
            hosts[changed].progress = numbers.progress();
            let action = match numbers.below(20) {
                0..=2 => Some(Action::Start),
                3 => Some(Action::Pause),
                4..=6 => Some(Action::Resume),
                7 => Some(Action::Abort).filter(|_| numbers.below(4) == 0),
                _ => None,
            };
            if let Some(stage) = action.and_then(|action| act(&rollout.stage, action, at(now)).ok()) {
                if action == Some(Action::Resume) {
                    let accepted = accepted_by_resuming(&rollout, &hosts);
                    for host in hosts.iter_mut().filter(|host| accepted.contains(&host.host)) {
                        host.failures = Failures::Accepted;
                    }
                }
                if action == Some(Action::Start) {
                    assert_eq!(opened, None);
                    opened = Some(0);
                }
                rollout.stage = stage;
            }
            let decision = next(&rollout, &hosts, at(now));
            if decision == Decision::Advance {
                let passed = opened.unwrap();
                let counted = hosts.iter().filter(|host| {
                    host.wave == passed
                        && host.failures == Failures::Count
                        && matches!(host.progress, Progress::Failed(_))
                });
                assert!(counted.count() <= rollout.waves[passed].max_failures as usize, "seed {seed}");
                opened = Some(passed + 1);
            }
            rollout.stage = apply(rollout.stage, decision, at(now));
            for host in hosts.iter().filter(|host| rollout.stage.offers(host.wave)) {
                assert!(opened.is_some_and(|opened| host.wave <= opened), "seed {seed}: {host:?}");
            }
        }
        ends.insert(format!("{:?}", rollout.stage.state()));
    }
    assert_eq!(ends.len(), 5, "every stage but the first was reached: {ends:?}");
}
