//! The kinds of files of a release.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a file of a release is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReleaseFileKind {
    /// The program `agentd`, which a host can change by itself.
    Agent,
    /// The program `guestd`.
    GuestAgent,
    /// A golden image's archive.
    Golden,
    /// The manifest of a golden image.
    GoldenManifest,
    /// A Debian package.
    Package,
    /// A bill of materials.
    Sbom,
}

/// Names of programs, and ends of names, by kind.
const NAMES: [(&str, ReleaseFileKind); 2] =
    [("agentd", ReleaseFileKind::Agent), ("guestd", ReleaseFileKind::GuestAgent)];
const ENDS: [(&str, ReleaseFileKind); 6] = [
    (".deb", ReleaseFileKind::Package),
    (".cdx.json", ReleaseFileKind::Sbom),
    (".spdx.json", ReleaseFileKind::Sbom),
    (".tar.zst", ReleaseFileKind::Golden),
    (".tar.gz", ReleaseFileKind::Golden),
    (".tar.xz", ReleaseFileKind::Golden),
];

impl ReleaseFileKind {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Agent, Self::GuestAgent, Self::Golden, Self::GoldenManifest, Self::Package, Self::Sbom];

    /// As it is written in a manifest.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::GuestAgent => "guest_agent",
            Self::Golden => "golden",
            Self::GoldenManifest => "golden_manifest",
            Self::Package => "package",
            Self::Sbom => "sbom",
        }
    }

    /// The kind that a file's name shows; none where it shows none.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        let exact = NAMES.iter().find(|(program, _)| *program == name);
        let by_end = || ENDS.iter().find(|(end, _)| name.ends_with(end));
        let image =
            || (name.starts_with("golden-") && name.ends_with(".json")).then_some(Self::GoldenManifest);
        exact.or_else(by_end).map(|(_, kind)| *kind).or_else(image)
    }
}

impl fmt::Display for ReleaseFileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ReleaseFileKind {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let found = Self::ALL.into_iter().find(|kind| kind.as_str() == text);
        found.ok_or(
            "a file of a release is of kind agent, guest_agent, golden, golden_manifest, package or sbom",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_read_as_it_is_written() {
        for kind in ReleaseFileKind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(kind));
            assert_eq!(serde_json::to_string(&kind).unwrap(), format!("\"{kind}\""));
        }
        assert!("agentd".parse::<ReleaseFileKind>().is_err());
    }

    #[test]
    fn names_show_kinds_and_no_name_is_guessed() {
        for (name, kind) in [
            ("agentd", Some(ReleaseFileKind::Agent)),
            ("guestd", Some(ReleaseFileKind::GuestAgent)),
            ("holdfast-agent_0.1.0-1_amd64.deb", Some(ReleaseFileKind::Package)),
            ("agentd.cdx.json", Some(ReleaseFileKind::Sbom)),
            ("holdfast-2026.11.1.tar.zst", Some(ReleaseFileKind::Golden)),
            ("golden-2026.11.1.json", Some(ReleaseFileKind::GoldenManifest)),
            ("golden-2026.11.1.spdx.json", Some(ReleaseFileKind::Sbom)),
            ("agentd-arm64", None),
            ("hubd", None),
            ("manifest.json", None),
        ] {
            assert_eq!(ReleaseFileKind::by_name(name), kind, "{name}");
        }
    }
}
