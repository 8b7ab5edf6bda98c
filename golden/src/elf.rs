//! ELF requirements of a program: glibc version and libraries.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use holdfast_protocol::golden::GoldenPackage;

use super::program::program;

/// A version such as 2.36, compared part by part.
type Version = (u32, u32);

/// Refuses a program that wants a newer C library than the image has.
pub fn require_glibc(program: &Path, packages: &[GoldenPackage]) -> Result<()> {
    let bytes = std::fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
    ensure!(bytes.starts_with(b"\x7fELF"), "{} is no program of Linux", program.display());
    let libc = packages.iter().find(|package| package.name == "libc6").context("the image has no libc6")?;
    let has = leading_version(&libc.version).context("the version of libc6 is not understood")?;
    if let Some(wants) = glibc_wanted(&bytes) {
        let ((major, minor), suite) = (wants, &libc.version);
        ensure!(wants <= has, "{} needs glibc {major}.{minor}; the image has {suite}", program.display());
    }
    Ok(())
}

/// The newest `GLIBC_x.y` that is named among a program's symbol versions.
fn glibc_wanted(bytes: &[u8]) -> Option<Version> {
    const MARK: &[u8] = b"GLIBC_";
    bytes
        .windows(MARK.len())
        .enumerate()
        .filter(|(_, window)| *window == MARK)
        .filter_map(|(at, _)| {
            let rest = bytes.get(at + MARK.len()..)?;
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
            leading_version(std::str::from_utf8(rest.get(..digits.min(10))?).ok()?)
        })
        .max()
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

    #[test]
    fn the_newest_required_version_counts() {
        assert_eq!(glibc_wanted(b"..GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.9\0GLIBC_PRIVATE\0"), Some((2, 34)));
        assert_eq!(glibc_wanted(b"static"), None);
    }

    #[test]
    fn a_program_with_a_newer_glibc_is_refused() {
        let folder = tempfile::TempDir::new().unwrap();
        let program = folder.path().join("guestd");
        std::fs::write(&program, b"\x7fELF GLIBC_2.38\0").expect("written");
        let image = |version: &str| {
            [GoldenPackage {
                name: "libc6".to_owned(),
                version: version.to_owned(),
                architecture: "amd64".to_owned(),
            }]
        };
        assert!(require_glibc(&program, &image("2.41-12")).is_ok());
        let error = require_glibc(&program, &image("2.36-9+deb12u10")).expect_err("too old");
        assert!(error.to_string().contains("needs glibc 2.38; the image has 2.36-9"), "{error}");
    }
}
