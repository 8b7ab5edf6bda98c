//! `cargo xtask mutants`: small changes that a test must notice.
//!
//! In: which part. Out: the table of `cargo-mutants` under `target/mutants`, and failure when no test noticed a change.
//! A change costs a build of its package and a run of its tests. So each part is laid out under `target/mutants/layout`
//! as a package with only what it needs: of the agent only its deciding part, or that and its store, with neither a TLS
//! stack nor a web server. It is mutated there, in place, and its dependencies are built once and kept. What is left
//! out, and why, is written in `.cargo/mutants.toml`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use toml::{Table, Value};

use crate::tools::MUTANTS;
use crate::workspace::{self, must, program};

/// What is mutated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// The gate.
    Gate,
    /// Which orders are taken, the ledger of jobs, and the audit as it is written.
    Ledger,
    /// Jobs, ids and the audit's form.
    Protocol,
    /// Signatures, operators, policy.
    Trust,
    /// Which connections a listener keeps, and how often one peer may ask.
    Admission,
    /// Who holds a guest's token.
    Holder,
    /// Who may call the local API, and as which guest.
    LocalApi,
    /// Who may call the hub, and as whom.
    HubAuth,
    /// Which backups are due, and which may go.
    Schedule,
}

/// Which part, and words for `cargo mutants`.
#[derive(Debug, Args)]
pub struct Options {
    part: Part,
    /// Such as `--list`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

impl Options {
    /// Every change of a part.
    pub const fn all_of(part: Part) -> Self {
        Self { part, words: Vec::new() }
    }
}

/// What a part is made of, and what of it is changed.
struct Layout {
    package: &'static str,
    /// The package's folder in the checkout.
    folder: &'static str,
    /// What is copied of that folder, and from elsewhere in the checkout, to its place there.
    copied: &'static [&'static str],
    /// What is written there in addition: file and text.
    written: &'static [(&'static str, &'static str)],
    /// Where not all modules are copied, those that are.
    cut: Option<Cut>,
    /// What is changed; all of `src` when nothing is named.
    files: &'static [&'static str],
    /// What of that is changed with another part.
    left: &'static [&'static str],
    /// What is built of it.
    targets: &'static [&'static str],
    /// What of its tests is left out.
    skipped: &'static [&'static str],
}

/// A part of a crate.
struct Cut {
    /// The crate's root.
    modules: &'static str,
    /// What they link.
    linked: &'static [&'static [&'static str]],
}

impl Part {
    /// As the command line has it.
    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    const fn layout(self) -> Layout {
        match self {
            Self::Trust => Layout {
                package: "holdfast-trust",
                folder: "trust",
                copied: &["trust/src"],
                written: &[],
                cut: None,
                files: &["trust/src/**"],
                left: &[],
                targets: &["--lib"],
                skipped: &[],
            },
            Self::Protocol => Layout {
                package: "holdfast-protocol",
                folder: "protocol",
                copied: &["protocol/src"],
                written: &[],
                cut: None,
                files: &[
                    "protocol/src/job/**",
                    "protocol/src/audit.rs",
                    "protocol/src/desired.rs",
                    "protocol/src/enrol.rs",
                    "protocol/src/generation.rs",
                    "protocol/src/id.rs",
                    "protocol/src/net.rs",
                    "protocol/src/pin.rs",
                    "protocol/src/json.rs",
                ],
                left: &[],
                // Calendars and retentions by the ten thousand: they are not changed here.
                targets: &["--lib"],
                skipped: &["protection::"],
            },
            Self::Gate => Layout {
                package: "agent-core",
                folder: "crates/agent-core",
                copied: &[
                    "crates/agent-core/src/gate",
                    "crates/agent-core/src/model",
                    "crates/agent-core/src/operation",
                    "docs/lanes.md",
                    "golden/recipe.toml",
                    // Who signs in the gate's tests.
                    "tests/support/ssh_signer.rs",
                ],
                written: &[],
                cut: Some(Cut {
                    modules: "pub mod gate;\npub mod model;\npub mod operation;\n",
                    linked: &[PURE],
                }),
                files: &["crates/agent-core/src/gate/**"],
                left: &["crates/agent-core/src/gate/job_validation.rs"],
                // A walk of seconds through random days, which would be most of the cost of each change.
                targets: &["--lib"],
                skipped: &["model::", "operation::", "no_one_drips_a_bulk_change_through"],
            },
            Self::Admission => Layout {
                package: "net",
                folder: "crates/net",
                copied: &["crates/net/src"],
                written: &[],
                cut: None,
                files: &[
                    "crates/net/src/admission.rs",
                    "crates/net/src/admission/**",
                    "crates/net/src/rate.rs",
                ],
                left: &["crates/net/src/admission/tests.rs"],
                targets: &["--lib"],
                skipped: &[],
            },
            Self::Holder => Layout {
                files: &["crates/agent-core/src/model/token_reuse.rs"],
                left: &[],
                skipped: &["gate::", "operation::"],
                ..Self::Gate.layout()
            },
            Self::LocalApi => Layout {
                package: "agentd",
                folder: "agentd",
                copied: &[
                    "agentd",
                    "docs",
                    "golden/recipe.toml",
                    "packaging",
                    "seal/tests",
                    "systemd",
                    "tests/support",
                ],
                written: &[],
                cut: None,
                files: &[
                    "agentd/src/api/auth.rs",
                    "agentd/src/api/claim.rs",
                    "agentd/src/api/request_guard.rs",
                    "agentd/src/api/token_holders.rs",
                ],
                left: &[],
                targets: &["--lib"],
                skipped: &["cli::", "execute::", "port::", "task::", "settings::", "fuzz"],
            },
            Self::HubAuth => Layout {
                package: "hubd",
                folder: "hubd",
                copied: &["hubd", "packaging", "systemd", "docs", "tests/support"],
                written: &[],
                cut: None,
                files: &[
                    "hubd/src/api/auth.rs",
                    "hubd/src/domain/enrollment.rs",
                    "hubd/src/domain/identity.rs",
                    "hubd/src/domain/readmission.rs",
                ],
                left: &[],
                targets: &["--lib", "--test=it"],
                skipped: &[],
            },
            // The walk over a year of random schedules is left out: it would be most of the cost of each change.
            Self::Schedule => Layout {
                package: "agent-core",
                folder: "crates/agent-core",
                copied: &["crates/agent-core", "docs/lanes.md", "golden/recipe.toml", "tests/support"],
                written: &[],
                cut: None,
                files: &["crates/agent-core/src/plan/schedule/**"],
                left: &[],
                targets: &["--lib"],
                skipped: &["gate::", "model::", "operation::", "no_point_has_two_backups"],
            },
            // What is decided of a job, by the gate, is shown there too, in tests of the gate and of the store.
            Self::Ledger => Layout {
                package: "agent-store",
                folder: "crates/agent-store",
                copied: &["crates/agent-store/src", "crates/agent-store/tests", "tests/support"],
                written: &[],
                cut: None,
                files: &["crates/agent-store/src/job.rs", "crates/agent-store/src/audit.rs"],
                left: &[],
                targets: &["--lib", "--test=it"],
                skipped: &[],
            },
        }
    }
}

/// Runs it.
pub fn run(options: &Options) -> Result<()> {
    let root = workspace::root();
    let name = options.part.name();
    let layout = options.part.layout();
    let folder = lay_out(&root, &name, &layout)?;
    let mutants = workspace::target().join("mutants");
    let out = mutants.join(&name);
    std::fs::create_dir_all(&out).with_context(|| out.display().to_string())?;
    let tool = MUTANTS.ready()?;
    let mut command = program(tool);
    command.current_dir(&folder).env("CARGO_TARGET_DIR", mutants.join("build")).env("INSTA_UPDATE", "no");
    // The folder belongs to no user: each run creates it anew, and build results stay in their own folder.
    command.args(["mutants", "--in-place", "-p", layout.package]);
    command.args(layout.files.iter().flat_map(|file| ["-f", *file]));
    command.args(layout.left.iter().flat_map(|file| ["-e", *file])).arg("-o").arg(&out);
    command.args(["--timeout", "60", "--build-timeout", "600"]).args(&options.words);
    if !options.words.iter().any(|word| word == "--list") {
        // Said to each cargo, since what is left out should not be built either.
        command.args(layout.targets.iter().map(|target| format!("--cargo-arg={target}")));
        command.args(["--", "--"]).args(layout.skipped.iter().flat_map(|test| ["--skip", *test]));
    }
    let ended = must(&mut command);
    broken_builds(&out.join("mutants.out/log"), &mutants.join("build"))?;
    ended
}

/// A compiler that was stopped in the middle leaves parts that no longer fit together, and each change after that would
/// count as one that does not build.
fn broken_builds(logs: &Path, build: &Path) -> Result<()> {
    let Ok(entries) = std::fs::read_dir(logs) else { return Ok(()) };
    for entry in entries {
        let log = entry?.path();
        let text = std::fs::read(&log).with_context(|| log.display().to_string())?;
        if String::from_utf8_lossy(&text).contains("error: linking with") {
            bail!("{} could not be linked: delete {} and run it again", log.display(), build.display());
        }
    }
    Ok(())
}

/// What the agent's deciding modules and their tests link; the rest of the agent's dependencies is left out.
const PURE: &[&str] = &[
    "base64",
    "ed25519-dalek",
    "hex",
    "holdfast-protocol",
    "holdfast-recovery",
    "holdfast-trust",
    "insta",
    "jiff",
    "percent-encoding",
    "serde",
    "serde_json",
    "sha2",
    "tempfile",
    "thiserror",
    "toml",
    "tracing",
    "uuid",
];

/// A workspace with one package.
fn lay_out(root: &Path, name: &str, layout: &Layout) -> Result<PathBuf> {
    let place = workspace::target().join("mutants/layout").join(name);
    match std::fs::remove_dir_all(&place) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    for part in layout.copied.iter().chain(&["Cargo.lock", ".cargo/mutants.toml"]) {
        copy(&root.join(part), &place.join(part))?;
    }
    for (file, text) in layout.written {
        write(&place.join(file), text)?;
    }
    let package = place.join(layout.folder);
    let mut manifest = read(&root.join(layout.folder).join("Cargo.toml"))?;
    // What is only worth a warning in the checkout is not worth the compiler's time here.
    manifest.remove("lints");
    if let Some(Cut { modules, linked }) = &layout.cut {
        write(&package.join("src/lib.rs"), &format!("//! Laid out for its mutants.\n{modules}"))?;
        cut_down(&mut manifest, linked)?;
    }
    write(&package.join("Cargo.toml"), &toml::to_string(&manifest)?)?;
    write(&place.join("Cargo.toml"), &workspace_toml(root, layout.folder)?)?;
    Ok(place)
}

/// The root's, for one member, with our other crates where they are.
fn workspace_toml(root: &Path, member: &str) -> Result<String> {
    let mut all = read(&root.join("Cargo.toml"))?;
    let workspace = table(&mut all, "workspace")?;
    workspace.insert("members".to_owned(), Value::Array(vec![Value::String(member.to_owned())]));
    for (_, dependency) in table(workspace, "dependencies")?.iter_mut() {
        if let Some(path) = dependency.as_table_mut().and_then(|table| table.get_mut("path")) {
            let place = root.join(path.as_str().context("a path is text")?);
            *path = Value::String(place.to_str().context("a path in UTF-8")?.to_owned());
        }
    }
    // What is linked is built once and run in each test of each change; what is changed is built each time.
    let profile = table(table(&mut all, "profile")?, "dev")?;
    profile.insert("debug".to_owned(), Value::Boolean(false));
    let packages = table(profile, "package")?;
    packages.retain(|name, _| ["*", "curve25519-dalek", "sha2"].contains(&name));
    table(packages, "*")?.insert("opt-level".to_owned(), Value::Integer(1));
    Ok(toml::to_string(&all)?)
}

/// The agent's manifest, for some of its modules.
fn cut_down(manifest: &mut Table, linked: &[&[&str]]) -> Result<()> {
    manifest.remove("bench");
    for kind in ["dependencies", "dev-dependencies"] {
        table(manifest, kind)?.retain(|name, _| linked.iter().any(|names| names.contains(&name)));
    }
    // In the agent it is a test's own dependency on itself that sets this.
    table(manifest, "features")?
        .insert("default".to_owned(), Value::Array(vec![Value::String("testing".to_owned())]));
    Ok(())
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
