//! Where the memory of a process lies, from `/proc/PID/smaps`.

use std::fs;

use anyhow::{Context, Result};

/// A part of a process's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The program's own code, as it was read from its file.
    Code,
    /// The program's constants and tables, of which relocation changed pages too.
    Constants,
    /// Shared libraries.
    Libraries,
    /// What the allocator holds: buffers of TLS and HTTP, SQLite's pages, all of our records.
    Heap,
    /// Stacks of threads.
    Stacks,
    /// Other files, such as the index of the database's log.
    Files,
}

impl Part {
    pub const ALL: [Self; 6] =
        [Self::Code, Self::Constants, Self::Libraries, Self::Heap, Self::Stacks, Self::Files];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Code => "code of the program",
            Self::Constants => "constants of the program",
            Self::Libraries => "shared libraries",
            Self::Heap => "heap",
            Self::Stacks => "stacks of threads",
            Self::Files => "mapped files",
        }
    }
}

/// PSS in KiB, by the places of [`Part::ALL`].
pub type Kib = [u64; Part::ALL.len()];

/// Reads it of a process.
pub fn parts(pid: u32) -> Result<Kib> {
    let path = |name: &str| format!("/proc/{pid}/{name}");
    let smaps = fs::read_to_string(path("smaps")).with_context(|| format!("process {pid} has ended"))?;
    let program = fs::read_link(path("exe")).context("the program has no file")?;
    count(&smaps, &program.to_string_lossy())
}

fn count(smaps: &str, program: &str) -> Result<Kib> {
    let mut kib = Kib::default();
    let (mut part, mut guard_before) = (Part::Heap, false);
    for line in smaps.lines() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if word == "Pss:" {
            let number = rest.split_whitespace().next().context("`Pss:` has no number")?;
            let number: u64 = number.parse().context("`Pss:` is no number")?;
            for (_, sum) in Part::ALL.iter().zip(&mut kib).filter(|(one, _)| **one == part) {
                *sum += number;
            }
        } else if word.contains('-') {
            let mut words = rest.split_whitespace();
            let rights = words.next().context("a mapping without rights")?;
            let name = words.nth(3).unwrap_or_default();
            part = of_mapping(rights, name, program, guard_before);
            // A thread's stack lies above the pages that guard it.
            guard_before = rights.starts_with("---") && name.is_empty();
        }
    }
    Ok(kib)
}

fn of_mapping(rights: &str, name: &str, program: &str, guard_before: bool) -> Part {
    match name {
        "[stack]" => Part::Stacks,
        "" if guard_before => Part::Stacks,
        "" | "[heap]" => Part::Heap,
        _ if name == program && rights.contains('x') => Part::Code,
        _ if name == program => Part::Constants,
        _ if name.contains(".so") || name.starts_with('[') => Part::Libraries,
        _ => Part::Files,
    }
}
