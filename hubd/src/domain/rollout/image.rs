//! A golden image of a rollout on one host.
//!
//! In: the digest that the release names, the host's last report, and the images of all hosts. Out: the progress of the
//! host, and what speaks against the image on every host. Deliberately absent: guests. A new guest is made of it when a
//! document names it and operators approved it, and an existing one comes to it by an exchange.

use holdfast_protocol::condition::{ConditionCode, ReportedCondition, Severity, Subject};
use holdfast_protocol::golden_builds::{Agreement, ComparedBuilds};
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::report::{GoldenReport, ImageStatus};
use jiff::Timestamp;

use super::progress::{Contact, Progress};

/// What a host reported last.
#[derive(Clone, Debug)]
pub struct ImageReport<'a> {
    pub contact: Contact,
    pub images: Vec<GoldenReport>,
    pub conditions: &'a [ReportedCondition],
}

impl ImageReport<'_> {
    /// Whether it has these bytes, as it hashed them itself.
    #[must_use]
    pub fn has(&self, sha256: &Sha256Text) -> bool {
        let is_it = |image: &GoldenReport| {
            image.status != ImageStatus::Unread && image.sha256.as_deref() == Some(sha256.as_str())
        };
        self.images.iter().any(is_it)
    }
}

/// Whether the image is, or was, on the host. One that a person removed since is not brought again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    Here,
    Missing,
}

/// Judges a host. One that has the image already is done before its turn.
#[must_use]
pub fn progress(presence: Presence, offered_at: Option<Timestamp>, report: &ImageReport<'_>) -> Progress {
    if report.contact == Contact::Revoked {
        return Progress::Gone;
    }
    if let Some(bad) = offered_at.and_then(|at| bad_since(report.conditions, at)) {
        let (code, message) = (bad.code, bad.message.as_str());
        return Progress::Failed(format!("{code} since the image was offered: {message}"));
    }
    match (report.contact, presence) {
        (Contact::Heard, Presence::Here) => Progress::Done,
        (Contact::Heard, Presence::Missing) => Progress::Waiting,
        (Contact::Silent, _) => Progress::Silent,
        (Contact::Revoked, _) => Progress::Gone,
    }
}

/// Something critical that began since, or a disk of the host that became full: an image has hundreds of megabytes.
fn bad_since(conditions: &[ReportedCondition], at: Timestamp) -> Option<&ReportedCondition> {
    let is_full = |one: &ReportedCondition| {
        matches!(one.code, ConditionCode::DiskFull | ConditionCode::RootDiskFull)
            && matches!(one.subject, Subject::Host {})
    };
    let counts = |one: &&ReportedCondition| one.severity == Severity::Critical || is_full(one);
    conditions.iter().filter(|one| one.since >= at).filter(counts).min_by_key(|one| one.since)
}

/// Why no host should take the image: builders made different bytes of the same inputs.
#[must_use]
pub fn objection(sha256: &Sha256Text, builds: &[ComparedBuilds]) -> Option<String> {
    let of_it = builds.iter().find(|builds| builds.has(sha256.as_str()))?;
    (of_it.agreement() == Agreement::Differ).then(|| {
        let code = ConditionCode::GoldenDiffers;
        format!("{code}: golden images of the same inputs differ: {}", of_it.sentence())
    })
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::id::{GuestUid, HostName};
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    fn sha256(letter: &str) -> Sha256Text {
        letter.repeat(64).try_into().unwrap()
    }

    fn image(letter: &str, status: &str) -> GoldenReport {
        let image = json!({ "version": "2026.11.1", "sha256": letter.repeat(64), "status": status, "build": {
            "built_at": "2026-11-02T02:00:00Z", "inputs_sha256": "0".repeat(64), "size_bytes": 1, "origin": "built" } });
        serde_json::from_value(image).unwrap()
    }

    fn judge(contact: Contact, images: &[(&str, &str)], offered: Option<i64>) -> Progress {
        let images = images.iter().map(|(letter, status)| image(letter, status)).collect();
        let report = ImageReport { contact, images, conditions: &[] };
        let presence = if report.has(&sha256("a")) { Presence::Here } else { Presence::Missing };
        progress(presence, offered.map(at), &report)
    }

    #[test]
    fn a_host_is_done_when_it_hashed_these_bytes_itself() {
        let other = ("b", "approved");
        assert_eq!(judge(Contact::Heard, &[other, ("a", "approved")], Some(0)), Progress::Done);
        assert_eq!(judge(Contact::Heard, &[("a", "waiting")], Some(0)), Progress::Done, "approved or not");
        assert_eq!(judge(Contact::Heard, &[("a", "waiting")], None), Progress::Done, "before its turn");
        assert_eq!(judge(Contact::Heard, &[("a", "unread")], Some(0)), Progress::Waiting);
        assert_eq!(judge(Contact::Heard, &[other], Some(0)), Progress::Waiting);
        assert_eq!(judge(Contact::Heard, &[], None), Progress::Waiting);
        assert_eq!(judge(Contact::Silent, &[("a", "approved")], Some(0)), Progress::Silent);
        assert_eq!(judge(Contact::Revoked, &[("a", "approved")], Some(0)), Progress::Gone);
    }

    #[test]
    fn a_disk_that_became_full_since_the_offer_is_a_failure() {
        let guest = Subject::Guest { uid: GuestUid::new(Uuid::from_u128(1)) };
        let judge = |code, subject: &Subject, since, offered: Option<i64>| {
            let conditions = [ReportedCondition::new(code, subject.clone(), at(since), "as it is")];
            let report = ImageReport { contact: Contact::Heard, images: Vec::new(), conditions: &conditions };
            progress(Presence::Here, offered.map(at), &report)
        };
        let host = Subject::Host {};
        for code in [ConditionCode::DiskFull, ConditionCode::RootDiskFull] {
            let why = Progress::Failed(format!("{code} since the image was offered: as it is"));
            assert_eq!(judge(code, &host, 1, Some(0)), why);
            assert_eq!(judge(code, &host, -1, Some(0)), Progress::Done, "it was full before");
            assert_eq!(judge(code, &host, 1, None), Progress::Done, "nothing was offered");
        }
        assert_eq!(judge(ConditionCode::RootDiskFull, &guest, 1, Some(0)), Progress::Done, "a guest's own");
        let critical = judge(ConditionCode::DiskFailing, &host, 1, Some(0));
        assert!(matches!(critical, Progress::Failed(_)), "{critical:?}");
    }

    #[test]
    fn builders_that_differ_speak_against_it_everywhere() {
        let names: Vec<HostName> = ["box1", "box2"].map(|name| name.parse().unwrap()).to_vec();
        let compare = |letters: [&str; 2]| {
            let images = letters.map(|letter| image(letter, "waiting"));
            let objection =
                |letter| objection(&sha256(letter), &ComparedBuilds::of(names.iter().zip(&images)));
            (objection("a"), objection("c"))
        };
        assert_eq!(compare(["a", "a"]), (None, None));
        let (differ, of_another) = compare(["a", "b"]);
        assert!(differ.unwrap().starts_with("GOLDEN_DIFFERS: "));
        assert_eq!(of_another, None);
    }
}
