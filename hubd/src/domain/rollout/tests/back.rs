//! Tests of the way back.

use super::*;

const TO: VersionNumber = VersionNumber::new(2026, 12, 2);

#[test]
fn a_rollout_with_a_way_back_takes_it_at_the_failure_that_would_hold_it() {
    let hosts = [host(1, 0, Progress::Done), host(2, 0, failed()), host(3, 1, Progress::Waiting)];
    let mut rollout = at_once(running(0, 0, None), vec![wave(0, 0, 600), wave(0, 0, 600)]);
    rollout.on_failure = OnFailure::RollBack(TO);
    let decision = next(&rollout, &hosts, at(10));
    let Decision::RollBack { reason, to } = &decision else { panic!("{decision:?}") };
    assert!(reason.contains("box002 (it ended three times)"), "{reason}");
    assert_eq!(*to, TO);
    rollout.stage = apply(rollout.stage, decision, at(10));
    let stage = &rollout.stage;
    assert_eq!(next(&rollout, &hosts, at(9_999)), Decision::Stay);
    for action in [Action::Start, Action::Pause, Action::TakeBack, Action::Resume] {
        let error = act(stage, action, at(20)).unwrap_err().to_string();
        assert!(error.contains("rolling back cannot be"), "{error}");
    }
    let open = OpenWave { index: 0, opened_at: at(0), settled_at: None };
    assert_eq!(act(stage, Action::Abort, at(20)), Ok(Stage::Aborted(Some(open))));

    // Only who was offered the release, and without its windows.
    let closed = allowed("", "mon 01:00-02:00 UTC", at(10));
    let place = |offered_at| HostPlace { wave: 0, offered_at, allowed: &closed };
    assert_eq!(offered(stage, place(Some(at(0))), VERSION, at(10)), Some(TO));
    assert_eq!(offered(stage, place(None), VERSION, at(10)), None);
    assert_eq!(newly_offered(&rollout, &hosts, at(10)), []);
}

#[test]
fn each_host_is_shown_with_what_became_of_it_and_why() {
    let of = |number, progress, back, before: Option<&str>| HostFacts {
        back,
        failed_before: before.map(str::to_owned),
        ..host(number, 0, progress)
    };
    let hosts = [
        of(1, Progress::Done, Some(Progress::Waiting), None),
        of(2, Progress::Done, Some(Progress::Done), Some("it ended three times")),
        of(3, failed(), Some(Progress::Waiting), None),
        of(4, Progress::Done, Some(Progress::Failed("EXPIRED".to_owned())), None),
        of(5, Progress::Waiting, Some(Progress::Waiting), None),
        HostFacts { offered_at: None, ..of(6, Progress::Waiting, Some(Progress::Waiting), None) },
    ];
    let open = OpenWave { index: 0, opened_at: at(0), settled_at: None };
    let shown = |stage: Stage| {
        let rollout = at_once(stage, vec![wave(0, 0, 600)]);
        let waves = view::waves(&rollout, &hosts, at(20));
        let text =
            |host: &RolloutHostView| format!("{:?} {}", host.state, host.why.as_deref().unwrap_or("-"));
        waves[0].hosts.iter().map(text).collect::<Vec<_>>()
    };
    let reason = "why".to_owned();
    assert_eq!(
        shown(Stage::RollingBack { open, reason: reason.clone(), at: at(10), to: TO }),
        [
            "Waiting -",
            "Back before: it ended three times",
            "Failed it ended three times",
            "Failed the way back failed: EXPIRED",
            "Withdrawn -",
            "Waiting -",
        ]
    );
    assert_eq!(
        shown(Stage::Held { open, reason, at: at(10) }),
        [
            "Done -",
            "Done before: it ended three times",
            "Failed it ended three times",
            "Done -",
            "Withdrawn -",
            "Waiting -",
        ]
    );
}

#[test]
fn a_trial_is_taken_back_where_the_rollout_was_stopped() {
    use PausedTrials::{GoOn, TakenBack};
    let open = OpenWave { index: 1, opened_at: at(0), settled_at: Some(at(1)) };
    let held = Stage::Held { open, reason: "why".to_owned(), at: at(600) };
    for stage in [Stage::Running(open), Stage::Paused(open)] {
        assert_eq!(act(&stage, Action::TakeBack, at(9)), Ok(Stage::Paused(open)));
    }
    for stage in [Stage::Planned, held.clone()] {
        assert!(act(&stage, Action::TakeBack, at(9)).is_err());
    }
    for (stage, go_on, taken_back) in [
        (Stage::Planned, None, None),
        (Stage::Running(open), None, None),
        (Stage::Paused(open), None, Some(WithdrawalReason::Paused)),
        (held.clone(), Some(WithdrawalReason::Held), Some(WithdrawalReason::Held)),
        (Stage::Aborted(Some(open)), Some(WithdrawalReason::Aborted), Some(WithdrawalReason::Aborted)),
        (Stage::Finished, None, None),
    ] {
        assert_eq!(
            (withdrawal(&stage, GoOn), withdrawal(&stage, TakenBack)),
            (go_on, taken_back),
            "{stage:?}"
        );
    }
}
