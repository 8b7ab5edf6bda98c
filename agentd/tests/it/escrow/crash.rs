//! Tests of recovery codes, killed at every point.
//!
//! After each, with the agent started anew: every code that a person was asked to keep opens the key. So at least one
//! does wherever one did before or the words were typed back. What was said at the terminal is true, and work can
//! continue.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use agentd::execute::failpoint::{Failpoints, Killed, Nowhere, Point};
use agentd::model::escrow::{CodeRecord, CodeStatus};
use agentd::plan::escrow::{RETIRE_AFTER, current};
use holdfast_protocol::code::ErrorCode;
use holdfast_recovery::RecoveryCode;
use holdfast_recovery::escrow::Expected;
use holdfast_seal::backup_key::BackupKey;
use jiff::SignedDuration;
use rustix::process::{Pid, Signal, getpid, kill_process};

use crate::escrow::place::{Made, Place, key, lay_down_with, other_key};
use crate::paper::{ENTER, Paper};
use crate::terminal::typed_by;

/// At which of its points the agent dies; the agent is this test, started again as a process of its own.
const DIES_AT: &str = "HOLDFAST_TEST_DIES_AT";
const BOX: &str = "HOLDFAST_TEST_BOX";
const READY: &str = "the door is open";

struct DiesAt {
    number: u32,
    reached: AtomicU32,
}

impl Failpoints for DiesAt {
    fn reached(&self, _: Point) -> Result<(), Killed> {
        if self.reached.fetch_add(1, Ordering::SeqCst) + 1 == self.number {
            kill_process(getpid(), Signal::KILL).unwrap();
        }
        Ok(())
    }
}

/// The agent, until its standard input ends.
fn agent(number: &str) {
    let failpoints = DiesAt { number: number.parse().unwrap(), reached: AtomicU32::new(0) };
    let _place = Place::at(Path::new(&std::env::var(BOX).unwrap()), Arc::new(failpoints));
    println!("\n{READY}");
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

/// Runs a person's command while an agent dies at a point. Returns what the terminal showed, and how the agent ended.
#[expect(clippy::disallowed_methods, reason = "a process that is killed")]
fn with_a_dying_agent(
    place: &Path,
    (test, number): (&str, u32),
    run: impl FnOnce() -> String,
) -> (String, ExitStatus) {
    let mut agent = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(DIES_AT, number.to_string())
        .env(BOX, place)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(agent.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == READY), "no agent");
    let shown = run();
    drop(agent.stdin.take());
    let ended = agent.wait().unwrap();
    (shown, ended)
}

/// What a person does, and which words they hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Story {
    Create,
    Rotate,
    Retire,
    /// Another key was signed for, and gets its first code.
    OtherKey,
}

impl Story {
    const fn line(self) -> &'static str {
        match self {
            Self::Create | Self::OtherKey => "bin/agentd escrow create",
            Self::Rotate => "bin/agentd escrow rotate",
            Self::Retire => "bin/agentd escrow retire 1",
        }
    }

    /// Two for each write.
    const fn points(self) -> u32 {
        match self {
            Self::Create | Self::Rotate | Self::OtherKey => 6,
            Self::Retire => 4,
        }
    }

    /// The key that is signed for.
    fn key(self) -> BackupKey {
        if self == Self::OtherKey { other_key() } else { key() }
    }

    /// The codes that are there before.
    fn before(self) -> Vec<Made> {
        let long_ago = RETIRE_AFTER + SignedDuration::from_hours(24);
        let codes = match self {
            Self::Create => 0..0,
            Self::Rotate | Self::OtherKey => 1..2,
            Self::Retire => 1..3,
        };
        codes.map(|number| Made::new(number, long_ago)).collect()
    }
}

fn is_kept(code: &CodeRecord) -> bool {
    matches!(code.status, CodeStatus::Kept { .. })
}

/// Every code that is kept opens its key with the words that a person holds; the number of the newest for this key.
fn all_open(place: &Place, signed: &BackupKey, papers: &[(u32, &RecoveryCode)]) -> Option<u32> {
    let codes = place.codes().codes;
    for code in codes.iter().filter(|code| is_kept(code)) {
        let number = code.number().number();
        let held: Vec<_> = papers.iter().filter(|(held, _)| *held == number).collect();
        assert_eq!(held.len(), 1, "nobody holds code {number}");
        for (_, words) in held {
            let opened = place.file(code.number()).open(words, Expected::Exactly(&code.record)).unwrap();
            let wanted =
                [key(), other_key()].into_iter().find(|one| one.fingerprint() == code.key()).unwrap();
            assert_eq!(opened.key().to_json().unwrap().expose(), wanted.to_json().unwrap().expose());
        }
    }
    place.runtime().block_on(place.store().verify_audit()).unwrap();
    current(&codes, signed.fingerprint()).map(|code| code.number().number())
}

fn every_point(story: Story, test: &str) {
    if let Ok(number) = std::env::var(DIES_AT) {
        return agent(&number);
    }
    let before = story.before();
    for number in 1.. {
        let folder = lay_down_with(&story.key(), &before);
        let mut paper = match story {
            Story::Create | Story::Rotate | Story::OtherKey => Paper::new(0),
            Story::Retire => Paper::of(&before[1].code),
        };
        let line = format!("{} || echo FAILED", story.line());
        let (shown, ended) = with_a_dying_agent(folder.path(), (test, number), || {
            typed_by(folder.path(), &line, &mut |fresh: &str| paper.answer(fresh))
        });
        let what = format!("{story:?} killed at {number}: {shown}");
        let place = Place::at(folder.path(), Arc::new(Nowhere));
        let made = (paper.words.len() == 11).then(|| paper.code());
        let mut papers: Vec<(u32, &RecoveryCode)> = (1..).zip(before.iter().map(|made| &made.code)).collect();
        let next = u32::try_from(before.len()).unwrap() + 1;
        if let Some(made) = made.as_ref().filter(|_| story != Story::Retire) {
            papers.push((next, made));
        }
        let newest = all_open(&place, &story.key(), &papers);
        if ended.success() {
            assert_eq!(number, story.points() + 1, "{what}");
            assert!(!shown.contains("FAILED"), "{what}");
            break;
        }
        assert!(shown.contains("FAILED") && !shown.contains("of another version"), "{what}");
        go_on(story, (&place, &what), &mut papers, newest);
    }
}

/// The agent was started again. What was said is compared with the actual state, and the person continues.
fn go_on(
    story: Story,
    (place, what): (&Place, &str),
    papers: &mut Vec<(u32, &RecoveryCode)>,
    newest: Option<u32>,
) {
    let (_, status) = place.without_terminal(&["escrow", "status"]);
    assert_eq!(status.contains(ErrorCode::EscrowMissing.as_str()), newest.is_none(), "{what}\n{status}");
    let unsure = what.contains("hold on to the paper until");
    match story {
        Story::Create | Story::Rotate | Story::OtherKey => {
            let had = if story == Story::Rotate { Some(1) } else { None };
            let is_kept = newest > had;
            assert!(newest >= had, "{what}: what opened the key before still does");
            assert!(unsure || !is_kept, "{what}: kept, and the paper would be thrown away\n{status}");
            let mut again = Paper::new(0);
            let purpose = if newest.is_none() { "create" } else { "rotate" };
            let line = format!("bin/agentd escrow {purpose}");
            let shown = typed_by(place.path(), &line, &mut |fresh: &str| again.answer(fresh));
            assert!(shown.contains("opens the off-site backups at off1 from now on"), "{what}\n{shown}");
            let number = u32::try_from(place.codes().codes.len()).unwrap();
            let code = again.code();
            // What was not kept left its number to this one.
            let kept = papers.iter().copied().filter(|(held, _)| *held != number);
            let held: Vec<_> = kept.chain([(number, &code)]).collect();
            assert_eq!(all_open(place, &story.key(), &held), Some(number), "{what}");
        }
        Story::Retire => {
            assert_eq!(newest, Some(2), "{what}");
            let gone = !is_kept(&place.codes().codes[0]);
            let mut again = Paper::of(papers[1].1);
            let line = if gone { "! bin/agentd escrow retire 1" } else { "bin/agentd escrow retire 1" };
            let shown = typed_by(place.path(), line, &mut |fresh: &str| again.answer(fresh));
            let says = if gone { "code 1 opens nothing" } else { "Code 1 is given up" };
            assert!(shown.contains(says), "{what}\n{shown}");
            assert_eq!(all_open(place, &key(), papers), Some(2), "{what}");
        }
    }
}

#[test]
fn the_agent_dies_at_each_write_of_a_first_code() {
    every_point(Story::Create, "escrow::crash::the_agent_dies_at_each_write_of_a_first_code");
}

#[test]
fn the_agent_dies_at_each_write_of_another_code() {
    every_point(Story::Rotate, "escrow::crash::the_agent_dies_at_each_write_of_another_code");
}

#[test]
fn the_agent_dies_at_each_write_of_a_code_that_goes() {
    every_point(Story::Retire, "escrow::crash::the_agent_dies_at_each_write_of_a_code_that_goes");
}

#[test]
fn the_agent_dies_at_each_write_of_the_first_code_of_another_key() {
    every_point(
        Story::OtherKey,
        "escrow::crash::the_agent_dies_at_each_write_of_the_first_code_of_another_key",
    );
}

/// A command that a person runs, whose process can be killed.
fn killable(arguments: &str) -> String {
    format!("sh -c 'echo $$ > pid; exec bin/agentd {arguments}' || echo FAILED")
}

fn kill(place: &Place, signal: Signal) {
    let pid: i32 = std::fs::read_to_string(place.path().join("pid")).unwrap().trim().parse().unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// A lost connection, an ended session, and two that a keyboard sends: each takes the sheet away, and uses up no number.
#[test]
fn a_signal_takes_the_sheet_away_and_uses_up_no_number() {
    let place = Place::new();
    let sheet = std::path::PathBuf::from(format!("/dev/shm/holdfast-test-{}-signal.pdf", std::process::id()));
    for signal in [Signal::HUP, Signal::TERM, Signal::INT, Signal::QUIT] {
        let mut held = 0;
        let mut who = |fresh: &str| {
            // The prompt stays the last that was said.
            if held == 0 && fresh.contains("Enter when you hold the paper") {
                held = std::fs::metadata(&sheet).unwrap().len();
                kill(&place, signal);
            }
            None
        };
        let line = killable(&format!("escrow create --sheet {}", sheet.display()));
        let shown = typed_by(place.path(), &line, &mut who);
        assert!(shown.contains("FAILED") && held > 10_000, "{signal:?}: {shown}");
        assert!(!sheet.exists(), "{signal:?}: {shown}");
        let codes = place.codes().codes;
        assert_eq!((codes.len(), codes[0].number().number()), (1, 1), "{signal:?}");
    }
    // The terminal does not show the words either.
    let mut paper = Paper::new(0);
    let mut who = |fresh: &str| {
        if paper.words.is_empty() && fresh.contains(ENTER) {
            paper.answer(fresh)?;
            kill(&place, Signal::TERM);
        }
        None
    };
    let shown = typed_by(place.path(), &killable("escrow create"), &mut who);
    let (_, after) = shown.split_once(&paper.words[10]).unwrap();
    assert!(after.contains("\x1b[2J\x1b[H\x1b[?1049l"), "{shown}");
    let mut kept = Paper::new(0);
    let shown = typed_by(place.path(), "bin/agentd escrow create", &mut |fresh: &str| kept.answer(fresh));
    assert!(shown.contains("Recovery code 1 opens"), "{shown}");
    assert_eq!(all_open(&place, &key(), &[(1, &kept.code())]), Some(1));
}

/// A sheet that signal 9 left is distinguished from another owner's file, and from a sheet that is being printed.
#[test]
fn only_a_sheet_that_no_one_holds_is_taken_away() {
    let place = Place::new();
    let name = |what: &str| {
        std::path::PathBuf::from(format!("/dev/shm/holdfast-test-{}-{what}.txt", std::process::id()))
    };
    let (own, other, sheet) = (name("own"), name("other"), name("sheet"));
    std::fs::write(&own, "Recovery code for something else\n").unwrap();
    let line = format!("! bin/agentd escrow create --sheet {}", own.display());
    let refused = typed_by(place.path(), &line, &mut |_: &str| None);
    assert!(refused.contains("is no sheet that a broken-off try left"), "{refused}");
    assert!(own.exists() && place.codes().codes.is_empty());
    let mut second = String::new();
    let mut who = |fresh: &str| {
        if !fresh.contains("Enter when you hold the paper") {
            return None;
        }
        let line = format!("! bin/agentd escrow create --sheet {}", sheet.display());
        second = typed_by(place.path(), &line, &mut |_: &str| None);
        assert!(sheet.exists(), "the first is still printed");
        let line = format!("bin/agentd escrow create --sheet {} || echo FAILED", other.display());
        second += &typed_by(place.path(), &line, &mut |fresh: &str| {
            fresh.contains("Enter when").then(|| "\x03".to_owned())
        });
        assert!(sheet.exists(), "and so it is beside another");
        Some("\x03".to_owned())
    };
    let line = format!("! bin/agentd escrow create --sheet {}", sheet.display());
    let first = typed_by(place.path(), &line, &mut who);
    assert!(second.contains("which still runs: end that one first"), "{first}\n{second}");
    assert!(!sheet.exists() && !other.exists(), "{first}\n{second}");
    std::fs::remove_file(own).unwrap();
}

/// Two people at once: one of them gets the number, and no file is kept under another's record.
#[test]
fn of_two_makings_of_one_number_the_first_keeps_nothing() {
    let place = Place::new();
    let (mut first, mut second) = (Paper::new(0), Paper::new(0));
    let mut between = String::new();
    let mut who = |fresh: &str| {
        let answer = first.answer(fresh)?;
        if between.is_empty() {
            between =
                typed_by(place.path(), "bin/agentd escrow create", &mut |fresh: &str| second.answer(fresh));
        }
        Some(answer)
    };
    let shown = typed_by(place.path(), "! bin/agentd escrow create", &mut who);
    assert!(shown.contains("somebody else has gone on with it, or it was begun anew"), "{shown}");
    assert!(between.contains("Recovery code 1 opens"), "{between}");
    assert_eq!(all_open(&place, &key(), &[(1, &second.code())]), Some(1));
}

#[test]
fn any_types_is_killed_at_each_question_and_the_code_before_still_opens() {
    let before = [Made::new(1, SignedDuration::ZERO)];
    let folder = lay_down_with(&key(), &before);
    let place = Place::at(folder.path(), Arc::new(Nowhere));
    // A folder of its own: any command that begins a code on this machine clears the one above.
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let sheet = memory.path().join("killed.txt");
    let arguments = [
        "escrow rotate".to_owned(),
        "escrow rotate".to_owned(),
        "escrow rotate".to_owned(),
        "escrow rotate".to_owned(),
        format!("escrow rotate --sheet {}", sheet.display()),
    ];
    for (question, arguments) in arguments.iter().enumerate() {
        let (mut paper, mut asked, mut is_dead) = (Paper::new(0), 0, false);
        let mut who = |fresh: &str| {
            if is_dead {
                return None;
            }
            let is_sheet = fresh.contains("Enter when you hold the paper");
            let answer = if is_sheet { String::new() } else { paper.answer(fresh)? };
            if is_sheet || asked == question {
                kill(&place, Signal::KILL);
                is_dead = true;
                return None;
            }
            asked += 1;
            Some(answer)
        };
        let shown = typed_by(place.path(), &killable(arguments), &mut who);
        assert!(shown.contains("FAILED"), "{shown}");
        assert_eq!(all_open(&place, &key(), &[(1, &before[0].code)]), Some(1));
        let left = place.codes().codes;
        assert_eq!(left.len(), 2, "a try that came to nothing leaves its number to the next");
        assert!(matches!(left.last().unwrap().status, CodeStatus::Shown { .. }));
        if !paper.words.is_empty() {
            place.nothing_of(&paper.words, &[]);
        }
    }
    // No process could remove the sheet any more; the next start does. Its words open nothing.
    assert!(sheet.exists());
    let next = memory.path().join("next.txt");
    let line = format!("! bin/agentd escrow rotate --sheet {}", next.display());
    let mut gone = None;
    typed_by(place.path(), &line, &mut |fresh: &str| {
        fresh.contains("Enter when you hold the paper").then(|| {
            gone.get_or_insert(!sheet.exists() && next.exists());
            "\x03".to_owned()
        })
    });
    assert_eq!(gone, Some(true));
    // A sheet that was left in the usual place for sheets is removed at the start of any command.
    let left = std::path::PathBuf::from(format!("/dev/shm/holdfast-test-{}-left.txt", std::process::id()));
    std::fs::write(&left, "Recovery code for the encrypted off-site backups\n\nabacus\n").unwrap();
    std::fs::set_permissions(&left, std::fs::Permissions::from_mode(0o600)).unwrap();
    let mut paper = Paper::new(0);
    let shown = typed_by(place.path(), "bin/agentd escrow rotate", &mut |fresh: &str| paper.answer(fresh));
    assert!(!left.exists() && shown.contains("Recovery code 2 opens"), "{shown}");
    assert_eq!(all_open(&place, &key(), &[(1, &before[0].code), (2, &paper.code())]), Some(2));
    assert!(shown.contains(ENTER));
}
