//! Runs of the agent that end by signal 9.
//!
//! In: a stage, and where each life is to end. Out: how it ended, and how soon the agent answered and continued its
//! work. It panics as soon as an invariant is broken: a guest exists twice, a volume has no owner, no journal names a
//! task of Proxmox, or a journal or an audit lost an entry.

use std::collections::BTreeSet;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use e2e::stage::Failpoint;
use serde_json::Value;

use super::books::Books;
use super::stand::{FOREIGN_VMID, Stand};

/// Ends a hang; measures nothing.
const LONG: Duration = Duration::from_secs(120);
/// Between two polls of a running agent.
const LOOK: Duration = Duration::from_millis(10);

/// Where a life is to end.
#[derive(Clone, Debug)]
pub enum Aim {
    /// At this point.
    Name(String),
    /// At the point with this number, counted from the start.
    Number(u32),
    /// After this time, at any point.
    After(Duration),
    /// Not before its work is done.
    Rest,
}

/// How a life ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Killed before its work was done; at this point, where a point was the aim.
    Killed(Option<String>),
    /// Its work was done. It was killed then.
    Rested,
}

#[derive(Debug)]
pub struct Life {
    pub end: End,
    /// The points it reached, in order.
    pub points: Vec<String>,
    /// From its start to its first answer.
    pub ready: Option<Duration>,
    /// From its start to the first point of an operation.
    pub at_work: Option<Duration>,
}

/// A stage whose agent is killed again and again.
pub struct Fire {
    pub stand: Stand,
    books: Books,
    log_from: u64,
    pub lives: Vec<Life>,
}

impl Fire {
    pub fn new(stand: Stand) -> Self {
        Self { stand, books: Books::default(), log_from: 0, lives: Vec::new() }
    }

    /// One life of the agent, from its start to its end by signal 9, and a check of what it left.
    pub fn live(&mut self, aim: &Aim, is_done: impl Fn(&Value) -> bool) -> End {
        let words = match aim {
            Aim::Name(name) => name.clone(),
            Aim::Number(number) => number.to_string(),
            Aim::After(_) | Aim::Rest => "0".to_owned(),
        };
        let begun = Instant::now();
        self.stand.stage.start_agent(Some(&Failpoint(words))).unwrap();
        let (mut ready, mut at_work, mut bytes, mut rested) = (None, None, Vec::new(), Value::Null);
        let end = loop {
            let mut log = self.read_log(&mut bytes);
            let worked = points(&log).next().is_some();
            at_work = at_work.or_else(|| worked.then(|| begun.elapsed()));
            if let Some(status) = self.stand.stage.agent_gone().unwrap() {
                log = self.read_log(&mut bytes);
                assert_eq!(status.signal(), Some(9), "{aim:?}: ended by itself:\n{log}");
                break End::Killed(points(&log).last());
            }
            if matches!(aim, Aim::After(moment) if begun.elapsed() >= *moment) {
                self.stand.stage.kill_agent().unwrap();
                break End::Killed(None);
            }
            if let Some(reported) = self.stand.stage.agent_at_its_listener() {
                ready.get_or_insert_with(|| begun.elapsed());
                if is_done(&reported) {
                    self.stand.stage.kill_agent().unwrap();
                    rested = reported;
                    // The report may be older than the last operation. After three starts without a whole cycle the
                    // agent uses the last good document, and returns to this one later.
                    let open = Books::read(&self.stand.stage.state()).open();
                    break if open == 0 { End::Rested } else { End::Killed(None) };
                }
                assert!(begun.elapsed() < LONG, "{aim:?}: not done: {reported:#}\n{log}");
            }
            assert!(begun.elapsed() < LONG, "{aim:?}: nobody answers:\n{log}");
            std::thread::sleep(LOOK);
        };
        let points = points(&self.read_log(&mut bytes)).collect();
        let log = String::from_utf8_lossy(&bytes);
        self.look_at_what_is_left(&end, &rested, &log);
        self.lives.push(Life { end: end.clone(), points, ready, at_work });
        end
    }

    /// What this life has logged so far; `bytes` is what of it was read before.
    fn read_log(&mut self, bytes: &mut Vec<u8>) -> String {
        let mut file = std::fs::File::open(self.stand.stage.agent_log()).unwrap();
        file.seek(SeekFrom::Start(self.log_from)).unwrap();
        self.log_from += file.read_to_end(bytes).unwrap() as u64;
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// `reported` is the last report of a life that finished its work.
    fn look_at_what_is_left(&mut self, end: &End, reported: &Value, log: &str) {
        let books = Books::read(&self.stand.stage.state());
        books.assert_continues(&self.books);
        self.books = books;
        no_guest_twice(&self.stand);
        if *end == End::Rested {
            no_volume_of_no_one(&self.stand);
            let tasks = self.stand.stage.tasks().unwrap();
            assert_eq!(tasks, self.books.tasks, "the tasks that Proxmox knows, and those in the journals");
            let open: Vec<_> = self
                .books
                .operations
                .values()
                .filter(|operation| operation.outcome.as_deref() != Some("done"))
                .collect();
            assert!(
                open.is_empty(),
                "an operation did not end well: {open:?}; the agent said: {reported:#}; it logged:\n{log}"
            );
        }
    }

    /// The kinds of operations that were performed.
    pub fn kinds(&self) -> BTreeSet<&str> {
        self.books.operations.values().map(|operation| operation.kind.as_str()).collect()
    }

    /// What was written down when the last life had ended.
    pub fn books(&self) -> &Books {
        &self.books
    }
}

/// Lines `failpoint 7 restore:after:posted`, of which the last may be half there.
fn points(log: &str) -> impl Iterator<Item = String> + '_ {
    let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().filter_map(|line| Some(line.strip_prefix("failpoint ")?.split_once(' ')?.1.to_owned()))
}

/// Names of guests are unique, at any time, and the foreign guest stays.
fn no_guest_twice(stand: &Stand) {
    let configurations = stand.stage.configurations().unwrap();
    let mut names = BTreeSet::new();
    for text in configurations.values() {
        // A restore that has just begun has no name yet.
        if let Some(name) = text.lines().find_map(|line| line.strip_prefix("hostname: ")) {
            assert!(names.insert(name.to_owned()), "guest {name} twice: {configurations:#?}");
        }
    }
    assert!(configurations.contains_key(&FOREIGN_VMID), "somebody else's guest is still there");
}

/// Every volume on the disk is named in its guest's configuration.
fn no_volume_of_no_one(stand: &Stand) {
    let configurations = stand.stage.configurations().unwrap();
    for entry in std::fs::read_dir(stand.stage.folder().join("sim/root/mnt/tank/images")).unwrap() {
        let folder = entry.unwrap();
        let vmid: u32 = folder.file_name().to_string_lossy().parse().unwrap();
        let Some(text) = configurations.get(&vmid) else { panic!("volumes of {vmid}, and no such guest") };
        for volume in std::fs::read_dir(folder.path()).unwrap() {
            let name = volume.unwrap().file_name().to_string_lossy().into_owned();
            let stem = name.split('.').next().unwrap_or_default();
            assert!(text.contains(stem), "{name} belongs to no guest:\n{text}");
        }
    }
}
