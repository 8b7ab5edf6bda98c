//! The whole table, and what holds of every course.

use super::*;
use crate::model::boot::BootId;

const PHASES: [WindowPhase; 8] = [
    WindowPhase::Requested,
    WindowPhase::Granted,
    WindowPhase::Quiesced,
    WindowPhase::Capturing,
    WindowPhase::Captured,
    WindowPhase::Released,
    WindowPhase::Expired,
    WindowPhase::Cancelled,
];

fn at(ms: u64) -> BootMoment {
    BootMoment { boot: BootId::parse("boot-1").unwrap(), ms }
}

fn rebooted(ms: u64) -> BootMoment {
    BootMoment { boot: BootId::parse("boot-2").unwrap(), ms }
}

fn quiesced_stacks(name: &str) -> QuiescedStacks {
    QuiescedStacks { stacks: vec![name.parse().unwrap()], canaries: Vec::new() }
}

fn down() -> Vec<DownStack> {
    vec![DownStack { stack: "shop".parse().unwrap(), why: "exit 1".to_owned() }]
}

/// Everything runs again, from now on.
fn let_go() -> WindowEvent {
    begun(0)
}

/// Everything runs again, since so long.
fn begun(ms_ago: u64) -> WindowEvent {
    WindowEvent::Released(Restarted { down: Vec::new(), begun_ago: Some(Duration::from_millis(ms_ago)) })
}

/// Everything runs again, who knows since when.
fn late() -> WindowEvent {
    WindowEvent::Released(Restarted::default())
}

fn unwell() -> WindowEvent {
    WindowEvent::Released(Restarted { down: down(), begun_ago: Some(Duration::ZERO) })
}

fn nothing() -> WindowEvent {
    WindowEvent::CameToNothing(ErrorBody::new(ErrorCode::Unavailable, "no storage"))
}

fn fresh() -> Window {
    Window::granted(QuiesceBound::usual(), at(1_000))
}

/// A change of the rules shows here.
#[test]
fn the_table() {
    let mut text = String::new();
    for phase in PHASES {
        for sign in Sign::ALL {
            let to = match next(phase, *sign) {
                Ok(to) => format!("{to:?}"),
                Err(why) => format!("refused: {why}"),
            };
            text.push_str(&format!("{phase:?} + {sign:?} -> {to}\n"));
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn an_end_stays_and_what_is_fixed_is_only_released() {
    for sign in Sign::ALL {
        for phase in PHASES.into_iter().filter(|phase| phase.is_over()) {
            assert!(next(phase, *sign).is_err() || next(phase, *sign) == Ok(phase), "{phase:?} {sign:?}");
        }
        let to = next(WindowPhase::Captured, *sign);
        assert!(
            to.is_err() || to == Ok(WindowPhase::Captured) || *sign == Sign::Released,
            "{sign:?}: {to:?}"
        );
    }
}

/// Each course with the label that it deserves, and the words in it.
#[test]
fn a_label_says_what_was_seen_and_why() {
    let stand = || WindowEvent::Quiesced(quiesced_stacks("shop"));
    let bound = 900_000;
    type Course = Vec<(u64, WindowEvent)>;
    let courses: Vec<(&str, Course, Consistency, &str)> = vec![
        (
            "as it should be",
            vec![(5, stand()), (6, WindowEvent::Began), (7, WindowEvent::Captured), (8, let_go())],
            Consistency::Application,
            "stood still",
        ),
        (
            "never released",
            vec![(5, stand()), (6, WindowEvent::Began), (7, WindowEvent::Captured)],
            Consistency::Crash,
            "did not say whether",
        ),
        (
            "the agent was away while the silent one's programs were started, and it says so late",
            vec![(5, stand()), (6, WindowEvent::Began), (300, WindowEvent::Captured), (310, begun(190))],
            Consistency::Crash,
            "ran again before",
        ),
        (
            "released late, and begun after",
            vec![(5, stand()), (6, WindowEvent::Began), (300, WindowEvent::Captured), (900, begun(590))],
            Consistency::Application,
            "stood still",
        ),
        (
            "killed, started by what came after it, and nobody knows when",
            vec![(5, stand()), (6, WindowEvent::Began), (7, WindowEvent::Captured), (9_000, late())],
            Consistency::Crash,
            "did not say when",
        ),
        (
            "begun before the grant, by a clock that is wrong",
            vec![(5, stand()), (6, WindowEvent::Began), (7, WindowEvent::Captured), (9, begun(u64::MAX))],
            Consistency::Crash,
            "ran again before",
        ),
        (
            "said twice: the earliest counts",
            vec![
                (5, stand()),
                (6, WindowEvent::Began),
                (7, WindowEvent::Captured),
                (9, begun(1)),
                (20, begun(15)),
            ],
            Consistency::Crash,
            "ran again before",
        ),
        (
            "never said",
            vec![(bound + 1, WindowEvent::Began), (bound + 2, WindowEvent::Captured)],
            Consistency::Crash,
            "did not say within 450 s",
        ),
        (
            "said when nobody waited for it any more",
            vec![
                (450_000, stand()),
                (450_001, WindowEvent::Began),
                (450_002, WindowEvent::Captured),
                (450_003, let_go()),
            ],
            Consistency::Crash,
            "did not say within 450 s",
        ),
        (
            "said just in time",
            vec![
                (449_999, stand()),
                (600_001, WindowEvent::Began),
                (600_002, WindowEvent::Captured),
                (600_003, let_go()),
            ],
            Consistency::Application,
            "stood still",
        ),
        (
            "said too late",
            vec![(bound + 1, stand()), (bound + 2, WindowEvent::Began), (bound + 3, WindowEvent::Captured)],
            Consistency::Crash,
            "did not say",
        ),
        (
            "begun without it",
            vec![(5, WindowEvent::Began), (6, stand()), (7, WindowEvent::Captured)],
            Consistency::Crash,
            "did not say",
        ),
        (
            "captured too late",
            vec![(5, stand()), (6, WindowEvent::Began), (bound, WindowEvent::Captured)],
            Consistency::Crash,
            "not seen to be fixed",
        ),
        (
            "captured in the last moment",
            vec![
                (5, stand()),
                (6, WindowEvent::Began),
                (bound - 1, WindowEvent::Captured),
                (bound + 5, begun(6)),
            ],
            Consistency::Application,
            "900 s after",
        ),
        (
            "released before",
            vec![(5, stand()), (6, WindowEvent::Began), (7, let_go()), (8, WindowEvent::Captured)],
            Consistency::Crash,
            "ran again before",
        ),
        (
            "released before it began",
            vec![(5, stand()), (6, let_go()), (7, WindowEvent::Began), (8, WindowEvent::Captured)],
            Consistency::Crash,
            "ran again before",
        ),
        (
            "let go",
            vec![(5, let_go()), (7, WindowEvent::Began), (8, WindowEvent::Captured)],
            Consistency::Crash,
            "let go",
        ),
        (
            "the copy came to nothing once",
            vec![(5, stand()), (6, WindowEvent::Began), (7, nothing()), (8, WindowEvent::Captured)],
            Consistency::Crash,
            "not seen to be fixed",
        ),
    ];
    for (name, course, consistency, words) in courses {
        let window = course
            .iter()
            .fold(fresh(), |window, (ms, said)| window.apply(said, &at(1_000 + ms)).unwrap_or(window));
        let label = window.label();
        assert!(label.consistency == consistency && label.why.contains(words), "{name}: {label:?}");
        assert!(label.why.chars().count() <= 256, "{name}");
    }
}

#[test]
fn the_bound_counts_through_a_restart_and_not_through_a_reboot() {
    let window = fresh().apply(&WindowEvent::Quiesced(quiesced_stacks("shop")), &at(2_000)).unwrap();
    assert_eq!(window.left(&at(2_000)).as_secs(), 899);
    assert_eq!(
        (window.reported(&at(901_000)), window.reported(&at(900_999))),
        (WindowPhase::Expired, WindowPhase::Quiesced)
    );
    for ms in [0, 2_000, u64::MAX] {
        assert_eq!(
            (window.left(&rebooted(ms)), window.reported(&rebooted(ms))),
            (Duration::ZERO, WindowPhase::Expired)
        );
    }
    assert!(window.problem(&rebooted(0)).unwrap().message.contains("start again"));
}

/// What takes long to stop was given a long bound, and has half of it; a short bound holds as it is.
#[test]
fn a_grant_stands_for_half_of_its_bound_and_five_minutes_at_least() {
    for (bound_s, wait_s) in [(60, 60), (300, 300), (420, 300), (900, 450), (3_600, 1_800)] {
        let window = Window::granted(QuiesceBound::try_from(bound_s).unwrap(), at(1_000));
        let last = at(1_000 + wait_s * 1_000 - 1);
        assert_eq!(window.reported(&last), WindowPhase::Granted, "{bound_s}");
        assert_eq!(window.reported(&at(1_000 + wait_s * 1_000)), WindowPhase::Expired, "{bound_s}");
        let said = window.apply(&WindowEvent::Quiesced(quiesced_stacks("shop")), &last).unwrap();
        assert_eq!(said.patience(&last), said.left(&last), "from then on the bound counts");
    }
}

#[test]
fn what_was_said_first_stands_and_the_same_twice_is_once() {
    let said = fresh().apply(&WindowEvent::Quiesced(quiesced_stacks("shop")), &at(2_000)).unwrap();
    assert_eq!(said.apply(&WindowEvent::Quiesced(quiesced_stacks("shop")), &at(3_000)), Ok(said.clone()));
    assert_eq!(
        said.apply(&WindowEvent::Quiesced(quiesced_stacks("mail")), &at(3_000)),
        Err(Refused::Otherwise)
    );
    let begun = said.apply(&WindowEvent::Began, &at(3_000)).unwrap();
    assert_eq!(begun.apply(&WindowEvent::Cancelled, &at(4_000)), Err(Refused::Begun));
    let over = begun.apply(&let_go(), &at(5_000)).unwrap();
    assert_eq!(
        over.apply(&WindowEvent::Quiesced(quiesced_stacks("shop")), &at(6_000)),
        Err(Refused::Over),
        "a late duplicate"
    );
    assert_eq!(over.apply(&let_go(), &at(6_000)), Ok(over.clone()));
    // What would not start is heard again and again; when it was released first is what counts.
    let down = over.apply(&unwell(), &at(7_000)).unwrap();
    assert_eq!((down.down().len(), down.label()), (1, over.label()));
    assert_eq!(down.apply(&let_go(), &at(8_000)), Ok(over));
}

#[test]
fn who_gave_it_up_wants_no_backup_and_who_was_let_down_does() {
    let given_up = fresh().apply(&WindowEvent::Cancelled, &at(2_000)).unwrap();
    assert!(given_up.is_given_up() && given_up.problem(&at(2_000)).unwrap().code == ErrorCode::Cancelled);
    assert_eq!(given_up.apply(&WindowEvent::Cancelled, &at(3_000)), Ok(given_up));
    let let_down = fresh().apply(&nothing(), &at(2_000)).unwrap();
    assert!(!let_down.is_given_up() && let_down.problem(&at(2_000)).unwrap().message == "no storage");
    assert!(let_down.apply(&unwell(), &at(3_000)).unwrap().is_released(), "a release is always heard");
}

#[test]
fn a_window_reads_back_and_is_closed() {
    let window = fresh().apply(&WindowEvent::Quiesced(quiesced_stacks("shop")), &at(2_000)).unwrap();
    let text = serde_json::to_string(&window).unwrap();
    assert_eq!(serde_json::from_str::<Window>(&text).unwrap(), window, "{text}");
    assert!(serde_json::from_str::<Window>(&text.replacen('{', "{\"more\":1,", 1)).is_err());
}

/// A generator of courses: the same seed is the same course.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn said(&mut self) -> WindowEvent {
        match self.below(8) {
            0 => WindowEvent::Quiesced(quiesced_stacks("shop")),
            1 => WindowEvent::Quiesced(quiesced_stacks("mail")),
            2 => WindowEvent::Began,
            3 => WindowEvent::Captured,
            4 => begun(0),
            5 => match self.below(4) {
                0 => late(),
                1 => begun(self.below(10_000)),
                _ => unwell(),
            },
            6 => WindowEvent::Cancelled,
            _ => nothing(),
        }
    }
}

const fn is_open(phase: WindowPhase) -> bool {
    matches!(phase, WindowPhase::Granted | WindowPhase::Quiesced | WindowPhase::Capturing)
}

/// In any order of events: the label is honest, an end is reported for ever, nothing is open past its bound, and a
/// release is always heard.
#[test]
fn no_course_makes_a_label_better_than_what_was_seen() {
    let (mut honest_ones, mut ends) = (0, 0);
    for seed in 1..=20_000 {
        let mut dice = Dice(u64::wrapping_mul(seed, 0x9E37_79B9_7F4A_7C15));
        let (mut window, mut ms, mut boots) = (fresh(), 1_000_u64, false);
        let (mut stands, mut seen, mut let_go, mut began) = (None, None, None::<u64>, None::<u64>);
        let mut over: Option<WindowPhase> = None;
        for _ in 0..dice.below(20) {
            // Mostly close together, so that a course gets far before its bound.
            ms += if dice.below(4) == 0 { dice.below(400_000) } else { dice.below(5_000) };
            boots |= dice.below(60) == 0;
            let now = if boots { rebooted(ms) } else { at(ms) };
            let in_time = !boots && ms < 901_000;
            assert!(in_time || !is_open(window.reported(&now)), "{seed}: {window:?}");
            let said = dice.said();
            if let Ok(after) = window.apply(&said, &now) {
                match (&said, after.reported(&now)) {
                    (WindowEvent::Quiesced(_), WindowPhase::Quiesced) if in_time => {
                        stands = stands.or(Some(ms))
                    }
                    (WindowEvent::Captured, WindowPhase::Captured) if in_time => seen = seen.or(Some(ms)),
                    (WindowEvent::Released(said), _) => {
                        let_go = let_go.or(Some(ms));
                        let ago = said.begun_ago.filter(|_| !boots);
                        let at = ago.map(|ago| ms.saturating_sub(u64::try_from(ago.as_millis()).unwrap()));
                        began = began.into_iter().chain(at).min();
                    }
                    _ => {}
                }
                assert!(!matches!(said, WindowEvent::Released(_)) || after.is_released(), "{seed}");
                window = after;
            } else {
                assert!(!matches!(said, WindowEvent::Released(_)), "{seed}: a release is always heard");
            }
            assert!(over.is_none_or(|end| window.reported(&now) == end), "{seed}: {over:?}, then {window:?}");
            over = Some(window.reported(&now)).filter(|phase| phase.is_over());
        }
        let after = |seen: u64| let_go.is_some_and(|at| seen <= at) && began.is_some_and(|at| seen <= at);
        let honest = stands.is_some() && seen.is_some_and(after);
        let label = window.label();
        assert_eq!(label.consistency == Consistency::Application, honest, "{seed}: {window:?}");
        honest_ones += u32::from(honest);
        ends += u32::from(over.is_some());
    }
    assert!(honest_ones > 50 && ends > 5_000, "{honest_ones} and {ends} courses: too few to say anything");
}
