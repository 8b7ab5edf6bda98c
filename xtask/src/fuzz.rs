//! `cargo xtask fuzz`: the fuzz targets on stable Rust.
//!
//! In: a target, or none for all; for how many runs or seconds. Out: the message of a finding, its bytes under
//! `target/fuzz/artifacts`, and failure. libFuzzer is guided by coverage that an LLVM pass inserts; the stable compiler
//! can run that pass. Only sanitizers need a nightly compiler, and there is no unsafe code here for them to check.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::workspace::{self, cargo, must, program, triple};

/// What `cargo fuzz run -s none` passes on.
const FLAGS: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-simplifycfg-branch-fold-threshold=0",
    "--cfg=fuzzing",
];

/// The default runs of each target: a number and not a time, so that a slow machine does not test less.
const RUNS: u64 = 10_000;

/// A target that comes to no end on one input within this hangs.
const HANG_SECONDS: u32 = 25;

/// What to fuzz.
#[derive(Debug, Args)]
pub struct Options {
    /// This one alone; without it all, one after the other.
    #[arg(long)]
    target: Option<String>,
    /// So long each; 0 is until something is found.
    #[arg(long, conflicts_with = "runs")]
    seconds: Option<u64>,
    /// So many inputs each.
    #[arg(long, default_value_t = RUNS)]
    runs: u64,
    /// Runs one kept input through the target instead.
    #[arg(long, requires = "target")]
    input: Option<PathBuf>,
}

/// How long to run.
enum Bound {
    Runs(u64),
    Seconds(u64),
}

/// Builds and runs.
pub fn run(options: &Options) -> Result<()> {
    let folder = workspace::root().join("fuzz");
    let names = match &options.target {
        Some(name) => vec![name.clone()],
        None => targets(&folder)?,
    };
    let built = build(&folder, options.target.as_deref())?;
    if let Some(input) = &options.input {
        let name = names.first().context("a target")?;
        return must(program(built.join(name)).arg(input));
    }
    let bound = options.seconds.map_or(Bound::Runs(options.runs), Bound::Seconds);
    for name in &names {
        fuzz(&folder, &built, name, &bound).with_context(|| {
            format!(
                "target `{name}`: the input lies in {}; add what it shows to the tests",
                artifacts(name).display()
            )
        })?;
    }
    Ok(())
}

/// Runs every target with this many inputs each.
pub fn each(runs: u64) -> Result<()> {
    run(&Options { target: None, seconds: None, runs, input: None })
}

/// The names of all targets: the files in `fuzz_targets`.
fn targets(folder: &Path) -> Result<Vec<String>> {
    let folder = folder.join("fuzz_targets");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let name = entry?.file_name().into_string().ok().context("a name in UTF-8")?;
        names.extend(name.strip_suffix(".rs").map(str::to_owned));
    }
    names.sort();
    ensure!(!names.is_empty(), "no fuzz target in {}", folder.display());
    Ok(names)
}

fn own_folder() -> PathBuf {
    workspace::target().join("fuzz")
}

fn artifacts(name: &str) -> PathBuf {
    own_folder().join("artifacts").join(name)
}

/// Builds with coverage, into a folder of its own: these flags would make every other build start over.
fn build(folder: &Path, target: Option<&str>) -> Result<PathBuf> {
    let triple = triple()?;
    let place = own_folder().join("build");
    let mut build = cargo();
    build
        .args(["build", "--locked", "--release", "--features", "libfuzzer", "--manifest-path"])
        .arg(folder.join("Cargo.toml"));
    // Named, so that the flags are for the targets alone and not for build scripts and macros.
    build.args(["--target", &triple]).arg("--target-dir").arg(&place);
    match target {
        Some(name) => build.args(["--bin", name]),
        None => build.arg("--bins"),
    };
    must(build.env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\u{1f}")).env_remove("RUSTFLAGS"))?;
    Ok(place.join(triple).join("release"))
}

/// Earlier findings are tried first. New coverage is kept in the target folder, and never in the tree.
fn fuzz(folder: &Path, built: &Path, name: &str, bound: &Bound) -> Result<()> {
    let corpus = own_folder().join("corpus").join(name);
    let found = artifacts(name);
    for place in [&corpus, &found] {
        std::fs::create_dir_all(place).with_context(|| place.display().to_string())?;
    }
    let mut fuzzer: Command = program(built.join(name));
    fuzzer.arg(&corpus).arg(folder.join("seeds").join(name));
    fuzzer.arg(format!("-dict={}", folder.join("words.dict").display()));
    fuzzer.arg(format!("-artifact_prefix={}/", found.display()));
    fuzzer.arg(format!("-timeout={HANG_SECONDS}"));
    fuzzer.args(["-max_len=8192", "-rss_limit_mb=2048", "-print_final_stats=1", "-verbosity=0"]);
    match bound {
        // The same inputs each time: no failure is random.
        Bound::Runs(runs) => fuzzer.arg(format!("-runs={runs}")).arg("-seed=1"),
        Bound::Seconds(seconds) => fuzzer.arg(format!("-max_total_time={seconds}")),
    };
    println!("--- fuzz {name}");
    must(&mut fuzzer)
}
