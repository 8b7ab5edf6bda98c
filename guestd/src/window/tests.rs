//! The table of decisions, and what holds of every course that a window can take.

use std::time::Duration;

use holdfast_protocol::local::window::WindowPhase::{self, *};

use super::decide::*;

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn seen(standing: Standing, word: Word) -> Seen {
    Seen { word, standing, left: Some(s(600)), waited: s(5), still_for: s(5), wish: Wish::None }
}

#[test]
fn the_table() {
    use Standing::{Running, Still, StillAndTold};
    let says = |phase| Word::Says(phase);
    for (standing, word, next) in [
        (Running, says(Requested), Next::Wait),
        (Running, says(Granted), Next::Quiesce),
        (Running, says(Quiesced), Next::GiveUp(Why::Absurd)),
        (Running, says(Capturing), Next::GiveUp(Why::Absurd)),
        (Running, says(Captured), Next::GiveUp(Why::Absurd)),
        (Running, says(Released), Next::Over(Why::Ended(Released))),
        (Running, says(Expired), Next::Over(Why::Ended(Expired))),
        (Running, says(Cancelled), Next::Over(Why::Ended(Cancelled))),
        (Running, Word::Refuses, Next::Over(Why::Refused)),
        (Running, Word::Silent(s(3)), Next::Wait),
        (Running, Word::Silent(SILENCE_MAX), Next::GiveUp(Why::Silence)),
        (Still, says(Requested), Next::SayQuiesced),
        (Still, says(Granted), Next::SayQuiesced),
        (Still, says(Quiesced), Next::SayQuiesced),
        (Still, Word::Silent(s(3)), Next::SayQuiesced),
        (StillAndTold, says(Granted), Next::SayQuiesced),
        (StillAndTold, says(Quiesced), Next::Wait),
        (StillAndTold, says(Capturing), Next::Wait),
        (StillAndTold, Word::Silent(s(3)), Next::Wait),
    ] {
        assert_eq!(decide(seen(standing, word)), next, "{standing:?} {word:?}");
    }
    for standing in [Still, StillAndTold] {
        for (word, why) in [
            (says(Captured), Why::Captured),
            (says(Released), Why::Ended(Released)),
            (says(Expired), Why::Ended(Expired)),
            (says(Cancelled), Why::Ended(Cancelled)),
            (Word::Refuses, Why::Refused),
            (Word::Silent(SILENCE_MAX), Why::Silence),
        ] {
            assert_eq!(decide(seen(standing, word)), Next::Resume(why), "{standing:?} {word:?}");
        }
    }
    let unheard = |standing| decide(Seen { still_for: SILENCE_MAX, ..seen(standing, says(Granted)) });
    assert_eq!(unheard(Still), Next::Resume(Why::Unheard));
    assert_eq!(unheard(StillAndTold), Next::SayQuiesced);
    let short = Seen { left: Some(s(19)), ..seen(Running, says(Granted)) };
    assert_eq!(decide(short), Next::GiveUp(Why::Short));
    assert_eq!(decide(Seen { left: None, ..short }), Next::GiveUp(Why::Short));
    let long = Seen { waited: GRANT_WAIT_MAX, left: None, ..seen(Running, says(Requested)) };
    assert_eq!(decide(long), Next::GiveUp(Why::NotGranted));
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
struct Course {
    now: Duration,
    granted_at: Option<Duration>,
    deadline: Option<Duration>,
    standing: Standing,
    stopped_at: Option<Duration>,
    heard_at: Duration,
    steps: u32,
}

const BOUND_S: u32 = 300;

/// One look takes so long at most.
const STEP_MAX: Duration = s(20);

impl Course {
    fn begin(dice: &mut Dice) -> Self {
        let now = s(dice.below(1_000_000));
        Self {
            now,
            granted_at: None,
            deadline: None,
            standing: Standing::Running,
            stopped_at: None,
            heard_at: now,
            steps: 0,
        }
    }

    /// The agent may grant, forget, lie, be silent, or be late.
    fn word(&mut self, dice: &mut Dice, kind: u64) -> Word {
        let asked_at = self.now;
        self.now += Duration::from_millis(dice.below(STEP_MAX.as_millis() as u64));
        let phase = match (kind, dice.below(10)) {
            (0, _) if self.standing == Standing::Running => Granted,
            (0, 0..7) => Capturing,
            (0, _) => Captured,
            (1, _) => return Word::Silent(self.now.saturating_sub(self.heard_at)),
            (_, roll) => {
                let all: [WindowPhase; 8] =
                    [Requested, Granted, Quiesced, Capturing, Captured, Released, Expired, Cancelled];
                match roll {
                    8 => return Word::Refuses,
                    9 => return Word::Silent(self.now.saturating_sub(self.heard_at)),
                    _ => all[dice.below(8) as usize],
                }
            }
        };
        self.heard_at = self.now;
        if phase == Granted && self.granted_at.is_none() {
            self.granted_at = Some(asked_at);
            self.deadline = deadline(asked_at, BOUND_S, Some(BOUND_S - dice.below(280) as u32), None);
        }
        Word::Says(phase)
    }

    /// False when it ended.
    fn step(&mut self, dice: &mut Dice, word: Word) -> bool {
        self.steps += 1;
        let left = self.deadline.map(|deadline| deadline.saturating_sub(self.now));
        let wish = if dice.below(50) == 0 { Wish::Resume } else { Wish::None };
        let still_for = self.stopped_at.map_or(s(0), |at| self.now - at);
        let seen = Seen { word, standing: self.standing, left, waited: s(0), still_for, wish };
        let next = decide(seen);
        match next {
            Next::Quiesce => {
                assert_eq!((self.standing, word), (Standing::Running, Word::Says(Granted)));
                assert!(left.unwrap() >= WORTH);
                self.stopped_at = Some(self.now);
                self.standing = Standing::Still;
            }
            Next::SayQuiesced => {
                assert_ne!(self.standing, Standing::Running);
                if dice.below(2) == 0 {
                    self.standing = Standing::StillAndTold;
                }
            }
            Next::Wait => {}
            Next::Resume(_) => {
                assert_ne!(self.standing, Standing::Running);
                // Never later than the bound, but for the look that was under way.
                let bound = self.granted_at.unwrap() + s(u64::from(BOUND_S));
                assert!(self.now <= bound + STEP_MAX, "{:?} past {bound:?}", self.now);
                return false;
            }
            Next::GiveUp(_) | Next::Over(_) => {
                assert_eq!(self.standing, Standing::Running, "stacks would stay stopped");
                return false;
            }
        }
        if self.standing != Standing::Running {
            assert!(left.is_some_and(|left| !left.is_zero()), "they stand still past their bound");
        }
        true
    }
}

#[test]
fn whatever_the_agent_says_stacks_stand_still_no_longer_than_their_bound() {
    let (mut resumed, mut others) = (0, 0);
    for seed in 0..20_000 {
        let mut dice = Dice(seed);
        let mut course = Course::begin(&mut dice);
        let mut kind = dice.below(3);
        loop {
            // Agents come and go within one window.
            if dice.below(8) == 0 {
                kind = dice.below(3);
            }
            let word = course.word(&mut dice, kind);
            if !course.step(&mut dice, word) {
                break;
            }
            assert!(course.steps < 2_000, "it never ends");
        }
        match course.stopped_at {
            Some(_) => resumed += 1,
            None => others += 1,
        }
    }
    assert!(resumed > 2_000 && others > 2_000, "{resumed} {others}");
}
