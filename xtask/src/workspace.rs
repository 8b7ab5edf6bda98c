//! The checkout, and how its tools are run.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The folder of the workspace's `Cargo.toml`: xtask always runs from its own checkout.
pub fn root() -> PathBuf {
    let mut root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.pop();
    root
}

/// Where cargo puts what it builds.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// What is kept for the machine and not for one checkout: tools, and Debian's unpacked packages.
pub fn cache() -> Result<PathBuf> {
    let named = std::env::var_os("HOLDFAST_CACHE").or_else(|| {
        let of_all = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let of_home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
        of_all.or_else(of_home).map(|folder| folder.join("holdfast").into_os_string())
    });
    let folder = named.map_or_else(|| target().join("cache"), PathBuf::from);
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    std::path::absolute(&folder).with_context(|| format!("cannot find {}", folder.display()))
}

/// All packages but the harness, which enables the agent's feature `testing`: programs as they are shipped.
pub const SHIPPED_PACKAGES: [&str; 3] = ["--workspace", "--exclude", "harness"];

/// The cargo that runs us.
pub fn cargo() -> Command {
    builder(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Cargo, or a program that calls it.
pub fn builder(name: impl AsRef<OsStr>) -> Command {
    let mut command = program(name);
    command.current_dir(root());
    // The variables in which cargo describes the program it runs. Build scripts that read them would run again, for
    // example `ring`'s, and all that depends on it would be rebuilt. A build from here and one that a person starts
    // would then undo each other.
    let own = |name: &OsStr| {
        let name = name.to_string_lossy();
        name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
    };
    for (name, _) in std::env::vars_os().filter(|(name, _)| own(name)) {
        command.env_remove(name);
    }
    command
}

/// A program by name or path.
pub fn program(name: impl AsRef<OsStr>) -> Command {
    #[expect(clippy::disallowed_methods, reason = "xtask exists to run the tools of the trade")]
    Command::new(name)
}

/// Runs a command to its end and fails with its status.
pub fn must(command: &mut Command) -> Result<()> {
    let shown = shown(command);
    let status = command.status().with_context(|| format!("cannot run `{shown}`"))?;
    if status.success() { Ok(()) } else { bail!("`{shown}` ended with {status}") }
}

/// A command as a person would type it.
pub fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_else(|| command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// The target that the compiler builds for when none is named.
pub fn triple() -> Result<String> {
    let output = program(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())).arg("-vV").output();
    let said = String::from_utf8(output.context("rustc -vV")?.stdout).context("rustc -vV")?;
    match said.lines().find_map(|line| line.strip_prefix("host: ")) {
        Some(triple) => Ok(triple.to_owned()),
        None => bail!("rustc -vV names no host"),
    }
}

/// Whether a program can be found.
pub fn has(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(usual).any(|folder| folder.join(name).is_file())
}
