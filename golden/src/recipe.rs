//! Recipe of an image, `golden/recipe.toml`.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use sha2::{Digest, Sha256};

/// What stands for a time in the lines of `snapshots`.
pub const AS_OF: &str = "AS_OF";

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
    /// What guests with app stacks need on top.
    pub stacks: Stacks,
    /// Our own units.
    #[serde(rename = "unit")]
    pub units: Vec<Unit>,
    /// Our own files.
    #[serde(rename = "file")]
    pub files: Vec<OwnFile>,
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
    pub suite: String,
    pub variant: String,
    pub packages: Vec<String>,
    /// The image's own lines of `sources.list`.
    pub sources: Vec<String>,
    /// The same archives at a time, for which [`AS_OF`] stands.
    pub snapshots: Vec<String>,
    pub leave_out: Vec<String>,
    pub but_keep: Vec<String>,
    pub masked_units: Vec<String>,
}

/// What guests with app stacks need on top.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stacks {
    pub packages: Vec<String>,
}

/// One of our own units.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unit {
    pub file: String,
    /// By which target; none for one that another unit starts.
    #[serde(default)]
    pub wanted_by: Option<String>,
}

/// One of our own files.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnFile {
    pub file: String,
    /// Its path in the image, without a slash in front.
    pub installed: String,
}

impl Recipe {
    /// Reads the recipe of a folder.
    pub fn read(folder: &Path) -> Result<(Self, String)> {
        let path = folder.join("recipe.toml");
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let recipe = Self::parse(&text).with_context(|| format!("{} is refused", path.display()))?;
        Ok((recipe, text))
    }

    /// Reads a recipe's text.
    pub fn parse(text: &str) -> Result<Self> {
        let recipe: Self = toml::from_str(text)?;
        ensure!(recipe.schema == SCHEMA, "its schema is `{}`, not `{SCHEMA}`", recipe.schema);
        let debian = &recipe.debian;
        let words =
            debian.packages.iter().chain(&recipe.stacks.packages).chain([&debian.suite, &debian.variant]);
        for word in words {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.+".contains(&byte);
            let first = word.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
            ensure!(first && word.bytes().all(plain), "`{word}` is no name of a package or a suite");
        }
        for line in debian.sources.iter().chain(&debian.snapshots) {
            // An option in brackets could switch off what holds an archive to its signature.
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b" :/.-_~".contains(&byte);
            ensure!(
                line.starts_with("deb http") && line.bytes().all(plain),
                "`{line}` is no plain source of apt"
            );
        }
        ensure!(!debian.sources.is_empty(), "`sources` is empty: guests would get no upgrade");
        ensure!(
            !debian.snapshots.is_empty() && debian.snapshots.iter().all(|line| line.contains(AS_OF)),
            "a line of `snapshots` does not name its time, {AS_OF}"
        );
        for unit in &recipe.units {
            for name in [&unit.file].into_iter().chain(&unit.wanted_by) {
                let plain =
                    |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'@');
                ensure!(name.bytes().all(plain), "`{name}` is no plain name of a unit");
            }
        }
        for file in &recipe.files {
            let plain = |part: &str| {
                let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
                !part.is_empty() && !part.starts_with("..") && part.bytes().all(fits)
            };
            ensure!(
                plain(&file.file) && file.installed.split('/').all(plain),
                "`{}` to `{}` is no plain file in the image",
                file.file,
                file.installed
            );
        }
        Ok(recipe)
    }

    /// The moment that no time in the archive is later than.
    pub fn epoch(&self) -> Result<u64> {
        match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(text) => text
                .parse()
                .with_context(|| format!("SOURCE_DATE_EPOCH is `{text}`, not a number of seconds")),
            Err(_) => Ok(self.source_date_epoch),
        }
    }

    /// One digest over all of our files that determine the image.
    pub fn digest(&self, folder: &Path, text: &str) -> Result<String> {
        let mut digest = Sha256::new();
        digest.update(text.as_bytes());
        for unit in &self.units {
            let path = folder.join("units").join(&unit.file);
            digest.update(unit.file.as_bytes());
            digest.update(std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?);
        }
        for file in &self.files {
            let path = folder.join("files").join(&file.file);
            digest.update(file.file.as_bytes());
            digest.update(std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?);
        }
        Ok(hex::encode(digest.finalize()))
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
