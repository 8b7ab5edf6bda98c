//! Programs and golden archive of the demo.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use e2e::programs::{NAMES, Programs};
use e2e::stage::{Golden, Runtime};

use indicatif::{ProgressBar, ProgressStyle};

use crate::ci;
use crate::golden::BuildOptions;
use crate::workspace::{cargo, shown, target};

/// The version of every golden that is built here.
const VERSION: &str = "2026.11.1";

/// Builds the programs of the demo and nothing else, as they are shipped but quick to build.
pub fn programs() -> Result<Programs> {
    println!("Building {}. From nothing this takes about four minutes on two cores.", NAMES.join(", "));
    let mut build = cargo();
    build.args(["build", "--quiet", "--locked", "--message-format=json-render-diagnostics"]);
    for name in NAMES {
        build.args(["--package", name]);
    }
    with_progress(build.arg("--bins"))?;
    Programs::in_folder(&target().join("debug"))
}

/// Runs cargo and shows what it has compiled. Compiler errors are written to the terminal.
fn with_progress(build: &mut Command) -> Result<()> {
    let shown = shown(build);
    let mut child = build.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot run `{shown}`"))?;
    let style =
        ProgressStyle::with_template("{spinner} {elapsed_precise} {pos} crates compiled, the last one {msg}");
    let bar = ProgressBar::new_spinner().with_style(style.context("the form of the progress line")?);
    bar.enable_steady_tick(Duration::from_millis(250));
    let lines = BufReader::new(child.stdout.take().context("cargo has an output")?).lines();
    for line in lines {
        let line = line.context("cannot read what cargo says")?;
        if let Ok(Artifact { reason: Reason::CompilerArtifact, target }) = serde_json::from_str(&line) {
            bar.inc(1);
            bar.set_message(target.name);
        }
    }
    let status = child.wait().with_context(|| format!("cannot wait for `{shown}`"))?;
    bar.finish_and_clear();
    if status.success() {
        return Ok(());
    }
    bail!("the programs could not be built: what the compiler says is above. The command was `{shown}`")
}

/// What of cargo's messages counts: a crate that is ready.
#[derive(serde::Deserialize)]
struct Artifact {
    reason: Reason,
    target: Target,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Reason {
    CompilerArtifact,
}

#[derive(serde::Deserialize)]
struct Target {
    name: String,
}

/// Builds the golden archive for that way of running guests. What is slow in it, Debian's packages, is kept.
pub fn golden(programs: &Programs, runtime: Runtime) -> Result<Golden> {
    let tiny = runtime == Runtime::Process;
    let out = target().join("golden").join(if tiny { "tiny" } else { "debian" });
    if tiny && ci::is_built() {
        // Parts of CI that run side by side read the one that was built for all of them.
        return Golden::read(&out.join(format!("golden-{VERSION}.json")));
    }
    println!("Building the image of the guests ({}) …", if tiny { "busybox" } else { "Debian" });
    let options = BuildOptions {
        guestd: programs.path("guestd"),
        out,
        tiny,
        small: !tiny,
        version: VERSION.parse()?,
        fresh: false,
    };
    let built = crate::golden::made(&options).context("the golden image was not built")?;
    Golden::read(&built.manifest_file)
}
