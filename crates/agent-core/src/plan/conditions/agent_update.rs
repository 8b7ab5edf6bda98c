//! The condition of a release of the agent that did not stay.
//!
//! In: the builds of the agent. Out: one finding, for the newest release that failed its trial, or that was refused within
//! a week. A release that was confirmed later ends it.

use holdfast_protocol::condition::{ConditionCode, Subject};
use jiff::SignedDuration;

use super::{Finding, HostKnowledge};

/// A refusal steers nothing on the host, so it is history after that.
const REFUSED_MAX: SignedDuration = SignedDuration::from_hours(7 * 24);

pub(super) fn all(known: &HostKnowledge<'_>) -> Vec<Finding> {
    let Some(builds) = known.builds else { return Vec::new() };
    let failed = builds.failed.as_ref();
    let failed = failed.filter(|failed| builds.confirmed.is_none_or(|confirmed| confirmed < failed.version));
    let of = |text: String| Finding::new(ConditionCode::AgentUpdateFailed, Subject::Host {}, text);
    if let Some(failed) = failed {
        let back = match &failed.way_back {
            None => String::new(),
            Some(why) => format!("; the build that was put back is not healthy either: {why}"),
        };
        let text = format!("release {} was taken back: {}{back}", failed.version, failed.why);
        return vec![match failed.at {
            Some(at) => of(text).since(at),
            None => of(text),
        }];
    }
    let refused = builds.refused.iter();
    let recent = refused.filter_map(|refused| {
        let at = refused.at.filter(|at| known.now.duration_since(*at) < REFUSED_MAX)?;
        Some(of(format!("a release was refused ({}): {}", refused.code, refused.why)).since(at))
    });
    recent.collect()
}
