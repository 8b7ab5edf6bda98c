//! Lines about the builds of a host's agent.
//!
//! In: what the host reports of its builds, and what it is offered. Out: lines of `holdfast host show`, none where a host
//! has only its package.

use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::release::stored::HostOffer;
use holdfast_protocol::report::AgentBuilds;
use jiff::Timestamp;

use super::table::clean;
use super::time::when;

/// So many digits are enough to tell manifests apart.
const DIGITS: usize = 12;

/// The lines, each with its label.
pub fn lines(
    builds: Option<&AgentBuilds>,
    offer: Option<&HostOffer>,
    now: Timestamp,
) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    if let Some(AgentBuilds { confirmed, trial, failed, withdrawn, refused }) = builds {
        lines.extend(confirmed.map(|version| ("Release", format!("{version}, confirmed by its trial"))));
        lines.extend(trial.map(|version| ("On trial", format!("release {version}"))));
        lines.extend(failed.as_ref().map(|failed| {
            let back = failed.way_back.as_ref().map(|why| format!("; the build that was put back: {why}"));
            let (version, why) = (failed.version, &failed.why);
            (
                "Failed",
                clean(&format!("release {version}{}: {why}{}", at(failed.at, now), back.unwrap_or_default())),
            )
        }));
        lines.extend(withdrawn.as_ref().map(|ended| {
            let back = ended.way_back.as_ref().map(|why| format!("; the build that was put back: {why}"));
            let (version, why) = (ended.version, &ended.why);
            let text = format!("release {version}{}: {why}{}", at(ended.at, now), back.unwrap_or_default());
            ("Trial ended", clean(&text))
        }));
        lines.extend(refused.as_ref().map(|refused| {
            let which = refused.manifest_sha256.as_ref().map_or_else(|| "a release".to_owned(), named);
            ("Refused", clean(&format!("{which}{}: {}: {}", at(refused.at, now), refused.code, refused.why)))
        }));
    }
    lines.extend(offer.map(|offer| {
        let taken = builds.is_some_and(|builds| builds.confirmed == Some(offer.version));
        let taken = if taken { ", and it runs it" } else { "" };
        ("Offered", format!("release {} by {}, {}{taken}", offer.version, offer.by, when(offer.at, now)))
    }));
    lines
}

fn at(at: Option<Timestamp>, now: Timestamp) -> String {
    at.map(|at| format!(", {}", when(at, now))).unwrap_or_default()
}

fn named(digest: &Sha256Text) -> String {
    format!("the release of manifest {}…", digest.as_str().get(..DIGITS).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::report::{FailedRelease, RefusedRelease};

    use super::*;

    #[test]
    fn a_host_shows_what_ran_what_failed_and_what_it_is_offered() {
        let now: Timestamp = "2026-12-02T10:00:00Z".parse().unwrap();
        let version = |text: &str| text.parse().unwrap();
        let builds = AgentBuilds {
            confirmed: Some(version("2026.12.0")),
            trial: Some(version("2026.12.2")),
            failed: Some(FailedRelease {
                version: version("2026.12.1"),
                manifest_sha256: Sha256Text::of(b"m"),
                why: "it ended\u{1b}[2J three times".to_owned(),
                way_back: Some("not healthy either".to_owned()),
                at: None,
            }),
            withdrawn: Some(FailedRelease {
                version: version("2026.12.2"),
                manifest_sha256: Sha256Text::of(b"n"),
                why: "its offer was withdrawn".to_owned(),
                way_back: None,
                at: None,
            }),
            refused: Some(RefusedRelease {
                manifest_sha256: None,
                code: "EXPIRED".to_owned(),
                why: "the release has ended".to_owned(),
                at: None,
            }),
        };
        let offer = HostOffer { version: version("2026.12.0"), by: "eve".parse().unwrap(), at: now };
        let shown: Vec<String> = lines(Some(&builds), Some(&offer), now)
            .into_iter()
            .map(|(name, line)| format!("{name}: {line}"))
            .collect();
        assert_eq!(
            shown.get(..5).unwrap(),
            [
                "Release: 2026.12.0, confirmed by its trial",
                "On trial: release 2026.12.2",
                "Failed: release 2026.12.1: it ended [2J three times; the build that was put back: not healthy either",
                "Trial ended: release 2026.12.2: its offer was withdrawn",
                "Refused: a release: EXPIRED: the release has ended",
            ]
        );
        let last = shown.last().unwrap();
        assert!(
            last.starts_with("Offered: release 2026.12.0 by eve") && last.ends_with("it runs it"),
            "{last}"
        );
        assert!(lines(None, None, now).is_empty());
    }
}
