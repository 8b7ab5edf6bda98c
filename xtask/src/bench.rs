//! `cargo bench-all`: builds what is shipped, runs every benchmark and writes `docs/benchmarks.md`.
//!
//! In: lines `BENCH {json}` on the standard output of each benchmark, in the form of [`Figure`]. Out: one table, with
//! the machine it was measured on. A figure is a ratio against a bare baseline that the same benchmark ran alternately
//! with ours. Absolute times are shown next to it and mean little on other machines. Deliberately absent: any limit
//! that could fail.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use e2e::programs::{NAMES, Programs};
use e2e::stage::{Golden, Runtime};
use serde::Deserialize;
use tempfile::TempDir;

use crate::workspace::{cargo, root, shown};
use crate::{bench_goals, demo, packages, page, shipped};

/// One measured comparison.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Figure {
    /// What was measured.
    name: String,
    /// Ours, median over the pairs.
    ours: f64,
    /// The bare baseline, median over the pairs; none where no baseline exists.
    baseline: Option<f64>,
    /// Ours by baseline: the median of the pairs' ratios.
    ratio: Option<f64>,
    /// Of `ours` and `baseline`.
    unit: String,
    /// How many pairs.
    pairs: u32,
    /// What the baseline is, and what was counted.
    note: String,
}

struct Bench {
    /// How `cargo bench-all` is asked for it.
    name: &'static str,
    package: &'static str,
    target: &'static str,
    arguments: &'static [&'static str],
    /// The part of the page it fills.
    title: &'static str,
    /// One that measures in its own process is built as what it measures is shipped; one that measures other processes
    /// need not be optimised.
    profile: &'static str,
}

const BENCHES: &[Bench] = &[
    Bench { profile: "small", ..Bench::of("agentd", "plan", "The plan") },
    Bench { profile: "small", ..Bench::of("agentd", "journal", "The journal") },
    Bench { profile: "small", ..Bench::of("agentd", "local_api", "The local API") },
    Bench { profile: "small", ..Bench::of("agentd", "documents", "Documents and signatures") },
    Bench { profile: "small", ..Bench::of("agentd", "daemon", "The agent as a program") },
    Bench {
        name: "helper",
        profile: "small",
        ..Bench::of("holdfast-helper", "call", "A call of the helper")
    },
    Bench::of("hubd", "checkin", "Check-ins at the hub"),
    Bench {
        name: "fleet",
        arguments: &["fleet"],
        ..Bench::of("hubd", "checkin", "Ten thousand hosts at the hub")
    },
    Bench {
        name: "flapping",
        arguments: &["flapping"],
        ..Bench::of("hubd", "checkin", "Ten thousand hosts that flap")
    },
    Bench {
        name: "scrape",
        arguments: &["scrape"],
        ..Bench::of("hubd", "checkin", "Metrics of a thousand hosts")
    },
    Bench {
        name: "customers",
        arguments: &["customers"],
        ..Bench::of("hubd", "checkin", "Check-ins during a customer's calls")
    },
    Bench {
        name: "postgres",
        arguments: &["postgres"],
        ..Bench::of("hubd", "checkin", "Check-ins on PostgreSQL")
    },
    Bench {
        name: "move",
        arguments: &["move"],
        ..Bench::of("hubd", "checkin", "A hub that moves to the other engine")
    },
    Bench { name: "peers", arguments: &["peers"], ..Bench::of("hubd", "checkin", "The hub against etcd") },
    Bench { profile: "dev", ..Bench::of("e2e", "footprint", "The agent at rest") },
];

impl Bench {
    /// One that is called by the name of its target.
    const fn of(package: &'static str, target: &'static str, title: &'static str) -> Self {
        Self { name: target, package, target, arguments: &[], title, profile: "bench" }
    }
}

/// What a benchmark of whole processes runs: named to it in the environment.
struct Shipped {
    /// Removed when the benchmarks are done.
    _folder: TempDir,
    programs: Programs,
    golden: Golden,
}

/// From here on a page is kept as it is: what suites measured, written by hand.
const BY_HAND: &str = "\n## From the suites, by hand\n";

/// Runs those that are named, or all, and writes the page.
pub fn run(names: &[String]) -> Result<()> {
    if let Some(name) = names.iter().find(|name| BENCHES.iter().all(|bench| bench.name != name.as_str())) {
        let known: Vec<&str> = BENCHES.iter().map(|bench| bench.name).collect();
        bail!("there is no benchmark {name}: choose from {}", known.join(", "));
    }
    packages::prepare(packages::Purpose::Benchmarks)?;
    let path = root().join("docs/benchmarks.md");
    let before = std::fs::read_to_string(&path).context("cannot read docs/benchmarks.md")?;
    let mut page = heading()?;
    for bench in BENCHES {
        let heading = format!("\n## {}\n", bench.title);
        let rows = if names.is_empty() || names.iter().any(|name| name == bench.name) {
            println!("=== {}", bench.title);
            let rows = format!("\n{}", table(&figures(&measure(bench)?)?));
            print!("{rows}");
            rows
        } else {
            page::section(&before, &heading).unwrap_or("\nNot measured yet.\n").to_owned()
        };
        write!(page, "{heading}{rows}")?;
    }
    page.push_str(by_hand(&before));
    std::fs::write(&path, page).context("cannot write docs/benchmarks.md")?;
    println!("written: docs/benchmarks.md");
    Ok(())
}

/// What a page has that no benchmark wrote.
fn by_hand(page: &str) -> &str {
    page.find(BY_HAND).and_then(|from| page.get(from..)).unwrap_or_default()
}

/// Runs one and gives what it printed, which holds a figure at least.
fn measure(bench: &Bench) -> Result<String> {
    let mut command = cargo();
    command.args(["bench", "--quiet", "--locked", "--profile", bench.profile]);
    command.args(["--package", bench.package, "--bench", bench.target]);
    if bench.package == "agentd" {
        command.args(["--features", "benchmarks"]);
    }
    command.arg("--").args(bench.arguments);
    let shipped = if bench.package == "e2e" { Some(shipped()?) } else { None };
    if let Some(shipped) = &shipped {
        command.env("HOLDFAST_E2E_PROGRAMS", shipped.programs.folder());
        command.env("HOLDFAST_E2E_GOLDEN", &shipped.golden.manifest);
    }
    // Progress and errors are shown to the user; the figures are read here.
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot run `{}`", shown(&command)))?;
    if !output.status.success() {
        bail!("`{}` ended with {}", shown(&command), output.status);
    }
    let text = String::from_utf8(output.stdout).context("a benchmark printed bytes that are no text")?;
    if figures(&text)?.is_empty() {
        bail!("`{}` printed no figure", shown(&command));
    }
    Ok(text)
}

/// Builds the programs as they are shipped: optimised, and the agent without failpoints.
fn shipped() -> Result<Shipped> {
    println!("building {} as they are shipped …", NAMES.join(", "));
    let built = Programs::in_folder(&shipped::build(NAMES)?)?;
    let golden = demo::build::golden(&built, Runtime::Process)?;
    // The agent runs as a user of its own, who must be able to reach its program wherever the checkout is.
    let folder = tempfile::Builder::new().prefix("holdfast-bench-").tempdir()?;
    let programs = crate::test_programs::share(&built, folder.path())?;
    Ok(Shipped { _folder: folder, programs, golden })
}

fn figures(text: &str) -> Result<Vec<Figure>> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("BENCH "));
    lines.map(|json| serde_json::from_str(json).with_context(|| format!("not a figure: {json}"))).collect()
}

fn table(figures: &[Figure]) -> String {
    let mut text =
        "| what | ours | baseline | ratio | goal | verdict | pairs | how |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n"
            .to_owned();
    for figure in figures {
        let unit = &figure.unit;
        let or_none = |value: Option<f64>, unit: &str| {
            value.map_or_else(|| "—".to_owned(), |value| format!("{}{unit}", short(value)))
        };
        let baseline = or_none(figure.baseline, &format!(" {unit}"));
        let ratio = or_none(figure.ratio, "");
        let (name, ours, pairs, note) = (&figure.name, short(figure.ours), figure.pairs, &figure.note);
        let (goal, verdict) = bench_goals::judged(name, figure.ours, figure.ratio);
        text.push_str(&format!(
            "| {name} | {ours} {unit} | {baseline} | {ratio} | {goal} | {verdict} | {pairs} | {note} |\n"
        ));
    }
    text
}

fn short(value: f64) -> String {
    if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

fn heading() -> Result<String> {
    let cpu = field("/proc/cpuinfo", "model name")?;
    let cores = std::thread::available_parallelism().context("how many processors?")?;
    let memory = field("/proc/meminfo", "MemTotal")?;
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").context("which kernel?")?;
    let kernel = kernel.trim();
    Ok(format!(
        "# Benchmarks\n\nWritten by `cargo bench-all`. Quote the ratios: ours and the bare baseline ran in turn in the same minutes; \
         absolute figures drift with the machine.\n\nMachine: {cores} × {cpu}, {memory} memory, Linux {kernel}.\n"
    ))
}

fn field(path: &str, name: &str) -> Result<String> {
    let text = std::fs::read_to_string(Path::new(path)).with_context(|| format!("cannot read {path}"))?;
    let line =
        text.lines().find(|line| line.starts_with(name)).with_context(|| format!("{path} has no {name}"))?;
    Ok(line.split_once(':').map_or("", |(_, value)| value).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_and_shown() {
        let text = "noise\nBENCH {\"name\":\"plan\",\"ours\":2.5,\"baseline\":1.0,\"ratio\":2.5,\"unit\":\"ms\",\"pairs\":7,\"note\":\"merge-join\"}\n";
        let read = figures(text).unwrap();
        assert!(table(&read).contains("| plan | 2.50 ms | 1.00 ms | 2.50 | — | — | 7 | merge-join |"));
        assert!(figures("BENCH {\"name\":1}").is_err());
    }

    #[test]
    fn what_was_written_by_hand_is_kept() {
        let page = format!("# Benchmarks\n\n## The plan\n\n| x |\n{BY_HAND}\nkept\n");
        assert_eq!(by_hand(&page), format!("{BY_HAND}\nkept\n"));
        assert_eq!(by_hand("# Benchmarks\n"), "");
    }
}
