//! `golden/recipe.toml`: what is in a golden, as data.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

const SCHEMA: &str = "holdfast.golden-recipe/v1";

/// The whole recipe.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    schema: String,
    /// No time in the archive is later.
    pub source_date_epoch: u64,
    /// The configuration that travels in the archive.
    pub container: Container,
    /// What Debian brings.
    pub debian: Debian,
    /// What `--full` adds.
    pub full: Full,
    /// Our own units.
    #[serde(rename = "unit")]
    pub units: Vec<Unit>,
}

/// The container that a restore makes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Container {
    pub vmid: u32,
    pub hostname: String,
    pub arch: String,
    pub cores: u32,
    pub memory_mib: u32,
    pub swap_mib: u32,
    pub rootfs_gib: u32,
    pub ostype: String,
    pub features: String,
}

/// How mmdebstrap is called.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Debian {
    pub variant: String,
    pub packages: Vec<String>,
    pub leave_out: Vec<String>,
    pub masked_units: Vec<String>,
}

/// What `--full` adds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Full {
    pub packages: Vec<String>,
}

/// One of our own units.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unit {
    pub file: String,
    pub wanted_by: String,
}

impl Recipe {
    /// Reads the recipe of a workspace.
    pub fn read(workspace: &Path) -> Result<(Self, String)> {
        let path = workspace.join("golden/recipe.toml");
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let recipe = Self::parse(&text).with_context(|| format!("{} is refused", path.display()))?;
        Ok((recipe, text))
    }

    /// Reads a recipe's text.
    pub fn parse(text: &str) -> Result<Self> {
        let recipe: Self = toml::from_str(text)?;
        ensure!(recipe.schema == SCHEMA, "its schema is `{}`, not `{SCHEMA}`", recipe.schema);
        for unit in &recipe.units {
            for name in [&unit.file, &unit.wanted_by] {
                let plain =
                    |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'@');
                ensure!(name.bytes().all(plain), "`{name}` is no plain name of a unit");
            }
        }
        Ok(recipe)
    }

    /// The `pct.conf` that travels in the archive.
    pub fn pct_conf(&self) -> String {
        let container = &self.container;
        let vmid = container.vmid;
        format!(
            "arch: {}\ncores: {}\nfeatures: {}\nhostname: {}\nmemory: {}\nostype: {}\n\
             rootfs: local:{vmid}/vm-{vmid}-disk-0.raw,size={}G\nswap: {}\nunprivileged: 1\n",
            container.arch,
            container.cores,
            container.features,
            container.hostname,
            container.memory_mib,
            container.ostype,
            container.rootfs_gib,
            container.swap_mib,
        )
    }
}
