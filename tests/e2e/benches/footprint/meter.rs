//! What one process uses while it rests, from `/proc`.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::host::Host;

/// Between two readings of the threads. The counters of a thread are lost when it ends, so they are read often.
const LOOK: Duration = Duration::from_millis(200);

/// What was used.
pub struct Rest {
    pub pss_mib: f64,
    pub rss_mib: f64,
    pub cpu_ms_per_min: f64,
    pub wakeups_per_min: f64,
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
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).context("the agent is gone")?;
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

/// Lets the host settle and measures its agent for a while.
pub fn rest(host: &Host, calm: Duration, window: Duration) -> Result<Rest> {
    let pid = host.agent_pid()?;
    std::thread::sleep(calm);
    let mut threads = Threads::default();
    let (first, began) = (threads.look(pid)?, Instant::now());
    let mut last = first;
    while began.elapsed() < window {
        std::thread::sleep(LOOK);
        last = threads.look(pid)?;
    }
    let minutes = began.elapsed().as_secs_f64() / 60.0;
    ensure!(host.agent_pid()? == pid, "the agent was restarted while it was looked at");
    let rollup =
        fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).context("cannot read the agent's memory")?;
    Ok(Rest {
        pss_mib: number(&rollup, "Pss:")? as f64 / 1024.0,
        rss_mib: number(&rollup, "Rss:")? as f64 / 1024.0,
        cpu_ms_per_min: (last.on_cpu_ns - first.on_cpu_ns) as f64 / 1e6 / minutes,
        wakeups_per_min: (last.wakeups - first.wakeups) as f64 / minutes,
    })
}

/// The number after a label at the beginning of a line.
fn number(text: &str, label: &str) -> Result<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(label));
    let word = rest.and_then(|rest| rest.split_whitespace().next());
    let word = word.with_context(|| format!("no line {label}"))?;
    word.parse().with_context(|| format!("{label} {word} is no number"))
}
