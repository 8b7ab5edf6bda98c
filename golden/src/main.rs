//! `holdfast-golden`: builds golden images, and publishes released ones.
//!
//! In: fixed arguments (the root helper's verb `golden-build` gives `build --out DIR --output json`), or a person's. Out:
//! archive, manifest and bill of materials in one folder; one line for each stage and one for the end. `publish` reads nothing
//! but root's settings and the agent's folder of fetched images. Deliberately absent: anything that a caller of the helper could choose.
#![forbid(unsafe_code)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use holdfast_golden::{
    AsOf, BaseCache, Build, BuildOutcome, Built, Intake, OnConflict, Packing, Published, PublishedHow, Stage,
    VersionChoice, build, dump_folder, scan,
};
use holdfast_protocol::golden::GoldenContents;
use holdfast_protocol::id::GoldenVersion;

/// Where root's settings are.
const SETTINGS: &str = "/etc/holdfast";

/// Builds, scans and publishes golden images.
#[derive(Parser)]
#[command(name = "holdfast-golden", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build an archive with its manifest and its bill of materials; needs root, mmdebstrap and Debian's archives.
    Build(BuildArguments),
    /// Put the released image that the agent fetched into the dump folder, where the release keys of this host let it.
    Publish(PublishArguments),
    /// Scan an archive for keys, identities, passwords and tokens.
    Scan {
        /// The archive.
        archive: PathBuf,
    },
}

#[derive(clap::Args)]
struct BuildArguments {
    /// The folder for the files; nothing in it is ever replaced. By default `golden_dump` of `/etc/holdfast/helper.toml`.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// As of when Debian's archives are used: `now`, `month` (the first second of this month, in UTC), or a time. Builders
    /// that use the same time build the same image.
    #[arg(long, value_name = "TIME", default_value = "now")]
    as_of: AsOf,
    /// The folder with `recipe.toml` and `units/`.
    #[arg(long, value_name = "DIR", default_value = "/usr/share/holdfast/golden")]
    recipe: PathBuf,
    /// The guest agent program to include; `.zst` is unpacked.
    #[arg(long, value_name = "FILE", default_value = "/usr/lib/holdfast/golden/guestd.zst")]
    guestd: PathBuf,
    /// The folder where Debian is unpacked; it is emptied before and after.
    #[arg(long, value_name = "DIR", default_value = "/var/cache/holdfast-golden")]
    work: PathBuf,
    /// The version, `YYYY.MM.N`; by default the next of this month.
    #[arg(long, value_name = "VERSION")]
    version: Option<GoldenVersion>,
    /// Build a busybox image for experiments, without root, mmdebstrap or network.
    #[arg(long)]
    tiny: bool,
    /// Text lines, or one JSON object for each line.
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

#[derive(clap::Args)]
struct PublishArguments {
    /// The folder of root's settings.
    #[arg(long, value_name = "DIR", default_value = SETTINGS)]
    settings: PathBuf,
    /// The agent's folder with the fetched image.
    #[arg(long, value_name = "DIR", default_value = "/var/lib/holdfast/golden")]
    fetched: PathBuf,
    /// The folder for the image. By default `golden_dump` of `helper.toml` in the folder of settings.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// How many MiB stay free on the disk of that folder.
    #[arg(long, value_name = "MIB", default_value_t = 2_048)]
    reserve_mib: u32,
    /// Text lines, or one JSON object for each line.
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Table,
    Json,
}

fn main() -> ExitCode {
    // The caller may have any mask; what Debian's own scripts make must be readable.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    let outcome = match Arguments::parse().command {
        Command::Build(arguments) => run(&arguments),
        Command::Publish(arguments) => publish(&arguments),
        Command::Scan { archive } => scan_archive(&archive),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("holdfast-golden: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &BuildArguments) -> anyhow::Result<ExitCode> {
    let now_s = std::time::UNIX_EPOCH.elapsed()?.as_secs();
    let out = match &arguments.out {
        Some(out) => out.clone(),
        None => dump_folder(Path::new(SETTINGS))?,
    };
    let order = Build {
        recipe: &arguments.recipe,
        guestd: &arguments.guestd,
        out: &out,
        work: &arguments.work,
        contents: if arguments.tiny { GoldenContents::Tiny } else { GoldenContents::Complete },
        version: arguments.version.clone().map_or(VersionChoice::NextOfMonth(now_s), VersionChoice::Exact),
        existing: OnConflict::Keep,
        base_cache: BaseCache::Discard,
        as_of: arguments.as_of.moment(now_s)?,
        packing: Packing::Small,
        now_s,
    };
    let output = arguments.output;
    let built = build(&order, |stage| report_stage(output, stage));
    if let (Output::Json, Err(error)) = (output, &built) {
        print_line(&serde_json::json!({ "problem": format!("{error:#}") }).to_string());
    }
    let built = built?;
    match output {
        Output::Table => show(&built),
        Output::Json => print_line(&reply(&built).to_string()),
    }
    Ok(ExitCode::SUCCESS)
}

/// A refusal is an answer: exit code 2.
fn publish(arguments: &PublishArguments) -> anyhow::Result<ExitCode> {
    const REFUSED: u8 = 2;
    let now_s = std::time::UNIX_EPOCH.elapsed()?.as_secs();
    let published = published(arguments, now_s);
    match (arguments.output, published) {
        (Output::Json, Ok(published)) => print_line(&publish_reply(&published).to_string()),
        (Output::Json, Err(error)) => {
            let (code, why) = (error.code(), holdfast_protocol::json::chain(&error));
            eprintln!("holdfast-golden: {code}: {why}");
            print_line(&serde_json::json!({ "refused": { "code": code, "message": why } }).to_string());
            return Ok(ExitCode::from(REFUSED));
        }
        (Output::Table, Ok(published)) => print_line(&format!(
            "golden   {}{}\narchive  {}\nsha256   {}\nrelease  {}",
            published.manifest.version,
            match published.how {
                PublishedHow::Published => "",
                PublishedHow::Already => " (was there already)",
            },
            published.manifest.archive,
            published.manifest.sha256,
            published.release,
        )),
        (Output::Table, Err(error)) => return Err(error.into()),
    }
    Ok(ExitCode::SUCCESS)
}

fn published(arguments: &PublishArguments, now_s: u64) -> Result<Published, holdfast_golden::IntakeError> {
    let out = match &arguments.out {
        Some(out) => out.clone(),
        None => dump_folder(&arguments.settings)?,
    };
    let intake = Intake {
        settings: &arguments.settings,
        fetched: &arguments.fetched,
        out: &out,
        reserve_bytes: u64::from(arguments.reserve_mib) << 20,
        now_s,
    };
    intake.run()
}

fn publish_reply(published: &Published) -> serde_json::Value {
    let manifest = &published.manifest;
    serde_json::json!({ "published": {
        "version": manifest.version,
        "archive": manifest.archive,
        "sha256": manifest.sha256,
        "size_bytes": manifest.size_bytes,
        "how": match published.how { PublishedHow::Published => "published", PublishedHow::Already => "already" },
    } })
}

/// For the helper's caller; the helper's own reply follows it.
fn reply(built: &Built) -> serde_json::Value {
    let Built { how, manifest, .. } = built;
    serde_json::json!({ "built": {
        "version": manifest.version,
        "archive": manifest.archive,
        "sha256": manifest.sha256,
        "size_bytes": manifest.size_bytes,
        "how": match how { BuildOutcome::Built => "built", BuildOutcome::AlreadyBuilt => "already" },
    } })
}

fn report_stage(output: Output, stage: Stage) {
    let (word, text) = match stage {
        Stage::Debian => ("debian", "fetching and unpacking Debian"),
        Stage::Image => ("image", "putting the image together"),
        Stage::Pack => ("pack", "packing it"),
        Stage::Scan => ("scan", "looking for secrets in it"),
    };
    match output {
        Output::Table => eprintln!("{text} …"),
        Output::Json => print_line(&serde_json::json!({ "stage": word }).to_string()),
    }
}

/// The output may have no reader any more. The build goes on, and its files show the result.
fn print_line(line: &str) {
    let mut out = std::io::stdout().lock();
    let _closed = writeln!(out, "{line}").and_then(|()| out.flush());
}

fn show(built: &Built) {
    let manifest = &built.manifest;
    let how = match built.how {
        BuildOutcome::Built => "built",
        BuildOutcome::AlreadyBuilt => "identical image exists already",
    };
    print_line(&format!(
        "golden   {} ({how})\narchive  {}\nmanifest {}\nsha256   {}\nsize     {} bytes, {} packages\ntook     {} s",
        manifest.version,
        built.archive.display(),
        built.manifest_file.display(),
        manifest.sha256,
        manifest.size_bytes,
        manifest.packages.len(),
        manifest.build.seconds,
    ));
}

fn scan_archive(archive: &Path) -> anyhow::Result<ExitCode> {
    let findings = scan(archive)?;
    for found in &findings {
        print_line(&format!("{}: {}", found.path, found.what));
    }
    if findings.is_empty() {
        print_line("no secrets found");
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::FAILURE)
}
