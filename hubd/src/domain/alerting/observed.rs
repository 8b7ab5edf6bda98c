//! Conditions of a report, with what the hub knows of their subjects.

use std::collections::BTreeMap;

use alerts::Signal;
use alerts::incident::Source;
use alerts::label::Labels;
use alerts::signal::{Completeness, HostState, ObservedCondition};
use holdfast_protocol::condition::{ConditionSet, ReportedCondition, Severity, Subject, SubjectKind};
use holdfast_protocol::id::{CustomerId, GuestUid};
use holdfast_protocol::report::GuestReport;

/// Labels of a host's guests, by uid.
pub type GuestLabels = BTreeMap<GuestUid, Labels>;

/// What a check-in says of conditions. `None` is unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportedConditions {
    /// All that hold.
    pub set: Option<ConditionSet>,
    /// The labels of all guests.
    pub guests: Option<GuestLabels>,
}

/// The labels of the guests of a report.
#[must_use]
pub fn guest_labels(guests: &[GuestReport]) -> GuestLabels {
    let labels = |guest: &GuestReport| Labels {
        customer: guest.customer.clone(),
        guest: guest.name.parse().ok(),
        // A report does not name it; the store adds it by the document.
        policy: None,
    };
    guests.iter().filter_map(|guest| Some((guest.uid?, labels(guest)))).collect()
}

/// The customer of a host: that of all its guests, where they are of one. `count` is how many the host reported; one
/// without a uid has no labels, and may be of anyone.
#[must_use]
pub fn host_customer(guests: &GuestLabels, count: u32) -> Option<CustomerId> {
    let first = guests.values().next()?.customer.as_ref()?;
    let is_same = |labels: &Labels| labels.customer.as_ref() == Some(first);
    (u32::try_from(guests.len()) == Ok(count) && guests.values().all(is_same)).then(|| first.clone())
}

/// What the engine is given for a set that an agent reported.
#[must_use]
pub fn signal(set: &ConditionSet, guests: &GuestLabels) -> Signal {
    let labels =
        |subject: &Subject| subject.guest().and_then(|uid| guests.get(&uid)).cloned().unwrap_or_default();
    let observed = set.conditions().iter().map(|condition| ObservedCondition {
        labels: labels(&condition.subject),
        condition: condition.clone(),
    });
    Signal::Conditions {
        source: Source::Agent,
        conditions: observed.collect(),
        completeness: if set.left_out() == 0 { Completeness::Complete } else { Completeness::Partial },
    }
}

/// The oldest critical condition of the host itself.
#[must_use]
pub fn unwell(set: &ConditionSet) -> Option<&ReportedCondition> {
    let of_host = set
        .conditions()
        .iter()
        .filter(|one| one.severity == Severity::Critical && one.subject.kind() == SubjectKind::Host);
    of_host.min_by_key(|one| one.since)
}

/// How a host is that speaks: degraded, where something critical is wrong with the host itself.
#[must_use]
pub fn state_of(set: &ConditionSet) -> HostState {
    match unwell(set) {
        Some(_) => HostState::Degraded,
        None => HostState::Online,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_protocol::condition::ConditionCode;
    use jiff::Timestamp;

    fn set(code: ConditionCode, subject: Subject) -> ConditionSet {
        ConditionSet::collect([ReportedCondition::new(code, subject, Timestamp::UNIX_EPOCH, "as it is")])
    }

    #[test]
    fn a_guests_condition_has_its_name_and_its_customer() {
        let uid = GuestUid::new(uuid::Uuid::from_u128(7));
        let labels = Labels { customer: "acme".parse().ok(), guest: "web".parse().ok(), policy: None };
        let guests = GuestLabels::from([(uid, labels.clone())]);
        let of = |subject| match signal(&set(ConditionCode::GuestCrashed, subject), &guests) {
            Signal::Conditions { conditions, completeness: Completeness::Complete, .. } => {
                conditions.into_iter().map(|one| one.labels).collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(of(Subject::Guest { uid }), [labels]);
        let other = GuestUid::new(uuid::Uuid::from_u128(8));
        assert_eq!(of(Subject::Guest { uid: other }), [Labels::default()]);
    }

    #[test]
    fn a_host_is_of_a_customer_only_if_each_guest_is() {
        let guests = |owners: &[&str]| -> GuestLabels {
            let labels = |owner: &str| Labels { customer: owner.parse().ok(), ..Labels::default() };
            let uid = |number| GuestUid::new(uuid::Uuid::from_u128(number));
            owners.iter().zip(1..).map(|(owner, number)| (uid(number), labels(owner))).collect()
        };
        for (owners, count, customer) in [
            (&["acme", "acme"][..], 2, Some("acme")),
            (&["acme", "beta"], 2, None),
            (&["acme", ""], 2, None),
            (&["", ""], 2, None),
            // A guest of which nothing is known.
            (&["acme"], 2, None),
            (&[], 0, None),
        ] {
            let found = host_customer(&guests(owners), count);
            assert_eq!(found.as_ref().map(CustomerId::as_str), customer, "{owners:?}");
        }
    }

    #[test]
    fn a_host_is_degraded_by_what_is_critical_of_itself() {
        let uid = GuestUid::new(uuid::Uuid::from_u128(7));
        let of = |code, subject| state_of(&set(code, subject));
        assert_eq!(of(ConditionCode::ProxmoxAway, Subject::Host {}), HostState::Degraded);
        assert_eq!(of(ConditionCode::ClockUnkept, Subject::Host {}), HostState::Online);
        assert_eq!(of(ConditionCode::GuestMissing, Subject::Guest { uid }), HostState::Online);
        assert_eq!(state_of(&ConditionSet::default()), HostState::Online);
    }
}
