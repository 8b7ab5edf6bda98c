//! The PostgreSQL server of tests, out of Debian's packages.
//!
//! In: what the machine has in `/usr/lib/postgresql`, or else the archive that its package manager knows. Out: the folder of
//! the programs, for the tests' `HOLDFAST_POSTGRES`. Packages are unpacked into the cache and not installed: their scripts
//! would start a server. Deliberately absent: the server's start, which is the tests' own (`tests/support/postgres.rs`).

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::workspace::{cache, must, program};

const INSTALLED: &str = "/usr/lib/postgresql";

/// What every machine has, or what is large and only used by compiled queries.
const LEFT_OUT: [&str; 6] = ["libc6", "libc-", "libgcc-s1", "libstdc++6", "libcrypt1", "libllvm"];

/// The folder with the programs where they had to be unpacked; none where the tests find them by themselves.
pub fn unpacked_programs() -> Result<Option<PathBuf>> {
    if std::env::var_os("HOLDFAST_POSTGRES").is_some() || newest(Path::new(INSTALLED)).is_some() {
        return Ok(None);
    }
    let folder = cache()?.join("postgresql");
    let of = |folder: &Path| newest(&folder.join("usr/lib/postgresql"));
    if let Some(programs) = of(&folder) {
        return Ok(Some(programs));
    }
    println!("unpacking PostgreSQL …");
    let unfinished = folder.with_extension(std::process::id().to_string());
    std::fs::create_dir_all(&unfinished).with_context(|| format!("cannot make {}", unfinished.display()))?;
    let packages = packages()?;
    must(program("apt-get").current_dir(&unfinished).args(["-q", "download"]).args(&packages))?;
    for entry in std::fs::read_dir(&unfinished).context("what was downloaded")? {
        let path = entry.context("what was downloaded")?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            must(program("dpkg-deb").arg("--extract").arg(&path).arg(&unfinished))?;
            std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    std::fs::rename(&unfinished, &folder).with_context(|| format!("cannot keep {}", folder.display()))?;
    match of(&folder) {
        Some(programs) => Ok(Some(programs)),
        None => bail!("{} has no server of PostgreSQL", folder.display()),
    }
}

/// The programs of the newest version.
fn newest(folder: &Path) -> Option<PathBuf> {
    let versions = std::fs::read_dir(folder).ok()?;
    let versions = versions.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let has_server = |version: &u32| folder.join(version.to_string()).join("bin/postgres").is_file();
    let newest = versions.filter(has_server).max()?;
    Some(folder.join(newest.to_string()).join("bin"))
}

/// The newest server that the archive has, with the libraries that it needs.
fn packages() -> Result<Vec<String>> {
    let known = said("apt-cache", &["pkgnames", "postgresql-"])?;
    let version = |name: &str| name.strip_prefix("postgresql-")?.parse::<u32>().ok();
    let Some(newest) = known.lines().filter_map(version).max() else {
        bail!("the package manager knows no postgresql-17: `apt-get update` first, or give HOLDFAST_POSTGRES")
    };
    let server = format!("postgresql-{newest}");
    let words = ["depends", "--recurse", "--no-recommends", "--no-suggests", "--no-conflicts", "--no-breaks"];
    let words = [words.as_slice(), &["--no-replaces", "--no-enhances", &server]].concat();
    let needed = said("apt-cache", &words)?;
    let is_library = |name: &&str| {
        name.starts_with("lib")
            && LEFT_OUT.iter().all(|left_out| !name.starts_with(left_out))
            && !name.contains("-perl")
    };
    let mut packages: Vec<String> = needed.lines().filter(is_library).map(str::to_owned).collect();
    packages.push(server);
    Ok(packages)
}

fn said(name: &str, words: &[&str]) -> Result<String> {
    let output = program(name).args(words).output().with_context(|| format!("cannot run {name}"))?;
    if !output.status.success() {
        bail!("`{name} {}` ended with {}", words.join(" "), output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("{name} says what is no text"))
}
