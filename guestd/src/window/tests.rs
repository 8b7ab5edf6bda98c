//! Table of decisions, and properties of all courses of a window.

use std::time::Duration;

use holdfast_protocol::local::window::WindowPhase::{self, *};

use super::decide::*;

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn seen(phase: StackPhase, agent: AgentState) -> Situation {
    Situation {
        agent,
        phase,
        left: Some(s(600)),
        waited: s(5),
        stopped_for: s(5),
        request: ResumeRequest::None,
    }
}

#[test]
fn the_table() {
    use StackPhase::{Running, Stopped, StoppedAndReported};
    let says = |phase| AgentState::Phase(phase);
    for (phase, agent, next) in [
        (Running, says(Requested), Next::Wait),
        (Running, says(Granted), Next::Quiesce),
        (Running, says(Quiesced), Next::GiveUp(EndReason::Contradiction)),
        (Running, says(Capturing), Next::GiveUp(EndReason::Contradiction)),
        (Running, says(Captured), Next::GiveUp(EndReason::Contradiction)),
        (Running, says(Released), Next::Over(EndReason::Ended(Released))),
        (Running, says(Expired), Next::Over(EndReason::Ended(Expired))),
        (Running, says(Cancelled), Next::Over(EndReason::Ended(Cancelled))),
        (Running, AgentState::Refuses, Next::Over(EndReason::Refused)),
        (Running, AgentState::Silent(s(3)), Next::Wait),
        (Running, AgentState::Silent(SILENCE_MAX), Next::GiveUp(EndReason::Silence)),
        (Stopped, says(Requested), Next::ReportQuiesced),
        (Stopped, says(Granted), Next::ReportQuiesced),
        (Stopped, says(Quiesced), Next::ReportQuiesced),
        (Stopped, AgentState::Silent(s(3)), Next::ReportQuiesced),
        (StoppedAndReported, says(Granted), Next::ReportQuiesced),
        (StoppedAndReported, says(Quiesced), Next::Wait),
        (StoppedAndReported, says(Capturing), Next::Wait),
        (StoppedAndReported, AgentState::Silent(s(3)), Next::Wait),
    ] {
        assert_eq!(decide(seen(phase, agent)), next, "{phase:?} {agent:?}");
    }
    for phase in [Stopped, StoppedAndReported] {
        for (agent, why) in [
            (says(Captured), EndReason::Captured),
            (says(Released), EndReason::Ended(Released)),
            (says(Expired), EndReason::Ended(Expired)),
            (says(Cancelled), EndReason::Ended(Cancelled)),
            (AgentState::Refuses, EndReason::Refused),
            (AgentState::Silent(SILENCE_MAX), EndReason::Silence),
        ] {
            assert_eq!(decide(seen(phase, agent)), Next::Resume(why), "{phase:?} {agent:?}");
        }
    }
    let unheard = |phase| decide(Situation { stopped_for: SILENCE_MAX, ..seen(phase, says(Granted)) });
    assert_eq!(unheard(Stopped), Next::Resume(EndReason::NotAcknowledged));
    assert_eq!(unheard(StoppedAndReported), Next::ReportQuiesced);
    let short = Situation { left: Some(s(19)), ..seen(Running, says(Granted)) };
    assert_eq!(decide(short), Next::GiveUp(EndReason::Short));
    assert_eq!(decide(Situation { left: None, ..short }), Next::GiveUp(EndReason::Short));
    let long = Situation { waited: GRANT_WAIT_MAX, left: None, ..seen(Running, says(Requested)) };
    assert_eq!(decide(long), Next::GiveUp(EndReason::NotGranted));
}

#[test]
fn an_absurd_bound_is_cut_or_refused() {
    assert_eq!(deadline(s(100), 900, Some(900), None), Some(s(100 + 890)));
    assert_eq!(deadline(s(100), 900, None, Some(s(60))), Some(s(154)), "our own bound is shorter");
    assert_eq!(deadline(s(100), 900, Some(5000), None), Some(s(990)), "no more is left than there was");
    assert_eq!(deadline(s(100), u32::MAX, None, None), Some(s(100 + 7_190)));
    assert_eq!(deadline(s(100), 0, None, None), None);
    assert_eq!(deadline(s(100), 900, Some(0), None), None);
}

/// Any numbers, the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }
}

/// A window as the machinery around the decision would drive it, in a world that answers as it likes.
struct WindowState {
    now: Duration,
    granted_at: Option<Duration>,
    deadline: Option<Duration>,
    phase: StackPhase,
    stopped_at: Option<Duration>,
    heard_at: Duration,
    steps: u32,
}

const BOUND_S: u32 = 300;

/// The longest time of one status call.
const STEP_MAX: Duration = s(20);

impl WindowState {
    fn begin(dice: &mut Dice) -> Self {
        let now = s(dice.below(1_000_000));
        Self {
            now,
            granted_at: None,
            deadline: None,
            phase: StackPhase::Running,
            stopped_at: None,
            heard_at: now,
            steps: 0,
        }
    }

    /// The agent may grant, forget, lie, be silent, or be late.
    fn agent(&mut self, dice: &mut Dice, kind: u64) -> AgentState {
        let asked_at = self.now;
        self.now += Duration::from_millis(dice.below(STEP_MAX.as_millis() as u64));
        let phase = match (kind, dice.below(10)) {
            (0, _) if self.phase == StackPhase::Running => Granted,
            (0, 0..7) => Capturing,
            (0, _) => Captured,
            (1, _) => return AgentState::Silent(self.now.saturating_sub(self.heard_at)),
            (_, roll) => {
                let all: [WindowPhase; 8] =
                    [Requested, Granted, Quiesced, Capturing, Captured, Released, Expired, Cancelled];
                match roll {
                    8 => return AgentState::Refuses,
                    9 => return AgentState::Silent(self.now.saturating_sub(self.heard_at)),
                    _ => all[dice.below(8) as usize],
                }
            }
        };
        self.heard_at = self.now;
        if phase == Granted && self.granted_at.is_none() {
            self.granted_at = Some(asked_at);
            self.deadline = deadline(asked_at, BOUND_S, Some(BOUND_S - dice.below(280) as u32), None);
        }
        AgentState::Phase(phase)
    }

    /// False when it ended.
    fn step(&mut self, dice: &mut Dice, agent: AgentState) -> bool {
        self.steps += 1;
        let left = self.deadline.map(|deadline| deadline.saturating_sub(self.now));
        let request = if dice.below(50) == 0 { ResumeRequest::Resume } else { ResumeRequest::None };
        let stopped_for = self.stopped_at.map_or(s(0), |at| self.now - at);
        let seen = Situation { agent, phase: self.phase, left, waited: s(0), stopped_for, request };
        let next = decide(seen);
        match next {
            Next::Quiesce => {
                assert_eq!((self.phase, agent), (StackPhase::Running, AgentState::Phase(Granted)));
                assert!(left.unwrap() >= WORTHWHILE_MIN);
                self.stopped_at = Some(self.now);
                self.phase = StackPhase::Stopped;
            }
            Next::ReportQuiesced => {
                assert_ne!(self.phase, StackPhase::Running);
                if dice.below(2) == 0 {
                    self.phase = StackPhase::StoppedAndReported;
                }
            }
            Next::Wait => {}
            Next::Resume(_) => {
                assert_ne!(self.phase, StackPhase::Running);
                // Never later than the bound, except for the status call that was under way.
                let bound = self.granted_at.unwrap() + s(u64::from(BOUND_S));
                assert!(self.now <= bound + STEP_MAX, "{:?} past {bound:?}", self.now);
                return false;
            }
            Next::GiveUp(_) | Next::Over(_) => {
                assert_eq!(self.phase, StackPhase::Running, "stacks would stay stopped");
                return false;
            }
        }
        if self.phase != StackPhase::Running {
            assert!(left.is_some_and(|left| !left.is_zero()), "they stand still past their bound");
        }
        true
    }
}

#[test]
fn stacks_are_never_stopped_longer_than_their_bound() {
    let (mut resumed, mut others) = (0, 0);
    for seed in 0..20_000 {
        let mut dice = Dice(seed);
        let mut state = WindowState::begin(&mut dice);
        let mut kind = dice.below(3);
        loop {
            // Agents come and go within one window.
            if dice.below(8) == 0 {
                kind = dice.below(3);
            }
            let agent = state.agent(&mut dice, kind);
            if !state.step(&mut dice, agent) {
                break;
            }
            assert!(state.steps < 2_000, "it never ends");
        }
        match state.stopped_at {
            Some(_) => resumed += 1,
            None => others += 1,
        }
    }
    assert!(resumed > 2_000 && others > 2_000, "{resumed} {others}");
}
