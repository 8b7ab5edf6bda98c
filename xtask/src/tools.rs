//! Tools that cargo installs, pinned.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::workspace::{cache, cargo, has, must};

/// A program of crates.io, at one version.
pub struct Tool {
    /// The crate, and its program.
    pub name: &'static str,
    pub version: &'static str,
    /// Whether one that the machine has will do as well.
    pub own: Own,
}

/// Whether a program that is there already is used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Own {
    /// What it says decides something: only this version.
    ThisVersion,
    /// It runs things: any that is there.
    Any,
}

/// Licences, duplicates and sources of what is linked.
pub const DENY: Tool = Tool { name: "cargo-deny", version: "0.20.2", own: Own::ThisVersion };

/// Debian packages of crates.
pub const DEB: Tool = Tool { name: "cargo-deb", version: "3.8.0", own: Own::ThisVersion };

/// Small changes to the code, one by one.
pub const MUTANTS: Tool = Tool { name: "cargo-mutants", version: "27.1.0", own: Own::Any };

/// Runs tests, each in a process.
pub const NEXTEST: Tool = Tool { name: "cargo-nextest", version: "0.9.143", own: Own::Any };

/// Opens the files of age, and shares no code with the `age` of Debian.
pub const RAGE: Tool = Tool { name: "rage", version: "0.12.1", own: Own::ThisVersion };

impl Tool {
    /// Its program, installed when it is not there yet: a minute or two, once for this machine and version.
    pub fn ready(&self) -> Result<PathBuf> {
        if self.own == Own::Any && has(self.name) {
            return Ok(PathBuf::from(self.name));
        }
        let tools = cache()?.join("tools").join(format!("{}-{}", self.name, self.version));
        let binary = tools.join("bin").join(self.name);
        if !binary.is_file() {
            self.install(&tools).with_context(|| format!("{} was not installed", self.name))?;
        }
        Ok(binary)
    }

    fn install(&self, tools: &Path) -> Result<()> {
        println!("installing {} {} for this machine …", self.name, self.version);
        let mut install = cargo();
        install.args(["install", "--quiet", "--locked", "--profile", "dev"]);
        install.args(["--config", "profile.dev.debug=false", self.name, "--version", self.version, "--root"]);
        must(install.arg(tools))
    }
}
