//! Tests of rollouts: tables, a defect over 200 hosts, and random lives.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_protocol::condition::{ConditionCode, ReportedCondition, Severity, Subject};
use holdfast_protocol::host_label;
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::release::VersionNumber;
use holdfast_protocol::release::rollout::{
    OnFailure, RolloutHostView, RolloutTimes, WaitReason, WaveHosts, WaveRequest,
};
use holdfast_protocol::release::window::UpdateWindow;
use holdfast_protocol::report::{AgentBuilds, FailedRelease, RefusedRelease};
use uuid::Uuid;

use super::action::{Action, accepted_by_resuming, act};
use super::next::{Decision, Outcome, apply, next, outcome};
use super::plan::{Candidate, PlanError, plan};
use super::progress::{Contact, HostReport, Target, progress, taken_at};
use super::rate::{newly_offered, turns};
use super::times::always;
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
    let (host, failures) = (HostId::new(Uuid::from_u128(number)), Failures::Count);
    HostFacts {
        host,
        name,
        wave,
        progress,
        failures,
        offered_at: Some(at(0)),
        failed_before: None,
        back: None,
        allowed: always(),
    }
}

/// All of a wave at once.
fn at_once(stage: Stage, waves: Vec<WaveLimits>) -> Rollout {
    Rollout { stage, waves, per_hour: None, on_failure: OnFailure::Hold }
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
    let decide =
        |stage: Stage, hosts: &[HostFacts], now| next(&at_once(stage, waves.clone()), hosts, at(now));
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
        for action in [Action::Start, Action::Pause, Action::TakeBack, Action::Resume, Action::Abort] {
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
    let rollout = at_once(held, waves);
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

fn candidate(number: u128, labels: &str) -> Candidate {
    let HostFacts { host, name, .. } = host(number, 0, Progress::Waiting);
    let terms = labels.split_whitespace().map(|term| host_label::label(term).unwrap());
    let labels = terms.collect::<BTreeMap<_, _>>().try_into().unwrap();
    Candidate { host, name, labels }
}

fn request(hosts: WaveHosts) -> WaveRequest {
    WaveRequest { hosts, max_failures: 1, soak_s: 60, timeout_s: 600 }
}

#[test]
fn waves_take_named_hosts_and_then_the_rest_in_order() {
    let name = |number: u128| host(number, 0, Progress::Waiting).name;
    let id = |number| HostId::new(Uuid::from_u128(number));
    let hosts: Vec<_> = (1..=6).map(|number| candidate(number, "")).collect();
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

#[test]
fn labels_select_what_no_wave_names_and_the_first_wave_wins() {
    let hosts = [
        candidate(1, "tier=canary site=vienna"),
        candidate(2, "tier=canary site=graz"),
        candidate(3, "tier=prod site=graz"),
        candidate(4, "tier=canary site=graz"),
        candidate(5, ""),
    ];
    let id = |number| HostId::new(Uuid::from_u128(number));
    let labelled = |text: &str| WaveHosts::Labelled(text.parse().unwrap());
    let ask = |waves: Vec<WaveHosts>| {
        let waves: Vec<_> = waves.into_iter().map(request).collect();
        plan(&waves, &hosts).map(|waves| waves.into_iter().map(|wave| wave.hosts).collect::<Vec<_>>())
    };
    let names = WaveHosts::Named(vec![hosts[3].name.clone()]);
    let planned = ask(vec![
        WaveHosts::Count(1),
        labelled("tier=canary+site=graz"),
        labelled("site=graz"),
        names,
        WaveHosts::Rest,
    ]);
    // The count leaves those alone that a later wave selects.
    assert_eq!(planned.unwrap(), [vec![id(1)], vec![id(2)], vec![id(3)], vec![id(4)], vec![id(5)]]);
    assert_eq!(ask(vec![labelled("tier=none")]), Err(PlanError::Empty { wave: 1 }));
    let all_taken = ask(vec![labelled("site=graz"), labelled("tier=prod")]);
    assert_eq!(all_taken, Err(PlanError::Empty { wave: 2 }));
}

/// Allowed times of a rollout, and of a host.
fn allowed(windows: &str, of_host: &str, now: Timestamp) -> Arc<AllowedTimes> {
    let list = |text: &str| text.parse::<UpdateWindow>().map_or_else(|_| Vec::new(), |window| vec![window]);
    let times = RolloutTimes { windows: list(windows).try_into().unwrap(), ..RolloutTimes::default() };
    Arc::new(AllowedTimes::around(&times, &list(of_host).try_into().unwrap(), now))
}

#[test]
fn only_time_in_which_a_host_could_take_it_counts_and_no_wait_is_endless() {
    let begin: Timestamp = "2026-11-27T12:00:00Z".parse().unwrap();
    let open = OpenWave { index: 0, opened_at: begin, settled_at: None };
    let limits = wave(0, 0, 3 * 3_600);
    let judge = |windows: &str, of_host: &str, offered: Option<i64>, hours: i64| {
        let after = |hours| begin + SignedDuration::from_hours(hours);
        let facts = HostFacts {
            offered_at: offered.map(after),
            allowed: allowed(windows, of_host, after(hours)),
            ..host(1, 0, Progress::Waiting)
        };
        match outcome(&open, &limits, &facts, after(hours)) {
            Outcome::Waiting => None,
            Outcome::Failed(why) => Some(why),
            other => panic!("{other:?}"),
        }
    };
    let late = Some("it has not taken the release in time".to_owned());
    let night = "daily 20:00-22:00 UTC";
    assert_eq!(judge("", "", Some(0), 2), None);
    assert_eq!(judge("", "", Some(0), 3), late);
    assert_eq!(judge("", "", Some(5), 7), None, "its time begins with its own offer");
    assert_eq!(judge("", "", None, 9), None, "it waits for its turn");
    assert_eq!(judge(night, "", Some(8), 20), None, "two hours of the first night");
    assert_eq!(judge("", night, Some(8), 33), late, "and one of the second");
    let never = judge(night, "daily 02:00-03:00 UTC", None, 1).unwrap();
    assert!(never.contains("within 60 days there is no time"), "{never}");
    assert_eq!(judge(night, "", None, 90 * 24 - 1), None);
    assert!(judge(night, "", None, 90 * 24).unwrap().contains("waited for 90 days"));
}

#[test]
fn no_more_hosts_are_newly_offered_in_an_hour_than_the_rate_says() {
    let now = at(100_000);
    let mut rollout = Rollout {
        stage: Stage::Running(OpenWave { index: 0, opened_at: at(0), settled_at: None }),
        waves: vec![wave(0, 0, 600), wave(0, 0, 600)],
        per_hour: NonZeroU32::new(2),
        on_failure: OnFailure::Hold,
    };
    let waiting = |number, wave| HostFacts { offered_at: None, ..host(number, wave, Progress::Waiting) };
    let mut hosts = vec![
        HostFacts { offered_at: Some(at(98_000)), ..host(1, 0, Progress::Waiting) },
        HostFacts { progress: Progress::Done, ..waiting(2, 0) },
        waiting(3, 0),
        HostFacts { allowed: allowed("", "mon 01:00-02:00 UTC", now), ..waiting(4, 0) },
        waiting(5, 0),
        HostFacts { progress: failed(), ..waiting(6, 0) },
        waiting(7, 0),
        waiting(8, 1),
    ];
    let id = |number| HostId::new(Uuid::from_u128(number));
    assert_eq!(
        turns(&rollout, &hosts, now),
        [(id(3), now), (id(5), at(101_600)), (id(7), at(103_600))],
        "neither who has it, nor who failed, nor who has no window now, nor who is in no open wave"
    );
    assert_eq!(newly_offered(&rollout, &hosts, now), [id(3)]);
    hosts[2].offered_at = Some(now);
    assert_eq!(newly_offered(&rollout, &hosts, at(101_599)), []);
    assert_eq!(newly_offered(&rollout, &hosts, at(101_600)), [id(5)]);
    rollout.per_hour = None;
    assert_eq!(newly_offered(&rollout, &hosts, now), [id(5), id(7)]);
    rollout.stage = Stage::Planned;
    assert_eq!(newly_offered(&rollout, &hosts, now), []);
}

#[test]
fn an_offer_is_withdrawn_where_its_time_ends() {
    let now: Timestamp = "2026-11-27T21:00:00Z".parse().unwrap();
    let night = allowed("daily 20:00-22:00 UTC", "", now);
    let later = now + SignedDuration::from_hours(1);
    let running = Stage::Running(OpenWave { index: 0, opened_at: now, settled_at: None });
    let takes = |stage: &Stage, place, now| offered(stage, place, VERSION, now) == Some(VERSION);
    let place = |wave, offered_at| HostPlace { wave, offered_at, allowed: &night };
    assert!(takes(&running, place(0, Some(now)), now));
    assert!(!takes(&running, place(0, Some(now)), later), "its window is over");
    assert!(!takes(&running, place(0, None), now), "its turn has not come");
    assert!(!takes(&running, place(1, Some(now)), now));
    assert!(takes(&Stage::Finished, place(1, None), now), "a host that is set up anew");
    assert!(!takes(&Stage::Finished, place(1, None), later));
    assert!(!takes(&Stage::Aborted(None), place(0, Some(now)), now));
}

#[test]
fn a_view_says_what_each_host_waits_for_and_until_when() {
    let now: Timestamp = "2026-11-27T12:00:00Z".parse().unwrap();
    let hours = |count| now + SignedDuration::from_hours(count);
    let open = OpenWave { index: 0, opened_at: now, settled_at: None };
    let mut rollout = Rollout {
        stage: Stage::Running(open),
        waves: vec![wave(9, 3_600, 7_200), wave(0, 0, 600), wave(0, 0, 600)],
        per_hour: NonZeroU32::new(1),
        on_failure: OnFailure::Hold,
    };
    let waiting = |number, wave| HostFacts { offered_at: None, ..host(number, wave, Progress::Waiting) };
    let hosts = [
        HostFacts { offered_at: Some(now), ..waiting(1, 0) },
        HostFacts { allowed: allowed("", "daily 20:00-22:00 UTC", now), ..waiting(2, 0) },
        waiting(3, 0),
        waiting(4, 1),
        waiting(5, 2),
    ];
    let waits = |rollout: &Rollout| {
        let waves = view::waves(rollout, &hosts, now);
        let waits = waves.iter().flat_map(|wave| &wave.hosts).map(|host| host.wait);
        waits.map(|wait| wait.map(|wait| (wait.why, wait.until))).collect::<Vec<_>>()
    };
    assert_eq!(
        waits(&rollout),
        [
            Some((WaitReason::Host, Some(hours(2)))),
            Some((WaitReason::HostWindow, Some(hours(8)))),
            Some((WaitReason::Rate, Some(hours(1)))),
            Some((WaitReason::Wave, None)),
            Some((WaitReason::Wave, None)),
        ]
    );
    rollout.stage = Stage::Running(OpenWave { settled_at: Some(now), ..open });
    assert_eq!(view::next_wave_at(&rollout), Some(hours(1)));
    assert_eq!(
        waits(&rollout)[3..],
        [Some((WaitReason::Wave, Some(hours(1)))), Some((WaitReason::Wave, None))]
    );
    rollout.stage = Stage::Paused(open);
    assert_eq!(waits(&rollout), [None; 5], "the state of the rollout says why");
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
        let mut rollout = at_once(Stage::Planned, limits.collect());
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

mod back;
