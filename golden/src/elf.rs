//! ELF requirements of a program: glibc version and libraries.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use holdfast_protocol::golden::GoldenPackage;
use object::Endianness;
use object::elf::FileHeader64;
use object::read::elf::FileHeader as _;

use super::program::program;

/// A version such as 2.36, compared part by part.
type Version = (u32, u32);

/// Refuses a program that wants a newer C library than the image has.
pub fn require_glibc(program: &Path, packages: &[GoldenPackage]) -> Result<()> {
    let bytes = std::fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
    let wants =
        glibc_wanted(&bytes).with_context(|| format!("{} is no program of Linux", program.display()))?;
    let libc = packages.iter().find(|package| package.name == "libc6").context("the image has no libc6")?;
    let has = leading_version(&libc.version).context("the version of libc6 is not understood")?;
    if let Some(wants) = wants {
        let ((major, minor), suite) = (wants, &libc.version);
        ensure!(wants <= has, "{} needs glibc {major}.{minor}; the image has {suite}", program.display());
    }
    Ok(())
}

/// The newest `GLIBC_x.y` among the symbol versions that a program needs; none for a static one.
fn glibc_wanted(bytes: &[u8]) -> object::Result<Option<Version>> {
    let header = FileHeader64::<Endianness>::parse(bytes)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, bytes)?;
    let Some((mut needs, strings)) = sections.gnu_verneed(endian, bytes)? else { return Ok(None) };
    let strings = sections.strings(endian, bytes, strings)?;
    let mut newest = None;
    while let Some((_, mut versions)) = needs.next()? {
        while let Some(version) = versions.next()? {
            let name = std::str::from_utf8(version.name(endian, strings)?).unwrap_or_default();
            newest = newest.max(name.strip_prefix("GLIBC_").and_then(leading_version));
        }
    }
    Ok(newest)
}

fn leading_version(text: &str) -> Option<Version> {
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let mut parts = text.get(..end)?.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// The libraries that a program loads, as the building machine finds them; none for a static one.
pub fn libraries(of: &Path) -> Result<Vec<PathBuf>> {
    let output = program("ldd").arg(of).output().context("cannot run ldd")?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        if complaint.contains("not a dynamic executable") || said.contains("statically linked") {
            return Ok(Vec::new());
        }
        bail!("ldd refuses {}: {}", of.display(), complaint.trim());
    }
    let mut found = Vec::new();
    for line in said.lines() {
        ensure!(!line.contains("not found"), "{} lacks a library: {}", of.display(), line.trim());
        // `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x…)`, or the loader by its path alone.
        let path = line.split_whitespace().find(|word| word.starts_with('/'));
        found.extend(path.map(PathBuf::from));
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This very test is a program of the machine's own C library.
    #[test]
    fn a_program_with_a_newer_glibc_is_refused() {
        let program = std::env::current_exe().unwrap();
        let (major, minor) = glibc_wanted(&std::fs::read(&program).unwrap()).unwrap().unwrap();
        let image = |version: &str| {
            [GoldenPackage {
                name: "libc6".to_owned(),
                version: version.to_owned(),
                architecture: "amd64".to_owned(),
            }]
        };
        assert!(require_glibc(&program, &image(&format!("{major}.{minor}-12"))).is_ok());
        let error = require_glibc(&program, &image("2.1-9+deb12u10")).expect_err("too old");
        let text = format!("needs glibc {major}.{minor}; the image has 2.1-9");
        assert!(error.to_string().contains(&text), "{error}");
    }

    /// What a program says in its texts is no need of it.
    #[test]
    fn what_is_no_program_is_refused() {
        let folder = tempfile::TempDir::new().unwrap();
        let program = folder.path().join("guestd");
        std::fs::write(&program, b"#!/bin/sh\necho GLIBC_2.99\n").unwrap();
        let error = require_glibc(&program, &[]).expect_err("a script");
        assert!(error.to_string().contains("is no program of Linux"), "{error}");
    }
}
