//! Allowed dependencies between our crates.
//!
//! In: `cargo metadata`. A shipped program never depends on another shipped program, `protocol` has no input or output,
//! the simulator shares no types with our Proxmox client.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::Breach;

/// The crates of the workspace: which of our crates each may link, and which external crates it must not.
const RULES: &[(&str, &[&str], &[&str])] = &[
    (
        "agent-admin",
        &[
            "agent-core",
            "agent-ports",
            "holdfast-protocol",
            "holdfast-recovery",
            "holdfast-seal",
            "holdfast-trust",
            "net",
        ],
        &["axum", "rusqlite"],
    ),
    (
        "agent-core",
        &["holdfast-protocol", "holdfast-recovery", "holdfast-trust"],
        &["tokio", "axum", "reqwest", "hyper", "rusqlite", "rustls", "rustix", "tracing", "getrandom"],
    ),
    (
        "agent-ports",
        &[
            "agent-core",
            "agent-slots",
            "agent-store",
            "held-files",
            "holdfast-protocol",
            "holdfast-recovery",
            "holdfast-seal",
            "net",
            "notify",
            "pve-client",
            "restore-certificate",
        ],
        &["axum", "rusqlite"],
    ),
    (
        "agent-slots",
        &["holdfast-protocol"],
        &["tokio", "axum", "reqwest", "hyper", "rusqlite", "rustls", "rustix", "tracing", "getrandom"],
    ),
    (
        "agent-store",
        &["agent-core", "held-files", "holdfast-protocol", "holdfast-recovery", "holdfast-trust"],
        &["axum", "reqwest", "hyper", "rustls"],
    ),
    (
        "agentd",
        &[
            "agent-admin",
            "agent-core",
            "agent-ports",
            "agent-slots",
            "agent-store",
            "held-files",
            "holdfast-manual",
            "holdfast-protocol",
            "holdfast-recovery",
            "holdfast-seal",
            "logging",
            "metrics",
            "net",
            "notify",
            "holdfast-trust",
            "pve-client",
            "restore-certificate",
            "systemd-notices",
        ],
        &[],
    ),
    (
        "alerts",
        &["holdfast-protocol"],
        &["tokio", "axum", "reqwest", "hyper", "rusqlite", "rustls", "rustix", "tracing", "getrandom"],
    ),
    ("e2e", &[], &["agentd", "hubd"]),
    ("fuzz-smoke", &["holdfast-fuzz"], &["tokio", "axum", "reqwest", "hyper", "rusqlite"]),
    (
        "guestd",
        &["holdfast-manual", "holdfast-protocol", "logging", "metrics", "net", "systemd-notices"],
        &["axum", "reqwest", "rusqlite", "rustls"],
    ),
    (
        "harness",
        &["agentd", "holdfast-protocol", "holdfast-trust", "hubd", "net", "planted", "power-disk", "pve-sim"],
        &["reqwest", "rustls"],
    ),
    (
        "holdfast",
        &[
            "holdfast-manual",
            "holdfast-protocol",
            "holdfast-seal",
            "holdfast-trust",
            "net",
            "pdf-page",
            "restore-certificate",
            "state-diff",
        ],
        &["axum", "reqwest", "rusqlite", "rustls"],
    ),
    (
        "holdfast-agent-gate",
        &["agent-slots", "held-files", "holdfast-protocol", "holdfast-trust"],
        &["tokio", "axum", "reqwest", "hyper", "rusqlite", "rustls", "anyhow", "clap", "tracing"],
    ),
    (
        "holdfast-golden",
        &["held-files", "holdfast-protocol", "holdfast-trust"],
        &["tokio", "axum", "reqwest", "hyper", "rusqlite", "rustls"],
    ),
    (
        "holdfast-helper",
        &[],
        &["tokio", "axum", "reqwest", "hyper", "rusqlite", "rustls", "anyhow", "clap", "tracing", "libc"],
    ),
    (
        "holdfast-break-glass",
        &["held-files", "holdfast-protocol", "holdfast-trust"],
        &["tokio", "axum", "reqwest", "hyper", "rusqlite", "rustls", "anyhow", "clap", "tracing"],
    ),
    ("held-files", &[], &["tokio", "axum", "reqwest", "hyper", "rusqlite", "rustls"]),
    ("holdfast-manual", &[], &["tokio", "axum", "reqwest", "rusqlite", "rustls"]),
    ("holdfast-protocol", &[], &["tokio", "axum", "reqwest", "hyper", "rusqlite", "rustls", "getrandom"]),
    (
        "holdfast-recovery",
        &["holdfast-protocol", "holdfast-seal", "pdf-page"],
        &["tokio", "axum", "reqwest", "rusqlite", "rustls"],
    ),
    ("holdfast-seal", &["holdfast-protocol"], &["tokio", "axum", "reqwest", "rusqlite", "rustls"]),
    (
        "hub-page",
        &["holdfast-protocol"],
        &["tokio", "axum", "reqwest", "hyper", "rusqlite", "rustls", "tracing"],
    ),
    (
        "metrics",
        &["holdfast-protocol"],
        &["tokio", "axum", "reqwest", "hyper", "rusqlite", "rustls", "tracing"],
    ),
    (
        "logging",
        &["holdfast-protocol"],
        &["tokio", "axum", "reqwest", "hyper", "rusqlite", "rustls", "getrandom"],
    ),
    ("net", &["holdfast-protocol"], &["rusqlite"]),
    ("notify", &["holdfast-protocol", "net"], &["axum", "rusqlite"]),
    (
        "holdfast-trust",
        &["holdfast-protocol", "ssh-ecdsa"],
        &["tokio", "axum", "reqwest", "rusqlite", "rustls"],
    ),
    (
        "hubd",
        &[
            "alerts",
            "held-files",
            "hub-page",
            "holdfast-manual",
            "holdfast-protocol",
            "logging",
            "metrics",
            "net",
            "notify",
            "restore-certificate",
        ],
        &["age", "ssh-key"],
    ),
    ("pdf-page", &[], &["tokio", "axum", "reqwest", "hyper", "rusqlite", "rustls", "tracing", "getrandom"]),
    ("pve-client", &["agent-core", "holdfast-protocol", "holdfast-seal", "net"], &["axum", "rusqlite"]),
    ("planted", &[], &["tokio", "axum", "reqwest", "hyper", "rusqlite"]),
    ("power-disk", &[], &["tokio", "axum", "reqwest", "hyper", "rusqlite"]),
    ("pve-sim", &[], &["reqwest"]),
    (
        "restore-certificate",
        &["holdfast-protocol", "ssh-ecdsa"],
        &["tokio", "axum", "reqwest", "hyper", "rusqlite", "rustls", "rustix", "tracing", "getrandom"],
    ),
    ("ssh-ecdsa", &[], &["tokio", "axum", "reqwest", "hyper", "rusqlite", "rustls", "rustix", "tracing"]),
    (
        "state-diff",
        &["holdfast-protocol"],
        &["tokio", "axum", "reqwest", "hyper", "rusqlite", "rustls", "rustix", "tracing", "getrandom"],
    ),
    ("systemd-notices", &[], &["tokio", "axum", "reqwest", "hyper", "rusqlite", "rustls"]),
    ("xtask", &["e2e", "holdfast-golden", "holdfast-protocol", "metrics"], &[]),
];

/// Crates that no crate may link.
const BANNED: &[(&str, &str)] = &[
    ("openssl-sys", "rustls is the one TLS library"),
    ("native-tls", "rustls is the one TLS library"),
    ("backoff", "unmaintained"),
    ("serde_yml", "unmaintained"),
];

/// The fields of the output of `cargo metadata` that matter here.
#[derive(Deserialize)]
pub struct Metadata {
    packages: Vec<Package>,
    workspace_members: Vec<String>,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    kind: Option<String>,
}

/// Runs `cargo metadata`.
pub fn workspace(root: &Path) -> Result<Metadata> {
    #[expect(clippy::disallowed_methods, reason = "cargo knows the graph")]
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(root)
        .output()
        .context("cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    serde_json::from_slice(&output.stdout).context("cargo metadata's answer")
}

/// Checks the graph.
pub fn check(metadata: &Metadata) -> Vec<Breach> {
    let ours = |package: &&Package| metadata.workspace_members.contains(&package.id);
    let names: Vec<&str> =
        metadata.packages.iter().filter(ours).map(|package| package.name.as_str()).collect();
    let mut breaches = Vec::new();
    for package in metadata.packages.iter().filter(ours) {
        let Some((_, may, must_not)) = RULES.iter().find(|(name, _, _)| *name == package.name) else {
            breaches.push(Breach::new(
                &package.name,
                "a crate without a rule: add it to xtask/src/tidy/crates.rs",
            ));
            continue;
        };
        for dependency in
            package.dependencies.iter().filter(|dependency| dependency.kind.as_deref() != Some("dev"))
        {
            let name = dependency.name.as_str();
            if names.contains(&name) && !may.contains(&name) {
                breaches.push(Breach::new(&package.name, format!("must not depend on our crate `{name}`")));
            }
            if must_not.contains(&name) {
                breaches.push(Breach::new(&package.name, format!("must not depend on `{name}`")));
            }
        }
    }
    for package in &metadata.packages {
        if let Some((name, why)) = BANNED.iter().find(|(name, _)| *name == package.name) {
            breaches.push(Breach::new("Cargo.lock", format!("`{name}` is linked somewhere: {why}")));
        }
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(name: &str, dependency: &str, kind: Option<&str>) -> Metadata {
        let package =
            |name: &str, dependencies| Package { id: name.to_owned(), name: name.to_owned(), dependencies };
        let wanted = Dependency { name: dependency.to_owned(), kind: kind.map(str::to_owned) };
        Metadata {
            packages: vec![
                package(name, vec![wanted]),
                package("agentd", Vec::new()),
                package("openssl-sys", Vec::new()),
            ],
            workspace_members: vec![name.to_owned(), "agentd".to_owned()],
        }
    }

    #[test]
    fn arrows_that_are_not_in_the_table_are_refused() {
        assert_eq!(check(&metadata("hubd", "agentd", None)).len(), 2, "the arrow, and openssl");
        assert_eq!(check(&metadata("hubd", "agentd", Some("dev"))).len(), 1, "tests may");
        assert_eq!(check(&metadata("holdfast-protocol", "tokio", None)).len(), 2);
        assert_eq!(check(&metadata("new-crate", "serde", None)).len(), 2);
    }
}
