//! Tools that cargo installs: built once into the target folder, at one version, with their own lock file, so that a new
//! release of one cannot turn an old commit red.

use std::path::PathBuf;

use anyhow::Result;

use crate::workspace::{cargo, must, target};

/// A program of crates.io, at one version.
pub struct Tool {
    /// The crate, and its program.
    pub name: &'static str,
    /// The version.
    pub version: &'static str,
}

/// Licences, duplicates and sources of what is linked.
pub const DENY: Tool = Tool { name: "cargo-deny", version: "0.20.2" };

/// Debian packages of crates.
pub const DEB: Tool = Tool { name: "cargo-deb", version: "3.8.0" };

/// Opens the files of age, and shares no code with the `age` of Debian.
pub const RAGE: Tool = Tool { name: "rage", version: "0.12.1" };

impl Tool {
    /// Its program, installed (a minute or two) when it is not there yet.
    pub fn ready(&self) -> Result<PathBuf> {
        let tools = target().join("tools");
        let binary = tools.join("bin").join(self.name);
        if !binary.is_file() {
            let mut install = cargo();
            install.args(["install", "--quiet", "--locked", "--profile", "dev"]);
            install.args([
                "--config",
                "profile.dev.debug=false",
                self.name,
                "--version",
                self.version,
                "--root",
            ]);
            must(install.arg(&tools))?;
        }
        Ok(binary)
    }
}
