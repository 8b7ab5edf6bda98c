//! An apt repository of the packages of a release.
//!
//! In: a folder with `.deb` files. Out: `pool/` with them, and `dists/stable` with `Packages` and `Release`, as apt reads
//! them, and `InRelease` where a key is given.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use jiff::Timestamp;

use super::manifest::measure;
use crate::workspace::{must, program};

const POOL: &str = "pool/main/h/holdfast";
const SUITE: &str = "dists/stable";
const INDEX: &str = "main/binary-amd64/Packages";

/// Lays out the repository.
pub fn lay_out(files: &Path, apt: &Path, stamp: i64) -> Result<()> {
    fs::create_dir_all(apt.join(POOL))?;
    let mut packages = packages(files)?;
    packages.sort();
    let mut entries = Vec::new();
    for package in packages {
        let name = package.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let place = format!("{POOL}/{name}");
        fs::copy(&package, apt.join(&place)).with_context(|| format!("cannot copy {name}"))?;
        let (size, sha256) = measure(&package)?;
        entries.push(entry(&control(&package)?, &place, size, sha256.as_str()));
    }
    let index = apt.join(SUITE).join(INDEX);
    fs::create_dir_all(index.parent().unwrap_or(apt))?;
    fs::write(&index, entries.join("\n")).with_context(|| format!("cannot write {}", index.display()))?;
    let (size, sha256) = measure(&index)?;
    let release = release(stamp, &[(INDEX, size, sha256.as_str())])?;
    fs::write(apt.join(SUITE).join("Release"), release).context("cannot write Release")
}

/// `InRelease`, by GnuPG.
pub fn sign(apt: &Path, key: &str, home: Option<&Path>) -> Result<()> {
    let suite = apt.join(SUITE);
    let mut gpg = program("gpg");
    gpg.args(["--batch", "--yes", "--digest-algo", "SHA512", "--local-user", key]);
    if let Some(home) = home {
        gpg.arg("--homedir").arg(home);
    }
    gpg.args(["--output"]).arg(suite.join("InRelease")).arg("--clearsign").arg(suite.join("Release"));
    must(&mut gpg)
}

fn packages(files: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(files)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            found.push(path);
        }
    }
    if found.is_empty() {
        bail!("{} has no packages", files.display());
    }
    Ok(found)
}

/// A package's own description.
fn control(package: &Path) -> Result<String> {
    let said = program("dpkg-deb").arg("--field").arg(package).output().context("cannot run dpkg-deb")?;
    if !said.status.success() {
        bail!("dpkg-deb cannot read {}", package.display());
    }
    String::from_utf8(said.stdout).context("a package's description is not text")
}

/// The paragraph of a package in `Packages`.
fn entry(control: &str, place: &str, size: u64, sha256: &str) -> String {
    format!("{}\nFilename: {place}\nSize: {size}\nSHA256: {sha256}\n", control.trim_end())
}

/// `Release`: what the suite is, and the hash of each index.
fn release(stamp: i64, indexes: &[(&str, u64, &str)]) -> Result<String> {
    let at = Timestamp::from_second(stamp).context("the time is beyond what can be written")?;
    let date = at.strftime("%a, %d %b %Y %H:%M:%S UTC");
    let mut text = format!(
        "Origin: Holdfast\nLabel: Holdfast\nSuite: stable\nCodename: stable\nDate: {date}\nArchitectures: amd64\n\
         Components: main\nDescription: Holdfast\nSHA256:\n"
    );
    for (name, size, sha256) in indexes {
        text.push_str(&format!(" {sha256} {size} {name}\n"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(files: &Path, name: &str) {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir(tree.path().join("DEBIAN")).unwrap();
        let control = format!(
            "Package: {name}\nVersion: 0.1.0-1\nArchitecture: amd64\nMaintainer: A <a@b.example>\nDescription: a test\n of two lines\n"
        );
        fs::write(tree.path().join("DEBIAN/control"), control).unwrap();
        let mut build = program("dpkg-deb");
        build.args(["--root-owner-group", "--build"]).arg(tree.path());
        must(build.arg(files.join(format!("{name}_0.1.0-1_amd64.deb"))).stdout(std::process::Stdio::null()))
            .unwrap();
    }

    #[test]
    fn release_names_the_index_by_its_hash() {
        let text = release(1_764_547_200, &[(INDEX, 7, "ab")]).unwrap();
        assert!(text.contains("Date: Mon, 01 Dec 2025 00:00:00 UTC\n"), "{text}");
        assert!(text.ends_with("SHA256:\n ab 7 main/binary-amd64/Packages\n"), "{text}");
        assert_eq!(
            entry("Package: a\n\n", "pool/a.deb", 3, "cd"),
            "Package: a\nFilename: pool/a.deb\nSize: 3\nSHA256: cd\n"
        );
    }

    /// A repository of two packages, and an apt of its own that knows no other.
    struct Repository {
        folder: tempfile::TempDir,
    }

    impl Repository {
        fn new() -> Self {
            let repository = Self { folder: tempfile::tempdir().unwrap() };
            let files = repository.at("files");
            fs::create_dir(&files).unwrap();
            for name in ["holdfast-agent", "holdfast-cli"] {
                package(&files, name);
            }
            lay_out(&files, &repository.at("apt"), 1_764_547_200).unwrap();
            for below in ["lists/partial", "cache/archives/partial", "etc/preferences.d"] {
                fs::create_dir_all(repository.at("state").join(below)).unwrap();
            }
            fs::write(repository.at("state/status"), "").unwrap();
            repository
        }

        fn at(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        fn options(&self, options: &str) {
            let line = format!("deb [{options} arch=amd64] file:{} stable main\n", self.at("apt").display());
            fs::write(self.at("state/sources.list"), line).unwrap();
        }

        fn run(&self, name: &str, words: &[&str]) -> (bool, String) {
            let mut command = program(name);
            for (key, value) in [
                ("Dir::State::lists", "lists"),
                ("Dir::State::status", "status"),
                ("Dir::Cache", "cache"),
                ("Dir::Etc::sourcelist", "sources.list"),
                ("Dir::Etc::sourceparts", "none"),
                ("Dir::Etc::parts", "none"),
                ("Dir::Etc::preferencesparts", "etc/preferences.d"),
            ] {
                command.arg("-o").arg(format!("{key}={}", self.at("state").join(value).display()));
            }
            command.args(["-o", "APT::Architecture=amd64", "-o", "APT::Sandbox::User="]);
            let output = command.args(words).current_dir(self.at("state")).output().unwrap();
            let shown = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
            (output.status.success(), shown)
        }
    }

    /// Stock apt reads it, and takes nothing whose hash differs.
    #[test]
    fn apt_reads_the_repository() {
        let repository = Repository::new();
        repository.options("trusted=yes");
        let updated = repository.run("apt-get", &["update"]);
        assert!(updated.0 && !updated.1.contains("Err:"), "{}", updated.1);
        let policy = repository.run("apt-cache", &["policy", "holdfast-agent"]);
        assert!(policy.1.contains("Candidate: 0.1.0-1"), "{}", policy.1);
        let fetched = repository.run("apt-get", &["download", "holdfast-cli"]);
        assert!(fetched.0, "{}", fetched.1);

        let changed = repository.at("apt").join(POOL).join("holdfast-agent_0.1.0-1_amd64.deb");
        let mut bytes = fs::read(&changed).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(&changed, bytes).unwrap();
        let fetched = repository.run("apt-get", &["download", "holdfast-agent"]);
        assert!(!fetched.0 && fetched.1.contains("Hash Sum mismatch"), "{}", fetched.1);
    }

    /// With the key, stock apt takes what is signed and nothing else.
    #[test]
    fn apt_holds_a_signed_repository_to_its_key() {
        let repository = Repository::new();
        let home = repository.at("gnupg");
        fs::create_dir(&home).unwrap();
        fs::set_permissions(&home, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        let gpg = |words: &[&str]| {
            let mut command = program("gpg");
            must(command.arg("--homedir").arg(&home).args(["--batch", "--quiet"]).args(words)).unwrap();
        };
        let key = "release@holdfast.example";
        gpg(&["--passphrase", "", "--quick-generate-key", key, "ed25519", "sign", "never"]);
        let ring = repository.at("release.gpg").display().to_string();
        gpg(&["--output", &ring, "--export", key]);
        repository.options(&format!("signed-by={ring}"));
        let unsigned = repository.run("apt-get", &["update"]);
        assert!(!unsigned.0 && unsigned.1.contains("is not signed"), "{}", unsigned.1);
        sign(&repository.at("apt"), key, Some(&home)).unwrap();
        let signed = repository.run("apt-get", &["update"]);
        assert!(signed.0 && !signed.1.contains("Err:"), "{}", signed.1);
        let fetched = repository.run("apt-get", &["download", "holdfast-agent"]);
        assert!(fetched.0, "{}", fetched.1);

        let release = repository.at("apt").join(SUITE).join("InRelease");
        let text = fs::read_to_string(&release).unwrap();
        fs::write(&release, text.replacen("Label: Holdfast", "Label: Holdfest", 1)).unwrap();
        fs::remove_dir_all(repository.at("state/lists")).unwrap();
        fs::create_dir_all(repository.at("state/lists/partial")).unwrap();
        let changed = repository.run("apt-get", &["update"]);
        assert!(changed.1.contains("BADSIG") || changed.1.contains("invalid"), "{}", changed.1);
        program("gpgconf").arg("--homedir").arg(&home).args(["--kill", "all"]).status().unwrap();
    }
}
