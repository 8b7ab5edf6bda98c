//! What processes use while they rest, from `/proc`.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::memory::{self, Kib};

/// Between two readings of the threads. The counters of a thread are lost when it ends, so they are read often.
const LOOK: Duration = Duration::from_millis(200);

/// What one used.
#[derive(Clone, Copy, Default)]
pub struct Rest {
    pub pss_mib: f64,
    pub rss_mib: f64,
    pub cpu_ms_per_min: f64,
    pub wakeups_per_min: f64,
    pub parts: Kib,
}

/// One thread's counters, as last read.
#[derive(Clone, Copy, Default)]
struct Counters {
    on_cpu_ns: u64,
    wakeups: u64,
}

/// Counters of all threads there ever were, by thread id.
#[derive(Default)]
struct Threads(BTreeMap<String, Counters>);

impl Threads {
    fn look(&mut self, pid: u32) -> Result<Counters> {
        let tasks =
            fs::read_dir(format!("/proc/{pid}/task")).with_context(|| format!("process {pid} has ended"))?;
        for task in tasks {
            let task = task?;
            // A thread may end after it was listed and before it is read; then its last counters stay.
            if let (Ok(schedule), Ok(status)) = (
                fs::read_to_string(task.path().join("schedstat")),
                fs::read_to_string(task.path().join("status")),
            ) {
                let on_cpu_ns = schedule.split_whitespace().next().context("schedstat is empty")?.parse()?;
                let wakeups = number(&status, "voluntary_ctxt_switches:")?;
                self.0
                    .insert(task.file_name().to_string_lossy().into_owned(), Counters { on_cpu_ns, wakeups });
            }
        }
        Ok(self.0.values().fold(Counters::default(), |sum, one| Counters {
            on_cpu_ns: sum.on_cpu_ns + one.on_cpu_ns,
            wakeups: sum.wakeups + one.wakeups,
        }))
    }
}

/// Measures these processes for a while, all in the same window.
pub fn rest<const N: usize>(pids: [u32; N], window: Duration) -> Result<[Rest; N]> {
    let mut threads = pids.map(|pid| (pid, Threads::default(), Counters::default(), Counters::default()));
    let began = Instant::now();
    for (pid, all, first, last) in &mut threads {
        *first = all.look(*pid)?;
        *last = *first;
    }
    while began.elapsed() < window {
        std::thread::sleep(LOOK);
        for (pid, all, _, last) in &mut threads {
            *last = all.look(*pid)?;
        }
    }
    let minutes = began.elapsed().as_secs_f64() / 60.0;
    let mut measured = [Rest::default(); N];
    for ((pid, _, first, last), rest) in threads.iter().zip(&mut measured) {
        let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))
            .with_context(|| format!("cannot read the memory of process {pid}"))?;
        *rest = Rest {
            pss_mib: number(&rollup, "Pss:")? as f64 / 1024.0,
            rss_mib: number(&rollup, "Rss:")? as f64 / 1024.0,
            cpu_ms_per_min: (last.on_cpu_ns - first.on_cpu_ns) as f64 / 1e6 / minutes,
            wakeups_per_min: (last.wakeups - first.wakeups) as f64 / minutes,
            parts: memory::parts(*pid)?,
        };
    }
    Ok(measured)
}

/// The number after a label at the beginning of a line.
fn number(text: &str, label: &str) -> Result<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(label));
    let word = rest.and_then(|rest| rest.split_whitespace().next());
    let word = word.with_context(|| format!("no line {label}"))?;
    word.parse().with_context(|| format!("{label} {word} is no number"))
}
