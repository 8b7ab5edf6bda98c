//! Scan of an archive for keys, identities, passwords and tokens.
//!
//! In: the archive as it will be restored. Out: each finding with its path and what it is, never the secret itself. It
//! reads the bytes that are shipped and not what the packer meant to write, and every build ends with it.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// A file that is longer is read no further; the largest program in an image has a third of it.
const FILE_BYTES_MAX: u64 = 512 << 20;

/// One thing that must not be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where, within the image.
    pub path: String,
    /// The kind of the finding, as text.
    pub what: &'static str,
}

/// Searches an archive.
pub fn scan(archive: &Path) -> Result<Vec<Finding>> {
    let failed = || format!("cannot read {}", archive.display());
    let plain = zstd::Decoder::new(File::open(archive).with_context(failed)?).with_context(failed)?;
    let mut tar = tar::Archive::new(plain);
    let mut findings = Vec::new();
    for entry in tar.entries().with_context(failed)? {
        let mut entry = entry.with_context(failed)?;
        let path = String::from_utf8_lossy(&entry.path_bytes()).trim_start_matches("./").to_owned();
        let file = entry.header().entry_type().is_file();
        let mut bytes = Vec::new();
        if file {
            ensure!(entry.size() <= FILE_BYTES_MAX, "{path} is too long to be looked through");
            entry.read_to_end(&mut bytes).with_context(failed)?;
        }
        let holds_something = file && !bytes.is_empty();
        let found =
            forbidden_path(&path, holds_something).into_iter().chain(forbidden_content(&path, &bytes));
        findings.extend(found.map(|what| Finding { path: path.clone(), what }));
    }
    Ok(findings)
}

/// What may not be there by its name alone.
fn forbidden_path(path: &str, holds_something: bool) -> Option<&'static str> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_home = path.starts_with("root/") || path.starts_with("home/");
    match path {
        "etc/machine-id" if holds_something => Some("a machine's identity"),
        "var/lib/dbus/machine-id" => Some("a machine's identity"),
        "var/lib/systemd/random-seed" | "var/lib/systemd/credential.secret" => Some("a machine's seed"),
        _ if path.starts_with("etc/ssh/ssh_host_") => Some("a machine's SSH host key"),
        _ if path.starts_with("etc/apt/auth.conf") && holds_something => {
            Some("passwords of package archives")
        }
        _ if path.starts_with("etc/ssl/private/") && holds_something => Some("a private key by its place"),
        _ if path.starts_with("etc/docker/key.json") => Some("a Docker engine's identity"),
        _ if path.starts_with("var/lib/holdfast/") && holds_something => Some("a guest's state"),
        _ if is_home && path.contains("/.ssh/") && holds_something => Some("a person's SSH files"),
        _ if is_home && [".netrc", ".git-credentials", ".bash_history", ".pgpass"].contains(&name) => {
            Some("what a person left behind")
        }
        _ if is_home && path.contains("/.docker/config.json") => Some("passwords of image registries"),
        _ => None,
    }
}

fn forbidden_content(path: &str, bytes: &[u8]) -> Option<&'static str> {
    if matches!(path, "etc/shadow" | "etc/gshadow" | "etc/shadow-" | "etc/gshadow-") {
        return has_password(bytes).then_some("a password, or an empty one");
    }
    if matches!(path, "etc/passwd" | "etc/passwd-" | "etc/group" | "etc/group-") {
        return passes_elsewhere(bytes).then_some("a password outside /etc/shadow");
    }
    bytes.iter().enumerate().find_map(|(at, byte)| match byte {
        b'-' => bytes.get(at..).filter(|rest| is_private_key(rest)).map(|_| "a private key"),
        b'A' | b'P' | b'g' | b'h' | b'x' => bytes.get(at..).filter(|rest| is_token(rest)).map(|_| "a token"),
        _ => None,
    })
}

/// Second fields that no password fits.
fn has_password(bytes: &[u8]) -> bool {
    let locked = |field: &[u8]| matches!(field, b"*" | b"!" | b"!!" | b"!*");
    bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).any(|line| !locked(second(line)))
}

fn passes_elsewhere(bytes: &[u8]) -> bool {
    let fits = |field: &[u8]| matches!(field, b"x" | b"*" | b"!");
    bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).any(|line| !fits(second(line)))
}

fn second(line: &[u8]) -> &[u8] {
    line.split(|byte| *byte == b':').nth(1).unwrap_or_default()
}

/// The head of a key with something of the key after it. Programs that write keys hold the head alone.
fn is_private_key(rest: &[u8]) -> bool {
    const HEADS: [&str; 7] = [
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN ENCRYPTED PRIVATE KEY-----",
        "-----BEGIN RSA PRIVATE KEY-----",
        "-----BEGIN EC PRIVATE KEY-----",
        "-----BEGIN DSA PRIVATE KEY-----",
        "-----BEGIN OPENSSH PRIVATE KEY-----",
        "-----BEGIN PGP PRIVATE KEY BLOCK-----",
    ];
    HEADS.iter().any(|head| {
        let body = rest.strip_prefix(head.as_bytes()).and_then(|body| body.get(..64)).unwrap_or_default();
        let letter = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+/=".contains(*byte);
        body.first().is_some_and(|byte| matches!(byte, b'\n' | b'\r'))
            && body.iter().filter(letter).count() >= 40
    })
}

/// Prefixes that only tokens have, each with the length that must follow.
fn is_token(rest: &[u8]) -> bool {
    const PREFIXES: [(&str, usize); 9] = [
        ("AGE-SECRET-KEY-1", 58),
        ("AKIA", 16),
        ("PVEAPIToken=", 20),
        ("ghp_", 36),
        ("ghs_", 36),
        ("github_pat_", 40),
        ("glpat-", 20),
        ("hf1_", 20),
        ("xoxb-", 20),
    ];
    PREFIXES.iter().any(|(prefix, length)| {
        let secret = rest.strip_prefix(prefix.as_bytes()).and_then(|secret| secret.get(..*length));
        let upper = *prefix == "AKIA";
        let fits = |byte: &u8| match byte {
            b'0'..=b'9' | b'A'..=b'Z' => true,
            byte => !upper && (byte.is_ascii_alphanumeric() || b"_-!@=.".contains(byte)),
        };
        let varied = |secret: &[u8]| {
            secret.iter().any(u8::is_ascii_digit) && secret.iter().any(u8::is_ascii_alphabetic)
        };
        secret.is_some_and(|secret| secret.iter().all(fits) && varied(secret))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, content: &str) -> bool {
        let holds = !content.is_empty();
        forbidden_path(path, holds).is_some() || forbidden_content(path, content.as_bytes()).is_some()
    }

    #[test]
    fn each_kind_of_secret_is_found() {
        let body = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtz";
        for (path, content) in [
            ("etc/machine-id", "0123456789abcdef0123456789abcdef\n".to_owned()),
            ("var/lib/dbus/machine-id", String::new()),
            ("etc/ssh/ssh_host_ed25519_key", String::new()),
            ("etc/ssh/ssh_host_ed25519_key.pub", String::new()),
            ("etc/apt/auth.conf.d/hub", "machine x login y".to_owned()),
            ("etc/shadow", "root:$y$j9T$abc:20000::::::\n".to_owned()),
            ("etc/shadow", "root::20000::::::\n".to_owned()),
            ("etc/passwd", "root:abJnggxhB/yWI:0:0::/root:/bin/sh\n".to_owned()),
            ("root/.ssh/authorized_keys", "ssh-ed25519 AAAA".to_owned()),
            ("home/app/.docker/config.json", "{}".to_owned()),
            ("var/lib/systemd/random-seed", "x".to_owned()),
            ("usr/share/x", format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{body}\n")),
            ("usr/share/x", format!("before -----BEGIN PRIVATE KEY-----\r\n{body}\n")),
            ("usr/share/x", "token = \"ghp_0123456789abcdefghijABCDEFGHIJ012345\"".to_owned()),
            ("usr/share/x", "AKIAIOSFODNN7EXAMPL3".to_owned()),
            ("usr/share/x", "PVEAPIToken=u@pve!t=0b5f1f3c-9d0e-4a6b-8f51-1c2d3e4f5a6b".to_owned()),
        ] {
            assert!(found(path, &content), "{path}: {content}");
        }
    }

    #[test]
    fn stock_debian_files_are_no_findings() {
        for (path, content) in [
            ("etc/machine-id", ""),
            ("etc/shadow", "root:*:20000:0:99999:7:::\nsshd:!:20000::::::\n"),
            ("etc/gshadow", "root:*::\ndocker:!::\n"),
            ("etc/passwd", "root:x:0:0:root:/root:/bin/bash\n"),
            (
                "usr/bin/ssh-keygen",
                "-----BEGIN OPENSSH PRIVATE KEY-----\n\0\0-----END OPENSSH PRIVATE KEY-----\n",
            ),
            ("usr/bin/openssl", "-----BEGIN \0PRIVATE KEY-----"),
            ("etc/ssl/certs/ca.pem", "-----BEGIN CERTIFICATE-----\nMIIB\n"),
            ("usr/bin/guestd", "hf1_ AKIA ghp_"),
            ("usr/share/x", "hf1____________________________"),
        ] {
            assert!(!found(path, content), "{path}: {content}");
        }
    }
}
