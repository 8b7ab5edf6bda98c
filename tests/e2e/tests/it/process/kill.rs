//! Tests of the agent killed hundreds of times.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use e2e::document;
use serde_json::{Value, json};

use super::fire::{Aim, End, Fire, Life};
use super::stand;

/// One request after the other for one guest, each of which is an operation.
const CHAPTERS: &[Chapter] = &[
    Chapter { kind: "provision", change: |_| {} },
    Chapter { kind: "reconfigure", change: |guest| guest["size"]["memory_mib"] = json!(640) },
    Chapter { kind: "grow", change: |guest| guest["size"]["rootfs_gib"] = json!(4) },
    Chapter { kind: "attach_volume", change: attach },
    Chapter { kind: "stop", change: |guest| guest["run"] = json!("stopped") },
    Chapter { kind: "start", change: |guest| guest["run"] = json!("running") },
];

fn attach(guest: &mut Value) {
    let volume = json!({ "name": "late", "mount": "/srv/late", "size_gib": 1, "kind": "hot" });
    guest["volumes"].as_array_mut().unwrap().push(volume);
}

struct Chapter {
    kind: &'static str,
    change: fn(&mut Value),
}

/// How often missed points are tried with another guest. A point is missed when a kill before it changed the way.
const ROUNDS: u8 = 4;
/// A chapter is at rest within this many lives that nothing cuts short.
const LIVES_TO_REST_MAX: u32 = 5;
/// Guests that are killed at, at any moment.
const AT_ANY_MOMENT: u8 = 3;

/// The desired document as it grows, and what the agent reports when it is fulfilled.
#[derive(Default)]
struct Goal {
    guests: Vec<Value>,
    generation: u64,
    chapter: &'static str,
}

impl Goal {
    /// The next chapter of the last guest's story.
    fn go_on(&mut self, fire: &Fire, chapter: &Chapter) {
        (chapter.change)(self.guests.last_mut().unwrap());
        fire.stand
            .stage
            .apply(&json!({ "poll_interval_s": 5, "guests": self.guests }), chapter.kind)
            .unwrap();
        self.generation += 1;
        self.chapter = chapter.kind;
    }

    /// A new guest, larger than the golden, so that growing is real work, and with a volume.
    fn guest(&mut self, fire: &Fire) {
        let number = u8::try_from(self.guests.len()).unwrap() + 1;
        let mut guest = document::guest(&fire.stand.stage.ground(), number, &name(number), "acme");
        guest["size"]["rootfs_gib"] = json!(3);
        guest["volumes"] = json!([{ "name": "db", "mount": "/srv/db", "size_gib": 1, "kind": "hot" }]);
        self.guests.push(guest);
    }

    /// Whether the agent holds this document, has done the chapter's work, has nothing else under way, and sees every
    /// guest as the document describes it.
    fn is_fulfilled(&self, reported: &Value) -> bool {
        let sections = &reported["sections"];
        let under_way = |operation: &Value| {
            !["done", "undone", "parked"].contains(&operation["status"].as_str().unwrap_or_default())
        };
        let list = |name: &str| sections[name].as_array().cloned().unwrap_or_default();
        let as_intended = |guest: &Value| {
            list("guests").iter().any(|seen| {
                seen["uid"] == guest["uid"]
                    && seen["status"] == "managed"
                    && seen["run"] == guest["run"]
                    && seen["size"] == guest["size"]
                    && !seen["controller"].is_null()
                    && seen["conditions"].as_array().is_none_or(Vec::is_empty)
            })
        };
        let last = &self.guests.last().unwrap()["uid"];
        let chapter = |operation: &Value| {
            operation["guest"] == *last && operation["kind"] == self.chapter && operation["status"] == "done"
        };
        sections["desired"]["held"] == self.generation
            && list("operations").iter().any(chapter)
            && !list("operations").iter().any(under_way)
            && self.guests.iter().all(as_intended)
    }
}

fn name(number: u8) -> String {
    format!("g{number}")
}

/// A guest's configuration without its unique values: it is equal for every guest with the same story.
fn end(fire: &Fire, number: u8) -> BTreeSet<String> {
    let configurations = fire.stand.stage.configurations().unwrap();
    let own = format!("hostname: {}", name(number));
    let (vmid, text) = configurations.iter().find(|(_, text)| text.lines().any(|line| line == own)).unwrap();
    let uid = format!("0193a000-0000-7000-8000-{number:012x}");
    let plain = text.replace(&vmid.to_string(), "VMID").replace(&uid, "UID").replace(&own, "hostname: NAME");
    let own_words = ["hwaddr=", "ip=", "tags: "];
    let line = |line: &str| {
        let words = line.split(',').filter(|word| !own_words.iter().any(|own| word.starts_with(own)));
        words.collect::<Vec<_>>().join(",")
    };
    plain.lines().map(line).collect()
}

/// The points of each chapter, from a life in which the agent is not killed before the work is done.
fn undisturbed(fire: &mut Fire, goal: &mut Goal) -> Vec<Vec<String>> {
    goal.guest(fire);
    let mut all = Vec::new();
    for chapter in CHAPTERS {
        goal.go_on(fire, chapter);
        assert_eq!(fire.live(&Aim::Rest, |reported| goal.is_fulfilled(reported)), End::Rested);
        let mut points = fire.lives.last().unwrap().points.clone();
        let mut seen = BTreeSet::new();
        points.retain(|point| seen.insert(point.clone()));
        assert!(!points.is_empty(), "{} reached no point", chapter.kind);
        all.push(points);
    }
    all
}

#[test]
fn killed_at_every_point_and_at_any_moment_the_end_is_the_same() {
    let stand = stand::enrolled();
    // Every guest is stopped and resized here, which the brake would prevent.
    let config = stand.stage.folder().join("agent/agent.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let lines = text.lines().map(|line| match line.split_once(" = ") {
        Some((key @ ("at_least" | "share_percent"), _)) => format!("{key} = 100\n"),
        _ => format!("{line}\n"),
    });
    std::fs::write(&config, lines.collect::<String>()).unwrap();
    let mut fire = Fire::new(stand);
    let mut goal = Goal::default();
    let mut open = undisturbed(&mut fire, &mut goal);
    let (same_end, points) = (end(&fire, 1), open.clone());

    let mut killed_at: BTreeMap<(&str, String), u32> = BTreeMap::new();
    for round in 1..=ROUNDS {
        if open.iter().all(Vec::is_empty) {
            break;
        }
        goal.guest(&fire);
        for (chapter, open) in CHAPTERS.iter().zip(&mut open) {
            goal.go_on(&fire, chapter);
            for point in std::mem::take(open) {
                match fire.live(&Aim::Name(point.clone()), |reported| goal.is_fulfilled(reported)) {
                    End::Killed(Some(at)) => {
                        assert_eq!(at, point);
                        *killed_at.entry((chapter.kind, point)).or_default() += 1;
                    }
                    End::Killed(None) | End::Rested => open.push(point),
                }
            }
            let mut lives = 0..LIVES_TO_REST_MAX;
            let rested = lives.any(|_| fire.live(&Aim::Rest, |said| goal.is_fulfilled(said)) == End::Rested);
            assert!(rested, "{} never came to rest", chapter.kind);
        }
        assert_eq!(end(&fire, u8::try_from(goal.guests.len()).unwrap()), same_end, "round {round}");
    }
    assert!(open.iter().all(Vec::is_empty), "points at which nobody was killed: {open:#?}");

    let at_points = fire.lives.len();
    for _ in 0..AT_ANY_MOMENT {
        at_any_moment(&mut fire, &mut goal);
        assert_eq!(end(&fire, u8::try_from(goal.guests.len()).unwrap()), same_end);
    }
    print_table(&points, &killed_at);
    let killed = |lives: &[Life]| lives.iter().filter(|life| life.end != End::Rested).count();
    let (named, random) = fire.lives.split_at(at_points);
    println!(
        "{} kills at a named point, {} at any moment, {} at rest; 0 violations",
        killed(named),
        killed(random),
        fire.lives.len() - killed(&fire.lives),
    );
    let reported: BTreeSet<String> = fire.kinds().into_iter().map(str::to_owned).collect();
    assert!(CHAPTERS.iter().all(|chapter| reported.contains(chapter.kind)), "{reported:?}");
    let others: Vec<String> = kinds().difference(&reported).cloned().collect();
    println!("asked for by no document, so killed in the crash matrix only: {}", others.join(", "));
    print_times(&fire.lives);
}

/// Every kind of operation there is, by the exported schema.
fn kinds() -> BTreeSet<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/operation.schema.json");
    let schema: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let all = schema["$defs"]["OperationKind"]["oneOf"].as_array().unwrap();
    all.iter().map(|kind| kind["const"].as_str().unwrap().to_owned()).collect()
}

/// The whole story of one guest, in lives that end after some points or some time.
fn at_any_moment(fire: &mut Fire, goal: &mut Goal) {
    // The moments depend only on the guest's number, so a run can be repeated.
    let mut state = 0x9e37_79b9_u32.wrapping_mul(u32::try_from(goal.guests.len()).unwrap());
    let mut next = |below: u32| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state % below
    };
    goal.guest(fire);
    for chapter in CHAPTERS {
        goal.go_on(fire, chapter);
        loop {
            // Most lives are long enough to make progress.
            let aim = match next(2) {
                0 => Aim::Number(2 + next(5)),
                _ => Aim::After(Duration::from_millis(u64::from(150 + next(450)))),
            };
            if fire.live(&aim, |reported| goal.is_fulfilled(reported)) == End::Rested {
                break;
            }
        }
    }
}

fn print_table(points: &[Vec<String>], killed_at: &BTreeMap<(&str, String), u32>) {
    for (chapter, points) in CHAPTERS.iter().zip(points) {
        let kills: u32 =
            killed_at.iter().filter(|((kind, _), _)| *kind == chapter.kind).map(|(_, count)| count).sum();
        println!("{:<12} {:>3} points, {kills:>3} kills", chapter.kind, points.len());
    }
}

/// How soon after its start a killed agent answers and continues its work. Only printed, never checked: it depends on
/// the machine.
fn print_times(lives: &[Life]) {
    let of = |what: &str, times: &mut Vec<Duration>| {
        times.sort_unstable();
        let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_millis();
        println!(
            "{what}: {} ms median, {} ms 99 %, {} ms at most, of {}",
            at(50),
            at(99),
            at(100),
            times.len()
        );
    };
    of("ready to answer after kill -9", &mut lives.iter().filter_map(|life| life.ready).collect());
    of("an operation goes on after kill -9", &mut lives.iter().filter_map(|life| life.at_work).collect());
}
