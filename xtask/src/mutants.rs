//! `cargo xtask mutants`: small changes to the code that decides, each of which a test must notice.
//!
//! In: which part. Out: the table of `cargo-mutants` under `target/mutants`, and failure when a change was noticed by no
//! test. `trust` and `protocol` are mutated where they are. The agent is large, and a change of it costs a build of the
//! whole crate; so its deciding part and its store are laid out as a package of their own, with their tests, which holds
//! neither a TLS stack nor a web server. What is left out, and why, stands in `.cargo/mutants.toml`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use toml::{Table, Value};

use crate::workspace::{self, must, program};

/// What is mutated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// The gate.
    Gate,
    /// The ledger of jobs, and the audit as it is written.
    Ledger,
    /// Jobs, ids and the audit's form.
    Protocol,
    /// Signatures, operators, policy.
    Trust,
}

/// Which part, and words for `cargo mutants`.
#[derive(Debug, Args)]
pub struct Options {
    part: Part,
    /// Such as `--list`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

const PROTOCOL: &[&str] = &[
    "protocol/src/job/**",
    "protocol/src/audit.rs",
    "protocol/src/desired.rs",
    "protocol/src/enrol.rs",
    "protocol/src/generation.rs",
    "protocol/src/id.rs",
    "protocol/src/net.rs",
    "protocol/src/pin.rs",
    "protocol/src/strict.rs",
];
const LEDGER: &[&str] = &["agentd/src/port/store/job.rs", "agentd/src/port/store/audit.rs"];

/// Runs it.
pub fn run(options: &Options) -> Result<()> {
    let root = workspace::root();
    let (folder, package, files, tests): (PathBuf, _, &[&str], &[&str]) = match options.part {
        Part::Trust => (root.clone(), "holdfast-trust", &["trust/src/**"], &["--lib", "--tests"]),
        Part::Protocol => (root.clone(), "holdfast-protocol", PROTOCOL, &["--lib"]),
        Part::Gate => (lay_out(&root)?, "agentd", &["agentd/src/gate/**"], &["--lib", "gate::"]),
        Part::Ledger => (lay_out(&root)?, "agentd", LEDGER, &["--lib", "--tests"]),
    };
    let out = workspace::target().join("mutants").join(format!("{:?}", options.part).to_lowercase());
    std::fs::create_dir_all(&out).with_context(|| out.display().to_string())?;
    // A copy of the tree is mutated, never the tree; it has a target folder of its own.
    let mut mutants = program("cargo");
    mutants.current_dir(folder).env_remove("CARGO_TARGET_DIR").args([
        "mutants",
        "--no-shuffle",
        "-p",
        package,
    ]);
    mutants.args(files.iter().flat_map(|file| ["-f", *file])).arg("-o").arg(out);
    // Keys and hashes are slow without it, and the tests spend their time there.
    mutants.args(["--cargo-arg=--config", "--cargo-arg=profile.dev.package.\"*\".opt-level=2"]);
    mutants.args(["--timeout", "300", "--build-timeout", "900"]).args(&options.words);
    if !options.words.iter().any(|word| word == "--list") {
        mutants.arg("--").args(tests);
    }
    must(&mut mutants)
}

/// The modules of the agent that are laid out, as they stand in its `src`.
const MODULES: &[&str] = &["gate", "model", "operation", "plan", "port/store", "task/intake.rs"];

const LIB: &str = "//! Modules of the agent, laid out for `cargo xtask mutants`.\n#![forbid(unsafe_code)]\n\
    pub mod gate;\npub mod model;\npub mod operation;\npub mod plan;\n\
    pub mod port {\n    pub mod store;\n}\npub mod task {\n    pub mod intake;\n}\n";

/// What these modules and their tests link; the rest of the agent's dependencies is left out.
const LINKED: &[&str] = &[
    "base64",
    "ed25519-dalek",
    "hex",
    "holdfast-protocol",
    "holdfast-trust",
    "insta",
    "jiff",
    "percent-encoding",
    "rusqlite",
    "rustix",
    "serde",
    "serde_json",
    "serde_path_to_error",
    "sha2",
    "tempfile",
    "thiserror",
    "tokio",
    "tracing",
    "uuid",
];

/// A workspace with one package, `agentd`, of the agent's pure part and its store.
fn lay_out(root: &Path) -> Result<PathBuf> {
    let place = workspace::target().join("mutants/layout");
    let package = place.join("agentd");
    match std::fs::remove_dir_all(&place) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    for module in MODULES {
        copy(&root.join("agentd/src").join(module), &package.join("src").join(module))?;
    }
    copy(&root.join("agentd/tests/intake"), &package.join("tests/intake"))?;
    copy(&root.join("tests/support"), &place.join("tests/support"))?;
    copy(&root.join("docs/lanes.md"), &place.join("docs/lanes.md"))?;
    write(&package.join("src/lib.rs"), LIB)?;
    write(&place.join("Cargo.toml"), &workspace_toml(root)?)?;
    write(&package.join("Cargo.toml"), &package_toml(root)?)?;
    copy(&root.join("Cargo.lock"), &place.join("Cargo.lock"))?;
    copy(&root.join(".cargo/mutants.toml"), &place.join(".cargo/mutants.toml"))?;
    Ok(place)
}

/// The root's, for one member, with our other crates where they are.
fn workspace_toml(root: &Path) -> Result<String> {
    let mut all = read(&root.join("Cargo.toml"))?;
    let workspace = table(&mut all, "workspace")?;
    workspace.insert("members".to_owned(), Value::Array(vec![Value::String("agentd".to_owned())]));
    for (_, dependency) in table(workspace, "dependencies")?.iter_mut() {
        if let Some(path) = dependency.as_table_mut().and_then(|table| table.get_mut("path")) {
            let place = root.join(path.as_str().context("a path is text")?);
            *path = Value::String(place.to_str().context("a path in UTF-8")?.to_owned());
        }
    }
    Ok(toml::to_string(&all)?)
}

fn package_toml(root: &Path) -> Result<String> {
    let mut all = read(&root.join("agentd/Cargo.toml"))?;
    all.remove("bench");
    for kind in ["dependencies", "dev-dependencies"] {
        table(&mut all, kind)?.retain(|name, _| LINKED.contains(&name));
    }
    // In the agent it is a test's own dependency on itself that sets this.
    table(&mut all, "features")?
        .insert("default".to_owned(), Value::Array(vec![Value::String("warrants-for-tests".to_owned())]));
    Ok(toml::to_string(&all)?)
}

fn table<'a>(of: &'a mut Table, name: &str) -> Result<&'a mut Table> {
    of.get_mut(name).and_then(Value::as_table_mut).with_context(|| format!("no table {name}"))
}

fn read(path: &Path) -> Result<Table> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    text.parse().with_context(|| path.display().to_string())
}

fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, text).with_context(|| path.display().to_string())
}

/// A file, or a folder with all that is in it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if from.is_dir() {
        for entry in std::fs::read_dir(from).with_context(|| from.display().to_string())? {
            let name = entry?.file_name();
            copy(&from.join(&name), &to.join(&name))?;
        }
        return Ok(());
    }
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::copy(from, to).map(drop).with_context(|| from.display().to_string())
}
