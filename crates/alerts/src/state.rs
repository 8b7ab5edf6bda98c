//! The state of one scope, as rows that a store keeps.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::group::Group;
use crate::group_key::GroupKey;
use crate::incident::{Incident, Phase, Scope};
use crate::signal::{HostState, Maintenance};

/// As many incidents as one scope has, those that are over within the hour included. Two full sets of conditions are a
/// quarter of it. What finds no room gets an incident with a later report, when some are dropped.
pub const INCIDENTS_MAX: usize = 4_096;

/// The row of the scope itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScopeRow {
    /// Which scope.
    pub scope: Scope,
    /// How the host is, once that is known.
    pub host_state: Option<HostState>,
    /// The number of the last incident.
    pub incidents_made: u64,
    /// The number of the last notice.
    pub notices_made: u64,
    /// When the host is worked on.
    pub maintenance: Vec<Maintenance>,
    /// When a tick is due; never, where nothing waits.
    pub due: Option<Timestamp>,
}

/// All rows of one scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeState {
    /// The scope itself.
    pub row: ScopeRow,
    /// Its incidents, by their numbers.
    pub incidents: BTreeMap<u64, Incident>,
    /// Its groups.
    pub groups: BTreeMap<GroupKey, Group>,
}

/// Which rows are to be written and removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The scope's own row, where it changed.
    pub row: Option<ScopeRow>,
    /// Incidents to write.
    pub incidents: Vec<Incident>,
    /// Numbers of incidents to remove.
    pub incidents_removed: Vec<u64>,
    /// Groups to write.
    pub groups: Vec<Group>,
    /// Groups to remove.
    pub groups_removed: Vec<GroupKey>,
}

impl Changes {
    /// Whether nothing is to be written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl ScopeState {
    /// Of a scope of which nothing is known.
    #[must_use]
    pub const fn new(scope: Scope) -> Self {
        let row = ScopeRow {
            scope,
            host_state: None,
            incidents_made: 0,
            notices_made: 0,
            maintenance: Vec::new(),
            due: None,
        };
        Self { row, incidents: BTreeMap::new(), groups: BTreeMap::new() }
    }

    /// Out of rows, as a store gives them.
    #[must_use]
    pub fn from_rows(
        row: ScopeRow,
        incidents: impl IntoIterator<Item = Incident>,
        groups: impl IntoIterator<Item = Group>,
    ) -> Self {
        Self {
            row,
            incidents: incidents.into_iter().map(|incident| (incident.id.number, incident)).collect(),
            groups: groups.into_iter().map(|group| (group.key.clone(), group)).collect(),
        }
    }

    /// What of `self` differs from `before`.
    #[must_use]
    pub fn changed_since(&self, before: &Self) -> Changes {
        fn written<K: Ord, V: Clone + PartialEq>(now: &BTreeMap<K, V>, before: &BTreeMap<K, V>) -> Vec<V> {
            let differs = |(key, value): &(&K, &V)| before.get(key) != Some(value);
            now.iter().filter(differs).map(|(_, value)| value.clone()).collect()
        }
        fn removed<K: Ord + Clone, V>(now: &BTreeMap<K, V>, before: &BTreeMap<K, V>) -> Vec<K> {
            before.keys().filter(|key| !now.contains_key(key)).cloned().collect()
        }
        Changes {
            row: (self.row != before.row).then(|| self.row.clone()),
            incidents: written(&self.incidents, &before.incidents),
            incidents_removed: removed(&self.incidents, &before.incidents),
            groups: written(&self.groups, &before.groups),
            groups_removed: removed(&self.groups, &before.groups),
        }
    }

    /// Whether an incident is in a group.
    #[must_use]
    pub fn is_grouped(&self, number: u64) -> bool {
        self.groups.values().any(|group| group.members.contains_key(&number))
    }

    /// Brings each stored time that is past now back to now. After a step back of the clock every duration that is
    /// measured from one of them begins anew, so nothing becomes due by the step.
    pub fn not_after(&mut self, now: Timestamp) {
        let clamp = |at: &mut Timestamp| *at = (*at).min(now);
        for incident in self.incidents.values_mut() {
            match &mut incident.phase {
                Phase::Pending { since } | Phase::Firing { since } => clamp(since),
                Phase::Resolved { fired, at } => [fired, at].into_iter().for_each(clamp),
            }
            incident.flips.iter_mut().for_each(clamp);
            let times = [&mut incident.absent_since, &mut incident.flapping, &mut incident.stale_since];
            times.into_iter().flatten().for_each(clamp);
        }
        for group in self.groups.values_mut() {
            clamp(&mut group.opened);
            clamp(&mut group.repeat_from);
            group.sent_at.iter_mut().for_each(clamp);
            let incidents = &self.incidents;
            for (number, member) in &mut group.members {
                // It names the flapping that was sent by its beginning, which may just have been clamped.
                let beginning = incidents.get(number).and_then(|incident| incident.flapping);
                if member.flapping_sent.is_some_and(|sent| sent > now) {
                    member.flapping_sent = beginning;
                }
            }
        }
    }
}
