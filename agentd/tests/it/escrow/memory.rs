//! Tests of the memory of a process with a code.
//!
//! It is read as root reads it. For an ordinary user the memory is closed, and the test checks that instead.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use aho_corasick::AhoCorasick;
use base64::Engine as _;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::escrow::place::{Place, key};
use crate::paper::Paper;
use crate::terminal::typed_by;

/// A piece of memory and whether it is locked.
pub struct Mapping {
    name: String,
    pub is_locked: bool,
    bytes: Vec<u8>,
}

/// All memory of a process that it can write to.
fn memory(pid: &str) -> Vec<Mapping> {
    let folder = Path::new("/proc").join(pid);
    let text = std::fs::read_to_string(folder.join("smaps")).unwrap();
    let file = File::open(folder.join("mem")).unwrap();
    let mut all = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        if let Some(range) = first.split_once('-') {
            let [from, to] = [range.0, range.1].map(|end| u64::from_str_radix(end, 16).unwrap());
            let is_writable = words.next().unwrap().as_bytes()[1] == b'w';
            let mut bytes = vec![0; if is_writable { usize::try_from(to - from).unwrap() } else { 0 }];
            // What the kernel keeps for itself cannot be read.
            if file.read_exact_at(&mut bytes, from).is_err() {
                bytes.clear();
            }
            all.push(Mapping { name: line.to_owned(), is_locked: false, bytes });
        } else if first == "VmFlags:" {
            all.last_mut().unwrap().is_locked = words.any(|flag| flag == "lo");
        }
    }
    assert!(all.iter().map(|mapping| mapping.bytes.len()).sum::<usize>() > 100_000, "{text}");
    all
}

/// In every form they could have in memory: three words of the paper in a row, as text or as numbers.
fn forms_of_words(words: &[String]) -> Vec<Vec<u8>> {
    let list = include_str!("../../../../recovery/data/eff_large_wordlist.txt");
    let number = |word: &String| {
        let at = list
            .split_whitespace()
            .filter(|part| part.parse::<u32>().is_err())
            .position(|known| known == word);
        u16::try_from(at.unwrap()).unwrap().to_le_bytes()
    };
    let mut forms: BTreeSet<Vec<u8>> = BTreeSet::new();
    for three in words.windows(3) {
        for between in [" ", "\n", "-", ", "] {
            forms.insert(three.join(between).into_bytes());
        }
    }
    for four in words.windows(4) {
        forms.insert(four.iter().flat_map(&number).collect());
    }
    forms.into_iter().collect()
}

fn forms_of_key() -> Vec<Vec<u8>> {
    let json = key().to_json().unwrap();
    let parts: serde_json::Value = serde_json::from_str(json.expose()).unwrap();
    let text = parts["data"].as_str().unwrap();
    let raw = base64::engine::general_purpose::STANDARD.decode(text).unwrap();
    // Half of it is too much already.
    [&text.as_bytes()[..22], &text.as_bytes()[22..], &raw[..16], &raw[16..]].map(<[u8]>::to_vec).into()
}

/// The mappings that contain any of the forms.
fn found(memory: Vec<Mapping>, forms: &[Vec<u8>]) -> Vec<Mapping> {
    // All forms in one pass: there are dozens, and tens of megabytes.
    let any = AhoCorasick::new(forms).unwrap();
    memory.into_iter().filter(|mapping| any.is_match(&mapping.bytes)).collect()
}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (locked: {})", self.name, self.is_locked)
    }
}

/// Where words and key are in memory.
#[derive(Debug)]
pub struct Look {
    pub words: Vec<Mapping>,
    pub key: Vec<Mapping>,
}

/// Reads all memory of a process that can leave no core. None for an ordinary user, to whom it must be closed.
pub fn look(pid: &str, words: &[String]) -> Option<Look> {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().skip(4).take(2).collect::<Vec<_>>(), ["0", "0"]);
    if !rustix::process::geteuid().is_root() {
        assert!(File::open(format!("/proc/{pid}/mem")).is_err(), "an ordinary user looks in");
        return None;
    }
    let memory = || memory(pid);
    Some(Look { words: found(memory(), &forms_of_words(words)), key: found(memory(), &forms_of_key()) })
}

/// A standard output that accepts no more bytes: so the process stays after all its work is done.
pub struct Stuck(File);

impl Stuck {
    /// As `stuck` in this folder.
    pub fn in_folder(folder: &Path) -> Self {
        let pipe = folder.join("stuck");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let full = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap();
        let mut stuck = File::options().read(true).write(true).custom_flags(full).open(&pipe).unwrap();
        while stuck.write(&[b' '; 4096]).is_ok() {}
        Self(stuck)
    }

    /// So that the process ends.
    pub fn empty(&self) {
        let _length = (&self.0).read(&mut [0; 1 << 17]).unwrap();
    }
}

#[test]
fn words_and_key_are_in_no_memory_once_they_are_used() {
    let place = Place::new();
    let stuck = Stuck::in_folder(place.path());
    let line = "sh -c 'echo $$ > pid; exec bin/agentd escrow create --output json > stuck'";
    let (mut paper, mut looks) = (Paper::new(0), 0);
    let shown = typed_by(place.path(), line, &mut |fresh: &str| {
        let answer = paper.answer(fresh);
        let is_over = fresh.contains("and the code is kept.");
        if answer.is_none() && !is_over {
            return None;
        }
        let pid = std::fs::read_to_string(place.path().join("pid")).unwrap().trim().to_owned();
        looks += 1;
        if let Some(Look { words, key }) = look(&pid, &paper.words) {
            assert!(words.iter().all(|mapping| mapping.is_locked), "the words lie in {words:?}");
            if is_over {
                assert!(words.is_empty() && key.is_empty(), "words lie in {words:?}, the key in {key:?}");
            } else {
                assert!(!words.is_empty() && !key.is_empty(), "the look finds what is there");
            }
        }
        if is_over {
            stuck.empty();
            return Some(String::new());
        }
        answer
    });
    assert!(shown.contains("and the code is kept."), "{shown}");
    assert_eq!(looks, 5, "the page, three words, and afterwards");
}
