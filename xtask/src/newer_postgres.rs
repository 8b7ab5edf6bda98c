//! The PostgreSQL of Debian 13, on an older Debian.
//!
//! In: Debian's archive, by lists of packages of our own, so that the machine's package manager learns nothing. Out: a folder
//! of programs for the tests' `HOLDFAST_POSTGRES`. They need a newer C library than the machine has, so each program is a
//! line of shell that starts it by its own loader. Deliberately absent: a cache; it is 40 MB, for `--deep` alone.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::workspace::{must, program};

const SOURCES: &str = "Types: deb
URIs: http://deb.debian.org/debian
Suites: trixie
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
";

/// The server, the C library, and every library that one of them links.
#[rustfmt::skip]
const PACKAGES: [&str; 34] = [
    "postgresql-17", "libacl1", "libaudit1", "libc6", "libcap-ng0", "libcap2", "libcom-err2", "libcrypt1", "libgcc-s1",
    "libgcrypt20", "libgpg-error0", "libgssapi-krb5-2", "libicu76", "libk5crypto3", "libkeyutils1", "libkrb5-3",
    "libkrb5support0", "libldap2", "liblz4-1", "liblzma5", "libnuma1", "libpam0g", "libpcre2-8-0", "libpq5", "libsasl2-2",
    "libselinux1", "libssl3t64", "libstdc++6", "libsystemd0", "libuuid1", "libxml2", "libxslt1.1", "libzstd1", "zlib1g",
];

/// What tests start.
const PROGRAMS: [&str; 3] = ["initdb", "pg_ctl", "postgres"];

/// Not where the tests' own search finds libraries: a shell must not start with them.
const LIBRARIES: &str = "usr/lib/libraries";

/// By this loader and with these libraries, wherever the folder is.
const START: &str = r#"#!/bin/sh
at="${0%/*}/../../../libraries"
exec "$at/ld-linux-x86-64.so.2" --argv0 "$0" --library-path "$at" "$0.bin" "$@"
"#;

/// Unpacks everything below a folder, and says where the programs are.
pub fn unpack(folder: &Path) -> Result<PathBuf> {
    let own = folder.join("apt");
    std::fs::create_dir_all(own.join("cache/archives/partial"))
        .context("cannot make a folder for packages")?;
    std::fs::create_dir_all(own.join("lists/partial")).context("cannot make a folder for lists")?;
    let sources = own.join("trixie.sources");
    std::fs::write(&sources, SOURCES).context("cannot write the list of sources")?;
    let apt = |words: &[&str]| -> Command {
        let mut command = program("apt-get");
        command.current_dir(folder).arg("-q");
        for (name, value) in [
            ("Dir::Etc::sourcelist", sources.as_path()),
            ("Dir::Etc::sourceparts", Path::new("/nonexistent")),
            ("Dir::State::lists", &own.join("lists")),
            ("Dir::Cache", &own.join("cache")),
        ] {
            command.arg("-o").arg(format!("{name}={}", value.display()));
        }
        command.args(words);
        command
    };
    must(&mut apt(&["update"]))?;
    must(apt(&["download"]).args(PACKAGES))?;
    for entry in std::fs::read_dir(folder).context("what was downloaded")? {
        let path = entry.context("what was downloaded")?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            must(program("dpkg-deb").arg("--extract").arg(&path).arg(folder))?;
            std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    std::fs::rename(folder.join("usr/lib/x86_64-linux-gnu"), folder.join(LIBRARIES))
        .context("the packages have no libraries")?;
    let programs = folder.join("usr/lib/postgresql/17/bin");
    for name in PROGRAMS {
        let path = programs.join(name);
        let moved = programs.join(format!("{name}.bin"));
        std::fs::rename(&path, moved).with_context(|| format!("the packages have no {name}"))?;
        executable(&path)?;
    }
    Ok(programs)
}

fn executable(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(path, START).with_context(|| format!("cannot write {}", path.display()))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
        .with_context(|| format!("cannot let others start {}", path.display()))
}
