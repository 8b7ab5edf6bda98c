//! Builds of the guest agent that this host needs.
//!
//! In: the document, and what operators approved and controllers said of themselves. Out: the builds to fetch, and those
//! that must not be removed. A build that no signature covers is not fetched: the hub alone fills no disk.

use std::collections::BTreeSet;

use holdfast_protocol::desired::DesiredGuest;
use holdfast_protocol::job::act::ReleaseKind;

use crate::model::policy::Sha256Hex;
use crate::model::records::{Records, ReleaseRecord};

fn asked(desired: &[DesiredGuest]) -> impl Iterator<Item = ReleaseRecord> {
    let goals = desired.iter().filter_map(|guest| guest.controller.as_ref());
    goals.filter_map(|goal| {
        let sha256 = Sha256Hex::try_from(goal.sha256.as_str().to_owned()).ok()?;
        Some(ReleaseRecord { kind: ReleaseKind::Controller, version: goal.version.clone(), sha256 })
    })
}

/// Those that a document asks for and an operator approved, version and bytes.
#[must_use]
pub fn to_fetch(desired: &[DesiredGuest], records: &Records) -> BTreeSet<Sha256Hex> {
    asked(desired).filter(|goal| records.releases.contains(goal)).map(|goal| goal.sha256).collect()
}

/// Those that a document asks for or a guest runs.
#[must_use]
pub fn needed(desired: &[DesiredGuest], records: &Records) -> BTreeSet<Sha256Hex> {
    let run = records.guests.iter().filter_map(|guest| guest.hello.as_ref()?.build.clone());
    asked(desired).map(|goal| goal.sha256).chain(run).collect()
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::desired::DesiredController;

    use super::*;

    fn goal(version: &str, pair: &str) -> DesiredController {
        let sha256 = pair.repeat(32).try_into().unwrap();
        DesiredController { version: version.to_owned().try_into().unwrap(), sha256 }
    }

    fn digest(pair: &str) -> Sha256Hex {
        pair.repeat(32).try_into().unwrap()
    }

    #[test]
    fn only_what_is_asked_for_and_signed_for_is_fetched() {
        let mut desired = vec![crate::plan::tests::guest(1), crate::plan::tests::guest(2)];
        desired[0].controller = Some(goal("0.2.0", "ab"));
        desired[1].controller = Some(goal("0.3.0", "cd"));
        let mut records = Records::default();
        let (kind, version) = (ReleaseKind::Controller, "0.2.0".to_owned().try_into().unwrap());
        records.releases.push(ReleaseRecord { kind, version, sha256: digest("ab") });
        assert_eq!(to_fetch(&desired, &records), BTreeSet::from([digest("ab")]));
        assert_eq!(needed(&desired, &records), BTreeSet::from([digest("ab"), digest("cd")]));
        // Signed under another version, it is not what was signed.
        records.releases[0].version = "0.2.1".to_owned().try_into().unwrap();
        assert!(to_fetch(&desired, &records).is_empty());
    }
}
