//! `pve-sim replay`.
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use pve_sim::replay::known_differences::Book;
use pve_sim::replay::report::Report;

/// What to replay.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Recordings, or folders of them.
    files: Vec<PathBuf>,
    /// A folder with `pve/transcripts`, of which all are replayed.
    #[arg(long)]
    shared: Option<PathBuf>,
    /// Also report what is assumed to have been done by hand.
    #[arg(long)]
    premises: bool,
}

/// Replays.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let book = Book::committed().map_err(anyhow::Error::msg)?;
    let mut files = Vec::new();
    for path in arguments
        .files
        .iter()
        .cloned()
        .chain(arguments.shared.iter().map(|shared| shared.join("pve/transcripts")))
    {
        collect(&path, &mut files)?;
    }
    anyhow::ensure!(!files.is_empty(), "name at least one recording");
    let mut report = Report::default();
    for file in &files {
        report.merge(pve_sim::replay::play::file(file, &book).map_err(anyhow::Error::msg)?);
    }
    report.differences.iter().for_each(|line| println!("{line}"));
    if arguments.premises {
        report.premises.iter().for_each(|line| println!("premise: {line}"));
    }
    println!("{}", report.summary());
    Ok(if report.differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let mut found: Vec<PathBuf> = std::fs::read_dir(path)
        .with_context(|| format!("{} cannot be read", path.display()))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .collect();
    found.sort();
    files.extend(found);
    Ok(())
}
